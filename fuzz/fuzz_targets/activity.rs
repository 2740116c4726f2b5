//! An activity log of anything: reading and looking it over end in findings, never in a panic, and
//! nothing is passed over in silence.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_store::activity::{Events, Logged, is_line, verify};

fuzz_target!(|bytes: &[u8]| {
    let report = verify(bytes).expect("memory can be read");
    let whole = bytes.strip_suffix(b"\n");
    let lines: Vec<&[u8]> = match bytes {
        [] => Vec::new(),
        _ => whole.unwrap_or(bytes).split(|byte| *byte == b'\n').collect(),
    };
    let ours = lines.iter().filter(|line| is_line(line)).count();
    assert!(report.events >= ours as u64);
    if report.found.is_empty() {
        assert_eq!(report.events, lines.len() as u64);
        assert!(bytes.is_empty() || whole.is_some());
        assert_eq!(report.head.is_some(), !lines.is_empty());
    }
    assert!(report.head.is_none() || report.events > 0);
    let mut read = 0;
    for next in Events::new(bytes) {
        read += 1;
        let Ok(logged) = next else { continue };
        assert_eq!(logged.line, read);
        // Every member can be asked for, and the line reads the same again.
        for (key, _) in logged.members() {
            assert!(logged.raw(key).is_some());
            logged.str(key);
            logged.number(key);
            logged.flag(key);
        }
        assert_eq!(Logged::read(read, logged.text()).ok().as_ref(), Some(&logged));
    }
    assert_eq!(read, lines.len() as u64);
});
