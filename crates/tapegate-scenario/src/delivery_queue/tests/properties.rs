//! Properties that hold for any sequence of operations.

use proptest::prelude::*;

use super::*;

/// A step of a property test.
#[derive(Debug, Clone)]
enum DeliveryStep {
    Say,
    Answer(Delivery),
    Flood(u32),
    Pass(u64),
    Cancel(u64),
}

fn steps() -> impl Strategy<Value = Vec<DeliveryStep>> {
    let delivery = prop_oneof![
        Just(Delivery::Normal),
        (0u64..50, 1usize..20).prop_map(|(delay, chunk)| drip(delay, chunk)),
        (0u64..200).prop_map(|delay| Delivery::ResponseDelay { delay_ns: delay * MS }),
        (0usize..5).prop_map(|depth| Delivery::NestedJson { depth, key: "k".into() }),
    ];
    let step = prop_oneof![
        Just(DeliveryStep::Say),
        delivery.prop_map(DeliveryStep::Answer),
        (1u32..1000).prop_map(DeliveryStep::Flood),
        (0u64..300).prop_map(DeliveryStep::Pass),
        (0u64..20).prop_map(DeliveryStep::Cancel),
    ];
    proptest::collection::vec(step, 0..40)
}

/// Runs `steps`; returns how many answers there were, and which were cancelled.
fn play(play: &mut DeliveryTest, steps: &[DeliveryStep]) -> (u64, Vec<u64>) {
    let (mut answers, mut cancelled) = (0, Vec::new());
    for step in steps {
        match step {
            DeliveryStep::Say => play.say("{\"said\":true}"),
            DeliveryStep::Answer(delivery) => {
                let id = answers.to_string();
                play.answer(
                    &id,
                    &format!("{{\"answer\":{id},\"words\":[1,2,3]}}"),
                    delivery,
                    answers,
                );
                answers += 1;
            }
            DeliveryStep::Flood(rate) => play.start(&flood(*rate, 100 * MS)).unwrap(),
            DeliveryStep::Pass(ms) => play.pass(play.now_ns + ms * MS),
            DeliveryStep::Cancel(ticket) => {
                play.delivery_queue.cancel(ticket.to_string().as_bytes());
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
        let mut stage = DeliveryTest::new(false);
        let (answers, cancelled) = play(&mut stage, &steps);
        let wire = stage.wire();
        for line in wire.lines() {
            prop_assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{}", line);
        }
        for ticket in 0..answers {
            prop_assert_eq!(stage.count(|done| *done == DeliveryEvent::Delivered(ticket)), 1);
            let answer = format!("{{\"answer\":{ticket},\"words\":[1,2,3]}}");
            let times = wire.matches(&answer).count();
            prop_assert!(times == 1 || times == 0 && cancelled.contains(&ticket));
        }
        prop_assert!(!stage.delivery_queue.is_busy());
        prop_assert_eq!((stage.delivery_queue.next_wakeup(), stage.delivery_queue.backlog_bytes()), (None, 0));
    }

    #[test]
    fn every_body_of_a_stream_is_its_answer_unless_it_was_cancelled(steps in steps()) {
        let mut stage = DeliveryTest::new(true);
        let (answers, cancelled) = play(&mut stage, &steps);
        for ticket in 0..answers {
            prop_assert_eq!(stage.count(|done| *done == DeliveryEvent::Delivered(ticket)), 1);
            let answer = format!("{{\"answer\":{ticket},\"words\":[1,2,3]}}");
            let (body, ended) = stage.body(&ticket.to_string());
            let whole = stage.count(|done| *done == DeliveryEvent::Said(answer.clone())) == 1;
            let dripped = ended && body.contains(&answer);
            prop_assert!(whole != dripped || cancelled.contains(&ticket), "{}", body);
        }
        prop_assert_eq!((stage.delivery_queue.is_busy(), stage.delivery_queue.next_wakeup(), stage.delivery_queue.backlog_bytes()), (false, None, 0));
    }
}
