//! Drives one channel: sends in order, tries again after failures, and asks for answers.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use tapegate_store::approvals::ChannelReceipts;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;

use super::{
    ChannelAnswer, ChannelError, ChannelOutcome, ChannelRequest, DecisionChannel, OpenMessage,
    RetryAdvice,
};

/// The first and the longest pause after a failure.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// How often the end of a request is told before that is given up: no decision depends on it.
const CONCLUDE_TRIES_MAX: u32 = 8;
/// The longest pause between polls while nothing changes.
const POLL_PAUSE_MAX: Duration = Duration::from_secs(15);

/// Something that has happened to a request.
#[derive(Debug, Clone)]
pub(crate) enum ChannelEvent {
    /// It waits for an answer.
    Opened(Rc<ChannelRequest>),
    /// It has ended.
    Ended(Rc<ChannelRequest>, ChannelOutcome),
}

/// What a worker reports to the hub.
#[derive(Debug)]
pub(crate) enum ChannelReport {
    /// A person has answered.
    Answer { channel: String, answer: ChannelAnswer },
    /// People have been told of a request.
    Announced { channel: String, id: String },
    /// The channel does not work; reported once until it works again.
    Failed { channel: String, message: String },
    /// The channel works again.
    Recovered { channel: String },
}

/// The worker of one channel.
pub(crate) struct ChannelWorker {
    name: String,
    channel: Rc<dyn DecisionChannel>,
    events: UnboundedReceiver<ChannelEvent>,
    receipts: ChannelReceipts,
    reports: UnboundedSender<ChannelReport>,
    /// Requests that people were told of, with the answers that were reported.
    open: BTreeMap<String, (OpenMessage, Vec<ChannelAnswer>)>,
    jobs: VecDeque<ChannelJob>,
    /// How often the current job has failed.
    failures: u32,
    /// Nothing is sent before.
    paused_until: Instant,
    /// No message is sent before: servers limit how many a channel may send.
    next_send: Instant,
    next_poll: Instant,
    poll_pause: Duration,
    is_failing: bool,
}

/// A message to be sent.
struct ChannelJob {
    request: Rc<ChannelRequest>,
    /// How the request ended; `None` if it is to be announced.
    outcome: Option<ChannelOutcome>,
}

impl ChannelWorker {
    pub(crate) fn new(
        name: &str,
        channel: Rc<dyn DecisionChannel>,
        receipts: ChannelReceipts,
        events: UnboundedReceiver<ChannelEvent>,
        reports: UnboundedSender<ChannelReport>,
    ) -> Self {
        let now = Instant::now();
        let poll_pause = channel.poll_interval().unwrap_or(POLL_PAUSE_MAX);
        Self {
            name: name.to_owned(),
            channel,
            events,
            receipts,
            reports,
            open: BTreeMap::new(),
            jobs: VecDeque::new(),
            failures: 0,
            paused_until: now,
            next_send: now,
            next_poll: now,
            poll_pause,
            is_failing: false,
        }
    }

