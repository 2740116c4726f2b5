//! Reads the approval workflows.

use std::collections::BTreeMap;
use std::time::Duration;

use tapegate_core::json::path::Path;
use tapegate_yaml::field::Fields;
use tapegate_yaml::finding::Findings;
use tapegate_yaml::node::Node;

use super::{built_in, duration, strings, texts, under};
use crate::model::Workflow;

/// The shortest timeout for approvers.
const TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// What a workflow may do when no approver answers in time.
pub(super) const ON_TIMEOUT: &[(&str, bool)] = &[("deny", false), ("approve", true)];

/// All workflows by name; the built-in one if none is defined.
pub(super) fn workflows(top: &Node, findings: &mut Findings) -> BTreeMap<String, Workflow> {
    let read = under(top, "approval", findings, |node, findings| {
        let mut workflows = BTreeMap::new();
        for (key, node) in node.as_map().unwrap_or_default() {
            if key.name.is_empty() {
                findings.error(key.spot, "a workflow needs a name");
            }
            let workflow = findings.within(&key.name, |findings| workflow(node, findings));
            workflows.insert(key.name.clone(), workflow);
        }
        workflows
    });
    read.filter(|workflows| !workflows.is_empty()).unwrap_or_else(built_in)
}

fn workflow(node: &Node, findings: &mut Findings) -> Workflow {
    let fields = Fields::of(node);
    let otherwise = Workflow::default();
    let timeout = patience(&fields, "timeout", findings);
    let blocking = patience(&fields, "blocking_timeout", findings);
    redact_fields(&fields, findings);
    no_approvers(&fields, findings);
    Workflow {
        timeout: timeout.unwrap_or(otherwise.timeout),
        blocking_timeout: blocking.or(timeout).unwrap_or(otherwise.blocking_timeout),
        forward_on_timeout: fields.choice("on_timeout", ON_TIMEOUT, findings).unwrap_or(false),
        redact_fields: strings(fields.get("redact_fields")),
        approvers: strings(fields.get("approvers")),
    }
}

/// A timeout that is long enough for a person to answer.
pub(super) fn patience(
    fields: &Fields<'_>,
    key: &str,
    findings: &mut Findings,
) -> Option<Duration> {
    let time = duration(fields, key)?;
    if time < TIMEOUT_MIN
        && let Some(node) = fields.get(key)
    {
        let words = format!("`{key}` must be at least 5s, so that a person can answer");
        findings.within(key, |findings| findings.error(node.spot, words));
    }
    Some(time)
}

/// Reports an empty list of approvers: it suggests that no one may answer, but would permit
/// everyone.
fn no_approvers(fields: &Fields<'_>, findings: &mut Findings) {
    if let Some(node) = fields.get("approvers")
        && node.as_list().is_some_and(<[Node]>::is_empty)
    {
        let words = "`approvers` is empty, so that no user may answer; leave it out if \
                     any user may, or deny the calls";
        findings.within("approvers", |findings| findings.error(node.spot, words));
    }
}

fn redact_fields(fields: &Fields<'_>, findings: &mut Findings) {
    findings.enter("redact_fields");
    for node in texts(fields.get("redact_fields")) {
        let text = node.as_text().unwrap_or_default();
        if let Some(rest) = text.strip_prefix("params.") {
            let way_out = match rest.strip_prefix("arguments.") {
                Some(rest) => format!("; write `{rest}`"),
                None => ", and this one is outside them".to_owned(),
            };
            findings.error(node.spot, format!("paths start at the arguments{way_out}"));
        }
        if let Err(fault) = Path::read(node.as_text().unwrap_or_default()) {
            let words = format!("not a valid path: {} at character {}", fault.what, fault.at + 1);
            findings.error(node.spot, words);
        }
    }
    findings.leave();
}
