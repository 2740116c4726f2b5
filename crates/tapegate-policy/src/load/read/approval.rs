//! Reads the approval workflows.

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_core::json::path::JsonPath;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::{Node, Spot};

use super::{built_in_workflows, duration, globs, read_under, strings, texts};
use crate::model::{Workflow, WorkflowEscalation};

/// The shortest timeout for approvers.
const TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// What a workflow may do when no approver answers in time.
pub(super) const ON_TIMEOUT: &[(&str, bool)] = &[("deny", false), ("approve", true)];

/// All workflows by name; the built-in one if none is defined.
pub(super) fn read_workflows(top: &Node, findings: &mut Findings) -> BTreeMap<String, Workflow> {
    let read = read_under(top, "approval", findings, |node, findings| {
        let mut workflows = BTreeMap::new();
        for (key, node) in node.as_map().unwrap_or_default() {
            if key.name.is_empty() {
                findings.error(key.spot, "a workflow needs a name");
            }
            let workflow = findings.with_step(&key.name, |findings| read_workflow(node, findings));
            workflows.insert(key.name.clone(), workflow);
        }
        workflows
    });
    let workflows = read.as_ref();
    workflows.into_iter().for_each(|workflows| check_escalations(top, workflows, findings));
    read.filter(|workflows| !workflows.is_empty()).unwrap_or_else(built_in_workflows)
}

fn read_workflow(node: &Node, findings: &mut Findings) -> Workflow {
    let fields = MapFields::of(node);
    let otherwise = Workflow::default();
    let timeout = read_timeout(&fields, "timeout", findings);
    let blocking = read_timeout(&fields, "blocking_timeout", findings);
    redact_fields(&fields, findings);
    check_approvers(&fields, findings);
    let quorum = read_quorum(&fields, findings);
    check_in_agent(&fields, findings);
    Workflow {
        timeout: timeout.unwrap_or(otherwise.timeout),
        // An author who sets `timeout` alone means it for both transports.
        blocking_timeout: blocking.or(timeout).unwrap_or(otherwise.blocking_timeout),
        forward_on_timeout: fields.choice("on_timeout", ON_TIMEOUT, findings).unwrap_or(false),
        redact_fields: strings(fields.get("redact_fields")),
        approvers: strings(fields.get("approvers")),
        quorum,
        channels: strings(fields.get("channels")),
        in_agent: globs(fields.get("in_agent"), findings),
        escalation: read_escalation(&fields, findings),
    }
}

/// Reports a workflow in which the caller's user could not be told apart from other approvers.
fn check_in_agent(fields: &MapFields<'_>, findings: &mut Findings) {
    let Some(node) = fields.get("in_agent") else { return };
    let message = if fields.get("approvers").is_some() {
        "`in_agent` asks the user of the client, who is the caller and has no name, so none of the \
         `approvers` can answer there; leave one of the two out"
    } else if node.as_list().is_some_and(<[Node]>::is_empty) {
        "`in_agent` is empty, so that no user is asked in a client; leave it out"
    } else {
        return;
    };
    findings.with_step("in_agent", |findings| findings.error(node.spot, message));
}

fn read_escalation(fields: &MapFields<'_>, findings: &mut Findings) -> Option<WorkflowEscalation> {
    let fields = MapFields::of(fields.get("escalate")?);
    let after =
        findings.with_step("escalate", |findings| read_timeout(&fields, "after", findings))?;
    let to = fields.get("to")?.as_text()?.to_owned();
    Some(WorkflowEscalation { after, to })
}

