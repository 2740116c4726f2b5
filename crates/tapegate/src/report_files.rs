//! Writes a report to the files named for it.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use tapegate_core::tape::TapeLine;
use tapegate_store::atomic_file;
use tapegate_store::tape_source::TapeSource;

use crate::exit::{Exit, Failure};
use crate::tape_loader::is_same_file;
use crate::terminal_output;
use crate::verbosity;
use crate::views::report::{MergeError, ReportFormat, RunReport};

/// How many bytes of a file are read to recognize it as a report.
const HEAD_BYTES: u64 = 1024;

/// Checks that reports can be written, before the `tape` (or scenario) is played for them.
pub(crate) fn check_report_paths(
    paths: &[PathBuf],
    tape: &Path,
    what: &str,
) -> Result<(), Failure> {
    for (index, path) in paths.iter().enumerate() {
        // A start would be added to it more than once.
        if paths[..index].iter().any(|other| is_same_target(other, path)) {
            let message_text = format!("--report names `{}` more than once", path.display());
            return Err(Failure::new(Exit::Usage, message_text).hint("name each file once"));
        }
        if is_same_file(tape, path) {
            let message_text =
                format!("--report names the {what} being played, which is never changed");
            return Err(Failure::new(Exit::Usage, message_text).hint("name another file"));
        }
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            fs::create_dir_all(folder).map_err(|error| unwritable(path, &error))?;
        }
        if path.is_dir() {
            return Err(unwritable(path, &rustix::io::Errno::ISDIR.into()));
        }
        if is_named_pipe(path) {
            let message_text = format!("`{}` is a pipe, not a regular file", path.display());
            return Err(Failure::new(Exit::Usage, message_text).hint("name a file for --report"));
        }
        // A typo such as `--report tapegate.yaml` must not destroy the file.
        refuse_foreign_file(path)?;
    }
    Ok(())
}

/// Whether a path is a pipe in a folder. Opening one waits for a reader, which may never come. The
/// pipes of a shell's `>(…)` have no place in a folder, and are open already.
fn is_named_pipe(path: &Path) -> bool {
    let place = fs::canonicalize(path);
    place.and_then(|place| place.metadata()).is_ok_and(|there| there.file_type().is_fifo())
}

/// Whether two paths name one file, which may not exist yet.
fn is_same_target(one: &Path, two: &Path) -> bool {
    let target = |path: &Path| {
        fs::canonicalize(path).ok().or_else(|| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
            Some(folder.join(path.file_name()?))
        })
    };
    one == two || target(one).is_some_and(|one| target(two) == Some(one))
}

/// Whether a file with this beginning is one of our reports: JSON, JUnit or SARIF.
fn is_report(head: &[u8]) -> bool {
    let has = |mark: &[u8]| head.windows(mark.len()).any(|window| window == mark);
    head.starts_with(b"{\n  \"tool\": \"tapegate\"")
        || has(b"<testsuites name=\"tapegate ")
        || has(b"/sarif-schema-") && has(b"\"driver\": {\n          \"name\": \"tapegate\"")
}

/// Refuses to replace a file that is not one of our reports, such as a policy or a tape.
fn refuse_foreign_file(path: &Path) -> Result<(), Failure> {
    // Pipes and devices have no content to lose.
    let Ok(there) = path.metadata() else { return Ok(()) };
    if !there.is_file() || there.len() == 0 {
        return Ok(());
    }
    let mut head = Vec::new();
    let file = File::open(path).map_err(|error| unwritable(path, &error))?;
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(|error| unwritable(path, &error))?;
    if is_report(&head) || head.trim_ascii().is_empty() {
        return Ok(());
    }
    let message_text =
        format!("`{}` exists and is not a Tapegate report, so it is not replaced", path.display());
    Err(Failure::new(Exit::Usage, message_text)
        .hint("name another file for --report, or delete that one"))
}

/// Writes a report to every file named for it.
pub(crate) fn write_all(report: &RunReport, paths: &[PathBuf]) -> Result<(), Failure> {
    paths.iter().try_for_each(|path| write(report, path))
}

/// How the report of a server meets one that is there: a client may start its server more than once.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// What to do with an existing report: `merge` adds this start to it, and `new` replaces it
    #[arg(long, value_enum, value_name = "MODE", default_value = "merge", requires = "report")]
    report_mode: ReportMode,
    /// The run that this start belongs to: a report of the same run is merged, a report of another
    /// run is replaced
    #[arg(long, value_name = "ID", requires = "report", value_parser = run_id)]
    pub(crate) run_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReportMode {
    Merge,
    New,
}

/// The number of this start in each report, in the order of the reports.
#[derive(Debug, Default)]
pub(crate) struct Registration(Vec<Option<u64>>);

/// Adds a start that has just begun to every named report, so that it is listed even if the process
/// is killed.
pub(crate) fn register(
    report: RunReport,
    paths: &[PathBuf],
    run: &RunArgs,
) -> Result<Registration, Failure> {
    let mut report = report.unfinished();
    // Before the first is written: a start that is refused must not be listed anywhere.
    paths.iter().try_for_each(|path| check_mergeable(&report, path, run))?;
    let mut numbers = Vec::new();
    for path in paths {
        // What is written to a pipe cannot be replaced later.
        let is_file = path.metadata().map_or(true, |there| there.is_file());
        let number = if is_file { Some(add(&mut report, path, run)?) } else { None };
        numbers.push(number);
    }
    Ok(Registration(numbers))
}

