//! Real clients get the same from a converted tape as from the recorded server.
//!
//! A client is recorded with a server, the tape is converted, and the same client is recorded again
//! with the scenario. Both tapes must have the same answers: for each request, the n-th answer
//! equals the n-th answer. The client's transcript, step by step, is the same too.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::converted;
use crate::peers::{self, PeerProcess, PeerServer, PeerTransport};
use crate::sdk::{PY1, PY2, PY2_AUTO, PY2_MODERN, PY2_SERVERS, TS1, TS2, TS2_AUTO, TS2_MODERN};
use crate::sdk_replay::steps;

/// One test per line: client, server, and the link of the client to both.
macro_rules! same_from_the_scenario {
    ($($name:ident: $client:ident, $server:ident, $link:ident;)*) => {
        $(#[test]
        fn $name() {
            let folder = tempfile::tempdir().unwrap();
            let first = folder.path().join("first.jsonl");
            let upstream = PeerServer::$server.stdio(&first);
            same(folder.path(), PeerTransport::$link, &upstream, &|link, line| {
                Some($client.run(link, line, Path::new("/dev/null")))
            });
        })*
    };
}

same_from_the_scenario! {
    ts1_on_stdio: TS1, Everything, Stdio;
    ts2_on_stdio: TS2, Everything, Stdio;
    py1_on_stdio: PY1, Everything, Stdio;
    py2_on_stdio: PY2, Everything, Stdio;
    ts2_modern_on_stdio: TS2_MODERN, Modern, Stdio;
    ts2_auto_on_stdio: TS2_AUTO, Modern, Stdio;
    py2_modern_on_stdio: PY2_MODERN, Modern, Stdio;
    py2_auto_on_stdio: PY2_AUTO, Modern, Stdio;
    ts1_by_http: TS1, Everything, Http;
    py2_modern_by_http: PY2_MODERN, Modern, Http;
}

#[test]
fn mcp_server_git_on_stdio() {
    let folder = tempfile::tempdir().unwrap();
    let git = vec![peers::tools("py2/bin/mcp-server-git")];
    same(folder.path(), PeerTransport::Stdio, &git, &|link, line| {
        Some(PY2_SERVERS.run(link, line, Path::new("/dev/null")))
    });
}

#[test]
fn server_filesystem_with_texts_that_yaml_trips_over() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    fs::create_dir(&files).unwrap();
    let texts = [
        "plain\n",
        "yes",
        "null",
        "1e3",
        "0x1F",
        "~",
        "- a: [b, {c}]",
        "# no comment",
        "key: value",
        "  leading and trailing  ",
        "tab\tin\n\tfront\n",
        "${HOME} $$ $ ${args.path}",
        "quotes \" ' `",
        "\u{1b}[31mred\u{7}\u{0}",
        "NEL\u{85}LS\u{2028}PS\u{2029}BOM\u{feff}",
        "emoji 😀 family 👨‍👩‍👧",
        "dos\r\nlines\r\n",
        "\n\nblank\n\n",
        "---\n...\n",
        "back\\slash \\n",
        "",
    ];
    let mut requests = vec![json!(["tools/list", {}])];
    for (place, text) in texts.iter().enumerate() {
        let path = files.join(format!("{place}.txt")).display().to_string();
        requests.push(json!(["tools/call", {"name": "write_file", "arguments": {"path": path, "content": text}}]));
        requests
            .push(json!(["tools/call", {"name": "read_text_file", "arguments": {"path": path}}]));
    }
    let missing = files.join("none").display().to_string();
    requests
        .push(json!(["tools/call", {"name": "read_text_file", "arguments": {"path": missing}}]));
    requests.push(json!(["tools/call", {"name": "list_directory", "arguments": {"path": files}}]));
    let server = server("server-filesystem", &[files.display().to_string()]);
    same(folder.path(), PeerTransport::Stdio, &server, &calls(&requests));
}

