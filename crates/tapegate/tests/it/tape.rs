//! `tapegate tape`: the overwatch dialect.

use std::fs;

use tapegate_core::tape::{TapeLine, TapeReader};

use crate::support::{check, request, tape};

const APPEND: [&str; 2] = ["--if-exists", "append"];

#[test]
fn a_tape_that_exists_stays_as_it_is_and_the_next_free_name_is_used() {
    let first = tape(&["serve"]).run(request(1).as_bytes()).exits(0);
    let (path, before) = (first.run.tape_path(), fs::read(first.run.tape_path()).unwrap());
    let second = tape(&["serve"]).tape_at(path).run(request(2).as_bytes()).exits(0);
    let next = path.with_file_name("t-2.jsonl");
    second.complains(&format!("exists, so this session is recorded to `{}`", next.display()));
    assert_eq!(fs::read(path).unwrap(), before);
    let text = fs::read_to_string(&next).unwrap();
    assert!(text.contains("\"id\":2") && !text.contains("\"id\":1"), "{text}");
}

#[test]
fn an_overwatch_tape_is_appended_to_if_that_is_asked_for() {
    let first = tape(&["serve"]).run(request(1).as_bytes()).exits(0);
    let second = tape(&["serve"]).flags(&APPEND).tape_at(first.run.tape_path());
    let second = second.run(request(2).as_bytes());
    second.exits(0).checks();
    let ids: Vec<String> = first.tape().iter().map(|kept| kept.text()).collect();
    assert_eq!(ids.len(), 4);
    assert!(ids[2].contains("\"id\":2"), "{ids:?}");
}

#[test]
fn ec_rec_002_a_torn_overwatch_tape_is_ended_marked_and_appended_to() {
    let first = tape(&["serve"]).run(request(1).as_bytes()).exits(0);
    let path = first.run.tape_path();
    let whole = fs::read(path).unwrap();
    for cut in [1, 2, 30, whole.len() - 3] {
        fs::write(path, &whole[..whole.len() - cut]).unwrap();
        let torn = check(path, 0);
        let second = tape(&["serve"]).flags(&APPEND).tape_at(path);
        let second = second.run(request(2).as_bytes()).exits(0);
        let bytes = fs::read(path).unwrap();
        assert!(bytes.starts_with(&whole[..whole.len() - cut]), "what was there is kept");
        assert_eq!(bytes[whole.len() - cut], b'\n');
        let mut reader = TapeReader::new(&bytes[whole.len() - cut + 1..]);
        let Some(Ok(next)) = reader.next() else { panic!("no marker") };
        let TapeLine::Bad(bad) = next.entry else { panic!("no marker") };
        assert_eq!(bad.reason, "recovered_after_torn_tail");
        let text = check(path, 0);
        assert!(cut == 1 || torn.contains("the tape ends in the middle"), "{torn}");
        assert!(cut == 1 || text.contains("warning: "), "a line was lost, and it is said: {text}");
        drop(second);
    }
}

#[test]
fn nothing_is_appended_to_something_else() {
    for other in [
        "my diary\n",
        "{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"2026-01-01T00:00:00Z\",\"upstream\":\"x\",\"thoughtjack_version\":\"1\"}\n{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\"msg\":{\"id\":1,\"method\":\"x\"}}\n",
        "{\"a\":1}\n",
        "{\"ts",
    ] {
        let setup = tape(&["serve"]).flags(&APPEND);
        fs::write(setup.tape_path(), other).unwrap();
        let ours = other == "{\"ts";
        let end = setup.start().end_of_input().exits(0);
        if ours {
            // The remains of our own first line after a crash are told apart from an unrelated
            // file.
            continue;
        }
        let end = end.complains("is not a complete tape in the overwatch dialect");
        assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), other);
    }
}

#[test]
fn overwatch_lines_have_raw_and_raw_b64_where_they_must() {
    let end = tape(&["eof"]).run(b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"} \nx\xffy\nlast").exits(0);
    let text = fs::read_to_string(end.run.tape_path()).unwrap();
    let lines: Vec<&str> = text.lines().map(|line| line.split_once(',').unwrap().1).collect();
    assert_eq!(
        lines,
        [
            "\"direction\":\"client_to_server\",\"parsed\":{\"jsonrpc\":\"2.0\",\"method\":\"n\"},\"raw\":\"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"method\\\":\\\"n\\\"} \"}",
            "\"direction\":\"client_to_server\",\"raw\":\"x\u{fffd}y\",\"parse_error\":\"not UTF-8 at byte 1\",\"raw_b64\":\"eP95\"}",
            "\"direction\":\"client_to_server\",\"raw\":\"last\",\"parse_error\":\"unterminated_frame_at_close\"}",
        ]
    );
    let end = tape(&["eof"]).flags(&["--no-raw"]).run(b"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}\n");
    assert!(!fs::read_to_string(end.run.tape_path()).unwrap().contains("\"raw\""));
}

#[test]
fn flags_that_a_dialect_cannot_keep_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let flags = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tapegate"));
        let done = command.args(args).args(["--", "true"]).current_dir(folder.path()).output();
        let done = done.unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for args in [
        &["record", "-o", "t.jsonl", "--no-raw"][..],
        &["tape", "--tape", "t.jsonl", "--name", "x"],
        &["tape", "--tape", "t.jsonl", "--tags", "x"],
        &["record", "-o", "t.jsonl", "--dialect", "overwatch", "--name", "x"],
    ] {
        let (code, said) = flags(args);
        assert_eq!(code, Some(64), "{args:?}: {said}");
        assert!(said.contains("dialect") && said.contains("hint: "), "{said}");
    }
    let (code, said) = flags(&["tape", "--tape", "o.jsonl", "--no-raw"]);
    assert_eq!(code, Some(0), "{said}");
}
