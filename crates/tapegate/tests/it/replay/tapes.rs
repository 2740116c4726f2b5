//! Tapes of every kind, complete and broken.

use std::fs;
use std::process::{Command, Stdio};

use super::{
    HEADER, MODES, answer, ask, call, gzip, lines, messages, overwatch, piped, refusal, tape,
};
use crate::support::{record, replay, request};
use crate::tape_faults::SmallFileSystem;

/// A session with everything: a handshake, progress, a request of the server, errors.
const SESSION: &str = r#"
    > {"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}}}}
    < {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1}}}
    < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":0.50}}
    < {"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"z":1,"a":12345678901234567890123}}
    > {"jsonrpc":"2.0","id":0,"result":{"role":"assistant"}}
    < {"jsonrpc":"2.0","id":1,"result":{"b":1.0,"a":"é \u00e9 \ud83d\ude00 \" \\","n":[1e3,-0,0.10]}}
    > {"jsonrpc":"2.0","id":2,"method":"no/such"}
    < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"no","data":null}}
"#;

/// The client's lines, and how many lines it then waits for.
const LIVE: [(&str, usize); 5] = [
    (
        r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}}}}"#,
        1,
    ),
    (r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#, 0),
    (
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"t"}}"#,
        2,
    ),
    (r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, 1),
    (r#"{"jsonrpc":"2.0","id":8,"method":"no/such","params":{}}"#, 1),
];

/// The lines that the client gets.
const GOT: [&str; 5] = [
    r#"{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":0.50}}"#,
    r#"{"jsonrpc":"2.0","id":0,"method":"sampling/createMessage","params":{"z":1,"a":12345678901234567890123}}"#,
    r#"{"jsonrpc":"2.0","id":7,"result":{"b":1.0,"a":"é \u00e9 \ud83d\ude00 \" \\","n":[1e3,-0,0.10]}}"#,
    r#"{"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no","data":null}}"#,
];

