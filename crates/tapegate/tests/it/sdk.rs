//! The official SDK clients see the same directly and through `record`, and through `shim` with a
//! policy that permits everything or none.
//!
//! Each test names a client, a server, and the links on both sides of the proxy. The direct run
//! uses the server's own link: a bridge must make it look as if the client used that link itself.
//! The legacy tests cover tools, resources, prompts, completion, logging, roots, sampling,
//! elicitation, progress, cancellation, tasks and errors against server-everything; the modern ones
//! discovery, input_required rounds, subscriptions, mirrored headers and cancellation.

use std::path::Path;
use std::process::Command;
use std::thread;

use crate::peers::{self, Intermediary, PeerClient, PeerProcess, PeerServer, PeerTransport};

pub(crate) const TS1: PeerClient = PeerClient { python: None, script: &["ts1.mjs"] };
pub(crate) const TS2: PeerClient = PeerClient { python: None, script: &["ts2.mjs", "legacy"] };
pub(crate) const TS2_AUTO: PeerClient = PeerClient { python: None, script: &["ts2.mjs", "auto"] };
pub(crate) const TS2_MODERN: PeerClient =
    PeerClient { python: None, script: &["ts2.mjs", "modern"] };
pub(crate) const PY1: PeerClient = PeerClient { python: Some("py1"), script: &["py1.py"] };
pub(crate) const PY2: PeerClient =
    PeerClient { python: Some("py2"), script: &["py2.py", "legacy"] };
pub(crate) const PY2_AUTO: PeerClient =
    PeerClient { python: Some("py2"), script: &["py2.py", "auto"] };
pub(crate) const PY2_MODERN: PeerClient =
    PeerClient { python: Some("py2"), script: &["py2.py", "modern"] };
pub(crate) const PY2_SERVERS: PeerClient =
    PeerClient { python: Some("py2"), script: &["py2.py", "servers"] };

/// Tests on each line: client, server, and the links from client to proxy and from proxy to server.
macro_rules! same_through_all {
    ($($name:ident: $client:ident, $server:ident, $near:ident => $far:ident;)*) => {
        $(mod $name {
            use super::*;

            #[test]
            fn through_record() {
                same(Intermediary::Record, $client, PeerServer::$server, PeerTransport::$near, PeerTransport::$far);
            }

            #[test]
            fn through_a_shim_that_lets_everything_pass() {
                same(Intermediary::Forwarding, $client, PeerServer::$server, PeerTransport::$near, PeerTransport::$far);
            }
        })*
    };
}

/// The same for a shim without a policy, which needs fewer tests: the gate decides less.
macro_rules! same_through_observing {
    ($($name:ident: $client:ident, $server:ident, $near:ident => $far:ident;)*) => {
        $(#[test]
        fn $name() {
            same(Intermediary::Observing, $client, PeerServer::$server, PeerTransport::$near, PeerTransport::$far);
        })*
    };
}

same_through_observing! {
    ts1_observed_over_stdio: TS1, Everything, Stdio => Stdio;
    ts2_modern_observed_over_stdio: TS2_MODERN, Modern, Stdio => Stdio;
    ts2_modern_observed_over_http: TS2_MODERN, Modern, Http => Http;
    py1_observed_over_http: PY1, Everything, Http => Http;
    py2_observed_from_http_to_stdio: PY2, Everything, Http => Stdio;
    py2_observed_from_stdio_to_sse: PY2, Everything, Stdio => Sse;
}

same_through_all! {
    ts1_over_stdio: TS1, Everything, Stdio => Stdio;
    ts1_over_http: TS1, Everything, Http => Http;
    ts1_over_sse: TS1, Everything, Sse => Sse;
    ts1_from_stdio_to_http: TS1, Everything, Stdio => Http;
    ts1_from_stdio_to_sse: TS1, Everything, Stdio => Sse;
    ts1_from_http_to_stdio: TS1, Everything, Http => Stdio;
    ts1_from_sse_to_stdio: TS1, Everything, Sse => Stdio;

    ts2_over_stdio: TS2, Everything, Stdio => Stdio;
    ts2_over_http: TS2, Everything, Http => Http;
    ts2_over_sse: TS2, Everything, Sse => Sse;
    ts2_from_stdio_to_http: TS2, Everything, Stdio => Http;
    ts2_from_stdio_to_sse: TS2, Everything, Stdio => Sse;
    ts2_from_http_to_stdio: TS2, Everything, Http => Stdio;
    ts2_from_sse_to_stdio: TS2, Everything, Sse => Stdio;

    py1_over_stdio: PY1, Everything, Stdio => Stdio;
    py1_over_http: PY1, Everything, Http => Http;
    py1_over_sse: PY1, Everything, Sse => Sse;
    py1_from_stdio_to_http: PY1, Everything, Stdio => Http;
    py1_from_stdio_to_sse: PY1, Everything, Stdio => Sse;
    py1_from_http_to_stdio: PY1, Everything, Http => Stdio;
    py1_from_sse_to_stdio: PY1, Everything, Sse => Stdio;

    py2_over_stdio: PY2, Everything, Stdio => Stdio;
    py2_over_http: PY2, Everything, Http => Http;
    py2_over_sse: PY2, Everything, Sse => Sse;
    py2_from_stdio_to_http: PY2, Everything, Stdio => Http;
    py2_from_stdio_to_sse: PY2, Everything, Stdio => Sse;
    py2_from_http_to_stdio: PY2, Everything, Http => Stdio;
    py2_from_sse_to_stdio: PY2, Everything, Sse => Stdio;

    ts2_modern_over_stdio: TS2_MODERN, Modern, Stdio => Stdio;
    ts2_modern_over_http: TS2_MODERN, Modern, Http => Http;
    ts2_modern_from_stdio_to_http: TS2_MODERN, Modern, Stdio => Http;
    ts2_modern_from_http_to_stdio: TS2_MODERN, Modern, Http => Stdio;
    ts2_auto_over_stdio: TS2_AUTO, Modern, Stdio => Stdio;
    ts2_auto_over_http: TS2_AUTO, Modern, Http => Http;
    ts2_auto_from_stdio_to_http: TS2_AUTO, Modern, Stdio => Http;

    py2_modern_over_stdio: PY2_MODERN, Modern, Stdio => Stdio;
    py2_modern_over_http: PY2_MODERN, Modern, Http => Http;
    py2_modern_from_stdio_to_http: PY2_MODERN, Modern, Stdio => Http;
    py2_modern_from_http_to_stdio: PY2_MODERN, Modern, Http => Stdio;
    py2_auto_over_stdio: PY2_AUTO, Modern, Stdio => Stdio;
    py2_auto_over_http: PY2_AUTO, Modern, Http => Http;
    py2_auto_from_stdio_to_http: PY2_AUTO, Modern, Stdio => Http;
    py2_auto_from_http_to_stdio: PY2_AUTO, Modern, Http => Stdio;
}

