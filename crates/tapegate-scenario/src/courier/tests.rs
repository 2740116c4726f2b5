//! Deliveries and side effects by a clock that is only a number.

use proptest::prelude::*;

use super::*;
use crate::model::Effect;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// What a courier has done, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Done {
    Said(String),
    Told(String, String),
    Raw(Option<String>, String, bool),
    Left(bool),
    Delivered(u64),
}

/// A courier, a clock, and what came of both.
struct Play {
    courier: Courier,
    now_ns: u64,
    done: Vec<(u64, Done)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(act: &Act<'_>) -> Done {
    match act {
        Act::Say(parts) => Done::Said(text(&parts.concat())),
        Act::Tell { about, parts } => Done::Told(text(about), text(&parts.concat())),
        Act::Raw { about, bytes, ends } => Done::Raw(about.map(text), text(bytes), *ends),
        Act::Leave { abrupt, .. } => Done::Left(*abrupt),
        other => panic!("{other:?}"),
    }
}

impl Play {
    fn new(streams: bool) -> Self {
        Self { courier: Courier::new(streams), now_ns: 0, done: Vec::new() }
    }

    fn at(&self) -> At {
        At { wall_us: 0, mono_ns: self.now_ns }
    }

    fn say(&mut self, words: &str) {
        let (now_ns, list) = (self.now_ns, &mut self.done);
        self.courier.say(&[words.as_bytes()], &mut |act| list.push((now_ns, done(&act))));
    }

    fn answer(&mut self, about: &str, words: &str, delivery: &Delivery, ticket: u64) {
        let (at, now_ns, list) = (self.at(), self.now_ns, &mut self.done);
        let (head, tail) = words.split_at(words.len() / 2);
        let parts = [head.as_bytes(), tail.as_bytes()];
        let act = &mut |act: Act<'_>| list.push((now_ns, done(&act)));
        if self.courier.answer(at, about.as_bytes(), &parts, delivery, ticket, act) {
            list.push((now_ns, Done::Delivered(ticket)));
        }
    }

    fn start(&mut self, effect: &Effect) -> Result<(), &'static str> {
        self.courier.start(self.at(), effect, Start::default())
    }

    fn run(&mut self) {
        let (at, now_ns, list) = (self.at(), self.now_ns, &mut self.done);
        let tickets = self.courier.run(at, &mut |act| list.push((now_ns, done(&act))));
        list.extend(tickets.into_iter().map(|ticket| (now_ns, Done::Delivered(ticket))));
    }

    /// Runs whenever it wants to until `until_ns`.
    fn pass(&mut self, until_ns: u64) {
        for _ in 0..1_000_000 {
            match self.courier.due() {
                Some(due_ns) if due_ns <= until_ns => {
                    self.now_ns = self.now_ns.max(due_ns);
                    self.run();
                }
                _ => {
                    self.now_ns = self.now_ns.max(until_ns);
                    return;
                }
            }
        }
        panic!("it never comes to rest");
    }

    /// What has come out of the pipe.
    fn wire(&self) -> String {
        let mut wire = String::new();
        for (_, done) in &self.done {
            let (words, ends) = match done {
                Done::Said(words) | Done::Told(_, words) => (words, true),
                Done::Raw(_, words, ends) => (words, *ends),
                Done::Left(_) | Done::Delivered(_) => continue,
            };
            wire.push_str(words);
            wire.push_str(if ends { "\n" } else { "" });
        }
        wire
    }

    /// What the body of an answer was, and whether it has ended.
    fn body(&self, about: &str) -> (String, bool) {
        let mut body = (String::new(), false);
        for (_, done) in &self.done {
            if let Done::Raw(Some(id), words, ends) = done
                && id == about
            {
                assert!(!body.1, "something comes after the end");
                body.0.push_str(words);
                body.1 = *ends;
            }
        }
        body
    }

    fn count(&self, wanted: impl Fn(&Done) -> bool) -> usize {
        self.done.iter().filter(|(_, done)| wanted(done)).count()
    }
}

fn drip(delay_ms: u64, chunk_bytes: usize) -> Delivery {
    Delivery::SlowLoris { delay_ns: delay_ms * MS, chunk_bytes }
}

