//! What counts when requests are compared, and what does not.

use super::{MODES, answer, call, exactly, lines, refusal, tape};
use crate::support::replay;

fn write(id: u32, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)
}

const RECORDED: &str = r#"{"name":"w","arguments":{"path":"/a","n":10,"now":"2026-01-01","deep":[{"id":1,"x":"é"}]},"_meta":{"progressToken":1,"traceparent":"00-1"}}"#;

fn one() -> String {
    tape(&format!("> {}\n< {}\n", write(1, RECORDED), answer(1, "one")))
}

#[test]
fn spelling_and_meta_do_not_count() {
    for params in [
        r#"{"_meta":{},"arguments":{"deep":[{"x":"\u00e9","id":1.0}],"now":"2026-01-01","n":1e1,"path":"\/a"},"name":"w"}"#,
        r#" { "name" : "w" , "arguments" : { "n":10.0, "path":"\u002fa","deep":[ {"id":1,"x":"é"} ],"now":"2026-01-01"} } "#,
    ] {
        for mode in MODES {
            let end =
                replay(one()).flags(&exactly(mode)).run(lines(&[write(5, params)]).as_bytes());
            end.exits(0).client_got(lines(&[answer(5, "one")]).as_bytes());
        }
    }
}

#[test]
fn values_types_and_order_of_elements_count() {
    for (old, new) in [
        ("\"n\":10", "\"n\":11"),
        ("\"n\":10", "\"n\":\"10\""),
        ("\"path\":\"/a\"", "\"path\":\"/A\""),
        ("\"path\":\"/a\",", ""),
        ("\"n\":10", "\"n\":10,\"more\":null"),
        ("[{\"id\":1,\"x\":\"é\"}]", "[{\"id\":1,\"x\":\"é\"},{}]"),
        ("[{\"id\":1,\"x\":\"é\"}]", "{\"0\":{\"id\":1,\"x\":\"é\"}}"),
        ("\"é\"", "\"e\u{301}\""),
    ] {
        let params = RECORDED.replace(old, new);
        assert_ne!(params, RECORDED);
        let live = lines(&[write(5, &params)]);
        for mode in MODES {
            let end = replay(one()).flags(&exactly(mode)).run(live.as_bytes()).exits(6);
            end.client_got_some(&refusal(5));
        }
        // Without strictness, sequential mode only warns and names the place.
        let end = replay(one()).run(live.as_bytes()).exits(0);
        end.client_got(lines(&[answer(5, "one")]).as_bytes()).complains("params.arguments.");
    }
}

#[test]
fn what_is_ignored_does_not_count() {
    let params = RECORDED.replace("2026-01-01", "2027-07-07").replace("\"id\":1", "\"id\":2");
    let live = lines(&[write(5, &params)]);
    for ignored in [
        &["--ignore", "params.arguments.now", "--ignore", "params.arguments.deep[*].id"][..],
        &["--ignore", "..now,..id"],
        &["--ignore", "params.arguments['now'], $.params.arguments.deep[0].*"],
        &["--ignore", "params.arguments"],
    ] {
        for mode in MODES {
            let setup = replay(one()).flags(&exactly(mode)).flags(ignored);
            let end = setup.run(live.as_bytes()).exits(0);
            end.client_got(lines(&[answer(5, "one")]).as_bytes());
        }
    }
    let setup = replay(one()).flags(&["--match-mode", "by-request", "--ignore", "..now"]);
    setup.run(live.as_bytes()).exits(6).complains("+ params.arguments.deep[0]: ");
}

#[test]
fn another_call_is_never_answered_with_what_comes_next() {
    let pair = |n: u32, tool: &str| format!("> {}\n< {}\n", call(n, tool, n), answer(n, n));
    let script = pair(1, "a") + &pair(2, "b") + &pair(3, "a") + &pair(4, "c");
    for (live, mode) in [
        (call(9, "b", 2), "sequential"),
        (call(9, "a", 3), "sequential"),
        (call(9, "d", 1), "sequential"),
        (call(9, "a", 2), "by-request"),
        (call(9, "d", 1), "by-request"),
        (call(9, "d", 1), "fuzzy"),
    ] {
        let end = replay(tape(&script)).flags(&["--match-mode", mode]);
        let end = end.run(lines(&[&live]).as_bytes()).exits(6);
        assert!(String::from_utf8_lossy(&end.stdout).starts_with(&refusal(9)), "{mode} {live}");
    }
}

