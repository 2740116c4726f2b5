//! Delivery of the messages to one client: at once, delayed, in pieces, or with side effects.
//!
//! On a pipe, a message that has begun is finished before anything else is sent; with streams,
//! answers are independent. Delayed work is scheduled by [`DeliveryQueue::next_wakeup`] and done by
//! [`DeliveryQueue::run`], a bounded amount at a time, so that output is not produced faster than it is
//! read.
//!
//! A line sent without an end stays open: the next message continues it, as on any pipe.

mod delivery_line;
mod effects;
mod flood;
mod repeated_bytes;

use std::collections::{BTreeMap, VecDeque};

use tapegate_core::actor::ActorAction;
use tapegate_core::frame::same_id;
use tapegate_core::time::Timestamp;

pub use effects::EffectStart;

use crate::model::Delivery;
use delivery_line::{DeliveryLine, DeliveryLoad, DeliveryPace, nest_answer, padded, raw};
use flood::MessageFlood;
use repeated_bytes::RepeatedBytes;

/// The largest piece of a message sent in pieces.
const PIECE_BYTES: usize = 32 * 1024;
/// How many bytes one run may send.
const RUN_BYTES: usize = 64 * 1024;

/// Delivers the messages to one client.
#[derive(Debug, Default)]
pub struct DeliveryQueue {
    /// Whether each answer has its own stream.
    streams: bool,
    /// Messages being sent; on a pipe only the first is, and the others wait.
    lines: VecDeque<DeliveryLine>,
    /// Delayed answers, by due time and order of arrival.
    late: BTreeMap<(u64, u64), DeliveryLine>,
    lates: u64,
    floods: Vec<MessageFlood>,
    leaving: Vec<PendingClose>,
    /// Whether the client was disconnected.
    left: bool,
    /// Tickets still to be reported.
    delivered: Vec<u64>,
    /// How many bytes all queued messages take.
    backlog: usize,
    piece: Vec<u8>,
}

/// A disconnect that is pending.
#[derive(Debug)]
struct PendingClose {
    due_ns: u64,
    graceful: bool,
    /// The request that caused it.
    about: Option<Box<[u8]>>,
}

impl DeliveryQueue {
    /// Creates a queue for a client with a stream per answer, or with one pipe.
    pub fn new(streams: bool) -> Self {
        Self { streams, ..Self::default() }
    }

