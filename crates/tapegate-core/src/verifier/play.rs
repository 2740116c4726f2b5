//! One session of the tape, played to a live server.

mod hearing;
mod sending;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use crate::frame::{self, Body, Envelope, Frame, Kind};
use crate::pending::IdKey;
use crate::side::Side;
use crate::tape::index::{NONE, Slot};

use super::calls::Calls;
use super::finding::{About, Became, NoteSort, Report, What, Why};
use super::judge::Judge;
use super::listing::Listings;
use super::minted::Minted;
use super::notices::{Expected, Group, Notices, Outcome, Owner};
use super::questions::Questions;
use super::tape::Tape;
use super::tools::Tools;
use super::{Act, Cue};

/// How long a message that a server says of its own accord is waited for, besides twice the time
/// it took on the tape.
const GRACE_NS: u64 = 500_000_000;
/// How long is listened for more when everything has come.
const QUIET_NS: u64 = 100_000_000;
/// After so many requests in a row that a silent server has not answered, it is given up.
const SILENCES_MAX: u32 = 3;

/// What a session is played with.
pub(super) struct Kit<'a, 't> {
    pub(super) tape: &'a mut Tape<'t>,
    pub(super) judge: &'a Judge,
    pub(super) calls: Calls,
    pub(super) timeout_ns: u64,
    pub(super) report: &'a mut Report,
    pub(super) now_ns: u64,
    pub(super) act: &'a mut dyn FnMut(Act<'_>),
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
    open_skipped: HashSet<u32>,
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

/// Which request the tokens of notifications stand for.
#[derive(Default)]
struct Owners {
    /// By recorded progress token, and by the id of a recorded subscription.
    recorded: HashMap<(bool, IdKey), u32>,
    /// The same by what was sent.
    live: HashMap<(bool, IdKey), u32>,
    /// The latest request with each recorded id.
    by_id: HashMap<IdKey, u32>,
    /// The requests that were sent.
    sent: HashSet<u32>,
}

