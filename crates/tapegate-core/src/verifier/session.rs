//! Plays one session of the tape to a live server.

mod answers;
mod expectations;
mod lists;
mod own_requests;
mod sender;
mod server_messages;
mod shutdown;
mod token_owners;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;

use crate::frame::{self, Envelope, Frame, FrameBody, MessageKind};
use crate::json::member;
use crate::pending::IdKey;
use crate::side::Side;
use crate::tape::index::NONE;

use super::answer_comparer::AnswerComparer;
use super::call_selection::CallSelection;
use super::finding::{MessageRef, VerifyNoteKind};
use super::minted_values::MintedValues;
use super::notice_matcher::NoticeMatcher;
use super::paged_lists::PagedLists;
use super::report::VerifyReport;
use super::server_questions::ServerQuestions;
use super::tape::VerifierTape;
use super::tool_hints::ToolHints;
use super::{VerifierAction, VerifierEvent};
use own_requests::has_initialize;
use token_owners::TokenOwners;

/// How many bytes are sent at once; the rest is sent when there is room for it.
const SAID_BYTES_MAX: usize = 1 << 20;

/// What is needed to play a session.
pub(super) struct VerifyContext<'a, 't> {
    pub(super) tape: &'a mut VerifierTape<'t>,
    pub(super) judge: &'a AnswerComparer,
    pub(super) calls: CallSelection,
    pub(super) timeout_ns: u64,
    pub(super) report: &'a mut VerifyReport,
    pub(super) now_ns: u64,
    pub(super) act: &'a mut dyn FnMut(VerifierAction<'_>),
    /// How many bytes were sent in this step.
    pub(super) said_bytes: usize,
}

impl VerifyContext<'_, '_> {
    /// Sends one line to the server.
    fn send_line(&mut self, line: &[u8]) {
        self.said_bytes += line.len();
        (self.act)(VerifierAction::Say(line));
    }
}

/// One session of the tape.
pub(super) struct VerifySession {
    /// Its number on the tape, from 1.
    number: u32,
    entry_numbers: Vec<u32>,
    /// The index of the next one.
    at: usize,
    /// Requests of the tape that were sent and not answered, by entry number.
    sent_requests: HashMap<u32, SentRequest>,
    /// All pending requests, by the id they were sent with.
    waiting: HashMap<IdKey, AwaitedAnswer>,
    /// The deadlines of answers, and their requests.
    deadlines: BTreeMap<(u64, u64), IdKey>,
    /// How many answers must arrive before the next message is sent.
    owed: usize,
    /// How many requests of our own are pending.
    own: usize,
    /// How many ids were generated.
    ids: u64,
    /// How many requests were sent.
    request_count: u64,
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
    open_skipped: HashMap<u32, SkippedRequest>,
    /// How many requests in a row were not answered, without any other message in between.
    silences: u32,
    /// Why the server cannot be used any longer.
    gone: Option<String>,
    owners: TokenOwners,
    minted_values: MintedValues,
    notices: NoticeMatcher,
    questions: ServerQuestions,
    listings: PagedLists,
    /// What the live server declares about its tools, if known.
    tools: Option<ToolHints>,
    /// How many answers on the tape match no request; the live server may repeat them.
    strays: usize,
}

/// A request of the tape that was sent.
struct SentRequest {
    key: IdKey,
    /// The id it was sent with.
    id: Vec<u8>,
    /// Whether its answer must arrive before the next message is sent.
    owed: bool,
    /// Whether a message was skipped before it was sent.
    after_skipped: bool,
}

/// What a request without a live answer asked for.
struct SkippedRequest {
    method: String,
    /// For a list, the start of its page, as JSON.
    cursor: Option<Vec<u8>>,
}

impl SkippedRequest {
    fn of(envelope: &Envelope<'_>) -> Self {
        let method = envelope.method.map(|method| method.decode().into_owned()).unwrap_or_default();
        let cursor = envelope.params.and_then(|params| member(params, "cursor"));
        Self { method, cursor: cursor.map(<[u8]>::to_vec) }
    }
}

/// A pending answer.
struct AwaitedAnswer {
    purpose: RequestPurpose,
    deadline: Option<(u64, u64)>,
    sent_ns: u64,
}

/// Why a request was made.
enum RequestPurpose {
    /// It is on the tape, at this entry.
    Recorded(u32),
    /// To find out which tools are read-only: the tools known so far, and the request's `_meta`.
    Tools(ToolHints, Option<Vec<u8>>),
    /// To read a list to its end; it started with this entry.
    Page(u32),
    /// To initialize a session whose `initialize` is not on the tape.
    Introduction,
    /// The answer is no longer needed.
    Late,
}