    /// Sends a message that belongs to no request. The parts together are one message.
    pub fn send_unrelated(&mut self, parts: &[&[u8]], act: &mut dyn FnMut(ActorAction<'_>)) {
        // Dropped: the connection is closed, and an error would have no reader.
        if self.left {
        } else if self.is_blocked() {
            self.wait(DeliveryLoad::Message(parts.concat().into()), None, None);
        } else {
            act(ActorAction::Say(parts));
        }
    }

    /// Sends a message that belongs to the request `about`.
    pub fn send_related(
        &mut self,
        about: &[u8],
        parts: &[&[u8]],
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        if self.left {
        } else if self.is_blocked() {
            self.wait(DeliveryLoad::Message(parts.concat().into()), Some(about), None);
        } else {
            act(ActorAction::Tell { about, parts });
        }
    }

    /// Answers the request `about`. Returns true if the answer was sent; otherwise [`DeliveryQueue::run`]
    /// reports its ticket once it has been.
    #[must_use]
    pub fn send_answer(
        &mut self,
        at: Timestamp,
        about: &[u8],
        parts: &[&[u8]],
        delivery: &Delivery,
        delivery_id: u64,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) -> bool {
        if self.left {
            return true;
        }
        let (load, late_ns) = match delivery {
            // Nearly all answers end here, without a copy.
            Delivery::Normal if !self.is_blocked() => {
                act(ActorAction::Say(parts));
                return true;
            }
            Delivery::Normal => (DeliveryLoad::Message(parts.concat().into()), 0),
            Delivery::ResponseDelay { delay_ns } => {
                (DeliveryLoad::Message(parts.concat().into()), *delay_ns)
            }
            Delivery::SlowLoris { delay_ns, chunk_bytes } => {
                let pace = DeliveryPace { chunk_bytes: *chunk_bytes, delay_ns: *delay_ns };
                (raw(at, RepeatedBytes::of(parts), pace, true), 0)
            }
            Delivery::UnboundedLine { bytes, padding } => {
                // Never ended: the attack is a line without an end, which the next message
                // continues.
                (raw(at, padded(parts, *bytes, *padding), DeliveryPace::FULL, false), 0)
            }
            Delivery::NestedJson { depth, key } => {
                (raw(at, nest_answer(parts, *depth, key), DeliveryPace::FULL, true), 0)
            }
        };
        match late_ns {
            0 => self.wait(load, Some(about), Some(delivery_id)),
            // Beside the queue: a delayed answer must not hold up those behind it.
            _ => self.delay(at.mono_ns.saturating_add(late_ns), load, about, delivery_id),
        }
        false
    }

    /// Cancels the answer to the request `about`. One that has begun stops where it is; on a pipe,
    /// which needs whole lines, the rest is sent as fast as possible. The ticket is reported as
    /// delivered.
    pub fn cancel(&mut self, about: &[u8]) {
        let is_it = |line: &DeliveryLine| {
            line.delivery_id.is_some() && line.about.as_ref().is_some_and(|id| same_id(id, about))
        };
        let mut gone: Vec<DeliveryLine> =
            self.late.extract_if(.., |_, line| is_it(line)).map(|it| it.1).collect();
        for mut line in std::mem::take(&mut self.lines) {
            match is_it(&line) {
                // Nothing of it is out, so it can vanish without leaving half a line.
                true if !line.has_begun() => gone.push(line),
                true => {
                    // A stream can just end; on a pipe, half a line would spoil the next message.
                    line.finish_early(self.streams);
                    self.lines.push_back(line);
                }
                false => self.lines.push_back(line),
            }
        }
        // Reported as delivered, or a phase would wait for them without end.
        gone.iter().for_each(|line| self.line_finished(line));
    }

    /// Does the work that is due, up to a limit; the rest is due at once. Returns the tickets of
    /// the answers that were delivered, each once.
    #[must_use]
    pub fn run(&mut self, at: Timestamp, act: &mut dyn FnMut(ActorAction<'_>)) -> Vec<u64> {
        if !self.left {
            self.enqueue_delayed(at);
            let mut budget = RUN_BYTES;
            // Answers before floods, or a flood could starve them. Disconnecting comes last and
            // sees what is left.
            self.run_lines(at, &mut budget, act);
            self.run_floods(at, &mut budget, act);
            self.disconnect(at, act);
        }
        std::mem::take(&mut self.delivered)
    }

    /// When it needs to run next, by the monotonic clock in nanoseconds.
    pub fn next_wakeup(&self) -> Option<u64> {
        if !self.delivered.is_empty() {
            // Tickets may come from a cancellation, after which nothing else wakes the queue.
            return Some(0);
        }
        let lines = match self.streams {
            true => self.lines.iter().map(DeliveryLine::due_ns).min(),
            // On a pipe only the first line is being sent; the others cannot be due before it.
            false => self.lines.front().map(DeliveryLine::due_ns),
        };
        let late = self.late.first_key_value().map(|((due_ns, _), _)| *due_ns);
        let floods =
            self.floods.iter().filter(|_| !self.is_blocked()).map(MessageFlood::due_ns).min();
        let leaving = self.leaving.iter().filter(|leaving| self.can_disconnect(leaving));
        let leaving = leaving.map(|leaving| leaving.due_ns).min();
        lines.into_iter().chain(late).chain(floods).chain(leaving).min()
    }

    /// Whether anything is left to send or do, endless floods excluded.
    pub fn is_busy(&self) -> bool {
        let waits = !self.lines.is_empty() || !self.late.is_empty() || !self.delivered.is_empty();
        // A flood without end must not keep the process alive after its client has left.
        waits || !self.leaving.is_empty() || self.floods.iter().any(|flood| flood.times.is_some())
    }

    /// How many bytes are queued. The caller stops reading from the client above some limit.
    pub fn backlog_bytes(&self) -> usize {
        self.backlog
    }

    /// Whether the client was disconnected, so that nothing more is sent. With streams only the
    /// caller knows whether other clients remain.
    pub fn has_disconnected(&self) -> bool {
        self.left
    }

    /// Whether another message must end before this one can be sent.
    fn is_blocked(&self) -> bool {
        !self.streams && !self.lines.is_empty()
    }

    fn wait(&mut self, load: DeliveryLoad, about: Option<&[u8]>, delivery_id: Option<u64>) {
        let line = self.enqueue(load, about, delivery_id);
        self.lines.push_back(line);
    }

    fn delay(&mut self, due_ns: u64, load: DeliveryLoad, about: &[u8], delivery_id: u64) {
        let line = self.enqueue(load, Some(about), Some(delivery_id));
        self.lates += 1;
        // The counter keeps answers with the same due time apart, in order of arrival.
        self.late.insert((due_ns, self.lates), line);
    }

    fn enqueue(
        &mut self,
        load: DeliveryLoad,
        about: Option<&[u8]>,
        delivery_id: Option<u64>,
    ) -> DeliveryLine {
        let kept = match &load {
            DeliveryLoad::Message(text) => text.len(),
            DeliveryLoad::Raw(raw) => raw.payload.memory_bytes(),
        };
        let bytes = kept + size_of::<DeliveryLine>();
        self.backlog += bytes;
        DeliveryLine { about: about.map(Into::into), load, delivery_id, bytes }
    }

    /// Accounts for a line that was sent or dropped.
    fn line_finished(&mut self, line: &DeliveryLine) {
        self.backlog -= line.bytes;
        self.delivered.extend(line.delivery_id);
    }

    /// Moves delayed answers that are now due to the queue.
    fn enqueue_delayed(&mut self, at: Timestamp) {
        while let Some(first) = self.late.first_entry()
            && first.key().0 <= at.mono_ns
        {
            // Behind what already waits: a delayed answer has no priority when its time comes.
            self.lines.push_back(first.remove());
        }
    }

    fn run_lines(
        &mut self,
        at: Timestamp,
        budget: &mut usize,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        let (mut index, mut in_event) = (0, self.is_in_event());
        while let Some(line) = self.lines.get_mut(index)
            && *budget > 0
        {
            // Events share one stream, so one must end before the next begins.
            let may_go = !in_event || line.about.is_some() || line.has_begun();
            let is_due = may_go && line.due_ns() <= at.mono_ns;
            if is_due && line.send(at, budget, &mut self.piece, act) {
                if let Some(line) = self.lines.remove(index) {
                    in_event &= line.about.is_some();
                    self.line_finished(&line);
                }
            } else if self.streams {
                in_event |= line.about.is_none() && line.has_begun();
                index += 1;
            } else {
                return;
            }
        }
        if index > 0 && *budget == 0 {
            // Lines that had no turn go first in the next run.
            self.lines.rotate_left(index.min(self.lines.len()));
        }
    }

    fn run_floods(
        &mut self,
        at: Timestamp,
        budget: &mut usize,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        if self.is_blocked() {
            return;
        }
        let (in_event, mut freed) = (self.is_in_event(), 0);
        self.floods.retain_mut(|flood| {
            // Raw bytes in the middle of another event would corrupt both.
            let over = !(flood.raw && in_event) && flood.send(at, budget, act);
            freed += if over { flood.bytes() } else { 0 };
            !over
        });
        self.backlog -= freed;
    }

    /// Whether an event that belongs to no request has begun but not ended.
    fn is_in_event(&self) -> bool {
        self.streams && self.lines.iter().any(|line| line.about.is_none() && line.has_begun())
    }

    /// A graceful disconnect waits for queued messages (with streams, for those of its request).
    fn can_disconnect(&self, leaving: &PendingClose) -> bool {
        let holds = |line: &DeliveryLine| match (&leaving.about, &line.about) {
            (Some(about), Some(other)) if self.streams => same_id(about, other),
            _ => true,
        };
        !leaving.graceful || !self.lines.iter().chain(self.late.values()).any(holds)
    }

    fn disconnect(&mut self, at: Timestamp, act: &mut dyn FnMut(ActorAction<'_>)) {
        while let Some(index) =
            self.leaving.iter().position(|one| one.due_ns <= at.mono_ns && self.can_disconnect(one))
        {
            let PendingClose { graceful, about, .. } = self.leaving.swap_remove(index);
            act(ActorAction::Leave { about: about.as_deref(), abrupt: !graceful });
            if !self.streams || about.is_none() {
                // Tickets survive, because phases wait for these answers even though the client is
                // gone.
                let delivered = std::mem::take(&mut self.delivered);
                *self = Self { left: true, delivered, ..Self::new(self.streams) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
