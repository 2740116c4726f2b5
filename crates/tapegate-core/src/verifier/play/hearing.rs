//! What comes in: answers, notifications and questions of the live server.

use std::io;

use crate::frame::{Envelope, Frame, Kind, error_reply};
use crate::json::{Edits, member};
use crate::lines::Oversize;
use crate::pending::IdKey;
use crate::tape::index::NONE;

use super::super::Act;
use super::super::finding::{About, Became, List, NoteSort, What};
use super::super::judge::Verdict;
use super::super::listing::{Listing, Next};
use super::super::masked::Masked;
use super::super::tape;
use super::super::tools::Tools;
use super::sending::own_meta;
use super::{Kit, Play, Purpose, SILENCES_MAX, Waiting, group};

/// The error code for a method that nobody knows.
const CODE_UNKNOWN_METHOD: i32 = -32601;

impl Play {
    /// Takes an answer.
    pub(super) fn answered(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        let waiting = said.id.and_then(|id| self.waiting.remove(&IdKey::new(id)));
        let Some(Waiting { purpose, deadline, .. }) = waiting else {
            // Answers to nothing that the tape has too are no news.
            match self.strays {
                0 => kit
                    .report
                    .find(self.about(), What::Stray { live: kit.judge.masked(text).into_owned() }),
                _ => self.strays -= 1,
            }
            return Ok(());
        };
        if let Some(deadline) = deadline {
            self.deadlines.remove(&deadline);
        }
        self.base_ns = kit.now_ns;
        match purpose {
            Purpose::Late => Ok(()),
            Purpose::Recorded(slot) => {
                self.settle(slot);
                if deadline.is_none() { Ok(()) } else { self.compare(kit, slot, text, said) }
            }
            Purpose::Page(first) => {
                self.own -= 1;
                match said.kind() {
                    Kind::Response => self.listings.live(first, text, &kit.judge.masked(text)),
                    _ => self.listings.failed(first),
                }
                self.list_next(kit, first)
            }
            Purpose::Tools(tools, meta) => {
                self.own -= 1;
                self.tools_page(kit, tools, meta, said.result);
                Ok(())
            }
        }
    }

    /// The request in `slot` is answered, or never will be.
    fn settle(&mut self, slot: u32) {
        let asked = self.asked.remove(&slot);
        self.owed -= usize::from(asked.is_some_and(|asked| asked.owed));
        self.notices.close(slot);
    }

    /// Compares the answer to the request in `slot`.
    fn compare(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        let answer = kit.tape.slot(slot).pair;
        let about = kit.tape.about(answer)?;
        let recorded = kit.tape.text(answer)?;
        let before = Frame::read(&recorded);
        let Some(before) = before.envelope() else { return Ok(()) };
        let live = kit.judge.masked(text);
        kit.report.answers += 1;
        let result = before.result.filter(|_| before.kind() == Kind::Response);
        self.minted.learn(&about.method, result.unwrap_or_default(), said.result);
        match (before.kind(), said.kind()) {
            (Kind::Response, Kind::Response) => {
                if let Some(first) = self.page(kit, slot, &about.method)? {
                    self.listings.recorded(first, &recorded);
                    self.listings.live(first, text, &live);
                    return self.list_next(kit, first);
                }
            }
            (Kind::Response, Kind::Error) => {
                let live = live.into_owned();
                if let Some(first) = self.page(kit, slot, &about.method)? {
                    self.listings.recorded(first, &recorded);
                    self.listings.failed(first);
                }
                kit.report.find_after(self.left_out, about, What::Error { recorded, live });
                return Ok(());
            }
            (Kind::Error, Kind::Response) => {
                let live = live.into_owned();
                kit.report.find_after(self.left_out, about, What::Result { recorded, live });
                return Ok(());
            }
            _ => {}
        }
        let verdict = kit.judge.answer(&about.method, &recorded, &live);
        self.tell(kit, about, verdict);
        Ok(())
    }

