//! Reading a frame cannot fail, and what it borrows is what stands there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_core::frame::{Body, Frame, elements, same_id};
use tapegate_core::json;

fuzz_target!(|bytes: &[u8]| {
    let frame = Frame::read(bytes);
    assert_eq!(frame.bytes(), bytes);
    match frame.body() {
        Body::Message(said) => {
            assert!(json::check(bytes).is_ok());
            for part in [said.id, said.params, said.result, said.error, said.progress_token].into_iter().flatten() {
                assert!(json::check(part).is_ok());
            }
            for text in [said.method, said.name, said.uri].into_iter().flatten() {
                let mut again = Vec::new();
                json::write_str(&mut again, &text.decode());
                assert!(json::check(&again).is_ok());
            }
            assert!(said.id.is_none_or(|id| same_id(id, id)));
            let compact = json::compact(bytes.trim_ascii());
            assert!(json::check(&compact).is_ok() && !compact.contains(&b'\n'));
        }
        Body::Batch => {
            for element in elements(bytes) {
                assert!(json::check(element.bytes()).is_ok());
            }
        }
        Body::Garbage(garbage) => assert!(!garbage.reason().is_empty()),
    }
});
