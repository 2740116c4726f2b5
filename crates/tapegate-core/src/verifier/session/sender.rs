//! Sending: whether a recorded message may be sent, when, and with which ids.

use std::io;

use crate::frame::{Envelope, Frame, MessageKind};
use crate::json::JsonEdits;
use crate::pending::IdKey;
use crate::tape::index::{IndexEntry, NONE};

use super::super::ambiguity::is_ambiguous;
use super::super::call_selection::{CallSelection, MessageEffect};
use super::super::finding::{ListKind, MessageRef, SkipReason, VerifyNoteKind};
use super::super::masked_parts::MaskedPart;
use super::super::minted_values::{MintedKind, MintedLookup};
use super::super::tape;
use super::super::tool_hints::ToolHint;
use super::own_requests::own_meta;
use super::{RequestPurpose, SentRequest, SkippedRequest, VerifyContext, VerifySession};

/// What to do with a message from the client.
enum SendDecision {
    Send,
    /// Ignore it: it refers to a request that was not sent or is already answered.
    Drop,
    Skip(SkipReason),
    Wait,
}

impl VerifySession {
    /// Sends or skips a recorded message of the client; returns false if it must wait.
    pub(super) fn send_recorded(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        entry: &IndexEntry,
    ) -> io::Result<bool> {
        let text = context.tape.text(entry_number)?;
        let frame = Frame::read(&text);
        let Some(envelope) = frame.envelope() else { return Ok(true) };
        // A gate kept it from the server when it was recorded, so it must not reach a server now.
        let kept = was_withheld(context, entry).then_some(SkipReason::Refused);
        // Decided first, because a message that is never sent need not wait.
        let decision = match kept.or_else(|| refusal(context.calls, &text, envelope)) {
            Some(reason) => SendDecision::Skip(reason),
            None if self.is_held(context, envelope, entry) => SendDecision::Wait,
            None => self.decide(context, envelope)?,
        };
        let sent = match decision {
            SendDecision::Wait => return Ok(false),
            SendDecision::Drop => Ok(()),
            SendDecision::Skip(reason) => Err(reason),
            SendDecision::Send if envelope.kind() == MessageKind::Request => self
                .send_request(context, entry_number, entry, &text, envelope)
                .map_err(SkipReason::NotMinted),
            SendDecision::Send => {
                self.send_notification(context, &text, envelope).map_err(SkipReason::NotMinted)
            }
        };
        if let Err(reason) = sent {
            self.skip(context, entry_number, envelope, reason)?;
        }
        // Also after a skip: later waits count from this point of the tape.
        self.base_us = entry.at_us;
        Ok(true)
    }

    /// Why the message at `entry_number` is never sent, if the message alone shows it.
    pub(super) fn refusal(
        &self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
    ) -> io::Result<Option<SkipReason>> {
        if was_withheld(context, &context.tape.entry(entry_number)) {
            return Ok(Some(SkipReason::Refused));
        }
        let text = context.tape.text(entry_number)?;
        Ok(Frame::read(&text)
            .envelope()
            .and_then(|envelope| refusal(context.calls, &text, envelope)))
    }

    /// Whether something that precedes it on the tape has yet to arrive.
    fn is_held(
        &mut self,
        context: &VerifyContext<'_, '_>,
        envelope: &Envelope<'_>,
        entry: &IndexEntry,
    ) -> bool {
        // Answers and our own requests come first: they may change what is sent and how.
        if self.owed > 0 || self.own > 0 {
            return true;
        }
        let now_ns = context.now_ns;
        let notices = self.notices.wait_deadline(now_ns, self.base_ns, false);
        let questions = self.questions.wait_deadline(now_ns, self.base_ns);
        // Poll at the pace of the tape; faster polling would only show how fast we are.
        let pace_us = entry.at_us.saturating_sub(self.passed_us);
        let pace_ns = self.base_ns + pace_us.saturating_mul(1000).min(context.timeout_ns);
        let pace = (envelope.is_method("tasks/get") && pace_ns > now_ns).then_some(pace_ns);
        self.held_until = [notices, questions, pace].into_iter().flatten().min();
        // Nothing is left to wait for, so whatever is missing is overdue.
        if self.held_until.is_none() {
            self.notices.stop_waiting(now_ns, self.base_ns);
        }
        self.held_until.is_some()
    }

