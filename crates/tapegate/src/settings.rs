//! Finds the config and the state folder, and reads our environment variables. No other module
//! reads them.
//!
//! A config found by walking up must belong to the user or to root: write access to a parent folder
//! must not be enough to govern what happens below it. A config named by the user is used as is.

mod server_id;
pub(crate) mod state_folder;
pub(crate) mod user_state;
pub(crate) mod user_state_hint;

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tapegate_policy::model::Profile;
use tapegate_shim::plan::ProgramContext;
use tapegate_shim::shim_policy::spellings;

use crate::exit::{Exit, Failure};
use crate::program_name;

pub(crate) use server_id::server_id;

/// The file names of a config, preferred one first.
const CONFIG_NAMES: [&str; 2] = ["tapegate.yaml", "thoughtgate.yaml"];
/// The variable that requires a policy, like `--require-policy`.
const REQUIRE_POLICY: &str = "TAPEGATE_REQUIRE_POLICY";

/// Set for servers behind a shim.
pub(crate) const BEHIND_SHIM: &str = "TAPEGATE_BEHIND_SHIM";

/// What commands that know of a project take.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ProjectArgs {
    /// The policy [default: tapegate.yaml or thoughtgate.yaml in this folder or one above, or else
    /// tapegate/tapegate.yaml in the user's config folder]
    #[arg(long, value_name = "FILE", visible_alias = "thoughtgate-config")]
    pub(crate) config: Option<PathBuf>,
    /// Enforce the policy, or only log what it would do [default: as set in the policy, or
    /// production]
    #[arg(long, value_enum)]
    pub(crate) profile: Option<ProfileArg>,
}

/// A profile as a command line says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProfileArg {
    /// Refused messages are not forwarded
    Production,
    /// Messages that would be refused are logged and forwarded
    Development,
}

/// The context in which paths are looked up.
pub(crate) struct SearchContext<'a> {
    /// The current folder.
    pub(crate) folder: PathBuf,
    /// Looks up an environment variable.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The variables that name the hub's endpoint.
pub(crate) const HUB_VARIABLES: [&str; 2] =
    ["TAPEGATE_GOVERNANCE_ENDPOINT", "THOUGHTGATE_GOVERNANCE_ENDPOINT"];

impl SearchContext<'static> {
    /// The surroundings of this process.
    pub(crate) fn current() -> io::Result<Self> {
        Ok(Self { folder: std::env::current_dir()?, variable: &|name| std::env::var_os(name) })
    }
}

