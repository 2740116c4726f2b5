//! The edge cases of the specification, one by one.

use std::fs::{self, File};
use std::io::{BufWriter, Write};

use super::{HEADER, MODES, answer, ask, call, gzip, lines, messages, overwatch, refusal, tape};
use crate::support::{replay, tapegate};

/// Two calls, answered in order.
fn two() -> String {
    let (one, two) = (call(1, "a", 1), call(2, "b", 2));
    format!("> {one}\n< {}\n> {two}\n< {}\n", answer(1, "one"), answer(2, "two"))
}

#[test]
fn ec_rec_001_a_tape_of_a_header_alone_has_an_error_for_every_request() {
    let asked = [ask(1, "initialize"), ask("\"x\"", "tools/list"), call(3, "a", 1)];
    for mode in MODES {
        let flags = ["--match-mode", mode, "--on-unmatched", "warn"];
        let end = replay(tape("")).flags(&flags).run(lines(&asked).as_bytes()).exits(0);
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let got: Vec<&str> = got.lines().collect();
        assert_eq!(got.len(), 3, "{got:?}");
        for (line, id) in got.iter().zip(["1", "\"x\"", "3"]) {
            assert!(line.starts_with(&refusal(id)), "{line}");
        }
        end.complains("matched 0, unmatched 3, unused 0");
        let end = replay(format!("{HEADER}\n")).flags(&["--match-mode", mode]);
        let end = end.run(lines(&asked).as_bytes()).exits(6).client_got_some(&refusal(1));
        assert_eq!(end.stdout.split(|byte| *byte == b'\n').count(), 2, "the first one ends it");
    }
}

#[test]
fn ec_rec_002_what_is_before_a_torn_last_line_is_played_and_the_tear_is_told() {
    let asked = [call(7, "a", 1), call(8, "b", 2)];
    for whole in [HEADER.to_owned() + "\n" + &messages(&two()), overwatch(&two())] {
        let last = whole.trim_end().rfind('\n').unwrap() + 1;
        for end in [last + 1, last + 20, whole.len() - 10, whole.len() - 2] {
            let end = replay(&whole[..end]).run(lines(&asked).as_bytes()).exits(6);
            let end = end.complains(": the tape ends in the middle of an entry; ");
            // The answer to the second call was lost.
            let got = String::from_utf8(end.stdout.clone()).unwrap();
            let (first, rest) = got.split_once('\n').unwrap();
            assert_eq!(first, answer(7, "one"));
            assert!(rest.starts_with(&refusal(8)), "{rest}");
            assert!(
                rest.contains("no recorded answer for tools/call b (recorded, but never answered)"),
                "{rest}"
            );
        }
        // If only its line ending is missing, the last line is complete.
        let end = replay(whole.trim_end()).run(lines(&asked).as_bytes()).exits(0);
        end.client_got(lines(&[answer(7, "one"), answer(8, "two")]).as_bytes());
    }
    let mut torn = gzip(tape(&two()));
    torn.truncate(torn.len() - 9);
    let end = replay(torn).run(lines(&asked[..1]).as_bytes()).exits(0);
    end.client_got(lines(&[answer(7, "one")]).as_bytes()).complains("was cut off");
}

#[test]
fn ec_rec_003_requests_with_the_same_id_are_told_apart_by_what_they_ask() {
    // All three are open at once, and the third is the same request as the first.
    let asked = [call(1, "a", 1), call(1, "b", 2), call(1, "a", 1)];
    let script = asked.iter().map(|text| format!("> {text}\n")).collect::<String>();
    let answers = ["one", "two", "three"].map(|text| format!("< {}\n", answer(1, text)));
    let script = script + &answers.concat();
    for mode in MODES {
        let live = lines(&[call(5, "b", 2), call(6, "a", 1), call(5, "a", 1)]);
        let end = replay(tape(&script)).flags(&["--match-mode", mode]).run(live.as_bytes());
        let got = [answer(6, "one"), answer(5, "two"), answer(5, "three")];
        end.exits(0).client_got(lines(&got).as_bytes());
        // Each request is answered as often as it was recorded, and no more.
        let live = [call(1, "b", 2), call(1, "b", 2)];
        let end = replay(tape(&script)).flags(&["--match-mode", mode]);
        let end = end.run(lines(&live).as_bytes()).exits(6);
        end.client_got_some(&answer(1, "two")).client_got_some(&refusal(1));
    }
}

#[test]
fn ec_rec_003_the_tape_may_say_which_of_two_requests_with_one_id_is_answered() {
    let script = [call(1, "a", 1), call(1, "b", 2)].map(|text| format!("> {text}\n")).concat();
    let script = format!("{script}< {}\n< {}\n", answer(1, "two"), answer(1, "one"));
    let tape = tape(&script);
    let mut tape: Vec<String> = tape.lines().map(str::to_owned).collect();
    for (line, request) in [(3, 2), (4, 1)] {
        let text = tape[line].strip_suffix('}').unwrap();
        tape[line] = format!("{text},\"req\":{request}}}");
    }
    for mode in MODES {
        let live = lines(&[call(1, "a", 1), call(1, "b", 2)]);
        let end = replay(lines(&tape)).flags(&["--match-mode", mode]).run(live.as_bytes());
        end.exits(0).client_got(lines(&[answer(1, "two"), answer(1, "one")]).as_bytes());
    }
}

