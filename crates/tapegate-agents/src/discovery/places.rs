//! Where configs may be, and what is in the files there.

use std::fs;
use std::path::{Path, PathBuf};

use super::DiscoveryContext;
use crate::client_table::{ConfigFile, PathRoot};
use crate::tree::{ConfigFormat, ConfigNode};

/// The largest config that is read.
const BYTES_MAX: u64 = 32 << 20;

impl<'a> DiscoveryContext<'a> {
    /// The current folder and its parents in the same repository.
    pub(crate) fn project_folders(&self) -> impl Iterator<Item = &'a Path> + use<'a> {
        ancestors(self)
    }
}

/// Reads a config; `None` if the file does not exist.
pub(super) fn load(path: &Path) -> Result<Option<String>, String> {
    let about = match fs::metadata(path) {
        Ok(about) => about,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            // A broken link means that a config is missing, which its user wants to know.
            let is_link = path.symlink_metadata().is_ok();
            return if is_link { Err("a link to nothing".to_owned()) } else { Ok(None) };
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotADirectory => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    // Reading a pipe or device could block or have side effects.
    if !about.is_file() {
        return Err("not a regular file".to_owned());
    }
    if about.len() > BYTES_MAX {
        return Err(format!("larger than {} MB", BYTES_MAX >> 20));
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    String::from_utf8(bytes).map(Some).map_err(|_| "not UTF-8".to_owned())
}

/// The current folder and its parents, up to the root of the repository.
pub(super) fn ancestors<'a>(
    context: &DiscoveryContext<'a>,
) -> impl Iterator<Item = &'a Path> + use<'a> {
    let folder = context.folder;
    // Not above the repository: configs there belong to other projects, or to other users.
    let top = folder.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(folder);
    folder.ancestors().take_while(move |folder| folder.starts_with(top))
}

/// The paths at which a config may be.
pub(super) fn candidates(context: &DiscoveryContext<'_>, file: &ConfigFile) -> Vec<PathBuf> {
    places(context, file.root, file.path)
}

/// The content of a file; `None` if it is missing or cannot be parsed.
pub(crate) fn read_tree(path: &Path, format: ConfigFormat) -> Option<ConfigNode> {
    ConfigNode::read(&load(path).ok()??, format).ok()
}

/// The paths from a root.
pub(crate) fn places(context: &DiscoveryContext<'_>, root: PathRoot, path: &str) -> Vec<PathBuf> {
    let variable =
        |name: &str| (context.variable)(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || variable("HOME");
    let roots: Vec<PathBuf> = match root {
        PathRoot::Project => ancestors(context).map(Path::to_owned).collect(),
        PathRoot::Home => home().into_iter().collect(),
        PathRoot::Config => {
            // The specification says that relative paths are to be ignored.
            let named = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
            named.or_else(|| Some(home()?.join(".config"))).into_iter().collect()
        }
        PathRoot::Variable(name, otherwise) => {
            variable(name).or_else(|| Some(home()?.join(otherwise))).into_iter().collect()
        }
        PathRoot::File(name) => variable(name).into_iter().collect(),
        PathRoot::System => vec![PathBuf::from("/")],
    };
    roots.iter().flat_map(|root| matching(root, path)).collect()
}

/// The path, or every path that matches if a component contains a `*`.
fn matching(root: &Path, path: &str) -> Vec<PathBuf> {
    let mut found = vec![root.to_owned()];
    for part in path.split('/').filter(|part| !part.is_empty()) {
        let Some((start, end)) = part.split_once('*') else {
            found.iter_mut().for_each(|folder| folder.push(part));
            continue;
        };
        let mut deeper = Vec::new();
        for folder in found {
            // A folder that does not exist or cannot be read holds no configs.
            let Ok(inside) = fs::read_dir(&folder) else { continue };
            let names = inside.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let fits = |name: &String| {
                name.len() >= start.len() + end.len()
                    && name.starts_with(start)
                    && name.ends_with(end)
            };
            deeper.extend(names.filter(fits).map(|name| folder.join(name)));
        }
        // The order of a folder is arbitrary, and the first of two equal servers counts.
        deeper.sort();
        found = deeper;
    }
    found
}