    /// Decides about a message that may be sent as far as the message alone shows.
    fn decide(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        envelope: &Envelope<'_>,
    ) -> io::Result<SendDecision> {
        let all = context.calls == CallSelection::All;
        Ok(match effect(envelope) {
            MessageEffect::CallsTool if !all => return self.decide_tool(context, envelope),
            // A task of a call that was not sent is not ours to touch.
            MessageEffect::FollowsTask if !all => match self.minted_values.task_state(envelope) {
                MintedLookup::Live(_) => SendDecision::Send,
                _ => SendDecision::Skip(SkipReason::NotAskedFor),
            },
            // A cancellation of a request that the server has answered or never saw means nothing.
            MessageEffect::TakesBack => match self.cancelled_request(envelope) {
                Some(_) => SendDecision::Send,
                None => SendDecision::Drop,
            },
            _ => SendDecision::Send,
        })
    }

    /// Decides about a tool call: it is sent if both the tape and the live server declare the tool
    /// read-only.
    fn decide_tool(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        envelope: &Envelope<'_>,
    ) -> io::Result<SendDecision> {
        let Some(name) = envelope.name else {
            return Ok(SendDecision::Skip(SkipReason::NotAskedFor));
        };
        let name = name.decode();
        let recorded = context.tape.tools()?;
        // Both must agree: a server that now calls a tool read-only may have changed it.
        if recorded.is_some_and(|tools| tools.hint(&name) != Some(ToolHint::ReadOnly)) {
            return Ok(SendDecision::Skip(SkipReason::NotReadOnlyOnTape));
        }
        // The live list may not have been requested on the tape before this call.
        let Some(live) = &self.tools else {
            let meta = envelope.params.and_then(own_meta);
            self.request_tools(context, meta);
            return Ok(SendDecision::Wait);
        };
        Ok(match live.hint(&name) {
            Some(ToolHint::ReadOnly) => SendDecision::Send,
            _ => SendDecision::Skip(SkipReason::NotReadOnlyLive),
        })
    }

    fn skip(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        envelope: &Envelope<'_>,
        skip_reason: SkipReason,
    ) -> io::Result<()> {
        context.report.skip(context.tape.message_ref(entry_number)?, skip_reason);
        // A list that is skipped changes nothing for later messages.
        self.left_out |= effect(envelope) != MessageEffect::Discovers;
        if envelope.kind() == MessageKind::Request {
            self.owners.note(envelope, entry_number);
            self.open_skipped.insert(entry_number, SkippedRequest::of(envelope));
        }
        Ok(())
    }

    /// Notes that the live server does not give the answer at entry `answer`.
    pub(super) fn note_unanswered(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        skipped_request: &SkippedRequest,
        answer: u32,
    ) -> io::Result<()> {
        let method = skipped_request.method.as_str();
        let list = ListKind::of_method(method);
        // If only lists are sent, only cursors are returned to the server.
        if context.calls == CallSelection::List && list.is_none() {
            return Ok(());
        }
        let text = context.tape.text(answer)?;
        let result = Frame::read(&text).envelope().and_then(|envelope| envelope.result);
        // Marks the recorded values as lost, so that requests which return them are skipped.
        self.minted_values.learn(method, result.unwrap_or_default(), None);
        let list = list.zip(skipped_request.cursor.as_deref());
        if let Some(first) =
            list.and_then(|(list, cursor)| self.listings.list_continued_by(list, cursor))
        {
            // The live list may have ended earlier; the items of this page still count.
            let gone = matches!(list, Some((_, cursor)) if self.minted_values.token_state(MintedKind::Cursor, method, cursor) == MintedLookup::Lost);
            self.listings.add_recorded_page(first, &text);
            // The live server was not asked, so a missing item proves nothing.
            if !gone {
                self.listings.mark_failed(first);
            }
            self.request_next_page(context, first)?;
        }
        Ok(())
    }

