//! Unprompted messages of the live server: notifications, and requests to the client.

use std::io;

use crate::frame::{Envelope, Frame, own_error, result_text};
use crate::json::JsonEdits;
use crate::tape::index::NONE;

use super::super::ambiguity::is_ambiguous;
use super::super::call_selection::CallSelection;
use super::super::finding::{Discrepancy, ItemChange, MessageRef, SkipReason, VerifyNoteKind};
use super::super::masked_parts::MaskedPart;
use super::super::server_questions::QuestionMatch;
use super::super::tape;
use super::token_owners::group;
use super::{VerifyContext, VerifySession};

/// The error code for an unknown method.
const CODE_UNKNOWN_METHOD: i32 = -32601;
/// The error code for an answer that is withheld.
const CODE_REFUSED: i32 = -32000;

impl VerifySession {
    pub(super) fn handle_notification(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        if envelope.is_method("notifications/tools/list_changed") {
            // What was known may be outdated, so the list is fetched again before the next call.
            self.tools = None;
        }
        let (group, _) = group(&self.owners.live, envelope);
        let masked = context.judge.masked(text);
        self.notices.receive(context.tape, context.judge, group, &masked)
    }

    /// Handles a request from the server, and answers it as on the tape.
    pub(super) fn handle_request(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        let id = envelope.id.unwrap_or(b"null");
        let masked = context.judge.masked(text);
        let about = MessageRef { session: self.number, ..tape::message_ref_of(&masked) };
        match self.questions.take_match(context.tape, context.judge, &about.method, &masked)? {
            QuestionMatch::Recorded { entry_number: slot, changes } => {
                if !changes.is_empty() {
                    let about = context.tape.message_ref(slot)?;
                    context.report.find(about, Discrepancy::Question(ItemChange::Changed(changes)));
                }
                return self.reply(context, slot, id, about);
            }
            // Pings test the connection at any time, and say nothing about the server's behaviour.
            QuestionMatch::Unknown if about.method == "ping" => {
                context.send_line(&result_text(id, b"{}"));
                return Ok(());
            }
            QuestionMatch::Unknown => {
                let discrepancy = Discrepancy::Question(ItemChange::Added(masked.into_owned()));
                context.report.find(about.clone(), discrepancy);
            }
            QuestionMatch::Withheld => context.report.note(about.clone(), VerifyNoteKind::Withheld),
        }
        let message = format!("{} has no recorded answer here", about.method);
        context.send_line(&own_error(id, CODE_UNKNOWN_METHOD, &message));
        Ok(())
    }

    /// Sends the recorded answer to the request at `entry_number`.
    fn reply(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        id: &[u8],
        about: MessageRef,
    ) -> io::Result<()> {
        let answer = context.tape.entry(entry_number).pair;
        // The recorded client did not answer either.
        if answer == NONE {
            return Ok(());
        }
        let text = context.tape.text(answer)?;
        let frame = Frame::read(&text);
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        // An answer can be crafted, too: other readers may take it for a request.
        if context.calls < CallSelection::All && is_ambiguous(&text, None) {
            let message = "the recorded answer is ambiguous";
            let reply = own_error(id, CODE_REFUSED, message);
            context.report.skip(about, SkipReason::Doubtful);
            context.send_line(&reply);
            return Ok(());
        }
        let mut edits = JsonEdits::new(&text);
        if let Some(recorded) = envelope.id {
            edits.replace(recorded, id);
        }
        // Answer the request even if it refers to a task that the live server does not have.
        self.minted_values.replace_tokens("", envelope, &mut edits).ok();
        if MaskedPart::of(envelope) != MaskedPart::Nothing {
            context.report.note(about, VerifyNoteKind::PlaceholderSent);
        }
        self.base_ns = context.now_ns;
        context.send_line(&edits.finish());
        Ok(())
    }
}
