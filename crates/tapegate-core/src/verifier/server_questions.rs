//! Requests of a server to its client, and the recorded answers.
//!
//! A live request gets the answer of a recorded one with the same method: of one that asks the
//! same, or else of the next in order. An answer may contain something that was meant for one call
//! only, so it is not given before that call was made.

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::frame::MessageKind;
use crate::side::Side;

use super::answer_comparer::AnswerComparer;
use super::finding::RecordedChanges;
use super::tape::VerifierTape;

/// How many recorded requests are compared to find one that asks the same.
const LOOK_MAX: usize = 64;
/// Made at any time, and answered whatever was called.
const ANY_TIME: [&str; 2] = ["ping", "roots/list"];
/// Made any number of times, so that their count means nothing.
const REPEATED: [&str; 2] = ["ping", "tasks/get"];

/// The server's requests in a session.
#[derive(Debug, Default)]
pub(super) struct ServerQuestions {
    by_method: HashMap<String, MethodQuestions>,
    /// Slots of requests that are still expected, and how long to wait for each.
    wanted: BTreeMap<u32, u64>,
}

/// The recorded requests with one method, in tape order.
#[derive(Debug, Default)]
struct MethodQuestions {
    entry_numbers: Vec<u32>,
    /// Which of them the live server has made.
    taken: Vec<bool>,
    /// Which of them may be answered.
    offered: Vec<bool>,
    /// All before this index have been made.
    open_from: usize,
}

/// What a live request corresponds to.
#[derive(Debug)]
pub(super) enum QuestionMatch {
    /// A recorded one.
    Recorded {
        entry_number: u32,
        /// How they differ.
        changes: RecordedChanges,
    },
    /// One that was recorded in a call that was not sent.
    Withheld,
    /// One that was not recorded.
    Unknown,
}

impl ServerQuestions {
    /// The requests among the entries of a session; if `all` calls may be sent, all of them may be
    /// answered.
    pub(super) fn read(
        tape: &mut VerifierTape<'_>,
        entry_numbers: &[u32],
        all: bool,
    ) -> io::Result<Self> {
        let mut by_method: HashMap<String, MethodQuestions> = HashMap::new();
        for &slot in entry_numbers {
            let entry = tape.entry(slot);
            if entry.from == Side::Server && entry.kind == MessageKind::Request {
                let method = tape.message_ref(slot)?.method;
                let offered = all || ANY_TIME.contains(&method.as_str());
                let questions = by_method.entry(method).or_default();
                questions.entry_numbers.push(slot);
                questions.taken.push(false);
                questions.offered.push(offered);
            }
        }
        Ok(Self { by_method, wanted: BTreeMap::new() })
    }

    pub(super) fn has_method(&self, method: &str) -> bool {
        self.by_method.contains_key(method)
    }

    /// Notes that the request at `entry_number` is expected, and how long to wait for it.
    pub(super) fn expect(&mut self, entry_number: u32, method: &str, patience_ns: u64) {
        let Some(questions) = self.by_method.get_mut(method) else { return };
        let Ok(at) = questions.entry_numbers.binary_search(&entry_number) else { return };
        questions.offered[at] = true;
        // A request that polls may come more or less often, so none of them is missed.
        if !questions.taken[at] && !REPEATED.contains(&method) {
            self.wanted.insert(entry_number, patience_ns);
        }
    }

    /// Finds the recorded request that a live one corresponds to, and marks it as made.
    pub(super) fn take_match(
        &mut self,
        tape: &mut VerifierTape<'_>,
        judge: &AnswerComparer,
        method: &str,
        live: &[u8],
    ) -> io::Result<QuestionMatch> {
        let Some(questions) = self.by_method.get_mut(method) else {
            return Ok(QuestionMatch::Unknown);
        };
        // Prefer one that asks the same and may be answered; then one that asks the same; then the
        // first that may be answered.
        let mut found: Option<(usize, RecordedChanges)> = None;
        let open =
            (questions.open_from..questions.entry_numbers.len()).filter(|at| !questions.taken[*at]);
        for at in open.take(LOOK_MAX) {
            let changes =
                judge.compare_unsolicited(method, &tape.text(questions.entry_numbers[at])?, live);
            let (same, offered) = (changes.is_empty(), questions.offered[at]);
            let better = match &found {
                Some((_, before)) => same && (offered || !before.is_empty()),
                None => same || offered,
            };
            if better {
                found = Some((at, changes));
            }
            // Nothing better can follow, and each comparison reads the tape.
            if same && offered {
                break;
            }
        }
        let Some((at, changes)) = found else {
            // A polling server gets the last answer again.
            let last = questions.taken.iter().rposition(|taken| *taken);
            let mut withheld = questions.taken.iter().zip(&questions.offered);
            return Ok(match last.filter(|_| REPEATED.contains(&method)) {
                Some(at) => QuestionMatch::Recorded {
                    entry_number: questions.entry_numbers[at],
                    changes: RecordedChanges::default(),
                },
                None if withheld.any(|(taken, offered)| !taken && !offered) => {
                    QuestionMatch::Withheld
                }
                None => QuestionMatch::Unknown,
            });
        };
        if !questions.offered[at] {
            return Ok(QuestionMatch::Withheld);
        }
        questions.taken[at] = true;
        while questions.taken.get(questions.open_from) == Some(&true) {
            questions.open_from += 1;
        }
        let entry_number = questions.entry_numbers[at];
        self.wanted.remove(&entry_number);
        Ok(QuestionMatch::Recorded { entry_number, changes })
    }

    /// The earliest time until which to wait for an expected request, counted from `base_ns`, if
    /// any.
    pub(super) fn wait_deadline(&self, now_ns: u64, base_ns: u64) -> Option<u64> {
        let until = self.wanted.values().map(|patience_ns| base_ns + patience_ns);
        until.filter(|until_ns| *until_ns > now_ns).min()
    }

    /// The entries of expected requests that the server did not make.
    pub(super) fn missing_entries(&self) -> Vec<u32> {
        self.wanted.keys().copied().collect()
    }
}
