//! The decisions about the calls of a tape, from the activity log of its project.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use tapegate_core::tape::timeline::TimelineRow;
use tapegate_store::activity::{LogFollower, parts};

use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::views::timeline::CallDecision;

/// How many decisions are remembered; those of later calls are not shown.
const DECISIONS_MAX: usize = 4_000_000;

/// The decisions about one tape.
#[derive(Debug, Default)]
pub(super) struct TapeDecisions {
    follower: Option<LogFollower>,
    /// The name by which events refer to the tape.
    session: String,
    /// The index into `all` for each message; most messages share a few decisions.
    by_seq: HashMap<u64, u32>,
    all: Vec<CallDecision>,
    /// The calls that wait for approval, by `request_id`: a refusal's line does not name its
    /// message.
    waiting: HashMap<String, u64>,
}

impl TapeDecisions {
    /// Finds the log that covers a tape, if there is one.
    pub(super) fn open(tape: &Path, named: Option<&Path>) -> Result<Self, Failure> {
        if let Some(folder) = named.filter(|folder| !has_log(folder)) {
            let message = format!("there is no activity log in `{}`", folder.display());
            return Err(Failure::new(Exit::Io, message));
        }
        let stem = tape.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let session = stem.strip_suffix(".gz").unwrap_or(stem);
        let session = session.strip_suffix(".jsonl").unwrap_or(session).to_owned();
        // Only tapes of shims are logged, and those are named after their start time.
        if !session.starts_with("20") || !session.contains('T') {
            return Ok(Self::default());
        }
        let folder = named
            .map(Path::to_owned)
            .or_else(|| state_folder_of_tape(tape))
            .or_else(state_folder_of_project);
        let follower = folder.map(|folder| LogFollower::new(&folder));
        Ok(Self { follower, session, ..Self::default() })
    }

    /// Reads what was logged since the last call.
    pub(super) fn advance(&mut self) {
        let Some(follower) = &mut self.follower else { return };
        // Unreadable logs are reported by `tapegate log` and `tapegate check`.
        while let Ok(Some(next)) = follower.next_line() {
            let Ok(logged) = next else { continue };
            let text = |key: &str| logged.str(key).map(|text| text.into_owned());
            let is_ours = logged.str("tape_session_id").is_some_and(|id| id == self.session);
            let Some(word) = logged.str("governance_decision").filter(|_| is_ours) else {
                continue;
            };
            let request = text("request_id").unwrap_or_default();
            let seq = match (logged.number("tape_seq"), &*word) {
                (Some(seq), "pending_approval") if self.waiting.len() < DECISIONS_MAX => {
                    self.waiting.insert(request, seq);
                    Some(seq)
                }
                (seq, _) => self.waiting.remove(&request).or(seq),
            };
            let Some(seq) = seq else { continue };
            let decision = CallDecision {
                word: word.into_owned(),
                rule: text("rule"),
                by: text("decided_by"),
                reason: text("policy_reason"),
            };
            // The same few decisions repeat, so looking back a little saves most of the memory.
            let known = self.all.iter().rev().take(64).position(|known| *known == decision);
            let at = match known {
                Some(back) => self.all.len() - 1 - back,
                None => {
                    self.all.push(decision);
                    self.all.len() - 1
                }
            };
            if self.by_seq.len() < DECISIONS_MAX {
                self.by_seq.insert(seq, at as u32);
            }
        }
    }

    /// The decision about a row.
    pub(super) fn decision_of(&self, row: &TimelineRow) -> Option<CallDecision> {
        let at = self.by_seq.get(&row.seq?)?;
        self.all.get(*at as usize).cloned()
    }
}

fn has_log(folder: &Path) -> bool {
    parts(folder).is_ok_and(|parts| !parts.is_empty())
}

/// The state folder that contains a tape, as `tapes/SERVER/TAPE`.
fn state_folder_of_tape(tape: &Path) -> Option<PathBuf> {
    let whole = tape.canonicalize().ok()?;
    whole.ancestors().skip(1).take(4).find(|folder| has_log(folder)).map(Path::to_owned)
}

fn state_folder_of_project() -> Option<PathBuf> {
    let folder = SearchContext::current().ok()?.state_folder(None).ok()?;
    has_log(&folder).then_some(folder)
}
