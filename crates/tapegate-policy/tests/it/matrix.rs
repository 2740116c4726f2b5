//! Every gate, action, profile and method in one table, so that a changed decision is a visible
//! diff.

use std::fmt::Write as _;

use tapegate_policy::decide::{
    CallFacts, DecisionOutcome, GateName, PolicyCall, PolicyPrincipal, decide, explain,
};
use tapegate_policy::gated_requests::GatedMethod;
use tapegate_policy::model::{OnDrift, Policy, Profile};
use tapegate_policy::refuse::RefusalSubject;

use crate::gate_harness::policy_with;

const POLICY: &str = r#"
schema: 1
sources:
  - {id: open, kind: mcp}
  - {id: shut, kind: mcp, enabled: false}
  - id: some
    kind: mcp
    expose: {mode: allowlist, tools: ["*_x"], prompts: ["*_x"], resources: ["x://*"]}
governance:
  defaults: {action: deny}
  rules:
    - {id: fwd, match: ["forward*", "x://forward"], action: forward}
    - {id: not, match: ["deny*", "x://deny"], action: deny}
    - {id: ask, match: ["approve*", "x://approve"], action: approve, approval: people}
    - {id: cedar, match: ["cedar*", "x://cedar*"], action: policy, policy_id: p}
    - {id: both, match: ["both*", "x://both"], action: policy, policy_id: p, approval: people}
    - {id: logs, method: "logging/*", action: deny}
    - {id: model, method: sampling/createMessage, action: approve, approval: people}
    - {id: roots, method: roots/list, action: forward}
approval:
  people: {destination: {type: cli}, timeout: 10m}
  others: {destination: {type: cli}, timeout: 10m}
cedar: {policies: [p.cedar]}
"#;

const CEDAR: &str = r#"
@id("all")
permit(principal, action, resource) unless { resource.name like "*stop*" };
@id("never")
forbid(principal, action, resource) when { resource.name like "*never*" };
@id("asked") @approval("others")
permit(principal, action, resource) when { resource.name like "*asked*" };
"#;

/// The names called: for tools and prompts, and for resources.
const NAMES: &[(&str, &str)] = &[
    ("forward_x", "x://forward"),
    ("deny_x", "x://deny"),
    ("approve_x", "x://approve"),
    ("cedar_x", "x://cedar"),
    ("cedar_stop_x", "x://cedar-stop"),
    ("cedar_never_x", "x://cedar-never"),
    ("cedar_asked_x", "x://cedar-asked"),
    ("both_x", "x://both"),
    ("other_x", "x://other"),
    ("forward", "y://forward"),
];

const UNGATED: &[&str] = &[
    "initialize",
    "ping",
    "server/discover",
    "notifications/cancelled",
    "tools/list",
    "logging/setLevel",
    "tasks/get",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "Logging/SETLEVEL",
    "admin/run",
    "tools/execute",
    "notifications/vendor",
];

/// One line of the table.
fn line(policy: &Policy, call: &PolicyCall<'_>, drift: Option<&str>) -> String {
    let principal = PolicyPrincipal { name: "ann".to_owned(), ..PolicyPrincipal::default() };
    let facts = CallFacts { wall_us: 0, principal: Some(&principal), drift };
    let strict = decide(policy, Profile::Production, call, &facts);
    let lax = decide(policy, Profile::Development, call, &facts);
    assert_eq!(strict.outcome, strict.strict);
    assert_eq!((lax.outcome.clone(), &lax.strict), (DecisionOutcome::Forward, &strict.strict));
    // An explanation is the decision itself plus its steps.
    let explained = explain(policy, Profile::Production, call, &facts);
    assert!(explained.steps.len() > 1, "{explained:?}");
    let mut without_steps = explained;
    without_steps.steps.clear();
    assert_eq!(without_steps, strict);

    let done = match &strict.outcome {
        DecisionOutcome::Forward => "forward".to_owned(),
        DecisionOutcome::Hold { workflow } => format!("hold:{workflow}"),
        DecisionOutcome::Deny => {
            let subject =
                RefusalSubject { word: "x", name: String::new(), correlation_id: String::new() };
            format!("deny {}", subject.policy_denial(&strict).code)
        }
    };
    let by = strict.rule.as_deref().unwrap_or("-");
    let ids = strict.policies.join("+");
    let PolicyCall { source, method, name, .. } = call;
    let gate = GateName::as_str(strict.gate);
    let row = format!(
        "{method:<24} {source:<7} {name:<16} {done:<13} {gate:<10} {by:<6} {ids:<10} {}",
        lax.logged().as_str()
    );
    row.trim_end().to_owned()
}

fn table() -> String {
    let mut policy = policy_with(POLICY, &[("p.cedar", CEDAR)]);
    let mut out = format!(
        "{:<24} {:<7} {:<16} {:<13} {:<10} {:<6} {:<10} development logs\n",
        "method", "source", "name", "production", "gate", "rule", "cedar"
    );
    let row = |policy: &Policy, source, method: &str, name: &str, drift| {
        let call = PolicyCall { source, method, name, arguments: Some(b"{}") };
        line(policy, &call, drift)
    };
    let all = GatedMethod::ALL.map(GatedMethod::method);
    let of = |method: &str, names: &(&'static str, &'static str)| match method {
        "tools/call" | "prompts/get" | "completion/complete" => names.0,
        _ => names.1,
    };
    for method in all {
        for source in ["open", "some", "shut", "unknown"] {
            for names in NAMES {
                let row = row(&policy, source, method, of(method, names), None);
                writeln!(out, "{row}").unwrap();
            }
        }
    }
    for method in UNGATED {
        for source in ["open", "shut", "unknown"] {
            writeln!(out, "{}", row(&policy, source, method, "", None)).unwrap();
        }
    }
    for (on_drift, word) in [
        (OnDrift::Deny, "deny"),
        (OnDrift::Approve, "approve"),
        (OnDrift::Warn, "warn"),
        (OnDrift::Ignore, "ignore"),
    ] {
        writeln!(out, "\n# what is called has changed since it was accepted; on_drift: {word}")
            .unwrap();
        policy.pins.on_drift = on_drift;
        policy.pins.workflow = Some("others".to_owned());
        for method in all {
            for names in &NAMES[..4] {
                let row = row(&policy, "open", method, of(method, names), Some("changed"));
                writeln!(out, "{row}").unwrap();
            }
        }
    }
    out
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a golden is a file")]
fn every_gate_action_profile_and_method_is_decided_as_the_table_says() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/decisions.txt");
    let table = table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = golden.lines().zip(table.lines()).find(|(old, new)| old != new);
    assert!(golden == table, "write it anew by UPDATE_GOLDEN=1; first: {differs:#?}");
}

#[test]
fn an_explanation_tells_every_step_and_what_production_would_do() {
    let policy = policy_with(POLICY, &[("p.cedar", CEDAR)]);
    let call =
        PolicyCall { source: "open", method: "tools/call", name: "approve_x", arguments: None };
    let decision = explain(&policy, Profile::Development, &call, &CallFacts::default());
    assert_eq!(
        decision.steps,
        [
            "visibility: source `open` exposes it",
            "rules: `fwd` (line 12) does not match: the name does not match `forward*` or `x://forward`",
            "rules: `not` (line 13) does not match: the name does not match `deny*` or `x://deny`",
            "rules: `ask` (line 14) matches: approve",
            "approval: workflow `people` applies",
            "outcome: sent on, since the profile is development; production would hold it for approval",
        ]
    );
}
