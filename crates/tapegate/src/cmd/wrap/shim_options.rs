//! The command line that a config gets in place of a server's.

use std::path::{Path, PathBuf};

use tapegate_agents::discovery::ConfiguredServer;
use tapegate_agents::rewrite::ShimCommand;
use tapegate_agents::shim_entry::{UngovernableEntry, shim_command};
use tapegate_policy::model::Profile;

use super::args::Args;
use super::stored_entries::{EntryFolder, StoredEntry};
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;

/// What all shims of a session have in common.
pub(super) struct ShimOptions {
    /// The absolute path of this program.
    pub(super) binary: String,
    pub(super) endpoint: String,
    pub(super) token_file: PathBuf,
    pub(super) profile: Profile,
    /// The policy that was named, as an absolute path.
    pub(super) config: Option<PathBuf>,
    pub(super) require_policy: bool,
    /// The folder for tapes, if the session records whatever the policy says.
    pub(super) tapes: Option<PathBuf>,
    /// Where command lines are stored that the client would not pass on as they are.
    pub(super) entries: EntryFolder,
}

impl ShimOptions {
    /// The options as far as they are known before the hub has started.
    pub(super) fn before_start(
        args: &Args,
        search: &SearchContext<'_>,
        binary: String,
    ) -> Result<Self, Failure> {
        let state = search.state_folder(args.project.config.as_deref())?;
        Ok(Self {
            binary,
            endpoint: format!("http://127.0.0.1:{}", args.governance_port),
            token_file: tapegate_hub::hub_lock::token_file(&search.user_state_dir()?, &state),
            profile: search.profile(args.project.profile)?.unwrap_or(Profile::Production),
            config: search.named_config(args.project.config.as_deref()),
            require_policy: search.policy_required(args.require_policy)?,
            tapes: args.tapes_folder(search)?,
            entries: EntryFolder::new(search)?,
        })
    }

    /// The command for the entry of a config, and the command line to store, if the client would not
    /// pass it on as it is.
    pub(super) fn stored(
        &self,
        server: &ConfiguredServer,
        shim: ShimCommand,
    ) -> (ShimCommand, Option<StoredEntry>) {
        self.entries.stored(server, shim, Some(&self.endpoint))
    }

    /// What starts the shim of a server.
    pub(super) fn command(
        &self,
        server: &ConfiguredServer,
    ) -> Result<ShimCommand, UngovernableEntry> {
        let mut words = vec![
            self.binary.clone(),
            "shim".to_owned(),
            "--governance-endpoint".to_owned(),
            self.endpoint.clone(),
            // Agents start shims anywhere, and some clear the environment.
            "--token-file".to_owned(),
            self.token_file.display().to_string(),
            "--profile".to_owned(),
            // Stated even if it is the default: shims must use the profile that the hub has.
            self.profile.as_str().to_owned(),
        ];
        if let Some(config) = &self.config {
            words.extend(["--config".to_owned(), config.display().to_string()]);
        }
        if self.require_policy {
            words.push("--require-policy".to_owned());
        }
        if let Some(tapes) = &self.tapes {
            words.extend(["--record-to".to_owned(), tapes.display().to_string()]);
        }
        shim_command(server, &words)
    }
}

/// The path of this program, without links: a link may lead elsewhere while the agent runs.
pub(super) fn own_path(search: &SearchContext<'_>) -> Result<String, Failure> {
    let own = std::env::current_exe().and_then(|path| path.canonicalize());
    // `/proc` may be missing in a container.
    let found = own.or_else(|error| {
        let folders = search.first(&["PATH"]).unwrap_or_default();
        let mut places =
            std::env::split_paths(&folders).map(|folder| folder.join(program_name::name()));
        places.find_map(|path| path.canonicalize().ok()).ok_or(error)
    });
    let cannot = |reason: &str| {
        let message = format!("cannot find the path of this program: {reason}");
        Failure::new(Exit::Io, message).hint("install it again; agents start it by its path")
    };
    let path = found.map_err(|error| cannot(&error.to_string()))?;
    let text = Path::to_str(&path).ok_or_else(|| cannot("it is not UTF-8"))?;
    Ok(text.to_owned())
}
