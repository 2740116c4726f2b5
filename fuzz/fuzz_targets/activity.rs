//! Any bytes as an activity log: reading and verifying report findings and never panic, and no line is
//! skipped silently.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tapegate_store::activity::{LoggedEvent, LoggedEvents, is_line, verify};

fuzz_target!(|bytes: &[u8]| {
    let report = verify(bytes).expect("memory can be read");
    let terminated = bytes.strip_suffix(b"\n");
    let lines: Vec<&[u8]> = match bytes {
        [] => Vec::new(),
        _ => terminated.unwrap_or(bytes).split(|byte| *byte == b'\n').collect(),
    };
    let event_lines = lines.iter().filter(|line| is_line(line)).count();
    assert!(report.events >= event_lines as u64);
    if report.findings.is_empty() {
        assert_eq!(report.events, lines.len() as u64);
        assert!(bytes.is_empty() || terminated.is_some());
        assert_eq!(report.head.is_some(), !lines.is_empty());
    }
    assert!(report.head.is_none() || report.events > 0);
    let mut line_number = 0;
    for next in LoggedEvents::new(bytes) {
        line_number += 1;
        let Ok(event) = next else { continue };
        assert_eq!(event.line, line_number);
        // Every member can be read, and reading the line again gives the same event.
        for (key, _) in event.members() {
            assert!(event.raw(key).is_some());
            event.str(key);
            event.number(key);
            event.bool_value(key);
        }
        assert_eq!(LoggedEvent::read(line_number, event.text()).ok().as_ref(), Some(&event));
    }
    assert_eq!(line_number, lines.len() as u64);
});
