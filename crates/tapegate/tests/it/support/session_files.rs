//! Reads what a session leaves on disk.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use tapegate_core::side::Side;
use tapegate_core::tape::{LineProblem, TapeLine, TapeReader};

use super::tapegate;

/// The file for what the thoughtjack dialect has no line for.
pub(crate) fn beside(tape: &Path) -> PathBuf {
    let mut name = tape.as_os_str().to_owned();
    name.push(".anomalies.jsonl");
    name.into()
}

/// A frame on a tape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TapedFrame {
    pub(crate) from: Side,
    /// Its exact bytes where the tape has them, else its text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) seq: Option<u64>,
    pub(crate) latency_ms: Option<u64>,
    pub(crate) ours: bool,
    pub(crate) batch: Option<u64>,
    pub(crate) reason: Option<String>,
    pub(crate) bytes_total: Option<u64>,
}

impl TapedFrame {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The text of a tape, compressed or not; empty if it does not exist.
pub(crate) fn text_of(path: &Path) -> String {
    String::from_utf8_lossy(&bytes_of(path)).into_owned()
}

fn bytes_of(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let text = fs::File::open(path).and_then(tapegate_store::tape_source::text);
    text.and_then(|mut text| text.read_to_end(&mut bytes)).ok();
    bytes
}

/// Every frame of a tape; a torn tail is ignored, any other fault is not.
#[track_caller]
pub(crate) fn kept(path: &Path) -> Vec<TapedFrame> {
    let bytes = bytes_of(path);
    let mut reader = TapeReader::new(bytes.as_slice());
    let mut out = Vec::new();
    while let Some(next) = reader.next() {
        match next.map(|numbered| numbered.entry) {
            Ok(TapeLine::Message(message)) => out.push(TapedFrame {
                from: message.from,
                bytes: message.raw.map_or(message.msg.into_owned(), |raw| raw.into_owned().into()),
                seq: message.seq,
                latency_ms: message.latency_ms,
                ours: message.ours,
                batch: message.batch,
                reason: None,
                bytes_total: None,
            }),
            Ok(TapeLine::Bad(bad)) => out.push(TapedFrame {
                from: bad.from,
                bytes: bad.raw.into_owned(),
                seq: None,
                latency_ms: None,
                ours: false,
                batch: None,
                reason: Some(bad.reason.into_owned()),
                bytes_total: bad.bytes_total,
            }),
            Ok(_) | Err(LineProblem::Torn { .. }) => {}
            Err(problem) => panic!("{}: {problem}", path.display()),
        }
    }
    out
}

/// Runs `tapegate check` and returns its output.
#[track_caller]
pub(crate) fn check(tape: &Path, code: i32) -> String {
    let done = tapegate().arg("check").arg(tape).output().unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(code), "{text}{errors}");
    text
}