    /// The list that the answer to the request in `slot` is a page of.
    fn page(&mut self, kit: &mut Kit<'_, '_>, slot: u32, method: &str) -> io::Result<Option<u32>> {
        let Some(list) = List::of_method(method) else { return Ok(None) };
        let request = kit.tape.text(slot)?;
        let params = member(&request, "params");
        Ok(match params.and_then(|params| member(params, "cursor")) {
            Some(cursor) => self.listings.follows(list, cursor),
            None => {
                self.listings.begin(list, slot);
                Some(slot)
            }
        })
    }

    /// Goes on with a list after a page of it.
    pub(super) fn list_next(&mut self, kit: &mut Kit<'_, '_>, first: u32) -> io::Result<()> {
        match self.listings.next(first) {
            Next::Wait => Ok(()),
            Next::Compare(listing) => self.compare_list(kit, first, *listing),
            Next::Fetch(cursor) => {
                let request = kit.tape.text(first)?;
                let meta = member(&request, "params").and_then(own_meta);
                let method = tape::about(&request).method;
                self.ask(kit, &method, Some(&cursor), meta.as_deref(), Purpose::Page(first));
                Ok(())
            }
        }
    }

    /// Compares a list that is known as far as it will be.
    pub(super) fn compare_list(
        &mut self,
        kit: &mut Kit<'_, '_>,
        first: u32,
        mut listing: Listing,
    ) -> io::Result<()> {
        let about = kit.tape.about(kit.tape.slot(first).pair)?;
        let compared = listing.compare(kit.judge);
        for verdict in compared.pages {
            self.tell(kit, about.clone(), verdict);
        }
        for what in compared.items {
            kit.report.find(about.clone(), what);
        }
        if compared.reordered {
            kit.report.note(about, NoteSort::Reordered(listing.list));
        }
        if let Some(tools) = listing.tools() {
            self.tools = Some(tools);
        }
        Ok(())
    }

    fn tools_page(
        &mut self,
        kit: &mut Kit<'_, '_>,
        mut tools: Tools,
        meta: Option<Vec<u8>>,
        result: Option<&[u8]>,
    ) {
        let Some(result) = result else {
            kit.report.note(self.about(), NoteSort::ToolsUnknown);
            self.tools = Some(Tools::default());
            return;
        };
        let before = tools.len();
        tools.add(result);
        match member(result, "nextCursor").filter(|_| tools.len() > before) {
            Some(cursor) => {
                let purpose = Purpose::Tools(tools, meta.clone());
                self.ask(kit, "tools/list", Some(cursor), meta.as_deref(), purpose);
            }
            None => self.tools = Some(tools),
        }
    }

    /// Reports what is different about an answer.
    fn tell(&self, kit: &mut Kit<'_, '_>, about: About, verdict: Verdict) {
        let Verdict { version, changes } = verdict;
        if let Some((recorded, live)) = version {
            kit.report.find(about.clone(), What::Version { recorded, live });
        }
        if !changes.is_empty() {
            let introduces = matches!(about.method.as_str(), "initialize" | "server/discover");
            let what = if introduces { What::Server(changes) } else { What::Answer(changes) };
            kit.report.find_after(self.left_out, about, what);
        }
    }

    /// Takes note that something was not answered in time.
    pub(super) fn silent(&mut self, kit: &mut Kit<'_, '_>, key: &IdKey) -> io::Result<()> {
        let Some(waiting) = self.forget(key) else { return Ok(()) };
        let Waiting { purpose, sent_ns, deadline } = waiting;
        self.silences += 1;
        let slot = match purpose {
            Purpose::Recorded(slot) => slot,
            Purpose::Late => return Ok(()),
            Purpose::Tools(..) => {
                self.own -= 1;
                self.tools_page(kit, Tools::default(), None, None);
                return Ok(());
            }
            Purpose::Page(first) => {
                self.own -= 1;
                self.listings.failed(first);
                return self.list_next(kit, first);
            }
        };
        let request = kit.tape.text(slot)?;
        let about = kit.tape.about(kit.tape.slot(slot).pair)?;
        let frame = Frame::read(&request);
        let Some(said) = frame.envelope() else { return Ok(()) };
        let until_ns = deadline.map_or(kit.now_ns, |(until_ns, _)| until_ns);
        let waited_ms = until_ns.saturating_sub(sent_ns) / 1_000_000;
        let introduces = about.method == "initialize";
        if let Some(asked) = self.asked.get(&slot).filter(|_| !introduces) {
            let note = [
                b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":",
                asked.id.as_slice(),
                b",\"reason\":\"no answer in time\"}}",
            ];
            (kit.act)(Act::Say(&note.concat()));
        }
        self.settle(slot);
        self.unanswered(kit, &about.method, said, kit.tape.slot(slot).pair)?;
        kit.report.find(about, What::NoAnswer { waited_ms });
        if introduces || self.silences >= SILENCES_MAX {
            self.gone = Some("it does not answer any more".to_owned());
        }
        Ok(())
    }

