//! A session that has ended, and assertions about what it has left.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use tapegate_core::side::Side;

use super::RunningSession;
use super::session_files::{TapedFrame, beside, check, kept};

/// A session that has ended.
pub(crate) struct EndedSession {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
    pub(crate) run: RunningSession,
}

impl EndedSession {
    /// Asserts that the recorder exited with this code.
    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        let (got, signal) = (self.status.code(), self.status.signal());
        assert_eq!((got, signal), (Some(code), None), "stderr: {}", self.stderr);
        self
    }

    /// Asserts that the client received exactly this.
    #[track_caller]
    pub(crate) fn client_got(self, bytes: &[u8]) -> Self {
        let show = |bytes: &[u8]| bytes[..bytes.len().min(600)].escape_ascii().to_string();
        assert!(self.stdout == bytes, "got {}\nnot {}", show(&self.stdout), show(bytes));
        self
    }

    /// Asserts that the client received this, and then only errors of our own.
    #[track_caller]
    pub(crate) fn client_got_first(mut self, bytes: &[u8]) -> Self {
        let rest = self.stdout.split_off(bytes.len().min(self.stdout.len()));
        for line in String::from_utf8_lossy(&rest).lines() {
            assert!(line.contains(r#""data":{"by":"tapegate""#), "{line}");
        }
        self.client_got(bytes)
    }

    /// Asserts that the client received this, among other things.
    #[track_caller]
    pub(crate) fn client_got_some(self, text: &str) -> Self {
        let got = String::from_utf8_lossy(&self.stdout);
        assert!(got.contains(text), "{text} is not in {}", &got[..got.len().min(600)]);
        self
    }

    /// Asserts that standard error contains this.
    #[track_caller]
    pub(crate) fn complains(self, text: &str) -> Self {
        assert!(self.stderr.contains(text), "{text} is not in {}", self.stderr);
        self
    }

    /// Asserts that no process of the session is left.
    #[track_caller]
    pub(crate) fn leaves_no_process(self) -> Self {
        self.run.until("the end of every process", |run| run.others().is_empty());
        self
    }

    /// Asserts that `tapegate check` finds no error.
    #[track_caller]
    pub(crate) fn checks(self) -> Self {
        check(&self.run.tape, 0);
        self
    }

    /// What is on the tape.
    pub(crate) fn tape(&self) -> Vec<TapedFrame> {
        kept(&self.run.tape)
    }

    /// What is beside the tape.
    pub(crate) fn beside(&self) -> Vec<TapedFrame> {
        kept(&beside(&self.run.tape))
    }

    /// The messages of one side on the tape, one per line.
    pub(crate) fn said(&self, side: Side) -> Vec<u8> {
        let tape = self.tape().into_iter().filter(|kept| kept.from == side);
        tape.flat_map(|kept| [kept.bytes, b"\n".to_vec()].concat()).collect()
    }
}
