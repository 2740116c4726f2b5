//! The servers in client configs, and which of them a tape is of.

pub(super) use tapegate_agents::client_table::{EntryStyle, OverlayStyle};
use tapegate_agents::discovery::{self, DiscoveryContext};
pub(super) use tapegate_agents::discovery::{ConfigScope, ConfiguredServer, ServerScan};
pub(super) use tapegate_agents::entry::ServerTarget;

use crate::cmd::policy::backtest::backtest_tape::BacktestTape;
use crate::settings::SearchContext;
use crate::upstream::UpstreamTarget;

/// Finds the servers named in the configs of all clients.
pub(super) fn find(search: &SearchContext<'_>) -> ServerScan {
    discovery::find(&DiscoveryContext { folder: &search.folder, variable: search.variable })
}

/// The policy's id for the server of a tape: a configured id that is on the tape, or that of the
/// entry with the same command line or URL. The shim will be started with this id.
pub(super) fn server_of(tape: &BacktestTape, servers: &[ConfiguredServer]) -> Option<String> {
    let is_same = |server: &&ConfiguredServer| match (&server.entry.target, &tape.upstream) {
        (ServerTarget::Command(own), Some(UpstreamTarget::Command(taped))) => own == taped,
        (ServerTarget::Url(own, _), Some(UpstreamTarget::Http(taped))) => own == taped,
        _ => false,
    };
    let named = servers.iter().find(|server| tape.may_be_server(&server.id));
    // The name first: a command line may have changed since the tape was recorded.
    named.or_else(|| servers.iter().find(is_same)).map(|server| server.id.clone())
}
