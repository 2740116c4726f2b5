//! `tapegate policy backtest`: evaluates a policy against old tapes.

mod backtest_run;
pub(crate) mod backtest_tape;
mod tape_preamble;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::backtest::{
    BacktestConfig, BacktestFinding, BacktestTally, FindingKind, PolicyChange, PolicyOutcome,
};
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::policy_gate::{ActivePolicy, GateSettings};

use super::policy_loader::{self, LoadedPolicy};
use crate::entry_limit::EntryArgs;
use crate::exit::Exit;
use crate::settings::{ProfileArg, ProjectArgs};
use crate::terminal_output;
use crate::views::backtest::{self, BacktestOutline};
use crate::views::json_list::JsonList;
use backtest_run::BacktestRun;
use backtest_tape::BacktestTape;

/// Show what a policy would have done with the messages on tapes
///
/// Every message passes through the gates of a shim, in order and with its recorded time. Nothing
/// is sent and no approval is requested. With --against, the decisions are compared with those of
/// another policy, message by message.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy backtest session.jsonl
  tapegate policy backtest .tapegate/tapes/ --show deny,hold
  tapegate policy backtest tapes/ --config strict.yaml --against tapegate.yaml --show changed
  tapegate policy backtest --format jsonl tapes/*.jsonl.gz | jq -c 'select(.sort == \"deny\")'
  tapegate policy backtest tapes/ --exit-code || echo something would be stopped

Exit codes: 0 done; with --exit-code, 1 if there is anything that --show names (by default deny,
hold, reject, drift and changed); 2 a policy or a tape is invalid, 3 a file could not be read, 64
wrong usage.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip; a folder stands for all tapes in it
    #[arg(required = true, value_name = "TAPE")]
    tapes: Vec<PathBuf>,
    #[command(flatten)]
    project: ProjectArgs,
    /// The server's name in the policy [default: the name on the tape, or `*`]
    #[arg(long, value_name = "NAME")]
    server_id: Option<String>,
    /// Another policy to compare with; its decisions are shown as the earlier ones
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The transport of the messages; over HTTP several may arrive at once
    #[arg(long, value_enum, default_value = "stdio")]
    transport: TransportArg,
    /// List each message of these kinds with its tape and line; repeatable, or separated by commas
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    show: Vec<ShowArg>,
    #[command(flatten)]
    entries: EntryArgs,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: BacktestFormat,
    /// Exit with 1 if anything is found
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum BacktestFormat {
    Text,
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum TransportArg {
    Stdio,
    Http,
}

/// What can be listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ShowArg {
    /// Calls that are denied
    Deny,
    /// Calls that wait for approval
    Hold,
    /// Malformed messages
    Reject,
    /// Definitions that differ from the accepted ones
    Drift,
    /// Items that are hidden from lists
    Filter,
    /// Results in which secrets are masked
    Redact,
    /// Messages that are forwarded
    Forward,
    /// Messages that --against decides differently
    Changed,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    args.entries.apply();
    let found = policy_loader::nearest(args.project.config.as_deref())?;
    let profile = args.project.profile;
    let other = args.against.clone().map(policy_loader::read).transpose()?;
    let active_policy = active_policy(found, profile)?;
    let before = other.map(|loaded| self::active_policy(loaded, profile)).transpose()?;
    let tapes = backtest_tape::find(&args.tapes)?;
    let out = &mut match args.format {
        BacktestFormat::Json => JsonList::document(out),
        BacktestFormat::Text | BacktestFormat::Jsonl => JsonList::lines(out),
    };
    let mut tally = BacktestTally::default();
    let mut outline = BacktestOutline::default();
    for (number, tape) in tapes.iter().enumerate() {
        let terms = args.backtest_config(&active_policy, tape);
        let before = before.as_ref().map(|active_policy| args.backtest_config(active_policy, tape));
        outline.server(&terms.settings.source);
        let walk = BacktestRun {
            tape,
            number,
            terms: &terms,
            before: before.as_ref(),
            show: &args.listed_kinds(),
        };
        let mut print = |finding: &BacktestFinding| args.print(&tape.path, finding, out);
        walk.run(&mut tally, &mut outline, &mut print)?;
    }
    let paths: Vec<&Path> = tapes.iter().map(|tape| tape.path.as_path()).collect();
    outline.profile = active_policy.profile;
    outline.compared = before.is_some();
    match args.format {
        BacktestFormat::Text => {
            let palette = terminal_output::palette_of_output();
            let blank = if args.show.is_empty() || outline.shown == 0 { "" } else { "\n" };
            write!(out, "{blank}{}", backtest::text(&tally, &outline, &paths, palette))?;
        }
        BacktestFormat::Json | BacktestFormat::Jsonl => {
            out.write_all(&backtest::json(&tally, &outline, &paths))?
        }
    }
    out.finish()?;
    Ok(if args.exit_code && args.has_findings(&tally) { Exit::Findings } else { Exit::Ok })
}

/// What a policy change means for the calls on tapes.
pub(super) struct PolicyImpact {
    /// The calls that get further than before.
    pub(super) changes: Vec<PolicyChange>,
    /// How many tapes were looked at.
    pub(super) tapes: usize,
    /// How many tapes were skipped because the `meant` filter rejected them.
    pub(super) left_out: usize,
}

/// Finds the calls that `after` lets further than `before` did, on the tapes in a folder that the
/// `meant` filter accepts.
pub(super) fn find_loosened(
    before: &ActivePolicy,
    after: &ActivePolicy,
    folder: &Path,
    meant: impl Fn(&BacktestTape) -> bool,
) -> anyhow::Result<PolicyImpact> {
    let found = match folder.is_dir() {
        // A folder without tapes is not an error here.
        true => backtest_tape::find(&[folder.to_owned()]).unwrap_or_default(),
        false => Vec::new(),
    };
    let (tapes, others): (Vec<BacktestTape>, Vec<BacktestTape>) =
        found.into_iter().partition(meant);
    let (mut tally, mut outline) = (BacktestTally::default(), BacktestOutline::default());
    for (number, tape) in tapes.iter().enumerate() {
        let terms = |active_policy: &ActivePolicy| {
            backtest_config(active_policy, None, tape, TransportKind::Lines)
        };
        let (after, before) = (terms(after), terms(before));
        let walk = BacktestRun { tape, number, terms: &after, before: Some(&before), show: &[] };
        walk.run(&mut tally, &mut outline, &mut |_| Ok(()))?;
    }
    // A hold is stricter than forwarding, but still lets a person permit the call.
    let strictness = |stand: &PolicyOutcome| match stand.word {
        "forward" | "pass" => 0,
        "hold" => 1,
        _ => 2,
    };
    let is_looser = |change: &&PolicyChange| strictness(&change.after) < strictness(&change.before);
    let changes = tally.changes().into_iter().filter(is_looser).cloned().collect();
    Ok(PolicyImpact { changes, tapes: tapes.len(), left_out: others.len() })
}

/// The settings that a tape is evaluated with.
fn backtest_config(
    active_policy: &ActivePolicy,
    named: Option<&str>,
    tape: &BacktestTape,
    carrier: TransportKind,
) -> BacktestConfig {
    let policy = active_policy.policy.as_deref();
    let source = match (named, policy) {
        (Some(named), _) => named.to_owned(),
        (None, Some(policy)) => tape.server(policy),
        (None, None) => "*".to_owned(),
    };
    let principal = policy.map(|policy| policy.principal.clone()).unwrap_or_default();
    let settings = GateSettings {
        source,
        principal,
        client: carrier,
        server: carrier,
        lists: false,
        answer_timeout_ms: 0,
    };
    BacktestConfig { active_policy: active_policy.clone(), settings }
}

/// The policy to evaluate, with its profile and redactor.
fn active_policy(
    loaded: LoadedPolicy,
    profile: Option<ProfileArg>,
) -> anyhow::Result<ActivePolicy> {
    let profile = policy_loader::profile(profile, &loaded.policy)?;
    let redactor = policy_loader::redactor(&loaded.policy).map(Arc::new);
    Ok(ActivePolicy { policy: Some(Arc::new(loaded.policy)), profile, redactor, masking: None })
}

impl Args {
    fn backtest_config(&self, active_policy: &ActivePolicy, tape: &BacktestTape) -> BacktestConfig {
        let carrier = match self.transport {
            TransportArg::Stdio => TransportKind::Lines,
            TransportArg::Http => TransportKind::Http,
        };
        backtest_config(active_policy, self.server_id.as_deref(), tape, carrier)
    }

    /// The kinds of findings to list; `None` stands for changes.
    fn listed_kinds(&self) -> Vec<Option<FindingKind>> {
        self.show.iter().map(|show| show.finding_kind()).collect()
    }

    fn print(
        &self,
        tape: &Path,
        finding: &BacktestFinding,
        out: &mut dyn Write,
    ) -> std::io::Result<()> {
        match self.format {
            BacktestFormat::Text => writeln!(out, "{}", backtest::line(tape, finding)),
            BacktestFormat::Json | BacktestFormat::Jsonl => {
                out.write_all(&backtest::line_json(tape, finding))
            }
        }
    }

    fn has_findings(&self, tally: &BacktestTally) -> bool {
        let usual =
            [ShowArg::Deny, ShowArg::Hold, ShowArg::Reject, ShowArg::Drift, ShowArg::Changed];
        let wanted = if self.show.is_empty() { &usual[..] } else { &self.show };
        wanted.iter().any(|show| match show.finding_kind() {
            Some(sort) => tally.count_kind(sort) > 0,
            None => !tally.changes().is_empty(),
        })
    }
}

impl ShowArg {
    fn finding_kind(self) -> Option<FindingKind> {
        Some(match self {
            Self::Deny => FindingKind::Deny,
            Self::Hold => FindingKind::Hold,
            Self::Reject => FindingKind::Reject,
            Self::Drift => FindingKind::Drift,
            Self::Filter => FindingKind::Filter,
            Self::Redact => FindingKind::Redact,
            Self::Forward => FindingKind::Forward,
            Self::Changed => return None,
        })
    }
}
