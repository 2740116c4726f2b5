//! Authentication in both directions: other programs on the hub's port, and the hub's two tokens.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tapegate_hub::api::{HeartbeatRequest, SettleRequest};
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_hub::hub_lock::token_file;
use tapegate_hub::hub_policy::HubPolicyLoad;
use tapegate_hub::limits::HubLimits;

use crate::support::{GUARD, call, policy, raw, serve, session, start, with_hub};

fn nothing() -> HubPolicyLoad {
    HubPolicyLoad::default()
}

/// A program that answers in the hub's place and records what it was sent.
struct FakeHub {
    address: String,
    received: Arc<Mutex<String>>,
}

impl FakeHub {
    /// Listens at `address`, and answers each request head with the result of `reply`.
    fn start(address: &str, reply: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received: Arc<Mutex<String>> = Arc::default();
        let (heard, reply) = (Arc::clone(&received), Arc::new(reply));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (heard, reply) = (Arc::clone(&heard), Arc::clone(&reply));
                std::thread::spawn(move || answer(stream.unwrap(), &heard, &*reply));
            }
        });
        Self { address, received }
    }

    fn client(&self, token_file: &std::path::Path) -> HubClient {
        HubClient::new(&format!("http://{}", self.address), token_file).unwrap()
    }

    /// Checks that a request came, and that none carried a token.
    fn got_no_token(&self, token: &str) {
        let received = self.received.lock().unwrap();
        assert!(received.contains("GET /healthz"), "{received}");
        assert!(!received.contains(token), "{received}");
        assert!(!received.to_lowercase().contains("authorization"), "{received}");
        assert!(!received.contains("/governance/"), "{received}");
    }
}

fn answer(mut stream: TcpStream, heard: &Mutex<String>, reply: &dyn Fn(&str) -> String) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|count| count > 0) {
        if head.ends_with("\r\n\r\n") {
            heard.lock().unwrap().push_str(&head);
            stream.write_all(reply(&head).as_bytes()).ok();
            head.clear();
        }
    }
}

