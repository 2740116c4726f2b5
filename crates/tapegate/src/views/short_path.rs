//! Paths as people write them.

use std::path::Path;

/// A path for display, relative to the current folder or with the home folder as `~`.
pub(crate) fn shorten_path(path: &Path, folder: &Path, home: Option<&Path>) -> String {
    let in_home = home.and_then(|home| path.strip_prefix(home).ok());
    match (in_home, path.strip_prefix(folder).ok()) {
        // Use whichever form is shorter.
        (Some(short), Some(long)) if short.as_os_str().len() > long.as_os_str().len() => {
            long.display().to_string()
        }
        (Some(inside), _) => format!("~/{}", inside.display()),
        (None, Some(inside)) => inside.display().to_string(),
        (None, None) => path.display().to_string(),
    }
}
