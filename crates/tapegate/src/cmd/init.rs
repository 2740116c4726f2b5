//! `tapegate init`: writes a first policy and shows how to put each client's servers behind it.

mod clients;
mod policy_file;
mod snippets;
mod starter;
pub(crate) mod state_only;
mod summary;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use tapegate_policy::generate::{GenerateOptions, RecordedTraffic, check_all_pass};
use tapegate_policy::load::load;
use tapegate_yaml::files::MemoryFiles;
use tapegate_yaml::finding::Severity;

use super::policy::accept_written;
use super::policy::backtest::backtest_tape::{self, BacktestTape};
use super::policy::generate::{generate_policy, head, observe_tapes, write};
use crate::exit::{Exit, Failure};
use crate::output_file::file_only_parser;
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;
use snippets::SnippetPaths;
use state_only::{create_state_folder, use_state_folder};
use summary::InitSummary;

/// Why the policy is not printed.
const SUMMARY: &str = "standard output has the summary; name a file";

/// Write a starter policy, and print how to put each client's servers behind it
///
/// Reads the configs of MCP clients, of this project and of the user: Claude Code and Desktop,
/// Cursor, VS Code, Windsurf, Zed, Codex, Gemini CLI, opencode, Cline, Continue, Goose, LM Studio,
/// Copilot CLI and others. It does not change them, but prints what to put into each.
///
/// The policy forwards tools that are pinned as read-only, and asks a person about everything else.
/// With --from-tape or --from-tapes, it forwards what was used on the tapes and nothing else.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate init                             a policy that asks about everything but reading
  tapegate init --from-tapes                a policy that permits what is on the tapes found here
  tapegate init --from-tape session.jsonl --force
  tapegate init ~/.config/tapegate/tapegate.yaml       for projects without a policy
  tapegate init --state-only                only `.tapegate/`, for a policy that is there already
  tapegate init --dry-run --format json | jq -r '.servers[].snippet'

Writes FILE, and `.tapegate/` beside it with a `.gitignore`, for tapes and logs. Nothing is
overwritten without --force.