/// Plays a tape to a client that sends its lines one by one, and returns what it got.
#[track_caller]
fn played(tape: impl AsRef<[u8]>, mode: &str) -> Vec<String> {
    let mut run = replay(tape).flags(&["--match-mode", mode]).start();
    let mut count = 0;
    for (line, answers) in LIVE {
        run.send(format!("{line}\n").as_bytes());
        count += answers;
        run.lines(count);
    }
    let end = run.end_of_input().exits(0).complains("matched 3, unmatched 0, unused 0");
    String::from_utf8(end.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn tapes_of_both_dialects_play_the_same_compressed_or_not() {
    let raw = overwatch(SESSION).replace("\"parsed\"", "\"raw\":\"…\",\"parsed\"");
    let crlf = tape(SESSION).replace('\n', "\r\n");
    for tape in [tape(SESSION), overwatch(SESSION), raw, crlf, messages(SESSION)] {
        for mode in MODES {
            assert_eq!(played(&tape, mode), GOT, "{tape}");
            assert_eq!(played(gzip(&tape), mode), GOT, "{tape}");
        }
    }
}

#[test]
fn a_tape_of_several_gzip_members_is_one_tape() {
    let tape = tape(SESSION);
    let members: Vec<u8> = tape.split_inclusive('\n').flat_map(gzip).collect();
    assert_eq!(played(members, "sequential"), GOT);
}

#[test]
fn what_jq_makes_of_a_tape_is_a_tape() {
    // jq rounds large numbers.
    let script = SESSION.replace("12345678901234567890123", "7");
    let (tape, overwatch) = (tape(&script), overwatch(&script));
    let same = |text: &str, line: &String| {
        let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        // jq formats numbers in its own way, and `-S` sorts the members.
        let plain = |text: &str| {
            let text = value(&text.replace("12345678901234567890123", "7")).to_string();
            value(&text.replace(".0", ""))
        };
        assert_eq!(plain(text), plain(line));
    };
    for (args, input) in [
        (&["-c", "."][..], &tape),
        (&["."], &tape),
        (&["--tab", "."], &tape),
        (&["-c", "select(.type == \"message\")"], &tape),
        (&["select(.type == \"message\")"], &tape),
        (&["-cS", "."], &overwatch),
    ] {
        let made = piped("jq", args, input);
        for mode in MODES {
            let got = played(&made, mode);
            GOT.iter().zip(&got).for_each(|(text, line)| same(text, line));
            assert_eq!(got.len(), GOT.len());
        }
    }
}

#[test]
fn tapes_that_were_put_together_are_sessions_one_after_the_other() {
    let script = |text: &str| {
        let asked = format!("> {}\n< {}\n", ask(0, "initialize"), answer(0, format!("i{text}")));
        format!("{asked}> {}\n< {}\n", call(1, "a", 1), answer(1, text))
    };
    let merged = tape(&script("one")) + &tape(&script("two"));
    for mode in MODES {
        // One client on stdio is one session, and plays the first one that starts the same way.
        let live = lines(&[ask(0, "initialize"), call(1, "a", 1)]);
        let end = replay(&merged).flags(&["--match-mode", mode]).run(live.as_bytes()).exits(0);
        let got = lines(&[answer(0, "ione"), answer(1, "one")]);
        end.client_got(got.as_bytes()).complains("matched 2, unmatched 0, unused 2");
    }
    // With a shared position on the tape, all of it in order.
    let live = lines(&[ask(0, "initialize"), call(1, "a", 1)]).repeat(2);
    let end = replay(&merged).flags(&["--state-scope", "global"]).run(live.as_bytes()).exits(0);
    let got = lines(&[answer(0, "ione"), answer(1, "one"), answer(0, "itwo"), answer(1, "two")]);
    end.client_got(got.as_bytes()).complains("matched 4, unmatched 0, unused 0");
    // Two headers at the start, as some tools leave them.
    let doubled = format!("{HEADER}\n{}", tape(&script("one")));
    let live = lines(&[ask(0, "initialize"), call(1, "a", 1)]);
    let end = replay(doubled).run(live.as_bytes()).exits(0);
    end.client_got(lines(&[answer(0, "ione"), answer(1, "one")]).as_bytes());
}

#[test]
fn a_batch_is_answered_with_a_batch() {
    let batch = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"},{\"jsonrpc\":\"2.0\",\"method\":\"n\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"b\"}]";
    let reply = r#"[{"jsonrpc":"2.0","id":2,"result":"b"}, {"jsonrpc":"2.0","id":1,"result":"a"}]"#;
    for dialect in ["thoughtjack", "overwatch"] {
        let setup = record(&["read=1", &format!("say={reply}"), "serve"]);
        let taped = setup.flags(&["--dialect", dialect]);
        let taped = taped.run(format!("{batch}\n{}", request(3)).as_bytes()).exits(0);
        let taped = fs::read(taped.run.tape_path()).unwrap();
        for mode in MODES {
            let setup = || replay(&taped).flags(&["--match-mode", mode, "--on-unmatched", "warn"]);
            let live = batch.replace("\"id\":1", "\"id\":\"x\"");
            let end = setup().run(format!("{live}\n{}", request(9)).as_bytes()).exits(0);
            let got = "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":\"b\"},{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":\"a\"}]\n{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{\"for\":3}}\n";
            end.client_got(got.as_bytes());
            // The same requests one by one, and others in a batch.
            let live = "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"a\"}\n[{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"b\"},{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"c\"}]\n[{\"jsonrpc\":\"2.0\",\"method\":\"n\"}]\n";
            let end = setup().run(live.as_bytes()).exits(0);
            let got = String::from_utf8(end.stdout.clone()).unwrap();
            let start = "{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":\"a\"}\n[{\"jsonrpc\":\"2.0\",\"id\":6,\"result\":\"b\"},";
            assert!(got.starts_with(&format!("{start}{}", refusal(7))), "{got}");
            assert!(got.ends_with("}]\n") && got.lines().count() == 2, "{got}");
        }
    }
}

#[test]
fn a_broken_tape_is_an_error_with_its_line_and_nothing_is_played() {
    let whole = tape(SESSION);
    let whole: Vec<&str> = whole.lines().collect();
    for (line, text, output_text) in [
        (3, "{\"type\":\"mess", "not JSON: "),
        (4, "[1,2]", "not a tape entry"),
        (5, "hello", "not JSON: no JSON value at byte 0"),
        (6, "{\"type\":\"message\",\"seq\":5}", "`ts` is missing"),
        (2, "{\"type\":\"message\",\"seq\":1,\"ts\":\"x\",\"dir\":\"up\",\"msg\":{}}", "`"),
        (7, "\0\0\0\0\0\0\0\0", "not JSON: "),
    ] {
        let mut tape = whole.clone();
        tape[line - 1] = text;
        for tape in [lines(&tape).into_bytes(), gzip(lines(&tape))] {
            let end = replay(tape).run(lines(&[LIVE[0].0]).as_bytes()).exits(2).client_got(b"");
            let end = end.complains(&format!("is damaged: line {line}: {output_text}"));
            assert!(end.stderr.starts_with("error: `"), "{}", end.stderr);
        }
    }
}

#[test]
fn what_is_no_tape_is_refused() {
    for (text, output_text) in [
        ("", "is not a tape: it has no entries"),
        ("\n\n", "is not a tape: it has no entries"),
        ("my diary\nof today\n", "is not a tape: line 1: not JSON"),
        ("{\"a\":1}\n", "is not a tape: line 1: not a tape entry"),
        ("\u{1f}\u{8b}", "is not a tape"),
    ] {
        let end = replay(text).run(lines(&[LIVE[0].0]).as_bytes()).exits(2);
        end.client_got(b"").complains(output_text);
    }
    // The start of a gzip file, followed by something else.
    let end = replay(b"\x1f\x8b\x08\x00garbage").run(b"").exits(2);
    assert!(end.stderr.starts_with("error: "), "{}", end.stderr);
}

#[test]
fn a_byte_order_mark_is_left_out_with_a_warning() {
    let marked = format!("\u{feff}{}", tape(SESSION));
    assert_eq!(played(&marked, "sequential"), GOT);
    replay(marked).run(b"").exits(0).complains(":1: the tape starts with a byte order mark");
}

#[test]
fn a_tape_is_read_from_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("> {}\n< {}\n", call(1, "a", 1), answer(1, "one"));
    fs::write(folder.path().join("t.jsonl"), tape(&script)).unwrap();
    fs::write(folder.path().join("in"), lines(&[call(2, "a", 1)])).unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", "\"$0\" replay -r <(cat t.jsonl) < in", env!("CARGO_BIN_EXE_tapegate")]);
    let done = shell.current_dir(folder.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8(done.stdout).unwrap(), lines(&[answer(2, "one")]));
}

