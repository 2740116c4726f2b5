//! Where a client may do a little more or less than was recorded, and what is reported.

use serde_json::Value;

use super::{MODES, answer, ask, call, lines, refusal, tape};
use crate::support::replay;

/// A session with a list and two calls.
fn session() -> String {
    let list = ask(1, "tools/list");
    let pairs = [
        format!("> {list}\n< {}\n", answer(1, "tools")),
        format!("> {}\n< {}\n", call(2, "a", 1), answer(2, "one")),
        format!("> {}\n< {}\n", call(3, "b", 1), answer(3, "two")),
    ];
    tape(&pairs.concat())
}

#[test]
fn one_list_more_is_a_warning_and_a_flag_makes_it_count() {
    let live = [ask(1, "tools/list"), call(2, "a", 1), ask(3, "tools/list"), call(4, "b", 1)];
    let live = lines(&live);
    for mode in MODES {
        let end = replay(session()).flags(&["--match-mode", mode]).run(live.as_bytes()).exits(0);
        let got = [answer(1, "tools"), answer(2, "one"), answer(3, "tools"), answer(4, "two")];
        let end = end.client_got(lines(&got).as_bytes());
        end.complains("warning: tools/list is requested more often than recorded")
            .complains("matched 4");
        let setup = replay(session()).flags(&["--match-mode", mode]);
        let path = setup.folder().join("r.json");
        let setup = setup.flags(&["--report", path.to_str().unwrap()]);
        let _folder = setup.run(live.as_bytes()).exits(0);
        let report: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((&report["ok"], &report["extra_reads"]), (&true.into(), &1.into()));
        let cases = report["cases"].as_array().unwrap();
        let extra: Vec<&Value> = cases.iter().filter(|case| case["rule"] == "extra-read").collect();
        assert_eq!(extra.len(), 1, "{report:#}");
        assert_eq!(
            (&extra[0]["outcome"], &extra[0]["request"]["id"]),
            (&"warning".into(), &3.into())
        );
        let strict = replay(session()).flags(&["--match-mode", mode, "--strict-reads"]);
        strict.run(live.as_bytes()).exits(6).client_got_some(&refusal(3));
    }
}

#[test]
fn one_list_less_is_a_warning_and_a_flag_makes_it_count() {
    let live = lines(&[call(2, "a", 1), call(4, "b", 1)]);
    for mode in MODES {
        let end = replay(session()).flags(&["--match-mode", mode]).run(live.as_bytes()).exits(0);
        let end = end.client_got(lines(&[answer(2, "one"), answer(4, "two")]).as_bytes());
        end.complains("unused 1");
    }
    let end = replay(session()).run(live.as_bytes()).exits(0);
    end.complains("warning: tools/list of #1 was not requested; skipped");
    let strict = replay(session()).flags(&["--strict-reads"]);
    strict.run(live.as_bytes()).exits(6).client_got_some(&refusal(2));
}

#[test]
fn what_matched_is_said_in_every_mode() {
    let live = lines(&[ask(1, "tools/list"), call(2, "a", 1), call(3, "b", 1)]);
    for mode in MODES {
        let end = replay(session()).flags(&["--match-mode", mode, "-v"]).run(live.as_bytes());
        let end = end.exits(0).complains("debug: tools/list is answered as #1");
        end.complains("debug: tools/call a is answered as #3, with the same params")
            .complains("debug: tools/call b is answered as #5");
        let end = replay(session()).flags(&["--match-mode", mode]).run(live.as_bytes());
        assert!(!end.stderr.contains("debug:"), "{}", end.stderr);
    }
}

#[test]
fn calls_cycle_in_order_without_a_new_session() {
    let hello = ask(0, "initialize");
    let pairs = format!("> {hello}\n< {}\n", answer(0, "hello"));
    let calls = [1, 2].map(|n| format!("> {}\n< {}\n", call(n, "a", n), answer(n, n)));
    let setup = replay(tape(&(pairs + &calls.concat()))).flags(&["--on-exhausted", "cycle"]);
    let live = [hello, call(1, "a", 1), call(2, "a", 2), call(3, "a", 1), call(4, "a", 2)];
    let got = [answer(0, "hello"), answer(1, 1), answer(2, 2), answer(3, 1), answer(4, 2)];
    setup.run(lines(&live).as_bytes()).exits(0).client_got(lines(&got).as_bytes());
}

#[test]
fn a_request_that_was_cancelled_on_the_tape_does_not_hang_a_client_that_waits_for_it() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let setup = replay(tape(&format!("> {}\n> {cancel}\n", call(1, "a", 1))));
    let report = setup.folder().join("r.json");
    let mut run = setup.flags(&["--report", report.to_str().unwrap()]).start();
    run.send(lines(&[call(7, "a", 1)]).as_bytes());
    let got = String::from_utf8(run.lines(1)).unwrap();
    assert!(got.starts_with(&refusal(7)) && got.contains("cancelled on the tape"), "{got}");
    let end = run.end_of_input().exits(6);
    let _end = end.complains("the recorded client cancelled it, and this one did not");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["cases"][0]["rule"], "not-cancelled", "{report:#}");
    assert_eq!((&report["ok"], &report["matched"]), (&false.into(), &0.into()), "{report:#}");
    assert_eq!(report["unmatched"], 1);
}
