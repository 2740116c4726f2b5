//! `tapegate approvals`

mod deciders;
mod grants;
mod refused_attempts;
mod watch;
mod watch_in_tmux;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, ApprovalStore};
use tempfile::TempDir;

use crate::support::{approvals_of, at_terminal, key_flags, tapegate};

/// A state folder with requests in it.
struct RequestFolder {
    folder: TempDir,
}

fn now_us() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64
}

impl RequestFolder {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn approvals(&self) -> ApprovalStore {
        approvals_of(self.folder.path())
    }

    /// Adds a request with this id, as modified by `change`.
    fn ask(&self, id: &str, change: impl FnOnce(&mut ApprovalRecord)) {
        let mut request = ApprovalRecord {
            id: id.to_owned(),
            // Half a minute more, so that a slow machine shows the same minutes.
            created_us: now_us() - (3 * 3600 + 5 * 60) * 1_000_000,
            expires_us: now_us() + (2 * 3600 + 5 * 60 + 30) * 1_000_000,
            server_id: "files".to_owned(),
            method: "tools/call".to_owned(),
            tool: "delete_file".to_owned(),
            params: Some(
                "{\"name\":\"delete_file\",\"arguments\":{\"path\":\"/etc/passwd\"}}".to_owned(),
            ),
            call_hash: "ff".to_owned(),
            principal: "agent".to_owned(),
            workflow: "default".to_owned(),
            connection_id: "c1".to_owned(),
            request_id: "r1".to_owned(),
            ..ApprovalRecord::default()
        };
        change(&mut request);
        self.approvals().publish_request(&request).unwrap();
        self.set_asked(&request.id, request.created_us);
    }

    /// Sets the time of a request in the file system.
    fn set_asked(&self, id: &str, at_us: i64) {
        let at = UNIX_EPOCH + Duration::from_micros(at_us as u64);
        let calls = std::fs::read_dir(self.approvals().path().join("calls")).unwrap();
        for call in calls {
            let entry = call.unwrap().path().join(id);
            if let Ok(file) = std::fs::File::options().write(true).open(entry) {
                file.set_modified(at).unwrap();
            }
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = tapegate();
        command.arg("approvals").args(args);
        command.env("TAPEGATE_HOME", self.folder.path()).env("USER", "alice");
        command
    }

    /// Runs a command like a script that has the project's key.
    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.command(args);
        if ["approve", "deny"].contains(args.first().unwrap_or(&"")) {
            self.approvals();
            command.args(key_flags(self.path()));
        }
        command.output().unwrap()
    }

    /// Runs a command that must exit with `code`, and returns its standard output and error.
    #[track_caller]
    fn says(&self, args: &[&str], code: i32) -> (String, String) {
        let run = self.run(args);
        let (out, err) =
            (String::from_utf8(run.stdout).unwrap(), String::from_utf8(run.stderr).unwrap());
        assert_eq!(run.status.code(), Some(code), "{out}{err}");
        (out, err)
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("activity.jsonl")
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }
}

#[test]
fn nothing_waits_where_nobody_has_asked_and_nothing_is_made() {
    let state = RequestFolder::new();
    assert_eq!(state.says(&[], 0).0, "nothing waits for a person\n");
    assert_eq!(state.says(&["list", "--format", "jsonl"], 0).0, "");
    assert_eq!(std::fs::read_dir(state.path()).unwrap().count(), 0);
}

#[test]
fn what_waits_is_listed_with_everything_that_is_needed_to_decide() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |_| {});
    state.ask("ap_bbbbbbbbbbbbbbbb", |request| request.expires_us = now_us() - 1);
    let (out, _) = state.says(&[], 0);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 2, "{out}");
    for word in [
        "ap_aaaaaaaaaaaaaaaa",
        "3h05m",
        "2h05m",
        "files",
        "delete_file",
        "agent",
        "default",
        "{\"path\":\"/etc/passwd\"}",
    ] {
        assert!(lines[1].contains(word), "{word}: {out}");
    }
    let (all, _) = state.says(&["list", "--all"], 0);
    assert!(all.contains("ap_bbbbbbbbbbbbbbbb") && all.contains("expired"), "{all}");
    let (json, _) = state.says(&["--format", "jsonl"], 0);
    let read: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (read["state"].as_str(), read["arguments"]["path"].as_str()),
        (Some("pending"), Some("/etc/passwd"))
    );
}

