//! `sessions generate`.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tapegate_bash::recording::session_reader::{self, SessionPath};
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_policy::command_rules::recorded::{self, GeneratedCommands, StoppedCommand};
use tapegate_policy::decide::DecisionOutcome;
use tapegate_policy::load;
use tapegate_policy::model::Policy;
use tapegate_shell::generate::{GenerationStrategy, RecordedCommands, render_json, render_yaml};
use tapegate_store::atomic_file;

use super::failure::{SessionsError, SessionsFailure};
use super::recordings::{ProgressLine, RecordingsArgs, print_empty, since_us};
use crate::exit::{Exit, Failure};
use crate::local_files::LocalFiles;
use crate::output_file::file_only_parser;
use crate::state_folder::now_us;
use crate::terminal_output;

const NO_DASH: &str = "leave out --output to write to standard output";
/// How many lines that are not covered are listed.
const UNCOVERED_MAX: usize = 50;

/// Generate policy rules from recordings
///
/// The result is a policy: it permits what was recorded and has everything else wait for a person.
/// Put it in force with `tapegate bash --policy FILE`. A pattern permits no more than what its
/// commands did: `git diff *` with `class: read-only` does not permit `git diff --output=FILE`.
/// Commands with `review: true` wait for a person.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Strategies:
  exact     whole command lines
  pattern   program and subcommand, such as `cargo test *`
  semantic  the same, grouped by what the commands do, with the risk

Examples:
  tapegate sessions generate --since 7d
  tapegate sessions generate --strategy exact --output policies.yml
  tapegate sessions generate --check policies.yml --since 30d