#[test]
fn the_overwatch_dialect_has_the_same_messages() {
    let server = |mark: &Path| PeerServer::Everything.stdio(mark);
    same_on_stdio(TS2, &["tape", "--tape"], server);
}

#[test]
fn mcp_server_time_answers_the_same() {
    let server = |_: &Path| {
        vec![
            peers::tools("py2/bin/mcp-server-time"),
            "--local-timezone".to_owned(),
            "UTC".to_owned(),
        ]
    };
    same_on_stdio(PY2_SERVERS, &["record", "-o"], server);
}

#[test]
fn mcp_server_git_answers_the_same() {
    same_on_stdio(PY2_SERVERS, &["record", "-o"], |_| vec![peers::tools("py2/bin/mcp-server-git")]);
}

/// `command` is the subcommand up to the name of the tape.
fn same_on_stdio(client: PeerClient, command: &[&str], server: impl Fn(&Path) -> Vec<String>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (tape, wire) = (folder.path().join("tape.jsonl"), folder.path().join("wire.jsonl"));
    let direct = client.run(PeerTransport::Stdio, &server(&wire), Path::new("/dev/null"));
    let mut line = vec![peers::tapegate().to_owned()];
    line.extend(command.iter().map(|&word| word.to_owned()));
    line.extend([tape.display().to_string(), "--".to_owned()]);
    line.extend(server(&tape));
    let proxied = client.run(PeerTransport::Stdio, &line, &wire);
    peers::assert_none_left(&tape);
    peers::assert_same(&direct, &proxied);
    peers::assert_tape_has(&tape, &wire);
}

fn same(
    between: Intermediary,
    client: PeerClient,
    server: PeerServer,
    near: PeerTransport,
    far: PeerTransport,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (mark, wire, elsewhere) = (
        folder.path().join("tape.jsonl"),
        folder.path().join("wire.jsonl"),
        folder.path().join("direct.jsonl"),
    );
    // In parallel: most of a run is waiting for tasks and timers of the server.
    let direct = thread::spawn(move || direct(client, server, far, &elsewhere));

    let upstream = (far != PeerTransport::Stdio).then(|| server.listen(far));
    let mut line = between.command(folder.path());
    if near != PeerTransport::Stdio {
        line.extend(["--http".to_owned(), "127.0.0.1:0".to_owned()]);
    }
    match &upstream {
        Some(running) => line.extend(["--upstream-http".to_owned(), running.url.clone()]),
        None => line.extend(std::iter::once("--".to_owned()).chain(server.stdio(&mark))),
    }
    let proxied = if near == PeerTransport::Stdio {
        client.run(PeerTransport::Stdio, &line, &wire)
    } else {
        let mut command = Command::new(&line[0]);
        command.args(&line[1..]);
        let proxy = PeerProcess::start(command);
        // `/mcp` stands for the upstream's own path; a client of the old transport asks for `/sse`.
        let url = if near == PeerTransport::Sse {
            proxy.url.replace("/mcp", "/sse")
        } else {
            proxy.url.clone()
        };
        let proxied = client.run(near, &[url], &wire);
        proxy.stop();
        proxied
    };
    peers::assert_none_left(&mark);
    peers::assert_same(&direct.join().expect("the direct run succeeds"), &proxied);
    peers::assert_tape_has(&between.tape(folder.path()), &wire);
}

fn direct(client: PeerClient, server: PeerServer, link: PeerTransport, wire: &Path) -> String {
    if link == PeerTransport::Stdio {
        return client.run(link, &server.stdio(wire), wire);
    }
    let running = server.listen(link);
    client.run(link, std::slice::from_ref(&running.url), wire)
}
