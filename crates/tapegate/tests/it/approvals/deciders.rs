//! Who may decide: a person at a terminal, or a script with the project's key.

use std::path::Path;
use std::process::{Command, Stdio};

use super::{ID, RequestFolder};
use crate::support::{at_terminal, at_terminal_typing_ahead};

#[test]
fn without_a_terminal_or_the_project_s_key_nothing_is_decided() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    for args in [&["approve", ID][..], &["approve", "--all"], &["deny", ID]] {
        let done = state.command(args).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{err}");
        assert!(err.contains("requires a person at a terminal"), "{err}");
        assert!(err.contains("--non-interactive --key-file"), "{err}");
    }
    let export = state.command(&["export-key", "copy"]).current_dir(state.path()).output().unwrap();
    assert_eq!(export.status.code(), Some(1));
    assert!(!state.path().join("copy").exists());
    assert_eq!(state.approvals().decision(ID).unwrap(), None);
}

#[test]
fn from_the_shell_of_an_agent_nothing_is_decided_even_at_a_terminal() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    for name in
        ["CLAUDECODE", "CODEX_SANDBOX", "GEMINI_CLI", "OPENCODE", "CURSOR_AGENT", "AI_AGENT"]
    {
        let mut command = state.command(&["approve", "--all"]);
        let (code, said) = at_terminal(command.env(name, "1"), "y\ny\n");
        assert_eq!(code, 1, "{said}");
        assert!(
            said.contains("coding agent") && said.contains(&format!("{name} is set")),
            "{said}"
        );
        assert!(said.contains("a terminal that you opened"), "{said}");
        assert!(!said.contains("--key-file"), "{said}");
    }
    // A parent process is an agent, although it has cleaned the environment.
    let agent = state.path().join("claude");
    std::fs::write(&agent, "#!/bin/sh\n\"$@\"\n").unwrap();
    std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let inner = state.command(&["approve", ID]);
    let mut command = Command::new(&agent);
    command.arg(inner.get_program()).args(inner.get_args()).env("TAPEGATE_HOME", state.path());
    let (code, said) = at_terminal(&command, "");
    assert!(code == 1 && said.contains("`claude`"), "{said}");
    assert_eq!(state.approvals().decision(ID).unwrap(), None);
}

