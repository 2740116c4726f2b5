//! The callers, as clients introduce themselves: once in `initialize`, or in every request.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use tapegate_core::frame::Envelope;
use tapegate_core::json;

use crate::decide::PolicyPrincipal;

/// How many sessions are remembered.
const SESSIONS_MAX: usize = 4096;
/// The longest introduction that is cached.
const INFO_BYTES_MAX: usize = 4096;
/// The longest client name that is accepted.
const NAME_CHARS_MAX: usize = 200;

/// The clients that have introduced themselves.
#[derive(Debug, Default)]
pub(crate) struct CallerRegistry {
    /// The caller, as far as it is known before any client has introduced itself.
    base: PolicyPrincipal,
    by_session: HashMap<u32, SessionCaller, RandomState>,
    /// The last introduction that came with a request, if it was short, and the caller it
    /// described.
    last: Option<(Vec<u8>, PolicyPrincipal)>,
}

/// The client of a session.
#[derive(Debug)]
struct SessionCaller {
    principal: PolicyPrincipal,
    /// Whether its user can be asked.
    elicits: bool,
}

/// How the user of a client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskMode {
    /// By a request to the client.
    Request,
    /// In the result of the call, which the client then makes again.
    Result,
}

impl CallerRegistry {
    pub(super) fn new(base: PolicyPrincipal) -> Self {
        Self { base, ..Self::default() }
    }

    /// Handles an `initialize`.
    pub(super) fn note_initialize(&mut self, session: u32, envelope: &Envelope<'_>) {
        let info = envelope.params.and_then(|params| json::member(params, "clientInfo"));
        if let Some(client) = info.and_then(name) {
            if self.by_session.len() >= SESSIONS_MAX {
                // A session that is forgotten has the base principal, which lacks only the client's
                // own name.
                self.by_session.clear();
            }
            let principal = PolicyPrincipal { client: Some(client), ..self.base.clone() };
            let capabilities =
                envelope.params.and_then(|params| json::member(params, "capabilities"));
            let elicits = capabilities.is_some_and(can_elicit);
            self.by_session.insert(session, SessionCaller { principal, elicits });
        }
    }

    /// How the user of the client that sent a request can be asked, if the client can do it.
    pub(crate) fn ask_mode(&self, session: u32, envelope: &Envelope<'_>) -> Option<AskMode> {
        if envelope.protocol_version.is_none() {
            let caller = self.by_session.get(&session).filter(|caller| caller.elicits);
            return caller.map(|_| AskMode::Request);
        }
        let meta = envelope.params.and_then(|params| json::member(params, "_meta"))?;
        let capabilities = json::member(meta, "io.modelcontextprotocol/clientCapabilities");
        capabilities.is_some_and(can_elicit).then_some(AskMode::Result)
    }

    /// The caller of a message.
    pub(crate) fn caller(&mut self, session: u32, envelope: &Envelope<'_>) -> &PolicyPrincipal {
        // Revision 2026-07-28 has no sessions: its clients introduce themselves in each request's
        // `_meta`.
        let Some(info) = envelope.client_info else {
            let caller = self.by_session.get(&session);
            return caller.map_or(&self.base, |caller| &caller.principal);
        };
        // An empty text marks an introduction that was too long to cache, so it never counts as
        // known.
        if self.last.as_ref().is_none_or(|(known, _)| known != info || info.is_empty()) {
            let client = name(info).or_else(|| self.base.client.clone());
            // A long one is not cached and is parsed again next time.
            let known = if info.len() <= INFO_BYTES_MAX { info.to_vec() } else { Vec::new() };
            self.last = Some((known, PolicyPrincipal { client, ..self.base.clone() }));
        }
        self.last.as_ref().map_or(&self.base, |(_, principal)| principal)
    }
}

/// Whether capabilities include forms for the user. An empty `elicitation` means forms.
fn can_elicit(capabilities: &[u8]) -> bool {
    let Some(elicitation) = json::member(capabilities, "elicitation") else { return false };
    let is_object = elicitation.first() == Some(&b'{');
    let has = |mode| json::member(elicitation, mode).is_some();
    is_object && (has("form") || !has("url"))
}

fn name(info: &[u8]) -> Option<String> {
    let name = json::member(info, "name").and_then(json::string)?;
    Some(name.chars().take(NAME_CHARS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_introduction_is_believed_but_not_kept() {
        let mut callers = CallerRegistry::default();
        let long = format!(r#"{{"name":"long","version":"{}"}}"#, "x".repeat(1 << 20));
        for (info, client) in
            [(long.as_str(), "long"), (r#"{"name":"a"}"#, "a"), (&long, "long"), (&long, "long")]
        {
            let envelope = Envelope { client_info: Some(info.as_bytes()), ..Envelope::default() };
            assert_eq!(callers.caller(0, &envelope).client.as_deref(), Some(client));
            let kept = callers.last.as_ref().map_or(0, |(known, _)| known.capacity());
            assert!(kept <= INFO_BYTES_MAX, "{kept}");
        }
    }
}
