//! Writing a report to the file that was named for it.

use std::path::Path;

use tapegate_store::document;

use crate::exit::{Exit, Failure};
use crate::views::report::Report;

/// Writes a report in the format that the file's name asks for. Nobody ever sees half of it.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    document::write(path, &report.written_for(path)).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
    })
}
