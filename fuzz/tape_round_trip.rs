//! Whatever bytes follow a good line, neither the reader nor the audit panics. A tape that was read
//! and written once does not change when it is read and written again.

use tapegate_core::tape::{TapeAudit, TapeLine, TapeReader};

pub fn check(first: &[u8], bytes: &[u8]) {
    let text = [first, bytes].concat();
    let once = read_and_write(&text);
    assert!(once.starts_with(first) || once.is_empty());
    assert_eq!(read_and_write(&once), once);
}

fn read_and_write(text: &[u8]) -> Vec<u8> {
    let mut reader = TapeReader::new(text);
    let (mut audit, mut out) = (TapeAudit::default(), Vec::new());
    while let Some(next) = reader.next() {
        audit.line(&next);
        match next.map(|numbered| numbered.entry) {
            Ok(TapeLine::Header(header)) => header.write(&mut out),
            Ok(TapeLine::Message(message)) if message.seq.is_some() => {
                message.write_thoughtjack(&mut out);
            }
            Ok(TapeLine::Message(message)) => message.write_overwatch(&mut out),
            Ok(TapeLine::Bad(bad_frame)) => bad_frame.write(&mut out),
            Ok(TapeLine::Footer(footer)) => footer.write(&mut out),
            Ok(TapeLine::Unknown(_)) | Err(_) => {}
        }
    }
    audit.finish();
    out
}
