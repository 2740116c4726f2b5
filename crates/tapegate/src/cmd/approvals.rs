//! `tapegate approvals`: lists calls that wait for approval, and approves or denies them.

mod decide;
mod export;
mod folder;
mod grant;
mod grants;
mod request_lookup;
mod reveal;
mod trial;
mod watch;

use std::io::Write;
use std::time::Duration;

use tapegate_store::approvals::{ApprovalEntry, ApprovalError};

use crate::approver_check::KeyArgs;
use crate::exit::{Exit, Failure};
use crate::screen;
use crate::settings::state_folder::StateChoice;
use crate::settings::{SearchContext, user_state_hint};
use crate::state_folder::{StateArgs, now_us};
use crate::terminal_output;
use crate::views::approvals as view;
use crate::views::json_list::JsonList;
use crate::zone::TimeZone;
use folder::Project;
use grant::GrantArgs;

/// List calls that wait for approval, and approve or deny them
///
/// A held call waits until a person decides or the request expires. The first decision counts. An
/// approval that arrives after the caller has given up is kept: until the request expires, the same
/// call is sent once without asking.
///
/// With --for or --session, `approve` also grants that the same call passes again, and with --under
/// or --matching calls that differ from it in one argument. `grants` lists that and revokes it.
///
/// `approve` and `deny` need a person at a terminal: they show the whole request and ask. Without a
/// terminal they refuse, unless `--non-interactive --key-file` names a copy of the project's key,
/// made by `tapegate approvals export-key`. In a coding agent's shell they always refuse.
///
/// Values that the policy redacts are masked. `show --reveal` shows them to a person at a terminal
/// while the request is pending, and logs that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate approvals                            list pending requests
  tapegate approvals watch                      decide at this terminal as calls come
  tapegate approvals show ap_k3x9               show one, by the start of its id
  tapegate approvals show ap_k3x9 --reveal      with masked values, on the terminal only
  tapegate approvals approve ap_k3x9
  tapegate approvals approve ap_k3x9 --for 30m  let the same call pass again for half an hour
  tapegate approvals approve ap_k3x9 --session --under path=/srv/data
  tapegate approvals grants revoke gr_p5j8
  tapegate approvals test default --wait        ask through every channel of a workflow
  tapegate approvals deny ap_k3x9 --reason 'not on a Friday'
  tapegate approvals export-key ~/approver.key  a key for scripts
  tapegate approvals list --wait --format jsonl | jq -r .id

Exit codes: 0 done, 1 a request is already decided, has expired or is not yours to decide, or no
person is at the terminal, 2 there is no such request, 3 a file could not be read or written, 64
wrong usage.")]
pub(crate) struct Args {
    /// The action to take
    #[arg(value_enum, default_value = "list")]
    verb: ApprovalsAction,
    /// Request ids or unique prefixes of them; with `test`, the workflow; with `export-key`, the file
    /// to write
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// The reason, for the caller and the activity log
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// The name of the person who decides or reveals [default: the user]
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// With `list`, include decided and expired requests; with `watch`, those of other projects that
    /// share the state folder; with `approve` and `deny`, decide every pending request of this project
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    grant: GrantArgs,
    #[command(flatten)]
    key: KeyArgs,
    /// With `show`, print the masked values of pending calls on the terminal, and log that
    #[arg(long)]
    reveal: bool,
    /// Wait until there is a request to list, until the shown requests are decided, or until a person
    /// has answered the trial
    #[arg(long)]
    wait: bool,
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: ApprovalsFormat,
    #[command(flatten)]
    state: StateArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ApprovalsAction {
    /// List pending requests
    List,
    /// Show requests in full
    Show,
    /// Approve calls
    Approve,
    /// Deny calls
    Deny,
    /// Show calls as they come, and decide by key
    Watch,
    /// List what was granted with --for and --session; `grants revoke ID` ends it
    Grants,
    /// Send a trial request through every channel of a workflow, and report what came back
    Test,
    /// Write a copy of the project's key to a new file, for --key-file
    ExportKey,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ApprovalsFormat {
    Text,
    Json,
    Jsonl,
}

impl ApprovalsFormat {
    /// The writer for JSON output: one document, or one object per line.
    fn list(self, out: &mut dyn Write) -> JsonList<'_> {
        match self {
            Self::Json => JsonList::document(out),
            Self::Text | Self::Jsonl => JsonList::lines(out),
        }
    }
}

/// How long to wait for a change before checking again.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    check_arguments(args)?;
    let StateChoice { folder, former, .. } = args.state.choice()?;
    let project = Project::new(folder)?;
    let search = SearchContext::current()?;
    user_state_hint::warn_of_difference(&search, &project.state);
    project.warn_of_former(&former, &search.folder);
    match args.verb {
        ApprovalsAction::List => list(args, &project, out),
        ApprovalsAction::Show if args.reveal => reveal::run(args, &project),
        ApprovalsAction::Show => show(args, &project, out),
        ApprovalsAction::Approve | ApprovalsAction::Deny => decide::run(args, &project, out),
        ApprovalsAction::Watch => watch::run(args, &project),
        ApprovalsAction::Grants => grants::run(args, &project, out),
        ApprovalsAction::Test => trial::run(args, &project, out),
        ApprovalsAction::ExportKey => export::run(&project, &args.ids[0]),
    }
}

