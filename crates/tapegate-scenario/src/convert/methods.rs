//! Answers to methods other than tool calls, resource reads and prompt requests.

use std::io;

use tapegate_core::frame::{Frame, MessageKind};
use tapegate_core::side::Side;

use super::tape_contents::{ClientOperation, OperationKind, TapeContents};
use super::{ConversionState, tree};
use crate::emit::MapEntry;
use crate::model::ItemKind;

/// Methods that the engine answers itself, as it does lists, unless the recorded server refused them.
const ANSWERED_ANYWAY: [&str; 3] =
    ["logging/setLevel", "resources/subscribe", "resources/unsubscribe"];

/// Those of them that a scripted answer can replace, to replay the notifications sent with it.
const TELLING: [&str; 2] = ["resources/subscribe", "resources/unsubscribe"];

impl ConversionState<'_, '_> {
    /// The `methods` block.
    pub(super) fn methods(&mut self, gathered: &TapeContents) -> io::Result<Vec<MapEntry>> {
        let mut entries = Vec::new();
        if let Some(error) = &gathered.hello.refused {
            let error = vec![MapEntry::new("error", tree::read(error))];
            let comment = "The server's recorded refusal of `server/discover`.";
            entries.push(MapEntry::new("server/discover", error).with_comment(comment));
        }
        for key in gathered.keys(OperationKind::Method) {
            let uses = gathered.uses_of(OperationKind::Method, &key);
            let is_ordinary =
                ANSWERED_ANYWAY.contains(&&*key) || ItemKind::of_list_method(&key).is_some();
            let tells = TELLING.contains(&&*key) && uses.iter().any(|used| self.has_actions(used));
            if is_ordinary
                && !tells
                && (gathered.listings.has_list(&key) || !self.are_all_errors(&uses)?)
            {
                uses.iter().for_each(|used| self.count_skipped(used.asks[0]));
                continue;
            }
            let response = self.response(&uses)?;
            entries.push(MapEntry::new(&*key, response));
        }
        Ok(entries)
    }

    /// Whether the server sent notifications besides its answer.
    fn has_actions(&self, used: &ClientOperation) -> bool {
        self.tape
            .related(used.asks[0])
            .any(|(_, slot)| slot.from == Side::Server && slot.kind == MessageKind::Notification)
    }

    /// Whether every answer was an error.
    fn are_all_errors(&mut self, uses: &[&ClientOperation]) -> io::Result<bool> {
        for used in uses {
            let answer = self.tape.answer(used.asks[0])?;
            let envelope = answer.as_ref().and_then(Frame::envelope);
            if envelope.is_none_or(|envelope| envelope.kind() != MessageKind::Error) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
