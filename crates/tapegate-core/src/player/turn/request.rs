//! Handles a request of the client: what the tape has for it is played, and a request that is not
//! on the tape is a divergence.

use std::io;

use super::super::differing::first_difference;
use super::super::find::Found;
use super::super::run::Run;
use super::super::scene::Scene;
use super::super::tape::{Asked, named};
use super::super::{Context, OnUnmatched, Reason};
use super::{CODE_NO_METHOD, Turn};
use crate::actor::Act;
use crate::frame::{Envelope, Frame, error_reply};
use crate::json;
use crate::signature::Signature;
use crate::tape::Provenance;
use crate::tape::index::NONE;

/// The code of the error for a request that is not on the tape.
const CODE_UNMATCHED: i32 = -32000;

impl Turn<'_, '_> {
    pub(super) fn request(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        let id = said.id.unwrap_or(b"null");
        if said.is_method("ping") {
            self.desk.courtesy();
            match self.context.tape.era()?.is_stateless(said) {
                true => self.refuse(id, CODE_NO_METHOD, "Method not found", batch),
                false => self.result(id, b"{}", batch),
            }
            return Ok(());
        }
        if said.is_method("initialize") {
            self.live.initialize = Some(said.params.unwrap_or(b"{}").to_vec());
        }
        if let Some(signature) = signature {
            return self.look_up(text, said, batch, &Asked { text, said, signature });
        }
        let masked = self.context.tape.masked(text);
        let frame = Frame::read(&masked);
        let Some(meant) = frame.envelope() else { return Ok(()) };
        let signature = self.context.tape.signer.sign(&masked, meant);
        self.look_up(text, said, batch, &Asked { text: &masked, said: meant, signature })
    }

    /// Answers a request from the tape, if it has an answer.
    fn look_up(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        batch: Option<u32>,
        asked: &Asked<'_>,
    ) -> io::Result<()> {
        let found = self.find(asked)?;
        let (reason, expected) = match &found {
            Found::Nothing { reason, expected } => (*reason, *expected),
            _ => match found.ask() {
                Some(ask) if self.is_answered(ask, said)? => {
                    return self.play(text, said, batch, &found, asked);
                }
                ask => (Reason::Unanswered, ask),
            },
        };
        if self.be_courteous(said, batch)? {
            return Ok(());
        }
        self.diverge(text, said, batch, asked, (reason, expected))
    }

    /// Whether the tape has a response. A cancelled request needs no answer, and a subscription
    /// stays open by design. An error that a replay recorded because its tape had no answer does
    /// not count.
    fn is_answered(&mut self, ask: u32, said: &Envelope<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        let slot = tape.slot_of(ask);
        if slot.pair != NONE {
            return Ok(!tape.is_refused(&slot)?);
        }
        // Over HTTP a sessionless client cancels a request by closing its stream, which the tape
        // shows only by the client's later requests.
        let closed = || is_stateless(said) && tape.is_outlived(ask);
        Ok(slot.cancelled || said.is_method("subscriptions/listen") || closed())
    }

    /// Plays what the tape has for a request.
    fn play(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        batch: Option<u32>,
        found: &Found,
        asked: &Asked<'_>,
    ) -> io::Result<()> {
        let Some(ask) = found.ask() else { return Ok(()) };
        self.tell_found(found, ask, asked)?;
        let slot = self.context.tape.slot_of(ask);
        if said.is_method("initialize") {
            self.compare_versions(said, ask)?;
        }
        if let (true, Some(id)) = (said.is_method("subscriptions/listen"), said.id) {
            let frame = Frame::read(self.context.tape.request(ask)?);
            let recorded = frame.envelope().and_then(|recorded| recorded.id);
            let run = self.live.run;
            recorded.into_iter().for_each(|recorded| self.live.subscribe(run, recorded, id));
        }
        let number = self.live.scene_number();
        let anchor = self.context.tape.index.ask(ask).slot;
        let scene = Scene::new((number, self.live.run), anchor, &slot, self.at);
        let mut scene = scene.answering(said, batch, ask, self.context.tape)?;
        if !said.is_method("subscriptions/listen") {
            let Context { tape, options } = &mut self.context;
            scene.cancellable = tape.cancellable(ask, text, self.at, options)?;
        }
        if let Some((recorded, token)) = scene.token() {
            self.live.learn_token(recorded, token);
        }
        self.live.expect(batch);
        self.play_on(scene)
    }

