//! Requests and answers in every order: none is lost, and each answer is matched to its request.

use std::fs;

use tapegate_core::side::Side;

use crate::support::{record, reply, request, shim, tape};

#[test]
fn ten_thousand_requests_answered_backwards_are_all_paired() {
    let requests: String = (0..10_000).map(request).collect();
    let end = record(&["reverse=10000", "eof"]).run(requests.as_bytes()).exits(0).checks();
    let replies: String = (0..10_000).rev().map(reply).collect();
    let end = end.client_got(replies.as_bytes());
    let answers: Vec<_> = end.tape().into_iter().filter(|k| k.from == Side::Server).collect();
    assert_eq!(answers.len(), 10_000);
    assert!(answers.iter().all(|kept| kept.latency_ms.is_some() && !kept.ours));
}

#[test]
fn a_burst_of_fifty_thousand_outstanding_requests_loses_none() {
    let requests: String = (0..50_000).map(request).collect();
    let end = record(&["reverse=50000", "eof"]).run(requests.as_bytes()).exits(0).checks();
    assert_eq!(end.said(Side::Client), requests.as_bytes());
    let replies: String = (0..50_000).rev().map(reply).collect();
    end.client_got(replies.as_bytes());
}

#[test]
fn fifty_thousand_requests_a_crashed_server_owes_are_each_answered_once() {
    let requests: String = (0..50_000).map(request).collect();
    let end = shim("", &["read=50000", "exit=1"]).run(requests.as_bytes()).exits(1);
    let text = String::from_utf8(end.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 50_000);
    for (id, line) in text.lines().enumerate() {
        assert!(
            line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\"")),
            "{line}"
        );
    }
}

#[test]
fn a_repeated_id_is_paired_oldest_first_and_owed_as_often_as_it_was_asked() {
    let lines = request(7).repeat(3);
    let steps = ["read=3", "say={\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}", "exit=0"];
    let end = shim("", &steps).run(lines.as_bytes()).exits(0);
    let text = String::from_utf8(end.stdout.clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    assert_eq!(lines[0], r#"{"jsonrpc":"2.0","id":7,"result":1}"#);
    assert!(lines[1..].iter().all(|line| line.starts_with(r#"{"jsonrpc":"2.0","id":7,"error""#)));
}

#[test]
fn answers_nobody_asked_for_pass_and_have_no_latency() {
    let stray = r#"{"jsonrpc":"2.0","id":99,"result":{}}"#;
    let end = record(&[&format!("say={stray}"), "serve"]).run(request(1).as_bytes()).exits(0);
    let end = end.client_got(format!("{stray}\n{}", reply(1)).as_bytes()).checks();
    let latencies: Vec<_> = end.tape().iter().map(|kept| kept.latency_ms.is_some()).collect();
    assert_eq!(latencies.iter().filter(|has| **has).count(), 1);
}

#[test]
fn server_requests_with_the_same_ids_as_client_requests_are_kept_apart() {
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"}"#;
    let mut run = record(&[
        "read=1",
        &format!("say={ask}"),
        "read=1",
        "say={\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"s\"}",
        "eof",
    ])
    .start();
    run.send(request(1).as_bytes());
    run.lines(1);
    run.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"c\"}\n");
    run.lines(2);
    run.close_input();
    let end = run.end().exits(0).checks();
    let tape = end.tape();
    let answered: Vec<_> = tape.iter().map(|kept| (kept.from, kept.latency_ms.is_some())).collect();
    assert_eq!(
        answered,
        [(Side::Client, false), (Side::Server, false), (Side::Client, true), (Side::Server, true),]
    );
}

#[test]
fn a_request_that_was_taken_back_is_not_waited_for_and_not_answered_by_us() {
    let cancel = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n";
    let end = record(&["eof"]).run(format!("{}{cancel}", request(1)).as_bytes()).exits(0);
    end.client_got(b"").checks();
}

#[test]
fn ec_rec_005_notifications_wait_for_nothing() {
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    let end = record(&["eof"]).run(note.repeat(1000).as_bytes()).exits(0).client_got(b"").checks();
    assert_eq!(end.said(Side::Client), note.repeat(1000).as_bytes());
}

#[test]
fn ec_rec_006_base64_content_is_byte_exact() {
    let data: String =
        (0..40_000u32).map(|n| char::from(b"ABCDabcd0189+/=="[(n * 7 % 16) as usize])).collect();
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"content\":[{{\"type\":\"image\",\"data\":\"{data}\"}}]}}}}\n"
    );
    let end = record(&["copy"]).run(line.as_bytes()).exits(0).client_got(line.as_bytes()).checks();
    assert_eq!(end.said(Side::Server), line.as_bytes());
}

#[test]
fn ec_stdio_030_a_version_the_two_sides_disagree_on_is_none_of_our_business() {
    let ask = "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"1999-01-01\"}}\n";
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{\"protocolVersion\":\"2999-01-01\"}}";
    let end = record(&["read=1", &format!("say={answer}"), "eof"]).run(ask.as_bytes()).exits(0);
    end.client_got(format!("{answer}\n").as_bytes()).checks();
}

#[test]
fn a_batch_is_forwarded_as_one_line_and_its_answers_are_paired() {
    let batch = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}, {\"jsonrpc\":\"2.0\",\"method\":\"n\"}]\n";
    let answer = "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]";
    for setup in [
        record(&["read=1", &format!("say={answer}"), "eof"]),
        tape(&["read=1", &format!("say={answer}"), "eof"]),
    ] {
        let end = setup.run(batch.as_bytes()).exits(0).checks();
        let end = end.client_got(format!("{answer}\n").as_bytes());
        let paired = end.tape().iter().filter(|kept| kept.latency_ms.is_some()).count();
        let text = fs::read_to_string(end.run.tape_path()).unwrap();
        if text.starts_with("{\"type\"") {
            assert_eq!((end.tape().len(), paired, end.beside().len()), (3, 1, 2));
        } else {
            assert_eq!(end.said(Side::Client), batch.as_bytes());
        }
    }
}
