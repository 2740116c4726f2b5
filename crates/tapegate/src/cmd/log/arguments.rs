//! Looks up the arguments of calls on the tapes beside an activity log.
//!
//! The log does not contain arguments, which may hold secrets; it refers to the tape of a call and
//! its number there. The tape has them as redacted by the policy.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use tapegate_core::side::Side;
use tapegate_core::tape::{TapeLine, timeline};
use tapegate_store::activity::LoggedEvent;
use tapegate_store::followed_tape::{FollowedLine, FollowedTape};

/// How many tapes are kept open.
const TAPES_MAX: usize = 8;
/// How many calls of a tape are remembered.
const CALLS_MAX: usize = 10_000;
/// Longer arguments are truncated.
const CHARS_MAX: usize = 200;

/// Finds the arguments of calls.
#[derive(Debug, Default)]
pub(super) struct ArgumentFinder {
    /// Folders with one subfolder of tapes per server.
    folders: Vec<PathBuf>,
    /// Open tapes, the most recently used one last.
    tapes: VecDeque<TapeCalls>,
}

/// The calls of a tape, as far as it has been read.
#[derive(Debug)]
struct TapeCalls {
    session: String,
    /// `None` if the tape was removed or nothing was recorded.
    tape: Option<FollowedTape>,
    seq: u64,
    by_seq: BTreeMap<u64, String>,
}

impl ArgumentFinder {
    /// Looks for tapes in this state folder.
    pub(super) fn in_state_folder(state: &Path) -> Self {
        Self { folders: vec![state.join("tapes")], tapes: VecDeque::new() }
    }

    /// Also looks for tapes in the folder of this log.
    pub(super) fn add_log_folder(&mut self, log: &Path) {
        let folder = log.parent().unwrap_or(Path::new("")).join("tapes");
        if !self.folders.contains(&folder) {
            self.folders.push(folder);
        }
    }

    /// The arguments of the call that an event is about; empty if they are not known.
    pub(super) fn arguments_of(&mut self, logged: &LoggedEvent) -> String {
        let session = logged.str("tape_session_id").filter(|session| is_file_name(session));
        let (Some(session), Some(seq)) = (session, logged.number("tape_seq")) else {
            return String::new();
        };
        let tape = self.tape(&session);
        tape.read_to(seq);
        tape.by_seq.get(&seq).cloned().unwrap_or_default()
    }

    fn tape(&mut self, session: &str) -> &mut TapeCalls {
        let known = self.tapes.iter().position(|tape| tape.session == session);
        let tape = match known.and_then(|at| self.tapes.remove(at)) {
            Some(tape) => tape,
            None => self.open(session),
        };
        // Each open tape holds a descriptor and an inotify watch.
        if self.tapes.len() >= TAPES_MAX {
            self.tapes.pop_front();
        }
        self.tapes.push_back(tape);
        let last = self.tapes.len() - 1;
        &mut self.tapes[last]
    }

    fn open(&self, session: &str) -> TapeCalls {
        let name = format!("{session}.jsonl");
        let servers = self.folders.iter().flat_map(|folder| fs::read_dir(folder).into_iter());
        let mut tapes = servers.flatten().flatten().map(|server| server.path().join(&name));
        let tape = tapes.find(|tape| tape.is_file()).map(|tape| FollowedTape::new(&tape));
        TapeCalls { session: session.to_owned(), tape, seq: 0, by_seq: BTreeMap::new() }
    }
}

impl TapeCalls {
    /// Reads up to the message with this number, or to the current end.
    fn read_to(&mut self, seq: u64) {
        while self.seq < seq
            && let Some(tape) = &mut self.tape
        {
            // Faults of a tape are reported by the commands that read tapes.
            let Ok(Some((_, line))) = tape.next_line() else { return };
            let FollowedLine::Whole(text) = line else { continue };
            let Ok(TapeLine::Message(message)) = TapeLine::read(&text) else { continue };
            self.seq = message.seq.unwrap_or(self.seq);
            if message.from == Side::Client {
                let arguments = timeline::arguments(&message.msg, CHARS_MAX);
                self.by_seq.insert(self.seq, arguments);
            }
            if self.by_seq.len() > CALLS_MAX {
                // Events come roughly in the order of the tape, so old calls are not asked for
                // again.
                self.by_seq.pop_first();
            }
        }
    }
}

/// Whether a name stays inside its folder, whatever the log contains.
fn is_file_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}
