//! `tapegate check`: validates tapes, logs, scenarios, policies and lock files.

mod activity;
mod cases;
mod findings;
mod lock;
mod policy;
mod scenario;
mod stdin;
mod tape;

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_core::json::write_str;
use tapegate_scenario::load::Form;
use tapegate_store::input;

use crate::cmd::policy::backtest::shelf;
use crate::disk;
use crate::entries::EntryArgs;
use crate::exit::{self, Exit, Failure};
use crate::views::json_list::JsonList;

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
  zcat session.jsonl.gz | tapegate check -
  tapegate check --strict scenario.yaml
  tapegate check .tapegate/activity.jsonl --expect-head 9f2c…
  tapegate check tapegate.yaml
  tapegate check --schema > scenario.schema.json
  tapegate check --schema=policy > policy.schema.json
  tapegate check --format jsonl tapes/*.jsonl | jq -c 'select(.severity == \"error\")'

Exit codes: 0 no errors, 1 at least one error, 2 a file is not an activity log, or a folder has no
tape, 3 a file could not be read, or is a pipe or a device.")]
pub(crate) struct Args {
    /// The files to check: tapes of any dialect, plain or gzip; activity logs, with their older
    /// files; scenarios, policies and policy tests (.yaml or .yml); lock files; folders, for the
    /// log and the tapes in them; `-` for standard input
    #[arg(required_unless_present = "schema", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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
    schema: Option<Language>,
    #[command(flatten)]
    entries: EntryArgs,
    /// The folder in which `$include` looks for files
    #[arg(long, value_name = "DIR", default_value = "library")]
    library: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Jsonl,
}

/// What is written in YAML.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Language {
    Scenario,
    Policy,
}

/// The kind of a file, as detected.
enum Kind {
    Tape,
    Activity,
    Policy,
    Cases,
    Lock,
    Scenario(Form),
}

/// The kinds of files that were checked, for flags that apply only to some kinds.
#[derive(Debug, Default)]
struct SeenKinds {
    logs: bool,
    scenarios: bool,
}

/// How many bytes of a file are read to detect its kind.
const HEAD_BYTES: u64 = 1 << 20;

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    if let Some(language) = args.schema {
        let schema = match language {
            Language::Scenario => tapegate_scenario::shape::schema(),
            Language::Policy => tapegate_policy::load::schema(),
        };
        out.write_all(schema.as_bytes())?;
    }
    let mut list = match args.format {
        Format::Json if args.schema.is_none() => JsonList::document(out),
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
        let paths = named(named_path).or_else(|error| {
            let failed = failed(args, named_path, &error, out)?;
            exit = worse(exit, failed);
            Ok::<_, io::Error>(Vec::new())
        })?;
        for path in paths {
            let came = match check_one(args, &path, &mut seen, out) {
                Ok(came) => came,
                Err(error) => failed(args, &path, &error, out)?,
            };
            exit = worse(exit, came);
        }
    }
    let words = match () {
        () if args.expect_head.is_some() && !seen.logs => {
            "--expect-head needs an activity log, but none of the files is one"
        }
        () if args.strict_001 && !seen.scenarios => {
            "--strict-001 needs a scenario, but none of the files is one"
        }
        () => return Ok(exit),
    };
    Err(Failure::new(Exit::Usage, words).into())
}

fn check_one(
    args: &Args,
    path: &Path,
    seen: &mut SeenKinds,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    disk::refuse_special_file(path)?;
    let mut input = stdin::Input::open(path)?;
    let kind = kind(path, &input)?;
    seen.logs |= matches!(kind, Kind::Activity);
    seen.scenarios |= matches!(kind, Kind::Scenario(_));
    check(args, path, kind, &mut input, out)
}

/// Reports why a file could not be checked. The other files are still checked.
fn failed(
    args: &Args,
    path: &Path,
    error: &anyhow::Error,
    out: &mut dyn Write,
) -> io::Result<Exit> {
    if args.format != Format::Text {
        let (name, words) = (quoted(&path.to_string_lossy()), quoted(&format!("{error:#}")));
        writeln!(out, "{{\"file\":{name},\"line\":0,\"severity\":\"error\",\"finding\":{words}}}")?;
    }
    out.flush()?;
    Ok(exit::explain(error))
}

fn worse(one: Exit, two: Exit) -> Exit {
    if two.code() > one.code() { two } else { one }
}

/// Expands a path: a file stands for itself, a folder for the log and the tapes in it.
fn named(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let is_log = activity::is_log(path);
    let mut all = Vec::new();
    if is_log || !path.is_dir() {
        all.push(path.to_owned());
    }
    if path.is_dir() {
        match shelf::in_folder(path) {
            Ok(found) => all.extend(found.into_iter().filter(|path| !activity::is_log(path))),
            // A folder may contain only a log.
            Err(_) if is_log => {}
            Err(failure) => return Err(failure.into()),
        }
    }
    Ok(all)
}

/// Checks one file.
fn check(
    args: &Args,
    path: &Path,
    kind: Kind,
    input: &mut stdin::Input,
    out: &mut dyn Write,
) -> anyhow::Result<Exit> {
    let limits = disk::limits()?;
    let is_bad = match kind {
        Kind::Tape => tape::check(args, path, input.stream(), out)?,
        Kind::Activity => return activity::check(args, path, input.stream(), out),
        Kind::Policy => policy::check(args, path, &input.disk(limits.config_bytes)?, out)?,
        Kind::Cases => cases::check(args, path, &input.disk(limits.config_bytes)?, out)?,
        Kind::Lock => lock::check(args, path, out)?,
        Kind::Scenario(form) => {
            scenario::check(args, path, form, &input.disk(limits.config_bytes)?, out)?
        }
    };
    Ok(if is_bad { Exit::Findings } else { Exit::Ok })
}

/// Detects the kind of a file from its name or its first bytes.
fn kind(path: &Path, input: &stdin::Input) -> anyhow::Result<Kind> {
    if activity::is_log(path) {
        return Ok(Kind::Activity);
    }
    let head = match input.head() {
        Some(head) => head.to_owned(),
        None => head(path).with_context(|| format!("cannot read `{}`", path.display()))?,
    };
    let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml")
        || input.head().is_some_and(stdin::looks_like_yaml);
    if head.split(|byte| *byte == b'\n').any(tapegate_store::activity::is_line) {
        return Ok(Kind::Activity);
    }
    let has = |key: &[u8]| head.split(|byte| *byte == b'\n').any(|line| line.starts_with(key));
    if cases::is_named(path) || is_yaml && has(b"cases:") {
        return Ok(Kind::Cases);
    }
    if path.extension().is_some_and(|end| end == "lock") {
        return Ok(Kind::Lock);
    }
    let is_policy = has(b"governance:") || is_yaml && has(b"schema:");
    if policy::is_named(path) || is_policy && !has(b"server:") {
        return Ok(Kind::Policy);
    }
    Ok(match (is_yaml, has(b"server:"), has(b"tool:")) {
        (true, false, true) => Kind::Scenario(Form::Tool),
        (true, _, _) | (false, true, _) => Kind::Scenario(Form::Scenario),
        (false, false, true) => Kind::Scenario(Form::Tool),
        (false, false, false) => Kind::Tape,
    })
}

/// The first bytes of a file.
fn head(path: &Path) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    input::open(path)?.take(HEAD_BYTES).read_to_end(&mut head)?;
    Ok(head)
}

/// The result in a few words.
fn verdict(errors: usize, warnings: usize) -> String {
    match (errors, warnings) {
        (0, 0) => "ok".to_owned(),
        (0, warnings) => format!("ok with {}", counted(warnings, "warning")),
        (errors, _) => counted(errors, "error"),
    }
}

/// A count with its noun, in the plural where needed.
fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

/// Encodes text as a JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    write_str(&mut quoted, text);
    String::from_utf8(quoted).unwrap_or_default()
}
