//! The tape that is played, by session.

use std::io;
use std::ops::Range;

use crate::frame::{Frame, MessageKind};
use crate::json::compact;
use crate::side::Side;
use crate::signature::Signer;
use crate::tape::index::{BodySource, Index, IndexEntry, NONE};

use super::finding::MessageRef;
use super::tool_hints::ToolHints;

/// A tape and its bodies.
pub(super) struct VerifierTape<'t> {
    pub(super) index: &'t Index,
    bodies: Box<dyn BodySource + 't>,
    signer: Signer,
    /// The entries of all sessions, one session after the other.
    entry_numbers: Vec<u32>,
    /// The range of each session in `entry_numbers`.
    sessions: Vec<Range<usize>>,
    /// What the tape declares about tools, once it was needed.
    tools: Option<ToolHints>,
}

impl<'t> VerifierTape<'t> {
    /// A tape whose index was built with `signer`.
    pub(super) fn new(index: &'t Index, bodies: Box<dyn BodySource + 't>, signer: Signer) -> Self {
        let (entry_numbers, all) = by_session(index);
        let says = |entry_number: &u32| {
            let entry_number = index.entry(*entry_number);
            entry_number.from == Side::Client
                && matches!(entry_number.kind, MessageKind::Request | MessageKind::Notification)
        };
        // A session without messages from a client has nothing to play.
        let sessions =
            all.into_iter().filter(|range| entry_numbers[range.clone()].iter().any(says));
        let sessions = sessions.collect();
        Self { index, bodies, signer, entry_numbers, sessions, tools: None }
    }

    /// How many messages can be played.
    pub(super) fn messages(&self) -> usize {
        self.sessions.iter().map(ExactSizeIterator::len).sum()
    }

    /// The entries of a session, in tape order.
    pub(super) fn session(&self, session: usize) -> &[u32] {
        self.sessions.get(session).map_or(&[], |range| &self.entry_numbers[range.clone()])
    }

    /// The index entry of a message.
    pub(super) fn entry(&self, entry_number: u32) -> IndexEntry {
        self.index.entry(entry_number)
    }

    /// The text of a message, on one line.
    pub(super) fn text(&mut self, entry_number: u32) -> io::Result<Vec<u8>> {
        let IndexEntry { offset, length, .. } = self.index.entry(entry_number);
        let text = self.bodies.body(offset, length)?;
        Ok(compact(text).into_owned())
    }

    /// The reference to the message at `entry_number` for a finding; for an answer, to its request.
    pub(super) fn message_ref(&mut self, entry_number: u32) -> io::Result<MessageRef> {
        let IndexEntry { kind, pair, number, session, .. } = self.index.entry(entry_number);
        let is_paired_answer =
            matches!(kind, MessageKind::Response | MessageKind::Error) && pair != NONE;
        let text = self.text(if is_paired_answer { pair } else { entry_number })?;
        let mut about = message_ref_of(&text);
        about.session = session + 1;
        about.number = Some(number);
        Ok(about)
    }

    /// What all tool lists on the tape declare; `None` if it has none.
    pub(super) fn tools(&mut self) -> io::Result<Option<&ToolHints>> {
        if self.tools.is_none() {
            self.tools = Some(self.read_tools()?);
        }
        Ok(self.tools.as_ref().filter(|tools| tools.pages() > 0))
    }

    fn read_tools(&mut self) -> io::Result<ToolHints> {
        let mut tools = ToolHints::default();
        // The id is not part of the signature, so any will do.
        let request = br#"{"method":"tools/list","id":0}"#;
        let frame = Frame::read(request);
        let Some(envelope) = frame.envelope() else { return Ok(tools) };
        let mut next = self.index.first_with_subject(self.signer.sign(request, envelope));
        while let Some(request_number) = next.filter(|request_number| *request_number != NONE) {
            let answer = self.index.entry(self.index.request(request_number).entry_number).pair;
            if answer != NONE {
                let text = self.text(answer)?;
                if let Some(result) =
                    Frame::read(&text).envelope().and_then(|envelope| envelope.result)
                {
                    // All lists count, because a tool may change its annotations during a session.
                    tools.add(result);
                }
            }
            next = Some(self.index.next_with_subject(request_number));
        }
        Ok(tools)
    }
}

/// The entries of all sessions, one session after the other and each in tape order, and the range of
/// each session.
fn by_session(index: &Index) -> (Vec<u32>, Vec<Range<usize>>) {
    let count = index.len() as u32;
    let session = |entry_number: u32| index.entry(entry_number).session as usize;
    let mut ends = vec![0; (0..count).map(session).max().map_or(0, |last| last + 1)];
    (0..count).for_each(|entry_number| ends[session(entry_number)] += 1);
    let mut start = 0;
    let mut ranges = Vec::with_capacity(ends.len());
    for end in &mut ends {
        ranges.push(start..start + *end);
        start += *end;
        *end = ranges[ranges.len() - 1].start;
    }
    let mut entry_numbers = vec![0; index.len()];
    for entry_number in 0..count {
        let next = &mut ends[session(entry_number)];
        entry_numbers[*next] = entry_number;
        *next += 1;
    }
    (entry_numbers, ranges)
}

/// The reference to a message, by its text.
pub(super) fn message_ref_of(text: &[u8]) -> MessageRef {
    let frame = Frame::read(text);
    let Some(envelope) = frame.envelope() else { return MessageRef::default() };
    let method = envelope.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let name = envelope.name.or(envelope.uri).map(|name| name.decode().into_owned());
    MessageRef { session: 0, number: None, method, name }
}
