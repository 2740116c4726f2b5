//! `tapegate policy pin`: compares what servers offer with what a person has accepted.

mod discovery;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use tapegate_policy::pins::{PinDifference, PinLock, ServerSurvey, find_shadows};
use tapegate_store::{atomic_file, input};

use super::accept::accept_lock;
use super::explain::ExplainFormat;
use super::policy_loader::{self, LOCK_BYTES_MAX};
use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::trust;
use crate::upstream::UpstreamArgs;
use crate::views::pins::{self, PinReport};

/// The lock file of a project without a policy.
const LOCK: &str = "tapegate.lock";

/// Show and accept what servers offer: tools, prompts, resources and templates
///
/// Reads what a server offers from tapes, or from the server itself, and compares it with the lock
/// file, field by field. A server that is not in the lock file yet is added as a whole; changes of
/// other servers are accepted only with --all or --accept. Tools of different servers that could be
/// mistaken for each other are reported.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy pin --server-id files -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate policy pin --server-id files --all -- npx -y @modelcontextprotocol/server-filesystem /tmp
  tapegate policy pin .tapegate/tapes/files/ --accept read_file --accept write_file
  tapegate policy pin --check --server-id web --upstream-http https://mcp.example.com/mcp

Exit codes: 0 the lock file is written or up to date; 1 nothing was written, though something
differs from it; 2 the policy, the lock or a tape is invalid, 3 a file could not be read or
written, 4 the server could not be started or reached, 64 wrong usage, 130 and 143 ended by a
signal.")]
pub(crate) struct Args {
    /// Tapes of any dialect, plain or gzip; a folder stands for all tapes in it
    #[arg(value_name = "TAPE", conflicts_with_all = ["upstream", "upstream_http"])]
    tapes: Vec<PathBuf>,
    /// The policy, which names the lock file [default: the nearest tapegate.yaml, if there is one]
    #[arg(long, value_name = "FILE", visible_alias = "thoughtgate-config")]
    config: Option<PathBuf>,
    /// The server's name in the policy [default: taken from the tape or the command line]
    #[arg(long, value_name = "NAME")]
    server_id: Option<String>,
    #[command(flatten)]
    upstream: UpstreamArgs,
    /// Exit with 1 if anything differs from the lock file, and write nothing
    #[arg(long, conflicts_with_all = ["accept", "all"])]
    check: bool,
    /// Accept the items with this name; repeatable
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    accept: Vec<String>,
    /// Accept everything
    #[arg(long)]
    all: bool,
    /// Ignore the existing lock file, even if it is damaged, and write a new one
    #[arg(long, conflicts_with = "check")]
    replace: bool,
    /// How long to wait for an answer of the server
    #[arg(long, value_name = "DUR", default_value = "30s", value_parser = crate::units::duration, conflicts_with = "tapes")]
    timeout: Duration,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    format: ExplainFormat,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let found = match policy_loader::path(args.config.as_deref())? {
        // Without its lock, which this command may be about to repair.
        Some(path) => Some(policy_loader::read_unpinned(path)?),
        None => None,
    };
    let path = found.as_ref().map_or_else(|| PathBuf::from(LOCK), policy_loader::lock_path);
    let old = match args.replace {
        true => PinLock::default(),
        false => policy_loader::read_lock(&path)?.unwrap_or_default(),
    };
    let learnt = match discovery::discover(args, found.as_ref().map(|found| &found.policy))? {
        Ok(learnt) => learnt,
        Err(signal) => return Ok(Exit::from_signal(signal)),
    };
    let mut lock = old.clone();
    let accepted = accept(args, &learnt, &old, &mut lock)?;
    let differences = |lock: &PinLock| -> BTreeMap<String, Vec<PinDifference>> {
        let each = |(server, survey): (&String, &ServerSurvey)| {
            (server.clone(), survey.differences(lock, server))
        };
        learnt.iter().map(each).collect()
    };
    let mut pinned = PinReport {
        lock: &path,
        offered: learnt.iter().map(|(server, survey)| (server.clone(), survey.len())).collect(),
        differences: differences(&old),
        accepted,
        is_in_force: true,
        shadows: find_shadows(&merge_lock(&learnt, &old)),
    };
    let text = lock.write();
    // An equal text is not written again: shims would log that the file was touched.
    let written =
        lock != old && input::read_to_string(&path, LOCK_BYTES_MAX).ok().as_deref() != Some(&text);
    if written {
        write(&path, text.as_bytes())?;
        if let Some(found) = &found {
            pinned.is_in_force = accept_lock(&found.path, &found.policy.pins.lock_file)?;
        }
    } else if let Some(found) = &found {
        trust::warn_if_not_in_force(&found.path);
    }
    match args.format {
        ExplainFormat::Text => {
            let palette = terminal_output::palette_of_output();
            out.write_all(pins::text(&pinned, written, palette).as_bytes())?;
        }
        ExplainFormat::Json => out.write_all(&pins::json(&pinned, written))?,
    }
    let left: usize = differences(&lock).values().map(Vec::len).sum();
    if left > 0 && !args.check && args.format == ExplainFormat::Text {
        terminal_output::suggest(
            "accept everything with --all, or single items with --accept NAME",
        );
    }
    Ok(if left > 0 && !written { Exit::Findings } else { Exit::Ok })
}

/// Accepts what the arguments name; returns how many differences that were.
fn accept(
    args: &Args,
    learnt: &BTreeMap<String, ServerSurvey>,
    old: &PinLock,
    lock: &mut PinLock,
) -> Result<usize, Failure> {
    let mut accepted = 0;
    let mut unknown: Vec<&String> = args.accept.iter().collect();
    for (server, survey) in learnt {
        let differences = survey.differences(old, server);
        // With --replace the server may have been accepted before, so it is not accepted as a new
        // one.
        let first = !args.check
            && !args.replace
            && args.accept.is_empty()
            && !old.servers.contains_key(server);
        if args.all || first {
            accepted += differences.len();
            survey.accept_all(lock, server);
            continue;
        }
        for difference in differences.iter().filter(|one| args.accept.contains(&one.name)) {
            accepted += 1;
            unknown.retain(|name| **name != difference.name);
            difference.accept(lock, server);
        }
    }
    match unknown.first() {
        None => Ok(accepted),
        Some(name) => {
            let message = format!("nothing to accept has the name `{name}`");
            let hint = "run without --accept to list what can be accepted";
            Err(Failure::new(Exit::Usage, message).hint(hint))
        }
    }
}

/// What all servers offer; servers that were not queried count as they were accepted.
fn merge_lock(learnt: &BTreeMap<String, ServerSurvey>, old: &PinLock) -> PinLock {
    let mut all = old.clone();
    learnt.iter().for_each(|(server, survey)| survey.accept_all(&mut all, server));
    all
}

fn write(path: &std::path::Path, text: &[u8]) -> Result<(), Failure> {
    atomic_file::write(path, text).map_err(|error: io::Error| {
        Failure::new(Exit::Io, format!("cannot write `{}`: {error}", path.display()))
    })
}
