//! The kinds of delivery.

use super::*;

#[test]
fn a_normal_answer_goes_at_once_and_waits_for_nothing() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "{answer}", &Delivery::Normal, 7);
    assert_eq!(
        play.done,
        [(0, DeliveryEvent::Said("{answer}".into())), (0, DeliveryEvent::Delivered(7))]
    );
    assert_eq!(
        (
            play.delivery_queue.next_wakeup(),
            play.delivery_queue.is_busy(),
            play.delivery_queue.backlog_bytes()
        ),
        (None, false, 0)
    );
}

#[test]
fn a_dripped_answer_takes_its_time_and_nothing_comes_between() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "abcde", &drip(100, 2), 7);
    play.pass(150 * MS);
    play.say("notice");
    play.answer("2", "next", &Delivery::Normal, 8);
    assert!(play.delivery_queue.is_busy() && play.delivery_queue.backlog_bytes() > 0);
    play.pass(SECOND);
    let piece = |text: &str, ends| DeliveryEvent::Raw(Some("1".into()), text.into(), ends);
    let expected = [
        (0, piece("ab", false)),
        (100 * MS, piece("cd", false)),
        (200 * MS, piece("e", true)),
        (200 * MS, DeliveryEvent::Said("notice".into())),
        (200 * MS, DeliveryEvent::Said("next".into())),
        (200 * MS, DeliveryEvent::Delivered(7)),
        (200 * MS, DeliveryEvent::Delivered(8)),
    ];
    assert_eq!(play.done, expected);
    assert_eq!(
        (
            play.delivery_queue.next_wakeup(),
            play.delivery_queue.is_busy(),
            play.delivery_queue.backlog_bytes()
        ),
        (None, false, 0)
    );
}

#[test]
fn with_streams_each_answer_drips_on_its_own() {
    let mut play = DeliveryTest::new(true);
    play.answer("1", "abc", &drip(100, 1), 7);
    play.answer("2", "xyz", &drip(10, 1), 8);
    play.say("notice");
    play.answer("3", "now", &Delivery::Normal, 9);
    play.pass(SECOND);
    assert_eq!(play.body("1"), ("abc".into(), true));
    assert_eq!(play.body("2"), ("xyz".into(), true));
    let tickets: Vec<_> = play
        .done
        .iter()
        .filter(|(_, done)| matches!(done, DeliveryEvent::Delivered(_)))
        .cloned()
        .collect();
    let delivered = |at_ms: u64, ticket| (at_ms * MS, DeliveryEvent::Delivered(ticket));
    assert_eq!(tickets, [delivered(0, 9), delivered(20, 8), delivered(200, 7)]);
}

#[test]
fn ec_cfg_015_a_drip_without_delay_is_over_at_once() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", &"x".repeat(1000), &drip(0, 1), 7);
    play.pass(0);
    assert_eq!(play.count(|done| matches!(done, DeliveryEvent::Raw(..))), 1000);
    assert_eq!(play.done.last(), Some(&(0, DeliveryEvent::Delivered(7))));
}

#[test]
fn a_late_answer_holds_nobody_up() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "late", &Delivery::ResponseDelay { delay_ns: SECOND }, 1);
    play.answer("2", "prompt", &Delivery::Normal, 2);
    assert!(play.delivery_queue.is_busy());
    play.pass(2 * SECOND);
    let expected = [
        (0, DeliveryEvent::Said("prompt".into())),
        (0, DeliveryEvent::Delivered(2)),
        (SECOND, DeliveryEvent::Said("late".into())),
        (SECOND, DeliveryEvent::Delivered(1)),
    ];
    assert_eq!(play.done, expected);
}

#[test]
fn a_line_without_an_end_is_padded_and_what_comes_next_goes_on_in_it() {
    let mut play = DeliveryTest::new(false);
    let endless = Delivery::UnboundedLine { bytes: 10, padding: 'é' };
    play.answer("1", "{abc}", &endless, 1);
    play.pass(0);
    play.say("next");
    assert_eq!(play.wire(), concat!("{abc}ééé", "next\n"));
    assert_eq!(play.count(|done| *done == DeliveryEvent::Delivered(1)), 1);
    assert!(!play.delivery_queue.is_busy());
}

#[test]
fn an_endless_body_is_not_closed() {
    let mut play = DeliveryTest::new(true);
    let endless = Delivery::UnboundedLine { bytes: 200_000, padding: 'A' };
    play.answer("1", "{}", &endless, 1);
    play.pass(0);
    let (body, ended) = play.body("1");
    assert_eq!((body.len(), ended), (200_000, false));
    assert_eq!(play.count(|done| *done == DeliveryEvent::Delivered(1)), 1);
}

#[test]
fn a_nested_answer_stands_deep_inside() {
    let mut play = DeliveryTest::new(false);
    let nested = Delivery::NestedJson { depth: 3, key: "a\"".into() };
    play.answer("1", "{}", &nested, 1);
    play.pass(0);
    assert_eq!(play.wire(), "{\"a\\\"\":{\"a\\\"\":{\"a\\\"\":{}}}}\n");
    let mut play = DeliveryTest::new(false);
    play.answer("1", "{}", &Delivery::NestedJson { depth: 100_000, key: "a".into() }, 1);
    play.pass(0);
    assert_eq!(play.wire().len(), 600_003);
}

#[test]
fn a_cancelled_answer_goes_nowhere_and_its_ticket_is_reported_once() {
    let mut play = DeliveryTest::new(false);
    play.answer("1", "begun", &drip(100, 1), 1);
    play.answer("2", "waits", &Delivery::Normal, 2);
    play.answer("3", "late", &Delivery::ResponseDelay { delay_ns: SECOND }, 3);
    play.pass(50 * MS);
    for about in ["1", "2", "3", "3", "4"] {
        play.delivery_queue.cancel(about.as_bytes());
    }
    assert_eq!(play.delivery_queue.next_wakeup(), Some(0));
    play.pass(play.now_ns);
    assert_eq!(play.wire(), "begun\n", "what has begun ends, and at once");
    play.pass(10 * SECOND);
    assert_eq!(play.wire(), "begun\n");
    for ticket in 1..=3 {
        assert_eq!(play.count(|done| *done == DeliveryEvent::Delivered(ticket)), 1, "{ticket}");
    }
    assert_eq!(play.delivery_queue.backlog_bytes(), 0);
}

#[test]
fn a_cancelled_body_ends_where_it_is() {
    let mut play = DeliveryTest::new(true);
    play.answer("1", "begun", &drip(100, 1), 1);
    play.pass(150 * MS);
    play.delivery_queue.cancel(b"1");
    play.pass(150 * MS);
    assert_eq!(play.body("1"), ("be".into(), true));
    assert!(!play.delivery_queue.is_busy());
}
