//! The command itself: exit codes, formats and endings.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{DriftTape, tapegate, verify, words};
use crate::http_peers::WebServer;
use crate::peers;
use crate::support::wait_until;

#[test]
fn codes_tell_what_was_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let drift = DriftTape::record("");
    let code = |tape: &Path, flags: &[&str]| {
        let done = verify(tape, flags);
        (done.code, done.stderr)
    };
    let (usage, output_text) = code(&drift.tape, &[]);
    assert_eq!(
        (usage, output_text.lines().next()),
        (Some(64), Some("error: no MCP server to verify"))
    );
    let (usage, _) = code(&drift.tape, &["--ignore", "a..", "--upstream", "cat"]);
    assert_eq!(usage, Some(64));
    let (usage, _) = code(&drift.tape, &["--upstream-http", "nowhere"]);
    assert_eq!(usage, Some(64));
    let tape = drift.tape.display().to_string();
    let before = fs::read(&drift.tape).unwrap();
    let (usage, _) = code(&drift.tape, &["--report", &tape, "--upstream", "cat"]);
    assert_eq!((usage, fs::read(&drift.tape).unwrap() == before), (Some(64), true));
    let (missing, _) = code(&drift.tape, &["--upstream", "/no/such/server"]);
    assert_eq!(missing, Some(4));
    let (silent, output_text) = code(&drift.tape, &["--upstream", "false"]);
    let gone = "error: the MCP server ended (exit status: 1)\n";
    assert_eq!((silent, output_text.as_str()), (Some(4), gone));
    let (unreachable, output_text) =
        code(&drift.tape, &["-q", "--upstream-http", "http://127.0.0.1:9/mcp"]);
    assert_eq!(unreachable, Some(4), "{output_text}");
    assert!(output_text.contains("127.0.0.1:9"), "{output_text}");
    let broken = folder.path().join("broken.jsonl");
    fs::write(&broken, "{\"type\":\"mess\n{}\n").unwrap();
    assert_eq!(code(&broken, &["--upstream", "cat"]).0, Some(2));
    assert_eq!(code(Path::new("no-such.tape"), &["--upstream", "cat"]).0, Some(3));
}

#[test]
fn what_is_no_mcp_server_is_told_apart_from_one_that_has_changed() {
    let drift = DriftTape::record("");
    let page = "<html>\n<body>It works!</body>\n</html>\n";
    let server = WebServer::start(move |seen, out| {
        let status = match seen.head.contains("/page") {
            true => "200 OK",
            false => "404 Not Found",
        };
        let length = page.len();
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: text/html\r\ncontent-length: {length}");
        out.write_all(format!("{head}\r\n\r\n{page}").as_bytes()).is_ok()
    });
    let (nothing, html) = (server.url("/nothing"), server.url("/page"));
    let no_message = "the MCP server's reply has no answer: 200 OK with a body (text/html) \
                      that is not an MCP message";
    let greeting =
        "the MCP server ended (exit status: 0), and its output is not an MCP message: hello";
    let echo = "this is not an MCP server: it echoes every message, as `cat` does";
    for (flags, reason) in [
        (&["--upstream-http", &nothing][..], "the MCP server answered 404 Not Found"),
        (&["--upstream-http", &html], no_message),
        (&["--", "echo", "hello"], greeting),
        (&["--", "cat"], echo),
    ] {
        let done = verify(&drift.tape, &[&["-q"], flags].concat());
        assert_eq!((done.code, done.stderr), (Some(4), format!("error: {reason}\n")));
        assert_eq!(done.stdout, "");
    }
}

#[test]
fn what_never_stops_talking_and_says_no_message_is_no_mcp_server() {
    let drift = DriftTape::record("");
    let done = verify(&drift.tape, &["-q", "--timeout", "1s", "--", "yes", "hello\u{1b}[31m"]);
    assert_eq!(done.code, Some(4), "{}", done.stdout);
    assert!(done.stderr.contains("its output is not an MCP message: hello"), "{}", done.stderr);
    assert!(!done.stderr.contains('\u{1b}'), "{}", done.stderr);
}