fn flood(per_second: u32, duration_ns: u64) -> Effect {
    let method = "notifications/message".to_owned();
    Effect::NotificationFlood { per_second, duration_ns, method, params: None }
}

#[test]
fn a_normal_answer_goes_at_once_and_waits_for_nothing() {
    let mut play = Play::new(false);
    play.answer("1", "{answer}", &Delivery::Normal, 7);
    assert_eq!(play.done, [(0, Done::Said("{answer}".into())), (0, Done::Delivered(7))]);
    assert_eq!((play.courier.due(), play.courier.busy(), play.courier.backlog()), (None, false, 0));
}

#[test]
fn a_dripped_answer_takes_its_time_and_nothing_comes_between() {
    let mut play = Play::new(false);
    play.answer("1", "abcde", &drip(100, 2), 7);
    play.pass(150 * MS);
    play.say("notice");
    play.answer("2", "next", &Delivery::Normal, 8);
    assert!(play.courier.busy() && play.courier.backlog() > 0);
    play.pass(SECOND);
    let piece = |words: &str, ends| Done::Raw(Some("1".into()), words.into(), ends);
    let expected = [
        (0, piece("ab", false)),
        (100 * MS, piece("cd", false)),
        (200 * MS, piece("e", true)),
        (200 * MS, Done::Said("notice".into())),
        (200 * MS, Done::Said("next".into())),
        (200 * MS, Done::Delivered(7)),
        (200 * MS, Done::Delivered(8)),
    ];
    assert_eq!(play.done, expected);
    assert_eq!((play.courier.due(), play.courier.busy(), play.courier.backlog()), (None, false, 0));
}

#[test]
fn with_streams_each_answer_drips_on_its_own() {
    let mut play = Play::new(true);
    play.answer("1", "abc", &drip(100, 1), 7);
    play.answer("2", "xyz", &drip(10, 1), 8);
    play.say("notice");
    play.answer("3", "now", &Delivery::Normal, 9);
    play.pass(SECOND);
    assert_eq!(play.body("1"), ("abc".into(), true));
    assert_eq!(play.body("2"), ("xyz".into(), true));
    let tickets: Vec<_> =
        play.done.iter().filter(|(_, done)| matches!(done, Done::Delivered(_))).cloned().collect();
    let delivered = |at_ms: u64, ticket| (at_ms * MS, Done::Delivered(ticket));
    assert_eq!(tickets, [delivered(0, 9), delivered(20, 8), delivered(200, 7)]);
}

#[test]
fn ec_cfg_015_a_drip_without_delay_is_over_at_once() {
    let mut play = Play::new(false);
    play.answer("1", &"x".repeat(1000), &drip(0, 1), 7);
    play.pass(0);
    assert_eq!(play.count(|done| matches!(done, Done::Raw(..))), 1000);
    assert_eq!(play.done.last(), Some(&(0, Done::Delivered(7))));
}

#[test]
fn a_late_answer_holds_nobody_up() {
    let mut play = Play::new(false);
    play.answer("1", "late", &Delivery::ResponseDelay { delay_ns: SECOND }, 1);
    play.answer("2", "prompt", &Delivery::Normal, 2);
    assert!(play.courier.busy());
    play.pass(2 * SECOND);
    let expected = [
        (0, Done::Said("prompt".into())),
        (0, Done::Delivered(2)),
        (SECOND, Done::Said("late".into())),
        (SECOND, Done::Delivered(1)),
    ];
    assert_eq!(play.done, expected);
}

#[test]
fn a_line_without_an_end_is_padded_and_what_comes_next_goes_on_in_it() {
    let mut play = Play::new(false);
    let endless = Delivery::UnboundedLine { bytes: 10, padding: 'é' };
    play.answer("1", "{abc}", &endless, 1);
    play.pass(0);
    play.say("next");
    assert_eq!(play.wire(), concat!("{abc}ééé", "next\n"));
    assert_eq!(play.count(|done| *done == Done::Delivered(1)), 1);
    assert!(!play.courier.busy());
}

#[test]
fn an_endless_body_is_not_closed() {
    let mut play = Play::new(true);
    let endless = Delivery::UnboundedLine { bytes: 200_000, padding: 'A' };
    play.answer("1", "{}", &endless, 1);
    play.pass(0);
    let (body, ended) = play.body("1");
    assert_eq!((body.len(), ended), (200_000, false));
    assert_eq!(play.count(|done| *done == Done::Delivered(1)), 1);
}