    /// Runs until the hub has no use for the channel any more.
    pub(crate) async fn run(mut self) {
        loop {
            let due = self.next_due();
            let pause = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Events first: a request that has ended need not be announced.
                biased;
                event = self.events.recv() => match event {
                    Some(event) => self.take_event(event),
                    None => return,
                },
                () = pause => self.step().await,
                () = self.channel.news() => self.next_poll = Instant::now(),
            }
        }
    }

    /// When there is something to do next.
    fn next_due(&self) -> Option<Instant> {
        let send = (!self.jobs.is_empty()).then_some(self.next_send);
        let poll = self.polls().then_some(self.next_poll);
        let due = send.into_iter().chain(poll).min()?;
        // A server that has asked for a pause gets it from polls too.
        Some(due.max(self.paused_until))
    }

    fn polls(&self) -> bool {
        self.channel.poll_interval().is_some()
            && (!self.open.is_empty() || self.channel.is_disconnected())
    }

    fn take_event(&mut self, event: ChannelEvent) {
        match event {
            ChannelEvent::Opened(request) => {
                // Told before a restart of the hub: people must not be asked twice.
                if let Some(receipt) = self.receipts.read(&request.id) {
                    return self.add_open(&request, receipt);
                }
                self.jobs.push_back(ChannelJob { request, outcome: None });
            }
            ChannelEvent::Ended(request, outcome) => {
                let before = self.jobs.len();
                // What was not sent yet need not be.
                self.jobs.retain(|job| job.request.id != request.id);
                if before > self.jobs.len() {
                    self.failures = 0;
                }
                // People who were never told need not be told of the end.
                if self.open.contains_key(&request.id) {
                    self.jobs.push_back(ChannelJob { request, outcome: Some(outcome) });
                }
            }
        }
    }

    /// Sends the next message, or asks for answers.
    async fn step(&mut self) {
        // A poll has its turn between messages, or a long queue would delay every answer.
        if self.jobs.is_empty() || self.polls() && self.next_poll <= Instant::now() {
            return self.poll().await;
        }
        let Some(job) = self.jobs.pop_front() else { return };
        let done = match &job.outcome {
            None => self.announce(&job.request).await,
            Some(outcome) => self.conclude(&job.request, outcome).await,
        };
        // From its end, so that a slow network cannot bring two messages closer together.
        self.next_send = Instant::now() + self.channel.send_interval();
        match done {
            Ok(()) => self.report_success(),
            Err(error) => {
                // An announcement is tried until its request ends: a person may repair the channel.
                let is_given_up = error.retry == RetryAdvice::Never
                    || job.outcome.is_some() && self.failures + 1 >= CONCLUDE_TRIES_MAX;
                if is_given_up {
                    self.forget(&job);
                    self.report_failure(&error);
                    self.failures = 0;
                } else {
                    // In front, so that messages stay in order.
                    self.jobs.push_front(job);
                    self.pause_after(&error);
                }
            }
        }
    }

    async fn announce(&mut self, request: &Rc<ChannelRequest>) -> Result<(), ChannelError> {
        let receipt = self.channel.announce(request).await?;
        // If this cannot be written, people are told again after a restart.
        self.receipts.write(&request.id, &receipt).ok();
        self.add_open(request, receipt);
        let (channel, id) = (self.name.clone(), request.id.clone());
        self.reports.send(ChannelReport::Announced { channel, id }).ok();
        Ok(())
    }

    fn add_open(&mut self, request: &Rc<ChannelRequest>, receipt: String) {
        let is_whole = self.channel.shows_all(request);
        let message = OpenMessage { request: Rc::clone(request), receipt, is_whole };
        let polled_before = self.polls();
        self.open.insert(request.id.clone(), (message, Vec::new()));
        // A person may answer at once.
        self.poll_pause = self.channel.poll_interval().unwrap_or(POLL_PAUSE_MAX);
        let soon = Instant::now() + self.poll_pause;
        // Never later than it was, or many calls in a row would put off every answer.
        self.next_poll = if polled_before { self.next_poll.min(soon) } else { soon };
    }

    async fn conclude(
        &mut self,
        request: &ChannelRequest,
        outcome: &ChannelOutcome,
    ) -> Result<(), ChannelError> {
        let Some((message, _)) = self.open.get(&request.id) else { return Ok(()) };
        self.channel.conclude(request, &message.receipt, outcome).await?;
        self.open.remove(&request.id);
        self.receipts.remove(&request.id);
        Ok(())
    }

    async fn poll(&mut self) {
        let messages: Vec<OpenMessage> =
            self.open.values().map(|(message, _)| message.clone()).collect();
        let polled = self.channel.poll(&messages).await;
        let is_partial = polled.as_ref().is_ok_and(|news| news.is_partial);
        self.next_poll = match self.channel.poll_interval() {
            Some(interval) if is_partial => Instant::now() + interval,
            _ => {
                // Slower and slower: a call that waits for hours needs no answer within seconds.
                self.poll_pause = (self.poll_pause.mul_f64(1.25)).min(POLL_PAUSE_MAX);
                Instant::now() + self.poll_pause
            }
        };
        match polled {
            Ok(news) => {
                self.report_success();
                self.replace_receipts(news.receipts);
                for answer in news.answers {
                    // It was concluded while the answer was on its way.
                    let Some((_, reported)) = self.open.get_mut(&answer.id) else { continue };
                    // An answer that did not count would be reported with every poll.
                    if !reported.contains(&answer) {
                        reported.push(answer.clone());
                        let channel = self.name.clone();
                        self.reports.send(ChannelReport::Answer { channel, answer }).ok();
                    }
                }
            }
            Err(error) => self.pause_after(&error),
        }
    }

    /// Keeps the receipts of messages that were sent again.
    fn replace_receipts(&mut self, receipts: Vec<(String, String)>) {
        for (id, receipt) in receipts {
            let Some((message, _)) = self.open.get_mut(&id) else { continue };
            // If this cannot be written, people see the message once more after a restart.
            self.receipts.write(&id, &receipt).ok();
            message.receipt = receipt;
        }
    }

    /// Drops what belongs to a message that cannot be sent.
    fn forget(&mut self, job: &ChannelJob) {
        if job.outcome.is_some() {
            self.open.remove(&job.request.id);
            self.receipts.remove(&job.request.id);
        }
    }

    fn pause_after(&mut self, error: &ChannelError) {
        let pause = match error.retry {
            RetryAdvice::After(pause) => pause,
            _ => PAUSE_MAX.min(PAUSE_MIN * 2u32.saturating_pow(self.failures.min(6))),
        };
        self.failures += 1;
        self.paused_until = Instant::now() + pause;
        self.report_failure(error);
    }

    fn report_failure(&mut self, error: &ChannelError) {
        // Once for each outage, or the log would repeat it with every attempt.
        if !std::mem::replace(&mut self.is_failing, true) {
            let (channel, message) = (self.name.clone(), error.message.clone());
            self.reports.send(ChannelReport::Failed { channel, message }).ok();
        }
    }

    fn report_success(&mut self) {
        self.failures = 0;
        if std::mem::replace(&mut self.is_failing, false) {
            self.reports.send(ChannelReport::Recovered { channel: self.name.clone() }).ok();
        }
    }
}
