//! One session of the tape, played to a live server.

mod answers;
mod ending;
mod lists;
mod own;
mod owners;
mod passing;
mod sending;
mod unasked;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::json::member;
use crate::pending::IdKey;
use crate::side::Side;
use crate::tape::index::NONE;

use super::calls::Calls;
use super::finding::{About, NoteSort};
use super::judge::Judge;
use super::listing::Listings;
use super::minted::Minted;
use super::notices::Notices;
use super::questions::Questions;
use super::report::Report;
use super::tape::Tape;
use super::tools::Tools;
use super::{Act, Cue};
use own::is_introduced;
use owners::Owners;

/// After so much was said at once, the rest is said when there is room for it.
const SAID_BYTES_MAX: usize = 1 << 20;

/// What a session is played with.
pub(super) struct Kit<'a, 't> {
    pub(super) tape: &'a mut Tape<'t>,
    pub(super) judge: &'a Judge,
    pub(super) calls: Calls,
    pub(super) timeout_ns: u64,
    pub(super) report: &'a mut Report,
    pub(super) now_ns: u64,
    pub(super) act: &'a mut dyn FnMut(Act<'_>),
    /// How many bytes were said at once.
    pub(super) said_bytes: usize,
}

impl Kit<'_, '_> {
    /// Says one line to the server.
    fn say(&mut self, line: &[u8]) {
        self.said_bytes += line.len();
        (self.act)(Act::Say(line));
    }
}

/// One session of the tape.
pub(super) struct Play {
    /// Its number on the tape, from 1.
    number: u32,
    slots: Vec<u32>,
    /// The next of them.
    at: usize,
    /// Requests of the tape that were sent and are not answered, by slot.
    asked: HashMap<u32, Asked>,
    /// Everything that was asked, by the id it was asked with.
    waiting: HashMap<IdKey, Waiting>,
    /// When an answer is too late, and to what.
    deadlines: BTreeMap<(u64, u64), IdKey>,
    /// How many answers stand before the next message and have not come.
    owed: usize,
    /// How many requests of our own are under way.
    own: usize,
    /// How many ids were made up.
    ids: u64,
    /// How many requests were sent.
    tickets: u64,
    /// When something was last sent, or an answer came.
    base_ns: u64,
    /// When the client's last message was recorded.
    base_us: u64,
    /// When the last message was recorded.
    passed_us: u64,
    /// When the next message may go out, if something softer than an answer is waited for.
    held_until: Option<u64>,
    /// When the session is over if nothing more comes.
    quiet_until: Option<u64>,
    /// Whether something was left out, so that what follows may be missing for that reason.
    left_out: bool,
    /// Requests that stand before the next message, sent and left out, whose answer stands behind.
    open_sent: HashSet<u32>,
    open_skipped: HashMap<u32, Asking>,
    /// How many requests in a row were not answered, with nothing else said meanwhile.
    silences: u32,
    /// Why the server does not go on.
    gone: Option<String>,
    owners: Owners,
    minted: Minted,
    notices: Notices,
    questions: Questions,
    listings: Listings,
    /// What the live server says about its tools, if that is known.
    tools: Option<Tools>,
    /// Answers on the tape that answer nothing, which the live server may repeat.
    strays: usize,
}

/// A request of the tape that was sent.
struct Asked {
    key: IdKey,
    /// The id it was sent with.
    id: Vec<u8>,
    /// Whether its answer stands before the next message.
    owed: bool,
    /// Whether something was left out before it was sent.
    after_skipped: bool,
}

/// What a request that has no live answer asked for.
struct Asking {
    method: String,
    /// Of a list, where its page starts, as JSON.
    cursor: Option<Vec<u8>>,
}

impl Asking {
    fn of(said: &Envelope<'_>) -> Self {
        let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
        let cursor = said.params.and_then(|params| member(params, "cursor"));
        Self { method, cursor: cursor.map(<[u8]>::to_vec) }
    }
}

/// What an answer is waited for with.
struct Waiting {
    purpose: Purpose,
    deadline: Option<(u64, u64)>,
    sent_ns: u64,
}

/// Why something was asked.
enum Purpose {
    /// It is on the tape, in this slot.
    Recorded(u32),
    /// To know which tools only read; what is known so far, and the request's `_meta`.
    Tools(Tools, Option<Vec<u8>>),
    /// To know a list to its end, which began in this slot.
    Page(u32),
    /// To introduce a client whose introduction is not on the tape.
    Introduction,
    /// Nobody wants to know any more.
    Late,
}

