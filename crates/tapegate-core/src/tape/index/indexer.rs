//! Builds the index of a tape, line by line.

use std::collections::HashMap;
use std::ops::Range;

use super::chunk::{ChunkItem, TapeChunk};
use super::key_table::KeyTable;
use super::packed_entry::{ChainedRequest, EntryFlag, OFFSET_MAX, PackedEntry, SESSIONS_MAX};
use super::raw_entry::RawEntry;
use super::scene_builder::{SceneBuilder, SessionBuilder};
use super::{Index, NONE, TapeOddity};
use crate::frame::MessageKind;
use crate::side::Side;
use crate::signature::{HashedKey, Signer};
use crate::tape::line::{TapeHeader, TapeLine};
use crate::tape::reader::NumberedLine;

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
    scenes: SceneBuilder,
    part: TapePart,
    session_count: u32,
    oddities: Vec<TapeOddity>,
    /// Reused for single lines.
    chunk: TapeChunk,
}

/// One recording of a tape: everything since the last header.
#[derive(Debug, Default)]
struct TapePart {
    sessions: Vec<SessionBuilder>,
    by_key: HashMap<HashedKey, usize, foldhash::fast::RandomState>,
    /// The session of messages without a session key.
    unnamed: Option<usize>,
    /// When the first message was recorded.
    started_us: Option<i64>,
}

impl TapePart {
    /// Makes the next message with this session key begin another session.
    fn end_session(&mut self, key: Option<HashedKey>) {
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
            scenes: SceneBuilder::default(),
            part: TapePart::default(),
            session_count: 0,
            oddities: Vec::new(),
            chunk: TapeChunk::default(),
        }
    }

    /// Takes the next line of the tape.
    pub fn push(&mut self, line: &NumberedLine<'_>) {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.read_entry(line, &self.signer);
        for raw in &chunk.raw_entries {
            self.add(raw, line.offset, 0);
        }
        for (_, other) in chunk.others.drain(..) {
            match other {
                ChunkItem::Entry(line, TapeLine::Header(header)) => self.header(line, &header),
                ChunkItem::Odd(line, message) => self.report_once(line, message),
                ChunkItem::Entry(..) | ChunkItem::Bare { .. } | ChunkItem::Problem(_) => {}
            }
        }
        self.chunk = chunk;
    }

    pub(super) fn signer(&self) -> &Signer {
        &self.signer
    }

    /// The index, and everything unusual that was found.
    pub fn finish(self) -> (Index, Vec<TapeOddity>) {
        let mut index = self.index;
        index.entries = self.scenes.entries;
        // The index lives as long as the replay, so spare capacity is given back.
        index.entries.shrink_to_fit();
        index.client_notifications.shrink_to_fit();
        index.sessions = sort_by_session(&mut index.requests, &index.entries, self.session_count);
        (index.same, index.like) = chain(&mut index.requests);
        (index, self.oddities)
    }

    /// Notes that an entry is too long to be read.
    pub(super) fn add_too_long(&mut self) {
        self.index.too_long += 1;
        self.index.before_too_long = self.scenes.entries.len() as u32;
    }

    /// Begins a new recording: nothing that was open continues.
    pub(super) fn header(&mut self, line: u64, header: &TapeHeader<'_>) {
        self.part = TapePart::default();
        self.scenes.begin_recording();
        if self.index.headers.len() < HEADERS_MAX {
            self.index.headers.push(header.to_static());
        } else {
            self.report_once(line, "too many headers; only the first 1000 are kept");
        }
    }

    /// Adds a message of a chunk that starts at byte `offset` of the tape, after `lines` lines.
    pub(super) fn add(&mut self, raw: &RawEntry, offset: u64, lines: u64) {
        let line = lines + u64::from(raw.line);
        let offset = offset.saturating_add(raw.text.start.into());
        if offset > OFFSET_MAX {
            return self.report_once(line, "a message beyond the size limit of a tape is left out");
        }
        if self.scenes.entries.len() >= SLOTS_MAX {
            return self.report_once(line, "the tape has too many messages; the rest is left out");
        }
        let mut session = self.session(raw.session, line);
        if raw.initialize && self.part.sessions[session].is_initialized() {
            // A recording that was appended to a tape need not have a header.
            self.part.end_session(raw.session);
            session = self.session(raw.session, line);
        }
        // A tape without `seq` is numbered by its lines, which a user can find.
        let number = raw.seq.unwrap_or(line);
        let mut packed = PackedEntry::new(offset, raw.text.length(), raw.from, raw.kind);
        packed.number = u32::try_from(number).unwrap_or_else(|_| {
            self.report_once(line, "numbers over 4294967295 are capped at it");
            u32::MAX
        });
        packed.set_time(self.part.sessions[session].number, self.at_us(raw.wall_us, line));
        packed.set(EntryFlag::Spread, raw.spread);
        packed.set(EntryFlag::Ours, raw.ours);
        packed.set(EntryFlag::Resumed, raw.resumed);
        packed.set(EntryFlag::Repeated, raw.repeated);
        packed.set(EntryFlag::Gated, raw.gated);
        packed.set(EntryFlag::Token, raw.token.is_some() && raw.kind == MessageKind::Request);
        let entry_number = self.scenes.entries.len() as u32;
        self.scenes.push(packed);
        // After `push`, because pairing refers to the new entry.
        self.part.sessions[session].add(raw, &mut self.scenes);
        // After pairing, because the request's time is needed.
        self.latency(raw, entry_number);
        if let Some(chained_request) = raw.chained_request {
            self.index.requests.push(ChainedRequest { entry_number, ..chained_request });
        }
        if let (Side::Client, MessageKind::Notification) = (raw.from, raw.kind) {
            self.index.client_notifications.push(entry_number);
        }
    }

    /// The index of a message's session, which may be new.
    fn session(&mut self, key: Option<HashedKey>, line: u64) -> usize {
        let part = &mut self.part;
        let place = match key {
            None => part.unnamed.get_or_insert(part.sessions.len()),
            Some(key) => part.by_key.entry(key).or_insert(part.sessions.len()),
        };
        let place = *place;
        if place == part.sessions.len() {
            // The last session takes the rest, so that a session always fits its bits.
            let number = self.session_count.min(SESSIONS_MAX - 1);
            part.sessions.push(SessionBuilder::new(number));
            self.session_count = number + 1;
            if number + 1 == SESSIONS_MAX {
                self.report_once(line, "too many sessions; the last ones count as one");
            }
        }
        place
    }

    fn at_us(&mut self, wall_us: Option<i64>, line: u64) -> u64 {
        let Some(wall_us) = wall_us else {
            self.report_once(line, "`ts` is not an RFC 3339 time");
            return 0;
        };
        let started_us = *self.part.started_us.get_or_insert(wall_us);
        // A wall clock may be set back, and times are not negative.
        u64::try_from(wall_us.saturating_sub(started_us)).unwrap_or(0)
    }

    /// Keeps the latency of an answer if `ts` does not imply it.
    fn latency(&mut self, raw: &RawEntry, entry_number: u32) {
        let answers = matches!(raw.kind, MessageKind::Response | MessageKind::Error);
        let Some(latency_ms) = raw.latency_ms.filter(|_| answers) else { return };
        let entry_numbers = &mut self.scenes.entries;
        let answered_us = entry_numbers[entry_number as usize].at_us();
        let asked_us = entry_numbers
            .get(entry_numbers[entry_number as usize].pair as usize)
            .map(PackedEntry::at_us);
        let told_us = u64::from(latency_ms) * 1000;
        let fits = |asked_us: u64| {
            answered_us >= asked_us
                && (answered_us - asked_us).abs_diff(told_us) <= LATENCY_SLACK_US
        };
        // Stored apart only then: most answers need no room for it.
        if !asked_us.is_some_and(fits) {
            entry_numbers[entry_number as usize].set(EntryFlag::TimedApart, true);
            self.index.latencies.push((entry_number, latency_ms));
        }
    }

    /// Reports an oddity at the first line where it occurs.
    pub(super) fn report_once(&mut self, line: u64, message: &str) {
        if self.oddities.iter().all(|oddity| oddity.message != message) {
            self.oddities.push(TapeOddity { line, message: message.to_owned() });
        }
    }
}