#[test]
fn a_nested_answer_stands_deep_inside() {
    let mut play = Play::new(false);
    let nested = Delivery::NestedJson { depth: 3, key: "a\"".into() };
    play.answer("1", "{}", &nested, 1);
    play.pass(0);
    assert_eq!(play.wire(), "{\"a\\\"\":{\"a\\\"\":{\"a\\\"\":{}}}}\n");
    let mut play = Play::new(false);
    play.answer("1", "{}", &Delivery::NestedJson { depth: 100_000, key: "a".into() }, 1);
    play.pass(0);
    assert_eq!(play.wire().len(), 600_003);
}

#[test]
fn a_cancelled_answer_goes_nowhere_and_its_ticket_is_reported_once() {
    let mut play = Play::new(false);
    play.answer("1", "begun", &drip(100, 1), 1);
    play.answer("2", "waits", &Delivery::Normal, 2);
    play.answer("3", "late", &Delivery::ResponseDelay { delay_ns: SECOND }, 3);
    play.pass(50 * MS);
    for about in ["1", "2", "3", "3", "4"] {
        play.courier.cancel(about.as_bytes());
    }
    assert_eq!(play.courier.due(), Some(0));
    play.pass(10 * SECOND);
    assert_eq!(play.wire(), "begun\n");
    for ticket in 1..=3 {
        assert_eq!(play.count(|done| *done == Done::Delivered(ticket)), 1, "{ticket}");
    }
    assert_eq!(play.courier.backlog(), 0);
}

#[test]
fn a_cancelled_body_ends_where_it_is() {
    let mut play = Play::new(true);
    play.answer("1", "begun", &drip(100, 1), 1);
    play.pass(150 * MS);
    play.courier.cancel(b"1");
    play.pass(150 * MS);
    assert_eq!(play.body("1"), ("be".into(), true));
    assert!(!play.courier.busy());
}

#[test]
fn a_flood_keeps_its_rate_and_its_duration() {
    let mut play = Play::new(false);
    play.start(&flood(1000, 2 * SECOND)).unwrap();
    play.answer("1", "answer", &Delivery::Normal, 1);
    let is_flood = |done: &Done| matches!(done, Done::Said(words) if words.contains("method"));
    play.pass(SECOND - 1);
    assert_eq!(play.count(is_flood), 1000);
    play.pass(10 * SECOND);
    assert_eq!(play.count(is_flood), 2000);
    assert_eq!(play.done[0].1, Done::Said("answer".into()));
    assert!(!play.courier.busy());
}

#[test]
fn a_client_that_does_not_read_is_owed_one_second_of_a_flood() {
    let mut play = Play::new(false);
    play.start(&flood(10_000, 60 * SECOND)).unwrap();
    play.now_ns = 30 * SECOND;
    play.run();
    let first: usize = play.wire().len();
    assert!(first <= RUN_BYTES + 100, "{first}");
    play.pass(30 * SECOND);
    let owed = play.count(|done| matches!(done, Done::Said(_)));
    assert!((10_000..=10_001).contains(&owed), "{owed}");
}

#[test]
fn a_flood_waits_for_what_is_under_way_on_a_pipe() {
    let mut play = Play::new(false);
    play.answer("1", "abc", &drip(500, 1), 1);
    play.start(&flood(10, SECOND)).unwrap();
    play.pass(10 * SECOND);
    let lines: Vec<_> = play.wire().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], "abc");
    assert!(lines.len() > 1 && lines[1..].iter().all(|line| line.contains("method")), "{lines:?}");
}

#[test]
fn a_flood_without_end_keeps_nobody() {
    let mut play = Play::new(false);
    let how = Start { endless: true, params: Some(b"{\"a\":1}"), ..Start::default() };
    play.courier.start(play.at(), &flood(10, SECOND), how).unwrap();
    play.pass(100 * SECOND);
    assert_eq!(play.count(|done| matches!(done, Done::Said(_))), 1001);
    assert!(play.wire().starts_with(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"a\":1}}\n"
    ));
    assert!(!play.courier.busy() && play.courier.due().is_some());
}

