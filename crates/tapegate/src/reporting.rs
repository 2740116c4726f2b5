//! Writing a report to the files that were named for it.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use tapegate_core::tape::Line;
use tapegate_store::document;
use tapegate_store::source::Source;

use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;
use crate::views::report::Report;

/// Looks whether reports can have their places, before `tape`, or whatever it is, is played for them.
pub(crate) fn look_for_places(paths: &[PathBuf], tape: &Path, what: &str) -> Result<(), Failure> {
    for path in paths {
        if is_same_file(tape, path) {
            let words = format!("--report names the {what} that is played, which is never touched");
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

/// Writes a report to every file that was named for it.
pub(crate) fn write_all(report: &Report, paths: &[PathBuf]) -> Result<(), Failure> {
    paths.iter().try_for_each(|path| write(report, path))
}

/// Finds the lines of the messages that a report is about. They are a help to whoever looks at the
/// tape, and no more: what cannot be found is left out.
pub(crate) fn locate(report: &mut Report) {
    let cases = || report.suites.iter().flat_map(|suite| &suite.cases);
    let mut wanted: HashMap<u32, Option<u64>> =
        cases().filter_map(|case| Some((case.place.number?, None))).collect();
    let mut left = wanted.len();
    if left == 0 || !report.tape.is_file() {
        return;
    }
    let Ok(mut source) = Source::open(&report.tape, Box::new(|_, _| {})) else { return };
    while let (true, Some(next)) = (left > 0, source.reader.next()) {
        let Ok(entry) = next else { continue };
        let Line::Message(message) = &entry.entry else { continue };
        let number = u32::try_from(message.seq.unwrap_or(entry.line)).unwrap_or(u32::MAX);
        if let Some(line @ None) = wanted.get_mut(&number) {
            *line = Some(entry.line);
            left -= 1;
        }
    }
    for case in report.suites.iter_mut().flat_map(|suite| &mut suite.cases) {
        case.place.line = case.place.number.and_then(|number| *wanted.get(&number)?);
    }
}

/// Writes a report in the format that the file's name asks for. Nobody ever sees half of it.
fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    document::write(path, &report.written_for(path)).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
}
