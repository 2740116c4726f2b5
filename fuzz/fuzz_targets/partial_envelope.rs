//! Skimming a message finds the same in any chunking, and never invents an id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{EnvelopeSkimmer, Frame, PartialEnvelope};
use tapegate_core::json;

fn partial_envelope(bytes: &[u8], step: usize) -> PartialEnvelope {
    let mut skimmer = EnvelopeSkimmer::default();
    bytes.chunks(step).for_each(|piece| skimmer.feed(piece));
    skimmer.finish()
}

fuzz_target!(|bytes: &[u8]| {
    let [step, text @ ..] = bytes else { return };
    let partial = partial_envelope(text, usize::from(*step) + 1);
    assert_eq!(partial, partial_envelope(text, usize::MAX));
    assert!(partial.id.as_deref().is_none_or(|id| json::check(id).is_ok()));
    // With repeated keys it is undefined which of the ids counts.
    let frame = Frame::read(text);
    if let Some(envelope) = frame.envelope().filter(|envelope| !envelope.repeated)
        && let (Some(id), Some(partial_id)) = (envelope.id, &partial.id)
    {
        assert_eq!(id, partial_id, "{}", text.escape_ascii());
    }
});
