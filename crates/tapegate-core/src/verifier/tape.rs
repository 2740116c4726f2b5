//! The tape that is played, by session.

use std::io;
use std::ops::Range;

use crate::frame::{Frame, Kind};
use crate::json::compact;
use crate::side::Side;
use crate::signature::Signer;
use crate::tape::index::{Bodies, Index, NONE, Slot};

use super::finding::About;
use super::tools::Tools;

/// A tape and its bodies.
pub(super) struct Tape<'t> {
    pub(super) index: &'t Index,
    bodies: Box<dyn Bodies + 't>,
    signer: Signer,
    /// The slots of all sessions, one session after the other.
    slots: Vec<u32>,
    /// The range of each session in `slots`.
    sessions: Vec<Range<usize>>,
    /// What the tape declares about tools, once it was needed.
    tools: Option<Tools>,
}

impl<'t> Tape<'t> {
    /// A tape whose index was built with `signer`.
    pub(super) fn new(index: &'t Index, bodies: Box<dyn Bodies + 't>, signer: Signer) -> Self {
        let (slots, all) = by_session(index);
        let says = |slot: &u32| {
            let slot = index.slot(*slot);
            slot.from == Side::Client && matches!(slot.kind, Kind::Request | Kind::Notification)
        };
        // A session without messages from a client has nothing to play.
        let sessions = all.into_iter().filter(|range| slots[range.clone()].iter().any(says));
        let sessions = sessions.collect();
        Self { index, bodies, signer, slots, sessions, tools: None }
    }

    /// How many messages can be played.
    pub(super) fn messages(&self) -> usize {
        self.sessions.iter().map(ExactSizeIterator::len).sum()
    }

    /// The slots of a session, in tape order.
    pub(super) fn session(&self, session: usize) -> &[u32] {
        self.sessions.get(session).map_or(&[], |range| &self.slots[range.clone()])
    }

    /// The index entry of a message.
    pub(super) fn slot(&self, slot: u32) -> Slot {
        self.index.slot(slot)
    }

    /// The text of a message, on one line.
    pub(super) fn text(&mut self, slot: u32) -> io::Result<Vec<u8>> {
        let Slot { offset, length, .. } = self.index.slot(slot);
        let text = self.bodies.body(offset, length)?;
        Ok(compact(text).into_owned())
    }

    /// The reference to the message in `slot` for a finding; for an answer, to its request.
    pub(super) fn about(&mut self, slot: u32) -> io::Result<About> {
        let Slot { kind, pair, number, session, .. } = self.index.slot(slot);
        let asked = matches!(kind, Kind::Response | Kind::Error) && pair != NONE;
        let text = self.text(if asked { pair } else { slot })?;
        let mut about = about(&text);
        about.session = session + 1;
        about.number = Some(number);
        Ok(about)
    }

    /// What all tool lists on the tape declare; `None` if it has none.
    pub(super) fn tools(&mut self) -> io::Result<Option<&Tools>> {
        if self.tools.is_none() {
            self.tools = Some(self.read_tools()?);
        }
        Ok(self.tools.as_ref().filter(|tools| tools.pages() > 0))
    }

    fn read_tools(&mut self) -> io::Result<Tools> {
        let mut tools = Tools::default();
        let request = br#"{"method":"tools/list","id":0}"#;
        let frame = Frame::read(request);
        let Some(said) = frame.envelope() else { return Ok(tools) };
        let mut next = self.index.first_like(self.signer.sign(request, said));
        while let Some(ask) = next.filter(|ask| *ask != NONE) {
            let answer = self.index.slot(self.index.ask(ask).slot).pair;
            if answer != NONE {
                let text = self.text(answer)?;
                if let Some(result) = Frame::read(&text).envelope().and_then(|said| said.result) {
                    tools.add(result);
                }
            }
            next = Some(self.index.next_like(ask));
        }
        Ok(tools)
    }
}

/// The slots of all sessions, one session after the other and each in tape order, and the range of
/// each session.
fn by_session(index: &Index) -> (Vec<u32>, Vec<Range<usize>>) {
    let count = index.len() as u32;
    let session = |slot: u32| index.slot(slot).session as usize;
    let mut ends = vec![0; (0..count).map(session).max().map_or(0, |last| last + 1)];
    (0..count).for_each(|slot| ends[session(slot)] += 1);
    let mut start = 0;
    let mut ranges = Vec::with_capacity(ends.len());
    for end in &mut ends {
        ranges.push(start..start + *end);
        start += *end;
        *end = ranges[ranges.len() - 1].start;
    }
    let mut slots = vec![0; index.len()];
    for slot in 0..count {
        let next = &mut ends[session(slot)];
        slots[*next] = slot;
        *next += 1;
    }
    (slots, ranges)
}

/// The reference to a message, by its text.
pub(super) fn about(text: &[u8]) -> About {
    let frame = Frame::read(text);
    let Some(said) = frame.envelope() else { return About::default() };
    let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let name = said.name.or(said.uri).map(|name| name.decode().into_owned());
    About { session: 0, number: None, method, name }
}
