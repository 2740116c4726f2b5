//! Real servers, and tapes recorded with real clients: no change is reported.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::{VerifyResult, verify, words};
use crate::peers::{self, PeerClient, PeerProcess, PeerServer, PeerTransport};

const TS1: PeerClient = PeerClient { python: None, script: &["ts1.mjs"] };
const TS2_AUTO: PeerClient = PeerClient { python: None, script: &["ts2.mjs", "auto"] };
const TS2_MODERN: PeerClient = PeerClient { python: None, script: &["ts2.mjs", "modern"] };
const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["py1.py"] };
const PY2_MODERN: PeerClient = PeerClient { python: Some("py2"), script: &["py2.py", "modern"] };
const PY2_SERVERS: PeerClient = PeerClient { python: Some("py2"), script: &["py2.py", "servers"] };

/// Parts of server-everything's answers and notifications that vary: times, session names, its
/// environment, and random levels.
const VOLATILE: &str = "result.content[*].text,..blob,result.contents[*].text,\
                        result.messages[*].content.resource.text,params.level,params.data,..statusMessage,..status";

/// Records a session of `client` with the server that `upstream` names.
fn recorded(client: PeerClient, tape: &Path, upstream: &[String]) {
    let mut line = vec![
        peers::tapegate().to_owned(),
        "record".to_owned(),
        "--force".to_owned(),
        "-o".to_owned(),
    ];
    line.push(tape.display().to_string());
    line.extend_from_slice(upstream);
    client.run(PeerTransport::Stdio, &line, Path::new("/dev/null"));
}

/// The words that name a server on a command line, and the server if it must be kept running.
fn upstream(
    server: PeerServer,
    link: PeerTransport,
    mark: &Path,
) -> (Vec<String>, Option<PeerProcess>) {
    match link {
        PeerTransport::Stdio => {
            let command = server.stdio(mark);
            (std::iter::once("--".to_owned()).chain(command).collect(), None)
        }
        _ => {
            let running = server.listen(link);
            (vec!["--upstream-http".to_owned(), running.url.clone()], Some(running))
        }
    }
}

/// Records a session and verifies it against a fresh server of the same kind.
fn verified(
    client: PeerClient,
    server: PeerServer,
    link: PeerTransport,
    flags: &[&str],
) -> VerifyResult {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let (server_args, running) = upstream(server, link, &tape);
    recorded(client, &tape, &server_args);
    drop(running);
    let (server_args, _running) = upstream(server, link, &tape);
    let flags = flags.iter().map(|flag| (*flag).to_owned()).chain(server_args);
    let done = verify(&tape, &flags.collect::<Vec<_>>());
    peers::assert_none_left(&tape);
    done
}

/// One test per line: client, server, link, and flags.
macro_rules! nothing_has_changed {
    ($($name:ident: $client:ident, $server:ident, $link:ident, $flags:expr;)*) => {
        $(#[test]
        fn $name() {
            verified($client, PeerServer::$server, PeerTransport::$link, &$flags).finds_nothing();
        })*
    };
}

nothing_has_changed! {
    everything_on_stdio_by_its_lists: TS1, Everything, Stdio, ["--calls", "list"];
    everything_on_stdio_by_every_call: TS1, Everything, Stdio, ["--calls", "all", "--ignore", VOLATILE];
    everything_on_stdio_by_shapes: PY1, Everything, Stdio, ["--calls", "all", "--schema-only"];
    everything_by_http_by_its_lists: TS1, Everything, Http, ["--calls", "list"];
    everything_by_http_by_every_call: TS1, Everything, Http, ["--calls", "all", "--ignore", VOLATILE];
    everything_by_sse_by_shapes: TS1, Everything, Sse, ["--calls", "all", "--schema-only"];
    a_modern_server_on_stdio: TS2_MODERN, Modern, Stdio, ["--calls", "all"];
    a_modern_server_by_http: TS2_MODERN, Modern, Http, ["--calls", "all"];
    a_modern_server_that_was_probed: TS2_AUTO, Modern, Stdio, ["--calls", "read-only"];
    a_modern_server_of_a_python_client: PY2_MODERN, Modern, Stdio, ["--calls", "all"];
}

/// Verifies a tape that `record` makes of `requests` to a server on stdio.
fn called(
    requests: &serde_json::Value,
    server: &[String],
    between: impl FnOnce(),
    flags: &[&str],
) -> VerifyResult {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let server: Vec<&str> = server.iter().map(String::as_str).collect();
    let mut command = peers::bounded("600");
    command.arg(peers::node()).arg(peers::peer("calls.mjs")).arg(requests.to_string());
    command.arg(peers::tapegate()).args(["record", "-o"]).arg(&tape).args(words(&server));
    peers::transcript(command);
    between();
    let flags = flags.iter().map(|flag| (*flag).to_owned()).chain(words(&server));
    verify(&tape, &flags.collect::<Vec<_>>())
}