/// Reports escalations that lead nowhere, never happen, or would let anyone decide.
fn check_escalations(top: &Node, workflows: &BTreeMap<String, Workflow>, findings: &mut Findings) {
    for (name, workflow) in workflows {
        let Some(WorkflowEscalation { after, to }) = &workflow.escalation else { continue };
        let message = match workflows.get(to) {
            None => format!("there is no workflow `{to}`"),
            Some(_) if to == name => format!("`{name}` cannot escalate to itself"),
            Some(_) if leads_to(workflows, to, name) => {
                format!("`{name}` and `{to}` escalate in a circle; end it at one of them")
            }
            Some(_) if *after >= workflow.timeout => {
                "`after` must be less than the `timeout` of the workflow, or it never happens"
                    .to_owned()
            }
            Some(second) if second.approvers.is_empty() && !workflow.approvers.is_empty() => {
                format!("`{to}` has no `approvers`, so after the escalation any user could decide")
            }
            Some(_) => continue,
        };
        let section = MapFields::of(top).get("approval");
        let node = section.and_then(|section| MapFields::of(section).get(name));
        let node = node.and_then(|node| MapFields::of(node).get("escalate"));
        let spot = node.map_or(Spot::default(), |node| node.spot);
        let steps = ["approval", name.as_str(), "escalate"];
        steps.iter().for_each(|step| findings.push_step(step));
        findings.error(spot, message);
        steps.iter().for_each(|_| findings.pop_step());
    }
}

/// Whether the escalations of a workflow lead to another one.
fn leads_to(workflows: &BTreeMap<String, Workflow>, from: &str, to: &str) -> bool {
    let mut at = from;
    // Each workflow at most once: a circle that does not include `to` must not be followed forever.
    for _ in 0..workflows.len() {
        let next = workflows.get(at).and_then(|workflow| workflow.escalation.as_ref());
        match next {
            Some(next) if next.to == to => return true,
            Some(next) => at = &next.to,
            None => return false,
        }
    }
    false
}

/// A timeout that is long enough for a person to answer.
pub(super) fn read_timeout(
    fields: &MapFields<'_>,
    key: &str,
    findings: &mut Findings,
) -> Option<Duration> {
    let time = duration(fields, key)?;
    if time < TIMEOUT_MIN
        && let Some(node) = fields.get(key)
    {
        let message = format!("`{key}` must be at least 5s, so that a person can answer");
        findings.with_step(key, |findings| findings.error(node.spot, message));
    }
    Some(time)
}

/// Reports an empty list of approvers: it suggests that no one may answer, but would permit
/// everyone.
fn check_approvers(fields: &MapFields<'_>, findings: &mut Findings) {
    if let Some(node) = fields.get("approvers")
        && node.as_list().is_some_and(<[Node]>::is_empty)
    {
        let message = "`approvers` is empty, so that no user may answer; leave it out if \
                     any user may, or deny the calls";
        findings.with_step("approvers", |findings| findings.error(node.spot, message));
    }
}

/// How many approvers must approve. Without a list, one person could approve in many names.
fn read_quorum(fields: &MapFields<'_>, findings: &mut Findings) -> u32 {
    let Some(quorum) = fields.whole_number("quorum", findings) else { return 1 };
    let mut approvers = strings(fields.get("approvers"));
    approvers.sort();
    approvers.dedup();
    if (approvers.len() as u64) < quorum
        && let Some(node) = fields.get("quorum")
    {
        let message = format!("`approvers` must name at least {quorum} users for this `quorum`");
        findings.with_step("quorum", |findings| findings.error(node.spot, message));
    }
    u32::try_from(quorum).unwrap_or(u32::MAX)
}

fn redact_fields(fields: &MapFields<'_>, findings: &mut Findings) {
    findings.push_step("redact_fields");
    for node in texts(fields.get("redact_fields")) {
        let text = node.as_text().unwrap_or_default();
        if let Some(rest) = text.strip_prefix("params.") {
            let way_out = match rest.strip_prefix("arguments.") {
                Some(rest) => format!("; write `{rest}`"),
                None => ", and this one is outside them".to_owned(),
            };
            findings.error(node.spot, format!("paths start at the arguments{way_out}"));
        }
        if let Err(fault) = JsonPath::read(node.as_text().unwrap_or_default()) {
            let message = format!("not a valid path: {} at character {}", fault.what, fault.at + 1);
            findings.error(node.spot, message);
        }
    }
    findings.pop_step();
}
