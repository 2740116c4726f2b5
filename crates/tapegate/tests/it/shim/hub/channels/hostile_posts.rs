//! Strangers who reach the hub without a token: they decide nothing, and keep nobody waiting.

use std::fs;
use std::io::Write;
use std::net::TcpStream;

use super::super::super::setup::{answer, ask, call};
use super::{SECRET, event, policy, receiver, start_accepted, text, webhook};
use crate::http_peers::{self, WebServer};

/// As many as a browser or a scanner would never need.
const STRANGERS: usize = 40;

#[test]
fn links_are_for_post_and_for_one_channel() {
    let hooks = [receiver("200 OK"), receiver("200 OK")];
    let channels = [webhook("one", &hooks[0]), webhook("two", &hooks[1])].concat();
    let rules = policy("channels: [one]", &channels)
        .replace("approval:\n", "approval:\n  other: { channels: [two] }\n");
    let rules = rules.replace(
        "{ match: 'ask*', action: approve }",
        "{ match: 'ask*', action: approve, approval: default }",
    );
    let hub = start_accepted(&rules);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let asked = event(&hooks[0].wait(1)[0]);
    let url = text(&asked["approve_url"]);
    let path = url.strip_prefix(&hub.url).unwrap().to_owned();
    // What previews, scanners and prefetching browsers send.
    for (method, expected) in
        [("GET", 200), ("HEAD", 200), ("OPTIONS", 401), ("PUT", 401), ("DELETE", 401)]
    {
        let status = http_peers::ask(hub.port(), &format!("{method} {path}"), &[], "").status;
        assert_eq!(status, expected, "{method}");
    }
    // What a web page can have a browser send.
    let (hidden, ours) = ("origin: null", "sec-fetch-site: same-origin");
    for headers in [
        vec!["origin: https://evil.example.invalid"],
        vec!["sec-fetch-site: cross-site"],
        vec!["host: evil.example.invalid"],
        vec![hidden],
        vec![hidden, "sec-fetch-site: cross-site"],
        vec![hidden, ours, "sec-fetch-site: cross-site"],
        vec![hidden, hidden, ours],
        vec!["origin: https://evil.example.invalid", ours],
        vec![hidden, ours, "host: evil.example.invalid"],
    ] {
        let status = http_peers::ask(hub.port(), &format!("POST {path}"), &headers, "").status;
        assert_eq!(status, 403, "{headers:?}");
    }
    // The same code in the name of another channel, another call, another spelling.
    let id = text(&asked["id"]);
    for wrong in [
        path.replace(".one.", ".two."),
        path.replace(".one.", ".nowhere."),
        path.replace(id, "ap_0000000000000000"),
        path.replace(id, "../key"),
        path.replace("approve", "APPROVE"),
        format!("{path}/"),
        format!("{path}?x=1").replace(".approve.", ".deny."),
    ] {
        let status = http_peers::ask(hub.port(), &format!("POST {wrong}"), &[], "").status;
        assert!(matches!(status, 401 | 403 | 404), "{status} for {wrong}");
    }
    assert_eq!(hub.ruling(id), None);
    assert_eq!(hub.follow(url), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    let log = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    let code = path.rsplit('.').next().unwrap();
    assert!(!log.contains(code) && !hub.errors().contains(code), "a code was logged");
    assert!(!log.contains(SECRET), "a secret was logged");
}

#[test]
fn bodies_of_strangers_are_neither_read_nor_kept() {
    let hooks = receiver("200 OK");
    let hub = start_accepted(&policy("channels: [hook]", &webhook("hook", &hooks)));
    // Large bodies, of which only the first bytes come.
    let slow: Vec<TcpStream> = (0..STRANGERS)
        .map(|at| {
            let path = ["/approvals/links/ap_x.approve.hook.00", "/approvals/channels/hook"][at % 2];
            let kind = ["application/json", "application/x-www-form-urlencoded"][at % 2];
            let length = [30 << 20, 250 << 10][at % 2];
            let mut stream = TcpStream::connect(("127.0.0.1", hub.port())).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\r\n["
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    let mut run = hub.shim(&["log=log", "serve"]).start();
    let large = "x".repeat(1 << 20);
    run.send(ask(1, "ping").as_bytes());
    run.send(
        super::super::super::setup::call_with(2, "other", &format!("{{\"a\":\"{large}\"}}"))
            .as_bytes(),
    );
    assert_eq!(answer(&run, 2)["result"]["for"], 2);
    run.send(call(3, "ask").as_bytes());
    let asked = event(&hooks.wait(1)[0]);
    assert_eq!(hub.follow(text(&asked["approve_url"])), 200);
    assert_eq!(answer(&run, 3)["result"]["for"], 3);
    drop(slow);
    let too_long = "x".repeat(300 << 10);
    let headers = ["content-type: application/x-www-form-urlencoded"];
    let status =
        http_peers::ask(hub.port(), "POST /approvals/channels/hook", &headers, &too_long).status;
    assert_eq!(status, 413);
}

#[test]
fn a_receiver_that_redirects_gets_no_second_request_and_no_secret_elsewhere() {
    let other = receiver("200 OK");
    let target = other.url("/stolen");
    let hooks = WebServer::start(move |_, stream| {
        let head = format!(
            "HTTP/1.1 307 Temporary Redirect\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).is_ok()
    });
    let section = format!(
        "  phone: {{ type: ntfy, url: \"{}\", secret_env: HOOK_SECRET }}\n",
        hooks.url("/topic")
    );
    let hub = start_accepted(&policy("channels: [phone]", &section));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    hub.says("channel `phone` does not work: the server answered 307");
    let id = hub.pending(1).remove(0);
    assert_eq!(hub.ask(&format!("POST /approvals/{id}/deny"), r#"{"by":"bob"}"#).status, 200);
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    assert!(other.seen().is_empty());
    assert!(!hub.errors().contains(SECRET), "{}", hub.errors());
}

#[test]
fn a_receiver_whose_answer_never_ends_delays_no_other_channel() {
    let good = receiver("200 OK");
    let endless = WebServer::start(|_, stream| {
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let part = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
        stream.write_all(head).is_ok() && (0..).all(|_| stream.write_all(&part).is_ok())
    });
    let channels = [webhook("endless", &endless), webhook("good", &good)].concat();
    let hub = start_accepted(&policy("channels: [endless, good]", &channels));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    let asked = event(&good.wait(1)[0]);
    hub.says("channel `endless` does not work: the answer broke off");
    assert_eq!(hub.follow(text(&asked["approve_url"])), 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}
