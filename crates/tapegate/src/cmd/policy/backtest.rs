//! `tapegate policy backtest`: evaluates a policy against old tapes.

mod scene;
pub(crate) mod shelf;
mod walk;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::backtest::{Change, Finding, Sort, Stand, Tally, Terms};
use tapegate_policy::inspect::Carrier;
use tapegate_policy::warden::{Regime, Settings};

use super::loading::{self, Found};
use crate::entries::EntryArgs;
use crate::exit::Exit;
use crate::settings::{ProfileWord, ProjectArgs};
use crate::talk;
use crate::views::backtested::{self, Outline};
use crate::views::json_list::JsonList;
use shelf::Tape;
use walk::Walk;

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
    transport: Transport,
    /// List each message of these kinds with its tape and line; repeatable, or separated by commas
    #[arg(long, value_enum, value_name = "WHAT", value_delimiter = ',')]
    show: Vec<Show>,
    #[command(flatten)]
    entries: EntryArgs,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    /// Exit with 1 if anything is found
    #[arg(long)]
    exit_code: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Transport {
    Stdio,
    Http,
}

/// What can be listed one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Show {
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
    let found = loading::nearest(args.project.config.as_deref())?;
    let profile = args.project.profile;
    let other = args.against.clone().map(loading::read).transpose()?;
    let regime = regime(found, profile)?;
    let before = other.map(|found| self::regime(found, profile)).transpose()?;
    let tapes = shelf::find(&args.tapes)?;
    let out = &mut match args.format {
        Format::Json => JsonList::document(out),
        Format::Text | Format::Jsonl => JsonList::lines(out),
    };
    let mut tally = Tally::default();
    let mut outline = Outline::default();
    for (number, tape) in tapes.iter().enumerate() {
        let terms = args.terms(&regime, tape);
        let before = before.as_ref().map(|regime| args.terms(regime, tape));
        outline.server(&terms.settings.source);
        let walk =
            Walk { tape, number, terms: &terms, before: before.as_ref(), show: &args.sorts() };
        let mut print = |finding: &Finding| args.print(&tape.path, finding, out);
        walk.run(&mut tally, &mut outline, &mut print)?;
    }
    let paths: Vec<&Path> = tapes.iter().map(|tape| tape.path.as_path()).collect();
    outline.profile = regime.profile;
    outline.compared = before.is_some();
    match args.format {
        Format::Text => {
            let palette = talk::palette_of_output();
            let blank = if args.show.is_empty() || outline.shown == 0 { "" } else { "\n" };
            write!(out, "{blank}{}", backtested::text(&tally, &outline, &paths, palette))?;
        }
        Format::Json | Format::Jsonl => {
            out.write_all(&backtested::json(&tally, &outline, &paths))?
        }
    }
    out.finish()?;
    Ok(if args.exit_code && args.has_found(&tally) { Exit::Findings } else { Exit::Ok })
}

/// What a policy change means for the calls on tapes.
pub(super) struct Loosened {
    /// The calls that get further than before.
    pub(super) changes: Vec<Change>,
    /// How many tapes were looked at.
    pub(super) tapes: usize,
    /// How many tapes were skipped because the `meant` filter rejected them.
    pub(super) left_out: usize,
}

/// Finds the calls that `after` lets further than `before` did, on the tapes in a folder that the
/// `meant` filter accepts.
pub(super) fn loosened(
    before: &Regime,
    after: &Regime,
    folder: &Path,
    meant: impl Fn(&Tape) -> bool,
) -> anyhow::Result<Loosened> {
    let found = match folder.is_dir() {
        // A folder without tapes is not an error here.
        true => shelf::find(&[folder.to_owned()]).unwrap_or_default(),
        false => Vec::new(),
    };
    let (tapes, others): (Vec<Tape>, Vec<Tape>) = found.into_iter().partition(meant);
    let (mut tally, mut outline) = (Tally::default(), Outline::default());
    for (number, tape) in tapes.iter().enumerate() {
        let terms = |regime: &Regime| terms(regime, None, tape, Carrier::Lines);
        let (after, before) = (terms(after), terms(before));
        let walk = Walk { tape, number, terms: &after, before: Some(&before), show: &[] };
        walk.run(&mut tally, &mut outline, &mut |_| Ok(()))?;
    }
    let strictness = |stand: &Stand| match stand.word {
        "forward" | "pass" => 0,
        "hold" => 1,
        _ => 2,
    };
    let is_looser = |change: &&Change| strictness(&change.after) < strictness(&change.before);
    let changes = tally.changes().into_iter().filter(is_looser).cloned().collect();
    Ok(Loosened { changes, tapes: tapes.len(), left_out: others.len() })
}

/// The settings that a tape is evaluated with.
fn terms(regime: &Regime, named: Option<&str>, tape: &Tape, carrier: Carrier) -> Terms {
    let policy = regime.policy.as_deref();
    let source = match (named, policy) {
        (Some(named), _) => named.to_owned(),
        (None, Some(policy)) => tape.server(policy),
        (None, None) => "*".to_owned(),
    };
    let principal = policy.map(|policy| policy.principal.clone()).unwrap_or_default();
    let settings = Settings {
        source,
        principal,
        client: carrier,
        server: carrier,
        lists: false,
        answer_timeout_ms: 0,
    };
    Terms { regime: regime.clone(), settings }
}

/// The policy to evaluate, with its profile and redactor.
fn regime(found: Found, profile: Option<ProfileWord>) -> anyhow::Result<Regime> {
    let profile = loading::profile(profile, &found.policy)?;
    let redactor = loading::redactor(&found.policy).map(Arc::new);
    Ok(Regime { policy: Some(Arc::new(found.policy)), profile, redactor })
}

impl Args {
    fn terms(&self, regime: &Regime, tape: &Tape) -> Terms {
        let carrier = match self.transport {
            Transport::Stdio => Carrier::Lines,
            Transport::Http => Carrier::Http,
        };
        terms(regime, self.server_id.as_deref(), tape, carrier)
    }

    /// The kinds of findings to list; `None` stands for changes.
    fn sorts(&self) -> Vec<Option<Sort>> {
        self.show.iter().map(|show| show.sort()).collect()
    }

    fn print(&self, tape: &Path, finding: &Finding, out: &mut dyn Write) -> std::io::Result<()> {
        match self.format {
            Format::Text => writeln!(out, "{}", backtested::line(tape, finding)),
            Format::Json | Format::Jsonl => out.write_all(&backtested::line_json(tape, finding)),
        }
    }

    fn has_found(&self, tally: &Tally) -> bool {
        let usual = [Show::Deny, Show::Hold, Show::Reject, Show::Drift, Show::Changed];
        let wanted = if self.show.is_empty() { &usual[..] } else { &self.show };
        wanted.iter().any(|show| match show.sort() {
            Some(sort) => tally.count_of(sort) > 0,
            None => !tally.changes().is_empty(),
        })
    }
}

impl Show {
    fn sort(self) -> Option<Sort> {
        Some(match self {
            Self::Deny => Sort::Deny,
            Self::Hold => Sort::Hold,
            Self::Reject => Sort::Reject,
            Self::Drift => Sort::Drift,
            Self::Filter => Sort::Filter,
            Self::Redact => Sort::Redact,
            Self::Forward => Sort::Forward,
            Self::Changed => return None,
        })
    }
}
