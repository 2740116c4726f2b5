//! The bash tool under a policy.
//!
//! The shim of `tapegate shim` is in front, and starts this program again as its server. So
//! commands go through the same judge, activity log, approvals and grants as every other call.

use std::path::PathBuf;

use clap::ValueEnum;

use super::args::Args;
use super::governed_settings;
use super::settings_file::SettingsFile;
use crate::cmd::shim;
use crate::exit::{Exit, Failure};
use crate::settings::{BEHIND_SHIM, HUB_VARIABLES, SearchContext};
use crate::trust::PolicyTrust;
use crate::verbosity;

/// The name of the tool in policies, unless another one is given.
const SERVER_ID: &str = "bash";

/// The shim in front of the tool; `None` if no policy applies and commands are only recorded.
pub(super) fn shim_args(args: &Args) -> anyhow::Result<Option<shim::Args>> {
    let search = SearchContext::current().map_err(|error| {
        Failure::new(Exit::Io, format!("cannot find the current folder: {error}"))
    })?;
    if !is_governed(args, &search)? {
        return Ok(None);
    }
    check_flags(args)?;
    // A mistake in the settings should be reported here, not as a server that does not start.
    let settings = SettingsFile::find_ready(args.config.as_deref())?;
    governed_settings::check(&settings.config)?;
    let by_variable = || search.first(&["TAPEGATE_SERVER_ID", "THOUGHTGATE_SERVER_ID"]);
    let by_variable = || by_variable().and_then(|id| id.into_string().ok());
    let server_id = args.server_id.clone().or_else(by_variable);
    let command_folder = governed_settings::command_folder(&settings.config, &search.folder);
    Ok(Some(shim::Args::in_front_of(
        command(args, command_folder.as_deref())?,
        server_id.unwrap_or_else(|| SERVER_ID.to_owned()),
        args.policy.clone(),
        args.require_policy,
        args.http.clone(),
        governed_settings::own_files(args.config.as_deref(), &settings.config, &search.folder),
        command_folder,
    )))
}

/// Whether a policy or a hub decides about the commands.
fn is_governed(args: &Args, search: &SearchContext<'_>) -> Result<bool, Failure> {
    let is_required = search.policy_required(args.require_policy)?;
    if args.no_policy {
        if is_required {
            let message = "TAPEGATE_REQUIRE_POLICY is set, and --no-policy is given";
            return Err(Failure::new(Exit::Usage, message).hint("leave out one of them"));
        }
        return Ok(false);
    }
    if args.policy.is_some() || is_required {
        return Ok(true);
    }
    if is_behind_shim(search) {
        return Ok(false);
    }
    let found = PolicyTrust::new().locate(search, None);
    // If the search fails, the shim tells the client why.
    Ok(search.first(&HUB_VARIABLES).is_some() || !matches!(found, Ok(None)))
}

/// Whether this is the tool itself, and the shim in front of it decides about its calls.
pub(super) fn is_behind_shim(search: &SearchContext<'_>) -> bool {
    search.first(&[BEHIND_SHIM]).is_some()
}

/// Refuses flags that the shim in front cannot pass on.
fn check_flags(args: &Args) -> Result<(), Failure> {
    let refuse = |flag: &str, reason: &str| {
        let message = format!("{flag} cannot be used with --http under a policy: {reason}");
        Err(Failure::new(Exit::Usage, message).hint("leave it out, or add --no-policy"))
    };
    if args.listen.names_others() {
        return refuse(
            "--allow-host and --allow-origin",
            "only clients that name this machine are served",
        );
    }
    if args.http.is_some() && args.metrics_file.is_some() {
        return refuse("--metrics-file", "each client has a bash tool of its own");
    }
    Ok(())
}

/// The command line that starts the tool itself.
fn command(args: &Args, command_folder: Option<&str>) -> anyhow::Result<Vec<String>> {
    let path = |path: &PathBuf| {
        let text = path.to_str().map(str::to_owned);
        text.ok_or_else(|| Failure::new(Exit::Usage, format!("`{}` is not UTF-8", path.display())))
    };
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Exit::Io, format!("cannot find this program: {error}")))?;
    let mut words = vec![path(&program)?, "bash".to_owned()];
    let mut add = |flag: &str, value: String| words.extend([flag.to_owned(), value]);
    if let Some(config) = &args.config {
        add("--config", path(config)?);
    }
    if let Some(file) = &args.metrics_file {
        add("--metrics-file", path(file)?);
    }
    if let Some(folder) = command_folder {
        add("--judged-folder", folder.to_owned());
    }
    let word = |value: clap::builder::PossibleValue| value.get_name().to_owned();
    if let Some(style) = args.tool_name_style.and_then(|style| style.to_possible_value()) {
        add("--tool-name-style", word(style));
    }
    if let Some(level) = verbosity::chosen_level().and_then(|level| level.to_possible_value()) {
        add("--log-level", word(level));
    }
    if verbosity::is_json() {
        add("--log-format", "json".to_owned());
    }
    Ok(words)
}
