//! Slow clients, and too many of them.

use std::io::ErrorKind;
use std::time::Duration;

use tapegate_hub::hub_policy::HubPolicyLoad;
use tapegate_hub::limits::HubLimits;
use tokio::net::TcpStream;

use crate::support::{GUARD, HubFixture, policy, with_limits};

/// How long a hub waits in these tests for something that does not come.
const MOMENT: Duration = Duration::from_millis(150);

fn loaded() -> HubPolicyLoad {
    policy("schema: 1\ngovernance:\n  defaults: { action: forward }\n")
}

fn limits() -> HubLimits {
    HubLimits { connections_max: 2, head_patience: GUARD, body_patience: GUARD }
}

async fn connect(running: &HubFixture, text: &str) -> TcpStream {
    let stream = TcpStream::connect(&running.address).await.unwrap();
    stream.writable().await.unwrap();
    assert_eq!(stream.try_write(text.as_bytes()).unwrap(), text.len());
    stream
}

/// What arrives until the peer closes, or until it contains `enough`.
async fn read(stream: &TcpStream, enough: &str) -> String {
    let mut text = String::new();
    let mut piece = [0; 4096];
    while enough.is_empty() || !text.contains(enough) {
        stream.readable().await.unwrap();
        match stream.try_read(&mut piece) {
            Ok(count) if count > 0 => text.push_str(&String::from_utf8_lossy(&piece[..count])),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => break,
        }
    }
    text
}

async fn all(stream: TcpStream) -> String {
    read(&stream, "").await
}

fn probe(running: &HubFixture) -> String {
    format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n", running.address)
}

#[test]
fn a_head_that_does_not_come_ends_the_connection() {
    let limits = HubLimits { head_patience: MOMENT, ..limits() };
    with_limits(limits, loaded, |running| async move {
        for text in ["", "GET /heal", &probe(&running)] {
            let got = all(connect(&running, text).await).await;
            assert!(!got.contains("200 OK"), "{got}");
        }
    });
}

#[test]
fn a_connection_that_is_idle_between_requests_is_ended_too() {
    let limits = HubLimits { head_patience: MOMENT, ..limits() };
    with_limits(limits, loaded, |running| async move {
        let text = format!("{}\r\n", probe(&running));
        let got = all(connect(&running, &text).await).await;
        assert_eq!(got.matches("200 OK").count(), 1, "{got}");
    });
}

#[test]
fn a_body_that_does_not_come_is_told_so() {
    let limits = HubLimits { body_patience: MOMENT, ..limits() };
    with_limits(limits, loaded, |running| async move {
        let head = format!(
            "POST /governance/evaluate HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{",
            running.address, running.token
        );
        let got = read(&connect(&running, &head).await, "request_timeout").await;
        assert!(got.starts_with("HTTP/1.1 408"), "{got}");
    });
}

#[test]
fn who_finds_no_room_waits_until_a_connection_ends() {
    with_limits(limits(), loaded, |running| async move {
        let held = [connect(&running, "").await, connect(&running, "GET").await];
        let text = format!("{}Connection: close\r\n\r\n", probe(&running));
        let third = connect(&running, &text).await;
        // Others are answered, and it is not.
        for _ in 0..3 {
            let text = format!("{}\r\n", probe(&running));
            assert_eq!(held[0].try_write(text.as_bytes()).unwrap(), text.len());
            read(&held[0], "200 OK").await;
        }
        let early = third.try_read(&mut [0]);
        assert_eq!(early.unwrap_err().kind(), ErrorKind::WouldBlock, "there was no room");
        drop(held);
        let got = all(third).await;
        assert!(got.starts_with("HTTP/1.1 200 OK"), "{got}");
    });
}
