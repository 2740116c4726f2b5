//! `tapegate check`: validates tapes, logs, scenarios, policies and lock files.

mod activity;
mod cases;
mod folder;
mod lock;
mod policy;
mod report;
mod scenario;
mod stdin;
mod tape;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::json;
use tapegate_scenario::load::ScenarioFileKind;
use tapegate_store::input;

use crate::entry_limit::EntryArgs;
use crate::exit::{self, Exit, Failure};
use crate::local_files;
use crate::views::json_list::JsonList;
use crate::views::plural;

/// Check tapes, logs, scenarios and policies, and report every fault with its line
///
/// An error means that a tape is incomplete or misleading, that a scenario cannot be served, or
/// that a policy cannot be enforced. A warning means that something is unusual but was handled,
/// such as a torn last line after a crash, or may be a mistake. A note is for information.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate check session.jsonl
  tapegate check tapes/
  tapegate check .                           the policy, log and tapes of a project
  zcat session.jsonl.gz | tapegate check -
  tapegate check --strict scenario.yaml
  tapegate check .tapegate/activity.jsonl --expect-head 9f2c…
  tapegate check tapegate.yaml
  tapegate check --schema > scenario.schema.json
  tapegate check --schema=policy > policy.schema.json
  tapegate check --format jsonl tapes/*.jsonl | jq -c 'select(.severity == \"error\")'

Exit codes: 0 no errors, 1 at least one error, 2 a file is not an activity log, or a folder has
nothing to check, 3 a file could not be read, or is a pipe or a device.")]
pub(crate) struct Args {
    /// The files to check: tapes of any dialect, plain or gzip; activity logs, with their older
    /// files; scenarios, policies and policy tests (.yaml or .yml); lock files; folders, for the
    /// policy, the lock file, the logs and the tapes in them; `-` for standard input
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: CheckFormat,
    /// Count warnings as errors
    #[arg(long)]
    strict: bool,
    /// Report everything in a scenario that TJ-SPEC-001 does not define
    #[arg(long)]
    strict_001: bool,
    /// Require that the activity log contains this head: the hash of an event that was once the
    /// last
    #[arg(long, value_name = "HASH", value_parser = activity::head)]
    expect_head: Option<String>,
    /// Print the JSON Schema of scenarios, or of policies, for completion and checks in editors
    #[arg(
        long,
        exclusive = true,
        value_enum,
        value_name = "OF",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "scenario"
    )]
    schema: Option<YamlLanguage>,
    #[command(flatten)]
    entries: EntryArgs,
    /// The folder in which `$include` looks for files [default: library]
    #[arg(long, value_name = "DIR")]
    library: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum CheckFormat {
    Text,
    Json,
    Jsonl,
}

/// What is written in YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum YamlLanguage {
    Scenario,
    Policy,
}

/// The kind of a file, as detected.
enum FileKind {
    Tape,
    Activity,
    Policy,
    Cases,
    Lock,
    Scenario(ScenarioFileKind),
}

/// The kinds of files that were checked, for flags that apply only to some kinds.
#[derive(Debug, Default)]
struct SeenKinds {
    logs: bool,
    scenarios: bool,
}

/// The folder for `$include` without --library.
const LIBRARY: &str = "library";
/// How many bytes of a file are read to detect its kind.
const HEAD_BYTES: u64 = 1 << 20;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    if let Some(language) = args.schema {
        let schema = match language {
            YamlLanguage::Scenario => tapegate_scenario::shape::schema(),
            YamlLanguage::Policy => tapegate_policy::load::schema(),
        };
        out.write_all(schema.as_bytes())?;
    }
    let mut list = match args.format {
        CheckFormat::Json if args.schema.is_none() => JsonList::document(out),
        _ => JsonList::lines(out),
    };
    let exit = check_all(args, &mut list);
    list.finish()?;
    exit
}

fn check_all(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let mut exit = Exit::Ok;
    let mut seen = SeenKinds::default();
    for named_path in &args.files {
        let paths = folder::expand(named_path).or_else(|error| {
            let failed = report_failure(args, named_path, &error, out)?;
            exit = worse_of(exit, failed);
            Ok::<_, io::Error>(Vec::new())
        })?;
        for path in paths {
            let came = match check_one(args, &path, &mut seen, out) {
                Ok(came) => came,
                // One file that cannot be read must not hide the faults of the others.
                Err(error) => report_failure(args, &path, &error, out)?,
            };
            // The worst code wins, so that CI sees a fault in any of the files.
            exit = worse_of(exit, came);
        }
    }
    let message = match () {
        () if args.expect_head.is_some() && !seen.logs => {
            "--expect-head needs an activity log, but none of the files is one"
        }
        () if args.strict_001 && !seen.scenarios => {
            "--strict-001 needs a scenario, but none of the files is one"
        }
        () if args.library.is_some() && !seen.scenarios => {
            "--library needs a scenario, but none of the files is one"
        }
        () => return Ok(exit),
    };
    Err(Failure::new(Exit::Usage, message).into())
}

fn check_one(
    args: &Args,
    path: &Path,
    seen: &mut SeenKinds,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    local_files::refuse_special_file(path)?;
    // Before its kind is detected, because standard input can be read only once.
    let mut input = stdin::CheckInput::open(path)?;
    let kind = kind(path, &input)?;
    seen.logs |= matches!(kind, FileKind::Activity);
    seen.scenarios |= matches!(kind, FileKind::Scenario(_));
    check(args, path, kind, &mut input, out)
}

/// Reports why a file could not be checked. The other files are still checked.
fn report_failure(
    args: &Args,
    path: &Path,
    error: &anyhow::Error,
    out: &mut dyn Write,
) -> io::Result<Exit> {
    if args.format != CheckFormat::Text {
        let (name, message) = (path.to_string_lossy(), format!("{error:#}"));
        let object = json!({"file": name, "line": 0, "severity": "error", "finding": message});
        writeln!(out, "{object}")?;
    }
    out.flush()?;
    Ok(exit::explain(error))
}

fn worse_of(one: Exit, two: Exit) -> Exit {
    if two.code() > one.code() { two } else { one }
}

/// Checks one file.
fn check(
    args: &Args,
    path: &Path,
    kind: FileKind,
    input: &mut stdin::CheckInput,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let limits = local_files::limits()?;
    let is_bad = match kind {
        FileKind::Tape => tape::check(args, path, input.stream(), out)?,
        FileKind::Activity => return activity::check(args, path, input.stream(), out),
        FileKind::Policy => {
            policy::check(args, path, &input.local_files(limits.config_bytes)?, out)?
        }
        FileKind::Cases => cases::check(args, path, &input.local_files(limits.config_bytes)?, out)?,
        FileKind::Lock => lock::check(args, path, out)?,
        FileKind::Scenario(form) => {
            scenario::check(args, path, form, &input.local_files(limits.config_bytes)?, out)?
        }
    };
    Ok(if is_bad { Exit::Findings } else { Exit::Ok })
}

/// Detects the kind of a file from its name or its first bytes.
fn kind(path: &Path, input: &stdin::CheckInput) -> anyhow::Result<FileKind> {
    if activity::is_log(path) {
        return Ok(FileKind::Activity);
    }
    let head = match input.head() {
        Some(head) => head.to_owned(),
        None => head(path).with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml")
        || input.head().is_some_and(stdin::looks_like_yaml);
    // By content too: a log may have been copied or renamed. Any line will do, since the first may
    // be torn.
    if head.split(|byte| *byte == b'\n').any(tapegate_store::activity::is_line) {
        return Ok(FileKind::Activity);
    }
    let has = |key: &[u8]| head.split(|byte| *byte == b'\n').any(|line| line.starts_with(key));
    if cases::is_named(path) || is_yaml && has(b"cases:") {
        return Ok(FileKind::Cases);
    }
    // After the contents: a log that was named `.lock` is still one.
    if path.extension().is_some_and(|end| end == "lock") {
        return Ok(FileKind::Lock);
    }
    // `schema` alone also occurs in JSON on tapes.
    let is_policy = has(b"governance:") || is_yaml && has(b"schema:");
    if policy::is_named(path) || is_policy && !has(b"server:") {
        return Ok(FileKind::Policy);
    }
    Ok(match (is_yaml, has(b"server:"), has(b"tool:")) {
        (true, false, true) => FileKind::Scenario(ScenarioFileKind::Tool),
        (true, _, _) | (false, true, _) => FileKind::Scenario(ScenarioFileKind::Scenario),
        (false, false, true) => FileKind::Scenario(ScenarioFileKind::Tool),
        (false, false, false) => FileKind::Tape,
    })
}

/// The first bytes of a file.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// The result in a few words.
fn verdict(errors: usize, warnings: usize, strict: bool) -> String {
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) if strict => {
            format!("not ok with --strict: {}", plural(warnings, "warning"))
        }
        (0, warnings) => format!("ok with {}", plural(warnings, "warning")),
        (errors, _) => plural(errors, "error"),
    }
}
