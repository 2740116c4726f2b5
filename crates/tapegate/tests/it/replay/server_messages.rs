//! Unsolicited messages of the server, at the place where they were recorded.

use super::{MODES, answer, call, lines, tape};
use crate::support::replay;

fn hello(id: &str, capabilities: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities}}}}}"#
    )
}

fn note(data: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"data":"{data}"}}}}"#)
}

fn sample(id: &str, text: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage","params":{{"text":"{text}"}}}}"#
    )
}

fn sampled(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"role":"assistant"}}}}"#)
}

/// A call in which the server logs, sends a request, logs again, answers, and logs once more.
fn asking() -> String {
    let script = [
        format!("> {}", hello("0", r#"{"sampling":{}}"#)),
        format!("< {}", answer(0, "hello")),
        format!("> {}", call(1, "a", 1)),
        format!("< {}", note("before")),
        format!("< {}", sample("9", "what?")),
        format!("> {}", sampled("9")),
        format!("< {}", note("between")),
        format!("< {}", answer(1, "one")),
        format!("< {}", note("after")),
    ];
    tape(&script.join("\n"))
}

#[test]
fn a_scene_is_played_in_its_order_and_waits_for_the_client() {
    for mode in MODES {
        let mut run = replay(asking()).flags(&["--match-mode", mode]).start();
        run.send(lines(&[hello("\"i\"", r#"{"sampling":{}}"#), call(7, "a", 1)]).as_bytes());
        let got = run.lines(3);
        let first = lines(&[answer("\"i\"", "hello"), note("before"), sample("9", "what?")]);
        assert_eq!(String::from_utf8(got).unwrap(), first);
        // Whatever the reply is, the tape goes on.
        run.send(b"{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-1,\"message\":\"no\"}}\n");
        run.lines(6);
        let rest = lines(&[note("between"), answer(7, "one"), note("after")]);
        // But a reply that differs from the recorded one is a divergence.
        let end = run.end_of_input().exits(6).client_got((first + &rest).as_bytes());
        end.complains("sampling/createMessage of #5: the client answers with an error");
    }
}

#[test]
fn a_client_that_cannot_answer_is_not_asked_and_it_is_said_once() {
    let live = lines(&[hello("0", "{}"), call(7, "a", 1)]);
    let end = replay(asking()).run(live.as_bytes()).exits(0);
    let got =
        [answer(0, "hello"), note("before"), note("between"), answer(7, "one"), note("after")];
    let end = end.client_got(lines(&got).as_bytes());
    let output_text =
        "warning: sampling/createMessage of #5: the client does not support it; it is not sent\n";
    assert_eq!(end.stderr.matches(output_text).count(), 1, "{}", end.stderr);
}

#[test]
fn a_client_that_leaves_instead_of_answering_still_gets_the_rest() {
    let live = lines(&[hello("0", r#"{"sampling":{}}"#), call(7, "a", 1)]);
    let end = replay(asking()).run(live.as_bytes()).exits(0);
    let got = [
        answer(0, "hello"),
        note("before"),
        sample("9", "what?"),
        note("between"),
        answer(7, "one"),
        note("after"),
    ];
    end.client_got(lines(&got).as_bytes());
}

#[test]
fn what_the_server_says_of_its_own_accord_can_be_left_out() {
    let live = lines(&[hello("0", r#"{"sampling":{}}"#), call(7, "a", 1)]);
    let notes =
        [answer(0, "hello"), note("before"), note("between"), answer(7, "one"), note("after")];
    let none = [answer(0, "hello"), answer(7, "one")];
    for (word, got) in [("notifications", lines(&notes)), ("none", lines(&none))] {
        let end = replay(asking()).flags(&["--server-messages", word]).run(live.as_bytes());
        end.exits(0).client_got(got.as_bytes());
    }
}

#[test]
fn questions_asked_at_the_same_time_by_one_id_are_told_apart() {
    // The same scene twice, each with a request that has the id 9.
    let scene = |id: u32, text: &str| {
        let said = [
            format!("> {}", call(id, "a", id)),
            format!("< {}", sample("9", text)),
            format!("> {}", sampled("9")),
            format!("< {}", answer(id, text)),
        ];
        said.join("\n")
    };
    let script = [
        format!("> {}\n< {}", hello("0", r#"{"sampling":{}}"#), answer(0, "hello")),
        scene(1, "one"),
        scene(2, "two"),
    ];
    let mut run = replay(tape(&script.join("\n"))).flags(&["--match-mode", "by-request"]).start();
    let hello = hello("0", r#"{"sampling":{}}"#);
    run.send(lines(&[hello, call(5, "a", 1), call(6, "a", 2)]).as_bytes());
    let got = String::from_utf8(run.lines(3)).unwrap();
    let got: Vec<&str> = got.lines().collect();
    assert_eq!(got[1], sample("9", "one"));
    let other = got[2].split_once("\"id\":").unwrap().1.split_once(',').unwrap().0.to_owned();
    assert_eq!(got[2], sample(&other, "two"));
    assert_ne!(other, "9");
    run.send(lines(&[sampled(&other)]).as_bytes());
    run.gets(&answer(6, "two"));
    run.send(lines(&[sampled("9")]).as_bytes());
    run.gets(&answer(5, "one"));
    run.end_of_input().exits(0);
}

#[test]
fn progress_carries_the_live_token_and_is_left_out_without_one() {
    let asked = |id: u32, token: &str| {
        let meta = match token {
            "" => String::new(),
            token => format!(r#","_meta":{{"progressToken":{token}}}"#),
        };
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"a"{meta}}}}}"#
        )
    };
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    let script = [
        format!("> {}", asked(1, "\"t\"")),
        format!("< {}", progress("\"t\"")),
        format!("< {}", answer(1, "one")),
        format!("< {}", progress("\"t\"")),
    ];
    for (token, got) in [
        ("5", vec![progress("5"), answer(8, "one"), progress("5")]),
        ("\"\\u0074\"", vec![progress("\"\\u0074\""), answer(8, "one"), progress("\"\\u0074\"")]),
        ("", vec![answer(8, "one")]),
    ] {
        let live = lines(&[asked(8, token)]);
        let end = replay(tape(&script.join("\n"))).run(live.as_bytes()).exits(0);
        end.client_got(lines(&got).as_bytes());
    }
}

#[test]
fn what_came_before_everything_and_after_a_ping_is_not_lost() {
    let ping = |id: u32| super::ask(id, "ping");
    let script = [
        format!("< {}", note("first")),
        format!("> {}\n< {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}", ping(1)),
        format!("< {}", note("second")),
        format!("> {}\n< {}", call(2, "a", 1), answer(2, "one")),
        format!("> {}\n< {{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{{}}}}", ping(3)),
        format!("< {}", note("third")),
    ];
    let end = replay(tape(&script.join("\n"))).run(lines(&[call(5, "a", 1)]).as_bytes()).exits(0);
    let got = [note("first"), note("second"), answer(5, "one"), note("third")];
    end.client_got(lines(&got).as_bytes());
}

#[test]
fn another_revision_is_warned_about() {
    let live = hello("0", "{}").replace("2025-06-18", "2025-11-25");
    let end = replay(asking()).run(lines(&[live]).as_bytes()).exits(0);
    end.complains("warning: the client asks for 2025-11-25, but the tape has 2025-06-18\n");
}

#[test]
fn what_others_have_a_say_in_does_nothing_to_a_terminal() {
    let odd = r"\u001b[2J\u202e\nerror: \u0007";
    let recorded = hello("0", "{}").replace("2025-06-18", odd);
    let ask = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tasks/{odd}"}}"#);
    let script = format!("> {recorded}\n< {}\n< {ask}\n", answer(0, "hello"));
    let live = hello("0", "{}").replace("2025-06-18", &odd.repeat(1000));
    let reply = format!(r#"{{"jsonrpc":"2.0","id":"{odd}","result":{{}}}}"#);
    let call = call(1, odd, 1);
    let end = replay(tape(&script)).flags(&["-v"]).run(lines(&[live, reply, call]).as_bytes());
    let end = end.exits(6).complains(r"warning: the client asks for \u001b[2J\u202e");
    let end = end.complains(r"warning: tasks/\u001b[2J\u202e");
    let odd = |letter: char| letter.is_control() && letter != '\n' || letter == '\u{202e}';
    assert!(!end.stderr.contains(odd), "{}", end.stderr);
    assert!(end.stderr.len() < 8000, "{}", end.stderr);
}
