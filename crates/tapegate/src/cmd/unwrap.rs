//! `tapegate unwrap`: puts configs back that a session has left rewritten.

use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_agents::client_table::{CLIENTS, CUSTOM, McpClient};
use tapegate_agents::config_guard::{self, ConfigLock};
use tapegate_agents::tree::ConfigFormat;

use super::wrap::agent_choice::{self, AgentChoice};
use super::wrap::config_locks::{
    has_backup, lock_failure, outcome_text, resolved, restore_failure,
};
use super::wrap::overlay_folder;
use super::wrap::session_notes;
use super::wrap::stored_entries;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::views::visible_text;

/// Put back the configs that a session of `wrap` has left rewritten
///
/// A session that is killed, or ended with --no-restore, leaves the agent's configs rewritten, and
/// the original beside each. The next `wrap` puts them back first. This does it by hand: the servers
/// are as they were, and what else was changed in the config stays.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// A config to put back; repeatable
    #[arg(long, value_name = "PATH", conflicts_with = "all")]
    config_path: Vec<PathBuf>,
    /// Only the configs of this kind of agent [default: of every agent]
    #[arg(long, value_name = "TYPE", value_parser = super::wrap::agent_types())]
    #[arg(hide_possible_values = true, conflicts_with = "all")]
    agent_type: Option<String>,
    /// Also the configs of other projects and in unusual places, as far as sessions have noted them
    #[arg(long)]
    all: bool,
}

const EXAMPLES: &str = "\
Examples:
  tapegate unwrap                                 every config of this project and of the user
  tapegate unwrap --agent-type claude-code
  tapegate unwrap --config-path ~/.config/custom/mcp.json
  tapegate unwrap --all

`tapegate wrap --help` lists the types. A config that a session uses now is left alone.

Exit 0: restored, or nothing to do; 1: a config is in use; 3: a config cannot be restored.";

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let places = places(args, &search)?;
    overlay_folder::remove_left(&search.user_state_dir()?);
    let mut exit = Exit::Ok;
    let mut count = 0;
    for (path, format) in places {
        let noted = session_notes::noted_original(&search.user_state_dir()?, &path, format);
        if !has_backup(&path) && noted.is_none() {
            // What a session that was killed early has left goes with its lock.
            if config_guard::has_lock_file(&path) {
                drop(ConfigLock::acquire(&path));
            }
            continue;
        }
        count += 1;
        match restore(&path, format, noted.as_deref()) {
            Ok(text) => writeln!(out, "{}: {text}", visible_text::path(&path))?,
            Err(failure) => {
                terminal_output::error(&failure.message, failure.hint.as_deref());
                exit = failure.exit;
            }
        }
    }
    if count == 0 {
        writeln!(out, "nothing to restore: no config is left rewritten")?;
    }
    // After the configs, whose shims they are for.
    stored_entries::remove_left(&search.user_state_dir()?, &[]);
    out.flush()?;
    Ok(exit)
}

/// The configs that may be rewritten, each once.
fn places(
    args: &Args,
    search: &SearchContext<'_>,
) -> Result<Vec<(PathBuf, ConfigFormat)>, Failure> {
    let named = args.agent_type.as_deref().and_then(agent_choice::by_type);
    let clients: Vec<&'static McpClient> = match (named, args.config_path.is_empty()) {
        (Some(client), _) => vec![client],
        (None, true) => CLIENTS.iter().collect(),
        // A named config needs no agent: what to restore is in its backup.
        (None, false) => vec![&CUSTOM],
    };
    let mut places: Vec<(PathBuf, ConfigFormat)> = Vec::new();
    for client in clients {
        for (path, format) in AgentChoice::new(client, &args.config_path, search)?.places(search) {
            // Clients share configs, and links lead to the same file.
            let path = resolved(&path);
            if !places.iter().any(|(known, _)| *known == path) {
                places.push((path, format));
            }
        }
    }
    let noted = match args.all {
        true => session_notes::left_configs(&search.user_state_dir()?),
        false => Vec::new(),
    };
    let is_new = |(path, _): &(PathBuf, _)| !places.iter().any(|(known, _)| known == path);
    let noted: Vec<(PathBuf, ConfigFormat)> = noted.into_iter().filter(is_new).collect();
    Ok([places, noted].concat())
}

fn restore(path: &Path, format: ConfigFormat, noted: Option<&str>) -> Result<String, Failure> {
    let lock = ConfigLock::acquire(path).map_err(lock_failure)?;
    let restored = match noted {
        Some(original) => config_guard::restore_to(&lock, format, original).map(Some),
        None => config_guard::restore(&lock, format),
    };
    match restored {
        Ok(Some(outcome)) => Ok(outcome_text(path, &outcome)),
        Ok(None) => Ok("it is restored".to_owned()),
        Err(error) => Err(restore_failure(path, &error)),
    }
}
