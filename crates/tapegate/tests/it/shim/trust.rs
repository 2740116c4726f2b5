//! A policy is trusted on first use and then by content: the accepted text stays in force.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;
use tapegate_policy::gated_requests::OfferKind;
use tapegate_policy::pins::{Pin, PinLock, PinnedServer};
use tapegate_store::user_state::PrivateDir;

use super::setup::{
    FORWARD, answer, call, call_with, event, events, is_refused, rules, server_got, state,
    tapegate_on,
};
use crate::support::{RunningSession, accept_policy, replace_file, shim, write_key};

const CEDAR: &str = "permit (principal, action, resource);\nforbid (principal, action, resource) when { resource.name == \"rm\" };\n";
const BY_CEDAR: &str = "schema: 1\ngovernance: { defaults: { action: policy, policy_id: p } }\ncedar: { policies: [p.cedar] }\n";

fn denying() -> String {
    rules(&[("rm", "deny")])
}

/// Whether the server answers a call of `tool`.
fn passes(run: &mut RunningSession, id: u32, tool: &str) -> bool {
    run.send(call(id, tool).as_bytes());
    answer(run, id)["result"].is_object()
}

fn has_event(folder: &Path, name: &str) -> bool {
    events(folder).iter().any(|event| event["event"] == name)
}

/// Starts another session in the folder of one that has ended.
fn again(folder: &Path) -> RunningSession {
    shim("", &["serve"]).within(folder).start()
}

