//! Answers to methods other than tool calls, resource reads and prompt requests.

use std::io;

use tapegate_core::frame::{Frame, Kind};
use tapegate_core::side::Side;
use tapegate_core::tape::index::NONE;

use super::gather::{Gathered, Of, Use};
use super::{Work, tree};
use crate::emit::Entry;

/// Methods that the engine answers itself, unless the recorded server refused them.
const ANSWERED_ANYWAY: [&str; 7] = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
];

/// Those of them that a scripted answer can replace, to replay the notifications sent with it.
const TELLING: [&str; 2] = ["resources/subscribe", "resources/unsubscribe"];

impl Work<'_, '_> {
    /// The `methods` block.
    pub(super) fn methods(&mut self, gathered: &Gathered) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if let Some(error) = &gathered.hello.refused {
            let error = vec![Entry::new("error", tree::read(error))];
            let words = "The server's recorded refusal of `server/discover`.";
            entries.push(Entry::new("server/discover", error).about(words));
        }
        for key in gathered.keys(Of::Method) {
            let uses = gathered.uses_of(Of::Method, &key);
            let is_ordinary = ANSWERED_ANYWAY.contains(&&*key);
            let tells = TELLING.contains(&&*key) && uses.iter().any(|used| self.acted(used));
            if is_ordinary && !tells && (gathered.listings.has(&key) || !self.all_refused(&uses)?) {
                uses.iter().for_each(|used| self.passed_over(used.asks[0]));
                continue;
            }
            let response = self.response(&uses)?;
            entries.push(Entry::new(&*key, response));
        }
        Ok(entries)
    }

    /// Whether the server sent notifications besides its answer.
    fn acted(&self, used: &Use) -> bool {
        let mut next = self.tape.index.slot(used.asks[0]).next;
        while next != NONE {
            let slot = self.tape.index.slot(next);
            if slot.from == Side::Server && slot.kind == Kind::Notification {
                return true;
            }
            next = slot.next;
        }
        false
    }

    /// Whether every answer was an error.
    fn all_refused(&mut self, uses: &[&Use]) -> io::Result<bool> {
        for used in uses {
            let pair = self.tape.index.slot(used.asks[0]).pair;
            if pair == NONE {
                return Ok(false);
            }
            let slot = self.tape.index.slot(pair);
            let frame = Frame::read(self.tape.text(&slot)?);
            if frame.envelope().is_none_or(|said| said.kind() != Kind::Error) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
