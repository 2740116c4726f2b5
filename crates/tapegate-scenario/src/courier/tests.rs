//! Deliveries and side effects, on a simulated clock.

mod deliveries;
mod effects;
mod properties;

use super::*;
use crate::model::Effect;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1000 * MS;

/// What a courier did, with the time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Done {
    Said(String),
    Told(String, String),
    Raw(Option<String>, String, bool),
    Left(bool),
    Delivered(u64),
}

/// A courier, a clock, and the recorded output.
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

    /// Runs the courier whenever it is due, until `until_ns`.
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

    /// The bytes written to the pipe.
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

    /// The body of an answer, and whether it has ended.
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