/// Sorts requests by session and returns the range of each session.
fn sort_by_session(
    requests: &mut Vec<ChainedRequest>,
    entries: &[PackedEntry],
    session_count: u32,
) -> Vec<Range<u32>> {
    let session_of =
        |request_number: &ChainedRequest| entries[request_number.entry_number as usize].session();
    if session_count > 1 {
        // The order is total, so an unstable sort does not reorder anything.
        requests.sort_unstable_by_key(|request_number| {
            (session_of(request_number), request_number.entry_number)
        });
    }
    requests.shrink_to_fit();
    let mut sessions = vec![0..0; session_count as usize];
    let mut start = 0;
    for requests in requests.chunk_by(|one, two| session_of(one) == session_of(two)) {
        let range = start..start + requests.len() as u32;
        start = range.end;
        sessions[session_of(&requests[0]) as usize] = range;
    }
    sessions
}

/// Links requests with the same signature, and those with the same subject, in order.
pub(super) fn chain(requests: &mut [ChainedRequest]) -> (KeyTable, KeyTable) {
    let count = requests.len();
    let (mut same, mut like) =
        (KeyTable::with_capacity(count, count), KeyTable::with_capacity(count, 0));
    // From the end, so that each chain starts with its first request.
    for request_number in (0..requests.len() as u32).rev() {
        let it = requests[request_number as usize];
        let at = |request_number: u32| &requests[request_number as usize];
        let next_same = same.insert(
            request_number,
            |request_number| at(request_number).hash_position(),
            |request_number| at(request_number).hash == it.hash,
        );
        let next_like = like.insert(
            request_number,
            |request_number| at(request_number).subject_position(),
            |request_number| at(request_number).like == it.like,
        );
        requests[request_number as usize].next_same = next_same;
        requests[request_number as usize].next_like = next_like;
    }
    (same, like)
}
