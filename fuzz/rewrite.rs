//! No bytes behind a good line make the reader or the audit panic, and what was read and written
//! once is the same when it is read and written again.

use tapegate_core::tape::{Audit, Line, Reader};

pub fn check(first: &[u8], bytes: &[u8]) {
    let text = [first, bytes].concat();
    let once = again(&text);
    assert!(once.starts_with(first) || once.is_empty());
    assert_eq!(again(&once), once);
}

fn again(text: &[u8]) -> Vec<u8> {
    let (mut reader, mut audit, mut out) = (Reader::new(text), Audit::default(), Vec::new());
    while let Some(next) = reader.next() {
        audit.line(&next);
        match next.map(|numbered| numbered.entry) {
            Ok(Line::Header(header)) => header.write(&mut out),
            Ok(Line::Message(message)) if message.seq.is_some() => message.write_thoughtjack(&mut out),
            Ok(Line::Message(message)) => message.write_overwatch(&mut out),
            Ok(Line::Bad(bad)) => bad.write(&mut out),
            Ok(Line::Footer(footer)) => footer.write(&mut out),
            Ok(Line::Unknown(_)) | Err(_) => {}
        }
    }
    audit.finish();
    out
}
