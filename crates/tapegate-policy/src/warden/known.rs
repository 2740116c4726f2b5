//! Who calls, as clients introduce themselves: once in `initialize`, or in every request.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use tapegate_core::frame::Envelope;
use tapegate_core::json;
use tapegate_core::side::Lane;

use crate::decide::Principal;

/// How many sessions are remembered.
const SESSIONS_MAX: usize = 4096;
/// The longest name that is believed.
const NAME_CHARS_MAX: usize = 200;

/// The clients that have introduced themselves.
#[derive(Debug, Default)]
pub(super) struct Known {
    by_session: HashMap<u32, Principal, RandomState>,
    /// The last introduction that came with a request, and who it made of the caller.
    last: Option<(Vec<u8>, Principal)>,
}

impl Known {
    /// Takes an `initialize`.
    pub(super) fn introduce(&mut self, lane: Lane, said: &Envelope<'_>, base: &Principal) {
        let info = said.params.and_then(|params| json::member(params, "clientInfo"));
        if let Some(client) = info.and_then(name) {
            if self.by_session.len() >= SESSIONS_MAX {
                self.by_session.clear();
            }
            let principal = Principal { client: Some(client), ..base.clone() };
            self.by_session.insert(lane.session, principal);
        }
    }

    /// Who calls.
    pub(super) fn caller<'k>(
        &'k mut self,
        lane: Lane,
        said: &Envelope<'_>,
        base: &'k Principal,
    ) -> &'k Principal {
        let Some(info) = said.client_info else {
            return self.by_session.get(&lane.session).unwrap_or(base);
        };
        if self.last.as_ref().is_none_or(|(known, _)| known != info) {
            let client = name(info).or_else(|| base.client.clone());
            self.last = Some((info.to_vec(), Principal { client, ..base.clone() }));
        }
        self.last.as_ref().map_or(base, |(_, principal)| principal)
    }
}

fn name(info: &[u8]) -> Option<String> {
    let name = json::member(info, "name").and_then(json::string)?;
    Some(name.chars().take(NAME_CHARS_MAX).collect())
}
