//! The user's own state folder, and the private folder of a project in it.
//!
//! Keys, approvals and accepted policies are kept there rather than in the project, because an
//! agent can usually write the project's files.

use std::path::{Path, PathBuf};

use tapegate_store::user_state::{PrivateDir, ProjectKey, UserStateError};

use super::SearchContext;
use crate::exit::{Exit, Failure};

impl SearchContext<'_> {
    /// The user's state folder, which need not exist yet: `$TAPEGATE_HOME`, else
    /// `$XDG_STATE_HOME/tapegate`, else `~/.local/state/tapegate`.
    pub(crate) fn user_state_dir(&self) -> Result<PathBuf, Failure> {
        if let Some(home) = self.first(&["TAPEGATE_HOME"]) {
            return Ok(self.folder.join(home));
        }
        // The XDG specification has relative paths ignored.
        let state = self.first(&["XDG_STATE_HOME"]).map(PathBuf::from).filter(|p| p.is_absolute());
        let home = || Some(PathBuf::from(self.first(&["HOME"])?).join(".local/state"));
        match state.or_else(home) {
            Some(state) => Ok(state.join("tapegate")),
            None => Err(Failure::new(Exit::Usage, "there is no folder for state: HOME is not set")
                .hint("set TAPEGATE_HOME, or create `.tapegate` in the project")),
        }
    }

    /// Where it is if no variable but HOME says so: shims that get no others find it there.
    pub(crate) fn usual_state_dir(&self) -> Option<PathBuf> {
        Some(PathBuf::from(self.first(&["HOME"])?).join(".local/state/tapegate"))
    }

    /// Warns if the user's state folder is inside the project, where an agent may be able to write
    /// it. Does not warn if the project contains the whole home folder: there is no better place in
    /// it.
    pub(crate) fn user_state_warning(&self, project: &Path) -> Option<String> {
        let user_state = self.user_state_dir().ok()?;
        self.is_inside(&user_state, project).then(|| {
            format!(
                "the user state folder `{}` lies inside the project: an agent that can write the \
                 project's files can forge approvals and accepted policies; point TAPEGATE_HOME elsewhere",
                resolve(&user_state).display()
            )
        })
    }

    /// The file with the hub's token for shims, if the user names one.
    pub(crate) fn token_file(&self, named: Option<&Path>) -> Option<PathBuf> {
        self.named_file(named, "TAPEGATE_TOKEN_FILE")
    }

    /// The file with the hub's token for approvers, if the user names one.
    pub(crate) fn approver_token_file(&self, named: Option<&Path>) -> Option<PathBuf> {
        self.named_file(named, "TAPEGATE_APPROVER_TOKEN_FILE")
    }

    fn named_file(&self, named: Option<&Path>, variable: &str) -> Option<PathBuf> {
        let by_variable = || self.first(&[variable]).map(PathBuf::from);
        let named = named.map(Path::to_owned).or_else(by_variable);
        named.map(|path| self.folder.join(path))
    }

    /// Warns if a token file is in the folder that the hub was started in, where an agent may be
    /// able to read it. `flag` is the flag that names another place.
    pub(crate) fn token_warning(&self, token_file: &Path, flag: &str) -> Option<String> {
        let folder = resolve(token_file.parent()?);
        self.is_inside(&folder, &self.folder).then(|| {
            format!(
                "the token file `{}` lies inside the project: an agent that can read the project's \
                 files can use the hub's API; name another by {flag}",
                token_file.display()
            )
        })
    }

    fn is_inside(&self, path: &Path, project: &Path) -> bool {
        let project = resolve(project);
        let home = self.first(&["HOME"]).map(|home| resolve(Path::new(&home)));
        let holds_home = home.is_some_and(|home| home.starts_with(&project));
        resolve(path).starts_with(&project) && !holds_home
    }
}

fn resolve(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// The user's state folder, from this process's environment.
pub(crate) fn user_state_dir() -> Result<PathBuf, Failure> {
    let search = SearchContext::current().map_err(|error| {
        Failure::new(Exit::Io, format!("cannot find the current folder: {error}"))
    })?;
    search.user_state_dir()
}

/// Opens the private folder of the project with this state folder, and creates it if needed.
pub(crate) fn open_private_dir(state_folder: &Path) -> Result<PrivateDir, Failure> {
    PrivateDir::open(&user_state_dir()?, state_folder).map_err(failure)
}

/// The key of the project with this state folder, created on first use.
pub(crate) fn project_key(state_folder: &Path) -> Result<ProjectKey, Failure> {
    open_private_dir(state_folder)?.key().map_err(failure)
}

fn failure(error: UserStateError) -> Failure {
    Failure::new(Exit::Io, error)
}
