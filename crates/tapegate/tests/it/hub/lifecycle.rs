//! Starts, ends, kills, and what outlives them.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use rustix::process::Signal;
use tapegate_store::user_state::PrivateDir;

use super::{HubFolder, POLICY, RunningHub, log};
use crate::support::{tapegate, wait_until};

#[test]
fn a_second_hub_is_refused_with_words_and_a_third_may_start_when_the_first_has_ended() {
    let place = HubFolder::new();
    let mut hub = place.start();
    let second = place.fails(&[]);
    assert_eq!(second.status.code(), Some(1));
    let message = String::from_utf8_lossy(&second.stderr);
    assert!(
        message.contains("another hub is running") && message.contains(&hub.address),
        "{message}"
    );
    hub.signal(Signal::TERM);
    assert_eq!(hub.end().code(), Some(143));
    assert!(!place.token_file().exists() && !place.file("endpoint").exists());
    assert!(!place.approver_token_file().exists());
    let mut third = place.start();
    assert_eq!(third.evaluate("rm")["decision"], "deny");
    third.signal(Signal::INT);
    assert_eq!(third.end().code(), Some(130));
}

#[test]
fn a_project_without_a_state_folder_is_told_how_to_get_one_if_the_users_hub_is_taken() {
    let (home, one, two) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let run_in = |folder: &tempfile::TempDir, args: &[&str]| {
        let mut command = tapegate();
        command.args(args).current_dir(folder.path()).env("HOME", home.path());
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "TAPEGATE_HOME", "TAPEGATE_LOG"] {
            command.env_remove(name);
        }
        command
    };
    for folder in [&one, &two] {
        fs::write(folder.path().join("tapegate.yaml"), POLICY).unwrap();
    }
    let hub = ["hub", "--log-format", "human"];
    let _running = RunningHub::start(run_in(&one, &hub));
    let taken = run_in(&two, &hub).output().unwrap();
    assert_eq!(taken.status.code(), Some(1));
    let text = String::from_utf8_lossy(&taken.stderr);
    let hint = "\nhint: this project has no state folder of its own, so it shares the user's with \
                other projects: `tapegate init --state-only` makes one";
    assert!(text.contains("another hub is running") && text.contains(hint), "{text}");
    let made = run_in(&two, &["init", "--state-only"]).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let mut second = RunningHub::start(run_in(&two, &hub));
    second.signal(Signal::TERM);
    assert_eq!(second.end().code(), Some(143));
    assert!(two.path().join(".tapegate/hub").is_dir());
    assert_eq!(fs::read_to_string(two.path().join("tapegate.yaml")).unwrap(), POLICY);
}

