//! `--allow-host` and `--allow-origin`: names that clients may use besides those of the machine.

use super::{answer, lines, piped, tape};
use crate::support::replay;

#[test]
fn names_that_are_allowed_are_answered_and_no_others() {
    let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let script = format!("> {hello}\n< {}\n", answer(1, 1));
    let allowed = ["--allow-host", "tapes", "--allow-origin", "https://app.test"];
    let setup = replay(tape(&script)).flags(&["--http", "127.0.0.1:0", "--on-exhausted", "last"]);
    let run = setup.flags(&allowed).flags(&["--match-mode", "by-request"]).start();
    let url = format!("http://127.0.0.1:{}/mcp", run.port());
    let status = |headers: &[&str]| {
        let mut args = vec!["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d"];
        args.extend([hello, "-H", "content-type: application/json"]);
        args.extend(["-H", "accept: application/json, text/event-stream"]);
        headers.iter().for_each(|header| args.extend(["-H", *header]));
        args.push(&url);
        String::from_utf8(piped("curl", &args, "")).unwrap()
    };
    assert_eq!(status(&["host: tapes:8080"]), "200");
    assert_eq!(status(&["host: tapes", "origin: https://app.test"]), "200");
    assert_eq!(status(&["host: other"]), "403");
    assert_eq!(status(&["host: tapes", "origin: https://other.test"]), "403");
    run.signal(rustix::process::Signal::TERM);
    run.end().exits(143);
}

#[test]
fn names_without_http_or_that_are_not_names_are_wrong_usage() {
    for flags in [
        &["--allow-host", "tapes"][..],
        &["--http", ":0", "--allow-host", "tapes:80"],
        &["--http", ":0", "--allow-host", ""],
        &["--http", ":0", "--allow-origin", "app.test"],
        &["--http", ":0", "--allow-origin", "https://app.test/path"],
    ] {
        let end = replay(tape("")).flags(flags).run(lines::<&str>(&[]).as_bytes());
        end.exits(64);
    }
}