#[test]
fn ec_rec_004_answers_out_of_order_belong_to_their_requests() {
    const ORDER: [u32; 5] = [3, 5, 1, 4, 2];
    let asks: String = (1..=5).map(|id| format!("> {}\n", call(id, "a", id))).collect();
    let answers: String = ORDER.map(|id| format!("< {}\n", answer(id, id))).concat();
    for mode in MODES {
        let live: Vec<String> = (1..=5).map(|id| call(id + 10, "a", id)).collect();
        let end = replay(tape(&format!("{asks}{answers}"))).flags(&["--match-mode", mode]);
        let got = ORDER.map(|id| answer(id + 10, id));
        end.run(lines(&live).as_bytes()).exits(0).client_got(lines(&got).as_bytes());
    }
}

#[test]
fn ec_rec_005_a_notification_is_not_answered_and_nothing_waits_for_it() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    // A minute passed before and after it.
    let script = format!(
        "> {}\n@10 < {}\n@60000 > {note}\n@120000 > {}\n@120010 < {}\n",
        call(1, "a", 1),
        answer(1, "one"),
        call(2, "b", 2),
        answer(2, "two")
    );
    for (mode, timing) in MODES.into_iter().zip(["instant", "realistic", "scaled:2"]) {
        let live = [&call(1, "a", 1), note, note, &call(2, "b", 2), note];
        let flags = ["--match-mode", mode, "--timing", timing];
        let begun = std::time::Instant::now();
        let end = replay(tape(&script)).flags(&flags).run(lines(&live).as_bytes()).exits(0);
        assert!(begun.elapsed().as_secs() < 30, "it has waited for a notification");
        end.client_got(lines(&[answer(1, "one"), answer(2, "two")]).as_bytes());
    }
}

#[test]
fn ec_rec_005_what_the_server_said_to_a_notification_comes_after_it() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"seen"}}"#;
    let script = format!(
        "> {}\n< {}\n> {note}\n< {log}\n> {}\n< {}\n",
        call(1, "a", 1),
        answer(1, "one"),
        call(2, "b", 2),
        answer(2, "two")
    );
    let live = lines(&[&call(1, "a", 1), note, &call(2, "b", 2)]);
    let got = lines(&[&answer(1, "one"), log, &answer(2, "two")]);
    replay(tape(&script)).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
    // Without the notification, nothing triggers it.
    let live = lines(&[&call(1, "a", 1), &call(2, "b", 2)]);
    let got = lines(&[&answer(1, "one"), &answer(2, "two")]);
    replay(tape(&script)).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
}

#[test]
fn ec_rec_006_base64_content_is_played_as_it_was_recorded() {
    let data: String =
        (0..300_000u32).map(|n| char::from(b"ABCDabcd0189+/=="[(n * 7 % 16) as usize])).collect();
    let image = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"image","data":"{data}","mimeType":"image/png"}}]}}}}"#
        )
    };
    let script = format!("> {}\n< {}\n", call(1, "a", 1), image(1));
    for tape in [tape(&script).into_bytes(), overwatch(&script).into_bytes(), gzip(tape(&script))] {
        let end = replay(tape).run(lines(&[call(9, "a", 1)]).as_bytes()).exits(0);
        end.client_got(lines(&[image(9)]).as_bytes());
    }
}

#[test]
fn ec_rec_007_a_tape_of_a_gigabyte_is_played_in_bounded_memory() {
    const LARGE: usize = 270;
    const LARGE_BYTES: usize = 4 << 20;
    const SMALL: usize = 20_000;
    let setup = replay(tape(""));
    let mut file = BufWriter::new(File::create(setup.tape_path()).unwrap());
    writeln!(file, "{HEADER}").unwrap();
    let text = "y".repeat(LARGE_BYTES);
    for id in 0..LARGE {
        let script = format!("> {}\n< {}\n", call(id, "large", id), answer(id, "TEXT"));
        let script = messages(&script);
        let (before, after) = script.split_once("TEXT").unwrap();
        for part in [before, &text, after] {
            file.write_all(part.as_bytes()).unwrap();
        }
        let few = id * SMALL / LARGE..(id + 1) * SMALL / LARGE;
        let script = |id| format!("> {}\n< {}\n", call(id, "small", id), answer(id, id));
        file.write_all(messages(&few.map(script).collect::<String>()).as_bytes()).unwrap();
    }
    file.into_inner().unwrap();
    assert!(setup.tape_path().metadata().unwrap().len() > 1 << 30);
    let mut run = setup.flags(&["--match-mode", "by-request", "-q"]).start();
    for n in [SMALL - 1, 0, SMALL / 2] {
        run.send(lines(&[call(n, "small", n)]).as_bytes());
    }
    run.lines(3);
    run.send(lines(&[call(1, "large", LARGE - 1)]).as_bytes());
    run.lines(4);
    // Enough for a body or two, and an index that does not depend on the size of bodies.
    assert!(run.own_memory_kb_max() < 24_000, "{} KB", run.own_memory_kb_max());
    let end = run.end_of_input().exits(0);
    let got = [SMALL - 1, 0, SMALL / 2].map(|n| answer(n, n) + "\n").concat();
    end.client_got((got + &answer(1, &text) + "\n").as_bytes());
}

