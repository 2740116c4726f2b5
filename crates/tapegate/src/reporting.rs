//! Writing a report to the file that was named for it.

use std::path::{Path, PathBuf};

use tapegate_store::document;

use crate::exit::{Exit, Failure};
use crate::taping::is_same_file;
use crate::views::report::Report;

/// Refuses a report that would overwrite a tape.
pub(crate) fn spares(tapes: &[&Path], reports: &[PathBuf]) -> Result<(), Failure> {
    let overwrites = |report: &&PathBuf| tapes.iter().any(|tape| is_same_file(tape, report));
    match reports.iter().find(overwrites) {
        None => Ok(()),
        Some(report) => {
            let words = format!("--report `{}` would overwrite the tape", report.display());
            Err(Failure::new(Exit::Usage, words).hint("name another file"))
        }
    }
}

/// Writes a report in the format that the file's name asks for. Nobody ever sees half of it.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    document::write(path, &report.written_for(path)).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
    })
}
