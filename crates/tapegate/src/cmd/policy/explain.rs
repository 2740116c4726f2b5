//! `tapegate policy explain`: explains why a call is decided as it is.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use tapegate_core::frame::Frame;
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_core::time::read_rfc3339;
use tapegate_policy::decide::{DecisionOutcome, PolicyPrincipal};
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::judge::{Judgement, MessageArrival, PolicyJudge, SessionState};
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::predicate::NO_ARGUMENT;
use tapegate_store::input;
use tapegate_wire::clock::Clock;

use super::policy_loader;
use crate::exit::{Exit, Failure};
use crate::settings::ProjectArgs;
use crate::terminal_output;
use crate::trust::{self, PendingFile};
use crate::views::explanation::{self, Explanation, PolicyInForce};

/// Explain how a policy decides a call
///
/// Decides the call as the shim would, and prints every step: visibility, which rules match and
/// which do not and why, the Cedar decision, and the approval workflow.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate policy explain read_file
  tapegate policy explain delete_file --server-id files --arguments '{\"path\":\"/etc/passwd\"}'
  tapegate policy explain --method resources/read file:///etc/passwd
  tapegate policy explain deploy --principal ci --role release --at 2026-12-24T23:00:00Z
  tapegate policy explain --frame '{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{}}'
  tapegate policy explain read_file --exit-code && echo it passes

Exit codes: 0 done; with --exit-code, 0 if the call is forwarded, 1 if it is denied, 7 if it waits
for approval; 2 the policy is invalid, 3 a file could not be read, 64 wrong usage.")]
pub(crate) struct Args {
    /// The name of the tool or prompt, or the URI
    #[arg(value_name = "TOOL", required_unless_present = "frame", conflicts_with = "frame")]
    name: Option<String>,
    #[command(flatten)]
    project: ProjectArgs,
    /// The server's name in the policy [default: the only one, or `*`]
    #[arg(long, value_name = "NAME")]
    server_id: Option<String>,
    /// The method
    #[arg(long, value_name = "METHOD", default_value = "tools/call", conflicts_with = "frame")]
    method: String,
    /// The arguments of the call, as JSON
    #[arg(long, value_name = "JSON", conflicts_with_all = ["arguments_file", "frame"])]
    arguments: Option<String>,
    /// A file with the arguments of the call, as JSON
    #[arg(long, value_name = "FILE", conflicts_with = "frame")]
    arguments_file: Option<PathBuf>,
    /// A complete JSON-RPC message, whose form is checked too; `-` for standard input
    #[arg(long, value_name = "JSON")]
    frame: Option<String>,
    /// Who sends the message
    #[arg(long, value_enum, default_value = "client", requires = "frame")]
    from: SenderArg,
    #[command(flatten)]
    who: CallerArgs,
    /// The time of the call, such as 2026-03-20T14:22:11Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    at: Option<i64>,
    /// The output format
    #[arg(long, value_enum, default_value = "text")]
    format: ExplainFormat,
    /// Exit with 1 if the call is denied and with 7 if it is held
    #[arg(long)]
    exit_code: bool,
}

/// The caller, as given on the command line; the policy supplies the rest.
#[derive(Debug, Default, clap::Args)]
pub(super) struct CallerArgs {
    /// The name of the principal
    #[arg(long, value_name = "NAME")]
    principal: Option<String>,
    /// The namespace of the principal
    #[arg(long, value_name = "NAME")]
    namespace: Option<String>,
    /// The service account of the principal
    #[arg(long, value_name = "NAME")]
    service_account: Option<String>,
    /// A role of the principal; repeatable
    #[arg(long, value_name = "NAME")]
    role: Vec<String>,
    /// The agent, as it names itself
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SenderArg {
    /// The agent
    Client,
    /// The MCP server
    Server,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ExplainFormat {
    Text,
    Json,
}

/// The exit code for a call that waits for approval.
const HELD: Exit = Exit::Code(7);

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (found, pending) = policy_loader::nearest_or_pending(args.project.config.as_deref())?;
    let policy = &found.policy;
    let profile = policy_loader::profile(args.project.profile, policy)?;
    let call = ExplainedCall::read(args)?;
    let judgement = call.judge(policy, profile);
    let in_force = match &pending {
        None => PolicyInForce::ThisFile,
        Some(pending) => decision_in_force(&call, pending)?,
    };
    let server = policy_loader::server(args.server_id.as_deref(), policy).to_owned();
    let explained = Explanation { server, judgement, in_force };
    match args.format {
        ExplainFormat::Text => {
            let palette = terminal_output::palette_of_output();
            out.write_all(explanation::text(&explained, profile, palette).as_bytes())?;
        }
        ExplainFormat::Json => out.write_all(&explanation::json(&explained, profile))?,
    }
    if !call.has_arguments() {
        suggest_arguments(&explained.judgement);
    }
    Ok(if args.exit_code { exit_of(&explained.judgement, profile) } else { Exit::Ok })
}

/// What the command line asks about.
struct ExplainedCall<'a> {
    args: &'a Args,
    name: String,
    arguments: Option<Vec<u8>>,
    /// A complete message, in place of the name and the arguments.
    frame: Option<Vec<u8>>,
    wall_us: i64,
}

impl<'a> ExplainedCall<'a> {
    fn read(args: &'a Args) -> anyhow::Result<Self> {
        Ok(Self {
            args,
            name: args.name.clone().unwrap_or_default(),
            arguments: arguments_of(args)?,
            frame: args.frame.as_deref().map(frame_bytes).transpose()?,
            wall_us: args.at.unwrap_or_else(|| Clock::start().now().wall_us),
        })
    }

