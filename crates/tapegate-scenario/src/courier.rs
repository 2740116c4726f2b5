//! How what is said at one seat travels: at once, late, in pieces, or with more than was asked for.
//!
//! On a pipe, what has begun is finished before anything else is sent; with streams, each answer
//! goes its own way. What takes its time is scheduled by [`Courier::due`] and done by
//! [`Courier::run`], a bounded piece at a time, so that nothing gathers faster than it is taken.
//!
//! A line without an end stays open: what is said next goes on in it, as on any pipe.

mod effects;
mod flood;
mod line;
mod parcel;

use std::collections::{BTreeMap, VecDeque};

use tapegate_core::actor::Act;
use tapegate_core::frame::same_id;
use tapegate_core::time::At;

pub use effects::Start;

use crate::model::Delivery;
use flood::Flood;
use line::{Line, Load, Pace, nested, padded, raw};
use parcel::Parcel;

/// The largest piece of what goes in pieces.
const PIECE_BYTES: usize = 32 * 1024;
/// How much is sent in one run.
const RUN_BYTES: usize = 64 * 1024;

/// Carries what is said at one seat.
#[derive(Debug)]
pub struct Courier {
    /// Whether each answer has a stream of its own.
    streams: bool,
    /// What is under way; on a pipe only the first is, and the others wait.
    lines: VecDeque<Line>,
    /// Answers that are held back, by the moment they are due.
    late: BTreeMap<(u64, u64), Line>,
    lates: u64,
    floods: Vec<Flood>,
    leaving: Vec<Leaving>,
    /// Whether the client was left.
    left: bool,
    /// Tickets that are to be reported.
    delivered: Vec<u64>,
    /// How much room everything takes that waits.
    backlog: usize,
    piece: Vec<u8>,
}

/// An end that is to come.
#[derive(Debug)]
struct Leaving {
    due_ns: u64,
    graceful: bool,
    /// The request that it is because of.
    about: Option<Box<[u8]>>,
}

impl Courier {
    /// A courier for a seat where each answer has a stream of its own, or all share a pipe.
    pub fn new(streams: bool) -> Self {
        Self {
            streams,
            lines: VecDeque::new(),
            late: BTreeMap::new(),
            lates: 0,
            floods: Vec::new(),
            leaving: Vec::new(),
            left: false,
            delivered: Vec::new(),
            backlog: 0,
            piece: Vec::new(),
        }
    }

