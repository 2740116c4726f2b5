//! Messages from the server: filters their lists and masks their secrets.

use std::borrow::Cow;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame;
use tapegate_core::gate::Verdict;
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::Mask;
use tapegate_core::time::At;

use super::{Now, Warden};
use crate::decide::GateName;
use crate::filter::Shown;
use crate::judge::Judgement;
use crate::model::{OnDrift, Policy};
use crate::note::{Note, NoteKind};
use crate::pins::Drifted;

/// How many names of a list are logged, and how much of each: more than is stored, because secrets
/// must be redacted before truncating.
const NAMES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 4096;

impl Warden {
    /// Handles a message from the server that the policy permits.
    pub(super) fn answered(&mut self, now: &Now<'_, '_>, judgement: &Judgement<'_>) -> Verdict {
        if now.case.from != Side::Server {
            return Verdict::Forward;
        }
        if !matches!(now.said.kind(), frame::Kind::Response | frame::Kind::Error) {
            return self.masked(now, now.frame.bytes()).unwrap_or(Verdict::Forward);
        }
        if let Some(policy) = self.regime.policy.clone() {
            let (at, lane) = (now.case.at, now.case.lane);
            self.note_drifted((at, lane, now.said.id), &policy, &judgement.drifted);
        }
        let strict = self.strict();
        self.note_hidden(now, &judgement.lists, strict);
        match judgement.filtered.as_ref().filter(|_| strict) {
            None => self.masked(now, now.frame.bytes()).unwrap_or(Verdict::Forward),
            Some(text) => self.masked(now, text).unwrap_or_else(|| Verdict::Rewrite(text.clone())),
        }
    }

    /// Logs definitions that differ from the accepted ones.
    pub(super) fn note_drifted(
        &mut self,
        (at, lane, id): (At, Lane, Option<&[u8]>),
        policy: &Policy,
        news: &[Drifted],
    ) {
        let denied = policy.pins.on_drift == OnDrift::Deny;
        // A server may define any number of names, and denials do not depend on the notes.
        for drifted in news.iter().take(NAMES_MAX) {
            let decision = match (policy.pins.on_drift, self.strict()) {
                (OnDrift::Deny, true) => LoggedDecision::Deny,
                (OnDrift::Deny, false) => LoggedDecision::WouldBlock,
                (OnDrift::Approve, true) => LoggedDecision::PendingApproval,
                (OnDrift::Approve, false) => LoggedDecision::WouldRequireApproval,
                _ => LoggedDecision::Warn,
            };
            let mut note = Note {
                kind: NoteKind::Drift { offer: drifted.offer },
                decision,
                name: Note::text(&drifted.name),
                id: Note::raw(id),
                gate: Some(GateName::Governance).filter(|_| denied),
                reason: Some(Cow::Borrowed(&drifted.words)),
                ..Note::new(at, lane, Side::Server)
            };
            self.hands.note(&self.regime, &mut note);
        }
    }

    fn note_hidden(&mut self, now: &Now<'_, '_>, lists: &[Shown], strict: bool) {
        let latency_ns = self.latency(now.begun_ns);
        for list in lists.iter().filter(|list| !list.hidden.is_empty()) {
            let mut note = Note {
                kind: NoteKind::Filter {
                    offer: list.offer,
                    kept: list.kept,
                    hidden: list.hidden.iter().take(NAMES_MAX).map(|name| short(name)).collect(),
                    hidden_total: list.hidden.len(),
                },
                decision: if strict { LoggedDecision::Filter } else { LoggedDecision::WouldFilter },
                id: Note::raw(now.said.id),
                gate: Some(GateName::Visibility),
                forwarded: Some(true),
                latency_ns,
                ..now.note()
            };
            self.hands.note(&self.regime, &mut note);
        }
    }

    /// Masks the secrets in a message of the server. `None` if there are none, or if they are only
    /// logged.
    fn masked(&mut self, now: &Now<'_, '_>, message: &[u8]) -> Option<Verdict> {
        let redactor = self.regime.redactor.clone()?;
        let masked = redactor.message(message);
        if matches!(masked.text, Cow::Borrowed(_)) {
            return None;
        }
        let (strict, latency_ns) = (self.strict(), self.latency(now.begun_ns));
        let mut note = Note {
            kind: NoteKind::Redaction { count: masked.paths.len() },
            decision: if strict { LoggedDecision::Redact } else { LoggedDecision::WouldRedact },
            id: Note::raw(now.said.id),
            forwarded: Some(true),
            latency_ns,
            ..now.note()
        };
        self.hands.note(&self.regime, &mut note);
        strict.then(|| Verdict::Rewrite(masked.text.into_owned()))
    }

    /// Masks the secrets in text of the server that is not a message. `None` if there are none, or
    /// if they are only logged.
    pub(super) fn masked_text(
        &mut self,
        (at, lane): (At, Lane),
        what: &str,
        text: &[u8],
    ) -> Option<Vec<u8>> {
        let redactor = self.regime.redactor.clone()?;
        let begun_ns = (self.hands.clock)();
        let masked = redactor.not_a_message(text)?;
        let (strict, latency_ns) = (self.strict(), self.latency(Some(begun_ns)));
        let mut note = Note {
            kind: NoteKind::Redaction { count: masked.count },
            decision: if strict { LoggedDecision::Redact } else { LoggedDecision::WouldRedact },
            reason: Note::text(what),
            forwarded: Some(true),
            latency_ns,
            ..Note::new(at, lane, Side::Server)
        };
        self.hands.note(&self.regime, &mut note);
        strict.then_some(masked.text)
    }
}

fn short(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}
