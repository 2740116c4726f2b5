//! `tapegate approvals`: what waits for a person, and the person's word.

mod decide;
mod find;

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use tapegate_store::approvals::{ApprovalError, Approvals, Entry};

use crate::exit::{Exit, Failure};
use crate::state::{StateArgs, now_us};
use crate::talk;
use crate::views::approvals as view;

/// List calls that wait for approval, and approve or deny them
///
/// A held call waits in the state folder until somebody decides or its time is over. The first
/// decision counts. An approval that comes after the caller has given up is kept: the same call is
/// then let through once, as long as the request would have lasted.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate approvals                            what waits
  tapegate approvals show ap_k3x9               all about one, by the beginning of its name
  tapegate approvals approve ap_k3x9
  tapegate approvals deny ap_k3x9 --reason 'not on a Friday'
  tapegate approvals list --wait --format json | jq -r .id

Exit codes: 0 done, 1 a request was decided before, has expired or is not yours to decide, 2 there
is no such request, 3 a file could not be read or written, 64 wrong usage.")]
pub(crate) struct Args {
    /// What to do
    #[arg(value_enum, default_value = "list")]
    verb: Verb,
    /// Requests, by their names or enough of them to tell which
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Why, for whoever asked and for the activity log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Who decides [default: the user]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// List what was decided or has expired, too; approve or deny everything that waits
    #[arg(long)]
    all: bool,
    /// Wait until there is something to list, or until what is shown is decided
    #[arg(long)]
    wait: bool,
    /// How it is printed; json is one object a line
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Verb {
    /// What waits
    List,
    /// All about some requests
    Show,
    /// Let calls through
    Approve,
    /// Refuse calls
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

/// How long to wait before looking at the clock again.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    misuse(args)?;
    let state = args.state.folder()?;
    let folder = state.join("approvals");
    match args.verb {
        Verb::List => list(args, &folder, out),
        Verb::Show => show(args, &folder, out),
        Verb::Approve | Verb::Deny => decide::run(args, &state, &folder, out),
    }
}

/// What makes no sense together.
fn misuse(args: &Args) -> Result<(), Failure> {
    let decides = matches!(args.verb, Verb::Approve | Verb::Deny);
    let words = match args.verb {
        Verb::List if !args.ids.is_empty() => "`list` takes no names; `show` does",
        Verb::Show if args.ids.is_empty() => "`show` wants the name of a request",
        Verb::Approve | Verb::Deny if args.ids.is_empty() != args.all => {
            "name the requests that are meant, or pass --all for everything that waits"
        }
        _ if args.wait && decides => "--wait is for `list` and `show`",
        _ if !decides && (args.reason.is_some() || args.by.is_some()) => {
            "--reason and --by are for `approve` and `deny`"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, words))
}

fn list(args: &Args, folder: &Path, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let wanted = |entry: &Entry| args.all || view::is_pending(entry, now_us());
    let mut entries = everything(folder)?;
    entries.retain(wanted);
    if args.wait && entries.is_empty() {
        let approvals = Approvals::open(folder).map_err(failure)?;
        // Watching begins before looking, so that nothing slips by.
        let watcher = approvals.watch();
        loop {
            entries = everything(folder)?;
            entries.retain(wanted);
            if !entries.is_empty() {
                break;
            }
            watcher.wait(LOOK)?;
        }
    }
    match args.format {
        Format::Text => out.write_all(view::table(&entries, args.all, now_us()).as_bytes())?,
        Format::Json => {
            for entry in &entries {
                out.write_all(&view::json(entry, now_us()))?;
            }
        }
    }
    Ok(Exit::Ok)
}

fn show(args: &Args, folder: &Path, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let approvals = Approvals::open(folder).map_err(failure)?;
    for id in &args.ids {
        let watcher = approvals.watch();
        let mut entry = find::one(&everything(folder)?, id)?;
        while args.wait && view::is_pending(&entry, now_us()) {
            watcher.wait(LOOK)?;
            entry = find::one(&everything(folder)?, &entry.request.id)?;
        }
        match args.format {
            Format::Text => out.write_all(view::details(&entry, now_us()).as_bytes())?,
            Format::Json => out.write_all(&view::json(&entry, now_us()))?,
        }
    }
    Ok(Exit::Ok)
}

/// All requests; files that cannot be understood are told of.
fn everything(folder: &Path) -> anyhow::Result<Vec<Entry>> {
    let Some(approvals) = Approvals::existing(folder).map_err(failure)? else {
        return Ok(Vec::new());
    };
    let listing = approvals.all().map_err(failure)?;
    for path in &listing.broken {
        talk::warn(&format!("`{}` cannot be understood and is left out", path.display()));
    }
    Ok(listing.entries)
}

fn failure(error: ApprovalError) -> Failure {
    let exit = match &error {
        ApprovalError::Unknown { .. } => Exit::Invalid,
        ApprovalError::Io { .. } | ApprovalError::Broken { .. } => Exit::Io,
        _ => Exit::Findings,
    };
    Failure::new(exit, error)
}