#[test]
fn the_first_use_of_a_policy_is_accepted_and_logged_with_its_hash() {
    let mut run = shim(&denying(), &["serve"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    let end = run.end_of_input().exits(0);
    let first = event(end.run.folder(), &[("event", "accepted")]);
    assert_eq!(first["policy_hash"].as_str().map(str::len), Some(16), "{first}");
    let listed = tapegate_on(&end.run, &["policy", "accept", "--list"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("first use") && listed.contains("in force"), "{listed}");
}

#[test]
fn a_loosened_policy_is_not_taken_and_the_warning_comes_once() {
    let mut run = shim(&denying(), &["serve"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    replace_file(&run.folder().join("tapegate.yaml"), FORWARD);
    run.says("tapegate policy accept");
    assert!(!passes(&mut run, 2, "rm"), "the accepted policy stays in force");
    run.signal(Signal::HUP);
    run.until("the policy to be looked at again", |run| has_event(run.folder(), "reloaded"));
    assert!(!passes(&mut run, 3, "rm"));
    let end = run.end_of_input().exits(0);
    let warned = event(end.run.folder(), &[("event", "not_accepted")]);
    assert_eq!(warned["level"], "warn");
}

#[test]
fn at_the_next_start_the_accepted_policy_governs_too() {
    let setup = shim(&denying(), &["serve"]);
    let mut run = setup.start();
    assert!(!passes(&mut run, 1, "rm"));
    let end = run.end_of_input().exits(0);
    for tampered in [Some(FORWARD), None] {
        let path = end.run.folder().join("tapegate.yaml");
        match tampered {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let mut run = again(end.run.folder());
        assert!(!passes(&mut run, 1, "rm"), "{tampered:?}");
        run.end_of_input().exits(0).complains("tapegate policy accept");
    }
}

#[test]
fn what_a_person_accepts_is_in_force_at_once() {
    let mut run = shim(&denying(), &["serve"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    replace_file(&run.folder().join("tapegate.yaml"), FORWARD);
    run.says("tapegate policy accept");
    let done = accept_policy(run.folder(), &state(&run), &[]);
    let shown = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(done.status.code(), Some(0), "{shown}{}", String::from_utf8_lossy(&done.stderr));
    // No person has reviewed the policy yet, so all of it is shown.
    let policy = run.folder().join("tapegate.yaml");
    let head =
        format!("--- nothing that a person has accepted\n+++ {}\n@@ -0,0 +1", policy.display());
    assert!(shown.contains(&head), "{shown}");
    assert!(shown.contains("1× tools/call rm: deny → forward"), "{shown}");
    run.until("the accepted policy", |run| has_event(run.folder(), "reloaded"));
    assert!(passes(&mut run, 2, "rm"));
    run.end_of_input().exits(0);
}

#[test]
fn a_change_that_only_tightens_is_taken_at_once_and_then_accepted() {
    let mut run = shim(FORWARD, &["serve"]).start();
    assert!(passes(&mut run, 1, "rm"));
    replace_file(&run.folder().join("tapegate.yaml"), &denying());
    run.until("the tighter policy", |run| has_event(run.folder(), "reloaded"));
    assert!(!passes(&mut run, 2, "rm"));
    // Reverting it would loosen the policy.
    replace_file(&run.folder().join("tapegate.yaml"), FORWARD);
    run.says("tapegate policy accept");
    assert!(!passes(&mut run, 3, "rm"));
    run.end_of_input().exits(0);
}

#[test]
fn nobody_accepts_without_a_terminal_or_with_another_key() {
    let mut run = shim(&denying(), &["serve"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    replace_file(&run.folder().join("tapegate.yaml"), FORWARD);
    let wrong = run.folder().join("wrong");
    write_key(&wrong, &[7; 32]);
    // The right key where others can read it, and files on which a careless reader would hang.
    let (open, fifo) = (run.folder().join("open"), run.folder().join("fifo"));
    let key = PrivateDir::path_of(&state(&run), &state(&run)).join("key");
    fs::write(&open, fs::read(key).unwrap()).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap().success());
    for (flags, reason) in [
        (&[][..], "requires a person at a terminal"),
        (&["--forget"], "requires a person at a terminal"),
        (&with_key(&wrong), "is not this project's key"),
        (&with_key(&open), "other users may have access"),
        (&with_key(&fifo), "not a regular file"),
        (&with_key(Path::new("/dev/zero")), "not a regular file"),
    ] {
        let arguments: Vec<&str> = ["policy", "accept"].iter().chain(flags).copied().collect();
        let done = tapegate_on(&run, &arguments);
        let output_text = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(done.status.code(), Some(1), "{flags:?}: {output_text}");
        assert!(output_text.contains(reason), "{output_text}");
    }
    assert!(!passes(&mut run, 2, "rm"));
    run.end_of_input().exits(0);
}

/// The flags of a script with this key.
fn with_key(path: &Path) -> [&str; 3] {
    ["--non-interactive", "--key-file", path.to_str().unwrap()]
}

#[test]
fn an_emptied_shortened_or_removed_file_leaves_what_was_in_force() {
    let cut = &CEDAR[..CEDAR.find("forbid").unwrap()];
    for (name, text) in [
        ("p.cedar", Some("")),
        ("p.cedar", Some(cut)),
        ("p.cedar", None),
        ("tapegate.yaml", Some("")),
        ("tapegate.yaml", Some("schema: 1\ngovernance: { defaults: { act")),
        ("tapegate.yaml", None),
    ] {
        let setup = shim(BY_CEDAR, &["serve"]);
        fs::write(setup.folder().join("p.cedar"), CEDAR).unwrap();
        let mut run = setup.start();
        assert!(!passes(&mut run, 1, "rm") && passes(&mut run, 2, "ls"));
        let path = run.folder().join(name);
        match text {
            Some(text) => fs::write(&path, text).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        run.until("that it is logged", |run| {
            has_event(run.folder(), "refused") || has_event(run.folder(), "not_accepted")
        });
        assert!(!passes(&mut run, 3, "rm"), "{name} {text:?}");
        assert!(passes(&mut run, 4, "ls"), "{name} {text:?}");
        run.end_of_input().exits(0);
    }
}

#[test]
fn a_removed_lock_leaves_what_was_pinned() {
    let setup = shim(FORWARD, &["serve"]);
    let path = setup.folder().join("tapegate.lock");
    fs::write(&path, lock()).unwrap();
    let mut run = setup.start();
    let drifts = |answer: &Value| answer["error"]["data"]["error_type"] == "definition_drift";
    run.send(call(1, "rm").as_bytes());
    let first = answer(&run, 1);
    assert!(drifts(&first), "{first}");
    fs::remove_file(&path).unwrap();
    run.until("that it is logged", |run| has_event(run.folder(), "not_accepted"));
    run.send(call(2, "rm").as_bytes());
    let second = answer(&run, 2);
    assert!(drifts(&second), "{second}");
    run.end_of_input().exits(0);
}

/// A lock that pins one tool of the server `s`, so that all its other tools are unaccepted.
fn lock() -> String {
    let pin = Pin::of(OfferKind::Tool, br#"{"name":"ls","inputSchema":{"type":"object"}}"#);
    let tools = BTreeMap::from([("ls".to_owned(), pin)]);
    let server = PinnedServer { offers: BTreeMap::from([(OfferKind::Tool, tools)]) };
    PinLock { servers: BTreeMap::from([("s".to_owned(), server)]) }.write()
}

#[test]
fn a_damaged_copy_starts_nothing() {
    let mut run = shim(&denying(), &["serve"]).start();
    assert!(!passes(&mut run, 1, "rm"));
    let end = run.end_of_input().exits(0);
    let policies = end.run.folder().join("state/policies");
    let copy =
        fs::read_dir(policies).unwrap().next().unwrap().unwrap().path().join("accepted.json");
    let text = fs::read_to_string(&copy).unwrap();
    fs::write(&copy, text.replace("deny", "pass")).unwrap();
    let mut run = again(end.run.folder());
    run.send(call(1, "rm").as_bytes());
    let refused = answer(&run, 1);
    assert!(refused["error"]["message"].as_str().unwrap().contains("damaged"), "{refused}");
    run.end_of_input().exits(2);
}

#[test]
fn a_call_that_names_our_own_files_is_refused_also_after_calls_that_do_not() {
    let mut run = shim(FORWARD, &["log=log", "serve"]).start();
    let write = |id: u32, path: &str| call_with(id, "write", &format!("{{\"path\":\"{path}\"}}"));
    run.send(
        [write(1, "a.txt"), write(2, "./tape%67ate.yaml"), write(3, "b.txt")].concat().as_bytes(),
    );
    assert!(answer(&run, 1)["result"].is_object() && answer(&run, 3)["result"].is_object());
    let refused = answer(&run, 2);
    is_refused(&refused, -32014, "governance", "write", "governance_rule_denied");
    let output_text = refused["error"]["message"].as_str().unwrap();
    assert!(output_text.contains("may neither read nor change"), "{output_text}");
    // Our state folder is not an exception.
    let state = state(&run).join("private/key").display().to_string();
    run.send(write(4, &state).as_bytes());
    is_refused(&answer(&run, 4), -32014, "governance", "write", "governance_rule_denied");
    let end = run.end_of_input().exits(0);
    assert!(!server_got(end.run.folder()).contains("tape%67ate"));
    let denied = events(end.run.folder());
    let denied = denied.iter().filter(|event| event["rule"] == "tapegate:own-files").count();
    assert_eq!(denied, 2);
}
