//! Where the log, tapes and approvals of a project are kept.
//!
//! An agent that works in a project can create a `.tapegate` folder there, which would move the
//! activity log to where the agent can write. So the folder used by a project's first session is
//! remembered in the user's state folder and stays in use until a person runs `tapegate init` at a
//! terminal.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tapegate_store::user_state::ProjectStates;

use super::{CONFIG_NAMES, SearchContext, is_trusted};
use crate::exit::Failure;
use crate::terminal_output;

/// The folder in a project that holds its state.
pub(crate) const STATE_NAME: &str = ".tapegate";

/// The state folder of a project, and other folders that could be mistaken for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StateChoice {
    /// The folder in use. It may not exist yet.
    pub(crate) folder: PathBuf,
    /// The project it is remembered for, or the one that contains it.
    project: Option<PathBuf>,
    /// Whether it is remembered.
    is_remembered: bool,
    /// Folders that were used before.
    pub(crate) former: Vec<PathBuf>,
    /// The folder used last, if it no longer exists.
    gone: Option<PathBuf>,
    /// A `.tapegate` folder that is not used because another one was already in use.
    unused: Option<PathBuf>,
}

impl SearchContext<'_> {
    /// The state folder, which may not exist yet; `config` is the policy named on the command line.
    pub(crate) fn state_folder(&self, config: Option<&Path>) -> Result<PathBuf, Failure> {
        self.state_folder_of(&self.project_folder(config))
    }

    /// The state folder of the project that contains this folder.
    pub(crate) fn state_folder_of(&self, folder: &Path) -> Result<PathBuf, Failure> {
        self.state_choice(folder).map(|choice| choice.folder)
    }

    /// The state folder and its alternatives; `config` is the policy named on the command line.
    pub(crate) fn chosen_state(&self, config: Option<&Path>) -> Result<StateChoice, Failure> {
        self.state_choice(&self.project_folder(config))
    }

    /// The state folder of the project that contains this folder: the one remembered for the
    /// nearest project, else the nearest `.tapegate`, else the user's own. A `.tapegate` without a
    /// policy beside it does not count below a project with a remembered folder.
    fn state_choice(&self, folder: &Path) -> Result<StateChoice, Failure> {
        let chosen = |folder: PathBuf, project: &Path| StateChoice {
            project: Some(project.to_owned()),
            ..StateChoice::from_path(folder)
        };
        // An explicit choice of the user overrides everything that is remembered.
        if let Some(home) = self.first(&["TAPEGATE_HOME"]) {
            return Ok(StateChoice::from_path(self.folder.join(home)));
        }
        let user_state = self.user_state_dir();
        let states = user_state.as_ref().ok().map(|folder| ProjectStates::new(folder));
        let is_usable = |state: &Path| {
            user_state.as_ref().is_ok_and(|own| own == state) || is_project_state(state)
        };
        let mut bare: Option<(&Path, PathBuf)> = None;
        let mut gone: Option<PathBuf> = None;
        for project in folder.ancestors() {
            let own = Some(project.join(STATE_NAME)).filter(|own| is_project_state(own));
            let mut former = states.as_ref().map(|all| all.folders_of(project)).unwrap_or_default();
            let last = former.pop();
            if gone.is_none() {
                gone = last.clone().filter(|state| !is_usable(state) && !state.exists());
            }
            // A remembered folder comes before any `.tapegate` on the way: an agent can create one
            // there, but cannot change what is remembered.
            if let Some(state) = last.filter(|state| is_usable(state)) {
                let state = match &user_state {
                    Ok(own) if is_same(own, &state) => own.clone(),
                    _ => state,
                };
                let unused = bare.map(|(_, bare)| bare).or(own);
                return Ok(StateChoice {
                    is_remembered: true,
                    unused: unused.filter(|unused| *unused != state && !is_same(unused, &state)),
                    former,
                    gone,
                    ..chosen(state, project)
                });
            }
            match own {
                Some(own) if bare.is_none() && has_policy(project) => {
                    return Ok(StateChoice { gone, ..chosen(own, project) });
                }
                // Without a policy beside it, it counts only if no project above has a remembered
                // folder.
                Some(own) if bare.is_none() => bare = Some((project, own)),
                _ => {}
            }
        }
        let choice = match bare {
            Some((project, own)) => chosen(own, project),
            None => user_state.map(StateChoice::from_path)?,
        };
        Ok(StateChoice { gone, ..choice })
    }

    /// Remembers the state folder of a session; `config` is the policy that was named, `policy` the
    /// one in force. A folder named by TAPEGATE_HOME is not remembered, nor is anything for a
    /// folder that contains the home folder, which is not a project.
    pub(crate) fn remember_state(&self, config: Option<&Path>, policy: Option<&Path>) {
        let start = self.project_folder(config);
        let (Ok(choice), Ok(user_state)) = (self.state_choice(&start), self.user_state_dir())
        else {
            return;
        };
        if choice.is_remembered || self.first(&["TAPEGATE_HOME"]).is_some() {
            return;
        }
        let above = policy.and_then(Path::parent).filter(|folder| start.starts_with(folder));
        let project = choice.project.as_deref().or(above).unwrap_or(&start);
        let home = self.first(&["HOME"]).map(PathBuf::from);
        // Everything of the user would belong to that project.
        if home.is_some_and(|home| home.starts_with(project)) {
            return;
        }
        // A failure is ignored: everything works as before.
        ProjectStates::new(&user_state).put(project, &choice.folder).ok();
    }

    /// Uses the `.tapegate` of a project from now on, at a person's request.
    pub(crate) fn use_project_state(&self, project: &Path) {
        if self.first(&["TAPEGATE_HOME"]).is_none()
            && let Ok(user_state) = self.user_state_dir()
        {
            let state = project.join(STATE_NAME);
            if let Err(error) = ProjectStates::new(&user_state).put(project, &state) {
                terminal_output::warn(&format!("cannot use `{}`: {error}", state.display()));
            }
        }
    }

    /// The project's folder: that of a named policy, else the current one. Editors start servers
    /// anywhere and name the project's policy, and people look for approvals and logs beside the
    /// policy. The user-wide policy does not belong to a project.
    fn project_folder(&self, config: Option<&Path>) -> PathBuf {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let is_user_wide = |path: &PathBuf| {
            self.user_config().is_some_and(|user_wide| resolved(&user_wide) == resolved(path))
        };
        let named = self.named_config(config).filter(|path| !is_user_wide(path));
        let folder = named.and_then(|path| {
            let folder = path.parent()?;
            // Resolve `..`, which would confuse the walk to the root.
            Some(folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
        });
        folder.unwrap_or_else(|| self.folder.clone())
    }
}

