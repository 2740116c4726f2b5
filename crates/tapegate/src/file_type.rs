//! Guesses the kind of a file, so that a command that cannot use it can suggest one that can.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tapegate_core::json;
use tapegate_core::tape::BashSession;
use tapegate_store::activity;

/// How many bytes of a file are read.
const HEAD_BYTES: u64 = 64 * 1024;

/// Whether a file looks like a tape: its first line is JSON like that of an entry, or it is gzip.
pub(crate) fn seems_a_tape(path: &Path) -> bool {
    let Some(head) = head(path) else { return false };
    if head.starts_with(b"\x1f\x8b") {
        return true;
    }
    let line = head.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).find(|it| !it.is_empty());
    line.is_some_and(seems_an_entry)
}

/// Whether a line, or its start, seems to be an entry of a tape.
pub(crate) fn seems_an_entry(line: &[u8]) -> bool {
    if !line.starts_with(b"{") {
        return false;
    }
    let kind = json::member(line, "type").and_then(json::string);
    let is_entry = kind.is_some_and(|kind| matches!(&*kind, "header" | "message" | "footer"));
    // Events of an activity log have directions by other names.
    let direction = json::member(line, "direction").and_then(json::string);
    if BashSession::is_entry(line) {
        return true;
    }
    let is_between = |it: &str| matches!(it, "client_to_server" | "server_to_client");
    // The first message of a tape may be longer than what is read.
    let starts = |start: &str| line.starts_with(start.as_bytes());
    is_entry
        || direction.is_some_and(|direction| is_between(&direction))
        || starts("{\"type\":\"header\"")
        || starts("{\"type\":\"message\"")
}

/// Whether a file looks like an activity log: one of its first lines is an event.
pub(crate) fn seems_an_activity_log(path: &Path) -> bool {
    head(path).is_some_and(|head| head.split(|byte| *byte == b'\n').any(activity::is_line))
}

/// Whether a file looks like a scenario: by its name, or by YAML keys at its beginning.
pub(crate) fn seems_a_scenario(path: &Path) -> bool {
    let named = path.extension().is_some_and(|it| it == "yaml" || it == "yml");
    let Some(head) = head(path) else { return false };
    let text = String::from_utf8_lossy(&head);
    let mut keys = text.lines().filter_map(|line| line.split_once(':').map(|(key, _)| key));
    named || keys.any(|key| matches!(key, "server" | "phases" | "baseline" | "tools"))
}

/// Whether a file is UTF-16, as some editors and shells save texts.
pub(crate) fn seems_utf16(path: &Path) -> bool {
    head(path).is_some_and(|head| head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff"))
}

fn head(path: &Path) -> Option<Vec<u8>> {
    // Reading from a pipe would consume its content, and opening one would wait for its other end.
    let file = path.is_file().then(|| File::open(path).ok()).flatten()?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    Some(head)
}
