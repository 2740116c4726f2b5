//! Builds the index of a tape, line by line.

use std::collections::HashMap;
use std::ops::Range;

use super::packed::{Asked, Flag, OFFSET_MAX, Packed, SESSIONS_MAX};
use super::scenes::{Scenes, Session};
use super::stretch::{Other, Stretch};
use super::table::Table;
use super::told::Told;
use super::{Index, NONE, Oddity};
use crate::frame::Kind;
use crate::side::Side;
use crate::signature::{Key, Signer};
use crate::tape::line::{Header, Line};
use crate::tape::reader::Numbered;

/// How many headers are kept; more than any deliberately joined tape has.
const HEADERS_MAX: usize = 1000;
/// By how much `latency_ms` may differ from the difference of `ts` before it takes precedence.
const LATENCY_SLACK_US: u64 = 2_000;
/// The maximum number of messages: the last number means none.
const SLOTS_MAX: usize = NONE as usize;

/// Builds the index of a tape, line by line.
#[derive(Debug)]
pub struct Indexer {
    signer: Signer,
    index: Index,
    scenes: Scenes,
    part: Part,
    session_count: u32,
    oddities: Vec<Oddity>,
    /// Reused for single lines.
    stretch: Stretch,
}

/// One recording of a tape: everything since the last header.
#[derive(Debug, Default)]
struct Part {
    sessions: Vec<Session>,
    by_key: HashMap<Key, usize, foldhash::fast::RandomState>,
    /// The session of messages without a session key.
    unnamed: Option<usize>,
    /// When the first message was recorded.
    started_us: Option<i64>,
}

impl Part {
    /// Makes the next message with this session key begin another session.
    fn forget(&mut self, key: Option<Key>) {
        match key {
            None => self.unnamed = None,
            Some(key) => drop(self.by_key.remove(&key)),
        }
    }
}

impl Indexer {
    /// An indexer that signs requests with `signer`.
    pub fn new(signer: Signer) -> Self {
        Self {
            signer,
            index: Index::default(),
            scenes: Scenes::default(),
            part: Part::default(),
            session_count: 0,
            oddities: Vec::new(),
            stretch: Stretch::default(),
        }
    }

    /// Takes the next line of the tape.
    pub fn push(&mut self, line: &Numbered<'_>) {
        let mut stretch = std::mem::take(&mut self.stretch);
        stretch.one(line, &self.signer);
        for told in &stretch.told {
            self.add(told, line.offset, 0);
        }
        for (_, other) in stretch.others.drain(..) {
            match other {
                Other::Entry(line, Line::Header(header)) => self.header(line, &header),
                Other::Odd(line, words) => self.once(line, words),
                Other::Entry(..) | Other::Bare { .. } | Other::Problem(_) => {}
            }
        }
        self.stretch = stretch;
    }

    pub(super) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The index, and everything unusual that was found.
    pub fn finish(self) -> (Index, Vec<Oddity>) {
        let mut index = self.index;
        index.slots = self.scenes.slots;
        index.slots.shrink_to_fit();
        index.client_notifications.shrink_to_fit();
        index.sessions = sort(&mut index.asks, &index.slots, self.session_count);
        (index.same, index.like) = chain(&mut index.asks);
        (index, self.oddities)
    }

    /// Begins a new recording: nothing that was open continues.
    pub(super) fn header(&mut self, line: u64, header: &Header<'_>) {
        self.part = Part::default();
        self.scenes.part();
        if self.index.headers.len() < HEADERS_MAX {
            self.index.headers.push(header.to_static());
        } else {
            self.once(line, "too many headers; only the first 1000 are kept");
        }
    }

    /// Adds a message of a chunk that starts at byte `offset` of the tape, after `lines` lines.
    pub(super) fn add(&mut self, told: &Told, offset: u64, lines: u64) {
        let line = lines + u64::from(told.line);
        let offset = offset.saturating_add(told.text.start.into());
        if offset > OFFSET_MAX {
            return self.once(line, "a message beyond the size limit of a tape is left out");
        }
        if self.scenes.slots.len() >= SLOTS_MAX {
            return self.once(line, "the tape has too many messages; the rest is left out");
        }
        let mut session = self.session(told.session, line);
        if told.initialize && self.part.sessions[session].is_introduced() {
            // A recording that was appended to a tape need not have a header.
            self.part.forget(told.session);
            session = self.session(told.session, line);
        }
        let number = told.seq.unwrap_or(line);
        let mut packed = Packed::new(offset, told.text.length(), told.from, told.kind);
        packed.number = u32::try_from(number).unwrap_or_else(|_| {
            self.once(line, "numbers over 4294967295 are capped at it");
            u32::MAX
        });
        packed.place_in_time(self.part.sessions[session].number, self.at_us(told.wall_us, line));
        packed.set(Flag::Spread, told.spread);
        packed.set(Flag::Ours, told.ours);
        packed.set(Flag::Resumed, told.resumed);
        packed.set(Flag::Repeated, told.repeated);
        packed.set(Flag::Gated, told.gated);
        packed.set(Flag::Token, told.token.is_some() && told.kind == Kind::Request);
        let slot = self.scenes.slots.len() as u32;
        self.scenes.push(packed);
        self.part.sessions[session].put(told, &mut self.scenes);
        self.latency(told, slot);
        if let Some(asked) = told.asked {
            self.index.asks.push(Asked { slot, ..asked });
        }
        if let (Side::Client, Kind::Notification) = (told.from, told.kind) {
            self.index.client_notifications.push(slot);
        }
    }