impl Play {
    pub(super) fn new(tape: &mut Tape<'_>, session: usize) -> io::Result<Self> {
        let slots = tape.session(session).to_vec();
        let number = slots.first().map_or(0, |slot| tape.slot(*slot).session + 1);
        let questions = Questions::read(tape, &slots)?;
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
            open_skipped: HashSet::new(),
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

    /// Passes what a server said on the tape: from now on it is expected.
    fn pass(&mut self, kit: &mut Kit<'_, '_>, slot: u32, there: &Slot) -> io::Result<()> {
        match there.kind {
            Kind::Response | Kind::Error => {
                self.open_sent.remove(&there.pair);
                self.open_skipped.remove(&there.pair);
                if let Some(asked) = self.asked.get_mut(&there.pair) {
                    let waiting = self.waiting.get(&asked.key);
                    asked.owed = waiting.is_some_and(|waiting| waiting.deadline.is_some());
                    self.owed += usize::from(asked.owed);
                }
            }
            Kind::Notification if !there.ours => self.expect(kit, slot, there)?,
            Kind::Request if !there.ours => {
                // It belongs to what was asked and not answered, if anything was.
                let of_sent = !self.open_sent.is_empty() && self.open_skipped.is_empty();
                if of_sent || !self.left_out {
                    let method = kit.tape.about(slot)?.method;
                    self.questions.expect(slot, &method, self.patience(kit, there));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn expect(&mut self, kit: &mut Kit<'_, '_>, slot: u32, there: &Slot) -> io::Result<()> {
        let text = kit.tape.text(slot)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { return Ok(()) };
        let (group, request) = group(&self.owners.recorded, said);
        let progress = said.is_method("notifications/progress");
        let over = request.is_some_and(|request| !self.asked.contains_key(&request));
        let required = match request {
            // What a request that was not sent would have caused does not come.
            Some(request) if !self.owners.sent.contains(&request) => return Ok(()),
            // How much is still said after a request was taken back is a matter of chance.
            Some(request) if over && kit.tape.slot(request).cancelled => false,
            Some(_) if progress => true,
            _ => !self.left_out,
        };
        let late = progress && over;
        let expected = Expected { slot, required, patience_ns: self.patience(kit, there), late };
        self.notices.expect(kit.tape, kit.judge, group, expected)
    }

    /// How long a message that a server says of its own accord is worth waiting for.
    fn patience(&self, kit: &Kit<'_, '_>, there: &Slot) -> u64 {
        let took_ns = there.at_us.saturating_sub(self.base_us).saturating_mul(1000);
        GRACE_NS.saturating_add(took_ns.saturating_mul(2)).min(kit.timeout_ns)
    }

    /// Whether nothing more is to come, or has not come in time.
    fn winds_up(&mut self, now_ns: u64) -> bool {
        if self.owed > 0 || self.own > 0 {
            return false;
        }
        let notices = self.notices.wanted_until(now_ns, self.base_ns, true);
        let questions = self.questions.wanted_until(now_ns, self.base_ns);
        if let Some(until_ns) = [notices, questions].into_iter().flatten().min() {
            self.held_until = Some(until_ns);
            return false;
        }
        let until_ns = *self.quiet_until.get_or_insert(now_ns + QUIET_NS);
        now_ns >= until_ns
    }

    /// Gives up what has not been answered in time.
    fn expire(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        while let Some((&(until_ns, _), _)) = self.deadlines.first_key_value() {
            if until_ns > kit.now_ns {
                break;
            }
            let Some((_, key)) = self.deadlines.pop_first() else { break };
            self.silent(kit, &key)?;
        }
        Ok(())
    }

    /// The server is gone or was given up: what was still to be said is left out.
    fn leave(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        let mut lost = self.owed > 0;
        lost |= self.asked.values().any(|asked| {
            let waiting = self.waiting.get(&asked.key);
            !asked.owed && waiting.is_some_and(|waiting| waiting.deadline.is_some())
        });
        while let Some(&slot) = self.slots.get(self.at) {
            let there = kit.tape.slot(slot);
            self.at += 1;
            if there.from != Side::Client || there.kind != Kind::Request {
                continue;
            }
            let why = self.refusal(kit, slot)?;
            lost |= why.is_none();
            kit.report.skip(kit.tape.about(slot)?, why.unwrap_or(Why::ServerGone));
        }
        // A server that leaves when nothing more is wanted of it has not gone too early.
        self.gone = self.gone.take().filter(|_| lost);
        if let Some(why) = self.gone.clone() {
            kit.report.find(self.about(), What::Ended { why });
        }
        self.conclude(kit)
    }

    /// Compares what can only be compared at the end.
    fn conclude(&mut self, kit: &mut Kit<'_, '_>) -> io::Result<()> {
        for (first, listing) in self.listings.rest() {
            self.compare_list(kit, first, listing)?;
        }
        let gone = self.gone.is_some();
        let outcomes = self.notices.finish(kit.tape, kit.judge, !gone)?;
        for Outcome { slot, group, what } in outcomes {
            let about = match slot {
                Some(slot) => kit.tape.about(slot)?,
                None => About { method: group.method, ..self.about() },
            };
            match (&what, &group.owner) {
                (What::Moved { .. }, Owner::Nobody) => kit.report.note(about, NoteSort::Moved),
                _ => kit.report.find(about, what),
            }
        }
        kit.report.notifications += self.notices.compared;
        kit.report.findings_more += self.notices.dropped;
        for slot in self.questions.missing().into_iter().filter(|_| !gone) {
            let text = kit.tape.text(slot)?;
            kit.report.find(kit.tape.about(slot)?, What::Question(Became::Removed(text)));
        }
        Ok(())
    }
}

impl Owners {
    /// Notes what a recorded request is known by.
    fn note(&mut self, said: &Envelope<'_>, slot: u32) {
        if let Some(token) = said.progress_token {
            self.recorded.insert((false, IdKey::new(token)), slot);
        }
        let Some(id) = said.id.map(IdKey::new) else { return };
        if said.is_method("subscriptions/listen") {
            self.recorded.insert((true, id.clone()), slot);
        }
        self.by_id.insert(id, slot);
    }

    /// Notes what it is known by to the live server.
    fn note_live(&mut self, said: &Envelope<'_>, slot: u32, id: &[u8], token: Option<&[u8]>) {
        self.sent.insert(slot);
        if let Some(token) = token {
            self.live.insert((false, IdKey::new(token)), slot);
        }
        if said.is_method("subscriptions/listen") {
            self.live.insert((true, IdKey::new(id)), slot);
        }
    }
}

/// Whether the client says on the tape who it is, in the way of either era.
fn is_introduced(tape: &mut Tape<'_>, slots: &[u32]) -> io::Result<bool> {
    /// Clients introduce themselves early.
    const REQUESTS_MAX: usize = 100;
    let asks = |slot: &u32| {
        let there = tape.index.slot(*slot);
        there.from == Side::Client && there.kind == Kind::Request
    };
    let early: Vec<u32> = slots.iter().copied().filter(asks).take(REQUESTS_MAX).collect();
    for slot in early {
        let text = tape.text(slot)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { continue };
        let introduces = said.is_method("initialize") || said.is_method("server/discover");
        if introduces || said.protocol_version.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The group that a notification belongs to, and the request if it belongs to one.
fn group(known: &HashMap<(bool, IdKey), u32>, said: &Envelope<'_>) -> (Group, Option<u32>) {
    let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let token = said.progress_token.filter(|_| said.is_method("notifications/progress"));
    let of = |subscription, id| known.get(&(subscription, IdKey::new(id))).copied();
    let by_token = token.and_then(|token| of(false, token));
    let request = by_token.or_else(|| of(true, said.subscription_id?));
    let owner = request.map_or(Owner::Nobody, Owner::Request);
    (Group { method, owner }, request)
}
