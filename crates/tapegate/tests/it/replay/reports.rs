//! `--report`: the result of a replay, for machines.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::{answer, ask, call, lines, tape};
use crate::support::{SessionSetup, replay};

fn three() -> String {
    let pair = |n: u32| format!("> {}\n< {}\n", call(n, "t", n), answer(n, n));
    tape(&(1..=3).map(pair).collect::<String>())
}

/// A replay with reports in every format.
fn reporting() -> SessionSetup {
    let setup = replay(three());
    for name in ["r.json", "r.xml", "r.sarif"] {
        assert!(!setup.folder().join(name).exists());
    }
    let paths = ["r.json", "r.xml", "r.sarif"].map(|name| setup.folder().join(name));
    paths.iter().fold(setup, |setup, path| setup.flags(&["--report", path.to_str().unwrap()]))
}

fn json(folder: &std::path::Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("r.json")).unwrap()).unwrap()
}

fn counts(report: &Value) -> [u64; 5] {
    ["matched", "differing", "courtesies", "unmatched", "unused"]
        .map(|name| report[name].as_u64().unwrap())
}

#[test]
fn reports_of_every_sort_say_the_same() {
    let live = [call(1, "t", 1), ask(2, "ping"), call(3, "t", 9), call(4, r#"u\u001b<&\""#, 1)];
    let end = reporting().run(lines(&live).as_bytes()).exits(6);
    let folder = end.run.folder();
    let report = json(folder);
    assert_eq!(counts(&report), [2, 1, 1, 1, 1], "{report:#}");
    assert_eq!((&report["command"], &report["ok"]), (&"replay".into(), &false.into()));
    let failed = report["cases"].as_array().unwrap().iter().find(|it| it["outcome"] == "failed");
    let failed = failed.unwrap();
    assert_eq!(failed["rule"], "out-of-order", "{report:#}");
    assert_eq!(failed["request"]["id"], 4);
    assert_eq!(failed["target"], "u\u{1b}<&\"");

    let xml = fs::read_to_string(folder.join("r.xml")).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("type=\"out-of-order\""), "{xml}");
    assert!(!xml.contains('\u{1b}') && !xml.contains("u<"), "{xml}");

    let sarif: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("r.sarif")).unwrap()).unwrap();
    let rules: Vec<&Value> =
        sarif["runs"][0]["results"].as_array().unwrap().iter().map(|it| &it["ruleId"]).collect();
    assert_eq!(rules, ["out-of-order", "other-params", "unused"], "{sarif:#}");
}

#[test]
fn a_report_is_written_however_the_replay_ends() {
    // By the client.
    let live = lines(&[call(1, "t", 1), call(2, "t", 2), call(3, "t", 3)]);
    let end = reporting().run(live.as_bytes()).exits(0);
    let report = json(end.run.folder());
    assert_eq!((counts(&report), &report["ok"]), ([3, 0, 0, 0, 0], &true.into()));
    // By a signal.
    let mut run = reporting().start();
    run.send(lines(&[call(1, "t", 1)]).as_bytes());
    run.lines(1);
    run.signal(Signal::TERM);
    let end = run.end().exits(143);
    assert_eq!(counts(&json(end.run.folder())), [1, 0, 0, 0, 2]);
    // Over HTTP, without any client.
    let run = reporting().flags(&["--http", "127.0.0.1:0"]).start();
    run.port();
    run.signal(Signal::INT);
    let end = run.end().exits(130);
    let report = json(end.run.folder());
    assert_eq!((counts(&report), &report["sessions"]), ([0, 0, 0, 0, 3], &0.into()));
}

#[test]
fn what_was_passed_on_is_no_failure() {
    let live = lines(&[call(1, "t", 1), call(2, "u", 2)]);
    let end = reporting().behind(&["serve"]).run(live.as_bytes()).exits(0);
    let report = json(end.run.folder());
    assert_eq!((&report["passed_on"], &report["ok"]), (&1.into(), &true.into()), "{report:#}");
    let xml = fs::read_to_string(end.run.folder().join("r.xml")).unwrap();
    assert!(xml.contains("failures=\"0\""), "{xml}");
}

#[test]
fn a_server_behind_that_fails_is_a_failure_in_every_format() {
    let setup = reporting().flags(&["--on-unmatched", "passthrough", "--upstream", "/no/such"]);
    let live = lines(&[call(1, "t", 1), call(2, "u", 2)]);
    let end = setup.run(live.as_bytes()).exits(4);
    let report = json(end.run.folder());
    assert_eq!((&report["ok"], &report["server_failed"]), (&false.into(), &1.into()), "{report:#}");
    let cases = report["cases"].as_array().unwrap();
    let failed = cases.iter().find(|case| case["rule"] == "server-failed").unwrap();
    assert!(failed["message"].as_str().unwrap().starts_with("1 request not answered: "));
    let xml = fs::read_to_string(end.run.folder().join("r.xml")).unwrap();
    assert!(xml.contains("failures=\"1\"") && xml.contains("type=\"server-failed\""), "{xml}");
    // Over HTTP a signal ends it, but the exit code is that of the failure.
    let flags =
        ["--on-unmatched", "passthrough", "--upstream", "/no/such", "--http", "127.0.0.1:0"];
    let run = reporting().flags(&flags).start();
    let url = format!("http://127.0.0.1:{}/mcp", run.port());
    let post =
        ["-s", "-H", "content-type: application/json", "-H", "accept: application/json", "-d"];
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    super::piped("curl", &[&post[..], &[hello, &url]].concat(), "");
    run.signal(Signal::TERM);
    let end = run.end().exits(4);
    assert_eq!(json(end.run.folder())["ok"], false);
}

