//! Writing a report to the file that was named for it.

use std::io;
use std::path::{Path, PathBuf};

use tapegate_store::document;

use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;
use crate::views::report::Report;

/// Looks whether reports can have their places, before `tape` is played for them.
pub(crate) fn look_for_places(paths: &[PathBuf], tape: &Path) -> Result<(), Failure> {
    for path in paths {
        if is_same_file(tape, path) {
            let words = "--report names the tape that is played, which is never touched";
            return Err(Failure::new(Exit::Usage, words).hint("name another file"));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        folder.metadata().map_err(|error| unwritable(path, &error))?;
        if path.is_dir() {
            return Err(unwritable(path, &rustix::io::Errno::ISDIR.into()));
        }
    }
    Ok(())
}

/// Writes a report in the format that the file's name asks for. Nobody ever sees half of it.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    document::write(path, &report.written_for(path)).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
}
