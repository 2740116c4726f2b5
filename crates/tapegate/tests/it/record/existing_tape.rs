//! An existing tape never prevents a session from being recorded, unless that is requested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::peers::{self, PeerServer, PeerTransport};
use crate::sdk::{TS2, TS2_AUTO};
use crate::support::{check, kept, record, reply, request, tape, tapegate};

/// The request of a client that only probes the server's protocol version.
const PROBE: &str = "{\"jsonrpc\":\"2.0\",\"id\":\"probe\",\"method\":\"server/discover\"}\n";

/// Records a session to `tape` and returns the standard error.
#[track_caller]
fn session(tape: &Path, flags: &[&str], input: &str) -> String {
    let setup = record(&["serve"]).tape_at(tape).flags(flags);
    setup.run(input.as_bytes()).exits(0).stderr
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_second_and_third_session_get_names_of_their_own_and_it_is_said() {
    for (name, second, third) in [
        ("s.jsonl", "s-2.jsonl", "s-3.jsonl"),
        ("s.jsonl.gz", "s-2.jsonl.gz", "s-3.jsonl.gz"),
        ("s", "s-2", "s-3"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join(name);
        assert!(!session(&tape, &[], &request(1)).contains("exists"));
        let first = fs::read(&tape).unwrap();
        let said = session(&tape, &[], &request(2));
        let path = |name: &str| folder.path().join(name).display().to_string();
        let output_text = format!(
            "tapegate: `{}` exists, so this session is recorded to `{}`\n",
            path(name),
            path(second)
        );
        assert!(said.contains(&output_text), "{said}");
        assert!(!session(&tape, &["--quiet"], &request(3)).contains("exists"));
        assert_eq!(fs::read(&tape).unwrap(), first, "the first one is as it was");
        assert_eq!(names(folder.path()).len(), 3);
        for name in [name, second, third] {
            let text = check(&folder.path().join(name), 0);
            assert!(text.contains("2 messages (1 client, 1 server)"), "{text}");
        }
    }
}

#[test]
fn a_file_that_is_not_a_tape_is_kept() {
    for setup in [record(&["serve"]), tape(&["serve"])] {
        fs::write(setup.tape_path(), "my diary\n").unwrap();
        let end = setup.run(request(1).as_bytes()).exits(0).client_got(reply(1).as_bytes());
        assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), "my diary\n");
        assert_eq!(kept(&end.run.folder().join("t-2.jsonl")).len(), 2);
    }
}

#[test]
fn a_tape_that_holds_only_a_probe_is_replaced() {
    for name in ["s.jsonl", "s.jsonl.gz"] {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join(name);
        session(&tape, &[], PROBE);
        session(&tape, &[], &request(1));
        assert_eq!(names(folder.path()), [name], "the probe is gone");
        // The next probe gets its own name, which is then reused.
        session(&tape, &[], "");
        session(&tape, &[], PROBE);
        session(&tape, &[], &request(2));
        assert_eq!(names(folder.path()).len(), 2);
        for name in names(folder.path()) {
            assert!(check(&folder.path().join(name), 0).contains("2 messages"));
        }
    }
}

#[test]
fn a_probe_with_something_unusual_in_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("s.jsonl");
    session(&tape, &[], &format!("{PROBE}what is this?\n"));
    session(&tape, &[], &request(1));
    assert_eq!(names(folder.path()), ["s-2.jsonl", "s.jsonl", "s.jsonl.anomalies.jsonl"]);
}

#[test]
fn a_probe_that_still_runs_is_not_replaced() {
    let mut probe = record(&["serve"]).start();
    probe.send(PROBE.as_bytes());
    probe.lines(1);
    session(probe.tape_path(), &[], &request(1));
    assert_eq!(names(probe.folder()), ["t-2.jsonl", "t.jsonl"]);
    probe.send(request(2).as_bytes());
    probe.lines(2);
    let end = probe.end_of_input().exits(0).checks();
    assert_eq!(end.tape().len(), 4);
}

#[test]
fn sessions_that_start_at_the_same_time_get_a_name_each() {
    for (command, place) in [("record", "-o"), ("record", "-o"), ("tape", "--tape")] {
        let folder = tempfile::tempdir().unwrap();
        // Several recorders also compete for the tape left by a probe.
        let held = folder.path().join("s.jsonl");
        session(&held, &[], PROBE);
        let start = |_| -> Child {
            let mut run = tapegate();
            run.args([
                command,
                place,
                "s.jsonl",
                "--",
                "sh",
                "-c",
                "read line; echo \"$line\"; cat",
            ]);
            run.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
            run.stderr(Stdio::null()).spawn().unwrap()
        };
        let mut runs: Vec<Child> = (0..8).map(start).collect();
        for (id, run) in runs.iter_mut().enumerate() {
            use std::io::{BufRead, BufReader, Write};
            let input = run.stdin.as_mut().unwrap();
            input.write_all(request(id).as_bytes()).unwrap();
            let mut line = String::new();
            BufReader::new(run.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, request(id));
        }
        for mut run in runs {
            drop(run.stdin.take());
            assert_eq!(run.wait().unwrap().code(), Some(0));
        }
        let tapes: Vec<PathBuf> =
            names(folder.path()).iter().map(|name| folder.path().join(name)).collect();
        let mut asked: Vec<String> = Vec::new();
        for tape in &tapes {
            check(tape, 0);
            let texts =
                kept(tape).into_iter().filter(|kept| kept.text().contains("\"method\":\"m\""));
            asked.extend(texts.map(|kept| kept.text()));
        }
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), 8, "{tapes:?}");
    }
}