#[test]
fn a_person_at_a_terminal_sees_the_whole_request_and_is_asked() {
    let state = RequestFolder::new();
    state.ask(ID, |request| {
        let long = "z".repeat(30_000);
        request.params = Some(format!("{{\"messages\":[\"{long}\"],\"maxTokens\":77}}"));
    });
    for answer in ["\n", "n\n", "nyet\n", "\u{4}"] {
        let (code, said) = at_terminal(&state.command(&["approve", ID]), answer);
        assert_eq!(code, 1, "{said}");
        assert!(said.contains("maxTokens: 77") && said.contains("approve this call? [y/N]"));
        assert!(said.contains("nothing was decided"), "{answer:?}");
    }
    assert_eq!(state.approvals().decision(ID).unwrap(), None);
    let (code, said) = at_terminal(&state.command(&["approve", ID]), "y\n");
    assert!(code == 0 && said.contains("approved ap_aaaaaaaaaaaaaaaa"), "{said}");
    for id in ["ap_bbbbbbbbbbbbbbbb", "ap_cccccccccccccccc"] {
        state.ask(id, |request| request.tool = format!("tool of {id}"));
    }
    let (code, said) = at_terminal(&state.command(&["deny", "--all"]), "y\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("tool of ap_bbbb") && said.contains("tool of ap_cccc"), "{said}");
    assert_eq!(said.matches("[y/N]").count(), 1, "{said}");
}

#[test]
fn a_key_file_must_be_private_and_the_project_s() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let key = state.path().join("copy");
    let (code, said) = at_terminal(&state.command(&["export-key", key.to_str().unwrap()]), "y\n");
    assert_eq!(code, 0, "{said}");
    let approve = |key: &Path| {
        let mut command = state.command(&["approve", ID, "--non-interactive", "--key-file"]);
        let done = command.arg(key).output().unwrap();
        (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
    };
    let set_mode = |mode: u32| {
        std::fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    set_mode(0o644);
    let (code, err) = approve(&key);
    assert!(code == 1 && err.contains("chmod 600"), "{err}");
    set_mode(0o600);
    let good = std::fs::read(&key).unwrap();
    for wrong in [vec![0; 32], Vec::new(), [good.clone(), vec![0]].concat()] {
        std::fs::write(&key, wrong).unwrap();
        let (code, err) = approve(&key);
        assert!(code == 1 && err.contains("is not this project's key"), "{err}");
    }
    assert_eq!(approve(Path::new("/nowhere/key")).0, 3);
    let alone = state.command(&["approve", ID, "--non-interactive"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(64));
    std::fs::write(&key, good).unwrap();
    assert_eq!(approve(&key), (0, String::new()));
}

#[test]
fn a_person_types_in_the_terminals_of_editors_with_an_agent() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let mut command = state.command(&["approve", ID]);
    command.env("CURSOR_TRACE_ID", "9f2").env("CLAUDE_CODE_SSE_PORT", "41823");
    let (code, said) = at_terminal(command.env("TERM_PROGRAM", "vscode"), "y\n");
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_terminal_without_an_answer_is_not_a_person() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    let copy = state.path().join("copy");
    let export = ["export-key", copy.to_str().unwrap()];
    for arguments in [&["approve", ID][..], &["approve", "--all"], &export] {
        // A program that creates a terminal and writes the answer into it beforehand.
        for (ahead, typed) in [("y\ny\n", "\u{4}"), ("yes\n", "\n"), ("", "\u{4}")] {
            let command = state.command(arguments);
            let (code, said) = at_terminal_typing_ahead(&command, ahead, typed);
            assert_eq!(code, 1, "{said}");
        }
        let (code, said) = at_terminal(&state.command(arguments), "\u{3}");
        assert_eq!(code, 130, "{said}");
    }
    assert_eq!(state.approvals().decision(ID).unwrap(), None);
    assert!(!copy.exists());
    let (code, said) = at_terminal(&state.command(&export), "y\n");
    assert_eq!(code, 0, "{said}");
    let name = copy.display().to_string();
    assert!(said.contains(&name) && said.contains("can approve calls"), "{said}");
    assert!(copy.exists());
}

#[test]
fn who_may_not_decide_is_told_so_before_the_question() {
    let state = RequestFolder::new();
    state.ask(ID, |request| request.approvers = vec!["carol".to_owned()]);
    for verb in ["approve", "deny"] {
        let (code, said) = at_terminal(&state.command(&[verb, ID]), "y\n");
        assert!(code == 1 && said.contains("carol"), "{said}");
        assert!(!said.contains("[y/N]"), "{said}");
    }
    // The caller's own request, which other users may approve.
    let own = "ap_bbbbbbbbbbbbbbbb";
    state.ask(own, |request| {
        request.approvers = vec!["alice".to_owned(), "carol".to_owned()];
        request.principal = "alice".to_owned();
    });
    let (code, said) = at_terminal(&state.command(&["approve", own]), "y\n");
    assert!(code == 1 && !said.contains("[y/N]"), "{said}");
    // The question covers only the requests that this user may decide.
    state.ask("ap_cccccccccccccccc", |request| request.tool = "theirs".to_owned());
    let (code, said) = at_terminal(&state.command(&["approve", "--all"]), "y\n");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("approve this call? [y/N]"), "{said}");
    assert!(said.contains("approved ap_cccc"), "{said}");
    for id in [ID, own] {
        assert_eq!(state.approvals().decision(id).unwrap(), None);
    }
}

#[test]
fn the_export_of_a_key_says_for_which_projects_it_counts() {
    let state = RequestFolder::new();
    let (home, copy) = (state.path().join("home"), state.path().join("copy"));
    let export = |folder: &Path| {
        let mut command = state.command(&["export-key", copy.to_str().unwrap()]);
        command.env_remove("TAPEGATE_HOME").env("HOME", &home).current_dir(folder);
        let (code, said) = at_terminal(&command, "y\n");
        assert_eq!(code, 0, "{said}");
        std::fs::remove_file(&copy).unwrap();
        said
    };
    let (shared, alone) = (state.path().join("shared"), state.path().join("alone"));
    std::fs::create_dir_all(&shared).unwrap();
    std::fs::create_dir_all(alone.join(".tapegate")).unwrap();
    let said = export(&shared);
    let message = "valid for every project that has no `.tapegate` folder of its own";
    assert!(said.contains(message) && said.contains(".local/state/tapegate"), "{said}");
    assert_eq!(said.matches("every project that has no").count(), 2, "{said}");
    let said = export(&alone);
    let message = format!("valid for the project in `{}`", alone.canonicalize().unwrap().display());
    assert!(said.contains(&message) && !said.contains("every project"), "{said}");
}

#[test]
fn a_request_with_a_quorum_waits_for_enough_approvers() {
    let state = RequestFolder::new();
    state.ask(ID, |request| {
        request.approvers = vec!["alice".to_owned(), "bob".to_owned()];
        request.quorum = 2;
    });
    for _ in 0..2 {
        let (_, err) = state.says(&["approve", ID], 0);
        assert!(err.contains("was approved by alice; 1 more approver must approve it"), "{err}");
        assert_eq!(state.approvals().decision(ID).unwrap(), None);
    }
    let (out, _) = state.says(&["show", ID], 0);
    assert!(out.contains("quorum      1 of 2 approvals, by alice"), "{out}");
    let (json, _) = state.says(&["--format", "jsonl"], 0);
    assert!(json.contains("\"quorum\":2,\"approved_by\":[\"alice\"]"), "{json}");
    let (_, err) = state.says(&["approve", ID, "--session", "--by", "bob"], 1);
    assert!(err.contains("needs several approvers"), "{err}");
    let (out, _) = state.says(&["approve", ID, "--by", "bob"], 0);
    assert!(out.contains(&format!("approved {ID}")), "{out}");
    let log = std::fs::read_to_string(state.log()).unwrap();
    assert!(log.contains("\"event\":\"voted\"") && log.contains("\"decided_by\":\"bob\""), "{log}");
}

#[test]
fn no_flag_stands_in_for_a_person_s_answer() {
    let state = RequestFolder::new();
    state.ask(ID, |_| {});
    for arguments in [&["approve", ID, "--yes"][..], &["approve", ID, "-y"]] {
        let (code, said) = at_terminal(&state.command(arguments), "y\n");
        assert_eq!(code, 64, "{said}");
    }
}
