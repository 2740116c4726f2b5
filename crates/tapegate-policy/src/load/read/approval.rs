//! Reads the approval workflows.

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_core::json::path::JsonPath;
use tapegate_yaml::field::MapFields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{built_in_workflows, duration, read_under, strings, texts};
use crate::model::Workflow;

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
    read.filter(|workflows| !workflows.is_empty()).unwrap_or_else(built_in_workflows)
}

fn read_workflow(node: &Node, findings: &mut Findings) -> Workflow {
    let fields = MapFields::of(node);
    let otherwise = Workflow::default();
    let timeout = read_timeout(&fields, "timeout", findings);
    let blocking = read_timeout(&fields, "blocking_timeout", findings);
    redact_fields(&fields, findings);
    check_approvers(&fields, findings);
    Workflow {
        timeout: timeout.unwrap_or(otherwise.timeout),
        // An author who sets `timeout` alone means it for both transports.
        blocking_timeout: blocking.or(timeout).unwrap_or(otherwise.blocking_timeout),
        forward_on_timeout: fields.choice("on_timeout", ON_TIMEOUT, findings).unwrap_or(false),
        redact_fields: strings(fields.get("redact_fields")),
        approvers: strings(fields.get("approvers")),
    }
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
