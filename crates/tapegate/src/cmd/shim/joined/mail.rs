//! Events on their way to a hub whose activity log cannot be written from here.
//!
//! They go in their order, and go again until the hub has taken them; what it has taken already it takes
//! no second time. While it does not take them there is trouble, in which production lets no call pass.
//! What waits is bounded. When a session ends, what is left has some time to arrive.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tapegate_hub::api::{EventLine, EventsRequest};
use tapegate_hub::client::{Client, ClientError};
use tokio::sync::{mpsc, oneshot};

use super::super::journal::{Posted, Sink};
use crate::logs::{Level, Log};

/// How many events go to the hub at once.
const EVENTS_MAX: usize = 256;
/// How many may wait.
const WAITING_MAX: usize = 16 * 1024;
/// How long it takes until the hub is tried again, at first and at most.
const AGAIN: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How long what is left has at the end.
const LAST: Duration = Duration::from_secs(2);

/// Where it can be waited for that events arrive.
pub(super) struct Mail {
    waiters: mpsc::UnboundedSender<oneshot::Sender<()>>,
    log: Log,
}

/// Who carries events to the hub.
struct Carrier {
    client: Arc<Client>,
    events: Events,
    /// What is being sent; it stays the same until it has arrived.
    under_way: Option<EventsRequest>,
    /// The name of the session, by which its letters are known.
    session: String,
    letters: u64,
    trouble: Arc<Mutex<Option<String>>>,
    log: Log,
}

/// Events that were handed in.
struct Events {
    coming: mpsc::UnboundedReceiver<EventLine>,
    waiting: VecDeque<EventLine>,
    lost: u64,
}

/// Has events go to the hub.
pub(super) fn posted(client: &Arc<Client>, session: &str, log: &Log) -> (Sink, Mail) {
    let (events, coming) = mpsc::unbounded_channel();
    let (waiters, asked) = mpsc::unbounded_channel();
    let trouble = Arc::new(Mutex::new(None));
    let carrier = Carrier {
        client: Arc::clone(client),
        events: Events { coming, waiting: VecDeque::new(), lost: 0 },
        under_way: None,
        session: session.to_owned(),
        letters: 0,
        trouble: Arc::clone(&trouble),
        log: log.clone(),
    };
    tokio::spawn(carrier.run(asked));
    (Sink::Hub(Posted { events, trouble }), Mail { waiters, log: log.clone() })
}

impl Mail {
    /// Waits until everything has arrived that was handed in, as long as that is worth it.
    pub(super) async fn last(&self) {
        let (done, arrived) = oneshot::channel();
        self.waiters.send(done).ok();
        if !matches!(tokio::time::timeout(LAST, arrived).await, Ok(Ok(()))) {
            self.log.say(Level::Error, "the last events could not be sent to the hub and are lost");
        }
    }
}

impl Carrier {
    async fn run(mut self, mut asked: mpsc::UnboundedReceiver<oneshot::Sender<()>>) {
        let mut waiters = Vec::new();
        let mut pause = AGAIN.0;
        loop {
            self.events.gather();
            if self.under_way.is_none() && self.events.waiting.is_empty() {
                waiters.drain(..).for_each(|done: oneshot::Sender<()>| _ = done.send(()));
                tokio::select! {
                    event = self.events.coming.recv() => match event {
                        Some(event) => self.events.keep(event),
                        None => return,
                    },
                    Some(done) = asked.recv() => waiters.push(done),
                }
                continue;
            }
            if self.send().await {
                pause = AGAIN.0;
                continue;
            }
            tokio::select! {
                () = self.events.meanwhile(tokio::time::sleep(pause)) => {}
                Some(done) = asked.recv() => waiters.push(done),
            }
            pause = (pause * 2).min(AGAIN.1);
        }
    }

    /// Sends what is next; false if it has to be sent again.
    async fn send(&mut self) -> bool {
        let letter = self.under_way.take().unwrap_or_else(|| {
            let count = self.events.waiting.len().min(EVENTS_MAX);
            self.letters += 1;
            let batch = Some(format!("{}-{}", self.session, self.letters));
            EventsRequest { batch, events: self.events.waiting.drain(..count).collect() }
        });
        let sent = self.events.meanwhile(self.client.events(&letter)).await;
        let words = sent.as_ref().err().map(|error| format!("events cannot be sent: {error}"));
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(words), None) = (&words, &*trouble) {
            self.log.say(Level::Error, words);
        }
        *trouble = words;
        drop(trouble);
        match sent {
            Ok(_) => self.tell_lost(),
            // It will never take these.
            Err(ClientError::Status { status: 400..=499, .. }) => {
                self.events.lost += letter.events.len() as u64;
            }
            Err(_) => self.under_way = Some(letter),
        }
        self.under_way.is_none()
    }

    fn tell_lost(&mut self) {
        let lost = std::mem::take(&mut self.events.lost);
        if lost > 0 {
            self.log
                .say(Level::Error, &format!("{lost} events did not reach the hub and are lost"));
        }
    }
}

impl Events {
    /// Takes in what was handed in.
    fn gather(&mut self) {
        while let Ok(event) = self.coming.try_recv() {
            self.keep(event);
        }
    }

    fn keep(&mut self, event: EventLine) {
        match self.waiting.len() < WAITING_MAX {
            true => self.waiting.push_back(event),
            false => self.lost += 1,
        }
    }

    /// Waits for something, and takes in events meanwhile.
    async fn meanwhile<T>(&mut self, something: impl Future<Output = T>) -> T {
        tokio::pin!(something);
        loop {
            tokio::select! {
                done = &mut something => return done,
                Some(event) = self.coming.recv() => self.keep(event),
            }
        }
    }
}
