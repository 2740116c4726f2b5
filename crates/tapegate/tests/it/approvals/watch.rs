//! `approvals watch`: decisions by key at a terminal, which is left as it was.

use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalGrant, ApprovalOutcome, ApprovalRecord, GrantCoverage,
};

use super::{ID, RequestFolder, now_us};
use crate::support::{TerminalStep, at_terminal, at_terminal_in_steps};

const OTHER: &str = "ap_bbbbbbbbbbbbbbbb";
const THIRD: &str = "ap_cccccccccccccccc";
const SIZE: (u16, u16) = (80, 40);
/// The line below a shown request, once keys are taken.
const KEYS: &str = "y approve";

impl RequestFolder {
    /// `approvals watch`, followed by the modes of the terminal.
    fn watch(&self, args: &[&str]) -> Command {
        let inner = self.command(&[&["watch"], args].concat());
        let mut command = Command::new("sh");
        // The shell outlives Ctrl-C, which the command gets too.
        let script = "trap : INT QUIT; (sh -c 'echo $PPID' > pid; exec \"$@\"); code=$?; stty -a; exit $code";
        command.args(["-c", script, "sh"]).arg(inner.get_program()).args(inner.get_args());
        let set = inner.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(set).env("TERM", "xterm").current_dir(self.path());
        command
    }

    fn ruling(&self, id: &str) -> Option<ApprovalOutcome> {
        self.approvals().decision(id).unwrap().map(|decided| decided.ruling)
    }
}

/// Asserts that the terminal reads lines again.
#[track_caller]
fn assert_restored(said: &str) {
    let modes = said.rsplit_once("speed").expect("the modes").1;
    assert!(modes.contains(" icanon") && !modes.contains("-icanon"), "{modes}");
}

