//! Unprompted messages of the live server: notifications, and requests to the client.

use std::io;

use crate::frame::{Envelope, Frame, error_reply};
use crate::json::Edits;
use crate::tape::index::NONE;

use super::super::calls::Calls;
use super::super::doubt::is_doubtful;
use super::super::finding::{About, Became, NoteSort, What, Why};
use super::super::masked::Masked;
use super::super::questions::Match;
use super::super::tape;
use super::owners::group;
use super::{Kit, Play};

/// The error code for an unknown method.
const CODE_UNKNOWN_METHOD: i32 = -32601;
/// The error code for an answer that is withheld.
const CODE_REFUSED: i32 = -32000;

impl Play {
    /// Handles a notification.
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

    /// Handles a request from the server, and answers it as on the tape.
    pub(super) fn questioned(
        &mut self,
        kit: &mut Kit<'_, '_>,
        text: &[u8],
        said: &Envelope<'_>,
    ) -> io::Result<()> {
        let id = said.id.unwrap_or(b"null");
        let masked = kit.judge.masked(text);
        let about = About { session: self.number, ..tape::about(&masked) };
        match self.questions.take(kit.tape, kit.judge, &about.method, &masked)? {
            Match::Recorded { slot, changes } => {
                if !changes.is_empty() {
                    let about = kit.tape.about(slot)?;
                    kit.report.find(about, What::Question(Became::Changed(changes)));
                }
                return self.reply(kit, slot, id, about);
            }
            Match::Unknown if about.method == "ping" => {
                kit.say(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":{}}"].concat());
                return Ok(());
            }
            Match::Unknown => {
                let what = What::Question(Became::Added(masked.into_owned()));
                kit.report.find(about.clone(), what);
            }
            Match::Withheld => kit.report.note(about.clone(), NoteSort::Withheld),
        }
        let words = format!("{} has no recorded answer here", about.method);
        kit.say(&error_reply(id, CODE_UNKNOWN_METHOD, &words, "{\"by\":\"tapegate\"}"));
        Ok(())
    }

    /// Sends the recorded answer to the request in `slot`.
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
        if kit.calls < Calls::All && is_doubtful(&text, None) {
            let words = "the recorded answer is ambiguous";
            let reply = error_reply(id, CODE_REFUSED, words, "{\"by\":\"tapegate\"}");
            kit.report.skip(about, Why::Doubtful);
            kit.say(&reply);
            return Ok(());
        }
        let mut edits = Edits::new(&text);
        if let Some(recorded) = said.id {
            edits.replace(recorded, id);
        }
        // Answer the request even if it refers to a task that the live server does not have.
        self.minted.edit("", said, &mut edits).ok();
        if Masked::of(said) != Masked::Nothing {
            kit.report.note(about, NoteSort::PlaceholderSent);
        }
        self.base_ns = kit.now_ns;
        kit.say(&edits.finish());
        Ok(())
    }
}
