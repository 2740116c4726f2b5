//! Who may decide from here: a person at a terminal, or a script that has the project's key.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use tapegate_store::user_state::{KEY_BYTES, PrivateDir, ProjectKey};

use super::Args;
use super::folder::Project;
use crate::exit::{Exit, Failure};
use crate::{person, talk};

/// What a script may do instead.
const WAY_OUT: &str = "run it in a terminal of your own; a script passes --non-interactive \
                       --key-file FILE, with a key from `tapegate approvals export-key FILE`";

/// Makes sure that whoever runs this may decide.
pub(super) fn check(args: &Args, project: &Project) -> Result<(), Failure> {
    match &args.key_file {
        Some(path) if args.non_interactive => check_key(path, project),
        _ => person::require("deciding about a call", WAY_OUT),
    }
}

/// Writes a copy of the project's key to a new file.
pub(super) fn export_key(project: &Project, path: &str) -> anyhow::Result<Exit> {
    person::require("exporting the project's key", "run it in a terminal of your own")?;
    let key = key_of(project)?;
    let failed = |error| Failure::new(Exit::Io, format!("cannot write `{path}`: {error}"));
    let options = File::options().write(true).create_new(true).mode(0o600).clone();
    options.open(path).and_then(|mut file| file.write_all(key.bytes())).map_err(failed)?;
    talk::say(&format!(
        "whoever can read `{path}` can approve calls of this project; keep it from agents"
    ));
    Ok(Exit::Ok)
}

fn key_of(project: &Project) -> Result<ProjectKey, Failure> {
    let private = PrivateDir::open(project.user_state(), &project.state);
    let key = private.and_then(|private| private.key());
    key.map_err(|error| Failure::new(Exit::Io, error))
}

fn check_key(path: &Path, project: &Project) -> Result<(), Failure> {
    let name = path.display();
    let failed = |error| Failure::new(Exit::Io, format!("cannot read `{name}`: {error}"));
    let file = File::open(path).map_err(failed)?;
    let stat = file.metadata().map_err(failed)?;
    let us = rustix::process::geteuid().as_raw();
    if !stat.is_file() || stat.uid() != us || stat.mode() & 0o077 != 0 {
        let words = format!("cannot trust the key file `{name}`: others may have access to it");
        return Err(Failure::new(Exit::Findings, words)
            .hint(format!("it must be a regular file of yours: chmod 600 {name}")));
    }
    let mut bytes = Vec::new();
    file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let given = <[u8; KEY_BYTES]>::try_from(bytes).ok().map(ProjectKey::new);
    match given == Some(key_of(project)?) {
        true => Ok(()),
        false => Err(Failure::new(Exit::Findings, format!("`{name}` is not this project's key"))
            .hint("`tapegate approvals export-key FILE` makes a copy of it")),
    }
}