#[test]
fn pages_are_found_by_their_cursors() {
    let list = |id: u32, cursor: &str| {
        let params = match cursor {
            "" => String::new(),
            cursor => format!(r#","params":{{"cursor":"{cursor}"}}"#),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list"{params}}}"#)
    };
    let page = |id: u32, next: &str| {
        let next =
            if next.is_empty() { String::new() } else { format!(r#","nextCursor":"{next}""#) };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"t{id}"}}]{next}}}}}"#)
    };
    let script = [
        format!("> {}\n< {}", list(1, ""), page(1, "p2")),
        format!("> {}\n< {}", list(2, "p2"), page(2, "p3")),
        format!("> {}\n< {}", list(3, "p3"), page(3, "")),
    ];
    for mode in MODES {
        let live = lines(&[list(1, ""), list(2, "p2"), list(3, "p3")]);
        let end = replay(tape(&script.join("\n"))).flags(&["--match-mode", mode]);
        let got = lines(&[page(1, "p2"), page(2, "p3"), page(3, "")]);
        end.run(live.as_bytes()).exits(0).client_got(got.as_bytes());
    }
}

#[test]
fn the_score_that_is_shown_decides_and_the_hints_give_the_answer() {
    let add = |id: u32, c: &str, d: &str| {
        write(id, &format!(r#"{{"name":"add","arguments":{{"a":1,"b":2,"c":"{c}","d":"{d}"}}}}"#))
    };
    let tape = tape(&format!("> {}\n< {}\n", add(1, "x", "y"), answer(1, "one")));
    let live = lines(&[add(5, "w", "z")]);
    let hinted = |flags: &[&str], hint: &str| {
        let end = replay(&tape).flags(flags).run(live.as_bytes()).exits(6);
        let end = end.complains("nearest  #1, 50% equal ").complains(hint);
        end.stderr.clone()
    };
    let fuzzy = ["--match-mode", "fuzzy", "--fuzzy-threshold"];
    let with = |threshold: &'static str| [&fuzzy[..], &[threshold]].concat();
    let told = hinted(&with("0.55"), " or --fuzzy-threshold 0.5\n");
    assert!(told.contains("no recorded request is 55% equal\n"), "{told}");
    assert!(hinted(&with("0.505"), " ").contains("no recorded request is 50.5% equal\n"));
    hinted(&["--match-mode", "by-request"], " or --match-mode fuzzy --fuzzy-threshold 0.5\n");
    let end = replay(&tape).flags(&with("0.5")).run(live.as_bytes()).exits(0);
    end.client_got(lines(&[answer(5, "one")]).as_bytes());
}

#[test]
fn hints_name_fuzzy_only_where_it_can_match() {
    let pair = |n: u32, tool: &str| format!("> {}\n< {}\n", call(n, tool, n), answer(n, n));
    let tape = tape(&pair(1, "a"));
    for mode in ["by-request", "fuzzy"] {
        let told = |live: String, hint: &str| {
            let setup = replay(&tape).flags(&["--match-mode", mode]);
            setup.run(lines(&[live]).as_bytes()).exits(6).complains(hint);
        };
        // Not one value is equal, or it is another tool.
        told(call(9, "a", 2), "does not matter, pass --ignore params.arguments.n\n");
        told(call(9, "b", 1), "hint: record the session again, or pass ");
    }
    // Any two times are equal for fuzzy, but not the same request.
    let at =
        |id: u32, at: &str| write(id, &format!(r#"{{"name":"t","arguments":{{"at":"{at}"}}}}"#));
    let one = format!("> {}\n< {}\n", at(1, "2026-01-01T00:00:00Z"), answer(1, "one"));
    let setup = replay(super::tape(&one)).flags(&["--match-mode", "by-request"]);
    let end = setup.run(lines(&[at(2, "2027-01-01T00:00:00Z")]).as_bytes()).exits(6);
    end.complains("pass --ignore params.arguments.at or --match-mode fuzzy\n");
}
