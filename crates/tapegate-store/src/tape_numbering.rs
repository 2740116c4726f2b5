//! Finds a free name for a tape whose name is taken: `s.jsonl`, `s-2.jsonl`, `s-3.jsonl`.
//!
//! Some clients start a server twice: once to probe its protocol version, and once to use it. So
//! the last of these names is reused if its tape holds only such a probe.

use std::ffi::OsString;
use std::fs::{self, File, Permissions};
use std::io::{BufReader, Read, Seek};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::side::Side;
use tapegate_core::tape::{TapeLine, TapeReader};

use crate::anomaly_file::anomaly_path;
use crate::tape_file::{self, OpenError, OpenMode, OpenedTape};
use crate::tape_source;

/// More numbered tapes than one folder will hold.
const NAMES_MAX: u32 = 1_000_000;
/// A longer tape holds more than a probe, or is not worth reading to find out.
const PROBE_BYTES_MAX: u64 = 1024 * 1024;
/// The methods of a client that only probes a server.
const PROBE_METHODS: [&str; 5] = [
    "server/discover",
    "initialize",
    "notifications/initialized",
    "notifications/cancelled",
    "ping",
];

/// Opens `path`, or the next free name.
pub(crate) fn open(path: &Path) -> Result<(PathBuf, OpenedTape), OpenError> {
    let mut taken: Option<PathBuf> = None;
    for number in 1..=NAMES_MAX {
        let name = numbered(path, number);
        // Only the last taken name can be a probe of this client; earlier tapes are older sessions.
        if fs::symlink_metadata(&name).is_err()
            && let Some(last) = taken.take()
            && let Some(opened) = reopen_probe(&last)
        {
            return Ok((last, opened));
        }
        match tape_file::open(&name, OpenMode::New) {
            Ok(opened) => return Ok((name, opened)),
            // Another process was first.
            Err(OpenError::Exists { .. } | OpenError::Busy { .. }) => taken = Some(name),
            Err(OpenError::NotAFile { .. }) if number > 1 => taken = None,
            Err(error) => return Err(error),
        }
    }
    Err(OpenError::Exists { path: path.to_owned() })
}

/// Empties and opens a tape that holds only a probe and has no writer.
fn reopen_probe(path: &Path) -> Option<OpenedTape> {
    // Anomalies are evidence, even beside a tape that holds only a probe.
    if fs::symlink_metadata(anomaly_path(path)).is_ok() {
        return None;
    }
    let mut file = tape_file::options().open(path).ok()?;
    // Without locks, a writer cannot be ruled out.
    file.try_lock().ok()?;
    // Checked under the lock, because another recorder may have replaced the tape before.
    if !is_named(&file, path) || file.metadata().ok()?.len() > PROBE_BYTES_MAX {
        return None;
    }
    let text = tape_source::text(file.try_clone().ok()?).ok()?;
    if !contains_only_probe(text) {
        return None;
    }
    file.set_permissions(Permissions::from_mode(0o600)).ok()?;
    file.set_len(0).ok()?;
    file.rewind().ok()?;
    Some(OpenedTape { file, created: false, bytes: 0, torn: false })
}

/// Whether `path` still names `file`: its owner may have removed it meanwhile.
fn is_named(file: &File, path: &Path) -> bool {
    let named = fs::symlink_metadata(path).map(|there| (there.dev(), there.ino()));
    let opened = file.metadata().map(|there| (there.dev(), there.ino()));
    matches!((named, opened), (Ok(named), Ok(opened)) if named == opened)
}

fn contains_only_probe(text: impl Read) -> bool {
    let mut text = text.take(PROBE_BYTES_MAX + 1);
    let mut reader = TapeReader::new(BufReader::new(&mut text));
    while let Some(next) = reader.next() {
        let is_probe = next.is_ok_and(|line| match line.entry {
            TapeLine::Header(_) | TapeLine::Footer(_) => true,
            TapeLine::Message(message) => is_probe(message.from, &message.msg),
            _ => false,
        });
        if !is_probe {
            return false;
        }
    }
    text.limit() > 0
}

