//! `tapegate approvals test WORKFLOW`: sends a trial request through every channel of a workflow.
//!
//! The trial is an ordinary request about a call that does not exist. So it shows what people would
//! see, it can be answered, and no answer lets anything pass.

use std::io::Write;
use std::time::{Duration, Instant};

use tapegate_core::activity::ActivityKind;
use tapegate_hub::api::ChannelsAnswer;
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_hub::hub_lock::{approver_token_file, endpoint_file, read_small};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalOutcome, ApprovalRecord, new_id,
};

use super::folder::Project;
use super::{Args, decide, failure};
use crate::approver_check::PersonAttempt;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::runtime;
use crate::state_folder::now_us;
use crate::views::visible_text;

/// How long a trial can be answered.
const PERIOD_US: i64 = 120_000_000;
/// How long to wait until every channel has told people or failed.
const PATIENCE: Duration = Duration::from_secs(15);
const PAUSE: Duration = Duration::from_millis(100);
/// The method of trials, which no server has.
const METHOD: &str = "tapegate/test";
/// How a channel stands that has not sent the trial yet.
const WAITING: &str = "waiting";

pub(super) fn run(args: &Args, project: &Project, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let by = decide::decider_name(args)?;
    let workflow = &args.ids[0];
    let command = args.key.command_text("approvals test");
    let attempt =
        PersonAttempt { kind: ActivityKind::Approval, command: &command, approval_id: None };
    // An agent must not call people.
    let authorized = args.key.authorize("asking people", &project.state);
    attempt.log_if_refused(&project.state, authorized)?;
    let client = client(project)?;
    let runtime = runtime::start()?;
    let trial = Trial { project, client, request: request(workflow, &by)? };
    let approvals = project.approvals()?;
    approvals.publish_request(&trial.request).map_err(failure)?;
    let done = runtime.block_on(trial.follow(args.wait, out));
    // Also after an error, so that approvers are not asked about a test that is over.
    let ended = approvals.withdraw(&trial.request.id, &by, now_us());
    let decided = match ended {
        Ok(()) => None,
        Err(ApprovalError::AlreadyDecided { decided, .. }) => Some(decided),
        Err(error) => return Err(failure(error).into()),
    };
    let exit = done?;
    if let Some(decided) = decided.filter(|decided| is_answer(decided)) {
        let by = visible_text::inline(&decided.by, 200);
        let through = match runtime.block_on(trial.states())?.answered_by.as_deref() {
            // The hub does not see how a terminal decides, since that is a file.
            None => "at the terminal".to_owned(),
            Some("api") => "through the API".to_owned(),
            Some(channel) => format!("through `{}`", visible_text::inline(channel, 80)),
        };
        writeln!(out, "answer: {} by {by} {through}", decided.ruling.as_str())?;
    } else if args.wait {
        writeln!(out, "answer: none in time")?;
        return Ok(Exit::Findings);
    }
    Ok(exit)
}

fn is_answer(decided: &ApprovalDecision) -> bool {
    matches!(decided.ruling, ApprovalOutcome::Approved | ApprovalOutcome::Denied)
}

/// A client of the project's hub with the approvers' token.
fn client(project: &Project) -> Result<HubClient, Failure> {
    let endpoint = read_small(&endpoint_file(&project.state)).map_err(|_| {
        let message =
            format!("no hub serves `{}`, and only a hub has channels", project.state.display());
        Failure::new(Exit::Transport, message)
            .hint(format!("`{}` starts one", program_name::command("hub")))
    })?;
    let token = approver_token_file(project.user_state(), &project.state);
    HubClient::new(&endpoint, &token).map_err(client_failure)
}

fn client_failure(error: ClientError) -> Failure {
    Failure::new(Exit::Transport, error)
}

