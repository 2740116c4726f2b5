//! Sending: whether a recorded message may be sent, when, and with which ids.

use std::io;

use crate::frame::{Envelope, Frame, Kind};
use crate::json::Edits;
use crate::pending::IdKey;
use crate::tape::index::{NONE, Slot};

use super::super::calls::{Calls, Effect};
use super::super::doubt::is_doubtful;
use super::super::finding::{About, List, NoteSort, Why};
use super::super::masked::Masked;
use super::super::minted::{Fate, Token};
use super::super::tape;
use super::super::tools::Hint;
use super::own::own_meta;
use super::{Asked, Asking, Kit, Play, Purpose};

/// What to do with a message from the client.
enum Decision {
    Send,
    /// Ignore it: it refers to a request that was not sent or is already answered.
    Drop,
    Skip(Why),
    /// Wait.
    Wait,
}

impl Play {
    /// Sends or skips a recorded message of the client; returns false if it must wait.
    pub(super) fn speak(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        there: &Slot,
    ) -> io::Result<bool> {
        let text = kit.tape.text(slot)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { return Ok(true) };
        let kept = was_kept(kit, there).then_some(Why::Refused);
        let decision = match kept.or_else(|| refusal(kit.calls, &text, said)) {
            Some(why) => Decision::Skip(why),
            None if self.is_held(kit, said, there) => Decision::Wait,
            None => self.decide(kit, said)?,
        };
        let sent = match decision {
            Decision::Wait => return Ok(false),
            Decision::Drop => Ok(()),
            Decision::Skip(why) => Err(why),
            Decision::Send if said.kind() == Kind::Request => {
                self.send_request(kit, slot, there, &text, said).map_err(Why::NotMinted)
            }
            Decision::Send => self.send_notification(kit, &text, said).map_err(Why::NotMinted),
        };
        if let Err(why) = sent {
            self.skip(kit, slot, said, why)?;
        }
        self.base_us = there.at_us;
        Ok(true)
    }

    /// Why the message in `slot` is never sent, if the message alone shows it.
    pub(super) fn refusal(&self, kit: &mut Kit<'_, '_>, slot: u32) -> io::Result<Option<Why>> {
        if was_kept(kit, &kit.tape.slot(slot)) {
            return Ok(Some(Why::Refused));
        }
        let text = kit.tape.text(slot)?;
        Ok(Frame::read(&text).envelope().and_then(|said| refusal(kit.calls, &text, said)))
    }

    /// Whether something that precedes it on the tape has yet to arrive.
    fn is_held(&mut self, kit: &Kit<'_, '_>, said: &Envelope<'_>, there: &Slot) -> bool {
        if self.owed > 0 || self.own > 0 {
            return true;
        }
        let now_ns = kit.now_ns;
        let notices = self.notices.wanted_until(now_ns, self.base_ns, false);
        let questions = self.questions.wanted_until(now_ns, self.base_ns);
        // Poll at the pace of the tape; faster polling would only show how fast we are.
        let pace_us = there.at_us.saturating_sub(self.passed_us);
        let pace_ns = self.base_ns + pace_us.saturating_mul(1000).min(kit.timeout_ns);
        let pace = (said.is_method("tasks/get") && pace_ns > now_ns).then_some(pace_ns);
        self.held_until = [notices, questions, pace].into_iter().flatten().min();
        if self.held_until.is_none() {
            self.notices.give_up(now_ns, self.base_ns);
        }
        self.held_until.is_some()
    }

    /// Decides about a message that may be sent as far as the message alone shows.
    fn decide(&mut self, kit: &mut Kit<'_, '_>, said: &Envelope<'_>) -> io::Result<Decision> {
        let all = kit.calls == Calls::All;
        Ok(match effect(said) {
            Effect::CallsTool if !all => return self.decide_tool(kit, said),
            Effect::FollowsTask if !all => match self.minted.task(said) {
                Fate::Live(_) => Decision::Send,
                _ => Decision::Skip(Why::NotAskedFor),
            },
            Effect::TakesBack => match self.taken_back(said) {
                Some(_) => Decision::Send,
                None => Decision::Drop,
            },
            _ => Decision::Send,
        })
    }

    /// Decides about a tool call: it is sent if both the tape and the live server declare the tool
    /// read-only.
    fn decide_tool(&mut self, kit: &mut Kit<'_, '_>, said: &Envelope<'_>) -> io::Result<Decision> {
        let Some(name) = said.name else { return Ok(Decision::Skip(Why::NotAskedFor)) };
        let name = name.decode();
        let recorded = kit.tape.tools()?;
        if recorded.is_some_and(|tools| tools.hint(&name) != Some(Hint::ReadOnly)) {
            return Ok(Decision::Skip(Why::NotReadOnlyOnTape));
        }
        let Some(live) = &self.tools else {
            let meta = said.params.and_then(own_meta);
            self.ask_for_tools(kit, meta);
            return Ok(Decision::Wait);
        };
        Ok(match live.hint(&name) {
            Some(Hint::ReadOnly) => Decision::Send,
            _ => Decision::Skip(Why::NotReadOnlyLive),
        })
    }

    fn skip(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        said: &Envelope<'_>,
        why: Why,
    ) -> io::Result<()> {
        kit.report.skip(kit.tape.about(slot)?, why);
        self.left_out |= effect(said) != Effect::Discovers;
        if said.kind() == Kind::Request {
            self.owners.note(said, slot);
            self.open_skipped.insert(slot, Asking::of(said));
        }
        Ok(())
    }

