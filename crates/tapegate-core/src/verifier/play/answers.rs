//! Answers of the live server: those that arrive, those that do not, and those that cannot be read.

use std::io;

use crate::frame::{Envelope, Frame, Kind};
use crate::lines::Oversize;
use crate::pending::IdKey;

use super::super::finding::{About, What};
use super::super::judge::Verdict;
use super::super::tools::Tools;
use super::{Asked, Asking, Kit, Play, Purpose, Waiting};

/// After this many unanswered requests in a row, a silent server is given up on.
const SILENCES_MAX: u32 = 3;
/// The notification that completes the client's initialization.
const INITIALIZED: &[u8] = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Play {
    /// Handles an answer.
    pub(super) fn answered(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        let waiting = said.id.and_then(|id| self.waiting.remove(&IdKey::new(id)));
        let Some(Waiting { purpose, deadline, .. }) = waiting else {
            // An unmatched answer is not a change if the tape has one too.
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
                let after_skipped = self.settle(slot);
                match deadline {
                    Some(_) => self.compare(kit, (slot, after_skipped), text, said),
                    None => Ok(()),
                }
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
            Purpose::Introduction => {
                self.own -= 1;
                if said.kind() == Kind::Response {
                    kit.say(INITIALIZED);
                }
                Ok(())
            }
        }
    }

    /// Notes that the request in `slot` is answered or never will be. Returns whether a message was
    /// skipped before it was sent.
    pub(super) fn settle(&mut self, slot: u32) -> bool {
        let asked = self.asked.remove(&slot);
        self.notices.close(slot);
        let Some(Asked { owed, after_skipped, .. }) = asked else { return false };
        self.owed -= usize::from(owed);
        after_skipped
    }

    /// Compares the answer to the request in `slot`.
    fn compare(
        &mut self,
        kit: &mut Kit<'_, '_>,
        (slot, after_skipped): (u32, bool),
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
                kit.report.find_after(after_skipped, about, What::Error { recorded, live });
                return Ok(());
            }
            (Kind::Error, Kind::Response) => {
                let live = live.into_owned();
                kit.report.find_after(after_skipped, about, What::Result { recorded, live });
                return Ok(());
            }
            _ => {}
        }
        let verdict = kit.judge.answer(&about.method, &recorded, &live);
        tell(kit, about, verdict, after_skipped);
        Ok(())
    }

    /// Handles a request that was not answered in time.
    pub(super) fn silent(&mut self, kit: &mut Kit<'_, '_>, key: &IdKey) -> io::Result<()> {
        let Some(waiting) = self.forget(key) else { return Ok(()) };
        let Waiting { purpose, sent_ns, deadline } = waiting;
        self.silences += 1;
        let slot = match purpose {
            Purpose::Recorded(slot) => slot,
            Purpose::Late => return Ok(()),
            Purpose::Introduction => {
                self.own -= 1;
                return Ok(());
            }
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
            kit.say(&note.concat());
        }
        self.settle(slot);
        self.unanswered(kit, &Asking::of(said), kit.tape.slot(slot).pair)?;
        kit.report.find(about, What::NoAnswer { waited_ms });
        if introduces || self.silences >= SILENCES_MAX {
            self.gone = Some("it no longer answers".to_owned());
        }
        Ok(())
    }

    /// Handles a message that was too large to keep.
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
            Some(Purpose::Introduction) => self.own -= 1,
            Some(Purpose::Late) | None => {}
        }
        kit.report.find(about, what);
        Ok(())
    }
}

/// Reports the differences of an answer; `after_skipped` is true if an earlier message was skipped.
pub(super) fn tell(kit: &mut Kit<'_, '_>, about: About, verdict: Verdict, after_skipped: bool) {
    let Verdict { version, changes } = verdict;
    if let Some((recorded, live)) = version {
        kit.report.find(about.clone(), What::Version { recorded, live });
    }
    if !changes.is_empty() {
        let introduces = matches!(about.method.as_str(), "initialize" | "server/discover");
        let what = if introduces { What::Server(changes) } else { What::Answer(changes) };
        kit.report.find_after(after_skipped, about, what);
    }
}