#[test]
fn results_are_printed_and_written_in_every_format() {
    let drift = DriftTape::record("");
    let file = |name: &str| drift.folder.path().join(name).display().to_string();
    let (json, xml, sarif) = (file("r.json"), file("r.xml"), file("r.sarif"));
    let flags = ["--report", &json, "--report", &xml, "--report", &sarif, "--format", "json"];
    let done = drift.verify("description added", &flags);
    assert_eq!(done.code, Some(1));
    let printed: Value = serde_json::from_str(&done.stdout).unwrap();
    let written: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(printed, written);
    assert_eq!((&printed["changes"], &printed["tool_changes"]), (&2.into(), &2.into()));
    assert_eq!(printed["ok"], false);
    let rules: Vec<_> =
        printed["cases"].as_array().unwrap().iter().map(|case| case["rule"].as_str()).collect();
    assert_eq!(rules[..2], [Some("tool-changed"), Some("tool-added")]);
    assert_eq!(printed["cases"][0]["differences"][0]["path"], "description");
    let junit = fs::read_to_string(&xml).unwrap();
    assert!(
        junit.contains("<testsuite name=\"verify.tools\" tests=\"2\" failures=\"2\""),
        "{junit}"
    );
    let sarif: Value = serde_json::from_str(&fs::read_to_string(&sarif).unwrap()).unwrap();
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "tool-changed");
    for (format, start) in [("junit", "<?xml"), ("sarif", "{\n  \"$schema\"")] {
        let done = drift.verify("", &["--format", format]);
        assert!(done.code == Some(0) && done.stdout.starts_with(start), "{}", done.stdout);
    }
}

#[test]
fn colours_are_printed_for_whoever_insists() {
    let drift = DriftTape::record("");
    let server = peers::peer("drift-server.py");
    let mut command = tapegate();
    command.args(["verify", "-q", "-r"]).arg(&drift.tape).env("CLICOLOR_FORCE", "1");
    command.args(words(&["python3", &server, "version", "added"]));
    let done = command.output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.contains("\x1b[32m+ name: \"exfiltrate\""), "{text}");
}

#[test]
fn a_tape_that_was_redacted_is_compared_masked_and_secrets_are_not_sent() {
    let drift = DriftTape::record("");
    let masked = drift.folder.path().join("masked.jsonl");
    let rules = "result.content[*].text,result.serverInfo.version,params.arguments.path";
    let done = tapegate()
        .arg("redact")
        .arg(&drift.tape)
        .arg("-o")
        .arg(&masked)
        .args(["--redact", rules])
        .output()
        .unwrap();
    assert!(done.status.success());
    let server = format!("python3 {}", peers::peer("drift-server.py"));
    let run = |server: &str| verify(&masked, &["--calls", "all", "--upstream", server]);
    let done = run(&server);
    done.finds_nothing();
    let output_text = "not sent: 2 × tools/call: it holds secrets that are masked on the tape\n";
    assert!(done.stdout.contains(output_text), "{}", done.stdout);
    assert!(!drift.is_erased());
    let done = run(&format!("{server} version"));
    assert!(done.stdout.contains("the server's version was \"[REDACTED:path:"), "{}", done.stdout);
    assert!(!done.stdout.contains("2.0.0"), "{}", done.stdout);
}

#[test]
fn a_signal_ends_it_and_the_server_with_it() {
    let drift = DriftTape::record("");
    let mark = drift.folder.path().join("mark");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let mut command = tapegate();
        command.args(["verify", "--calls", "all", "-r"]).arg(&drift.tape);
        let server = peers::peer("drift-server.py");
        command.args(words(&["python3", &server, "hang", &mark.display().to_string()]));
        let mut run = ChildGuard(command.spawn().unwrap());
        wait_for(&mark);
        kill_process(Pid::from_child(&run.0), signal).unwrap();
        assert_eq!(run.0.wait().unwrap().code(), Some(code));
        peers::assert_none_left(&mark);
    }
}

/// A process that does not outlive its test.
struct ChildGuard(Child);

impl Drop for ChildGuard {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Waits until a server with `mark` on its command line is running.
fn wait_for(mark: &Path) {
    let mark = mark.display().to_string();
    let server = |line: &String| line.contains(&mark) && !line.contains("\0verify\0");
    wait_until("a server that runs", || {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let mut lines =
            processes.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
        lines.any(|line| server(&line))
    });
}

#[test]
fn a_tape_with_nothing_to_say_starts_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    fs::write(&tape, "{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"2026-01-01T00:00:00Z\",\"upstream\":\"u\",\"thoughtjack_version\":\"0\"}\n").unwrap();
    let done = verify(&tape, &["--upstream", "false"]);
    // A job that checked nothing must not be green.
    assert_eq!(done.code, Some(1));
    assert_eq!(done.last_line(), "nothing was compared, so nothing is known about the server");
    let report = folder.path().join("r.json");
    let done = verify(&tape, &["--report", report.to_str().unwrap(), "--upstream", "false"]);
    assert_eq!(done.code, Some(1));
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("\"ok\": false,\n  \"verdict\": \"untested\""), "{report}");
}

#[test]
fn a_server_that_only_asks_and_never_reads_is_given_up() {
    let drift = DriftTape::record("");
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    let done = verify(&drift.tape, &["--timeout", "1s", "--", "yes", question]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stdout.contains("the server stopped answering"), "{}", done.stdout);
}