fn request(workflow: &str, by: &str) -> Result<ApprovalRecord, Failure> {
    let id = new_id().map_err(|error| Failure::new(Exit::Io, error))?;
    let created_us = now_us();
    let params =
        r#"{"name":"trial","arguments":{"note":"This is a trial. No answer has any effect."}}"#;
    Ok(ApprovalRecord {
        // Unlike that of any call, so that nothing joins it or passes by it.
        call_hash: format!("trial {id}"),
        id,
        created_us,
        expires_us: created_us + PERIOD_US,
        server_id: "tapegate".to_owned(),
        method: METHOD.to_owned(),
        tool: "trial".to_owned(),
        params: Some(params.to_owned()),
        principal: format!("{by} (trial)"),
        workflow: workflow.to_owned(),
        reason: "a person tests the channels of the workflow".to_owned(),
        pid: std::process::id(),
        call_count: 1,
        waiting: 1,
        ..ApprovalRecord::default()
    })
}

/// A trial request that is published.
struct Trial<'a> {
    project: &'a Project,
    client: HubClient,
    request: ApprovalRecord,
}

impl Trial<'_> {
    /// Reports each channel as soon as it has told people or failed, and waits for an answer if
    /// that is wanted.
    async fn follow(&self, waits: bool, out: &mut dyn Write) -> anyhow::Result<Exit> {
        let began = Instant::now();
        let answer = loop {
            let answer = self.states().await?;
            let is_settled = answer.channels.iter().all(|channel| channel.state != WAITING);
            if is_settled || began.elapsed() > PATIENCE {
                break answer;
            }
            tokio::time::sleep(PAUSE).await;
        };
        if !answer.known {
            let workflow = visible_text::inline(&self.request.workflow, 80);
            let message = format!("the policy of the hub has no workflow `{workflow}`");
            return Err(Failure::new(Exit::Invalid, message).into());
        }
        let mut exit = self.report_other_ways(&answer, out)?;
        for channel in &answer.channels {
            let fault =
                channel.fault.as_deref().map(|fault| format!(": {fault}")).unwrap_or_default();
            let state =
                if channel.state == WAITING { "no answer from the server" } else { &channel.state };
            writeln!(out, "{} ({}): {state}{fault}", channel.name, channel.kind)?;
            if channel.state != "told" {
                exit = Exit::Findings;
            }
        }
        out.flush()?;
        if waits && exit == Exit::Ok {
            self.wait_for_answer().await?;
        }
        Ok(exit)
    }

    /// Reports the ways to decide that need no channel: they are there if the request is.
    fn report_other_ways(
        &self,
        answer: &ChannelsAnswer,
        out: &mut dyn Write,
    ) -> anyhow::Result<Exit> {
        let id = &self.request.id;
        let pending = self.project.approvals()?.pending(now_us()).map_err(failure)?;
        let is_listed = pending.iter().any(|request| request.id == *id);
        let state = if is_listed { "listed as" } else { "does not list" };
        writeln!(out, "terminal: {state} {id}")?;
        // The hub has just answered about it, with the approvers' token.
        writeln!(out, "API: answers about {id}")?;
        let clients: Vec<String> =
            answer.in_agent.iter().map(|glob| visible_text::inline(glob, 80)).collect();
        match clients.is_empty() {
            true => writeln!(out, "in the agent: no agent is permitted")?,
            // A trial has no caller who could be asked.
            false => {
                writeln!(out, "in the agent: calls of {} are asked about", clients.join(", "))?
            }
        }
        Ok(if is_listed { Exit::Ok } else { Exit::Findings })
    }

    async fn states(&self) -> Result<ChannelsAnswer, Failure> {
        self.client.channel_states(&self.request.id).await.map_err(client_failure)
    }

    async fn wait_for_answer(&self) -> Result<(), Failure> {
        let approvals = self.project.approvals()?;
        while now_us() < self.request.expires_us {
            if approvals.decision_for(&self.request).map_err(failure)?.is_some() {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
        Ok(())
    }
}