impl Play {
    pub(super) fn new(tape: &mut Tape<'_>, session: usize, calls: Calls) -> io::Result<Self> {
        let slots = tape.session(session).to_vec();
        let number = slots.first().map_or(0, |slot| tape.slot(*slot).session + 1);
        let questions = Questions::read(tape, &slots, calls == Calls::All)?;
        let stray = |slot: &&u32| {
            let there = tape.slot(**slot);
            let answers = matches!(there.kind, Kind::Response | Kind::Error);
            there.from == Side::Server && answers && there.pair == NONE
        };
        let strays = slots.iter().filter(stray).count();
        Ok(Self {
            number,
            slots,
            at: 0,
            asked: HashMap::new(),
            waiting: HashMap::new(),
            deadlines: BTreeMap::new(),
            owed: 0,
            own: 0,
            ids: 0,
            tickets: 0,
            base_ns: 0,
            base_us: 0,
            passed_us: 0,
            held_until: None,
            quiet_until: None,
            left_out: false,
            open_sent: HashSet::new(),
            open_skipped: HashMap::new(),
            silences: 0,
            gone: None,
            owners: Owners::default(),
            minted: Minted::default(),
            notices: Notices::default(),
            questions,
            listings: Listings::default(),
            tools: None,
            strays,
        })
    }

    /// Takes what happened; true when the session is over.
    pub(super) fn handle(&mut self, kit: &mut Kit<'_, '_>, cue: Cue<'_>) -> io::Result<bool> {
        match cue {
            Cue::Opened => {
                self.base_ns = kit.now_ns;
                if !is_introduced(kit.tape, &self.slots)? {
                    self.introduce(kit);
                }
            }
            Cue::Said(line) => self.said(kit, line)?,
            Cue::TooLarge { message, bytes_max } => self.too_large(kit, &message, bytes_max)?,
            Cue::Gone { why } => self.gone = Some(why.to_owned()),
            Cue::Due => self.expire(kit)?,
        }
        if self.gone.is_some() {
            self.leave(kit)?;
            return Ok(true);
        }
        self.advance(kit)?;
        if self.gone.is_some() {
            self.leave(kit)?;
            return Ok(true);
        }
        let over = self.at == self.slots.len() && self.winds_up(kit.now_ns);
        if over {
            self.conclude(kit)?;
        }
        Ok(over)
    }

    /// When something is to be done without anything being said.
    pub(super) fn due(&self) -> Option<u64> {
        let answer = self.deadlines.keys().next().map(|(until_ns, _)| *until_ns);
        [answer, self.held_until, self.quiet_until].into_iter().flatten().min()
    }

    /// How many messages are done with.
    pub(super) fn progress(&self) -> usize {
        self.at
    }

    fn said(&mut self, kit: &mut Kit<'_, '_>, line: &[u8]) -> io::Result<()> {
        let frame = Frame::read(line);
        match frame.body() {
            Body::Message(said) => self.message(kit, line.trim_ascii(), said),
            Body::Batch => {
                for element in frame::elements(line) {
                    if let Some(said) = element.envelope() {
                        self.message(kit, element.bytes(), said)?;
                    }
                }
                Ok(())
            }
            Body::Garbage(_) => {
                self.no_message(kit, line);
                Ok(())
            }
        }
    }

    fn message(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        self.silences = 0;
        match said.kind() {
            Kind::Response | Kind::Error => self.answered(kit, text, said),
            Kind::Request => self.questioned(kit, text, said),
            Kind::Notification => self.noticed(kit, text, said),
            Kind::Other => {
                self.no_message(kit, text);
                Ok(())
            }
        }
    }

    fn no_message(&self, kit: &mut Kit<'_, '_>, line: &[u8]) {
        const SHOWN_BYTES: usize = 80;
        let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
        if !start.trim().is_empty() {
            kit.report.note(self.about(), NoteSort::NoMessage { start });
        }
    }

    /// Something about the session as a whole.
    fn about(&self) -> About {
        About { session: self.number, ..About::default() }
    }

    /// Goes on with the tape as far as possible.
    fn advance(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        self.held_until = None;
        while let Some(&slot) = self.slots.get(self.at) {
            if kit.said_bytes > SAID_BYTES_MAX {
                self.held_until = Some(kit.now_ns);
                return Ok(());
            }
            let there = kit.tape.slot(slot);
            match (there.from, there.kind) {
                (Side::Server, _) => self.pass(kit, slot, &there)?,
                (Side::Client, Kind::Request | Kind::Notification) => {
                    if !self.speak(kit, slot, &there)? {
                        return Ok(());
                    }
                }
                // Answers are given when they are asked for.
                (Side::Client, _) => {}
            }
            self.passed_us = there.at_us;
            self.at += 1;
        }
        Ok(())
    }
}
