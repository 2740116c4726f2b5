//! Command-line arguments of `hub`.

use std::path::PathBuf;

use tapegate_hub::hub_lock::NamedTokenFiles;

use crate::approver_check::KeyArgs;
use crate::output_file::file_only_parser;
use crate::settings::{ProjectArgs, SearchContext};

/// Why a token is not printed.
const SECRET: &str = "a token is never printed; name a file";

/// Serve the policy, approvals, activity log and metrics for many shims
///
/// Listens on loopback and accepts only requests with a token of this run. Shims that join the hub
/// get the policy and its changes from it, and request approvals through it. Other programs can use
/// `POST /governance/evaluate`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// Refuse to start without a policy; TAPEGATE_REQUIRE_POLICY=1 does the same
    #[arg(long)]
    pub(super) require_policy: bool,
    /// The state folder [default: `.tapegate` here or above, else the user's]
    #[arg(long, value_name = "FOLDER")]
    pub(super) state: Option<PathBuf>,
    /// The port; 0 picks a free one
    #[arg(long, visible_alias = "governance-port", value_name = "PORT", default_value_t = 0)]
    pub(super) port: u16,
    /// Listen on this address instead of loopback; any machine that can reach it then needs only a
    /// token
    #[arg(long, value_name = "ADDRESS")]
    pub(super) host: Option<String>,
    /// The file to write the shims' token to [default: hub-token in the project's private folder in
    /// the user's state folder]
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(SECRET))]
    token_file: Option<PathBuf>,
    /// The file to write the approvers' token to, which is required to approve, deny and shut down
    /// [default: hub-approver-token in the project's private folder]
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(SECRET))]
    approver_token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) key: KeyArgs,
    /// Serve one session of `wrap` with this agent; `wrap` is at the other end of standard input and
    /// output
    #[arg(long, hide = true, value_name = "AGENT")]
    pub(super) session: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  tapegate hub
  tapegate hub --config ci/tapegate.yaml --profile development --port 19090
  tapegate shim --governance-endpoint http://127.0.0.1:19090 -- uvx mcp-server-git
  tapegate hub --port 19090 --token-file ~/.hub-token
  curl -H \"Authorization: Bearer $(cat ~/.hub-token)\" http://127.0.0.1:19090/metrics

The hub writes its address to hub/endpoint in the state folder, and prints at its start which files
hold the tokens. The files are outside of the project, where agents cannot read them. Shims need the
shims' token, and send it only to a hub that has proven to hold it. The approvers' token is required
to approve, deny and shut down.

A hub accepts approvals and denials only if a person has started it at a terminal, or with
--non-interactive and --key-file; any other hub refuses them, and does everything else.

A changed policy takes effect at once if it was accepted (`tapegate policy accept`) or permits
nothing more; one that does not load changes nothing. On SIGTERM and Ctrl-C the hub tells every shim
to shut down, waits for them for up to ten seconds, and exits; a second signal ends it at once.
docs/hub.md describes the API.

Exit 1: another hub serves this state folder; 2: the policy does not load; 3: the state folder
cannot be used; 4: the port is not available; 64: wrong usage; 130/143: signals.";

impl Args {
    /// Where to write the tokens, if the command line or the environment says so.
    pub(super) fn token_files(&self, search: &SearchContext<'_>) -> NamedTokenFiles {
        NamedTokenFiles {
            shims: search.token_file(self.token_file.as_deref()),
            approvers: search.approver_token_file(self.approver_token_file.as_deref()),
        }
    }
}
