//! What a caller over HTTP hears while its call is held: progress with its own token, on the reply to
//! its own POST.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;

use serde_json::{Value, json};
use tapegate_store::approvals::ApprovalOutcome;

use super::http::{ACCEPT, JSON, post, said, sidecar, upstream};
use super::setup::{decide, held, rules};
use crate::http_peers::{ReceivedReply, send};
use crate::support::{RunningSession, shim};

/// The reply to a POST, event by event.
struct StreamedReply(BufReader<TcpStream>);

impl StreamedReply {
    /// Sends a call with this progress token, and reads the head of its reply.
    fn open(run: &RunningSession, session: &str, (id, tool, token): &(u64, &str, Value)) -> Self {
        let params = json!({ "name": tool, "_meta": { "progressToken": token } });
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let stream = send(run.port(), "POST /mcp", &[JSON, ACCEPT, session], &call.to_string());
        Self(BufReader::new(stream))
    }

    /// The head of the reply, which comes with the first event.
    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.0.read_line(&mut head).unwrap() > 0, "{head}");
        }
        head.to_ascii_lowercase()
    }

    /// The next message.
    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the stream has ended");
            let data = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
            if let Some(data) = data {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

/// Two callers with tokens of their own hear how their calls go, and then their answers.
fn hear_of_their_calls(run: &RunningSession, session: &str) {
    let callers = [(1, "ask-1", json!("mine")), (2, "ask-2", json!(7))];
    let mut streams = callers.each_ref().map(|caller| StreamedReply::open(run, session, caller));
    let requests = held(run, 2);
    for ((_, _, token), stream) in callers.iter().zip(&mut streams) {
        let head = stream.head();
        assert!(head.starts_with("http/1.1 200") && head.contains("text/event-stream"), "{head}");
        let mut last = 0.0;
        for _ in 0..2 {
            let told = stream.next();
            assert_eq!(told["method"], "notifications/progress", "{told}");
            assert_eq!(told["params"]["progressToken"], *token, "{told}");
            assert!(told["params"]["message"].as_str().unwrap().contains("`people`"), "{told}");
            let progress = told["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "{told}");
            last = progress;
        }
    }
    requests.iter().for_each(|id| decide(run, ApprovalOutcome::Approved, id));
    for ((id, ..), stream) in callers.iter().zip(&mut streams) {
        // More progress may have been sent before the decision.
        let answer = std::iter::repeat_with(|| stream.next()).find(|told| told["id"].is_u64());
        let answer = answer.unwrap();
        assert_eq!(answer["id"], *id, "{answer}");
        assert!(answer["result"].is_object(), "{answer}");
    }
}

/// A caller that takes only JSON hears no progress, and gets its answer.
fn answers_json_alone(run: &RunningSession, session: &str) {
    let call = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask-3","_meta":{"progressToken":"p"}}}"#;
    let stream = send(run.port(), "POST /mcp", &[JSON, "accept: application/json", session], call);
    let request = held(run, 1).remove(0);
    decide(run, ApprovalOutcome::Denied, &request);
    let mut text = String::new();
    std::io::Read::read_to_string(&mut { stream }, &mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(!body.contains("notifications/progress"), "{text}");
    let reply = ReceivedReply { status: 200, head: head.to_owned(), body: body.to_owned() };
    assert_eq!(said(&reply)["error"]["code"], -32007, "{text}");
}

#[test]
fn progress_of_a_held_call_is_on_the_reply_of_its_caller_in_front_of_a_server_over_http() {
    let upstream = upstream();
    let run = sidecar(&rules(&[("ask*", "approve")]), &upstream);
    hear_of_their_calls(&run, "x-none: 1");
    answers_json_alone(&run, "x-none: 1");
}

#[test]
fn progress_of_a_held_call_is_on_the_reply_of_its_caller_in_front_of_a_process() {
    let setup = shim(&rules(&[("ask*", "approve")]), &["log=log", "mcp=ask-1,ask-2,ask-3"]);
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let opened = post(&run, "/mcp", &[JSON, ACCEPT], hello);
    let session = format!("mcp-session-id: {}", opened.header("mcp-session-id").unwrap());
    hear_of_their_calls(&run, &session);
    answers_json_alone(&run, &session);
}