    /// Notes that the live server does not give the answer in slot `answer`.
    pub(super) fn unanswered(
        &mut self,
        kit: &mut Kit<'_, '_>,
        asking: &Asking,
        answer: u32,
    ) -> io::Result<()> {
        let method = asking.method.as_str();
        let list = List::of_method(method);
        // If only lists are sent, only cursors are returned to the server.
        if kit.calls == Calls::List && list.is_none() {
            return Ok(());
        }
        let text = kit.tape.text(answer)?;
        let result = Frame::read(&text).envelope().and_then(|said| said.result);
        self.minted.learn(method, result.unwrap_or_default(), None);
        let list = list.zip(asking.cursor.as_deref());
        if let Some(first) = list.and_then(|(list, cursor)| self.listings.follows(list, cursor)) {
            // The live list may have ended earlier; the items of this page still count.
            let gone = matches!(list, Some((_, cursor)) if self.minted.fate(Token::Cursor, method, cursor) == Fate::Lost);
            self.listings.recorded(first, &text);
            if !gone {
                self.listings.failed(first);
            }
            self.list_next(kit, first)?;
        }
        Ok(())
    }

    /// Sends a request; fails if it contains a value that the live server has not issued.
    fn send_request(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        there: &Slot,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> Result<(), Token> {
        let method = said.method.map(|method| method.decode()).unwrap_or_default();
        let mut edits = Edits::new(text);
        self.minted.edit(&method, said, &mut edits)?;
        let recorded_id = said.id.unwrap_or(b"null");
        let id = self.free_id(recorded_id);
        if id != recorded_id {
            edits.replace(recorded_id, &id);
        }
        let token = said.progress_token.map(|token| {
            let live = if self.is_token_used(token) { self.new_id() } else { token.to_vec() };
            edits.replace(token, &live);
            live
        });
        self.owners.note(said, slot);
        self.owners.note_live(said, slot, &id, token.as_deref());
        let answer = (there.pair != NONE && !there.cancelled).then(|| kit.tape.slot(there.pair));
        let deadline_ns = answer.filter(|answer| !answer.ours).map(|answer| {
            let took_ns = answer.latency_us.unwrap_or(0).saturating_mul(2000);
            kit.now_ns.saturating_add(kit.timeout_ns.max(took_ns))
        });
        if there.pair != NONE {
            self.open_sent.insert(slot);
        }
        let key = self.wait(kit, &id, Purpose::Recorded(slot), deadline_ns);
        let after_skipped = self.left_out;
        self.asked.insert(slot, Asked { key, id, owed: false, after_skipped });
        if Masked::of(said) != Masked::Nothing {
            let about = tape::about(text);
            kit.report.note(About { session: self.number, ..about }, NoteSort::PlaceholderSent);
        }
        kit.report.requests += 1;
        kit.say(&edits.finish());
        Ok(())
    }

    fn send_notification(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> Result<(), Token> {
        let mut edits = Edits::new(text);
        self.minted.edit("", said, &mut edits)?;
        if let (Some(slot), Some(id)) = (self.taken_back(said), said.request_id)
            && let Some(asked) = self.asked.remove(&slot)
        {
            edits.replace(id, &asked.id);
            self.forget(&asked.key);
            self.notices.close(slot);
        }
        self.base_ns = kit.now_ns;
        kit.say(&edits.finish());
        Ok(())
    }

    /// The request that a cancellation refers to, if it was sent and is not answered.
    fn taken_back(&self, said: &Envelope<'_>) -> Option<u32> {
        let id = said.request_id.filter(|_| said.is_method("notifications/cancelled"))?;
        let slot = self.owners.by_id.get(&IdKey::new(id))?;
        self.asked.contains_key(slot).then_some(*slot)
    }
}

/// Why a message is never sent, if the message alone shows it.
fn refusal(calls: Calls, text: &[u8], said: &Envelope<'_>) -> Option<Why> {
    let effect = effect(said);
    let needed = match effect {
        Effect::Discovers | Effect::TakesBack => Calls::List,
        // Without calls there is no task to ask about; that is decided when it is this message's
        // turn.
        Effect::Reads | Effect::CallsTool | Effect::FollowsTask => Calls::ReadOnly,
        Effect::Unknown => Calls::All,
    };
    if calls < needed {
        return Some(match effect {
            Effect::Reads => Why::OnlyListed,
            _ => Why::NotAskedFor,
        });
    }
    if calls < Calls::All && is_doubtful(text, said.params) {
        return Some(Why::Doubtful);
    }
    (Masked::of(said) == Masked::Asked).then_some(Why::Masked)
}

fn effect(said: &Envelope<'_>) -> Effect {
    // If readers may disagree about the method or the name, it may do anything.
    if said.repeated {
        return Effect::Unknown;
    }
    let method = said.method.map(|method| method.decode()).unwrap_or_default();
    match said.kind() {
        Kind::Request => Effect::of_request(&method),
        _ => Effect::of_notification(&method),
    }
}

/// Whether a gate withheld a message from the server: it was refused, or held and never sent.
fn was_kept(kit: &Kit<'_, '_>, there: &Slot) -> bool {
    there.gated && (there.pair == NONE || kit.tape.slot(there.pair).ours)
}