#[test]
fn meta_is_shown_if_it_says_more_than_which_call_it_is() {
    let state = RequestFolder::new();
    let with_meta = |meta: &str| {
        Some(format!(r#"{{"name":"deploy","arguments":{{"version":"1"}},"_meta":{meta}}}"#))
    };
    let plain = r#"{"progressToken":7,"io.modelcontextprotocol/clientInfo":{"name":"c"}}"#;
    state.ask("ap_aaaaaaaaaaaaaaaa", |request| request.params = with_meta(plain));
    state.ask("ap_bbbbbbbbbbbbbbbb", |request| {
        request.params = with_meta(r#"{"progressToken":7,"target":"production"}"#);
    });
    let (out, _) = state.says(&["show", "aaaa"], 0);
    assert!(!out.contains("progressToken"), "{out}");
    let (out, _) = state.says(&["show", "bbbb"], 0);
    assert!(out.contains(r#""target":"production""#), "{out}");
    let (out, _) = state.says(&[], 0);
    assert!(out.contains("_meta"), "{out}");
}

#[test]
fn an_approval_by_the_beginning_of_a_name_is_made_and_logged() {
    let state = RequestFolder::new();
    state.ask("ap_k3x9aaaaaaaaaaaa", |_| {});
    let (out, err) = state.says(&["approve", "k3x9", "--reason", "fine"], 0);
    assert_eq!(out, "approved ap_k3x9aaaaaaaaaaaa: files delete_file {\"path\":\"/etc/passwd\"}\n");
    assert_eq!(err, "");
    let decided = state.approvals().decision("ap_k3x9aaaaaaaaaaaa").unwrap().unwrap();
    assert_eq!((decided.by.as_str(), decided.ruling), ("alice", ApprovalOutcome::Approved));
    assert_eq!(decided.reason.as_deref(), Some("fine"));
    let text = std::fs::read_to_string(state.log()).unwrap();
    let event: Value = serde_json::from_str(&text).unwrap();
    for (key, value) in [
        ("kind", "approval"),
        ("component", "cli"),
        ("governance_decision", "approved"),
        ("approval_id", "ap_k3x9aaaaaaaaaaaa"),
        ("decided_by", "alice"),
        ("policy_reason", "fine"),
    ] {
        assert_eq!(event[key], value, "{text}");
    }
}

#[test]
fn the_second_decision_is_told_of_the_first() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |_| {});
    state.says(&["deny", "ap_aaaaaaaaaaaaaaaa", "--by", "bob"], 0);
    let (out, err) = state.says(&["approve", "ap_aaaaaaaaaaaaaaaa"], 1);
    assert_eq!(out, "");
    assert_eq!(err, "error: `ap_aaaaaaaaaaaaaaaa` was already denied by bob\n");
    // At a terminal too, and without asking.
    let (code, said) = at_terminal(&state.command(&["approve", "ap_aaaaaaaaaaaaaaaa"]), "");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("was already denied by bob") && !said.contains("[y/N]"), "{said}");
}

#[test]
fn where_nothing_is_found_the_folder_that_was_looked_in_is_named() {
    let state = RequestFolder::new();
    let folder = state.path().display().to_string();
    let (out, err) = state.says(&["list"], 0);
    assert_eq!(out, "nothing waits for a person\n");
    assert!(err.contains(&format!("looked in `{folder}`")) && err.contains("--state"), "{err}");
    let (_, err) = state.says(&["show", "ap_zzzzzzzzzzzzzzzz"], 2);
    assert!(err.contains(&format!("in `{folder}`")) && err.contains("--state"), "{err}");
    let (_, err) = state.says(&["show", "ap_z"], 2);
    assert!(err.contains("at least 3 letters after `ap_`"), "{err}");
}

#[test]
fn what_is_unknown_unclear_or_too_short_decides_nothing() {
    let state = RequestFolder::new();
    state.ask("ap_k3x9aaaaaaaaaaaa", |_| {});
    state.ask("ap_k3x9bbbbbbbbbbbb", |_| {});
    for (args, output_text) in [
        (&["approve", "k3x9a", "zzzz"][..], "there is no request `zzzz`"),
        (&["approve", "k3x9"], "`k3x9` could be any of ap_k3x9aaaaaaaaaaaa, ap_k3x9bbbbbbbbbbbb"),
        (&["approve", "ap_k"], "`ap_k` is too short"),
        (&["approve", "../../etc"], "there is no request `../../etc`"),
        (&["deny", "\u{1b}[2J"], "there is no request `\\u001b[2J`"),
    ] {
        let (_, err) = state.says(args, 2);
        assert!(err.contains(output_text), "{err}");
    }
    assert_eq!(state.approvals().pending(now_us()).unwrap().len(), 2);
}

#[test]
fn commands_that_make_no_sense_are_refused() {
    let state = RequestFolder::new();
    for args in [
        &["approve"][..],
        &["approve", "x", "--all"],
        &["show"],
        &["list", "ap_x"],
        &["approve", "--all", "--wait"],
        &["list", "--by", "me"],
        &["approve", "abc", "--by", ""],
    ] {
        state.says(args, 64);
    }
    let (_, err) = state.says(&["list", "--state", "/nowhere/at/all"], 3);
    assert_eq!(err, "error: there is no folder `/nowhere/at/all`\n");
}

#[test]
fn only_those_who_are_named_decide() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |request| request.approvers = vec!["carol".to_owned()]);
    let (_, err) = state.says(&["approve", "aaaaaa"], 1);
    assert_eq!(err, "error: `alice` may not decide about `ap_aaaaaaaaaaaaaaaa`, only carol\n");
    state.says(&["approve", "aaaaaa", "--by", "carol"], 0);
}

