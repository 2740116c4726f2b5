//! `--record-to`: a new tape with everything old and new; the old one is not modified.

use std::fs;
use std::path::{Path, PathBuf};

use tapegate_core::side::Side;

use super::{MODES, answer, ask, call, lines, refusal, tape};
use crate::support::{SessionSetup, check, kept, replay, reply};
use crate::tape_faults::SmallFileSystem;

/// Three calls; during the second, the server sends a request to the client.
fn old() -> String {
    let script = [
        format!("> {}", call(1, "a", 1)),
        format!("@20 < {}", answer(1, "one")),
        format!("> {}", call(2, "b", 2)),
        "< {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":\"x\"}}"
            .to_owned(),
        format!("@50 < {}", answer(2, "two")),
        format!("> {}", call(3, "c", 3)),
        format!("< {}", answer(3, "three")),
    ];
    tape(&script.join("\n"))
}

/// A replay that writes a new tape, and the path of that tape.
fn copying(flags: &[&str]) -> (SessionSetup, PathBuf) {
    let setup = replay(old());
    let new = setup.folder().join("new.jsonl");
    (setup.flags(&["--record-to", new.to_str().unwrap()]).flags(flags), new)
}

/// The messages of both sides on a tape.
fn said(path: &Path) -> Vec<(Side, String)> {
    kept(path).into_iter().map(|kept| (kept.from, kept.text())).collect()
}

#[test]
fn the_new_tape_has_what_was_played_what_was_passed_on_and_what_is_left() {
    let (setup, new) = copying(&["--match-mode", "by-request"]);
    let setup = setup.behind(&["serve"]);
    let live = lines(&[call(10, "c", 3), call(11, "new", 4), call(12, "a", 1), ask(13, "ping")]);
    let end = setup.run(live.as_bytes()).exits(0);
    assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), old(), "it was touched");
    let _folder = end.complains(&format!("wrote 11 messages to {}\n", new.display()));
    let text = check(&new, 0);
    assert!(
        text.contains("11 messages (5 client, 6 server)") && !text.contains("warning"),
        "{text}"
    );
    let passed = reply(11).trim_end().replace("\"for\":11", "\"for\":1");
    let messages = said(&new);
    for line in [call(10, "c", 3), answer(10, "three"), call(11, "new", 4), passed.clone()] {
        assert!(messages.iter().any(|(_, text)| *text == line), "{line} is not in {messages:?}");
    }
    // Recorded requests that the client did not send are at the end, unchanged.
    assert_eq!(messages[8].1, call(2, "b", 2));
    assert_eq!(messages[10].1, answer(2, "two"));
    // A strict replay finds both old and new requests on it.
    let all = [call(1, "a", 1), call(2, "b", 2), call(3, "c", 3), call(4, "new", 4)];
    let strict = ["--match-mode", "by-request"];
    let end = replay(fs::read(&new).unwrap()).flags(&strict).run(lines(&all).as_bytes()).exits(0);
    let end = end.complains("matched 4, unmatched 0, unused 0");
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    assert!(got.contains(&answer(1, "one")) && got.contains(&answer(2, "two")), "{got}");
    assert!(got.contains(&answer(3, "three")) && got.contains("\"id\":4,\"result\":{\"for\":1}"));
}

#[test]
fn played_answers_keep_their_latencies_though_nothing_takes_time() {
    for mode in MODES {
        let (setup, new) = copying(&["--match-mode", mode]);
        let live = [call(7, "a", 1), call(8, "b", 2), call(9, "c", 3)];
        let end = setup.run(lines(&live).as_bytes()).exits(0);
        let latencies: Vec<u64> = kept(&new).iter().filter_map(|kept| kept.latency_ms).collect();
        assert_eq!(latencies, [20, 30, 0], "{mode}");
        check(&new, 0);
        // The same holds for a copy of the copy.
        let setup = replay(fs::read(&new).unwrap());
        let newer = setup.folder().join("newer.jsonl");
        let setup = setup.flags(&["--record-to", newer.to_str().unwrap()]);
        let _folder = setup.run(lines(&live).as_bytes()).exits(0);
        let latencies: Vec<u64> = kept(&newer).iter().filter_map(|kept| kept.latency_ms).collect();
        assert_eq!(latencies, [20, 30, 0], "{mode}");
        drop(end);
    }
}

