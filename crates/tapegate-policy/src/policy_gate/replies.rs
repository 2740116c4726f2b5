//! Messages from the server: filters their lists and masks their secrets.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame;
use tapegate_core::gate::Verdict;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::Mask;
use tapegate_core::time::Timestamp;

use super::{GateContext, PolicyGate};
use crate::decide::GateName;
use crate::filter::FilteredList;
use crate::judge::Judgement;
use crate::model::{OnDrift, Policy};
use crate::note::{Note, NoteKind};
use crate::pins::DriftedItem;

/// How many names of a list are logged, and how much of each: more than is stored, because secrets
/// must be redacted before truncating.
const NAMES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 4096;

impl PolicyGate {
    /// Handles a message from the server that the policy permits.
    pub(super) fn apply_server_message(
        &mut self,
        now: &GateContext<'_, '_>,
        judgement: &Judgement<'_>,
    ) -> Verdict {
        if now.case.from != Side::Server {
            return Verdict::Forward;
        }
        // Requests and notifications of the server have no lists, but may contain secrets.
        if !matches!(now.envelope.kind(), frame::MessageKind::Response | frame::MessageKind::Error)
        {
            return self.masked(now, now.frame.bytes()).unwrap_or(Verdict::Forward);
        }
        if let Some(policy) = self.active_policy.policy.clone() {
            let (at, lane) = (now.case.at, now.case.lane);
            self.note_drifted((at, lane, now.envelope.id), &policy, &judgement.drifted);
        }
        let strict = self.is_strict();
        self.note_hidden(now, &judgement.lists, strict);
        match judgement.filtered.as_ref().filter(|_| strict) {
            None => self.masked(now, now.frame.bytes()).unwrap_or(Verdict::Forward),
            // The filtered text is masked, not the original: hidden items must not come back.
            Some(text) => self.masked(now, text).unwrap_or_else(|| Verdict::Rewrite(text.clone())),
        }
    }

    /// Logs definitions that differ from the accepted ones.
    pub(super) fn note_drifted(
        &mut self,
        (at, lane, id): (Timestamp, Lane, Option<&[u8]>),
        policy: &Policy,
        new_drifts: &[DriftedItem],
    ) {
        let denied = policy.pins.on_drift == OnDrift::Deny;
        // A server may define any number of names, and denials do not depend on the notes.
        for drifted in new_drifts.iter().take(NAMES_MAX) {
            let decision = match (policy.pins.on_drift, self.is_strict()) {
                (OnDrift::Deny, true) => LoggedDecision::Deny,
                (OnDrift::Deny, false) => LoggedDecision::WouldBlock,
                (OnDrift::Approve, true) => LoggedDecision::PendingApproval,
                (OnDrift::Approve, false) => LoggedDecision::WouldRequireApproval,
                _ => LoggedDecision::Warn,
            };
            let mut note = Note::new(at, lane, Side::Server);
            note.kind = NoteKind::Drift { offer: drifted.offer };
            note.event.governance_decision = Some(decision);
            note.event.tool = Note::text(&drifted.name);
            note.event.message_id = Note::truncated_id(id);
            note.event.gate = Some(GateName::Governance).filter(|_| denied);
            note.event.policy_reason = Some(Cow::Borrowed(&drifted.message));
            self.effects.note(&self.active_policy, &mut note);
        }
    }

    fn note_hidden(&mut self, now: &GateContext<'_, '_>, lists: &[FilteredList], strict: bool) {
        let latency_us = self.latency_us(now.begun_ns);
        let decision = if strict { LoggedDecision::Filter } else { LoggedDecision::WouldFilter };
        for list in lists.iter().filter(|list| !list.hidden.is_empty()) {
            let hidden = list.hidden.iter().take(NAMES_MAX).map(|name| shortened_name(name));
            let mut note = now.note();
            note.kind = NoteKind::Filter {
                offer: list.offer,
                kept: list.kept,
                hidden: hidden.collect(),
                hidden_total: list.hidden.len(),
            };
            note.event.governance_decision = Some(decision);
            note.event.message_id = Note::truncated_id(now.envelope.id);
            note.event.gate = Some(GateName::Visibility);
            note.event.forwarded = Some(true);
            note.event.latency_us = latency_us;
            self.effects.note(&self.active_policy, &mut note);
        }
    }

    /// Masks the secrets in a message of the server. `None` if there are none, or if they are only
    /// logged.
    fn masked(&mut self, now: &GateContext<'_, '_>, message: &[u8]) -> Option<Verdict> {
        let redactor = self.active_policy.redactor.clone()?;
        let masked = redactor.message(message);
        if matches!(masked.text, Cow::Borrowed(_)) {
            return None;
        }
        let (strict, latency_us) = (self.is_strict(), self.latency_us(now.begun_ns));
        let mut note = now.note();
        note.event.message_id = Note::truncated_id(now.envelope.id);
        self.note_redaction(note, masked.paths.len(), latency_us);
        strict.then(|| Verdict::Rewrite(masked.text.into_owned()))
    }

    /// Masks the secrets in text of the server that is not a message. `None` if there are none, or
    /// if they are only logged.
    pub(super) fn masked_text(
        &mut self,
        (at, lane): (Timestamp, Lane),
        what: &str,
        text: &[u8],
    ) -> Option<Vec<u8>> {
        let redactor = self.active_policy.redactor.clone()?;
        let begun_ns = (self.effects.clock)();
        let masked = redactor.mask_non_message(text)?;
        let (strict, latency_us) = (self.is_strict(), self.latency_us(Some(begun_ns)));
        let mut note = Note::new(at, lane, Side::Server);
        note.event.policy_reason = Note::text(what);
        self.note_redaction(note, masked.count, latency_us);
        strict.then_some(masked.text)
    }

    /// Logs that secrets were masked, or would be in production.
    fn note_redaction<'n>(&'n mut self, mut note: Note<'n>, count: usize, latency_us: Option<u64>) {
        note.kind = NoteKind::Redaction { count };
        note.event.governance_decision = Some(match self.is_strict() {
            true => LoggedDecision::Redact,
            false => LoggedDecision::WouldRedact,
        });
        note.event.forwarded = Some(true);
        note.event.latency_us = latency_us;
        self.effects.note(&self.active_policy, &mut note);
    }
}

fn shortened_name(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}
