//! Malicious bodies, too many at once, and large ones.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Instant;

use super::{HubFolder, call};

#[test]
fn a_body_that_does_not_fit_is_told_why() {
    let place = HubFolder::new();
    let hub = place.start();
    let good = call("ls", "{}");
    for (body, output_text) in [
        (String::new(), "EOF"),
        ("{".to_owned(), "EOF"),
        ("[]".to_owned(), ""),
        ("null".to_owned(), ""),
        (format!("{good}{good}"), "trailing"),
        (good.replace("\"server_id\":\"fs\",", ""), "missing field `server_id`"),
        (good.replace("\"method\":\"tools/call\",", ""), "missing field `method`"),
        (good.replace("agent_to_server", "sideways"), "unknown variant `sideways`"),
        (good.replace("\"id\":1", "\"id\":{}"), "an id is a string, a number or null"),
        (good.replace("\"method\"", "\"server_id\":\"b\",\"method\""), "duplicate field"),
        (format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), ""),
    ] {
        let reply = hub.post("/governance/evaluate", &body);
        assert_eq!(reply.status, 400, "{}", reply.body);
        let error = &reply.json()["error"];
        assert_eq!(error["code"], "bad_request");
        assert!(error["message"].as_str().unwrap().contains(output_text), "{error}");
    }
    let mut bytes = format!(
        "POST /governance/evaluate HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: 3\r\n\r\n",
        hub.headers()
    )
    .into_bytes();
    bytes.extend_from_slice(b"\"\xff\"");
    assert_eq!(hub.send(&bytes).status, 400);
    assert_eq!(hub.evaluate("rm")["decision"], "deny");
}

#[test]
fn arguments_that_are_nested_for_ever_are_refused_and_nothing_breaks() {
    let place = HubFolder::new();
    let hub = place.start();
    let deep = format!("{}1{}", "[".repeat(200_000), "]".repeat(200_000));
    let reply = hub.post("/governance/evaluate", &call("ls", &format!("{{\"a\":{deep}}}")));
    assert!(reply.status == 200 || reply.status == 400, "{}", reply.head);
    assert_ne!(reply.json()["decision"], "forward");
    assert_eq!(hub.evaluate("ls")["decision"], "forward");
}

#[test]
fn a_name_without_end_is_not_told_back() {
    let place = HubFolder::new();
    let policy = std::fs::read_to_string(place.policy()).unwrap();
    std::fs::write(place.policy(), policy.replace("match: rm", "match: \"rm*\"")).unwrap();
    let hub = place.start();
    let reply =
        hub.post("/governance/evaluate", &call(&format!("rm{}", "x".repeat(1_000_000)), "{}"));
    assert_eq!(reply.json()["decision"], "deny", "{}", reply.body);
    assert!(reply.body.len() < 10_000, "{} bytes", reply.body.len());
    assert!(super::log(&place.state()).len() < 20_000);
}

#[test]
fn a_call_of_20_mb_is_decided_about_and_one_of_40_is_not() {
    let place = HubFolder::new();
    let hub = place.start();
    let large = |megabytes: usize| {
        let text = "x".repeat(megabytes * 1024 * 1024);
        hub.post("/governance/evaluate", &call("rm", &format!("{{\"a\":\"{text}\"}}")))
    };
    let reply = large(20);
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert_eq!(reply.json()["decision"], "deny");
    let reply = large(40);
    assert_eq!(reply.status, 413, "{}", reply.body);
    assert_eq!(reply.json()["error"]["code"], "payload_too_large");
    // Without the token nothing is read.
    let host = &hub.address;
    let mut request =
        format!("POST /governance/evaluate HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 99999999\r\n\r\n")
            .into_bytes();
    request.extend(vec![b' '; 1024 * 1024]);
    assert_eq!(hub.send(&request).status, 401);
}

#[test]
fn those_who_say_half_a_request_hold_up_nobody() {
    let place = HubFolder::new();
    let hub = place.start();
    let halves = [
        "GET /heal".to_owned(),
        "POST /governance/evaluate HTTP/1.1\r\n".to_owned(),
        format!(
            "POST /governance/evaluate HTTP/1.1\r\n{}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{",
            hub.headers()
        ),
    ];
    let mut idle = Vec::new();
    for half in halves.iter().cycle().take(60) {
        let mut stream = TcpStream::connect(&hub.address).unwrap();
        stream.write_all(half.as_bytes()).unwrap();
        idle.push(stream);
    }
    assert_eq!(hub.evaluate("rm")["decision"], "deny");
    // A request that breaks off in its body does no harm either.
    for stream in &idle {
        stream.shutdown(Shutdown::Both).ok();
    }
    assert_eq!(hub.evaluate("ls")["decision"], "forward");
}

#[test]
fn many_at_once_all_get_the_answer_to_their_own_question() {
    let place = HubFolder::new();
    let hub = place.start();
    let mut times: Vec<u128> = std::thread::scope(|scope| {
        let ask = |caller: usize| {
            let hub = &hub;
            move || {
                let one = |number: usize| {
                    let tool = if (caller + number).is_multiple_of(2) { "rm" } else { "ls" };
                    let begun = Instant::now();
                    let answer = hub.evaluate(tool);
                    let expected = if tool == "rm" { "deny" } else { "forward" };
                    assert_eq!(answer["decision"], expected);
                    begun.elapsed().as_micros()
                };
                (0..50).map(one).collect::<Vec<_>>()
            }
        };
        let callers: Vec<_> = (0..8).map(|caller| scope.spawn(ask(caller))).collect();
        callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
    });
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100];
    // For information only; a busy machine must not fail the test.
    let output_text =
        format!("evaluate, a connection each, 8 at once: p50 {} us, p99 {} us\n", at(50), at(99));
    std::io::stderr().write_all(output_text.as_bytes()).unwrap();
    let log = super::log(&place.state());
    assert_eq!(log.lines().filter(|line| line.contains(r#""kind":"decision""#)).count(), 400);
}

#[test]
fn one_connection_can_ask_many_questions() {
    let place = HubFolder::new();
    let hub = place.start();
    let mut stream = TcpStream::connect(&hub.address).unwrap();
    let body = call("rm", "{}");
    let headers = hub.headers().replace("Connection: close\r\n", "");
    let request = format!(
        "POST /governance/evaluate HTTP/1.1\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut times = Vec::new();
    for _ in 0..200 {
        let begun = Instant::now();
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = Vec::new();
        let mut buffer = [0; 8192];
        while !reply.ends_with(b"}") {
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0);
            reply.extend_from_slice(&buffer[..count]);
        }
        times.push(begun.elapsed().as_micros());
    }
    times.sort_unstable();
    let output_text =
        format!("evaluate, one connection: p50 {} us, p99 {} us\n", times[100], times[198]);
    std::io::stderr().write_all(output_text.as_bytes()).unwrap();
}