impl SearchContext<'_> {
    /// The value of the first of these variables that is set and not empty.
    pub(crate) fn first(&self, names: &[&str]) -> Option<OsString> {
        names.iter().find_map(|name| (self.variable)(name).filter(|value| !value.is_empty()))
    }

    /// The named config, or else the nearest one.
    pub(crate) fn config(&self, named: Option<&Path>) -> Result<Option<PathBuf>, Failure> {
        if let Some(path) = self.named_config(named) {
            return Ok(Some(path));
        }
        for path in self.config_places() {
            if Self::is_config(&path)? {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// The config named on the command line or by a variable.
    pub(crate) fn named_config(&self, named: Option<&Path>) -> Option<PathBuf> {
        let by_variable = || self.first(&["TAPEGATE_CONFIG", "THOUGHTGATE_CONFIG"]);
        let named = named.map(Path::to_owned).or_else(|| by_variable().map(PathBuf::from));
        named.map(|path| self.folder.join(path))
    }

    /// Where a config is looked for, in order: the current folder, its parents, and the user's
    /// config folder.
    pub(crate) fn config_places(&self) -> Vec<PathBuf> {
        let above = self.folder.ancestors();
        let above = above.flat_map(|folder| CONFIG_NAMES.map(|name| folder.join(name)));
        above.chain(self.user_config()).collect()
    }

    /// The policy for projects that have none of their own.
    pub(crate) fn user_config(&self) -> Option<PathBuf> {
        let config = self.first(&["XDG_CONFIG_HOME"]).map(PathBuf::from);
        let home = || Some(PathBuf::from(self.first(&["HOME"])?).join(".config"));
        let folder = config.filter(|path| path.is_absolute()).or_else(home)?;
        Some(folder.join("tapegate").join(CONFIG_NAMES[0]))
    }

    /// The user to name as principal if the policy does not name one.
    pub(crate) fn user(&self) -> String {
        let user = self.first(&["USER", "LOGNAME"]).and_then(|user| user.into_string().ok());
        user.unwrap_or_else(|| "local".to_owned())
    }

    /// Whether a session may start only with a policy, by the flag or by the environment.
    pub(crate) fn policy_required(&self, flag: bool) -> Result<bool, Failure> {
        let Some(value) = self.first(&[REQUIRE_POLICY]) else { return Ok(flag) };
        let text = value.to_string_lossy().trim().to_ascii_lowercase();
        match text.as_str() {
            "1" | "true" | "yes" => Ok(true),
            // The variable can add the requirement, never remove a flag that the config has.
            "0" | "false" | "no" => Ok(flag),
            _ => {
                let message = format!("{REQUIRE_POLICY} is `{}`", value.display());
                Err(Failure::new(Exit::Usage, message).hint("set it to `1` or `0`"))
            }
        }
    }

    /// The profile that was given; `None` if the config decides.
    pub(crate) fn profile(&self, named: Option<ProfileArg>) -> Result<Option<Profile>, Failure> {
        if let Some(word) = named {
            return Ok(Some(word.into()));
        }
        let names = ["TAPEGATE_PROFILE", "THOUGHTGATE_PROFILE"];
        let Some(value) = self.first(&names) else { return Ok(None) };
        match value.to_str() {
            Some("production") => Ok(Some(Profile::Production)),
            Some("development") => Ok(Some(Profile::Development)),
            _ => {
                let message = format!("the profile `{}` is unknown", value.display());
                let hint = "TAPEGATE_PROFILE is `production` or `development`";
                Err(Failure::new(Exit::Usage, message).hint(hint))
            }
        }
    }
}

impl From<ProfileArg> for Profile {
    fn from(word: ProfileArg) -> Self {
        match word {
            ProfileArg::Production => Self::Production,
            ProfileArg::Development => Self::Development,
        }
    }
}

impl SearchContext<'_> {
    /// Whether there is a trustworthy config at this path.
    pub(crate) fn is_config(path: &Path) -> Result<bool, Failure> {
        check_config(path)
    }
}

/// What sessions and policies say about this program.
pub(crate) const PROGRAM: ProgramContext =
    ProgramContext { command: |words| program_name::command(words), own_places };

/// Tapegate's own folders and files on this machine, for the built-in rule that protects them.
pub(crate) fn own_places(policy: &Path) -> Vec<PathBuf> {
    let Ok(search) = SearchContext::current() else { return Vec::new() };
    let config = search.user_config().and_then(|path| path.parent().map(Path::to_owned));
    let of_policy = search.state_folder(Some(policy)).ok();
    let state = [search.user_state_dir().ok(), search.state_folder(None).ok(), of_policy, config];
    let tokens = [search.token_file(None), search.approver_token_file(None)];
    state.into_iter().chain(tokens).flatten().flat_map(spellings).collect()
}

/// Whether there is a trustworthy config here. Something there that is not a config, such as a
/// dangling link or a folder, is an error: skipping it would leave the session ungoverned.
fn check_config(path: &Path) -> Result<bool, Failure> {
    let absent = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
    };
    let unusable = |exit: Exit, reason: &str| {
        let name = path.display();
        let hint = "an unreadable policy is not skipped; remove it, or pass another with --config";
        Err(Failure::new(exit, format!("cannot use `{name}` as a policy: {reason}")).hint(hint))
    };
    match path.symlink_metadata() {
        Err(error) if absent(&error) => return Ok(false),
        Err(error) => return unusable(Exit::Io, &error.to_string()),
        Ok(_) => {}
    }
    match path.metadata() {
        Err(error) if absent(&error) => unusable(Exit::Invalid, "it is a dangling link"),
        Err(error) => unusable(Exit::Io, &error.to_string()),
        Ok(file) if !file.is_file() => unusable(Exit::Invalid, "it is not a regular file"),
        Ok(file) if !is_trusted(file.uid()) => Err(foreign_config_failure(path)),
        Ok(_) => Ok(true),
    }
}

/// Whether a file with this owner may be used without being named explicitly.
fn is_trusted(owner: u32) -> bool {
    let us = rustix::process::geteuid().as_raw();
    // A shared parent such as /tmp must not let another user govern what runs below it.
    us == 0 || owner == us || owner == 0
}

fn foreign_config_failure(path: &Path) -> Failure {
    let name = path.display();
    Failure::new(Exit::Invalid, format!("`{name}` belongs to another user"))
        .hint(format!("to use it, pass --config {name}; otherwise name another policy"))
}

#[cfg(test)]
mod tests;
