//! Plays one session of the tape to a live server.

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

/// How many bytes are sent at once; the rest is sent when there is room for it.
const SAID_BYTES_MAX: usize = 1 << 20;

/// What is needed to play a session.
pub(super) struct Kit<'a, 't> {
    pub(super) tape: &'a mut Tape<'t>,
    pub(super) judge: &'a Judge,
    pub(super) calls: Calls,
    pub(super) timeout_ns: u64,
    pub(super) report: &'a mut Report,
    pub(super) now_ns: u64,
    pub(super) act: &'a mut dyn FnMut(Act<'_>),
    /// How many bytes were sent in this step.
    pub(super) said_bytes: usize,
}

impl Kit<'_, '_> {
    /// Sends one line to the server.
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
    /// The index of the next one.
    at: usize,
    /// Requests of the tape that were sent and not answered, by slot.
    asked: HashMap<u32, Asked>,
    /// All pending requests, by the id they were sent with.
    waiting: HashMap<IdKey, Waiting>,
    /// The deadlines of answers, and their requests.
    deadlines: BTreeMap<(u64, u64), IdKey>,
    /// How many answers must arrive before the next message is sent.
    owed: usize,
    /// How many requests of our own are pending.
    own: usize,
    /// How many ids were generated.
    ids: u64,
    /// How many requests were sent.
    tickets: u64,
    /// When something was last sent or answered.
    base_ns: u64,
    /// When the client's last message was recorded.
    base_us: u64,
    /// When the last message was recorded.
    passed_us: u64,
    /// When the next message may be sent, if it waits for something other than an answer.
    held_until: Option<u64>,
    /// When the session ends if nothing more arrives.
    quiet_until: Option<u64>,
    /// Whether a message was skipped, which may be why later ones are missing.
    left_out: bool,
    /// Requests before the next message, sent and skipped, whose answers come after it.
    open_sent: HashSet<u32>,
    open_skipped: HashMap<u32, Asking>,
    /// How many requests in a row were not answered, without any other message in between.
    silences: u32,
    /// Why the server cannot be used any longer.
    gone: Option<String>,
    owners: Owners,
    minted: Minted,
    notices: Notices,
    questions: Questions,
    listings: Listings,
    /// What the live server declares about its tools, if known.
    tools: Option<Tools>,
    /// How many answers on the tape match no request; the live server may repeat them.
    strays: usize,
}

/// A request of the tape that was sent.
struct Asked {
    key: IdKey,
    /// The id it was sent with.
    id: Vec<u8>,
    /// Whether its answer must arrive before the next message is sent.
    owed: bool,
    /// Whether a message was skipped before it was sent.
    after_skipped: bool,
}

/// What a request without a live answer asked for.
struct Asking {
    method: String,
    /// For a list, the start of its page, as JSON.
    cursor: Option<Vec<u8>>,
}

impl Asking {
    fn of(said: &Envelope<'_>) -> Self {
        let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
        let cursor = said.params.and_then(|params| member(params, "cursor"));
        Self { method, cursor: cursor.map(<[u8]>::to_vec) }
    }
}

/// A pending answer.
struct Waiting {
    purpose: Purpose,
    deadline: Option<(u64, u64)>,
    sent_ns: u64,
}

/// Why a request was made.
enum Purpose {
    /// It is on the tape, in this slot.
    Recorded(u32),
    /// To find out which tools are read-only: the tools known so far, and the request's `_meta`.
    Tools(Tools, Option<Vec<u8>>),
    /// To read a list to its end; it started with this slot.
    Page(u32),
    /// To initialize a session whose `initialize` is not on the tape.
    Introduction,
    /// The answer is no longer needed.
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

    /// Handles an event; returns true when the session is over.
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

    /// When to continue if no message arrives.
    pub(super) fn due(&self) -> Option<u64> {
        let answer = self.deadlines.keys().next().map(|(until_ns, _)| *until_ns);
        [answer, self.held_until, self.quiet_until].into_iter().flatten().min()
    }

    /// How many messages are finished.
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

    /// The reference for a finding about the session as a whole.
    fn about(&self) -> About {
        About { session: self.number, ..About::default() }
    }

    /// Continues with the tape as far as possible.
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
                // Answers are sent when the server asks for them.
                (Side::Client, _) => {}
            }
            self.passed_us = there.at_us;
            self.at += 1;
        }
        Ok(())
    }
}
