//! Answers of the server: what they list, what they ask for first, and what of them is secret.

use std::borrow::Cow;

use tapegate_core::frame::careless;
use tapegate_core::gate::{Topic, Verdict};
use tapegate_core::json::{self, Cursor, Fault, Kind};
use tapegate_core::tape::Mask;

use super::calls::Asked;
use super::{Now, Warden};
use crate::decide::{GateName, shows};
use crate::filter::{Filtered, List, Sight, filter, lists};
use crate::gated::Offer;
use crate::model::{Expose, OnDrift, Policy, Source};
use crate::note::{Note, NoteKind};
use crate::pins::{Lock, Watch};

/// How many names of one list are noted, and how much of each: more than is kept, so that secrets
/// can be masked before they are cut.
const NAMES_MAX: usize = 64;
const NAME_CHARS_MAX: usize = 4096;

/// What may be seen of a server, by the policy and by what was accepted.
struct View<'a> {
    source: Option<&'a Source>,
    watch: &'a Watch,
    /// What was accepted, if what has drifted is hidden.
    lock: Option<&'a Lock>,
    server: &'a str,
}

impl Sight for View<'_> {
    fn limited(&self, offer: Offer) -> bool {
        let pinned = self.lock.and_then(|lock| lock.servers.get(self.server));
        let pinned = pinned.is_some_and(|server| server.offers.contains_key(&offer));
        let expose = self.source.filter(|source| source.enabled).map(|source| match offer {
            Offer::Tool => &source.tools,
            Offer::Prompt => &source.prompts,
            Offer::Resource | Offer::Template => &source.resources,
        });
        pinned || !matches!(expose, Some(Expose::All))
    }

    fn shows(&self, offer: Offer, name: &str) -> bool {
        let source = self.source.filter(|source| source.enabled);
        let exposed = source.is_some_and(|source| shows(source, offer, name));
        let drifted = || {
            let lock = self.lock?;
            self.watch.drift(lock, self.server, offer, name)
        };
        exposed && drifted().is_none()
    }
}

impl Warden {
    /// The server answers.
    pub(super) fn answered(&mut self, now: &Now<'_, '_>) -> Verdict {
        if let Some(requests) = now.said.input_requests
            && let Some(refused) = self.asks_first(now, requests)
        {
            return refused;
        }
        let listed = match now.said.result {
            Some(result) if now.said.lists => self.listed(now, result),
            _ => Verdict::Forward,
        };
        match listed {
            Verdict::Forward => self.masked(now, now.frame.bytes()).unwrap_or(Verdict::Forward),
            Verdict::Rewrite(text) => self.masked(now, &text).unwrap_or(Verdict::Rewrite(text)),
            other => other,
        }
    }

    fn listed(&mut self, now: &Now<'_, '_>, result: &[u8]) -> Verdict {
        let Some(policy) = self.regime.policy.clone() else { return Verdict::Forward };
        if policy.pins.on_drift != OnDrift::Ignore {
            self.learn(now, &policy, &lists(result), result);
        }
        let hides = policy.pins.on_drift == OnDrift::Deny;
        let view = View {
            source: policy.source(&self.settings.source),
            watch: &self.watch,
            lock: Some(&policy.pins.lock).filter(|_| hides),
            server: &self.settings.source,
        };
        let filtered = filter(now.frame.bytes(), result, &view);
        let strict = self.strict();
        self.note_hidden(now, &filtered, strict);
        match filtered.text {
            Some(text) if strict => Verdict::Rewrite(text),
            _ => Verdict::Forward,
        }
    }