#[test]
fn a_file_server_is_told_from_itself_with_another_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    fs::write(&file, "one\n").unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let call = |name: &str, arguments: serde_json::Value| json!(["tools/call", {"name": name, "arguments": arguments}]);
    let requests = json!([
        ["tools/list", {}],
        call("read_text_file", json!({"path": path("a.txt")})),
        call("read_text_file", json!({"path": path("none.txt")})),
        call("list_directory", json!({"path": path("")})),
        call("search_files", json!({"path": path(""), "pattern": "*.txt"})),
        call("write_file", json!({"path": path("a.txt"), "content": "one\n"})),
    ]);
    let program = "npm/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";
    let server = [peers::node(), peers::tools(program), path("")];
    for calls in ["list", "read-only", "all"] {
        called(&requests, &server, || (), &["--calls", calls]).finds_nothing();
    }
    let edit = || fs::write(&file, "two\n").unwrap();
    let done = called(
        &requests,
        &server,
        edit,
        &["--calls", "read-only", "--ignore", "result.structuredContent"],
    );
    done.finds(
        "Answers\n  #7 tools/call read_text_file: the answer has changed\n\
         \x20     result.content[0].text:\n    -   one\n    +   two",
    );
}

#[test]
fn a_memory_server_that_begins_with_the_same_memories_has_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let memory = folder.path().join("memory.jsonl");
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["counts"]});
    let call = |name: &str, arguments: serde_json::Value| json!(["tools/call", {"name": name, "arguments": arguments}]);
    let requests = json!([
        ["tools/list", {}],
        call("create_entities", json!({"entities": [entity]})),
        call(
            "add_observations",
            json!({"observations": [{"entityName": "Ada", "contents": ["writes"]}]})
        ),
        call("read_graph", json!({})),
        call("search_nodes", json!({"query": "Ada"})),
    ]);
    let program =
        peers::tools("npm/node_modules/@modelcontextprotocol/server-memory/dist/index.js");
    let server = [
        "env".to_owned(),
        format!("MEMORY_FILE_PATH={}", memory.display()),
        peers::node(),
        program,
    ];
    let forget = || fs::remove_file(&memory).unwrap();
    called(&requests, &server, forget, &["--calls", "all"]).finds_nothing();
    // With its own memory it answers differently.
    fs::remove_file(&memory).unwrap();
    let done = called(&requests, &server, || (), &["--calls", "all"]);
    assert_eq!(done.code, Some(1), "{}", done.stdout);
}

#[test]
fn servers_written_in_python_have_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    for (program, flags) in [
        ("py2/bin/mcp-server-time", &["--calls", "all", "--ignore", "result.content[*].text"][..]),
        ("py2/bin/mcp-server-git", &["--calls", "all"]),
    ] {
        let tape = folder.path().join("t.jsonl");
        let server = words(&[&peers::tools(program)]);
        recorded(PY2_SERVERS, &tape, &server);
        let flags = flags.iter().map(|flag| (*flag).to_owned()).chain(server);
        verify(&tape, &flags.collect::<Vec<_>>()).finds_nothing();
    }
}

#[test]
fn a_tape_is_verified_against_its_own_replay() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let (server, _) = upstream(PeerServer::Modern, PeerTransport::Stdio, &tape);
    recorded(TS2_MODERN, &tape, &server);
    let name = tape.display().to_string();
    for mode in ["sequential", "by-request", "fuzzy"] {
        let player = [peers::tapegate(), "replay", "-q", "--match-mode", mode, "-r", &name];
        let flags = ["--calls".to_owned(), "all".to_owned()].into_iter().chain(words(&player));
        verify(&tape, &flags.collect::<Vec<_>>()).finds_nothing();
    }
}

#[test]
fn clients_without_sessions_whose_ids_repeat_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let mut command = Command::new(peers::tapegate());
    command.args(["record", "--http", "127.0.0.1:0", "-o"]).arg(&tape);
    command.args(words(
        &PeerServer::Modern.stdio(&tape).iter().map(String::as_str).collect::<Vec<_>>(),
    ));
    let proxy = PeerProcess::start(command);
    for _ in 0..3 {
        TS2_MODERN.run(
            PeerTransport::Http,
            std::slice::from_ref(&proxy.url),
            Path::new("/dev/null"),
        );
    }
    proxy.stop();
    let server = PeerServer::Modern.stdio(&tape);
    let flags =
        ["--calls".to_owned(), "read-only".to_owned(), "--".to_owned()].into_iter().chain(server);
    let done = verify(&tape, &flags.collect::<Vec<_>>());
    done.finds_nothing();
}
