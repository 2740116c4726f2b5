//! Answers of the live server: those that arrive, those that do not, and those that cannot be read.

use std::io;

use crate::frame::{Envelope, Frame, MessageKind, notification_text};
use crate::json::JsonObject;
use crate::lines::OversizeMessage;
use crate::pending::IdKey;

use super::super::answer_comparer::AnswerDiff;
use super::super::finding::{Discrepancy, MessageRef};
use super::super::tool_hints::ToolHints;
use super::{
    AwaitedAnswer, RequestPurpose, SentRequest, SkippedRequest, VerifyContext, VerifySession,
};

/// After this many unanswered requests in a row, a silent server is given up on.
const SILENCES_MAX: u32 = 3;
/// The notification that completes the client's initialization.
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl VerifySession {
    pub(super) fn handle_answer(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        let waiting = envelope.id.and_then(|id| self.waiting.remove(&IdKey::new(id)));
        let Some(AwaitedAnswer { purpose, deadline, .. }) = waiting else {
            // An unmatched answer is not a change if the tape has one too.
            match self.strays {
                0 => context.report.find(
                    self.session_subject(),
                    Discrepancy::Stray { live: context.judge.masked(text).into_owned() },
                ),
                _ => self.strays -= 1,
            }
            return Ok(());
        };
        if let Some(deadline) = deadline {
            self.deadlines.remove(&deadline);
        }
        // Waits for notifications count from the last sign of life.
        self.base_ns = context.now_ns;
        match purpose {
            RequestPurpose::Late => Ok(()),
            RequestPurpose::Recorded(slot) => {
                let after_skipped = self.settle(slot);
                // Without a deadline, the tape has no answer to compare with, or one of ours.
                match deadline {
                    Some(_) => self.compare(context, (slot, after_skipped), text, envelope),
                    None => Ok(()),
                }
            }
            RequestPurpose::Page(first) => {
                self.own -= 1;
                match envelope.kind() {
                    MessageKind::Response => {
                        self.listings.add_live_page(first, text, &context.judge.masked(text))
                    }
                    _ => self.listings.mark_failed(first),
                }
                self.request_next_page(context, first)
            }
            RequestPurpose::Tools(tools, meta) => {
                self.own -= 1;
                self.handle_tools_page(context, tools, meta, envelope.result);
                Ok(())
            }
            RequestPurpose::Introduction => {
                self.own -= 1;
                if envelope.kind() == MessageKind::Response {
                    context.send_line(INITIALIZED);
                }
                Ok(())
            }
        }
    }

    /// Notes that the request at `entry_number` is answered or never will be. Returns whether a message was
    /// skipped before it was sent.
    pub(super) fn settle(&mut self, entry_number: u32) -> bool {
        let sent_request = self.sent_requests.remove(&entry_number);
        // Even if the request is unknown: its progress may still be expected.
        self.notices.close(entry_number);
        let Some(SentRequest { owed, after_skipped, .. }) = sent_request else { return false };
        self.owed -= usize::from(owed);
        after_skipped
    }

    /// Compares the answer to the request at `entry_number`.
    fn compare(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        (slot, after_skipped): (u32, bool),
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        let answer = context.tape.entry(slot).pair;
        let about = context.tape.message_ref(answer)?;
        let recorded = context.tape.text(answer)?;
        let before = Frame::read(&recorded);
        let Some(before) = before.envelope() else { return Ok(()) };
        let live = context.judge.masked(text);
        context.report.answers += 1;
        let result = before.result.filter(|_| before.kind() == MessageKind::Response);
        // Before anything else, because later requests return these values, whatever else has
        // changed.
        self.minted_values.learn(&about.method, result.unwrap_or_default(), envelope.result);
        match (before.kind(), envelope.kind()) {
            (MessageKind::Response, MessageKind::Response) => {
                // A list is compared when it is complete.
                if let Some(first) = self.page(context, slot, &about.method)? {
                    self.listings.add_recorded_page(first, &recorded);
                    self.listings.add_live_page(first, text, &live);
                    return self.request_next_page(context, first);
                }
            }
            (MessageKind::Response, MessageKind::Error) => {
                let live = live.into_owned();
                if let Some(first) = self.page(context, slot, &about.method)? {
                    self.listings.add_recorded_page(first, &recorded);
                    self.listings.mark_failed(first);
                }
                context.report.find_after(
                    after_skipped,
                    about,
                    Discrepancy::Error { recorded, live },
                );
                return Ok(());
            }
            (MessageKind::Error, MessageKind::Response) => {
                let live = live.into_owned();
                context.report.find_after(
                    after_skipped,
                    about,
                    Discrepancy::Result { recorded, live },
                );
                return Ok(());
            }
            _ => {}
        }
        let verdict = context.judge.compare_answer(&about.method, &recorded, &live);
        report_verdict(context, about, verdict, after_skipped);
        Ok(())
    }

    /// Handles a request that was not answered in time.
    pub(super) fn handle_timeout(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        key: &IdKey,
    ) -> io::Result<()> {
        let Some(waiting) = self.forget_request(key) else { return Ok(()) };
        let AwaitedAnswer { purpose, sent_ns, deadline } = waiting;
        self.silences += 1;
        let entry_number = match purpose {
            RequestPurpose::Recorded(slot) => slot,
            RequestPurpose::Late => return Ok(()),
            RequestPurpose::Introduction => {
                self.own -= 1;
                return Ok(());
            }
            RequestPurpose::Tools(..) => {
                self.own -= 1;
                self.handle_tools_page(context, ToolHints::default(), None, None);
                return Ok(());
            }
            RequestPurpose::Page(first) => {
                self.own -= 1;
                self.listings.mark_failed(first);
                return self.request_next_page(context, first);
            }
        };
        let request = context.tape.text(entry_number)?;
        let about = context.tape.message_ref(context.tape.entry(entry_number).pair)?;
        let frame = Frame::read(&request);
        let Some(envelope) = frame.envelope() else { return Ok(()) };
        let until_ns = deadline.map_or(context.now_ns, |(until_ns, _)| until_ns);
        let waited_ms = until_ns.saturating_sub(sent_ns) / 1_000_000;
        // The protocol forbids a client to cancel `initialize`.
        let introduces = about.method == "initialize";
        if let Some(sent_request) = self.sent_requests.get(&entry_number).filter(|_| !introduces) {
            let params = JsonObject::new().raw("requestId", &sent_request.id);
            let params = params.text("reason", "no answer in time").finish();
            context.send_line(&notification_text("notifications/cancelled", Some(&params)));
        }
        self.settle(entry_number);
        // Later requests must not return values that the live server never issued.
        self.note_unanswered(
            context,
            &SkippedRequest::of(envelope),
            context.tape.entry(entry_number).pair,
        )?;
        context.report.find(about, Discrepancy::NoAnswer { waited_ms });
        // Without `initialize` nothing works, and each further request would cost a whole timeout.
        if introduces || self.silences >= SILENCES_MAX {
            self.gone = Some("it no longer answers".to_owned());
        }
        Ok(())
    }

    /// Handles a message that was too large to keep.
    pub(super) fn handle_oversize(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        message: &OversizeMessage,
        bytes_max: usize,
    ) -> io::Result<()> {
        let discrepancy = Discrepancy::TooLarge { bytes_total: message.bytes_total, bytes_max };
        let id = message.envelope.id.as_deref().filter(|_| message.envelope.answer);
        let key = id.map(IdKey::new);
        let before = key.as_ref().and_then(|key| self.forget_request(key));
        let mut about = self.session_subject();
        match before.map(|before| before.purpose) {
            Some(RequestPurpose::Recorded(slot)) => {
                self.settle(slot);
                about = context.tape.message_ref(slot)?;
            }
            Some(RequestPurpose::Page(first)) => {
                self.own -= 1;
                self.listings.mark_failed(first);
                self.request_next_page(context, first)?;
            }
            Some(RequestPurpose::Tools(..)) => {
                self.own -= 1;
                self.handle_tools_page(context, ToolHints::default(), None, None);
            }
            Some(RequestPurpose::Introduction) => self.own -= 1,
            Some(RequestPurpose::Late) | None => {}
        }
        context.report.find(about, discrepancy);
        Ok(())
    }
}

/// Reports the differences of an answer; `after_skipped` is true if an earlier message was skipped.
pub(super) fn report_verdict(
    context: &mut VerifyContext<'_, '_>,
    about: MessageRef,
    verdict: AnswerDiff,
    after_skipped: bool,
) {
    let AnswerDiff { version, changes } = verdict;
    if let Some((recorded, live)) = version {
        context.report.find(about.clone(), Discrepancy::Version { recorded, live });
    }
    if !changes.is_empty() {
        let introduces = matches!(about.method.as_str(), "initialize" | "server/discover");
        let discrepancy =
            if introduces { Discrepancy::Server(changes) } else { Discrepancy::Answer(changes) };
        context.report.find_after(after_skipped, about, discrepancy);
    }
}