    /// Takes a message that was too large to keep.
    pub(super) fn too_large(
        &mut self,
        kit: &mut Kit<'_, '_>,
        message: &Oversize,
        bytes_max: usize,
    ) -> io::Result<()> {
        let what = What::TooLarge { bytes_total: message.bytes_total, bytes_max };
        let id = message.said.id.as_deref().filter(|_| message.said.answer);
        let key = id.map(IdKey::new);
        let before = key.as_ref().and_then(|key| self.forget(key));
        let mut about = self.about();
        match before.map(|before| before.purpose) {
            Some(Purpose::Recorded(slot)) => {
                self.settle(slot);
                about = kit.tape.about(slot)?;
            }
            Some(Purpose::Page(first)) => {
                self.own -= 1;
                self.listings.failed(first);
                self.list_next(kit, first)?;
            }
            Some(Purpose::Tools(..)) => {
                self.own -= 1;
                self.tools_page(kit, Tools::default(), None, None);
            }
            Some(Purpose::Late) | None => {}
        }
        kit.report.find(about, what);
        Ok(())
    }

    /// Takes a notification.
    pub(super) fn noticed(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        if said.is_method("notifications/tools/list_changed") {
            self.tools = None;
        }
        let (group, _) = group(&self.owners.live, said);
        let masked = kit.judge.masked(text);
        self.notices.hear(kit.tape, kit.judge, group, &masked)
    }

    /// Takes a question, and answers it as it was answered on the tape.
    pub(super) fn questioned(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        let id = said.id.unwrap_or(b"null");
        let masked = kit.judge.masked(text);
        let about = About { session: self.number, ..tape::about(&masked) };
        let found = self.questions.take(kit.tape, kit.judge, &about.method, &masked)?;
        let ping = about.method == "ping";
        let Some(found) = found else {
            let reply = match ping {
                true => [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":{}}"].concat(),
                false => {
                    let words = format!("{} was not asked when this was recorded", about.method);
                    error_reply(id, CODE_UNKNOWN_METHOD, &words, "{\"by\":\"tapegate\"}")
                }
            };
            (kit.act)(Act::Say(&reply));
            if !ping {
                kit.report.find(about, What::Question(Became::Added(masked.into_owned())));
            }
            return Ok(());
        };
        if !found.changes.is_empty() {
            let about = kit.tape.about(found.slot)?;
            kit.report.find(about, What::Question(Became::Changed(found.changes)));
        }
        self.reply(kit, found.slot, id, about)
    }

    /// Gives the recorded answer to the question in `slot`.
    fn reply(
        &mut self,
        kit: &mut Kit<'_, '_>,
        slot: u32,
        id: &[u8],
        about: About,
    ) -> io::Result<()> {
        let answer = kit.tape.slot(slot).pair;
        if answer == NONE {
            return Ok(());
        }
        let text = kit.tape.text(answer)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { return Ok(()) };
        let mut edits = Edits::new(&text);
        if let Some(recorded) = said.id {
            edits.replace(recorded, id);
        }
        // A task that the live server does not have is no reason to leave a question open.
        self.minted.edit("", said, &mut edits).ok();
        if Masked::of(said) != Masked::Nothing {
            kit.report.note(about, NoteSort::PlaceholderSent);
        }
        self.base_ns = kit.now_ns;
        (kit.act)(Act::Say(&edits.finish()));
        Ok(())
    }
}
