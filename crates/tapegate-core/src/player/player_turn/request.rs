//! Handles a request of the client: what the tape has for it is played, and a request that is not
//! on the tape is a divergence.

use std::io;

use super::super::first_difference::first_difference;
use super::super::scene::ActiveScene;
use super::super::tape::{LiveRequest, request_subject};
use super::super::tape_match::TapeMatch;
use super::super::tape_run::TapeRun;
use super::super::{DivergenceReason, OnUnmatched, PlayContext};
use super::{CODE_NO_METHOD, PlayerTurn};
use crate::actor::ActorAction;
use crate::frame::{Envelope, Frame, error_reply, own_data};
use crate::json;
use crate::signature::Signature;
use crate::tape::Provenance;
use crate::tape::index::NONE;

/// The code of the error for a request that is not on the tape.
const CODE_UNMATCHED: i32 = -32000;

impl PlayerTurn<'_, '_> {
    pub(super) fn request(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        let id = envelope.id.unwrap_or(b"null");
        // Clients send pings by their own clock, so their number on the tape means nothing.
        if envelope.is_method("ping") {
            self.stats.count_default_answer();
            match self.context.tape.era()?.is_stateless(envelope) {
                true => self.refuse(id, CODE_NO_METHOD, "Method not found", batch),
                false => self.result(id, b"{}", batch),
            }
            return Ok(());
        }
        if envelope.is_method("initialize") {
            // Kept for its capabilities, and for a live server that may be started later.
            self.live.initialize = Some(envelope.params.unwrap_or(b"{}").to_vec());
        }
        if let Some(signature) = signature {
            return self.answer_from_tape(
                text,
                envelope,
                batch,
                &LiveRequest { text, envelope, signature },
            );
        }
        let masked = self.context.tape.masked(text);
        let frame = Frame::read(&masked);
        let Some(meant) = frame.envelope() else { return Ok(()) };
        let signature = self.context.tape.signer.sign(&masked, meant);
        self.answer_from_tape(
            text,
            envelope,
            batch,
            &LiveRequest { text: &masked, envelope: meant, signature },
        )
    }

    /// Answers a request from the tape, if it has an answer.
    fn answer_from_tape(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        batch: Option<u32>,
        request: &LiveRequest<'_>,
    ) -> io::Result<()> {
        let tape_match = self.find(request)?;
        let (reason, expected) = match &tape_match {
            TapeMatch::Nothing { reason, expected } => (*reason, *expected),
            _ => match tape_match.request() {
                Some(request_number) if self.is_answered(request_number, envelope)? => {
                    return self.play_match(text, envelope, batch, &tape_match, request);
                }
                ask => {
                    // It was made, and so is not unused, though there is no answer to give.
                    ask.into_iter().for_each(|number| self.stats.mark_used(number));
                    (DivergenceReason::Unanswered, ask)
                }
            },
        };
        // Only after the tape: a recorded answer always wins.
        if self.answer_by_default(envelope, batch)? {
            return Ok(());
        }
        self.handle_divergence(text, envelope, batch, request, (reason, expected))
    }

    /// Whether the tape has a response. A cancelled request needs no answer, and a subscription
    /// stays open by design. An error that a replay recorded because its tape had no answer does
    /// not count.
    fn is_answered(&mut self, request_number: u32, envelope: &Envelope<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        let entry = tape.entry_of(request_number);
        if entry.pair != NONE {
            return Ok(!tape.is_refused(&entry)?);
        }
        // Over HTTP a sessionless client cancels a request by closing its stream, which the tape
        // shows only by the client's later requests.
        let closed = || is_stateless(envelope) && tape.has_later_answer(request_number);
        Ok(entry.cancelled || envelope.is_method("subscriptions/listen") || closed())
    }

    /// Plays what the tape has for a request.
    fn play_match(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        batch: Option<u32>,
        tape_match: &TapeMatch,
        request: &LiveRequest<'_>,
    ) -> io::Result<()> {
        let Some(request_number) = tape_match.request() else { return Ok(()) };
        self.report_match(tape_match, request_number, request)?;
        let entry = self.context.tape.entry_of(request_number);
        if envelope.is_method("initialize") {
            self.compare_versions(envelope, request_number)?;
        }
        if let (true, Some(id)) = (envelope.is_method("subscriptions/listen"), envelope.id) {
            let frame = Frame::read(self.context.tape.request(request_number)?);
            let recorded = frame.envelope().and_then(|recorded| recorded.id);
            let run = self.live.run;
            recorded.into_iter().for_each(|recorded| self.live.subscribe(run, recorded, id));
        }
        let number = self.live.scene_number();
        let anchor = self.context.tape.index.request(request_number).entry_number;
        let scene = ActiveScene::new((number, self.live.run), anchor, &entry, self.at);
        let mut scene =
            scene.bind_to_request(envelope, batch, request_number, self.context.tape)?;
        // A subscription is never answered, which is not a cancellation.
        if !envelope.is_method("subscriptions/listen") {
            let PlayContext { tape, options } = &mut self.context;
            scene.cancellable = tape.cancellable(request_number, text, self.at, options)?;
        }
        if let Some((recorded, token)) = scene.token() {
            self.live.learn_token(recorded, token);
        }
        // Before the scene plays, because it may answer at once and so settle the batch.
        self.live.expect(batch);
        self.advance_scene(scene)
    }

