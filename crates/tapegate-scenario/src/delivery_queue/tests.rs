//! Deliveries and side effects, on a simulated clock.

mod deliveries;
mod effects;
mod properties;

use super::*;
use crate::model::ServerEffect;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// What a queue did, with the time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DeliveryEvent {
    Said(String),
    Told(String, String),
    Raw(Option<String>, String, bool),
    Left(bool),
    Delivered(u64),
}

/// A queue, a clock, and the recorded output.
struct DeliveryTest {
    delivery_queue: DeliveryQueue,
    now_ns: u64,
    done: Vec<(u64, DeliveryEvent)>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn done(act: &ActorAction<'_>) -> DeliveryEvent {
    match act {
        ActorAction::Say(parts) => DeliveryEvent::Said(text(&parts.concat())),
        ActorAction::Tell { about, parts } => {
            DeliveryEvent::Told(text(about), text(&parts.concat()))
        }
        ActorAction::Raw { about, bytes, ends } => {
            DeliveryEvent::Raw(about.map(text), text(bytes), *ends)
        }
        ActorAction::Leave { abrupt, .. } => DeliveryEvent::Left(*abrupt),
        other => panic!("{other:?}"),
    }
}

impl DeliveryTest {
    fn new(streams: bool) -> Self {
        Self { delivery_queue: DeliveryQueue::new(streams), now_ns: 0, done: Vec::new() }
    }

    fn at(&self) -> Timestamp {
        Timestamp { wall_us: 0, mono_ns: self.now_ns }
    }

    fn say(&mut self, message: &str) {
        let (now_ns, list) = (self.now_ns, &mut self.done);
        self.delivery_queue
            .send_unrelated(&[message.as_bytes()], &mut |act| list.push((now_ns, done(&act))));
    }

    fn answer(&mut self, about: &str, message: &str, delivery: &Delivery, ticket: u64) {
        let (at, now_ns, list) = (self.at(), self.now_ns, &mut self.done);
        let (head, tail) = message.split_at(message.len() / 2);
        let parts = [head.as_bytes(), tail.as_bytes()];
        let act = &mut |act: ActorAction<'_>| list.push((now_ns, done(&act)));
        if self.delivery_queue.send_answer(at, about.as_bytes(), &parts, delivery, ticket, act) {
            list.push((now_ns, DeliveryEvent::Delivered(ticket)));
        }
    }

    fn start(&mut self, effect: &ServerEffect) -> Result<(), &'static str> {
        self.delivery_queue.start(self.at(), effect, EffectStart::default())
    }

    fn run(&mut self) {
        let (at, now_ns, list) = (self.at(), self.now_ns, &mut self.done);
        let tickets = self.delivery_queue.run(at, &mut |act| list.push((now_ns, done(&act))));
        list.extend(tickets.into_iter().map(|ticket| (now_ns, DeliveryEvent::Delivered(ticket))));
    }

    /// Runs the queue whenever it is due, until `until_ns`.
    fn pass(&mut self, until_ns: u64) {
        for _ in 0..1_000_000 {
            match self.delivery_queue.next_wakeup() {
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

    /// The bytes written to the pipe.
    fn wire(&self) -> String {
        let mut wire = String::new();
        for (_, done) in &self.done {
            let (message, ends) = match done {
                DeliveryEvent::Said(message) | DeliveryEvent::Told(_, message) => (message, true),
                DeliveryEvent::Raw(_, message, ends) => (message, *ends),
                DeliveryEvent::Left(_) | DeliveryEvent::Delivered(_) => continue,
            };
            wire.push_str(message);
            wire.push_str(if ends { "\n" } else { "" });
        }
        wire
    }

    /// The body of an answer, and whether it has ended.
    fn body(&self, about: &str) -> (String, bool) {
        let mut body = (String::new(), false);
        for (_, done) in &self.done {
            if let DeliveryEvent::Raw(Some(id), words, ends) = done
                && id == about
            {
                assert!(!body.1, "something comes after the end");
                body.0.push_str(words);
                body.1 = *ends;
            }
        }
        body
    }

    fn count(&self, wanted: impl Fn(&DeliveryEvent) -> bool) -> usize {
        self.done.iter().filter(|(_, done)| wanted(done)).count()
    }
}

fn drip(delay_ms: u64, chunk_bytes: usize) -> Delivery {
    Delivery::SlowLoris { delay_ns: delay_ms * MS, chunk_bytes }
}

fn flood(per_second: u32, duration_ns: u64) -> ServerEffect {
    let method = "notifications/message".to_owned();
    ServerEffect::NotificationFlood { per_second, duration_ns, method, params: None }
}