impl StateChoice {
    /// A folder that was named explicitly.
    pub(crate) fn from_path(folder: PathBuf) -> Self {
        let (is_remembered, former) = (false, Vec::new());
        Self { folder, project: None, is_remembered, former, gone: None, unused: None }
    }

    /// The project that it belongs to, if there is one.
    pub(crate) fn project(&self) -> Option<&Path> {
        self.project.as_deref()
    }

    /// Warnings about folders that are not used.
    pub(crate) fn warnings(&self, search: &SearchContext<'_>) -> Vec<String> {
        self.gone_warning().into_iter().chain(self.unused_warning(search)).collect()
    }

    /// Warns that the log of earlier sessions is no longer where it was.
    pub(crate) fn gone_warning(&self) -> Option<String> {
        let gone = self.gone.as_ref()?;
        Some(format!(
            "`{}`, where the log, tapes and approvals of this project were, is gone; they are kept in `{}` \
             from now on. If the project was moved, the earlier ones moved with it: read them with \
             `tapegate log --state FOLDER`",
            gone.display(),
            self.folder.display()
        ))
    }

    /// Warns of a `.tapegate` folder that is not used.
    pub(crate) fn unused_warning(&self, search: &SearchContext<'_>) -> Option<String> {
        let (unused, project) = (self.unused.as_ref()?, self.project.as_ref()?);
        let note = ProjectStates::new(&search.user_state_dir().ok()?).path_of(project);
        Some(format!(
            "`{}` is not used: the state of this project is in `{}`, as before that folder was \
             created. If you created the folder, remove `{}`, which remembers the old place",
            unused.display(),
            self.folder.display(),
            note.display()
        ))
    }
}

/// Whether a path is a trustworthy state folder.
pub(super) fn is_project_state(path: &Path) -> bool {
    let found = path.symlink_metadata();
    found.is_ok_and(|found| found.is_dir() && is_trusted(found.uid()))
}

fn has_policy(folder: &Path) -> bool {
    CONFIG_NAMES.iter().any(|name| folder.join(name).is_file())
}

fn is_same(one: &Path, two: &Path) -> bool {
    matches!((one.canonicalize(), two.canonicalize()), (Ok(one), Ok(two)) if one == two)
}