#[test]
fn a_batch_is_one_array_that_is_made_as_it_goes() {
    let mut play = Play::new(false);
    let method = "m".to_owned();
    play.start(&Effect::BatchAmplify { count: 10_000, method, params: None }).unwrap();
    assert!(play.courier.backlog() < 1000);
    play.pass(0);
    let wire = play.wire();
    let batch: serde_json::Value = serde_json::from_str(&wire).unwrap();
    assert_eq!(batch.as_array().map(Vec::len), Some(10_000));
    assert!(
        play.done.iter().all(
            |(_, done)| matches!(done, Done::Raw(None, piece, _) if piece.len() <= PIECE_BYTES)
        )
    );
}

#[test]
fn a_pipe_is_filled_with_one_message_and_by_http_there_is_no_pipe() {
    let effect = Effect::PipeDeadlock { bytes: 1_048_576 };
    let mut play = Play::new(false);
    play.start(&effect).unwrap();
    play.pass(0);
    let wire = play.wire();
    assert_eq!(wire.len(), 1_048_576);
    assert!(serde_json::from_str::<serde_json::Value>(&wire).is_ok());
    let mut play = Play::new(true);
    assert!(play.start(&effect).is_err_and(|why| why.contains("pipe")));
    assert!(!play.courier.busy());
}

#[test]
fn requests_with_one_id_are_messages_on_a_pipe_and_raw_events_by_http() {
    let (id, method) = ("\"a\"".to_owned(), "ping".to_owned());
    let effect = Effect::DuplicateRequestIds { count: 3, id, method, params: None };
    let request = "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"ping\"}";
    for (streams, expected) in
        [(false, Done::Said(request.into())), (true, Done::Raw(None, request.into(), true))]
    {
        let mut play = Play::new(streams);
        play.start(&effect).unwrap();
        play.pass(0);
        let acts: Vec<_> = play.done.iter().map(|(_, done)| done.clone()).collect();
        assert_eq!(acts, [expected.clone(), expected.clone(), expected]);
    }
}

#[test]
fn ec_trans_019_an_end_in_order_waits_for_what_was_said() {
    let mut play = Play::new(false);
    play.start(&Effect::CloseConnection { graceful: true, delay_ns: 0 }).unwrap();
    play.start(&flood(10, 60 * SECOND)).unwrap();
    play.answer("1", "abc", &drip(100, 1), 1);
    play.pass(10 * SECOND);
    assert!(play.wire().starts_with("abc\n"), "{}", play.wire());
    let end: Vec<_> = play.done.iter().rev().take(2).rev().cloned().collect();
    assert_eq!(end, [(200 * MS, Done::Left(false)), (200 * MS, Done::Delivered(1))]);
    play.say("nobody hears it");
    assert!(!play.courier.busy() && play.courier.has_left() && play.courier.due().is_none());
    assert!(!play.wire().contains("nobody"));
}

#[test]
fn ec_trans_020_a_forced_end_waits_for_its_delay_alone() {
    let mut play = Play::new(false);
    play.answer("1", "abcdef", &drip(100, 1), 1);
    play.start(&Effect::CloseConnection { graceful: false, delay_ns: 250 * MS }).unwrap();
    play.pass(10 * SECOND);
    assert_eq!(play.wire(), "abc");
    assert_eq!(play.done.last(), Some(&(250 * MS, Done::Left(true))));
}