/// Adds the result of a start to every named report, without hiding what earlier starts of the same
/// run found.
pub(crate) fn add_to_all(
    report: &mut RunReport,
    paths: &[PathBuf],
    run: &RunArgs,
    registration: &Registration,
) -> Result<(), Failure> {
    for (index, path) in paths.iter().enumerate() {
        let number = registration.0.get(index).copied().flatten();
        report.start.iter_mut().for_each(|start| start.registered = number);
        add(report, path, run)?;
    }
    Ok(())
}

/// Adds a start to one report, and returns its number there.
fn add(report: &mut RunReport, path: &Path, run: &RunArgs) -> Result<u64, Failure> {
    let (mut added, mut refused, begins) = (None, false, report.is_unfinished());
    let next = |there: Option<Vec<u8>>| {
        let there = there
            .filter(|there| run.report_mode == ReportMode::Merge && !there.trim_ascii().is_empty());
        let Some(there) = there else { return Some(report.format_for(path)) };
        match report.append_to(path, &there) {
            Ok(bytes) => {
                let number = report.start.as_ref().map_or(1, |start| start.number);
                added = (number > 1 && !begins).then_some(number);
                Some(bytes)
            }
            Err(MergeError::OtherRun) => Some(report.format_for(path)),
            Err(MergeError::Unreadable) => {
                refused = true;
                None
            }
        }
    };
    // Under a lock: a client may start two servers that report to one file at once.
    atomic_file::update(path, next).map_err(|error| unwritable(path, &error))?;
    if refused {
        return Err(unmergeable(path, report.command));
    }
    if let Some(number) = added.filter(|_| !verbosity::is_quiet()) {
        let name = path.display();
        terminal_output::info(&format!(
            "added to the report `{name}` as start {number}; delete the file to begin a new run"
        ));
    }
    let number = report.start.as_ref().map_or(1, |start| start.number);
    // The next file has its own starts and run.
    if let Some(start) = &mut report.start {
        (start.number, start.run_id) = (1, run.run_id.clone());
    }
    Ok(number)
}

fn check_mergeable(report: &RunReport, path: &Path, run: &RunArgs) -> Result<(), Failure> {
    if run.report_mode == ReportMode::New || !path.is_file() {
        return Ok(());
    }
    let there = fs::read(path).map_err(|error| unwritable(path, &error))?;
    match report.clone().append_to(path, &there) {
        Err(MergeError::Unreadable) if !there.trim_ascii().is_empty() => {
            Err(unmergeable(path, report.command))
        }
        _ => Ok(()),
    }
}

/// A report that this start cannot be added to may hold the failure of an earlier one.
fn unmergeable(path: &Path, command: &str) -> Failure {
    let format = ReportFormat::of(path);
    let message_text = format!(
        "`{}` is not a whole {format} report of `{command}`, so this start cannot be added to it",
        path.display()
    );
    Failure::new(Exit::Usage, message_text).hint(
        "name another file for --report, delete that one, or pass --report-mode new to replace it",
    )
}

fn run_id(text: &str) -> Result<String, String> {
    match text {
        "" => Err("must not be empty".to_owned()),
        text if text.chars().any(char::is_control) => {
            Err("must not hold control characters".to_owned())
        }
        text => Ok(text.to_owned()),
    }
}

/// Finds the lines of the messages that a report is about, as a help for readers of the tape. Lines
/// that cannot be found are left out.
pub(crate) fn locate_lines(report: &mut RunReport) {
    let cases = || report.suites.iter().flat_map(|suite| &suite.cases);
    let mut wanted: HashMap<u32, Option<u64>> =
        cases().filter_map(|case| Some((case.position.number?, None))).collect();
    let mut left = wanted.len();
    // A pipe cannot be read a second time.
    if left == 0 || !report.tape.is_file() {
        return;
    }
    let Ok(mut source) = TapeSource::open(&report.tape, Box::new(|_, _| {})) else { return };
    while let (true, Some(next)) = (left > 0, source.reader.next()) {
        let Ok(entry) = next else { continue };
        let TapeLine::Message(message) = &entry.entry else { continue };
        let number = u32::try_from(message.seq.unwrap_or(entry.line)).unwrap_or(u32::MAX);
        if let Some(line @ None) = wanted.get_mut(&number) {
            *line = Some(entry.line);
            left -= 1;
        }
    }
    for case in report.suites.iter_mut().flat_map(|suite| &mut suite.cases) {
        case.position.line = case.position.number.and_then(|number| *wanted.get(&number)?);
    }
}

/// Atomically writes a report in the format that the file name asks for.
fn write(report: &RunReport, path: &Path) -> Result<(), Failure> {
    atomic_file::write(path, &report.format_for(path)).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::new(Exit::Io, format!("cannot write the report `{}`: {error}", path.display()))
}