Exit codes: 0 done, 2 a tape is invalid or has no calls, 3 the file exists or could not be written,
64 wrong usage.")]
pub(crate) struct Args {
    /// The file to write
    #[arg(value_name = "FILE", default_value = "tapegate.yaml", value_parser = file_only_parser(SUMMARY))]
    file: PathBuf,
    /// Permit what was called on this tape, or on the tapes in this folder; repeatable
    #[arg(long, value_name = "TAPE")]
    from_tape: Vec<PathBuf>,
    /// Permit what was called on the tapes of this project: those in `.tapegate/tapes`, `tapes` and
    /// this folder
    #[arg(long)]
    from_tapes: bool,
    /// The name of the server in the policy [default: taken from each tape]
    #[arg(long, value_name = "NAME")]
    server_id: Option<String>,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Keep the policy as it is, or as it will be written; create only `.tapegate/` beside FILE
    #[arg(long, conflicts_with_all = ["from_tape", "from_tapes", "server_id", "force", "dry_run", "format"])]
    state_only: bool,
    /// Write nothing; show what was found and what to put into each client's config
    #[arg(long)]
    dry_run: bool,
    /// The format of the summary
    #[arg(long, value_enum, default_value = "text")]
    format: InitFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum InitFormat {
    Text,
    Json,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    if args.state_only {
        return state_only::run(&search, &args.file, out);
    }
    // First, so that no tapes are read for a file that cannot be written.
    policy_file::refuse_tape(&args.file, args.force)?;
    let conflict = match policy_file::check_writable(args, &search) {
        Err(failure) if !args.dry_run => return Err(failure.into()),
        writable => writable.err().map(|failure| failure.message),
    };
    let found = clients::find(&search);
    let tapes = find_tapes(&search);
    let named = named_tapes(args, &tapes)?;
    let (text, traffic) = if named.is_empty() {
        (starter::write(&found.servers), RecordedTraffic::default())
    } else {
        let known = |tape: &BacktestTape| clients::server_of(tape, &found.servers);
        let traffic = observe_tapes(&named, args.server_id.as_deref(), &known)?;
        let home = search.first(&["HOME"]).and_then(|home| home.into_string().ok());
        let wish = GenerateOptions { head: head(&traffic, "tapegate init"), cedar: None, home };
        let made = generate_policy(&traffic, &wish)?;
        made.warnings.iter().for_each(|warning| terminal_output::warn(warning));
        (starter::with_starter_sections(&made.policy), traffic)
    };
    // An invalid policy would stop every session of the project.
    check(&text, &traffic)?;
    let mut written = Vec::new();
    if !args.dry_run {
        let policy = search.folder.join(&args.file);
        policy_file::make_parent(&policy)?;
        write(&args.file, &text)?;
        // The person who has just written it need not accept it again.
        accept_written(&args.file)?;
        written.push(policy.clone());
        written.extend(create_state_folder(&policy)?);
        // Last, when the folder exists.
        use_state_folder(&search, &policy);
    }
    let paths = paths(&search, &args.file)?;
    let summary = InitSummary {
        scan: &found,
        paths: &paths,
        policy: &args.file,
        is_dry_run: args.dry_run,
        conflict,
        written,
        is_from_tapes: !named.is_empty(),
        tapes: count_by_folder(if named.is_empty() { &tapes } else { &named }),
        taped: traffic.servers().into_iter().map(str::to_owned).collect(),
        home: search.first(&["HOME"]).map(PathBuf::from),
        folder: search.folder.clone(),
    };
    match args.format {
        InitFormat::Text => summary.text(out)?,
        InitFormat::Json => summary.json(out)?,
    }
    Ok(Exit::Ok)
}

/// The tapes to generate the policy from.
fn named_tapes(args: &Args, found: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if args.from_tapes && found.is_empty() {
        let message = "no tapes in `.tapegate/tapes`, `tapes` or this folder";
        let hint = format!(
            "name one with --from-tape TAPE, or record one: {}",
            program_name::command("record -o tapes/ -- SERVER")
        );
        return Err(Failure::new(Exit::Invalid, message).hint(hint));
    }
    let found = if args.from_tapes { found } else { &[] };
    let named = [&args.from_tape[..], found].concat();
    if named.is_empty() && args.server_id.is_some() {
        let message = "--server-id has no effect without tapes";
        return Err(Failure::new(Exit::Usage, message).hint("add --from-tape TAPE or --from-tapes"));
    }
    Ok(named)
}

/// The tapes in the usual places of this project.
fn find_tapes(search: &SearchContext<'_>) -> Vec<PathBuf> {
    // The user's state folder holds tapes of all projects, so it is not searched.
    let folders = [search.folder.join(".tapegate/tapes"), search.folder.join("tapes")];
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders.iter().filter(|folder| folder.is_dir()) {
        // A folder that cannot be read is reported when the user names it.
        let inside = backtest_tape::find(std::slice::from_ref(folder)).unwrap_or_default();
        found.extend(inside.into_iter().map(|tape| tape.path));
    }
    // Only files that are tapes by their content: projects have other `.jsonl` files.
    found.extend(backtest_tape::tapes_among_files(&search.folder));
    found.sort();
    found.dedup();
    found
}

/// How many tapes are in each folder, including those in folders that were named.
fn count_by_folder(tapes: &[PathBuf]) -> Vec<(PathBuf, usize)> {
    let mut folders: Vec<(PathBuf, usize)> = Vec::new();
    let tapes = backtest_tape::find(tapes).unwrap_or_default();
    for folder in tapes.iter().filter_map(|tape| tape.path.parent()) {
        match folders.iter_mut().find(|(known, _)| known == folder) {
            Some((_, count)) => *count += 1,
            None => folders.push((folder.to_owned(), 1)),
        }
    }
    folders
}

/// What the printed lines refer to.
fn paths(search: &SearchContext<'_>, file: &Path) -> Result<SnippetPaths, Failure> {
    let binary = std::env::current_exe().map_err(|error| {
        Failure::new(Exit::Io, format!("cannot find the path of this program: {error}"))
    })?;
    let path = search.first(&["PATH"]).unwrap_or_default();
    let first =
        std::env::split_paths(&path).map(|folder| folder.join("tapegate")).find(|it| it.is_file());
    let is_on_path =
        first.is_some_and(|it| fs::canonicalize(it).ok() == fs::canonicalize(&binary).ok());
    let policy = search.folder.join(file);
    let places = search.config_places();
    let is_found = places.contains(&policy);
    // The others come after one that is nearer.
    let is_default = places.first() == Some(&policy);
    Ok(SnippetPaths { binary, is_on_path, policy, is_found, is_default })
}

/// Loads the text as a shim will, before it is written.
fn check(text: &str, traffic: &RecordedTraffic) -> Result<(), Failure> {
    let loaded = load("tapegate.yaml", &MemoryFiles::default().with_file("tapegate.yaml", text));
    let error = loaded.findings.iter().find(|finding| finding.severity == Severity::Error);
    let tried = match (&loaded.policy, error) {
        (Some(policy), None) => check_all_pass(policy, traffic),
        (_, error) => Err(error.map_or_else(
            || "it cannot be loaded".to_owned(),
            |error| format!("line {}: {}", error.spot.line, error.message),
        )),
    };
    tried.map_err(|reason| Failure::new(Exit::Invalid, format!("no policy can be made: {reason}")))
}