    /// The index of a message's session, which may be new.
    fn session(&mut self, key: Option<Key>, line: u64) -> usize {
        let part = &mut self.part;
        let place = match key {
            None => part.unnamed.get_or_insert(part.sessions.len()),
            Some(key) => part.by_key.entry(key).or_insert(part.sessions.len()),
        };
        let place = *place;
        if place == part.sessions.len() {
            let number = self.session_count.min(SESSIONS_MAX - 1);
            part.sessions.push(Session::new(number));
            self.session_count = number + 1;
            if number + 1 == SESSIONS_MAX {
                self.once(line, "too many sessions; the last ones count as one");
            }
        }
        place
    }

    fn at_us(&mut self, wall_us: Option<i64>, line: u64) -> u64 {
        let Some(wall_us) = wall_us else {
            self.once(line, "`ts` is not an RFC 3339 time");
            return 0;
        };
        let started_us = *self.part.started_us.get_or_insert(wall_us);
        u64::try_from(wall_us.saturating_sub(started_us)).unwrap_or(0)
    }

    /// Keeps the latency of an answer if `ts` does not imply it.
    fn latency(&mut self, told: &Told, slot: u32) {
        let answers = matches!(told.kind, Kind::Response | Kind::Error);
        let Some(latency_ms) = told.latency_ms.filter(|_| answers) else { return };
        let slots = &mut self.scenes.slots;
        let answered_us = slots[slot as usize].at_us();
        let asked_us = slots.get(slots[slot as usize].pair as usize).map(Packed::at_us);
        let told_us = u64::from(latency_ms) * 1000;
        let fits = |asked_us: u64| {
            answered_us >= asked_us
                && (answered_us - asked_us).abs_diff(told_us) <= LATENCY_SLACK_US
        };
        if !asked_us.is_some_and(fits) {
            slots[slot as usize].set(Flag::TimedApart, true);
            self.index.latencies.push((slot, latency_ms));
        }
    }

    /// Reports an oddity at the first line where it occurs.
    pub(super) fn once(&mut self, line: u64, words: &str) {
        if self.oddities.iter().all(|oddity| oddity.words != words) {
            self.oddities.push(Oddity { line, words: words.to_owned() });
        }
    }
}

/// Sorts requests by session and returns the range of each session.
fn sort(asks: &mut Vec<Asked>, slots: &[Packed], session_count: u32) -> Vec<Range<u32>> {
    let session_of = |ask: &Asked| slots[ask.slot as usize].session();
    if session_count > 1 {
        asks.sort_unstable_by_key(|ask| (session_of(ask), ask.slot));
    }
    asks.shrink_to_fit();
    let mut sessions = vec![0..0; session_count as usize];
    let mut start = 0;
    for asks in asks.chunk_by(|one, two| session_of(one) == session_of(two)) {
        let range = start..start + asks.len() as u32;
        start = range.end;
        sessions[session_of(&asks[0]) as usize] = range;
    }
    sessions
}

/// Links requests with the same signature, and those with the same subject, in order.
pub(super) fn chain(asks: &mut [Asked]) -> (Table, Table) {
    let count = asks.len();
    let (mut same, mut like) = (Table::with_room(count, count), Table::with_room(count, 0));
    // From the end, so that each chain starts with its first request.
    for ask in (0..asks.len() as u32).rev() {
        let it = asks[ask as usize];
        let at = |ask: u32| &asks[ask as usize];
        let next_same = same.put(ask, |ask| at(ask).same_place(), |ask| at(ask).hash == it.hash);
        let next_like = like.put(ask, |ask| at(ask).like_place(), |ask| at(ask).like == it.like);
        asks[ask as usize].next_same = next_same;
        asks[ask as usize].next_like = next_like;
    }
    (same, like)
}