    /// Sends a request; fails if it contains a value that the live server has not issued.
    fn send_request(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        entry_number: u32,
        entry: &IndexEntry,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> Result<(), MintedKind> {
        let method = envelope.method.map(|method| method.decode()).unwrap_or_default();
        let mut edits = JsonEdits::new(text);
        self.minted_values.replace_tokens(&method, envelope, &mut edits)?;
        let recorded_id = envelope.id.unwrap_or(b"null");
        let id = self.unused_id(recorded_id);
        if id != recorded_id {
            edits.replace(recorded_id, &id);
        }
        // Progress of an earlier request with this token may still arrive.
        let token = envelope.progress_token.map(|token| {
            let live = if self.is_token_used(token) { self.new_id() } else { token.to_vec() };
            edits.replace(token, &live);
            live
        });
        // Under the recorded names, for notifications on the tape; below, under the live ones.
        self.owners.note(envelope, entry_number);
        self.owners.note_live(envelope, entry_number, &id, token.as_deref());
        let answer =
            // A cancelled request needs no answer, and the tape has none to compare.
            (entry.pair != NONE && !entry.cancelled).then(|| context.tape.entry(entry.pair));
        // An answer of ours was not the server's, so it is neither awaited nor compared.
        let deadline_ns = answer.filter(|answer| !answer.ours).map(|answer| {
            let took_ns = answer.latency_us.unwrap_or(0).saturating_mul(2000);
            context.now_ns.saturating_add(context.timeout_ns.max(took_ns))
        });
        // A request that was cancelled or that stays open needs no answer, so none is missing.
        if deadline_ns.is_none() && !entry.cancelled && !envelope.is_method("subscriptions/listen")
        {
            let about = tape::message_ref_of(text);
            let (session, number) = (self.number, Some(entry.number));
            context.report.not_compared(MessageRef { session, number, ..about });
        }
        if entry.pair != NONE {
            self.open_sent.insert(entry_number);
        }
        let key = self.wait(context, &id, RequestPurpose::Recorded(entry_number), deadline_ns);
        let after_skipped = self.left_out;
        self.sent_requests
            .insert(entry_number, SentRequest { key, id, owed: false, after_skipped });
        if MaskedPart::of(envelope) != MaskedPart::Nothing {
            let about = tape::message_ref_of(text);
            context.report.note(
                MessageRef { session: self.number, ..about },
                VerifyNoteKind::PlaceholderSent,
            );
        }
        context.report.requests += 1;
        context.send_line(&edits.finish());
        Ok(())
    }

    fn send_notification(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> Result<(), MintedKind> {
        let mut edits = JsonEdits::new(text);
        self.minted_values.replace_tokens("", envelope, &mut edits)?;
        if let (Some(entry_number), Some(id)) =
            (self.cancelled_request(envelope), envelope.request_id)
            && let Some(sent_request) = self.sent_requests.remove(&entry_number)
        {
            edits.replace(id, &sent_request.id);
            // The answer may still come, and is then ignored.
            self.forget_request(&sent_request.key);
            self.notices.close(entry_number);
        }
        self.base_ns = context.now_ns;
        context.send_line(&edits.finish());
        Ok(())
    }

    /// The request that a cancellation refers to, if it was sent and is not answered.
    fn cancelled_request(&self, envelope: &Envelope<'_>) -> Option<u32> {
        let id = envelope.request_id.filter(|_| envelope.is_method("notifications/cancelled"))?;
        let entry_number = self.owners.by_id.get(&IdKey::new(id))?;
        self.sent_requests.contains_key(entry_number).then_some(*entry_number)
    }
}

/// Why a message is never sent, if the message alone shows it.
fn refusal(calls: CallSelection, text: &[u8], envelope: &Envelope<'_>) -> Option<SkipReason> {
    let effect = effect(envelope);
    let needed = match effect {
        MessageEffect::Discovers | MessageEffect::TakesBack => CallSelection::List,
        // Without calls there is no task to ask about; that is decided when it is this message's
        // turn.
        MessageEffect::Reads | MessageEffect::CallsTool | MessageEffect::FollowsTask => {
            CallSelection::ReadOnly
        }
        MessageEffect::Unknown => CallSelection::All,
    };
    if calls < needed {
        return Some(match effect {
            MessageEffect::Reads => SkipReason::OnlyListed,
            _ => SkipReason::NotAskedFor,
        });
    }
    // With `all`, the user has accepted every reading of the message.
    if calls < CallSelection::All && is_ambiguous(text, envelope.params) {
        return Some(SkipReason::Doubtful);
    }
    (MaskedPart::of(envelope) == MaskedPart::Asked).then_some(SkipReason::Masked)
}

fn effect(envelope: &Envelope<'_>) -> MessageEffect {
    // If readers may disagree about the method or the name, it may do anything.
    if envelope.repeated {
        return MessageEffect::Unknown;
    }
    let method = envelope.method.map(|method| method.decode()).unwrap_or_default();
    match envelope.kind() {
        MessageKind::Request => MessageEffect::of_request(&method),
        _ => MessageEffect::of_notification(&method),
    }
}

/// Whether a gate withheld a message from the server: it was refused, or held and never sent.
fn was_withheld(context: &VerifyContext<'_, '_>, entry: &IndexEntry) -> bool {
    // A held call that was released has an answer of the server.
    entry.gated && (entry.pair == NONE || context.tape.entry(entry.pair).ours)
}
