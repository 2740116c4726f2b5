//! What is said to a person: on standard error, never on standard output, which belongs to the
//! protocol or to data.

use std::io::Write;

/// Says what went wrong, and the way out after a blank line.
pub(crate) fn error(words: &str, hint: Option<&str>) {
    let hint = hint.map(|hint| format!("\nhint: {hint}\n")).unwrap_or_default();
    say_raw(&format!("error: {words}\n{hint}"));
}

/// Says something worth knowing.
pub(crate) fn say(words: &str) {
    say_raw(&format!("tapegate: {words}\n"));
}

/// Says that something is amiss.
pub(crate) fn warn(words: &str) {
    say_raw(&format!("tapegate: warning: {words}\n"));
}

fn say_raw(text: &str) {
    // If standard error is gone, there is nobody left to tell.
    std::io::stderr().write_all(text.as_bytes()).ok();
}