/// The answer of a program that pretends to be the hub.
fn welcome(_: &str) -> String {
    let body = r#"{"version":"1","lease_ms":60000,"files":{},"env":{},"recording":true}"#;
    let proof = "0".repeat(64);
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntapegate-proof: {proof}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn is_unproven(error: &ClientError) {
    assert!(matches!(error, ClientError::Unproven(_)) && error.is_gone(), "{error}");
    assert!(error.to_string().contains("does not have this hub's token"), "{error}");
}

/// Sends every kind of request that a shim sends to its hub.
async fn ask_everything(client: &HubClient) -> Vec<ClientError> {
    let beat = HeartbeatRequest::default();
    vec![
        client.snapshot().await.unwrap_err(),
        client.heartbeat(&beat).await.unwrap_err(),
        client.evaluate(&call("x")).await.unwrap_err(),
        client.wait_until_settled("ap_x").await.unwrap_err(),
        client.revalidate("ap_x", &call("x")).await.unwrap_err(),
        client.cancel("ap_x").await.unwrap_err(),
        client.abandon_task("ap_x").await.unwrap_err(),
        client.pushes("c1").await.unwrap_err(),
    ]
}

#[test]
fn another_program_gets_no_token_and_is_asked_for_nothing() {
    with_hub(nothing, |running| async move {
        let fake = FakeHub::start("127.0.0.1:0", welcome);
        let client = fake.client(&token_file(&running.state(), &running.state()));
        client.wait_until_ready().await.unwrap();
        ask_everything(&client).await.iter().for_each(is_unproven);
        fake.got_no_token(&running.token);
    });
}

#[test]
fn a_challenge_that_is_passed_on_to_the_hub_proves_nothing() {
    with_hub(nothing, |running| async move {
        let port = running.address.rsplit(':').next().unwrap();
        // A relay with another port, and one with another address.
        for place in ["127.0.0.1:0".to_owned(), format!("127.0.0.2:{port}")] {
            let (hub, renames) = (running.address.clone(), Arc::new(AtomicBool::new(false)));
            let renamed = Arc::clone(&renames);
            let reply = move |head: &str| pass_on(&hub, head, renamed.load(Ordering::SeqCst));
            let fake = FakeHub::start(&place, reply);
            let client = fake.client(&token_file(&running.state(), &running.state()));
            is_unproven(&client.snapshot().await.unwrap_err());
            renames.store(true, Ordering::SeqCst);
            is_unproven(&client.snapshot().await.unwrap_err());
            fake.got_no_token(&running.token);
        }
        running.client.snapshot().await.unwrap();
    });
}

/// Relays a request to the hub, under this address or under the hub's.
fn pass_on(hub: &str, head: &str, renamed: bool) -> String {
    let rename = |line: &str| match renamed && line.to_lowercase().starts_with("host:") {
        true => format!("Host: {hub}\r\n"),
        false => format!("{line}\r\n"),
    };
    let head: String = head.lines().filter(|line| !line.is_empty()).map(rename).collect();
    let mut stream = TcpStream::connect(hub).unwrap();
    stream.set_read_timeout(Some(GUARD)).unwrap();
    stream.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert_eq!(reply.contains("tapegate-proof"), renamed, "{reply}");
    reply.replace("connection: close\r\n", "")
}

#[test]
fn a_hub_that_is_replaced_between_two_questions_gets_no_token() {
    session(async {
        let folder = tempfile::tempdir().unwrap();
        let (running, listener) = start(folder, ":0", HubLimits::default(), nothing).await;
        serve(&running.hub, &listener, async { running.client.snapshot().await.unwrap() }).await;
        drop(listener);
        // The token file is still there, as after a kill.
        let fake = FakeHub::start(&running.address, welcome);
        ask_everything(&running.client).await.iter().for_each(is_unproven);
        fake.got_no_token(&running.token);
    });
}

#[test]
fn a_hub_that_starts_anew_at_the_same_place_is_joined_again() {
    session(async {
        let folder = tempfile::tempdir().unwrap();
        let (first, listener) = start(folder, ":0", HubLimits::default(), nothing).await;
        let client = HubClient::new(
            &format!("http://{}", first.address),
            &token_file(&first.state(), &first.state()),
        );
        let client = client.unwrap();
        serve(&first.hub, &listener, async { client.snapshot().await.unwrap() }).await;
        drop(listener);
        let (address, token) = (first.address.clone(), first.token.clone());
        let folder = first.end();
        let (second, listener) = start(folder, &address, HubLimits::default(), nothing).await;
        assert_ne!(second.token, token);
        let beat = HeartbeatRequest::default();
        serve(&second.hub, &listener, async { client.heartbeat(&beat).await.unwrap() }).await;
    });
}

const ASKS: &str = "schema: 1\ngovernance:\n  defaults: { action: approve }\n";

#[test]
fn shims_neither_decide_nor_end_the_hub_and_approvers_do() {
    with_hub(
        || policy(ASKS),
        |running| async move {
            let (shim, approver) = (&running.client, &running.approver);
            let by = SettleRequest { by: "ann".to_owned(), ..SettleRequest::default() };
            let id = shim.evaluate(&call("pay")).await.unwrap().task_id.unwrap();
            let refused = [
                shim.approve(&id, &by).await.unwrap_err(),
                shim.deny(&id, &by).await.unwrap_err(),
                shim.shutdown().await.unwrap_err(),
            ];
            for error in refused {
                assert!(matches!(error, ClientError::Status { status: 403, .. }), "{error}");
                assert!(error.to_string().contains("approvers' token"), "{error}");
            }
            let list = format!(
                "GET /approvals HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
                 Connection: close\r\n\r\n",
                running.address, running.token
            );
            let list = raw(&running.address, list).await;
            assert!(list.starts_with("HTTP/1.1 403") && !list.contains(&id), "{list}");
            // Routes for shims are open to approvers, too.
            approver.snapshot().await.unwrap();
            approver.evaluate(&call("other")).await.unwrap();
            approver.approve(&id, &by).await.unwrap();
            assert!(approver.shutdown().await.unwrap().shutdown);
        },
    );
}

#[test]
fn a_proof_is_given_only_for_a_challenge_and_the_hub_s_own_address() {
    with_hub(nothing, |running| async move {
        let port = running.address.rsplit(':').next().unwrap();
        let challenge = format!("Tapegate-Challenge: {}\r\n", "a".repeat(64));
        let ask = |host: String, header: String| {
            let address = running.address.clone();
            async move {
                let request = format!(
                    "GET /healthz HTTP/1.1\r\nHost: {host}\r\n{header}Connection: close\r\n\r\n"
                );
                let reply = raw(&address, request).await;
                assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
                reply.matches("tapegate-proof: ").count()
            }
        };
        assert_eq!(ask(running.address.clone(), challenge.clone()).await, 2);
        for host in ["127.0.0.1", "127.0.0.1:1", "[::1]", "localhost"] {
            assert_eq!(ask(host.to_owned(), challenge.clone()).await, 0, "{host}");
        }
        for host in [format!("127.0.0.2:{port}"), format!("localhost:{port}")] {
            assert_eq!(ask(host.clone(), challenge.clone()).await, 0, "{host}");
        }
        for header in ["", "Tapegate-Challenge: \r\n", "Tapegate-Challenge: abc\r\n"] {
            assert_eq!(ask(running.address.clone(), header.to_owned()).await, 0, "{header}");
        }
        let twice = challenge.repeat(2);
        assert_eq!(ask(running.address.clone(), twice).await, 0);
    });
}
