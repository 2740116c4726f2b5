//! Records in the user's state folder which state folder each project uses.
//!
//! An agent that can write the project can create a `.tapegate` folder there. The first choice of a
//! state folder is therefore remembered, and so are folders used earlier, so that their contents
//! are not lost from sight.
//!
//! ```text
//! <user state>/projects/<16 hex digits>   the project's folder, then its state folders, a line each;
//!                                         the one in use comes last
//! ```

use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::{UserStateError, canonical_path, check_private, open_private, project_name};
use crate::temporary_file::TemporaryFile;

/// The folder below the user's state folder that holds one note per project.
const PROJECTS: &str = "projects";
/// How much of a note is read, and how many folders it lists.
const BYTES_MAX: u64 = 64 * 1024;
const FOLDERS_MAX: usize = 8;

/// The state folders of a user's projects.
#[derive(Debug, Clone)]
pub struct ProjectStates {
    folder: PathBuf,
}

impl ProjectStates {
    /// The notes below this user state folder, which need not exist yet.
    pub fn new(user_state: &Path) -> Self {
        Self { folder: user_state.join(PROJECTS) }
    }

    /// The path of the note about a project, whether or not it exists.
    pub fn path_of(&self, project: &Path) -> PathBuf {
        self.folder.join(project_name(&canonical_path(project)))
    }

    /// The state folders that a project has used, the current one last. A note that cannot be read,
    /// or is not private, is ignored.
    pub fn folders_of(&self, project: &Path) -> Vec<PathBuf> {
        let project = canonical_path(project);
        if !self.folder.join(project_name(&project)).exists() {
            return Vec::new();
        }
        self.read(&project).unwrap_or_default()
    }

    fn read(&self, project: &Path) -> Option<Vec<PathBuf>> {
        let folder = open_private(&self.folder).ok()?;
        let name = project_name(project);
        let file = folder.file(&name, OFlags::RDONLY).ok()?;
        check_private(&folder.path_of(&name), &file).ok()?;
        let mut text = String::new();
        file.take(BYTES_MAX).read_to_string(&mut text).ok()?;
        let mut lines = text.lines();
        // The name is only a part of a hash, and a copied note must not redirect another project.
        if lines.next()? != project.to_str()? {
            return None;
        }
        Some(lines.filter(|line| line.starts_with('/')).map(PathBuf::from).collect())
    }

    /// Records that a project now uses this state folder. Paths that are not UTF-8 or contain a
    /// line break are not recorded.
    pub fn put(&self, project: &Path, state: &Path) -> Result<(), UserStateError> {
        let (project, state) = (canonical_path(project), canonical_path(state));
        let mut folders = self.folders_of(&project);
        // The folder in use comes last, even if it was used before.
        folders.retain(|known| *known != state);
        folders.push(state);
        let start = folders.len().saturating_sub(FOLDERS_MAX);
        let lines = std::iter::once(&project).chain(&folders[start..]);
        let mut text = String::new();
        for path in lines {
            let Some(path) = path.to_str().filter(|path| !path.contains('\n')) else {
                return Ok(());
            };
            text.push_str(path);
            text.push('\n');
        }
        let folder = open_private(&self.folder)?;
        let name = project_name(&project);
        let io = |source| UserStateError::Io { path: folder.path_of(&name), source };
        let mut temporary = TemporaryFile::in_folder(&folder, &name).map_err(io)?;
        temporary.write(text.as_bytes()).map_err(io)?;
        temporary.replace(&name).map_err(io)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_in_use_comes_last_and_those_of_before_are_kept() {
        let top = tempfile::tempdir().unwrap();
        let states = ProjectStates::new(&top.path().join("user"));
        let project = top.path().join("p");
        assert!(states.folders_of(&project).is_empty() && !top.path().join("user").exists());
        let at = |name: &str| canonical_path(&top.path().join(name));
        for name in ["one", "two", "one"] {
            states.put(&project, &at(name)).unwrap();
        }
        assert_eq!(states.folders_of(&project), [at("two"), at("one")]);
        assert!(states.folders_of(top.path()).is_empty(), "another project");
        for number in 0..20 {
            states.put(&project, &at(&number.to_string())).unwrap();
        }
        assert_eq!(states.folders_of(&project).len(), FOLDERS_MAX);
        assert_eq!(states.folders_of(&project).last(), Some(&at("19")));
        let mode = states.path_of(&project).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_note_of_somebody_else_or_about_another_project_says_nothing() {
        let top = tempfile::tempdir().unwrap();
        let states = ProjectStates::new(&top.path().join("user"));
        let (one, two) = (top.path().join("one"), top.path().join("two"));
        states.put(&one, &top.path().join("state")).unwrap();
        fs::copy(states.path_of(&one), states.path_of(&two)).unwrap();
        assert!(states.folders_of(&two).is_empty());
        let open = fs::Permissions::from_mode(0o644);
        fs::set_permissions(states.path_of(&one), open).unwrap();
        assert!(states.folders_of(&one).is_empty());
    }
}