    /// Says something that belongs to no request. The parts together are one message.
    pub fn say(&mut self, parts: &[&[u8]], act: &mut dyn FnMut(Act<'_>)) {
        if self.left {
        } else if self.is_blocked() {
            self.wait(Load::Message(parts.concat().into()), None, None);
        } else {
            act(Act::Say(parts));
        }
    }

    /// Says something because of the request `about`.
    pub fn tell(&mut self, about: &[u8], parts: &[&[u8]], act: &mut dyn FnMut(Act<'_>)) {
        if self.left {
        } else if self.is_blocked() {
            self.wait(Load::Message(parts.concat().into()), Some(about), None);
        } else {
            act(Act::Tell { about, parts });
        }
    }

    /// Answers the request `about`. True means that the answer has gone; otherwise
    /// [`Courier::run`] reports its ticket once it has.
    #[must_use]
    pub fn answer(
        &mut self,
        at: At,
        about: &[u8],
        parts: &[&[u8]],
        delivery: &Delivery,
        ticket: u64,
        act: &mut dyn FnMut(Act<'_>),
    ) -> bool {
        if self.left {
            return true;
        }
        let (load, late_ns) = match delivery {
            Delivery::Normal if !self.is_blocked() => {
                act(Act::Say(parts));
                return true;
            }
            Delivery::Normal => (Load::Message(parts.concat().into()), 0),
            Delivery::ResponseDelay { delay_ns } => {
                (Load::Message(parts.concat().into()), *delay_ns)
            }
            Delivery::SlowLoris { delay_ns, chunk_bytes } => {
                let pace = Pace { chunk_bytes: *chunk_bytes, delay_ns: *delay_ns };
                (raw(at, Parcel::of(parts), pace, true), 0)
            }
            Delivery::UnboundedLine { bytes, padding } => {
                (raw(at, padded(parts, *bytes, *padding), Pace::FULL, false), 0)
            }
            Delivery::NestedJson { depth, key } => {
                (raw(at, nested(parts, *depth, key), Pace::FULL, true), 0)
            }
        };
        match late_ns {
            0 => self.wait(load, Some(about), Some(ticket)),
            _ => self.hold_back(at.mono_ns.saturating_add(late_ns), load, about, ticket),
        }
        false
    }

    /// Lets the answer to the request `about` go. What has begun ends where it is, or on a pipe, which
    /// must have whole lines, as fast as it can. The ticket is reported as if it had been delivered.
    pub fn cancel(&mut self, about: &[u8]) {
        let is_it = |line: &Line| {
            line.ticket.is_some() && line.about.as_ref().is_some_and(|id| same_id(id, about))
        };
        let mut gone: Vec<Line> =
            self.late.extract_if(.., |_, line| is_it(line)).map(|it| it.1).collect();
        for mut line in std::mem::take(&mut self.lines) {
            match is_it(&line) {
                true if !line.has_begun() => gone.push(line),
                true => {
                    line.hasten(self.streams);
                    self.lines.push_back(line);
                }
                false => self.lines.push_back(line),
            }
        }
        gone.iter().for_each(|line| self.done(line));
    }

    /// Does what is due, up to a bound; what is left is due at once. Returns the tickets of answers
    /// that have gone, each once.
    #[must_use]
    pub fn run(&mut self, at: At, act: &mut dyn FnMut(Act<'_>)) -> Vec<u64> {
        if !self.left {
            self.run_late(at);
            let mut budget = RUN_BYTES;
            self.run_lines(at, &mut budget, act);
            self.run_floods(at, &mut budget, act);
            self.leave(at, act);
        }
        std::mem::take(&mut self.delivered)
    }

    /// When it wants to run, by the monotonic clock in nanoseconds.
    pub fn due(&self) -> Option<u64> {
        if !self.delivered.is_empty() {
            return Some(0);
        }
        let lines = match self.streams {
            true => self.lines.iter().map(Line::due_ns).min(),
            false => self.lines.front().map(Line::due_ns),
        };
        let late = self.late.first_key_value().map(|((due_ns, _), _)| *due_ns);
        let floods = self.floods.iter().filter(|_| !self.is_blocked()).map(Flood::due_ns).min();
        let leaving = self.leaving.iter().filter(|leaving| self.may_leave(leaving));
        let leaving = leaving.map(|leaving| leaving.due_ns).min();
        lines.into_iter().chain(late).chain(floods).chain(leaving).min()
    }

    /// Whether something is still to be said or done. What goes on for ever does not count.
    pub fn busy(&self) -> bool {
        let waits = !self.lines.is_empty() || !self.late.is_empty() || !self.delivered.is_empty();
        waits || !self.leaving.is_empty() || self.floods.iter().any(|flood| flood.times.is_some())
    }

    /// How many bytes wait here. Whoever hears the client stops at some point.
    pub fn backlog(&self) -> usize {
        self.backlog
    }

    /// Whether the client was left: nothing more is said to it. With streams, whoever carries the acts
    /// out knows whether that was the only client.
    pub fn has_left(&self) -> bool {
        self.left
    }

    /// Whether something else must end before anything can be sent.
    fn is_blocked(&self) -> bool {
        !self.streams && !self.lines.is_empty()
    }

    fn wait(&mut self, load: Load, about: Option<&[u8]>, ticket: Option<u64>) {
        let line = self.enter(load, about, ticket);
        self.lines.push_back(line);
    }

    fn hold_back(&mut self, due_ns: u64, load: Load, about: &[u8], ticket: u64) {
        let line = self.enter(load, Some(about), Some(ticket));
        self.lates += 1;
        self.late.insert((due_ns, self.lates), line);
    }

    fn enter(&mut self, load: Load, about: Option<&[u8]>, ticket: Option<u64>) -> Line {
        let kept = match &load {
            Load::Message(text) => text.len(),
            Load::Raw(raw) => raw.parcel.kept(),
        };
        let bytes = kept + size_of::<Line>();
        self.backlog += bytes;
        Line { about: about.map(Into::into), load, ticket, bytes }
    }

    /// A line is no longer here, whether it has gone or was let go.
    fn done(&mut self, line: &Line) {
        self.backlog -= line.bytes;
        self.delivered.extend(line.ticket);
    }

    /// What was held back long enough stands in line with all the others.
    fn run_late(&mut self, at: At) {
        while let Some(first) = self.late.first_entry()
            && first.key().0 <= at.mono_ns
        {
            self.lines.push_back(first.remove());
        }
    }

    fn run_lines(&mut self, at: At, budget: &mut usize, act: &mut dyn FnMut(Act<'_>)) {
        let (mut index, mut in_event) = (0, self.is_in_event());
        while let Some(line) = self.lines.get_mut(index)
            && *budget > 0
        {
            // Events share a stream, so one ends before the next begins.
            let may_go = !in_event || line.about.is_some() || line.has_begun();
            let is_due = may_go && line.due_ns() <= at.mono_ns;
            if is_due && line.send(at, budget, &mut self.piece, act) {
                if let Some(line) = self.lines.remove(index) {
                    in_event &= line.about.is_some();
                    self.done(&line);
                }
            } else if self.streams {
                in_event |= line.about.is_none() && line.has_begun();
                index += 1;
            } else {
                return;
            }
        }
        if index > 0 && *budget == 0 {
            // Those behind come first the next time.
            self.lines.rotate_left(index.min(self.lines.len()));
        }
    }

    fn run_floods(&mut self, at: At, budget: &mut usize, act: &mut dyn FnMut(Act<'_>)) {
        if self.is_blocked() {
            return;
        }
        let (in_event, mut freed) = (self.is_in_event(), 0);
        self.floods.retain_mut(|flood| {
            let over = !(flood.raw && in_event) && flood.send(at, budget, act);
            freed += if over { flood.bytes() } else { 0 };
            !over
        });
        self.backlog -= freed;
    }

    /// Whether an event that belongs to no request has begun and not ended.
    fn is_in_event(&self) -> bool {
        self.streams && self.lines.iter().any(|line| line.about.is_none() && line.has_begun())
    }

    /// An end in order waits for what was said, with streams to the one it is for; any other does not.
    fn may_leave(&self, leaving: &Leaving) -> bool {
        let holds = |line: &Line| match (&leaving.about, &line.about) {
            (Some(about), Some(other)) if self.streams => same_id(about, other),
            _ => true,
        };
        !leaving.graceful || !self.lines.iter().chain(self.late.values()).any(holds)
    }

    fn leave(&mut self, at: At, act: &mut dyn FnMut(Act<'_>)) {
        while let Some(index) =
            self.leaving.iter().position(|one| one.due_ns <= at.mono_ns && self.may_leave(one))
        {
            let Leaving { graceful, about, .. } = self.leaving.swap_remove(index);
            act(Act::Leave { about: about.as_deref(), abrupt: !graceful });
            if !self.streams || about.is_none() {
                let delivered = std::mem::take(&mut self.delivered);
                *self = Self { left: true, delivered, ..Self::new(self.streams) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