#[test]
fn everything_that_waits_is_decided_at_once() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |_| {});
    state.ask("ap_bbbbbbbbbbbbbbbb", |request| request.approvers = vec!["carol".to_owned()]);
    state.ask("ap_cccccccccccccccc", |request| request.expires_us = now_us() - 1);
    let (out, err) = state.says(&["deny", "--all", "--format", "jsonl"], 1);
    assert_eq!(out.lines().count(), 1);
    let read: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        (read["state"].as_str(), read["decided_by"].as_str()),
        (Some("denied"), Some("alice"))
    );
    assert!(err.contains("only carol"), "{err}");
    state.says(&["deny", "--all", "--by", "carol"], 0);
    assert!(state.says(&["deny", "--all"], 0).1.contains("nothing waits for a person"));
}

#[test]
fn hostile_requests_do_nothing_to_a_terminal() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |request| {
        request.tool = "ls\u{1b}]0;owned\u{7}\u{202e}\r\nap_fake approved".to_owned();
        let arguments = format!("{{\"\u{9b}31m\":\"{}\"}}", "x\u{200b}".repeat(50_000));
        request.params = Some(format!("{{\"name\":\"ls\",\"arguments\":{arguments}}}"));
        request.reason = "\u{1b}[1A".to_owned();
    });
    for args in [&["list"][..], &["list", "--all"], &["show", "aaaaaa"], &["approve", "aaaaaa"]] {
        let (out, _) = state.says(args, 0);
        let hidden =
            |c: &char| *c != '\n' && (c.is_control() || ['\u{202e}', '\u{200b}'].contains(c));
        assert_eq!(out.chars().find(hidden), None, "{args:?}");
        let whole = args[0] == "show";
        assert!(out.len() < if whole { 1_000_000 } else { 2_000 }, "{args:?}");
        assert!(!whole || out.matches("x\\u200b").count() == 50_000, "{args:?}");
    }
    // A damaged file is reported, and does not hide the rest.
    std::fs::write(state.approvals().path().join("ap_spoiled.request.json"), "{").unwrap();
    let (out, err) = state.says(&["list", "--all"], 0);
    assert!(
        out.contains("ap_aaaaaaaaaaaaaaaa") && err.contains("ap_spoiled.request.json"),
        "{err}"
    );
    assert_eq!(state.says(&["list", "--all"], 0).1, "", "told once");
    let log = std::fs::read_to_string(state.log()).unwrap();
    let forged = log.lines().filter(|line| line.contains("\"forged\"")).count();
    assert_eq!(forged, 1, "{log}");
}

#[test]
fn waiting_ends_when_something_is_asked_and_when_it_is_decided() {
    let state = RequestFolder::new();
    let wait = |args: &[&str]| {
        let mut command = tapegate();
        command.arg("approvals").args(args).env("TAPEGATE_HOME", state.path());
        command.stdout(Stdio::piped()).spawn().unwrap()
    };
    let lister = wait(&["list", "--wait", "--format", "jsonl"]);
    state.ask("ap_aaaaaaaaaaaaaaaa", |_| {});
    let listed = lister.wait_with_output().unwrap();
    let read: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(read["id"], "ap_aaaaaaaaaaaaaaaa");
    let shower = wait(&["show", "aaaaaa", "--wait", "--format", "jsonl"]);
    let decided = ApprovalDecision {
        ruling: ApprovalOutcome::Approved,
        by: "bob".to_owned(),
        at_us: now_us(),
        reason: None,
    };
    state.approvals().decide("ap_aaaaaaaaaaaaaaaa", &decided).unwrap();
    let shown = shower.wait_with_output().unwrap();
    let read: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(
        (read["state"].as_str(), read["decided_by"].as_str()),
        (Some("approved"), Some("bob"))
    );
}

#[test]
fn a_decision_holds_though_the_log_cannot_be_written() {
    let state = RequestFolder::new();
    state.ask("ap_aaaaaaaaaaaaaaaa", |_| {});
    std::fs::write(state.log(), "my notes\n").unwrap();
    let (_, err) = state.says(&["deny", "aaaaaa"], 0);
    assert!(err.contains("the decision holds, but is not in the activity log"), "{err}");
    assert_eq!(std::fs::read_to_string(state.log()).unwrap(), "my notes\n");
    assert!(state.approvals().decision("ap_aaaaaaaaaaaaaaaa").unwrap().is_some());
}