#[test]
fn a_hub_that_is_asked_to_end_says_so_to_those_who_listen_and_ends() {
    let place = HubFolder::new();
    let mut hub = place.start();
    let beat = r#"{"server_id":"fs","connection_id":"c1"}"#;
    assert_eq!(hub.post("/governance/heartbeat", beat).json()["shutdown"], false);
    let listening = std::thread::scope(|scope| {
        let stream = scope.spawn(|| hub.get("/governance/stream?connection_id=c1").body);
        wait_until("the stream", || {
            hub.get("/metrics").body.contains(r#"connections_active{transport="stream"} 1"#)
        });
        assert_eq!(hub.post("/governance/shutdown", "").json()["active_servers"], 1);
        assert_eq!(hub.post("/governance/heartbeat", beat).json()["shutdown"], true);
        assert_eq!(hub.get("/readyz").status, 503);
        let stopped = r#"{"server_id":"fs","connection_id":"c1","state":"stopped"}"#;
        hub.post("/governance/heartbeat", stopped);
        stream.join().unwrap()
    });
    assert!(listening.contains("event: shutdown"), "{listening}");
    assert_eq!(hub.end().code(), Some(0));
}

#[test]
fn a_hub_that_ends_does_not_wait_for_a_shim_that_was_killed_before() {
    let place = HubFolder::new();
    let mut hub = place.start();
    let beat = r#"{"server_id":"fs","connection_id":"c1"}"#;
    hub.post("/governance/heartbeat", beat);
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    let headers = hub.headers();
    write!(stream, "GET /governance/stream?connection_id=c1 HTTP/1.1\r\n{headers}\r\n").unwrap();
    let streams = |count| format!("connections_active{{transport=\"stream\"}} {count}");
    wait_until("the stream", || hub.get("/metrics").body.contains(&streams(1)));
    // As the kernel does for a process that is killed.
    drop(stream);
    wait_until("the end of the stream", || hub.get("/metrics").body.contains(&streams(0)));
    hub.signal(Signal::TERM);
    assert_eq!(hub.end().code(), Some(143));
    hub.listener.take().unwrap().join().unwrap();
    let printed = hub.said.lock().unwrap();
    assert!(!printed.contains("did not shut down"), "{printed}");
}

#[test]
fn what_waits_for_people_waits_through_a_kill_and_a_new_start() {
    let place = HubFolder::new();
    let mut hub = place.start();
    let answer = hub.evaluate("pay");
    assert_eq!(answer["decision"], "pending_approval");
    let id = answer["task_id"].as_str().unwrap().to_owned();
    hub.evaluate("rm");
    hub.signal(Signal::KILL);
    hub.end();
    // What a killed hub leaves behind does not hinder the next one.
    assert!(place.token_file().exists() && place.file("endpoint").exists());
    let old = (hub.token.clone(), hub.approver_token.clone());
    let hub = place.start_deciding();
    assert_ne!(hub.token, old.0, "each run has its own token");
    assert_ne!(hub.approver_token, old.1, "each run has its own token");
    let task = format!("/governance/task/{id}");
    assert_eq!(hub.get(&task).json()["status"], "pending");
    assert!(hub.get("/approvals").body.contains(&id));
    let decided = hub.post(&format!("/approvals/{id}/approve"), r#"{"by":"ann"}"#);
    assert_eq!(decided.json()["status"], "approved", "{}", decided.body);
    let valid = hub.post(&format!("{task}/revalidate"), &super::call("pay", "{}"));
    assert_eq!(valid.json()["decision"], "forward", "{}", valid.body);
    let again = hub.post(&format!("{task}/revalidate"), &super::call("pay", "{}"));
    assert_eq!(again.status, 409);
    let checked = crate::support::tapegate()
        .arg("check")
        .arg(place.state().join("activity.jsonl"))
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.status.code(), Some(0), "{message}\n{}", log(&place.state()));
}

#[test]
fn whoever_starts_a_hub_without_a_terminal_or_a_key_approves_nothing_through_it() {
    let place = HubFolder::new();
    let mut hub = place.start();
    hub.says("this hub does not accept approvals");
    let id = hub.evaluate("pay")["task_id"].as_str().unwrap().to_owned();
    for verb in ["approve", "deny"] {
        let refused = hub.post(&format!("/approvals/{id}/{verb}"), r#"{"by":"ann"}"#);
        assert_eq!(refused.status, 403, "{}", refused.body);
        assert!(refused.body.contains("requires a person at a terminal"), "{}", refused.body);
    }
    assert_eq!(hub.get(&format!("/governance/task/{id}")).json()["status"], "pending");
    // The key that Tapegate keeps for itself does not replace a person.
    let home = place.folder.path().join("tapegate");
    let own = PrivateDir::path_of(&home, &place.state()).join("key");
    let own = own.to_str().unwrap();
    let other = HubFolder::new();
    let failed = other.fails(&["--non-interactive", "--key-file", own]);
    assert_eq!(failed.status.code(), Some(1));
}

#[test]
fn an_approval_from_the_terminal_reaches_who_waits_at_the_hub() {
    let place = HubFolder::new();
    let hub = place.start();
    let id = hub.evaluate("pay")["task_id"].as_str().unwrap().to_owned();
    let answer = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| hub.get(&format!("/governance/task/{id}?wait_ms=30000")));
        let done = crate::support::tapegate()
            .args(["approvals", "deny", &id, "--by", "bob"])
            .args(["--non-interactive", "--key-file"])
            .arg(place.key_file())
            .arg("--state")
            .arg(place.state())
            .env_remove("TAPEGATE_HOME")
            .env("XDG_STATE_HOME", place.folder.path())
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        waiting.join().unwrap().json()
    });
    assert_eq!(
        (answer["status"].as_str(), answer["decided_by"].as_str()),
        (Some("rejected"), Some("bob"))
    );
}

#[test]
fn a_policy_that_does_not_load_starts_no_hub_and_every_fault_is_told() {
    let place = HubFolder::new();
    fs::write(place.policy(), "schema: 1\nbogus: 1\ngovernance: { defaults: { action: fly } }\n")
        .unwrap();
    for flags in [&[][..], &["--profile", "development"]] {
        let done = place.fails(flags);
        assert_eq!(done.status.code(), Some(2));
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(message.contains("bogus") && message.contains("fly"), "{message}");
        assert!(message.contains(":2:") && message.contains(":3:"), "{message}");
        assert!(!place.file("endpoint").exists());
    }
}

#[test]
fn a_misspelt_variable_that_decides_what_is_governed_starts_no_hub() {
    let place = HubFolder::new();
    let done = place.command(&[]).env("TAPEGATE_REQIRE_POLICY", "1").output().unwrap();
    let message = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(64), "{message}");
    assert!(message.contains("did you mean `TAPEGATE_REQUIRE_POLICY`?"), "{message}");
    assert!(!place.file("endpoint").exists());
}

#[test]
fn without_a_policy_everything_is_let_through_and_that_is_said() {
    let place = HubFolder::new();
    fs::remove_file(place.policy()).unwrap();
    let mut hub = place.start();
    hub.says("observing only");
    assert_eq!(hub.evaluate("rm")["decision"], "forward");
    assert_eq!(hub.get("/governance/snapshot").json()["version"], "");
    let shown = |hub: &HubFolder| {
        let mut command = tapegate();
        command.args(["log", "--kind", "policy", "--state"]).arg(hub.state());
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    assert!(
        shown(&place).contains(" no policy            (no policy: observing only;"),
        "{}",
        shown(&place)
    );
    let governed = HubFolder::new();
    let _hub = governed.start();
    let line = shown(&governed);
    assert!(
        line.contains(" policy loaded        (policy ") && line.contains(" loaded; prof"),
        "{line}"
    );
}