#[test]
fn calls_are_decided_by_key_one_after_the_other() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    state.ask(OTHER, |request| request.created_us += 1_000_000);
    let steps = [
        TerminalStep::typed(KEYS, 1, "y"),
        TerminalStep::typed(KEYS, 1, "n"),
        // A third call comes while the session waits.
        TerminalStep::done("waiting for calls", || state.ask(THIRD, |_| {})),
        TerminalStep::typed(THIRD, 1, ""),
        TerminalStep::typed(KEYS, 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert_eq!(code, 0, "{said}");
    assert_eq!(state.ruling(ID), Some(ApprovalOutcome::Approved));
    assert_eq!(state.ruling(OTHER), Some(ApprovalOutcome::Denied));
    assert_eq!(state.ruling(THIRD), None, "q decides nothing");
    assert_eq!(state.approvals().decision(ID).unwrap().unwrap().by, "alice");
    assert!(said.contains(" · +1") && said.contains('\u{7}'), "{said}");
    assert!(said.contains("approved files delete_file"), "{said}");
    assert!(said.contains(&format!("last call  {ID}")), "{said}");
    let log = std::fs::read_to_string(state.log()).unwrap();
    assert!(log.contains("\"governance_decision\":\"approved\""), "{log}");
    assert_restored(&said);
}

#[test]
fn keys_that_were_typed_for_another_call_decide_nothing() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    state.ask(OTHER, |request| request.created_us += 1_000_000);
    let steps = [
        // At once, so before anybody can have read it.
        TerminalStep::typed("a new call", 1, "y"),
        // A pasted text decides about one call, not about those behind it.
        TerminalStep::typed(KEYS, 1, "yyyy\nyyyy"),
        TerminalStep::typed(OTHER, 1, "y"),
        TerminalStep::typed(KEYS, 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert_eq!(code, 0, "{said}");
    assert_eq!((state.ruling(ID), state.ruling(OTHER)), (Some(ApprovalOutcome::Approved), None));
    assert_eq!(said.matches("approved files").count(), 1, "{said}");
}

#[test]
fn a_call_that_does_not_fit_is_approved_only_after_it_was_shown_whole() {
    let state = RequestFolder::new();
    let lines: Vec<String> = (0..200).map(|at| format!("line {at}")).collect();
    state.ask(ID, |request| {
        let text = lines.join("\\n");
        request.params = Some(format!("{{\"arguments\":{{\"content\":\"{text}\"}}}}"));
    });
    let steps = [
        TerminalStep::typed("press d to see all before y", 1, ""),
        TerminalStep::typed(KEYS, 1, "y"),
        TerminalStep::typed("press d first", 1, "d"),
        TerminalStep::typed("│ line 199", 1, "y"),
        TerminalStep::typed("approved files", 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert_eq!(code, 0, "{said}");
    assert_eq!(state.ruling(ID), Some(ApprovalOutcome::Approved));
}

#[test]
fn a_decision_made_elsewhere_takes_the_call_off_the_screen() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let deny = || {
        let (ruling, by) = (ApprovalOutcome::Denied, "bob".to_owned());
        let decided = ApprovalDecision { ruling, by, at_us: now_us(), reason: None };
        state.approvals().decide(ID, &decided).unwrap();
    };
    let steps = [
        TerminalStep::done(KEYS, deny),
        TerminalStep::typed("denied by bob", 1, ""),
        TerminalStep::typed("waiting for calls", 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert_eq!(code, 0, "{said}");
    assert_eq!(state.approvals().decision(ID).unwrap().unwrap().by, "bob");
}

#[test]
fn the_terminal_is_as_before_after_every_end() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    for (key, expected) in [("\u{3}", 130), ("\u{1c}", 131), ("\u{4}", 0)] {
        let steps = [TerminalStep::typed(KEYS, 1, key)];
        let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
        assert_eq!(code, expected, "{said}");
        assert_restored(&said);
    }
    let pid_file = state.path().join("pid");
    for (signal, expected) in [(Signal::TERM, 143), (Signal::HUP, 129)] {
        let command = state.watch(&[]);
        let kill = || {
            let pid = std::fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
            kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        };
        let steps = [TerminalStep::done(KEYS, kill)];
        let (code, said) = at_terminal_in_steps(&command, SIZE, &steps);
        assert_eq!(code, expected, "{said}");
        assert_restored(&said);
    }
    assert_eq!(state.ruling(ID), None);
}

#[test]
fn who_may_not_decide_sees_why_and_decides_nothing() {
    let state = RequestFolder::new();
    state.ask(ID, |request| request.approvers = vec!["carol".to_owned()]);
    let steps = [
        TerminalStep::typed("may not decide", 1, ""),
        TerminalStep::typed(KEYS, 1, "y"),
        TerminalStep::typed("may not decide", 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert!(code == 0 && said.contains("carol"), "{said}");
    assert_eq!(state.ruling(ID), None);
    let log = std::fs::read_to_string(state.log()).unwrap();
    assert!(log.contains("\"governance_decision\":\"refused\""), "{log}");
    let steps = [TerminalStep::typed(KEYS, 1, "y"), TerminalStep::typed("approved files", 1, "q")];
    let (code, said) = at_terminal_in_steps(&state.watch(&["--by", "carol"]), SIZE, &steps);
    assert_eq!((code, state.ruling(ID)), (0, Some(ApprovalOutcome::Approved)), "{said}");
}

#[test]
fn a_key_grants_the_same_call_for_the_rest_of_the_session() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let steps =
        [TerminalStep::typed(KEYS, 1, "a"), TerminalStep::typed("waiting for calls", 1, "q")];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert!(
        code == 0 && said.contains("files delete_file: the same call in the same session"),
        "{said}"
    );
    assert_eq!(state.ruling(ID), Some(ApprovalOutcome::Approved));
    let grants = state.approvals().grants().unwrap();
    assert_eq!((grants.len(), grants[0].session.as_deref()), (1, Some("c1")));
}

#[test]
fn no_agent_and_no_script_can_watch() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let (out, err) = state.says(&["watch"], 1);
    assert!(out.is_empty() && err.contains("requires a person at a terminal"), "{err}");
    let (code, said) = at_terminal(state.command(&["watch"]).env("CLAUDECODE", "1"), "");
    assert!(code == 1 && said.contains("CLAUDECODE is set"), "{said}");
    for args in [&["watch", ID][..], &["watch", "--format", "json"], &["watch", "--reason", "x"]] {
        state.says(args, 64);
    }
    assert_eq!(state.ruling(ID), None);
}

#[test]
fn a_call_that_passes_by_a_grant_and_a_channel_that_fails_are_reported() {
    let state = RequestFolder::new();
    let approvals = state.approvals();
    let grant = ApprovalGrant {
        id: String::new(),
        request_id: ID.to_owned(),
        created_us: now_us(),
        expires_us: now_us() + 600_000_000,
        by: "ann".to_owned(),
        server_id: "files".to_owned(),
        method: "tools/call".to_owned(),
        tool: "rm".to_owned(),
        workflow: "default".to_owned(),
        folder: String::new(),
        policy: String::new(),
        session: None,
        coverage: GrantCoverage::SameCall("hash".to_owned()),
        revoked: None,
    };
    let grant = approvals.create_grant(grant).unwrap();
    let call = ApprovalRecord {
        server_id: grant.server_id.clone(),
        method: grant.method.clone(),
        tool: grant.tool.clone(),
        workflow: grant.workflow.clone(),
        call_hash: "hash".to_owned(),
        ..ApprovalRecord::default()
    };
    let pass = || {
        let found = approvals.find_grant(&call, now_us(), |_, _| false).unwrap();
        assert_eq!(found.unwrap().id, grant.id);
    };
    let fail = || approvals.note_channel_fault("ops", Some("the server answered 500"));
    let steps = [
        TerminalStep::done("waiting for calls", pass),
        TerminalStep::done("passed by", fail),
        TerminalStep::done("answered 500", || approvals.note_channel_fault("ops", None)),
        TerminalStep::typed("all channels work again", 1, "q"),
    ];
    let (code, said) = at_terminal_in_steps(&state.watch(&[]), SIZE, &steps);
    assert_eq!(code, 0, "{said}");
    let line = format!("passed by {}, granted by ann: files rm: the same call", grant.id);
    assert!(said.contains(&line), "{said}");
}
