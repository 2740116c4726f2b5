//! An agent that can write the project's files: the policy, the files it names, the lock. Also
//! projects with no policy or a bad one.

use std::fs;

use serde_json::{Value, json};
use tapegate_policy::pins::PinLock;

use super::agent::{AttackClient, WAYS};
use crate::shim::setup::{FORWARD, events, rules};
use crate::support::shim;

const CEDAR: &str = "permit (principal, action, resource);\nforbid (principal, action, resource) when { resource.name == \"danger\" };\n";
const BY_CEDAR: &str = "schema: 1\ngovernance: { defaults: { action: policy, policy_id: p } }\ncedar: { policies: [p.cedar] }\n";

/// Calls the denied tool until the log shows that a change was rejected; every call must be
/// refused.
fn stays_denied(agent: &AttackClient, tool: &str, change: &str) {
    let is_noted = |event: &Value| event["event"] == "refused" || event["event"] == "not_accepted";
    let mut tries = 0;
    agent.run().until("the change is in the log", |run| {
        let answer = agent.call(tool, json!({}));
        assert!(answer["error"].is_object(), "{:?} {change}: {answer}", agent.way);
        tries += 1;
        events(run.folder()).iter().any(is_noted)
    });
    let answer = agent.call(tool, json!({}));
    assert!(answer["error"].is_object(), "{:?} {change} after {tries}: {answer}", agent.way);
    assert_eq!(agent.runs_of(tool), 0, "{:?} {change}", agent.way);
}

#[test]
fn a_policy_that_the_agent_rewrites_is_not_taken() {
    for way in WAYS {
        let agent = AttackClient::start(way, shim(&rules(&[("danger", "deny")]), &[]));
        agent.is_refused(-32014, "tools/call", json!({"name": "danger", "arguments": {}}));
        fs::write(agent.run().folder().join("tapegate.yaml"), FORWARD).unwrap();
        stays_denied(&agent, "danger", "a policy that forwards");
        agent.is_unharmed();
    }
}

#[test]
fn a_file_that_is_emptied_shortened_or_removed_leaves_what_was_in_force() {
    let shortened = &CEDAR[..CEDAR.find("forbid").unwrap()];
    let half = "schema: 1\ngovernance: { defaults: { act";
    let changes = [
        ("p.cedar", Some(shortened)),
        ("p.cedar", Some("")),
        ("p.cedar", None),
        ("tapegate.yaml", Some("")),
        ("tapegate.yaml", Some(half)),
        ("tapegate.yaml", None),
    ];
    // Each transport with some of the changes, since watching files does not depend on the
    // transport.
    for (index, way) in WAYS.into_iter().enumerate() {
        for (name, text) in changes.iter().skip(index % 3).step_by(3) {
            let setup = shim(BY_CEDAR, &[]);
            fs::write(setup.folder().join("p.cedar"), CEDAR).unwrap();
            let agent = AttackClient::start(way, setup);
            agent.is_refused(-32003, "tools/call", json!({"name": "danger", "arguments": {}}));
            let path = agent.run().folder().join(name);
            match text {
                Some(text) => fs::write(path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
            stays_denied(&agent, "danger", &format!("{name} {text:?}"));
            agent.is_unharmed();
        }
    }
}

/// A lock with the tools of a server, with a prefix before each description.
fn lock(page: &Value, word: &str) -> String {
    let mut page = page.clone();
    for tool in page["tools"].as_array_mut().unwrap() {
        let description = tool["description"].as_str().unwrap_or_default();
        tool["description"] = format!("{word}{description}").into();
    }
    let mut lock = PinLock::default();
    lock.learn("s", &[page.to_string().as_bytes()]);
    lock.write()
}

#[test]
fn a_rug_pull_is_refused_to_a_client_that_never_lists_also_without_the_lock() {
    for way in WAYS {
        let asking = AttackClient::start(way, shim(FORWARD, &[]));
        let page = asking.ask("tools/list", json!({}))["result"].clone();
        drop(asking);
        let start = |word: &str| {
            let setup = shim(FORWARD, &[]);
            fs::write(setup.folder().join("tapegate.lock"), lock(&page, word)).unwrap();
            AttackClient::start(way, setup)
        };
        start("").is_unharmed();
        let agent = start("Before it changed: ");
        let call = json!({"name": "safe", "arguments": {}});
        let answer = agent.is_refused(-32014, "tools/call", call);
        assert_eq!(answer["error"]["data"]["error_type"], "definition_drift", "{way:?} {answer}");
        fs::remove_file(agent.run().folder().join("tapegate.lock")).unwrap();
        stays_denied(&agent, "safe", "a removed lock");
    }
}

#[test]
fn without_a_policy_that_loads_nothing_starts_where_one_is_required() {
    let bad = "schema: 1\ngovernance: { defaults: { action: forwad } }\n";
    for way in WAYS {
        for (policy, reason) in [("", "no policy found"), (bad, "forwad")] {
            let agent = AttackClient::launch(way, shim(policy, &[]).flags(&["--require-policy"]));
            let answer = agent.hello();
            let output_text = answer["error"]["message"].as_str().unwrap_or_default();
            assert!(output_text.contains(reason), "{way:?} {policy:?}: {answer}");
            let answer = agent.call("danger", json!({}));
            assert!(answer["error"].is_object(), "{way:?} {policy:?}: {answer}");
            assert_eq!(agent.ran(), [""; 0], "{way:?} {policy:?}");
            let is_noted = |event: &Value| event["event"] == "start_failed";
            assert!(events(agent.run().folder()).iter().any(is_noted), "{way:?} {policy:?}");
        }
    }
}