/// Rejects arguments that make no sense together.
fn check_arguments(args: &Args) -> Result<(), Failure> {
    let decides = matches!(args.verb, ApprovalsAction::Approve | ApprovalsAction::Deny);
    let message = match args.verb {
        ApprovalsAction::List if !args.ids.is_empty() => "`list` takes no ids; `show` does",
        ApprovalsAction::Watch if !args.ids.is_empty() => "`watch` takes no ids; `show` does",
        ApprovalsAction::Watch if args.format != ApprovalsFormat::Text => {
            "`watch` is for people; `list --wait --format jsonl` is for programs"
        }
        ApprovalsAction::Show if args.ids.is_empty() => "`show` needs the id of a request",
        ApprovalsAction::Approve | ApprovalsAction::Deny if args.ids.is_empty() != args.all => {
            "name the requests to decide, or pass --all for all pending ones"
        }
        ApprovalsAction::Show if args.all => "--all is for `list`, `approve` and `deny`",
        ApprovalsAction::ExportKey if args.ids.len() != 1 || args.all || args.ids[0] == "-" => {
            "`export-key` takes the name of one new file; a key is never printed"
        }
        ApprovalsAction::ExportKey if args.format != ApprovalsFormat::Text => {
            "--format has no effect on a key"
        }
        ApprovalsAction::Test if args.ids.len() != 1 || args.all => {
            "`test` takes the name of a workflow"
        }
        ApprovalsAction::Test if args.format != ApprovalsFormat::Text => "`test` prints text only",
        ApprovalsAction::Grants if args.reason.is_some() => "--reason is for `approve` and `deny`",
        _ if args.grant.is_given()
            && (args.verb != ApprovalsAction::Approve || args.ids.len() != 1) =>
        {
            "--for, --session, --under and --matching are for `approve` with one id"
        }
        _ if args.wait
            && !matches!(
                args.verb,
                ApprovalsAction::List | ApprovalsAction::Show | ApprovalsAction::Test
            ) =>
        {
            "--wait is for `list`, `show` and `test`"
        }
        _ if args.reveal && args.verb != ApprovalsAction::Show => "--reveal is for `show`",
        _ if args.reveal && (args.wait || args.format != ApprovalsFormat::Text) => {
            "--reveal prints only to the terminal, and cannot be used with --wait or --format"
        }
        ApprovalsAction::Watch if args.reason.is_some() => "--reason is for `approve` and `deny`",
        ApprovalsAction::Watch | ApprovalsAction::Grants if !args.key.is_given() => return Ok(()),
        _ if !decides && (args.reason.is_some() || args.by.is_some() && !args.reveal) => {
            "--reason and --by are for `approve` and `deny`"
        }
        _ if !decides && args.verb != ApprovalsAction::Test && args.key.is_given() => {
            "--non-interactive and --key-file are for `approve` and `deny`"
        }
        _ => return Ok(()),
    };
    Err(Failure::new(Exit::Usage, message))
}

fn list(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let wanted = |entry: &ApprovalEntry| args.all || view::is_pending(entry, now_us());
    project.warn_of_old_folder();
    project.channel_faults().iter().for_each(|fault| terminal_output::warn(fault));
    let mut entries = project.entries()?;
    entries.retain(wanted);
    if args.wait && entries.is_empty() {
        // Start watching before the first look, so that no change is missed.
        let watcher = project.approvals()?.watch();
        loop {
            entries = project.entries()?;
            entries.retain(wanted);
            if !entries.is_empty() {
                break;
            }
            watcher.wait(LOOK)?;
        }
    }
    if entries.is_empty() && args.format == ApprovalsFormat::Text {
        terminal_output::suggest(&format!(
            "looked in `{}`; {}",
            project.state.display(),
            request_lookup::ELSEWHERE
        ));
    }
    match args.format {
        ApprovalsFormat::Text => {
            out.write_all(view::table(&entries, args.all, now_us(), screen::columns()).as_bytes())?
        }
        ApprovalsFormat::Json | ApprovalsFormat::Jsonl => {
            let mut list = args.format.list(out);
            for entry in &entries {
                list.write_all(&view::json(entry, now_us()))?;
            }
            list.finish()?;
        }
    }
    Ok(Exit::Ok)
}

fn show(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let approvals = project.approvals()?;
    let out = &mut args.format.list(out);
    for id in &args.ids {
        // Before the request is read, so that a decision in between is not missed.
        let watcher = approvals.watch();
        let mut entry = request_lookup::find_request(&project.entries()?, id, &project.state)?;
        while args.wait && view::is_pending(&entry, now_us()) {
            watcher.wait(LOOK)?;
            entry = request_lookup::find_request(
                &project.entries()?,
                &entry.request.id,
                &project.state,
            )?;
        }
        match args.format {
            ApprovalsFormat::Text => {
                out.write_all(view::details(&entry, now_us(), &TimeZone::system()).as_bytes())?
            }
            ApprovalsFormat::Json | ApprovalsFormat::Jsonl => {
                out.write_all(&view::json(&entry, now_us()))?
            }
        }
    }
    out.finish()?;
    Ok(Exit::Ok)
}

fn failure(error: ApprovalError) -> Failure {
    let exit = match &error {
        ApprovalError::Unknown { .. } => Exit::Invalid,
        ApprovalError::Io { .. } | ApprovalError::Private(_) => Exit::Io,
        _ => Exit::Findings,
    };
    Failure::new(exit, error)
}