#[test]
fn with_streams_one_event_ends_before_the_next_begins() {
    let mut play = Play::new(true);
    let batch =
        |method: &str| Effect::BatchAmplify { count: 5000, method: method.into(), params: None };
    let (id, method) = ("1".to_owned(), "ping".to_owned());
    play.start(&batch("a")).unwrap();
    play.run();
    play.start(&Effect::DuplicateRequestIds { count: 2, id, method, params: None }).unwrap();
    play.start(&batch("b")).unwrap();
    play.answer("7", "abc", &drip(0, 1), 1);
    play.pass(0);
    let mut events = vec![String::new()];
    for (_, done) in &play.done {
        if let Done::Raw(None, piece, ends) = done {
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
    let mut play = Play::new(true);
    let close = Effect::CloseConnection { graceful: true, delay_ns: 0 };
    play.answer("1", "abc", &drip(100, 1), 1);
    play.answer("2", "abc", &drip(10, 1), 2);
    let how = Start { about: Some(b"2"), ..Start::default() };
    play.courier.start(play.at(), &close, how).unwrap();
    play.pass(SECOND);
    let left = play.done.iter().position(|(_, done)| matches!(done, Done::Left(false))).unwrap();
    assert_eq!(play.done[left].0, 20 * MS);
    assert_eq!((play.body("1"), play.body("2")), (("abc".into(), true), ("abc".into(), true)));
    assert!(!play.courier.has_left());
}

#[test]
fn side_effects_do_not_pile_up_without_a_bound() {
    let mut play = Play::new(false);
    let started = (0..1000).filter(|_| play.start(&flood(1, 60 * SECOND)).is_ok()).count();
    assert_eq!(started, 64);
}

/// What a property test does next.
#[derive(Debug, Clone)]
enum Step {
    Say,
    Answer(Delivery),
    Flood(u32),
    Pass(u64),
    Cancel(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let delivery = prop_oneof![
        Just(Delivery::Normal),
        (0u64..50, 1usize..20).prop_map(|(delay, chunk)| drip(delay, chunk)),
        (0u64..200).prop_map(|delay| Delivery::ResponseDelay { delay_ns: delay * MS }),
        (0usize..5).prop_map(|depth| Delivery::NestedJson { depth, key: "k".into() }),
    ];
    let step = prop_oneof![
        Just(Step::Say),
        delivery.prop_map(Step::Answer),
        (1u32..1000).prop_map(Step::Flood),
        (0u64..300).prop_map(Step::Pass),
        (0u64..20).prop_map(Step::Cancel),
    ];
    proptest::collection::vec(step, 0..40)
}

/// Plays `steps`; returns how many answers there were, and which were cancelled.
fn play(play: &mut Play, steps: &[Step]) -> (u64, Vec<u64>) {
    let (mut answers, mut cancelled) = (0, Vec::new());
    for step in steps {
        match step {
            Step::Say => play.say("{\"said\":true}"),
            Step::Answer(delivery) => {
                let id = answers.to_string();
                play.answer(
                    &id,
                    &format!("{{\"answer\":{id},\"words\":[1,2,3]}}"),
                    delivery,
                    answers,
                );
                answers += 1;
            }
            Step::Flood(rate) => play.start(&flood(*rate, 100 * MS)).unwrap(),
            Step::Pass(ms) => play.pass(play.now_ns + ms * MS),
            Step::Cancel(ticket) => {
                play.courier.cancel(ticket.to_string().as_bytes());
                cancelled.push(*ticket);
            }
        }
    }
    play.pass(play.now_ns + 1000 * SECOND);
    (answers, cancelled)
}

proptest! {
    #[test]
    fn every_line_of_a_pipe_is_one_message_and_every_ticket_comes_once(steps in steps()) {
        let mut stage = Play::new(false);
        let (answers, cancelled) = play(&mut stage, &steps);
        let wire = stage.wire();
        for line in wire.lines() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{}", line);
        }
        for ticket in 0..answers {
            prop_assert_eq!(stage.count(|done| *done == Done::Delivered(ticket)), 1);
            let answer = format!("{{\"answer\":{ticket},\"words\":[1,2,3]}}");
            let times = wire.matches(&answer).count();
            prop_assert!(times == 1 || times == 0 && cancelled.contains(&ticket));
        }
        prop_assert!(!stage.courier.busy());
        prop_assert_eq!((stage.courier.due(), stage.courier.backlog()), (None, 0));
    }

    #[test]
    fn every_body_of_a_stream_is_its_answer_unless_it_was_cancelled(steps in steps()) {
        let mut stage = Play::new(true);
        let (answers, cancelled) = play(&mut stage, &steps);
        for ticket in 0..answers {
            prop_assert_eq!(stage.count(|done| *done == Done::Delivered(ticket)), 1);
            let answer = format!("{{\"answer\":{ticket},\"words\":[1,2,3]}}");
            let (body, ended) = stage.body(&ticket.to_string());
            let whole = stage.count(|done| *done == Done::Said(answer.clone())) == 1;
            let dripped = ended && body.contains(&answer);
            prop_assert!(whole != dripped || cancelled.contains(&ticket), "{}", body);
        }
        prop_assert_eq!((stage.courier.busy(), stage.courier.due(), stage.courier.backlog()), (false, None, 0));
    }
}