#[test]
fn server_memory_that_remembers() {
    let folder = tempfile::tempdir().unwrap();
    let entity = |name: &str, note: &str| json!({"name": name, "entityType": "thing", "observations": [note]});
    let call = |name: &str, arguments: Value| json!(["tools/call", {"name": name, "arguments": arguments}]);
    let requests = [
        json!(["tools/list", {}]),
        call("read_graph", json!({})),
        call(
            "create_entities",
            json!({"entities": [entity("yes", "${HOME}"), entity("null", "a: b # c\n\tд")]}),
        ),
        call("read_graph", json!({})),
        call(
            "create_relations",
            json!({"relations": [{"from": "yes", "to": "null", "relationType": "1e3"}]}),
        ),
        call("search_nodes", json!({"query": "yes"})),
        call("delete_entities", json!({"entityNames": ["yes"]})),
        call("read_graph", json!({})),
        call("open_nodes", json!({"names": ["none"]})),
        json!(["no/such/method", {}]),
    ];
    let store = folder.path().join("memory.jsonl").display().to_string();
    let mut server = vec!["env".to_owned(), format!("MEMORY_FILE_PATH={store}")];
    server.extend(self::server("server-memory", &[]));
    same(folder.path(), PeerTransport::Stdio, &server, &calls(&requests));
}

/// Runs a client over a link to a command line or a URL, and returns its transcript, if it has one.
type ClientRunner = dyn Fn(PeerTransport, &[String]) -> Option<String>;