#[test]
fn what_tapegate_says_itself_is_marked_on_the_new_tape_and_warned_of() {
    let (setup, new) = copying(&["--on-unmatched", "warn"]);
    let batch = format!("[{},{}]", call(5, "b", 2), ask(6, "ping"));
    let live = [call(1, "a", 1), ask(2, "ping"), call(3, "z", 1), "junk".to_owned(), batch];
    let end = setup.run(lines(&live).as_bytes()).exits(0);
    let ours: Vec<bool> = kept(&new)
        .iter()
        .filter(|kept| kept.from == Side::Server && kept.text().contains("\"id\":"))
        .map(|kept| kept.ours)
        .collect();
    // One answer is played, three are our own, one batch has both, and one is left over.
    assert_eq!(ours, [false, true, true, true, true, true, false], "{:?}", said(&new));
    let again = replay(fs::read(&new).unwrap()).run(b"").exits(0);
    drop(end);
    again.complains(
        "5 answers on this tape are Tapegate's own (`\"by\":\"tapegate\"`), not the server's: \
         ping, tools/call z, an answer to no request, tools/call b",
    );
}

#[test]
fn answers_of_tapegate_keep_their_mark_from_copy_to_copy() {
    let own = format!("{},\"by\":\"tapegate\"}}", answer(2, "two"));
    let marked = old().replace(&format!("{}}}", answer(2, "two")), &own);
    for live in [vec![call(1, "a", 1)], vec![call(1, "a", 1), call(2, "b", 2)]] {
        let setup = replay(marked.clone());
        let new = setup.folder().join("new.jsonl");
        let setup = setup.flags(&["--record-to", new.to_str().unwrap()]);
        let _folder = setup.run(lines(&live).as_bytes()).exits(0);
        let ours: Vec<String> =
            kept(&new).iter().filter(|kept| kept.ours).map(|kept| kept.text()).collect();
        assert_eq!(ours, [answer(2, "two")]);
    }
}

#[test]
fn what_is_left_keeps_its_marks() {
    let line_end = format!("{}}}", answer(2, "two"));
    let marked = format!("{},\"resumed\":true}}", answer(2, "two"));
    let setup = replay(old().replace(&line_end, &marked));
    let new = setup.folder().join("new.jsonl");
    let end = setup.flags(&["--record-to", new.to_str().unwrap()]).run(b"").exits(0);
    let text = fs::read_to_string(&new).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("\"resumed\":true")).collect();
    assert!(lines.len() == 1 && lines[0].contains(&answer(2, "two")), "{text}");
    drop(end);
}

#[test]
fn a_copy_of_a_whole_replay_is_the_tape_again_and_plays_in_order() {
    for mode in MODES {
        let (setup, new) = copying(&["--match-mode", mode]);
        let live = [call(1, "a", 1), call(2, "b", 2), call(3, "c", 3)];
        let end = setup.run(lines(&live).as_bytes()).exits(0);
        let of_old = said(end.run.tape_path());
        let by = |side: Side, said: &[(Side, String)]| -> Vec<String> {
            said.iter()
                .filter(|messages| messages.0 == side)
                .map(|messages| messages.1.clone())
                .collect()
        };
        let of_new = said(&new);
        assert_eq!(by(Side::Client, &of_old), by(Side::Client, &of_new));
        assert_eq!(by(Side::Server, &of_old), by(Side::Server, &of_new));
        let end = replay(fs::read(&new).unwrap()).run(lines(&live).as_bytes()).exits(0);
        end.complains("matched 3, unmatched 0, unused 0");
    }
}

#[test]
fn a_replay_that_nobody_asked_anything_is_copied_whole_with_its_latencies() {
    let (setup, new) = copying(&[]);
    let end = setup.run(b"").exits(0);
    assert_eq!(said(&new), said(end.run.tape_path()));
    let latencies: Vec<u64> = kept(&new).iter().filter_map(|kept| kept.latency_ms).collect();
    assert_eq!(latencies, [20, 30, 0]);
    check(&new, 0);
}

#[test]
fn what_was_refused_is_on_the_new_tape_and_is_refused_again() {
    let (setup, new) = copying(&[]);
    let end = setup.run(lines(&[call(1, "a", 1), call(2, "z", 1)]).as_bytes()).exits(6);
    assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), old());
    check(&new, 0);
    let messages = said(&new);
    assert!(messages[3].1.starts_with(&refusal(2)), "{messages:?}");
    // The rest of the old tape is still there.
    assert!(messages.iter().any(|(_, text)| *text == answer(3, "three")), "{messages:?}");
    for mode in MODES {
        let again = replay(fs::read(&new).unwrap()).flags(&["--match-mode", mode]);
        let end = again.run(lines(&[call(1, "a", 1), call(2, "z", 1)]).as_bytes()).exits(6);
        end.client_got_some("no recorded answer for tools/call z (recorded, but never answered)");
    }
}