    /// Counts a request that was matched, and reports how.
    fn tell_found(&mut self, found: &Found, ask: u32, asked: &Asked<'_>) -> io::Result<()> {
        self.desk.matched(ask);
        let tape = &mut self.context.tape;
        let number = tape.slot_of(ask).number;
        let how = match found {
            Found::Early(_) => "out of order",
            Found::Again(_) => "once more",
            Found::Differing(_) => "with other params",
            Found::Near { .. } => "because it is similar",
            Found::Same(_) | Found::Nothing { .. } => "with the same params",
        };
        self.desk.found(number, asked, how);
        match found {
            Found::Differing(_) if !asked.said.is_method("initialize") => {
                self.desk.differs(tape, ask, asked)?;
            }
            Found::Early(_) => self.desk.early(number, asked),
            Found::Again(_) => self.desk.again(number, asked),
            Found::Near { score, paths, ties, .. } => self.desk.near(number, *score, paths, *ties),
            _ => {}
        }
        Ok(())
    }

    fn compare_versions(&mut self, said: &Envelope<'_>, ask: u32) -> io::Result<()> {
        let version = |said: &Envelope<'_>| {
            let text = said.params.and_then(|params| json::member(params, "protocolVersion"));
            text.and_then(json::string).map(std::borrow::Cow::into_owned)
        };
        let frame = Frame::read(self.context.tape.request(ask)?);
        let recorded = frame.envelope().and_then(version);
        let live = version(said);
        if live != recorded {
            let words =
                |version: Option<String>| version.unwrap_or("no protocol version".to_owned());
            let (live, recorded) = (words(live), words(recorded));
            self.desk.warn(format!("the client asks for {live}, but the tape has {recorded}"));
        }
        Ok(())
    }

    /// Answers requests that any server of the tape's era answers and that must not end a replay:
    /// `logging/setLevel` and `server/discover`.
    fn be_courteous(&mut self, said: &Envelope<'_>, batch: Option<u32>) -> io::Result<bool> {
        let id = said.id.unwrap_or(b"null");
        let discovers = said.is_method("server/discover") && !self.context.tape.has_discover();
        let era = self.context.tape.era()?;
        if said.is_method("logging/setLevel") && !era.is_stateless(said) {
            self.desk.debug("logging/setLevel is not on the tape; it is accepted".to_owned());
            self.result(id, b"{}", batch);
        } else if let (true, Some(result)) = (discovers, era.discovered()) {
            let words = "server/discover is not on the tape; it is answered from the recording";
            self.desk.debug(words.to_owned());
            self.result(id, &result, batch);
        } else if discovers {
            let words = "server/discover is not on the tape; it is answered as an unknown method";
            self.desk.debug(words.to_owned());
            self.refuse(id, CODE_NO_METHOD, "Method not found", batch);
        } else {
            return Ok(false);
        }
        self.desk.courtesy();
        Ok(true)
    }

    pub(in crate::player) fn diverge(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        batch: Option<u32>,
        asked: &Asked<'_>,
        (reason, expected): (Reason, Option<u32>),
    ) -> io::Result<()> {
        let on_unmatched = self.context.options.on_unmatched;
        let passed_on = on_unmatched == OnUnmatched::Passthrough;
        let run = self.live.runs.iter().find(|run| run.number == self.live.run);
        let tape_session = run.and_then(Run::session).map(|session| session + 1);
        let who = (self.live.number, tape_session, passed_on);
        let nearest = self.desk.diverged(self.context.tape, who, asked, (reason, expected))?;
        self.live.expect(batch);
        if passed_on {
            self.live.pass_on(text, said, batch, self.act);
            self.live.behind.take_failed().into_iter().for_each(|it| self.desk.server_failed(it));
            return Ok(());
        }
        self.live.queue.give_up();
        let method = said.method.map(|method| method.decode()).unwrap_or_default();
        let mode = self.context.options.mode.word();
        let mut data = b"{\"by\":\"tapegate\",\"method\":".to_vec();
        json::write_str(&mut data, &method);
        let number = nearest.map_or("null".to_owned(), |number| number.to_string());
        data.extend(format!(",\"mode\":\"{mode}\",\"nearest\":{number}}}").bytes());
        let name = named(asked.said).map(|name| format!(" {}", name.decode())).unwrap_or_default();
        let difference = match (reason, expected) {
            (Reason::OtherParams, Some(ask)) => first_difference(self.context.tape, ask, asked)?,
            _ => None,
        };
        let why = difference.unwrap_or_else(|| reason.words().to_owned());
        let words = format!("no recorded answer for {method}{name} ({why})");
        let data = String::from_utf8_lossy(&data);
        let answer = error_reply(said.id.unwrap_or(b"null"), CODE_UNMATCHED, &words, &data);
        self.live.give((answer, Provenance::OWN), batch, self.act);
        if on_unmatched == OnUnmatched::Error {
            (self.act)(Act::Stop);
        }
        Ok(())
    }
}

/// Whether a request names its protocol revision, as those of sessionless clients do.
fn is_stateless(said: &Envelope<'_>) -> bool {
    said.protocol_version.is_some()
}