#[test]
fn a_report_takes_the_place_of_an_empty_file_and_one_that_cannot_be_written_is_an_error() {
    let setup = reporting();
    fs::write(setup.folder().join("r.json"), "\n").unwrap();
    let end = setup.run(lines(&[call(1, "t", 1)]).as_bytes()).exits(0);
    assert_eq!(counts(&json(end.run.folder())), [1, 0, 0, 0, 2]);
    let left: Vec<_> = fs::read_dir(end.run.folder()).unwrap().collect();
    assert_eq!(left.len(), 4, "nothing is left beside the reports: {left:?}");

    let setup = replay(three());
    let path = setup.folder().join("none/r.json");
    let setup = setup.flags(&["--report", path.to_str().unwrap()]);
    let end = setup.run(lines(&[call(1, "t", 1)]).as_bytes()).exits(0);
    assert!(end.run.folder().join("none/r.json").exists(), "its folder is created");

    let setup = replay(three());
    let path = setup.tape_path().join("r.json");
    let setup = setup.flags(&["--report", path.to_str().unwrap()]);
    let end = setup.run(lines(&[call(1, "t", 1)]).as_bytes()).exits(3);
    end.complains("error: cannot write the report `").client_got(b"");
}

#[test]
fn hostile_tapes_and_clients_make_no_hostile_reports() {
    let odd = r#"\u0000\u001b[2J\ud800</testcase>]]>&#0;\u202e"#;
    let script = format!("> {}\n< {}\n", call(1, odd, 1), answer(1, 1));
    let setup = replay(tape(&script));
    let folder = setup.folder().to_owned();
    let paths = ["r.json", "r.xml", "r.sarif"].map(|name| folder.join(name));
    let setup =
        paths.iter().fold(setup, |setup, path| setup.flags(&["--report", path.to_str().unwrap()]));
    let method = format!(r#"{{"jsonrpc":"2.0","id":"{odd}","method":"{odd}","params":[1e999]}}"#);
    let end = setup.run(lines(&[method]).as_bytes()).exits(6);
    assert_eq!(counts(&json(&folder)), [0, 0, 0, 1, 1]);
    let xml = fs::read_to_string(folder.join("r.xml")).unwrap();
    let raw = |letter: char| letter.is_control() && !"\t\n\r".contains(letter);
    assert!(!xml.contains(raw) && xml.matches("</testcase>").count() <= 2, "{xml}");
    assert!(!end.stderr.contains('\u{1b}'), "{}", end.stderr);
}

#[test]
fn a_fuzzy_match_with_other_params_is_reported_as_one() {
    let add = |id: u32, at: &str, d: &str| {
        let arguments = format!(r#"{{"a":1,"b":2,"at":"{at}","d":"{d}"}}"#);
        let params = format!(r#"{{"name":"add","arguments":{arguments}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
    };
    let (then, now) = ("2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    let tape = tape(&format!("> {}\n< {}\n", add(1, then, "y"), answer(1, "one")));
    let replayed = |live: String| {
        let setup = replay(&tape).flags(&["--match-mode", "fuzzy"]);
        let path = setup.folder().join("r.json");
        let end = setup.flags(&["--report", path.to_str().unwrap()]);
        let end = end.run(lines(&[live]).as_bytes()).exits(0);
        (json(end.run.folder()), end.stderr.clone())
    };
    let (report, stderr) = replayed(add(5, now, "z"));
    assert_eq!((counts(&report), &report["ok"]), ([1, 1, 0, 0, 0], &true.into()), "{report:#}");
    let case = report["cases"].as_array().unwrap().iter().find(|it| it["rule"] == "other-params");
    let case = case.unwrap();
    assert_eq!((&case["outcome"], &case["number"]), (&"warning".into(), &1.into()), "{report:#}");
    assert!(stderr.contains("warning: tools/call add is answered as #1 was, with other params"));
    assert!(stderr.contains("+ params.arguments.d: \"z\""), "{stderr}");
    // A time is as good as another.
    let (report, stderr) = replayed(add(5, now, "y"));
    assert_eq!(counts(&report), [1, 0, 0, 0, 0], "{report:#}");
    assert!(!stderr.contains("warning"), "{stderr}");
}

#[test]
fn a_request_without_a_recorded_answer_is_not_unused_if_it_was_made() {
    let pair = format!("> {}\n< {}\n", call(1, "t", 1), answer(1, 1));
    let tape = tape(&format!("{pair}> {}\n", call(2, "crash", 2)));
    for mode in ["sequential", "by-request", "fuzzy"] {
        let setup = replay(&tape).flags(&["--match-mode", mode]);
        let path = setup.folder().join("r.json");
        let setup = setup.flags(&["--report", path.to_str().unwrap()]);
        let live = lines(&[call(1, "t", 1), call(2, "crash", 2)]);
        let end = setup.run(live.as_bytes()).exits(6).complains("matched 1, unmatched 1, unused 0");
        let report = json(end.run.folder());
        let rules = report["cases"].as_array().unwrap().iter().filter_map(|it| it["rule"].as_str());
        assert_eq!(rules.collect::<Vec<_>>(), ["unanswered"], "{mode}: {report:#}");
    }
}
