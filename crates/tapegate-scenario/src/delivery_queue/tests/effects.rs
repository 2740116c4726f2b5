//! Side effects.

use super::*;

#[test]
fn a_flood_keeps_its_rate_and_its_duration() {
    let mut play = DeliveryTest::new(false);
    play.start(&flood(1000, 2 * SECOND)).unwrap();
    play.answer("1", "answer", &Delivery::Normal, 1);
    let is_flood = |done: &DeliveryEvent| matches!(done, DeliveryEvent::Said(words) if words.contains("method"));
    play.pass(SECOND - 1);
    assert_eq!(play.count(is_flood), 1000);
    play.pass(10 * SECOND);
    assert_eq!(play.count(is_flood), 2000);
    assert_eq!(play.done[0].1, DeliveryEvent::Said("answer".into()));
    assert!(!play.delivery_queue.is_busy());
}

#[test]
fn a_client_that_does_not_read_is_owed_one_second_of_a_flood() {
    let mut play = DeliveryTest::new(false);
    play.start(&flood(10_000, 60 * SECOND)).unwrap();
    play.now_ns = 30 * SECOND;
    play.run();
    let first: usize = play.wire().len();
    assert!(first <= RUN_BYTES + 100, "{first}");
    play.pass(30 * SECOND);
    let owed = play.count(|done| matches!(done, DeliveryEvent::Said(_)));
    assert!((10_000..=10_001).contains(&owed), "{owed}");
}

#[test]
fn a_flood_waits_for_what_is_under_way_on_a_pipe() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "abc", &drip(500, 1), 1);
    play.start(&flood(10, SECOND)).unwrap();
    play.pass(10 * SECOND);
    let lines: Vec<_> = play.wire().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "abc");
    assert!(lines.len() > 1 && lines[1..].iter().all(|line| line.contains("method")), "{lines:?}");
}

#[test]
fn a_flood_without_end_keeps_nobody() {
    let mut play = DeliveryTest::new(false);
    let how = EffectStart { endless: true, params: Some(b"{\"a\":1}"), ..EffectStart::default() };
    play.delivery_queue.start(play.at(), &flood(10, SECOND), how).unwrap();
    play.pass(100 * SECOND);
    assert_eq!(play.count(|done| matches!(done, DeliveryEvent::Said(_))), 1001);
    assert!(play.wire().starts_with(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"a\":1}}\n"
    ));
    assert!(!play.delivery_queue.is_busy() && play.delivery_queue.next_wakeup().is_some());
}

#[test]
fn a_batch_is_one_array_that_is_made_as_it_goes() {
    let mut play = DeliveryTest::new(false);
    let method = "m".to_owned();
    play.start(&ServerEffect::BatchAmplify { count: 10_000, method, params: None }).unwrap();
    assert!(play.delivery_queue.backlog_bytes() < 1000);
    play.pass(0);
    let wire = play.wire();
    let batch: serde_json::Value = serde_json::from_str(&wire).unwrap();
    assert_eq!(batch.as_array().map(Vec::len), Some(10_000));
    assert!(play.done.iter().all(
        |(_, done)| matches!(done, DeliveryEvent::Raw(None, piece, _) if piece.len() <= PIECE_BYTES)
    ));
}

#[test]
fn a_pipe_is_filled_with_one_message_and_by_http_there_is_no_pipe() {
    let effect = ServerEffect::PipeDeadlock { bytes: 1_048_576 };
    let mut play = DeliveryTest::new(false);
    play.start(&effect).unwrap();
    play.pass(0);
    let wire = play.wire();
    assert_eq!(wire.len(), 1_048_576);
    assert!(serde_json::from_str::<serde_json::Value>(&wire).is_ok());
    let mut play = DeliveryTest::new(true);
    assert!(play.start(&effect).is_err_and(|reason| reason.contains("pipe")));
    assert!(!play.delivery_queue.is_busy());
}