impl VerifySession {
    pub(super) fn new(
        tape: &mut VerifierTape<'_>,
        session: usize,
        calls: CallSelection,
    ) -> io::Result<Self> {
        let entry_numbers = tape.session(session).to_vec();
        let number =
            entry_numbers.first().map_or(0, |entry_number| tape.entry(*entry_number).session + 1);
        let questions = ServerQuestions::read(tape, &entry_numbers, calls == CallSelection::All)?;
        let stray = |entry_number: &&u32| {
            let entry = tape.entry(**entry_number);
            let answers = matches!(entry.kind, MessageKind::Response | MessageKind::Error);
            entry.from == Side::Server && answers && entry.pair == NONE
        };
        let strays = entry_numbers.iter().filter(stray).count();
        Ok(Self {
            number,
            entry_numbers,
            at: 0,
            sent_requests: HashMap::new(),
            waiting: HashMap::new(),
            deadlines: BTreeMap::new(),
            owed: 0,
            own: 0,
            ids: 0,
            request_count: 0,
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
            owners: TokenOwners::default(),
            minted_values: MintedValues::default(),
            notices: NoticeMatcher::default(),
            questions,
            listings: PagedLists::default(),
            tools: None,
            strays,
        })
    }

    /// Handles an event; returns true when the session is over.
    pub(super) fn handle(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        event: VerifierEvent<'_>,
    ) -> io::Result<bool> {
        match event {
            VerifierEvent::Opened => {
                self.base_ns = context.now_ns;
                // Without it, a server that waits for `initialize` answers nothing else.
                if !has_initialize(context.tape, &self.entry_numbers)? {
                    self.send_initialize(context);
                }
            }
            VerifierEvent::Said(line) => self.handle_line(context, line)?,
            VerifierEvent::TooLarge { message, bytes_max } => {
                self.handle_oversize(context, &message, bytes_max)?
            }
            // Handled below, as a server that is given up on.
            VerifierEvent::Gone { reason } => self.gone = Some(reason.to_owned()),
            VerifierEvent::Due => self.expire(context)?,
        }
        if self.gone.is_some() {
            self.handle_server_gone(context)?;
            return Ok(true);
        }
        self.advance(context)?;
        // `advance` may give a server up, too.
        if self.gone.is_some() {
            self.handle_server_gone(context)?;
            return Ok(true);
        }
        let over = self.at == self.entry_numbers.len() && self.is_complete(context.now_ns);
        if over {
            self.compare_at_end(context)?;
        }
        Ok(over)
    }

    /// When to continue if no message arrives.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let answer = self.deadlines.keys().next().map(|(until_ns, _)| *until_ns);
        [answer, self.held_until, self.quiet_until].into_iter().flatten().min()
    }

    /// How many messages are finished.
    pub(super) fn progress(&self) -> usize {
        self.at
    }

    fn handle_line(&mut self, context: &mut VerifyContext<'_, '_>, line: &[u8]) -> io::Result<()> {
        let frame = Frame::read(line);
        match frame.body() {
            FrameBody::Message(envelope) => self.message(context, line.trim_ascii(), envelope),
            FrameBody::Batch => {
                for element in frame::elements(line) {
                    if let Some(envelope) = element.envelope() {
                        self.message(context, element.bytes(), envelope)?;
                    }
                }
                Ok(())
            }
            FrameBody::Garbage(_) => {
                self.handle_non_message(context, line);
                Ok(())
            }
        }
    }

    fn message(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> io::Result<()> {
        // Any message shows that the server is alive.
        self.silences = 0;
        match envelope.kind() {
            MessageKind::Response | MessageKind::Error => {
                self.handle_answer(context, text, envelope)
            }
            MessageKind::Request => self.handle_request(context, text, envelope),
            MessageKind::Notification => self.handle_notification(context, text, envelope),
            MessageKind::Other => {
                self.handle_non_message(context, text);
                Ok(())
            }
        }
    }

    fn handle_non_message(&self, context: &mut VerifyContext<'_, '_>, line: &[u8]) {
        const SHOWN_BYTES: usize = 80;
        let start = String::from_utf8_lossy(&line[..line.len().min(SHOWN_BYTES)]).into_owned();
        if !start.trim().is_empty() {
            context.report.note(self.session_subject(), VerifyNoteKind::NoMessage { start });
        }
    }

    /// The reference for a finding about the session as a whole.
    fn session_subject(&self) -> MessageRef {
        MessageRef { session: self.number, ..MessageRef::default() }
    }

    /// Continues with the tape as far as possible.
    fn advance(&mut self, context: &mut VerifyContext<'_, '_>) -> io::Result<()> {
        self.held_until = None;
        while let Some(&slot) = self.entry_numbers.get(self.at) {
            // The rest is sent after the server was read: if both sides only write, both block.
            if context.said_bytes > SAID_BYTES_MAX {
                self.held_until = Some(context.now_ns);
                return Ok(());
            }
            let entry = context.tape.entry(slot);
            match (entry.from, entry.kind) {
                (Side::Server, _) => self.expect_recorded(context, slot, &entry)?,
                (Side::Client, MessageKind::Request | MessageKind::Notification) => {
                    if !self.send_recorded(context, slot, &entry)? {
                        return Ok(());
                    }
                }
                // Answers are sent when the server asks for them.
                (Side::Client, _) => {}
            }
            self.passed_us = entry.at_us;
            self.at += 1;
        }
        Ok(())
    }
}
