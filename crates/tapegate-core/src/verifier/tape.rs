//! The tape that is played, session by session.

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
    /// The slots of all sessions, those of the first in front.
    slots: Vec<u32>,
    /// Where in `slots` each session stands.
    sessions: Vec<Range<usize>>,
    /// What the tape says about tools, once somebody has asked.
    tools: Option<Tools>,
}

impl<'t> Tape<'t> {
    /// A tape whose index was signed with `signer`.
    pub(super) fn new(index: &'t Index, bodies: Box<dyn Bodies + 't>, signer: Signer) -> Self {
        let count = index.len() as u32;
        let mut slots: Vec<u32> = (0..count).collect();
        slots.sort_by_key(|slot| index.slot(*slot).session);
        let mut sessions = Vec::new();
        let mut start = 0;
        for end in 1..=slots.len() {
            let session = |at: usize| slots.get(at).map(|slot| index.slot(*slot).session);
            if session(end) != session(start) {
                let says = |slot: &u32| {
                    let slot = index.slot(*slot);
                    slot.from == Side::Client
                        && matches!(slot.kind, Kind::Request | Kind::Notification)
                };
                // Where no client says anything, there is nothing to play.
                if slots[start..end].iter().any(says) {
                    sessions.push(start..end);
                }
                start = end;
            }
        }
        Self { index, bodies, signer, slots, sessions, tools: None }
    }

    /// How many sessions can be played.
    pub(super) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// The slots of a session, in tape order.
    pub(super) fn session(&self, session: usize) -> &[u32] {
        self.sessions.get(session).map_or(&[], |range| &self.slots[range.clone()])
    }

    /// What the index keeps of a message.
    pub(super) fn slot(&self, slot: u32) -> Slot {
        self.index.slot(slot)
    }

    /// The text of a message, on one line.
    pub(super) fn text(&mut self, slot: u32) -> io::Result<Vec<u8>> {
        let Slot { offset, length, .. } = self.index.slot(slot);
        let text = self.bodies.body(offset, length)?;
        Ok(compact(text).into_owned())
    }

    /// What a finding says of the message in `slot`: of an answer, what it answers.
    pub(super) fn about(&mut self, slot: u32) -> io::Result<About> {
        let Slot { kind, pair, number, session, .. } = self.index.slot(slot);
        let asked = matches!(kind, Kind::Response | Kind::Error) && pair != NONE;
        let text = self.text(if asked { pair } else { slot })?;
        let mut about = about(&text);
        about.session = session + 1;
        about.number = Some(number);
        Ok(about)
    }

    /// What all lists of tools on the tape say; nothing if it has none.
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

/// What a message says it is about.
pub(super) fn about(text: &[u8]) -> About {
    let frame = Frame::read(text);
    let Some(said) = frame.envelope() else { return About::default() };
    let method = said.method.map(|method| method.decode().into_owned()).unwrap_or_default();
    let name = said.name.or(said.uri).map(|name| name.decode().into_owned());
    About { session: 0, number: None, method, name }
}