#[test]
fn ec_rec_008_a_tape_of_another_major_version_is_refused_with_both_versions() {
    let output_text = ": line 1: the tape has format 2.0, but this build reads formats 1.x\n";
    let tape = tape(&two()).replace("\"version\":\"1.0\"", "\"version\":\"2.0\"");
    for tape in [tape.clone().into_bytes(), gzip(&tape)] {
        let end = replay(tape).run(lines(&[call(1, "a", 1)]).as_bytes()).exits(2);
        end.complains(" cannot be read").complains(output_text).client_got(b"");
    }
}

#[test]
fn every_command_that_reads_a_tape_refuses_another_major_version_with_both_versions() {
    let folder = tempfile::tempdir().unwrap();
    let text = tape(&two()).replace("\"version\":\"1.0\"", "\"version\":\"2.0\"");
    fs::write(folder.path().join("t.jsonl"), &text).unwrap();
    for arguments in [
        &["show", "t.jsonl"][..],
        &["show", "--follow", "t.jsonl"],
        &["stats", "t.jsonl"],
        &["redact", "t.jsonl", "-o", "new.jsonl", "--redact", "secrets"],
        &["redact", "t.jsonl", "--in-place", "--redact", "secrets"],
        &["convert", "-r", "t.jsonl", "-o", "new.jsonl", "--to", "overwatch"],
        &["convert", "-r", "t.jsonl", "-o", "new.yaml"],
        &["policy", "generate", "t.jsonl"],
    ] {
        let mut command = tapegate();
        let done = command.args(arguments).current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{arguments:?}: {stderr}");
        let message = "the tape has format 2.0, but this build reads formats 1.x\n";
        assert!(stderr.ends_with(message), "{arguments:?}: {stderr}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("t.jsonl")).unwrap(), text);
}

#[test]
fn ec_rec_010_a_tape_without_a_list_of_tools_plays_the_calls_it_has() {
    for mode in MODES {
        let live = [call(1, "a", 1), call(2, "b", 2), ask(3, "tools/list")];
        let end = replay(tape(&two())).flags(&["--match-mode", mode]);
        let end = end.run(lines(&live).as_bytes()).exits(6);
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let answers = lines(&[answer(1, "one"), answer(2, "two")]);
        assert!(got.starts_with(&(answers + &refusal(3))), "{got}");
    }
}

#[test]
fn ec_rec_011_a_tape_without_a_footer_is_played_and_its_lack_is_told() {
    let whole = HEADER.to_owned() + "\n" + &messages(&two());
    let live = lines(&[call(1, "a", 1), call(2, "b", 2)]);
    let got = lines(&[answer(1, "one"), answer(2, "two")]);
    let end = replay(&whole).run(live.as_bytes()).exits(0).client_got(got.as_bytes());
    let output_text = ": there is no footer: the recording did not end normally\n";
    assert!(
        end.stderr.starts_with("tapegate: ") && end.stderr.contains(output_text),
        "{}",
        end.stderr
    );
    assert!(!end.stderr.contains("warning"), "it is no fault: {}", end.stderr);
    let end = replay(&whole).flags(&["-q"]).run(live.as_bytes()).exits(0);
    assert_eq!(end.stderr, "");
}

#[test]
fn ec_rec_012_of_two_requests_that_come_as_near_the_first_is_taken_and_it_is_said() {
    let with = |id: u32, x: &str| {
        let params = format!(r#"{{"name":"t","arguments":{{"a":1,"b":2,"c":3,"d":4,"x":"{x}"}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    };
    let pair = |id, x: &str| format!("> {}\n< {}\n", with(id, x), answer(id, x));
    let script = pair(1, "one") + &pair(2, "two") + &pair(3, "three");
    let setup = || replay(tape(&script)).flags(&["--match-mode", "fuzzy"]);
    let live = lines(&[with(8, "neither")]);
    let end = setup().flags(&["-v"]).run(live.as_bytes()).exits(0);
    let end = end.client_got(lines(&[answer(8, "one")]).as_bytes());
    let end =
        end.complains("debug: matched request 1 with score 0.80; differing: params.arguments.x\n");
    end.complains("debug: 2 other requests match equally well; the first is used\n");
    // It is only printed with --verbose.
    let end = setup().run(live.as_bytes()).exits(0);
    assert!(!end.stderr.contains("debug"), "{}", end.stderr);
    // The first is the first one not used yet.
    let live = lines(&[with(8, "x"), with(9, "y"), with(10, "z"), with(11, "w")]);
    let end = setup().run(live.as_bytes()).exits(6);
    let got = lines(&[answer(8, "one"), answer(9, "two"), answer(10, "three")]);
    assert!(String::from_utf8_lossy(&end.stdout).starts_with(&(got + &refusal(11))));
}