    /// Counts a request that was matched, and reports how.
    fn report_match(
        &mut self,
        tape_match: &TapeMatch,
        request_number: u32,
        request: &LiveRequest<'_>,
    ) -> io::Result<()> {
        self.stats.count_matched(request_number);
        let tape = &mut self.context.tape;
        let number = tape.entry_of(request_number).number;
        let how = match tape_match {
            TapeMatch::Early(_) => "out of order",
            TapeMatch::Again(_) => "once more",
            TapeMatch::Differing(_) => "with other params",
            TapeMatch::Near { .. } => "because it is similar",
            TapeMatch::Same(_) | TapeMatch::Nothing { .. } => "with the same params",
        };
        self.stats.report_match(number, request, how);
        match tape_match {
            TapeMatch::Differing(_) if !request.envelope.is_method("initialize") => {
                self.stats.differs(tape, request_number, request)?;
            }
            TapeMatch::Early(_) => self.stats.report_early(number, request),
            TapeMatch::Again(_) => self.stats.report_repeated_read(number, request),
            TapeMatch::Near { score, paths, ties, .. } => {
                self.stats.report_near_match(number, *score, paths, *ties);
                // Where only times, ids and the like differ, the score is full: the user has asked
                // for these to count as equal.
                if *score < 1.0 {
                    self.stats.differs(tape, request_number, request)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn compare_versions(&mut self, envelope: &Envelope<'_>, request_number: u32) -> io::Result<()> {
        let version = |envelope: &Envelope<'_>| {
            let text = envelope.params.and_then(|params| json::member(params, "protocolVersion"));
            text.and_then(json::string).map(std::borrow::Cow::into_owned)
        };
        let frame = Frame::read(self.context.tape.request(request_number)?);
        let recorded = frame.envelope().and_then(version);
        let live = version(envelope);
        if live != recorded {
            let version_text =
                |version: Option<String>| version.unwrap_or("no protocol version".to_owned());
            let (live, recorded) = (version_text(live), version_text(recorded));
            self.stats.warn(format!("the client asks for {live}, but the tape has {recorded}"));
        }
        Ok(())
    }

    /// Answers requests that any server of the tape's era answers and that must not end a replay:
    /// `logging/setLevel` and `server/discover`.
    fn answer_by_default(
        &mut self,
        envelope: &Envelope<'_>,
        batch: Option<u32>,
    ) -> io::Result<bool> {
        let id = envelope.id.unwrap_or(b"null");
        let discovers = envelope.is_method("server/discover") && !self.context.tape.has_discover();
        let era = self.context.tape.era()?;
        if envelope.is_method("logging/setLevel") && !era.is_stateless(envelope) {
            self.stats.debug("logging/setLevel is not on the tape; it is accepted".to_owned());
            self.result(id, b"{}", batch);
        } else if let (true, Some(result)) = (discovers, era.discover_result()) {
            let message = "server/discover is not on the tape; it is answered from the recording";
            self.stats.debug(message.to_owned());
            self.result(id, &result, batch);
        } else if discovers {
            let message = "server/discover is not on the tape; it is answered as an unknown method";
            self.stats.debug(message.to_owned());
            self.refuse(id, CODE_NO_METHOD, "Method not found", batch);
        } else {
            return Ok(false);
        }
        self.stats.count_default_answer();
        Ok(true)
    }

    pub(in crate::player) fn handle_divergence(
        &mut self,
        text: &[u8],
        envelope: &Envelope<'_>,
        batch: Option<u32>,
        request: &LiveRequest<'_>,
        (reason, expected): (DivergenceReason, Option<u32>),
    ) -> io::Result<()> {
        let on_unmatched = self.context.options.on_unmatched;
        let passed_on = on_unmatched == OnUnmatched::Passthrough;
        let run = self.live.runs.iter().find(|run| run.number == self.live.run);
        let tape_session = run.and_then(TapeRun::session).map(|session| session + 1);
        let who = (self.live.number, tape_session, passed_on);
        let nearest =
            self.stats.report_divergence(self.context.tape, who, request, (reason, expected))?;
        // One more answer is due in any case: the live server's or our error.
        self.live.expect(batch);
        if passed_on {
            self.live.forward_request(text, envelope, batch, self.act);
            self.report_passthrough_failures();
            return Ok(());
        }
        // A client that deviates may never make the requests that other scenes wait for.
        self.live.queue.shorten_waits();
        let method = envelope.method.map(|method| method.decode()).unwrap_or_default();
        let mode = self.context.options.mode.as_str();
        let number = nearest.map_or("null".to_owned(), |number| number.to_string());
        let data = own_data(&[
            ("method", &json::quoted(&method)),
            ("mode", &json::quoted(mode)),
            ("nearest", number.as_bytes()),
        ]);
        let name = request_subject(request.envelope)
            .map(|name| format!(" {}", name.decode()))
            .unwrap_or_default();
        let difference = match (reason, expected) {
            (DivergenceReason::OtherParams, Some(request_number)) => {
                first_difference(self.context.tape, request_number, request)?
            }
            _ => None,
        };
        let cause_text = difference.unwrap_or_else(|| reason.as_str().to_owned());
        let message = format!("no recorded answer for {method}{name} ({cause_text})");
        let answer = error_reply(envelope.id.unwrap_or(b"null"), CODE_UNMATCHED, &message, &data);
        self.live.send_answer((answer, Provenance::OWN), batch, self.act);
        // The error is sent first, so that the client learns why the replay ends.
        if on_unmatched == OnUnmatched::Error {
            (self.act)(ActorAction::Stop);
        }
        Ok(())
    }
}

/// Whether a request names its protocol revision, as those of sessionless clients do.
fn is_stateless(envelope: &Envelope<'_>) -> bool {
    envelope.protocol_version.is_some()
}
