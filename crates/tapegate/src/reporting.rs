//! Writing a report to the file that was named for it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::exit::{Exit, Failure};
use crate::views::report::Report;

/// Writes a report in the format that the file's name asks for. Nobody ever sees half of it.
pub(crate) fn write(report: &Report, path: &Path) -> Result<(), Failure> {
    put(path, &report.written_for(path)).map_err(|error| {
        Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
    })
}

fn put(path: &Path, text: &[u8]) -> io::Result<()> {
    // A pipe or a terminal cannot be replaced, and need not be.
    if fs::metadata(path).is_ok_and(|file| !file.is_file()) {
        return File::options().write(true).open(path)?.write_all(text);
    }
    let fresh = beside(path);
    let done = File::create(&fresh).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&fresh, path)
    });
    if done.is_err() {
        // What is left of it is of no use; that it cannot be removed is not the error to tell.
        fs::remove_file(&fresh).ok();
    }
    done
}

/// A name in the same folder that nobody else uses.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}