#[test]
fn hostile_clients_leave_a_whole_tape() {
    let (setup, new) = copying(&["--max-message-bytes", "2KB", "--on-unmatched", "warn"]);
    let live = [
        b"garbage\n\x00\xff\xfe\n[1,2]\n[]\n{\"id\":5}\n".to_vec(),
        format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}\n", "m".repeat(5000))
            .into_bytes(),
        lines(&[call(1, "a", 1)]).into_bytes(),
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"met".to_vec(),
    ];
    let end = setup.run(&live.concat()).exits(0);
    let _folder = end.client_got_some(&answer(1, "one"));
    check(&new, 0);
    let again = replay(fs::read(&new).unwrap()).flags(&["--match-mode", "by-request"]);
    let end = again.run(lines(&[call(9, "c", 3), call(8, "a", 1)]).as_bytes()).exits(0);
    end.client_got(lines(&[answer(9, "three"), answer(8, "one")]).as_bytes());
}

#[test]
fn a_file_that_is_there_is_only_overwritten_by_force() {
    let (setup, new) = copying(&[]);
    fs::write(&new, "precious").unwrap();
    let end = setup.run(lines(&[call(1, "a", 1)]).as_bytes()).exits(3).client_got(b"");
    let _folder = end
        .complains("exists already\n\nhint: choose another name, or pass --force to overwrite it");
    assert_eq!(fs::read_to_string(&new).unwrap(), "precious");
}

#[test]
fn a_copy_may_be_compressed() {
    let setup = replay(old());
    let new = setup.folder().join("new.jsonl.gz");
    let end = setup.flags(&["--record-to", new.to_str().unwrap()]).run(b"").exits(0);
    assert_eq!(fs::read(&new).unwrap()[..2], [0x1f, 0x8b]);
    let end_of_new = replay(fs::read(&new).unwrap()).run(lines(&[call(1, "a", 1)]).as_bytes());
    end_of_new.exits(0).client_got(lines(&[answer(1, "one")]).as_bytes());
    drop(end);
}

#[test]
fn a_full_disk_ends_the_replay_and_every_request_is_answered() {
    let disk = SmallFileSystem::new("64k");
    let pair = |n: usize| format!("> {}\n< {}\n", call(n, "t", n), answer(n, n));
    let script: String = (0..3000).map(pair).collect();
    let new = disk.path().join("new.jsonl");
    let setup = replay(tape(&script)).flags(&["--record-to", new.to_str().unwrap()]);
    let live: String = (0..3000).map(|n| lines(&[call(n, "t", n)])).collect();
    let mut run = setup.start();
    run.send_aside(live.into_bytes());
    let end = run.end().exits(3).complains("No space left on device");
    check(&new, 0);
    // The answers that the client got are on the new tape, and nothing else is.
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    let (ours, theirs): (Vec<&str>, Vec<&str>) =
        got.lines().partition(|line| line.contains("recording stopped: "));
    let of_server: Vec<String> = said(&new)
        .into_iter()
        .filter(|messages| messages.0 == Side::Server)
        .map(|messages| messages.1)
        .collect();
    assert_eq!(theirs, of_server);
    assert!(!ours.is_empty(), "pending requests are answered");
    assert_eq!(fs::read_to_string(end.run.tape_path()).unwrap(), tape(&script));
}

#[test]
fn a_disk_that_is_full_of_what_is_left_is_an_error() {
    let disk = SmallFileSystem::new("64k");
    let pair = |n: usize| format!("> {}\n< {}\n", call(n, "t", n), answer(n, "x".repeat(1000)));
    let script: String = (0..300).map(pair).collect();
    let new = disk.path().join("new.jsonl");
    let setup = replay(tape(&script)).flags(&["--record-to", new.to_str().unwrap()]);
    let end = setup.run(lines(&[call(0, "t", 0)]).as_bytes()).exits(3);
    let end = end.complains("No space left on device");
    end.client_got(lines(&[answer(0, "x".repeat(1000))]).as_bytes());
    check(&new, 0);
}

#[test]
fn a_copy_that_cannot_be_written_is_an_error_before_anything_is_played() {
    let setup = replay(old());
    fs::write(setup.folder().join("file"), "").unwrap();
    let new = setup.folder().join("file/new.jsonl");
    let setup = setup.flags(&["--record-to", new.to_str().unwrap()]);
    let end = setup.run(lines(&[call(1, "a", 1)]).as_bytes()).exits(3).client_got(b"");
    end.complains("error: cannot open `");
}