const ID: &str = "ap_aaaaaaaaaaaaaaaa";

#[test]
fn approvals_in_the_project_s_own_folder_are_not_read_and_that_is_said() {
    let state = RequestFolder::new();
    let old = state.path().join("approvals");
    std::fs::create_dir(&old).unwrap();
    std::fs::write(old.join(format!("{ID}.request.json")), "{}").unwrap();
    let (out, err) = state.says(&[], 0);
    assert_eq!(out, "nothing waits for a person\n");
    assert!(err.contains("is no longer read"), "{err}");
}

/// The lines of the log about the approval of a request.
fn lines_about(state: &RequestFolder, id: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(state.log()).unwrap_or_default();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines
        .filter(|line| line["approval_id"] == id && line["governance_decision"] == "approved")
        .collect()
}

#[test]
fn a_decision_whose_command_was_killed_is_logged_once_by_the_next_command() {
    let state = RequestFolder::new();
    let id = "ap_aaaaaaaaaaaaaaaa";
    state.ask(id, |_| {});
    let approvals = state.approvals();
    let (ruling, at_us) = (ApprovalOutcome::Approved, now_us());
    let decided = ApprovalDecision { ruling, by: "bob".to_owned(), at_us, reason: None };
    // The state left by a command that was killed after deciding, but before logging.
    let mark = approvals.path().join(format!("{id}.unlogged"));
    std::fs::write(&mark, format!("approved {at_us} bob")).unwrap();
    approvals.decide(id, &decided).unwrap();
    assert!(lines_about(&state, id).is_empty());
    let commands = [(); 4].map(|()| state.command(&["list"]).stdout(Stdio::null()).spawn());
    for command in commands {
        assert!(command.unwrap().wait().unwrap().success());
    }
    let lines = lines_about(&state, id);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!((&lines[0]["decided_by"], &lines[0]["recovered"]), (&"bob".into(), &true.into()));
    assert!(!mark.exists());
}

#[test]
fn killing_commands_that_decide_leaves_one_line_for_each_decision() {
    let state = RequestFolder::new();
    let mut dice = crate::support::SeededRandom::roll();
    let ids: Vec<String> = (0..20).map(|round| format!("ap_killed{round:010}")).collect();
    for id in &ids {
        state.ask(id, |request| request.call_hash.clone_from(id));
        let mut command = state.command(&["approve", id]);
        command.args(key_flags(state.path())).stdout(Stdio::null()).stderr(Stdio::null());
        let mut command = command.spawn().unwrap();
        dice.pause_us(40_000);
        command.kill().unwrap();
        command.wait().unwrap();
    }
    state.says(&["list"], 0);
    for id in &ids {
        let is_decided = state.approvals().decision(id).unwrap().is_some();
        assert_eq!(lines_about(&state, id).len(), usize::from(is_decided), "{id}");
    }
    let names = std::fs::read_dir(state.approvals().path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> =
        names.filter(|name| name.starts_with(".tmp-") || name.ends_with(".unlogged")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_approver_whose_clock_is_an_hour_off_sees_and_decides_what_waits() {
    const HOUR_US: i64 = 3_600_000_000;
    for shift_us in [-HOUR_US, HOUR_US] {
        let state = RequestFolder::new();
        let (waits, over) = ("ap_aaaaaaaaaaaaaaaa", "ap_bbbbbbbbbbbbbbbb");
        // By the clock of the requesting process, one and eleven of the ten minutes have passed.
        for (id, minutes) in [(waits, 1), (over, 11)] {
            state.ask(id, |request| {
                request.call_hash = id.to_owned();
                request.created_us = now_us() + shift_us - minutes * 60_000_000;
                request.expires_us = request.created_us + 600_000_000;
            });
            state.set_asked(id, now_us() - minutes * 60_000_000);
        }
        let (list, _) = state.says(&[], 0);
        assert!(list.contains(waits) && !list.contains(over), "{shift_us}: {list}");
        let (shown, _) = state.says(&["show", waits, "--format", "jsonl"], 0);
        assert!(shown.contains("\"pending\""), "{shown}");
        state.says(&["approve", over], 1);
        state.says(&["approve", waits], 0);
        let approvals = state.approvals();
        let decided = approvals.decision(waits).unwrap().expect("a decision that counts");
        assert_eq!(approvals.take_refused(), []);
        let request = approvals.request(waits).unwrap();
        assert!((request.created_us..request.expires_us).contains(&decided.at_us));
    }
}
