//! The client's replies to the server's requests: a reply that differs from the recorded one is
//! noticed and reported.

use std::fs;

use serde_json::Value;

use super::{MODES, answer, call, lines, tape};
use crate::support::{SessionSetup, replay};

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{},"elicitation":{},"roots":{}}}}"#;

/// A call in which the server sends this request, and the client's reply.
fn asking(method: &str, reply: &str) -> SessionSetup {
    let script = [
        format!("> {HELLO}\n< {}", answer(0, "hello")),
        format!("> {}", call(1, "a", 1)),
        format!(r#"< {{"jsonrpc":"2.0","id":9,"method":"{method}","params":{{}}}}"#),
        format!(r#"> {{"jsonrpc":"2.0","id":9,{reply}}}"#),
        format!("< {}", answer(1, "one")),
    ];
    let setup = replay(tape(&script.join("\n")));
    let report = setup.folder().join("r.json");
    setup.flags(&["--report", report.to_str().unwrap()])
}

/// Replies differently: the exit code, the output, and the report.
fn replied(setup: SessionSetup, reply: &str) -> (Option<i32>, String, Value) {
    let mut run = setup.start();
    run.send(lines(&[HELLO.to_owned(), call(1, "a", 1)]).as_bytes());
    run.lines(2);
    run.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":9,{reply}}}\n").as_bytes());
    run.lines(3);
    let end = run.end_of_input().client_got_some(&answer(1, "one"));
    let text = fs::read_to_string(end.run.folder().join("r.json")).unwrap();
    (end.status.code(), end.stderr.clone(), serde_json::from_str(&text).unwrap())
}

/// The rule, outcome and message of cases that did not pass.
fn cases(report: &Value) -> Vec<[String; 3]> {
    let cases = report["cases"].as_array().unwrap().iter();
    let odd = cases.filter(|case| case["outcome"] != "passed");
    odd.map(|case| ["rule", "outcome", "message"].map(|key| case[key].as_str().unwrap().to_owned()))
        .collect()
}

fn other(outcome: &str, message: &str) -> Vec<[String; 3]> {
    vec![["other-reply", outcome, &format!("{message}, to #4")].map(str::to_owned)]
}

const ACCEPT: &str = r#""result":{"action":"accept","content":{"n":1}}"#;
const DECLINE: &str = r#""result":{"action":"decline"}"#;
const ERROR: &str = r#""error":{"code":-1,"message":"no"}"#;

#[test]
fn the_recorded_answer_is_no_news_however_it_is_spelt() {
    let spelt = r#""result" : {"content":{ "n":1.0 },"_meta":{"x":1},"action":"\u0061ccept"}"#;
    for mode in MODES {
        let setup = asking("elicitation/create", ACCEPT).flags(&["--match-mode", mode]);
        let (code, stderr, report) = replied(setup, spelt);
        assert_eq!((code, &report["ok"]), (Some(0), &true.into()), "{stderr}\n{report:#}");
        assert_eq!((cases(&report), &report["changed_replies"]), (vec![], &0.into()));
    }
    let other_words = r#""error":{"code":-1,"message":"rather not"}"#;
    let (code, stderr, report) = replied(asking("elicitation/create", ERROR), other_words);
    assert_eq!((code, &report["ok"]), (Some(0), &true.into()), "{stderr}\n{report:#}");
}

#[test]
fn another_answer_of_the_user_is_a_divergence() {
    for mode in MODES {
        let setup = asking("elicitation/create", ACCEPT).flags(&["--match-mode", mode]);
        let (code, stderr, report) = replied(setup, DECLINE);
        assert_eq!((code, &report["ok"]), (Some(6), &false.into()), "{stderr}\n{report:#}");
        let said =
            "error: elicitation/create of #4: the client's answer differs from the recorded one";
        assert!(stderr.contains(said), "{stderr}");
        assert!(stderr.contains("\"accept\"") && stderr.contains("\"decline\""), "{stderr}");
        let expected = other("failed", "the client's answer differs from the recorded one");
        assert_eq!(cases(&report), expected, "{report:#}");
        assert_eq!(report["changed_replies"], 1);
    }
    let setup = asking("elicitation/create", ACCEPT).flags(&["--on-unmatched", "warn"]);
    let (code, stderr, report) = replied(setup, DECLINE);
    assert_eq!((code, &report["ok"]), (Some(0), &false.into()), "{stderr}");
}

#[test]
fn an_error_for_a_result_is_a_divergence_whatever_was_asked_for() {
    for method in ["sampling/createMessage", "elicitation/create", "roots/list"] {
        let (code, stderr, report) = replied(asking(method, ACCEPT), ERROR);
        assert_eq!((code, &report["ok"]), (Some(6), &false.into()), "{stderr}");
        let output_text = "the client answers with an error; a result was recorded";
        assert_eq!(cases(&report), other("failed", output_text));
        let (code, stderr, report) = replied(asking(method, ERROR), ACCEPT);
        assert_eq!((code, &report["ok"]), (Some(6), &false.into()), "{stderr}");
        let output_text = "the client answers with a result; an error was recorded";
        assert_eq!(cases(&report), other("failed", output_text));
    }
}

#[test]
fn what_a_model_says_and_which_roots_there_are_is_a_warning_unless_strict() {
    let asked = [
        ("sampling/createMessage", r#""result":{"role":"assistant","content":"a"}"#),
        ("roots/list", r#""result":{"roots":[{"uri":"file:///a"}]}"#),
    ];
    for (method, reply) in asked {
        let live = reply.replace("\"a\"", "\"b\"").replace("/a\"", "/b\"");
        let (code, stderr, report) = replied(asking(method, reply), &live);
        assert_eq!((code, &report["ok"]), (Some(0), &true.into()), "{stderr}");
        assert!(stderr.contains(&format!("warning: {method} of #4: the client")), "{stderr}");
        let output_text = "the client's answer differs from the recorded one";
        assert_eq!(cases(&report), other("warning", output_text));
        let strict = asking(method, reply).flags(&["--strict-replies"]);
        let (code, stderr, report) = replied(strict, &live);
        assert_eq!((code, &report["ok"]), (Some(6), &false.into()), "{stderr}");
        assert_eq!(cases(&report), other("failed", output_text));
    }
}

#[test]
fn a_client_that_cannot_answer_or_leaves_before_is_in_the_report() {
    let live = lines(&[HELLO.replace("\"elicitation\":{},", ""), call(1, "a", 1)]);
    let end = asking("elicitation/create", ACCEPT).run(live.as_bytes()).exits(0);
    let text = fs::read_to_string(end.run.folder().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    let output_text = "the client does not support it; it is not sent";
    assert_eq!(cases(&report), other("warning", output_text));
    let live = lines(&[HELLO.to_owned(), call(1, "a", 1)]);
    let end = asking("elicitation/create", ACCEPT).run(live.as_bytes()).exits(0);
    let text = fs::read_to_string(end.run.folder().join("r.json")).unwrap();
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(cases(&report), other("warning", "the client disconnects without answering"));
}