#[test]
fn what_becomes_of_a_tape_that_exists_can_be_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("s.jsonl");
    session(&tape, &[], &request(1));
    let first = fs::read_to_string(&tape).unwrap();

    let setup = record(&["serve"]).tape_at(&tape).flags(&["--if-exists", "fail"]);
    let end = setup.start().end().exits(3).client_got(b"");
    end.complains("exists already").complains("leave out `--if-exists fail`");
    assert_eq!(fs::read_to_string(&tape).unwrap(), first);

    let said = session(&tape, &["--if-exists", "append"], &request(2));
    assert!(!said.contains("exists"), "{said}");
    let both = fs::read_to_string(&tape).unwrap();
    assert!(both.starts_with(&first) && both.matches("\"type\":\"header\"").count() == 2);
    check(&tape, 0);

    for way in [&["--if-exists", "overwrite"][..], &["--force"], &["--if-exists=overwrite"]] {
        session(&tape, way, &request(3));
        assert_eq!(kept(&tape).len(), 2);
    }
    assert_eq!(names(folder.path()), ["s.jsonl"]);
}

#[test]
fn what_cannot_be_appended_to_gets_the_next_name() {
    let folder = tempfile::tempdir().unwrap();
    let session =
        |name: &str, flags: &[&str]| session(&folder.path().join(name), flags, &request(1));
    session("torn.jsonl", &[]);
    let torn = fs::read(folder.path().join("torn.jsonl")).unwrap();
    fs::write(folder.path().join("torn.jsonl"), &torn[..torn.len() - 9]).unwrap();
    session("small.jsonl.gz", &[]);
    session("other.jsonl", &["--dialect", "overwatch"]);
    for name in ["torn.jsonl", "small.jsonl.gz", "other.jsonl"] {
        let said = session(name, &["--if-exists", "append"]);
        assert!(said.contains("so this session is recorded to"), "{said}");
        let is_compressed = said.contains("nothing is appended to a compressed tape");
        assert_eq!(is_compressed, name.ends_with(".gz"), "{said}");
    }
    assert_eq!(fs::read(folder.path().join("torn.jsonl")).unwrap(), &torn[..torn.len() - 9]);
    assert_eq!(names(folder.path()).len(), 6);
}

#[test]
fn a_tape_on_standard_output_is_refused_with_the_reason() {
    for args in [&["record", "-o", "-"][..], &["tape", "--tape", "-"], &["tape", "--out", "-"]] {
        let done = tapegate().args(args).args(["--", "cat"]).output().unwrap();
        assert_eq!(done.status.code(), Some(64));
        let output_text = "error: the tape cannot go to `-`: standard output belongs to the client and its server\n";
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(said.starts_with(output_text) && said.contains("hint: "), "{said}");
    }
}

/// The client of the TypeScript SDK 2.x probes a server, and then starts it again.
#[test]
fn a_client_that_starts_its_server_twice_works_again_and_again() {
    for (client, server) in [(TS2_AUTO, PeerServer::Modern), (TS2, PeerServer::Everything)] {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("tape.jsonl");
        let (wire, none) = (folder.path().join("wire.jsonl"), Path::new("/dev/null"));
        let direct = client.run(PeerTransport::Stdio, &server.stdio(none), none);
        let line = [peers::tapegate(), "record", "-o", tape.to_str().unwrap(), "--"];
        let line: Vec<String> =
            line.map(str::to_owned).into_iter().chain(server.stdio(&tape)).collect();
        for round in 0..2 {
            fs::remove_file(&wire).ok();
            let proxied = client.run(PeerTransport::Stdio, &line, &wire);
            peers::assert_none_left(&tape);
            peers::assert_same(&direct, &proxied);
            let tapes = names(folder.path()).into_iter().filter(|name| name.starts_with("tape"));
            let tapes: Vec<PathBuf> = tapes.map(|name| folder.path().join(name)).collect();
            tapes.iter().for_each(|tape| peers::assert_valid(tape));
            assert!(tapes.len() > round, "{tapes:?}");
        }
    }
}

#[test]
fn a_path_that_ends_in_a_slash_is_a_folder_and_cannot_be_a_file() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.jsonl"), "precious").unwrap();
    for arguments in [["record", "-o", "s.jsonl/"], ["tape", "--tape", "s.jsonl/"]] {
        let mut command = Command::new(peers::tapegate());
        let command = command.args(arguments).args(["--", "cat"]).current_dir(folder.path());
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(64), "{stderr}");
        let message = "`s.jsonl/` would be a folder, but `s.jsonl` is a file";
        assert!(stderr.contains(message) && stderr.contains("leave out the `/`"), "{stderr}");
    }
    for arguments in [["record", "-o", "new/"], ["tape", "--tape", "other/"]] {
        let mut command = Command::new(peers::tapegate());
        let command = command.args(arguments).args(["--", "cat"]).current_dir(folder.path());
        let done = command.stdin(std::process::Stdio::null()).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(fs::read_dir(folder.path().join(arguments[2])).unwrap().count(), 1);
    }
}

/// A folder that cannot be written to is a different case, and still an error.
#[test]
fn a_name_that_cannot_be_made_is_an_error() {
    let mut command = Command::new(peers::tapegate());
    let done = command.args(["record", "-o", "/proc/none/s.jsonl", "--", "cat"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&done.stderr).contains("cannot open `/proc/none/s.jsonl`"));
}
