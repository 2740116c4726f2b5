//! Command-line arguments of `wrap`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use tapegate_agents::client_table::{CLIENTS, CUSTOM};

use crate::exit::Failure;
use crate::output_file::{TAPES, file_only_parser};
use crate::settings::{ProjectArgs, SearchContext};

/// Run an agent with every MCP server behind the gate
///
/// Finds the configs from which the agent takes its servers, of this project and of the user, and
/// puts each server behind a shim for as long as the agent runs. Then the configs are put back as
/// they were; changes by others in the meantime stay. All shims join one hub, which has the
/// policy and the approvals.
#[derive(Debug, clap::Args)]
#[command(after_help = examples())]
pub(crate) struct Args {
    /// The kind of agent [default: derived from the command]
    #[arg(long, value_name = "TYPE", value_parser = agent_types())]
    #[arg(hide_possible_values = true)]
    pub(super) agent_type: Option<String>,
    /// A config of the agent, instead of those in the usual places; repeatable
    #[arg(long, value_name = "PATH")]
    pub(super) config_path: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) project: ProjectArgs,
    /// Refuse to start without a policy; TAPEGATE_REQUIRE_POLICY=1 does the same
    #[arg(long)]
    pub(super) require_policy: bool,
    /// The port of the hub; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub(super) governance_port: u16,
    /// Record every server, also if the policy turns recording off: one tape a server in DIR [default:
    /// `tapes` in the state folder]
    #[arg(long, value_name = "DIR", num_args = 0..=1, require_equals = true, value_parser = file_only_parser(TAPES))]
    pub(super) record: Option<Option<PathBuf>>,
    /// Leave the configs alone: give the agent its servers by arguments, variables and a private file,
    /// so that several sessions can run side by side
    #[arg(long, conflicts_with_all = ["no_restore", "config_path"])]
    pub(super) overlay: bool,
    /// Leave the configs rewritten at the end; `unwrap` puts them back
    #[arg(long)]
    pub(super) no_restore: bool,
    /// Print the changes to each config as a diff; write and start nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// The command that starts the agent
    #[arg(last = true, required = true, value_name = "CMD")]
    pub(super) command: Vec<OsString>,
}

/// The words for agents.
pub(crate) fn agent_types() -> PossibleValuesParser {
    // From the table, so that a new client is known here at once.
    CLIENTS.iter().chain([&CUSTOM]).map(|client| client.id).collect::<Vec<_>>().into()
}

impl Args {
    /// The folder for tapes, if the session records whatever the policy says.
    pub(super) fn tapes_folder(
        &self,
        search: &SearchContext<'_>,
    ) -> Result<Option<PathBuf>, Failure> {
        let Some(record) = &self.record else { return Ok(None) };
        Ok(Some(match record {
            Some(named) => search.folder.join(named),
            None => search.state_folder(self.project.config.as_deref())?.join("tapes"),
        }))
    }
}

const EXAMPLES: &str = "\
Examples:
  tapegate wrap -- claude
  tapegate wrap --agent-type cursor -- cursor .
  tapegate wrap --profile development -- codex        log, but refuse nothing
  tapegate wrap --record=tapes -- claude
  tapegate wrap --overlay -- claude                   touch no config
  tapegate wrap --dry-run -- claude                   show what would change in which config
  tapegate wrap --config-path ~/.config/custom/mcp.json --agent-type custom -- my-agent
";

const NOTES: &str = "
The agent has the terminal, and TAPEGATE_ACTIVE=1 in its environment. Signals are passed on to it,
and its exit code is that of `wrap`. If `wrap` is killed, its hub puts the configs back; if the
machine stops, the next `wrap` does, or `tapegate unwrap`. docs/wrap.md has the details.

Exit 1: a config is in use or already managed; 2: a config cannot be used, or no policy loads;
3: a file cannot be written; 4: the agent or the hub cannot be started; 64: wrong usage.";

/// The longest line of the list of types.
const COLUMNS_MAX: usize = 98;

/// Examples, every type of agent, and notes.
fn examples() -> String {
    let ids = CLIENTS.iter().map(|client| format!("{},", client.id));
    let words = ["The", "types", "are"].map(str::to_owned).into_iter().chain(ids);
    let words = words.chain(["and".to_owned(), format!("{}.", CUSTOM.id)]);
    let (mut text, mut columns) = (format!("{EXAMPLES}\n"), 0);
    for word in words {
        let is_full = columns + word.len() + 1 > COLUMNS_MAX;
        text += if is_full { "\n" } else { [" ", ""][usize::from(columns == 0)] };
        columns =
            if is_full { word.len() } else { columns + word.len() + usize::from(columns > 0) };
        text += &word;
    }
    format!("{text}\n{NOTES}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_type_in_lines_that_fit() {
        let text = examples();
        let (_, list) = text.split_once("The types are ").unwrap();
        let (list, _) = list.split_once('.').unwrap();
        let words = list.split([',', '\n', ' ']).filter(|word| !matches!(*word, "" | "and"));
        let ids: Vec<&str> = CLIENTS.iter().chain([&CUSTOM]).map(|one| one.id).collect();
        assert_eq!(words.collect::<Vec<_>>(), ids);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}