/// Whether a message belongs to a probe. Only the client's messages matter: a server may log,
/// notify or send requests as soon as it is connected.
fn is_probe(from: Side, message: &[u8]) -> bool {
    let frame = Frame::read(message);
    frame.envelope().is_some_and(|envelope| match (envelope.kind(), from) {
        (MessageKind::Other, _) => false,
        (_, Side::Server) => true,
        (MessageKind::Request | MessageKind::Notification, Side::Client) => {
            PROBE_METHODS.iter().any(|method| envelope.is_method(method))
        }
        // The response to a ping is empty; any other response reveals something about the client.
        (MessageKind::Response, Side::Client) => envelope.result == Some(b"{}"),
        (MessageKind::Error, Side::Client) => false,
    })
}

/// The path with this number: `s.jsonl.gz` becomes `s-2.jsonl.gz`.
fn numbered(path: &Path, number: u32) -> PathBuf {
    let Some(name) = path.file_name().filter(|_| number > 1) else { return path.to_owned() };
    let name = name.as_bytes();
    let stem = name.strip_suffix(b".gz").unwrap_or(name);
    let dot = stem.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0);
    let (stem, ending) = name.split_at(dot.unwrap_or(stem.len()));
    let name = [stem, format!("-{number}").as_bytes(), ending].concat();
    path.with_file_name(OsString::from_vec(name))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn numbers_stand_before_the_ending() {
        for (name, second) in [
            ("s.jsonl", "s-2.jsonl"),
            ("s.jsonl.gz", "s-2.jsonl.gz"),
            ("a/b.c/s", "a/b.c/s-2"),
            ("a.b.jsonl", "a.b-2.jsonl"),
            (".hidden", ".hidden-2"),
            (".hidden.gz", ".hidden-2.gz"),
            ("s.gz", "s-2.gz"),
        ] {
            assert_eq!(numbered(Path::new(name), 2), Path::new(second));
            assert_eq!(numbered(Path::new(name), 1), Path::new(name));
        }
        let odd = OsStr::from_bytes(b"\xff.jsonl");
        assert_eq!(numbered(Path::new(odd), 3).as_os_str().as_bytes(), b"\xff-3.jsonl");
    }

    #[test]
    fn a_probe_is_told_from_a_session() {
        let line = |dir: &str, msg: &str| {
            format!(
                "{{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
            )
        };
        let discover =
            line("c2s", r#"{"jsonrpc":"2.0","id":"d","method":"server/discover","params":{}}"#);
        let answer =
            line("s2c", r#"{"jsonrpc":"2.0","id":"d","error":{"code":-32601,"message":"no"}}"#);
        let list = line("c2s", r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#);
        let log = line("s2c", r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#);
        let roots = line("s2c", r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#);
        let answered = line("c2s", r#"{"jsonrpc":"2.0","id":9,"result":{"roots":[]}}"#);
        let refused =
            line("c2s", r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no"}}"#);
        let ping = line("s2c", r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#);
        let pong = line("c2s", r#"{"jsonrpc":"2.0","id":8,"result":{}}"#);
        assert!(contains_only_probe(&b""[..]));
        assert!(contains_only_probe(discover.as_bytes()));
        assert!(contains_only_probe([&discover[..], &answer].concat().as_bytes()));
        // The server may send anything, before and after.
        let unasked = [&log[..], &ping, &discover, &pong, &log, &answer, &log, &roots];
        assert!(contains_only_probe(unasked.concat().as_bytes()));
        let log_of_client = log.replace("s2c", "c2s");
        let kept = [&list, &log_of_client, &answered, &refused, "my diary\n", "{\"type\":\"mess"];
        for more in kept {
            assert!(
                !contains_only_probe([&discover[..], &answer, more].concat().as_bytes()),
                "{more}"
            );
        }
        let long = discover.repeat(PROBE_BYTES_MAX as usize / discover.len() + 1);
        assert!(!contains_only_probe(long.as_bytes()));
    }
}