    /// Holds what a list defines against what was accepted.
    fn learn(&mut self, now: &Now<'_, '_>, policy: &Policy, found: &[List<'_>], result: &[u8]) {
        let last = json::member(result, "nextCursor").is_none_or(|cursor| cursor == b"null");
        let denied = policy.pins.on_drift == OnDrift::Deny;
        let news = self.watch.learn(&policy.pins.lock, &self.settings.source, found, last);
        // A server may make up any number of names; what is denied does not depend on the notes.
        for drifted in news.into_iter().take(NAMES_MAX) {
            let word = match (policy.pins.on_drift, self.strict()) {
                (OnDrift::Deny, true) => "deny",
                (OnDrift::Deny, false) => "WOULD_BLOCK",
                (OnDrift::Approve, true) => "pending_approval",
                (OnDrift::Approve, false) => "WOULD_REQUIRE_APPROVAL",
                _ => "warn",
            };
            let mut note = Note {
                kind: NoteKind::Drift { offer: drifted.offer },
                word,
                name: Note::text(&drifted.name),
                id: Note::raw(now.said.id),
                gate: Some(GateName::Governance).filter(|_| denied),
                reason: Some(Cow::Owned(drifted.words)),
                ..now.note()
            };
            self.hands.note(&self.regime, &mut note);
        }
    }

    fn note_hidden(&mut self, now: &Now<'_, '_>, filtered: &Filtered, strict: bool) {
        let latency_ns = self.latency(now.begun_ns);
        for list in filtered.lists.iter().filter(|list| !list.hidden.is_empty()) {
            let mut note = Note {
                kind: NoteKind::Filter {
                    offer: list.offer,
                    kept: list.kept,
                    hidden: list.hidden.iter().take(NAMES_MAX).map(|name| short(name)).collect(),
                    hidden_total: list.hidden.len(),
                },
                word: if strict { "filter" } else { "WOULD_FILTER" },
                id: Note::raw(now.said.id),
                gate: Some(GateName::Visibility),
                forwarded: Some(true),
                latency_ns,
                ..now.note()
            };
            self.hands.note(&self.regime, &mut note);
        }
    }

    /// Masks the secrets in an answer, if there are any.
    fn masked(&mut self, now: &Now<'_, '_>, answer: &[u8]) -> Option<Verdict> {
        // The result of a task comes under other methods, and an answer that nobody has asked for
        // may be one to a client that is careless about ids.
        let content = matches!(now.case.topic, None | Some(Topic::Call | Topic::Other));
        let redactor = self.regime.redactor.clone().filter(|_| content)?;
        let masked = redactor.message(answer);
        if matches!(masked.text, Cow::Borrowed(_)) {
            return None;
        }
        let (strict, latency_ns) = (self.strict(), self.latency(now.begun_ns));
        let mut note = Note {
            kind: NoteKind::Redaction { count: masked.paths.len() },
            word: if strict { "redact" } else { "WOULD_REDACT" },
            id: Note::raw(now.said.id),
            forwarded: Some(true),
            latency_ns,
            ..now.note()
        };
        self.hands.note(&self.regime, &mut note);
        strict.then(|| Verdict::Rewrite(masked.text.into_owned()))
    }

    /// The server asks for something before it answers; each such request is one of its own.
    fn asks_first(&mut self, now: &Now<'_, '_>, requests: &[u8]) -> Option<Verdict> {
        let policy = self.regime.policy.clone();
        // What cannot be read is no request to anybody.
        for method in methods(requests).unwrap_or_default() {
            let asked = Asked { method: &method, offer: None, name: "", arguments: None };
            let named = policy.as_ref().filter(|_| self.rules_name_methods);
            match named.and_then(|policy| self.by_method(now, policy, asked)) {
                Some(Verdict::Forward) => {}
                Some(refused) => return Some(refused),
                None => self.server_asks(now, &method),
            }
        }
        None
    }
}

fn short(name: &str) -> String {
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// The methods of the requests in an `inputRequests`; of one that has several, each.
fn methods(requests: &[u8]) -> Result<Vec<String>, Fault> {
    let mut cursor = Cursor::new(requests)?;
    let mut found = Vec::new();
    if cursor.kind()? != Kind::Object {
        return Ok(found);
    }
    let mut first = true;
    cursor.open()?;
    while cursor.key(&mut first)?.is_some() {
        let mut request = Cursor::new(cursor.value()?)?;
        if request.kind()? != Kind::Object {
            continue;
        }
        let mut first = true;
        request.open()?;
        while let Some(key) = request.key(&mut first)? {
            let value = request.value()?;
            let method = careless(key, &["method"]).and_then(|_| json::string(value));
            found.extend(method.map(String::from));
        }
    }
    Ok(found)
}
