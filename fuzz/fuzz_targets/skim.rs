//! A skim says the same in any chunking, and never makes up an id.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{Frame, Skim};
use tapegate_core::json;

fn skim(bytes: &[u8], step: usize) -> tapegate_core::frame::Skimmed {
    let mut skim = Skim::default();
    bytes.chunks(step).for_each(|piece| skim.feed(piece));
    skim.finish()
}

fuzz_target!(|bytes: &[u8]| {
    let [step, text @ ..] = bytes else { return };
    let found = skim(text, usize::from(*step) + 1);
    assert_eq!(found, skim(text, usize::MAX));
    assert!(found.id.as_deref().is_none_or(|id| json::check(id).is_ok()));
    if let Some(said) = Frame::read(text).envelope().filter(|said| !said.repeated)
        && let (Some(id), Some(seen)) = (said.id, &found.id)
    {
        assert_eq!(id, seen, "{}", text.escape_ascii());
    }
});