#[test]
fn requests_with_one_id_are_messages_on_a_pipe_and_raw_events_by_http() {
    let (id, method) = ("\"a\"".to_owned(), "ping".to_owned());
    let effect = ServerEffect::DuplicateRequestIds { count: 3, id, method, params: None };
    let request = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}";
    for (streams, expected) in [
        (false, DeliveryEvent::Said(request.into())),
        (true, DeliveryEvent::Raw(None, request.into(), true)),
    ] {
        let mut play = DeliveryTest::new(streams);
        play.start(&effect).unwrap();
        play.pass(0);
        let acts: Vec<_> = play.done.iter().map(|(_, done)| done.clone()).collect();
        assert_eq!(acts, [expected.clone(), expected.clone(), expected]);
    }
}

#[test]
fn ec_trans_019_an_end_in_order_waits_for_what_was_said() {
    let mut play = DeliveryTest::new(false);
    play.start(&ServerEffect::CloseConnection { graceful: true, delay_ns: 0 }).unwrap();
    play.start(&flood(10, 60 * SECOND)).unwrap();
    play.answer("1", "abc", &drip(100, 1), 1);
    play.pass(10 * SECOND);
    assert!(play.wire().starts_with("abc\n"), "{}", play.wire());
    let end: Vec<_> = play.done.iter().rev().take(2).rev().cloned().collect();
    assert_eq!(
        end,
        [(200 * MS, DeliveryEvent::Left(false)), (200 * MS, DeliveryEvent::Delivered(1))]
    );
    play.say("never sent");
    assert!(
        !play.delivery_queue.is_busy()
            && play.delivery_queue.has_disconnected()
            && play.delivery_queue.next_wakeup().is_none()
    );
    assert!(!play.wire().contains("never sent"));
}

#[test]
fn ec_trans_020_a_forced_end_waits_for_its_delay_alone() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "abcdef", &drip(100, 1), 1);
    play.start(&ServerEffect::CloseConnection { graceful: false, delay_ns: 250 * MS }).unwrap();
    play.pass(10 * SECOND);
    assert_eq!(play.wire(), "abc");
    assert_eq!(play.done.last(), Some(&(250 * MS, DeliveryEvent::Left(true))));
}

#[test]
fn with_streams_one_event_ends_before_the_next_begins() {
    let mut play = DeliveryTest::new(true);
    let batch = |method: &str| ServerEffect::BatchAmplify {
        count: 5000,
        method: method.into(),
        params: None,
    };
    let (id, method) = ("1".to_owned(), "ping".to_owned());
    play.start(&batch("a")).unwrap();
    play.run();
    play.start(&ServerEffect::DuplicateRequestIds { count: 2, id, method, params: None }).unwrap();
    play.start(&batch("b")).unwrap();
    play.answer("7", "abc", &drip(0, 1), 1);
    play.pass(0);
    let mut events = vec![String::new()];
    for (_, done) in &play.done {
        if let DeliveryEvent::Raw(None, piece, ends) = done {
            events.last_mut().unwrap().push_str(piece);
            events.extend(ends.then(String::new));
        }
    }
    assert_eq!(events.pop(), Some(String::new()));
    for event in &events {
        assert!(serde_json::from_str::<serde_json::Value>(event).is_ok(), "{event:.100}");
    }
    assert_eq!(events.len(), 4);
    assert_eq!(play.body("7"), ("abc".into(), true));
}

#[test]
fn with_streams_only_the_one_is_left_who_is_meant() {
    let mut play = DeliveryTest::new(true);
    let close = ServerEffect::CloseConnection { graceful: true, delay_ns: 0 };
    play.answer("1", "abc", &drip(100, 1), 1);
    play.answer("2", "abc", &drip(10, 1), 2);
    let how = EffectStart { about: Some(b"2"), ..EffectStart::default() };
    play.delivery_queue.start(play.at(), &close, how).unwrap();
    play.pass(SECOND);
    let left =
        play.done.iter().position(|(_, done)| matches!(done, DeliveryEvent::Left(false))).unwrap();
    assert_eq!(play.done[left].0, 20 * MS);
    assert_eq!((play.body("1"), play.body("2")), (("abc".into(), true), ("abc".into(), true)));
    assert!(!play.delivery_queue.has_disconnected());
}

#[test]
fn side_effects_do_not_pile_up_without_a_bound() {
    let mut play = DeliveryTest::new(false);
    let started = (0..1000).filter(|_| play.start(&flood(1, 60 * SECOND)).is_ok()).count();
    assert_eq!(started, 64);
}