/// The command line of a server from npm.
fn server(package: &str, args: &[String]) -> Vec<String> {
    let script =
        peers::tools(&format!("npm/node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    [&[peers::node(), script][..], args].concat()
}

/// A client that makes these requests.
fn calls(requests: &[Value]) -> impl Fn(PeerTransport, &[String]) -> Option<String> + use<> {
    let requests = Value::from(requests.to_vec()).to_string();
    move |_, line| {
        let mut command = peers::bounded("600");
        command.arg(peers::node()).arg(peers::peer("calls.mjs")).arg(&requests).args(line);
        peers::transcript(command);
        None
    }
}

/// Records `client` with a server and with the scenario made from it; both must give the same.
#[track_caller]
fn same(folder: &Path, link: PeerTransport, upstream: &[String], client: &ClientRunner) {
    let (first, second) = (folder.join("first.jsonl"), folder.join("second.jsonl"));
    let live = record(link, &first, upstream, client);
    converted(folder, &["-r", "first.jsonl", "-o", "s.yaml"]);
    let scenario = folder.join("s.yaml").display().to_string();
    let serve = [peers::tapegate().to_owned(), "serve".to_owned(), scenario];
    let served = record(link, &second, &serve, client);
    peers::assert_none_left(folder);
    assert_same(&first, &second);
    if let (Some(live), Some(served)) = (live, served) {
        peers::assert_same(&told_apart(link, &live), &told_apart(link, &served));
    }
    every_other_way(folder, &fs::read(&first).unwrap());
}

/// The client's transcript. Concurrent calls over HTTP arrive in any order, and a scenario answers
/// the same tool in order, so which call gets which answer is random.
fn told_apart(link: PeerTransport, transcript: &str) -> String {
    let steps = steps(transcript);
    if link != PeerTransport::Http {
        return steps;
    }
    let mut steps: Value = serde_json::from_str(&steps).expect("steps are JSON");
    for step in steps.as_array_mut().into_iter().flatten() {
        if step["step"].as_str().is_some_and(|name| name.ends_with("at once"))
            && let Some(answers) = step["result"].as_array_mut()
        {
            answers.sort_by_key(Value::to_string);
        }
    }
    format!("{steps:#}")
}

/// Tapes of real servers convert to every style, and to the other dialect and back.
#[track_caller]
fn every_other_way(folder: &Path, tape: &[u8]) {
    for flags in [
        &["--style", "phased"][..],
        &["--match-arguments", "--style", "phased"],
        &["--strict-001"],
        &["--strict-001", "--style", "phased"],
    ] {
        let args = [&["-r", "first.jsonl", "-o", "other.yaml", "--force"], flags].concat();
        converted(folder, &args);
    }
    converted(folder, &["-r", "first.jsonl", "-o", "there.jsonl", "--to", "overwatch"]);
    converted(folder, &["-r", "there.jsonl", "-o", "back.jsonl", "--to", "thoughtjack"]);
    assert!(fs::read(folder.join("back.jsonl")).unwrap() == tape, "the tape has changed");
}

fn record(
    link: PeerTransport,
    tape: &Path,
    upstream: &[String],
    client: &ClientRunner,
) -> Option<String> {
    let mut line: Vec<String> = ["record", "--force", "-o"].map(str::to_owned).into();
    line.push(tape.display().to_string());
    if link == PeerTransport::Http {
        line.extend(["--http", "127.0.0.1:0"].map(str::to_owned));
    }
    line.push("--".to_owned());
    line.extend_from_slice(upstream);
    let seen = match link {
        PeerTransport::Http => {
            let mut command = Command::new(peers::tapegate());
            command.args(&line);
            let proxy = PeerProcess::start(command);
            let seen = client(link, std::slice::from_ref(&proxy.url));
            proxy.stop();
            seen
        }
        _ => {
            line.insert(0, peers::tapegate().to_owned());
            client(link, &line)
        }
    };
    peers::assert_valid(tape);
    seen
}

/// Each request, with its answers in order.
type RequestAnswers = BTreeMap<String, Vec<Value>>;

/// Members that a server adds for newer clients.
const OWN: [&str; 3] = ["resultType", "ttlMs", "cacheScope"];
/// Requests whose answers depend on timing or on other clients.
const CHANCE: [&str; 6] =
    ["ping", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "subscriptions/listen"];

fn answers(tape: &Path) -> RequestAnswers {
    let text = fs::read_to_string(tape).unwrap();
    let mut open: Vec<(String, Value, String, usize)> = Vec::new();
    let mut answers = RequestAnswers::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (msg, session) = (&line["msg"], line["session"].to_string());
        if msg.is_null() {
            continue;
        }
        let client = line["dir"] == "c2s";
        if client && msg.get("id").is_some() && msg.get("method").is_some() {
            let method = msg["method"].as_str().unwrap();
            let name = msg["params"].get("name").or(msg["params"].get("uri"));
            let name = name.and_then(Value::as_str).unwrap_or_default();
            let key = format!("{method} {name}");
            let given = answers.entry(key.clone()).or_default();
            given.push(Value::Null);
            open.push((session, msg["id"].clone(), key, given.len() - 1));
        } else if !client && msg.get("method").is_none() {
            let is_it =
                |one: &(String, Value, String, usize)| one.0 == session && one.1 == msg["id"];
            let Some(at) = open.iter().position(is_it) else { continue };
            let (_, _, key, place) = open.remove(at);
            answers.get_mut(&key).unwrap()[place] = outcome(msg);
        }
    }
    answers.retain(|key, _| !CHANCE.contains(&key.split(' ').next().unwrap()));
    answers
}

fn outcome(msg: &Value) -> Value {
    let mut outcome = json!({"result": msg["result"], "error": msg["error"]});
    if let Some(result) = outcome["result"].as_object_mut() {
        result.retain(|key, _| !OWN.contains(&key.as_str()));
        if let Some(meta) = result.get_mut("_meta").and_then(Value::as_object_mut) {
            meta.remove("io.modelcontextprotocol/serverInfo");
        }
        if result.get("_meta").is_some_and(|meta| *meta == json!({})) {
            result.remove("_meta");
        }
        // How a server remembers its requests is its own business.
        result.remove("requestState");
    }
    outcome
}

#[track_caller]
fn assert_same(first: &Path, second: &Path) {
    let (first, second) = (answers(first), answers(second));
    let mut wrong = Vec::new();
    let none = Vec::new();
    for (key, expected) in &first {
        let given = second.get(key).unwrap_or(&none);
        for (n, expected) in expected.iter().enumerate() {
            let given = given.get(n).unwrap_or(&Value::Null);
            if given != expected {
                wrong.push(format!(
                    "{key} #{}\n  first:  {expected:.1500}\n  second: {given:.1500}",
                    n + 1
                ));
            }
        }
    }
    assert!(first.len() > 2, "{:?}", first.keys());
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
