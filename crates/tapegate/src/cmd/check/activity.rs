//! Checks an activity log.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_core::tape::TapeSeverity;
use tapegate_store::activity::{self, ChainFault, LogFile, LogReport, LogVerifier};

use super::Args;
use super::report::{CheckReport, FileSummary, FindingContext, ReportFinding};
use crate::exit::Exit;
use crate::views::plural;

/// How many times the log may rotate while its files are being opened.
const TRIES_MAX: usize = 100;

/// Checks a log and prints the findings.
pub(super) fn check(
    args: &Args,
    path: &Path,
    stdin: Option<Box<dyn Read>>,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let mut stdin = stdin.map(|bytes| Box::new(BufReader::new(bytes)) as Box<dyn BufRead>);
    let (files, mut current) = match &stdin {
        Some(_) => (vec![path.to_owned()], None),
        None => open_log(path)?,
    };
    let whole = path.is_dir() || is_current(path);
    let mut verifier =
        LogVerifier::default().with_partial(!whole).expect_head(args.expect_head.clone());
    for file in &files {
        let text = match stdin.take() {
            Some(stdin) => Ok(stdin),
            None => match is_current(file) {
                // Opened when the files were listed: a rotation since then must not change what is
                // checked.
                true => current.take().map_or_else(|| activity::open_file(file), Ok),
                false => activity::open_file(file),
            },
        };
        text.and_then(|text| verifier.file(text))
            .with_context(|| format!("cannot read `{}`", file.display()))?;
    }
    let report = verifier.finish();
    print(args, path, &files, &report, out)?;
    let is_odd = report.findings.iter().any(|found| found.severity == TapeSeverity::Warning);
    let nothing = report.findings.iter().any(|found| found.fault == ChainFault::NotAnEvent);
    Ok(match report.is_bad() {
        // Another kind of file, which is a mistake of the command line and not a damaged log.
        true if report.events == 0 && nothing => Exit::Invalid,
        true => Exit::Findings,
        false if args.strict && is_odd => Exit::Findings,
        false => Exit::Ok,
    })
}

/// Whether a path names a log file, or a folder that contains one.
pub(super) fn is_log(path: &Path) -> bool {
    match path.is_dir() {
        true => activity::parts(path).is_ok_and(|parts| !parts.is_empty()),
        false => LogFile::of(path).is_some(),
    }
}

/// Parses a hash as it is written in a log.
pub(super) fn head(text: &str) -> Result<String, String> {
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() == 64 && is_hex {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("expected the 64 hexadecimal digits of a hash".to_owned()),
    }
}

/// The files of a log, and the current one already open, if there is one.
type OpenedLog = (Vec<PathBuf>, Option<Box<dyn BufRead>>);

/// The files to check, with the current one already open: the log may rotate while the older files
/// are read, and the file that then has the current name does not continue them.
fn open_log(path: &Path) -> anyhow::Result<OpenedLog> {
    let mut found = files(path)?;
    for _ in 0..TRIES_MAX {
        let current = match found.last().filter(|file| is_current(file)) {
            None => return Ok((found, None)),
            Some(file) => activity::open_file(file),
        };
        // The current file may have been rotated between listing and opening it; then a file would
        // be checked twice or not at all.
        let by_now = files(path)?;
        if by_now == found {
            let name = found.last().map_or(path, PathBuf::as_path).display();
            let current = current.with_context(|| format!("cannot read `{name}`"))?;
            return Ok((found, Some(current)));
        }
        // A rotation was in between; the next listing is consistent, unless it rotates again.
        found = by_now;
    }
    Ok((found, None))
}

fn is_current(file: &Path) -> bool {
    LogFile::of(file).is_some_and(|part| part.is_current())
}

/// The files to check: for the current file, also all rotated files before it.
fn files(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let named = is_current(path);
    let folder = match path.is_dir() {
        true => path,
        false if !named => return Ok(vec![path.to_owned()]),
        false => path.parent().filter(|it| !it.as_os_str().is_empty()).unwrap_or(Path::new(".")),
    };
    let parts =
        activity::parts(folder).with_context(|| format!("cannot read `{}`", folder.display()))?;
    let mut files: Vec<PathBuf> = parts.into_iter().map(|part| part.path).collect();
    if named {
        // Use the path as given, even if it does not exist, so that a missing file is reported.
        files.retain(|file| !is_current(file));
        files.push(path.to_owned());
    }
    Ok(files)
}

fn print(
    args: &Args,
    path: &Path,
    files: &[PathBuf],
    log: &LogReport,
    out: &mut dyn Write,
) -> std::io::Result<()> {
    let names: Vec<_> = files.iter().map(|file| file.to_string_lossy()).collect();
    let main = path.to_string_lossy();
    let found = log.findings.iter().map(|found| ReportFinding {
        file: Some(names.get(found.file).unwrap_or(&main)),
        line: found.line,
        severity: found.severity,
        message: &found.message,
        detail: FindingContext::Fault(found.fault.as_str()),
    });
    let report = CheckReport { kind: "log", main: &main, findings: found.collect() };
    let mut text = plural(log.events, "event");
    let mut members = vec![("files", files.len().into()), ("events", log.events.into())];
    members.extend(report.counts());
    if files.len() > 1 {
        text += &format!(" in {} files", files.len());
    }
    if let Some(since) = log.since_head {
        text += &format!(", {since} since the expected head");
        members.push(("events_since_head", since.into()));
    }
    if let Some(head) = &log.head {
        text += &format!(", head {}", head.text());
        members.extend([("seq", head.seq.into()), ("head", head.text().into())]);
    }
    report.print(args, Some(FileSummary { text, members }), out)
}