Exit codes: 0 done, 1 `--check` found commands that the policy stops, or a file could not be read or
written, 2 wrong option or policy.")]
pub(super) struct Args {
    /// Analyze commands since a date: YYYY-MM-DD, or 7d, 2w, 1m (a month of 30 days), 12h, 30min
    #[arg(long, value_name = "TEXT")]
    since: Option<String>,
    /// Minimum command frequency to include
    #[arg(long, value_name = "INT", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..))]
    min_frequency: u64,
    /// Output format
    #[arg(long, value_enum, default_value = "yaml")]
    format: PolicyFormat,
    /// Write to file instead of stdout
    #[arg(long, value_name = "FILE", value_parser = file_only_parser(NO_DASH))]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Generation strategy
    #[arg(long, value_enum, default_value = "pattern")]
    strategy: StrategyName,
    /// List the recorded commands that this policy would have stopped, and generate nothing
    #[arg(long, value_name = "POLICY", conflicts_with_all = ["output", "strategy", "min_frequency"])]
    check: Option<PathBuf>,
    /// With --check: the name of the bash tool's server in the policy
    #[arg(long, value_name = "ID", default_value = "bash", requires = "check")]
    server_id: String,
    #[command(flatten)]
    recordings: RecordingsArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PolicyFormat {
    Yaml,
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum StrategyName {
    Exact,
    Pattern,
    Semantic,
}

/// What was recorded.
#[derive(Default)]
struct CommandHistory {
    sessions: u64,
    commands: RecordedCommands,
    /// The commands by line and folder, with how often they occurred.
    runs: BTreeMap<(String, String), u64>,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> Result<Exit, SessionsError> {
    // Both ways need it: a check runs the same commands through another policy.
    let history = read_history(args)?;
    if let Some(path) = &args.check {
        return check(args, path, &history, out);
    }
    if history.commands.count() == 0 {
        print_empty(out)?;
        return Ok(Exit::Ok);
    }
    if let Some(path) = args.output.as_deref().filter(|path| path.exists() && !args.force) {
        let remedy = "Hint: add --force to replace it";
        let message = format!("{} exists already", path.display());
        return Err(SessionsFailure::option(&message, remedy));
    }
    let strategy = match args.strategy {
        StrategyName::Exact => GenerationStrategy::Exact,
        StrategyName::Pattern => GenerationStrategy::Pattern,
        StrategyName::Semantic => GenerationStrategy::Semantic,
    };
    // It is loaded and asked about every command before it is written.
    let generated = recorded::generate(&history.commands, strategy, args.min_frequency)
        .map_err(|message| Failure::new(Exit::Invalid, message))?;
    let coverage = coverage_text(&generated);
    let text = match args.format {
        PolicyFormat::Yaml => yaml_text(&generated, &history, &coverage),
        PolicyFormat::Json => render_json(&generated.groups),
    };
    match &args.output {
        Some(path) => atomic_file::write(path, text.as_bytes())
            .map_err(|error| SessionsFailure::file("write", path, &error))?,
        None => out.write_all(text.as_bytes())?,
    }
    // In JSON there is no comment to put it in.
    if args.output.is_some() || args.format == PolicyFormat::Json {
        terminal_output::info(&format!("the policy {coverage}"));
    }
    Ok(Exit::Ok)
}

fn read_history(args: &Args) -> Result<CommandHistory, SessionsError> {
    let since_us = since_us(args.since.as_deref())?;
    let recordings = args.recordings.open()?;
    let paths: Vec<SessionPath> = recordings.paths()?;
    let mut progress = ProgressLine::new(&recordings, paths.len());
    let mut history = CommandHistory::default();
    for session in &paths {
        let before = history.commands.count();
        let read = session_reader::entries(&session.path, &mut |entry| {
            // A command that timed out is not an example of what should be permitted.
            let counts = !entry.timed_out || args.check.is_some();
            if counts && since_us.is_none_or(|since| entry.started_us >= since) {
                history.commands.add(&entry.command);
                let run = (entry.command.into_owned(), entry.working_directory.into_owned());
                *history.runs.entry(run).or_default() += 1;
            }
            Ok(())
        });
        read.map_err(|error| SessionsFailure::file("read", &session.path, &error))?;
        // Only sessions that have contributed.
        history.sessions += u64::from(history.commands.count() > before);
        progress.step();
    }
    Ok(history)
}

/// "covers 1,466 of 1,523 commands, 96.3%".
fn coverage_text(generated: &GeneratedCommands) -> String {
    let GeneratedCommands { count, covered, .. } = generated;
    // In whole numbers, so that equal input gives equal text on every machine.
    let tenths = (covered * 1000 + count / 2) / (*count).max(1);
    let (covered, count) = (thousands(*covered), thousands(*count));
    format!("covers {covered} of {count} commands, {}.{}%", tenths / 10, tenths % 10)
}

fn yaml_text(generated: &GeneratedCommands, history: &CommandHistory, coverage: &str) -> String {
    let mut now = Vec::new();
    write_rfc3339(&mut now, now_us(), SubSecond::Millis);
    let now = String::from_utf8_lossy(&now);
    // Seconds are enough, and the document's examples have no more.
    let now = now.split('.').next().unwrap_or_default();
    let header = [
        "Auto-generated policy from recordings".to_owned(),
        format!("Generated: {now}Z"),
        format!("Source sessions: {}", thousands(history.sessions)),
        format!("Commands analyzed: {}", thousands(generated.count)),
        format!("Coverage: {coverage}"),
    ];
    let mut footer = Vec::new();
    if !generated.uncovered.is_empty() {
        footer.push("Commands that wait for a person:".to_owned());
    }
    for (line, frequency) in generated.uncovered.iter().take(UNCOVERED_MAX) {
        footer.push(format!("  {frequency}x {line}"));
    }
    if let Some(more) =
        generated.uncovered.len().checked_sub(UNCOVERED_MAX).filter(|more| *more > 0)
    {
        footer.push(format!("  ... and {} others", thousands(more as u64)));
    }
    render_yaml(&header, &generated.groups, &footer)
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Lists the recorded commands that a policy would have stopped.
fn check(
    args: &Args,
    path: &Path,
    history: &CommandHistory,
    out: &mut dyn Write,
) -> Result<Exit, SessionsError> {
    let policy = load_policy(path)?;
    let mut stopped: Vec<StoppedCommand> = Vec::new();
    // By folder too: rules may test paths, which depend on where a command ran.
    for ((line, folder), frequency) in &history.runs {
        let run = (line.as_str(), Some(folder.as_str()).filter(|folder| !folder.is_empty()));
        stopped.extend(recorded::stopped(&policy, &args.server_id, run, *frequency));
    }
    stopped.sort_by(|one, two| {
        two.frequency.cmp(&one.frequency).then_with(|| one.line.cmp(&two.line))
    });
    let total: u64 = stopped.iter().map(|one| one.frequency).sum();
    let exit = if stopped.is_empty() { Exit::Ok } else { Exit::Findings };
    if args.format == PolicyFormat::Json {
        let listed: Vec<Value> = stopped.iter().map(stopped_json).collect();
        let value =
            json!({"commands": history.commands.count(), "stopped": total, "lines": listed});
        writeln!(out, "{value:#}")?;
        return Ok(exit);
    }
    for one in &stopped {
        // On one line, since a command may be a whole script.
        let line = terminal_output::sanitize(&one.line.replace('\n', "\\n"));
        let reason = terminal_output::sanitize(&one.reason);
        writeln!(
            out,
            "{:<7} {:>6}  {line}\n                {reason}",
            outcome(one),
            one.frequency
        )?;
    }
    let count = thousands(history.commands.count());
    writeln!(out, "{} of {count} recorded commands would have been stopped", thousands(total))?;
    Ok(exit)
}

fn outcome(one: &StoppedCommand) -> &'static str {
    match one.outcome {
        DecisionOutcome::Forward => "forward",
        DecisionOutcome::Deny => "deny",
        DecisionOutcome::Hold { .. } => "approve",
    }
}

fn stopped_json(one: &StoppedCommand) -> Value {
    json!({
        "command": one.line,
        "frequency": one.frequency,
        "outcome": outcome(one),
        "reason": one.reason,
    })
}

fn load_policy(path: &Path) -> Result<Policy, SessionsError> {
    let name = path.display().to_string();
    let loaded = load::load(&name, &LocalFiles::default());
    terminal_output::report_findings(&loaded.findings, &loaded.sources, &name);
    let invalid = || Failure::new(Exit::Invalid, format!("`{name}` is not a valid policy"));
    Ok(loaded.policy.ok_or_else(invalid)?)
}
