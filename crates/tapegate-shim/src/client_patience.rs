//! How long known clients wait for a call, and a warning for workflows that take longer.

use std::sync::atomic::{AtomicBool, Ordering};

use tapegate_core::activity::EventLevel;
use tapegate_policy::approval_channel::ApprovalRequest;

use crate::journal::ShimJournal;

/// How the names of clients begin, in lower case, and after how many seconds they give up by
/// default. Clients that wait for hours, or for as long as they hear of progress, are not listed.
const CLIENTS: [(&str, u64); 4] =
    [("codex", 300), ("gemini-cli", 600), ("cline", 60), ("continue", 60)];

/// Warns once in a session.
#[derive(Debug, Default)]
pub(crate) struct PatienceWarning {
    has_warned: AtomicBool,
}

impl PatienceWarning {
    /// Warns if the client of a call that is being held gives up before its workflow does.
    pub(crate) fn check(&self, request: &ApprovalRequest<'_>, journal: &ShimJournal) {
        let Some(client) = &request.principal.client else { return };
        let Some(secs) = patience_secs(client) else { return };
        if request.timeout_ms <= secs * 1000 || self.has_warned.swap(true, Ordering::Relaxed) {
            return;
        }
        let (client, held_secs) = (client.escape_debug(), request.timeout_ms / 1000);
        let message = format!(
            "`{client}` gives up on a call after {secs} s by default, but the workflow `{}` holds it \
             for {held_secs} s; give the workflow a shorter `timeout`, or raise that of the client. An \
             approval that comes later lets the same call pass once",
            request.workflow_name
        );
        journal.print_message(EventLevel::Warn, &message);
    }
}

/// After how many seconds a client gives up, if that is known.
fn patience_secs(client: &str) -> Option<u64> {
    let name = client.to_ascii_lowercase();
    CLIENTS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, secs)| *secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_the_beginning_of_their_names() {
        let known = ["codex-mcp-client", "Cline", "gemini-cli-mcp-client", "claude-code", ""];
        assert_eq!(known.map(patience_secs), [Some(300), Some(60), Some(600), None, None]);
    }
}