#[test]
fn a_tape_may_be_played_by_two_at_once_and_while_it_is_written() {
    let mut recorder = record(&["serve"]).start();
    recorder.send(request(1).as_bytes());
    recorder.lines(1);
    let taped = || fs::read(recorder.tape_path()).unwrap();
    assert!(!taped().ends_with(b"\"footer\"}"));
    let mut both = [0, 1].map(|_| {
        let setup = replay("").tape_at(recorder.tape_path());
        setup.start()
    });
    for run in &mut both {
        run.send(request(5).as_bytes());
        run.lines(1);
    }
    for run in both {
        let got = b"{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{\"for\":1}}\n";
        run.end_of_input().exits(0).client_got(got).complains("there is no footer");
    }
    recorder.end_of_input().exits(0).checks();
}

#[test]
fn what_unpacks_to_more_than_there_is_room_for_is_an_error_and_no_full_disk() {
    let disk = SmallFileSystem::new("1m");
    let folder = tempfile::tempdir().unwrap();
    let bomb = folder.path().join("bomb.jsonl.gz");
    fs::write(&bomb, gzip(vec![b' '; 8 << 20])).unwrap();
    assert!(fs::metadata(&bomb).unwrap().len() < 64 << 10);
    let played = |tape: &str, script: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script, "bash", env!("CARGO_BIN_EXE_tapegate"), tape]);
        command.env("TMPDIR", disk.path()).stdin(Stdio::null()).output().unwrap()
    };
    let whole = folder.path().join("t.jsonl.gz");
    fs::write(&whole, gzip(tape(SESSION))).unwrap();
    let place = disk.path().display();
    for script in [r#""$1" replay -r "$2""#, r#""$1" replay -r <(zcat "$2" 2>/dev/null)"#] {
        let done = played(bomb.to_str().unwrap(), script);
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(3), "{said}");
        assert!(
            said.contains(&format!(" bytes, the most that may be copied to `{place}`\n\nhint: ")),
            "{said}"
        );
        // A tape that fits is played.
        let done = played(whole.to_str().unwrap(), script);
        let said = String::from_utf8(done.stderr).unwrap();
        assert!(done.status.success() && said.contains("unused 3"), "{said}");
    }
    assert_eq!(fs::read_dir(disk.path()).unwrap().count(), 0);
}