    /// The decision of a policy, by the judge of the shim itself, so that the explanation cannot
    /// differ from what happens.
    fn judge(&self, policy: &Policy, profile: Profile) -> Judgement<'_> {
        let Self { args, wall_us, .. } = self;
        let source = policy_loader::server(args.server_id.as_deref(), policy);
        let judge = PolicyJudge { policy: Some(policy), profile, source, explains: true };
        let mut state = SessionState::new(args.who.principal(policy));
        match &self.frame {
            Some(bytes) => {
                let from = match args.from {
                    SenderArg::Client => Side::Client,
                    SenderArg::Server => Side::Server,
                };
                let (carrier, wall_us) = (TransportKind::Lines, *wall_us);
                let arrival = MessageArrival { from, carrier, session: 0, wall_us };
                judge.judge(&Frame::read(bytes), arrival, &mut state)
            }
            None => {
                let arguments = self.arguments.as_deref();
                judge.judge_call(&args.method, &self.name, arguments, *wall_us, &mut state)
            }
        }
    }

    fn has_arguments(&self) -> bool {
        self.arguments.is_some() || self.frame.is_some()
    }
}

/// What the policy in force does in place of a file that is not accepted.
fn decision_in_force(
    call: &ExplainedCall<'_>,
    pending: &PendingFile,
) -> anyhow::Result<PolicyInForce> {
    let accepted = pending.in_force.as_ref().map(|accepted| trust::read_accepted(accepted, None));
    let active = accepted.and_then(|loaded| loaded.active_policy);
    let Some(policy) = active.and_then(|active| active.policy) else {
        return Ok(PolicyInForce::None);
    };
    let profile = policy_loader::profile(call.args.project.profile, &policy)?;
    Ok(PolicyInForce::Accepted(call.judge(&policy, profile).outcome(profile)))
}

/// Suggests `--arguments` if a rule tests an argument and none were given.
fn suggest_arguments(judgement: &Judgement<'_>) {
    let steps = judgement.all_calls().flat_map(|call| &call.decision).flat_map(|it| &it.steps);
    let missing = |step: &String| {
        let (_, path) = step.split_once(NO_ARGUMENT)?;
        let name = path.trim_matches('`').trim_start_matches("$.");
        Some(name.split(['.', '[']).next().unwrap_or(name).to_owned())
    };
    let mut names: Vec<String> = steps.filter_map(missing).collect();
    names.dedup();
    if !names.is_empty() {
        let members: Vec<String> = names.iter().map(|name| format!("\"{name}\": …")).collect();
        let line = format!("pass --arguments '{{{}}}'", members.join(", "));
        terminal_output::suggest(&format!("rules test arguments, and none were given; {line}"));
    }
}

/// The largest arguments or message read from a file or a pipe, in bytes.
const INPUT_BYTES_MAX: u64 = 64 << 20;

/// The arguments of a call given by name.
fn arguments_of(args: &Args) -> anyhow::Result<Option<Vec<u8>>> {
    let arguments = match (&args.arguments, &args.arguments_file) {
        (Some(text), _) => Some(text.clone().into_bytes()),
        (None, Some(path)) => {
            let name = path.display();
            let read = input::read(path, INPUT_BYTES_MAX);
            Some(read.with_context(|| format!("cannot read `{name}`"))?)
        }
        (None, None) => None,
    };
    if let Some(text) = &arguments
        && let Err(fault) = json::check(text)
    {
        let message = format!("the arguments are not valid JSON: {fault}");
        return Err(Failure::new(Exit::Usage, message)
            .hint("such as '{\"path\":\"/tmp\"}'")
            .into());
    }
    Ok(arguments)
}

/// The bytes of a complete message.
fn frame_bytes(text: &str) -> anyhow::Result<Vec<u8>> {
    let mut bytes = text.as_bytes().to_vec();
    if text == "-" {
        let read = input::read_up_to(std::io::stdin().lock(), INPUT_BYTES_MAX);
        bytes = read.context("cannot read standard input")?;
        // The line ending is not part of the message.
        bytes.truncate(bytes.strip_suffix(b"\n").unwrap_or(&bytes).len());
    }
    Ok(bytes)
}

fn exit_of(judgement: &Judgement<'_>, profile: Profile) -> Exit {
    match judgement.outcome(profile) {
        DecisionOutcome::Forward => Exit::Ok,
        DecisionOutcome::Deny => Exit::Findings,
        DecisionOutcome::Hold { .. } => HELD,
    }
}

impl CallerArgs {
    /// The principal that makes the call.
    fn principal(&self, policy: &Policy) -> PolicyPrincipal {
        let ours = &policy.principal;
        let text = |value: &Option<String>, ours: &String| value.as_ref().unwrap_or(ours).clone();
        PolicyPrincipal {
            name: text(&self.principal, &ours.name),
            namespace: text(&self.namespace, &ours.namespace),
            service_account: text(&self.service_account, &ours.service_account),
            roles: if self.role.is_empty() { ours.roles.clone() } else { self.role.clone() },
            client: self.client.clone().or_else(|| ours.client.clone()),
        }
    }
}

fn parse_time(text: &str) -> Result<i64, String> {
    read_rfc3339(text).ok_or_else(|| "expected a time such as 2026-03-20T14:22:11Z".to_owned())
}
