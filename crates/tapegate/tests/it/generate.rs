//! `tapegate policy generate`: a session is recorded, a policy is generated from it, and the same
//! session passes a shim with that policy, while others do not.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const SERVER: &str = "\
server: { name: files }
baseline:
  tools:
    - tool: { name: read, description: d, inputSchema: { type: object, required: [path], properties: { path: { type: string }, limit: { type: integer }, follow: { type: boolean } } } }
      response: { content: [ { type: text, text: hello } ] }
    - tool: { name: rm, description: d, inputSchema: { type: object, properties: { path: { type: string } } } }
      response: { content: [ { type: text, text: gone } ] }
  resources:
    - resource: { uri: \"file:///srv/a\", name: a }
      response: { contents: [ { uri: \"file:///srv/a\", text: abc } ] }
";

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":1,"method":"tools/list"}
"#;

const SESSION: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/a","limit":1}}}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/b","limit":9}}}
{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"read","arguments":{"limit":9,"path":"/srv/a"}}}
{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"file:///srv/a"}}
"#;

/// Calls that differ from those of the session in one respect each.
const OTHERS: [&str; 8] = [
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"rm","arguments":{"path":"/srv/a"}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/etc/passwd","limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":["/srv/a"],"limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/../etc/passwd","limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"path":"/srv/a","limit":1,"follow":true}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read","arguments":{"limit":1}}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"read"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"file:///srv/b"}}"#,
];

fn tapegate(folder: &Path, args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(args)
        .current_dir(folder)
        .env("TAPEGATE_HOME", folder.join("state"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

/// A folder with a server and a tape of a session with it.
fn recorded(session: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("server.yaml"), SERVER).unwrap();
    let binary = env!("CARGO_BIN_EXE_tapegate");
    let args = ["record", "-o", "s.jsonl", "--", binary, "serve", "server.yaml"];
    let run = tapegate(folder.path(), &args, &format!("{HELLO}{session}"));
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    folder
}

/// The output that a client gets through a shim with `p.yaml`.
fn governed(folder: &Path, session: &str) -> String {
    let binary = env!("CARGO_BIN_EXE_tapegate");
    let args = [
        "shim",
        "--config",
        "p.yaml",
        "--server-id",
        "files",
        "--",
        binary,
        "serve",
        "server.yaml",
    ];
    let run = tapegate(folder, &args, &format!("{HELLO}{session}"));
    String::from_utf8(run.stdout).unwrap()
}

#[test]
fn the_session_passes_and_whatever_differs_from_it_does_not() {
    let folder = recorded(SESSION);
    let folder = folder.path();
    for more in [&[][..], &["--cedar", "p.cedar"][..]] {
        let args = ["policy", "generate", "s.jsonl", "-o", "p.yaml", "--force"];
        let args = [&args[..], &["--server-id", "files"], more].concat();
        let made = tapegate(folder, &args, "");
        assert_eq!(
            String::from_utf8_lossy(&made.stdout),
            "p.yaml: written from 4 calls of 1 server\n"
        );
        let check = tapegate(folder, &["check", "p.yaml"], "");
        assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
        let got = governed(folder, SESSION);
        assert!(!got.contains("\"error\""), "{got}");
        assert_eq!(got.matches("hello").count(), 3, "{got}");
        assert!(got.contains("abc") && !got.contains("\"rm\""), "{got}");
        for other in OTHERS {
            let got = governed(folder, &format!("{other}\n"));
            let answer = got.lines().find(|line| line.contains("\"id\":2")).unwrap();
            assert!(answer.contains("\"code\":-320"), "{other} {answer}");
        }
    }
}

#[test]
fn what_a_policy_had_refused_is_not_let_through_by_the_next() {
    let folder = recorded("");
    let folder = folder.path();
    let policy = "\
schema: 1
governance:
  defaults: { action: forward }
  rules: [ { match: rm, action: deny } ]
recording: { folder: kept }
";
    fs::write(folder.join("p.yaml"), policy).unwrap();
    let read = SESSION.lines().next().unwrap();
    let both = format!("{}\n{}", OTHERS[0], read.replace("\"id\":2", "\"id\":3"));
    let got = governed(folder, &format!("{both}\n"));
    assert!(got.contains("-32014") && got.contains("hello"), "{got}");
    let made = tapegate(folder, &["policy", "generate", "kept"], "");
    let made = String::from_utf8(made.stdout).unwrap();
    assert!(made.contains("match: read") && !made.contains("rm"), "{made}");
    assert!(made.contains("- id: files"), "{made}");
}

#[test]
fn nothing_is_overwritten_and_nothing_is_made_of_nothing() {
    let folder = recorded("");
    let run = tapegate(folder.path(), &["policy", "generate", "s.jsonl"], "");
    assert_eq!(run.status.code(), Some(2));
    assert_eq!(
        String::from_utf8_lossy(&run.stderr),
        "error: there are no calls on these tapes\n\nhint: record a session that does the work\n"
    );
    let to = |output: &str| {
        let run = tapegate(folder.path(), &["policy", "generate", "s.jsonl", "-o", output], "");
        (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    fs::write(folder.path().join("old.yaml"), "schema: 1\n").unwrap();
    let (code, message) = to("old.yaml");
    assert_eq!(code, Some(3));
    assert!(message.starts_with("error: `old.yaml` exists already"), "{message}");
    let (code, message) = to("s.jsonl");
    assert_eq!(code, Some(64));
    assert!(message.starts_with("error: `s.jsonl` is a tape"), "{message}");
    let run = tapegate(folder.path(), &["policy", "generate", "server.yaml"], "");
    assert_eq!(run.status.code(), Some(2));
}
