//! Reading a frame cannot fail, and the parts it borrows are valid JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{Frame, FrameBody, elements, same_id};
use tapegate_core::json;

fuzz_target!(|bytes: &[u8]| {
    let frame = Frame::read(bytes);
    assert_eq!(frame.bytes(), bytes);
    match frame.body() {
        FrameBody::Message(envelope) => {
            assert!(json::check(bytes).is_ok());
            for part in [
                envelope.id,
                envelope.params,
                envelope.result,
                envelope.error,
                envelope.progress_token,
            ]
            .into_iter()
            .flatten()
            {
                assert!(json::check(part).is_ok());
            }
            for text in [envelope.method, envelope.name, envelope.uri].into_iter().flatten() {
                let mut encoded = Vec::new();
                json::write_str(&mut encoded, &text.decode());
                assert!(json::check(&encoded).is_ok());
            }
            assert!(envelope.id.is_none_or(|id| same_id(id, id)));
            let compact = json::compact(bytes.trim_ascii());
            assert!(json::check(&compact).is_ok() && !compact.contains(&b'\n'));
        }
        FrameBody::Batch => {
            for element in elements(bytes) {
                assert!(json::check(element.bytes()).is_ok());
            }
        }
        FrameBody::Garbage(error) => assert!(!error.reason().is_empty()),
    }
});
