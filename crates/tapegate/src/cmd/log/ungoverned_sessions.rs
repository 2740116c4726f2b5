//! Warns of sessions that ran without a policy, before anything else is printed.

use std::path::Path;

use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_shim::reload::NO_POLICY;
use tapegate_store::activity::LogFollower;

use crate::program_name;
use crate::terminal_output;

/// Warns of today's sessions without a policy. Unreadable files are ignored here; they are reported
/// when they are printed.
pub(super) fn warn(folder: &Path, now_us: i64) {
    let mut today = Vec::new();
    write_rfc3339(&mut today, now_us, SubSecond::Micros);
    // In UTC, as the timestamps of the log are.
    let today = String::from_utf8_lossy(&today[..today.len().min(10)]).into_owned();
    let message = match count(folder, &today) {
        0 => return,
        1 => "no policy: 1 session today ran ungoverned".to_owned(),
        many => format!("no policy: {many} sessions today ran ungoverned"),
    };
    terminal_output::warn(&format!(
        "{message}; `{}` writes a policy",
        program_name::command("init")
    ));
}

fn count(folder: &Path, today: &str) -> usize {
    let mut follower = LogFollower::new(folder);
    let mut found = 0;
    while let Ok(Some(next)) = follower.next_line() {
        let Ok(logged) = next else { continue };
        let is = |key: &str, value: &str| logged.str(key).is_some_and(|text| text == value);
        let is_today = || logged.str("timestamp").is_some_and(|text| text.starts_with(today));
        found += usize::from(is("kind", "policy") && is("event", NO_POLICY) && is_today());
    }
    found
}
