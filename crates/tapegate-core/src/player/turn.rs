//! What a player does when something happens at a seat.

use std::io;

use super::desk::Desk;
use super::find::{self, Found};
use super::live::Live;
use super::run::{Part, Run};
use super::scene::{Scene, Wait};
use super::tape::{Asked, named};
use super::{Context, OnExhausted, OnUnmatched, Reason};
use crate::actor::Act;
use crate::frame::{self, Body, Envelope, Frame, Kind, error_reply};
use crate::json;
use crate::lines::Oversize;
use crate::signature::Signature;
use crate::tape::index::NONE;
use crate::time::At;

/// The code of the error for a request that is not on the tape.
const CODE_UNMATCHED: i32 = -32000;
const CODE_PARSE: i32 = -32700;
const CODE_INVALID: i32 = -32600;
const CODE_NO_METHOD: i32 = -32601;

/// How many conversations a seat that clients share may hold at once.
const RUNS_MAX: usize = 4096;

/// One cue at one seat.
pub(super) struct Turn<'a, 'b> {
    pub(super) context: Context<'a>,
    pub(super) desk: &'a mut Desk,
    pub(super) live: &'a mut Live,
    pub(super) shared_run: Option<&'a mut Run>,
    pub(super) played: &'a mut Vec<u32>,
    pub(super) at: At,
    pub(super) act: &'a mut (dyn FnMut(Act<'_>) + 'b),
}

impl Turn<'_, '_> {
    /// Takes a line of the client.
    pub(super) fn said(&mut self, line: &[u8]) -> io::Result<()> {
        let (frame, signature) = self.context.tape.read(line);
        match frame.body() {
            Body::Message(said) => self.message(frame.text(), said, signature, None)?,
            Body::Batch => self.batch(line)?,
            Body::Garbage(frame::Garbage::Empty) => {}
            Body::Garbage(garbage) => {
                let words = format!("not a JSON-RPC message: {}", garbage.reason());
                self.desk.warn(format!("the client has said something that is {words}"));
                let answer = error_reply(b"null", CODE_PARSE, &words, "{\"by\":\"tapegate\"}");
                (self.act)(Act::Say(&[&answer]));
            }
        }
        self.tell_missing();
        Ok(())
    }

    fn batch(&mut self, line: &[u8]) -> io::Result<()> {
        let parts = frame::elements(line);
        if parts.is_empty() {
            let answer =
                error_reply(b"null", CODE_INVALID, "an empty batch", "{\"by\":\"tapegate\"}");
            (self.act)(Act::Say(&[&answer]));
        }
        let batch = Some(self.live.open_batch());
        for part in &parts {
            match part.envelope() {
                Some(said) => self.message(part.text(), said, None, batch)?,
                None => self.refuse(b"null", CODE_INVALID, "an element that is no object", batch),
            }
        }
        self.live.settle(batch, self.act);
        Ok(())
    }

    fn message(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        match said.kind() {
            Kind::Request => self.request(text, said, signature, batch),
            Kind::Notification => self.notification(text, said),
            Kind::Response | Kind::Error => self.reply(text, said),
            Kind::Other => {
                let id = said.id.unwrap_or(b"null");
                self.refuse(id, CODE_INVALID, "neither a request nor an answer", batch);
                Ok(())
            }
        }
    }

    fn request(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        signature: Option<Signature>,
        batch: Option<u32>,
    ) -> io::Result<()> {
        let id = said.id.unwrap_or(b"null");
        if said.is_method("ping") {
            self.desk.courtesy();
            match is_stateless(said) {
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

    /// Answers a request with what the tape has for it, if it has anything.
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
                    return self.play(said, batch, &found, ask, asked);
                }
                ask => (Reason::Unanswered, ask),
            },
        };
        if self.be_courteous(said, batch) {
            return Ok(());
        }
        self.diverge(text, said, batch, asked, (reason, expected))
    }

    /// Whether the tape has something for whoever asks this. What was taken back needs no answer,
    /// and a subscription stays open by design. That another tape had no answer is none either.
    fn is_answered(&mut self, ask: u32, said: &Envelope<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        let slot = tape.slot_of(ask);
        if slot.pair != NONE {
            return Ok(!tape.is_refused(&slot)?);
        }
        // By HTTP a stateless client takes a request back by closing its stream, of which the tape
        // knows nothing but that the client went on.
        let closed = || is_stateless(said) && tape.is_outlived(ask);
        Ok(slot.cancelled || said.is_method("subscriptions/listen") || closed())
    }

    fn find(&mut self, asked: &Asked<'_>) -> io::Result<Found> {
        let Context { tape, options } = &mut self.context;
        if let Some(run) = &mut self.shared_run {
            return find::find(tape, options, run, asked, options.strict_params);
        }
        if self.live.shared {
            return self.find_for_one_of_many(asked);
        }
        if self.live.runs.is_empty() {
            let run = open_run(&self.context, self.live, self.played, asked);
            self.live.run = run.number;
            self.live.runs.push(run);
        }
        let Context { tape, options } = &mut self.context;
        find::find(tape, options, &mut self.live.runs[0], asked, options.strict_params)
    }

    /// Clients without sessions cannot be told apart, but what they ask can: it belongs to a
    /// conversation that has come to exactly this point, or begins one.
    fn find_for_one_of_many(&mut self, asked: &Asked<'_>) -> io::Result<Found> {
        let mut nothing = Found::Nothing { reason: Reason::NotRecorded, expected: None };
        let begins = self.begins(asked)?;
        for exact in [true, false] {
            let Context { tape, options } = &mut self.context;
            for run in &mut self.live.runs {
                let exact = exact || options.strict_params;
                match find::find(tape, options, run, asked, exact)? {
                    missing @ Found::Nothing { .. } => nothing = missing,
                    found => {
                        self.live.run = run.number;
                        self.forget_finished();
                        return Ok(found);
                    }
                }
            }
            if begins && self.live.runs.len() < RUNS_MAX {
                let mut run = open_run(&self.context, self.live, self.played, asked);
                let Context { tape, options } = &mut self.context;
                let found = find::find(tape, options, &mut run, asked, options.strict_params)?;
                self.live.run = run.number;
                self.live.runs.push(run);
                return Ok(found);
            }
        }
        Ok(nothing)
    }

    /// Forgets conversations that have come to their end; the last one is kept to be compared with.
    fn forget_finished(&mut self) {
        let Context { tape, options } = &self.context;
        if options.on_exhausted == OnExhausted::Error && self.live.runs.len() > 1 {
            self.live.runs.retain_mut(|run| !run.is_finished(tape));
        }
    }

    /// Whether a session of the tape begins with this request.
    fn begins(&mut self, asked: &Asked<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        for session in tape.index.sessions().to_vec() {
            for ask in session {
                if tape.is_same(ask, asked)? {
                    return Ok(true);
                }
                if !tape.was_malformed(ask, asked)? {
                    break;
                }
            }
        }
        Ok(self.live.runs.is_empty())
    }

    /// Plays what the tape has for a request.
    fn play(
        &mut self,
        said: &Envelope<'_>,
        batch: Option<u32>,
        found: &Found,
        ask: u32,
        asked: &Asked<'_>,
    ) -> io::Result<()> {
        self.desk.matched(ask);
        let tape = &mut self.context.tape;
        let slot = tape.slot_of(ask);
        match found {
            Found::Differing(_) if !said.is_method("initialize") => {
                self.desk.differs(tape, ask, asked)?;
            }
            Found::Early(_) => self.desk.early(slot.number, asked),
            Found::Near { score, paths, ties, .. } => {
                self.desk.near(slot.number, *score, paths, *ties);
            }
            _ => {}
        }
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
        let scene = scene.answering(said, batch, self.context.tape)?;
        if let Some((recorded, token)) = scene.token() {
            self.live.learn_token(recorded, token);
        }
        self.live.expect(batch);
        self.play_on(scene)
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
            self.desk.warn(format!("the client asks for {live}, and the tape is of {recorded}"));
        }
        Ok(())
    }

    fn play_on(&mut self, mut scene: Scene) -> io::Result<()> {
        if scene.play(&mut self.context, self.live, self.at, self.act)? {
            self.live.keep(scene);
        }
        Ok(())
    }

    /// Answers what any server answers, and what must not end a replay: the level of logging, and
    /// a probe for a later revision than the tape is of.
    fn be_courteous(&mut self, said: &Envelope<'_>, batch: Option<u32>) -> bool {
        let id = said.id.unwrap_or(b"null");
        if said.is_method("logging/setLevel") && !is_stateless(said) {
            self.desk.debug("logging/setLevel is not on the tape, and is accepted".to_owned());
            self.result(id, b"{}", batch);
        } else if said.is_method("server/discover") && !self.context.tape.has_discover() {
            let words = "server/discover is not on the tape, and is answered as a server does that \
                         does not know it";
            self.desk.debug(words.to_owned());
            self.refuse(id, CODE_NO_METHOD, "Method not found", batch);
        } else {
            return false;
        }
        self.desk.courtesy();
        true
    }

    fn diverge(
        &mut self,
        text: &[u8],
        said: &Envelope<'_>,
        batch: Option<u32>,
        asked: &Asked<'_>,
        (reason, expected): (Reason, Option<u32>),
    ) -> io::Result<()> {
        let on_unmatched = self.context.options.on_unmatched;
        let passed_on = on_unmatched == OnUnmatched::Passthrough;
        let who = (self.live.number, passed_on);
        let nearest = self.desk.diverged(self.context.tape, who, asked, (reason, expected))?;
        self.live.expect(batch);
        if passed_on {
            self.live.pass_on(text, said, batch, self.act);
            return Ok(());
        }
        let method = said.method.map(|method| method.decode()).unwrap_or_default();
        let mode = self.context.options.mode.word();
        let mut data = b"{\"by\":\"tapegate\",\"method\":".to_vec();
        json::write_str(&mut data, &method);
        let number = nearest.map_or("null".to_owned(), |number| number.to_string());
        data.extend(format!(",\"mode\":\"{mode}\",\"nearest\":{number}}}").bytes());
        let name = named(asked.said).map(|name| format!(" {}", name.decode())).unwrap_or_default();
        let words = format!("{}: {method}{name}", reason.words());
        let data = String::from_utf8_lossy(&data);
        let answer = error_reply(said.id.unwrap_or(b"null"), CODE_UNMATCHED, &words, &data);
        self.live.give(answer, batch, self.act);
        if on_unmatched == OnUnmatched::Error {
            (self.act)(Act::Stop);
        }
        Ok(())
    }

    fn notification(&mut self, text: &[u8], said: &Envelope<'_>) -> io::Result<()> {
        if let (true, Some(id)) = (said.is_method("notifications/cancelled"), said.request_id)
            && let Some(scene) = self.live.take_cancelled(id)
        {
            self.live.settle(scene.batch.filter(|_| !scene.answered), self.act);
            self.live.unsubscribe(id);
        }
        self.live.pass_note(text, said, self.act);
        let Some(method) = said.method else { return Ok(()) };
        let key = method.bytes();
        let nth = self.live.notes.get(&*key).copied().unwrap_or_default();
        let session = self.live.runs.first().and_then(Run::session).unwrap_or(0);
        let Some(anchor) = self.context.tape.note(session, method, nth)? else { return Ok(()) };
        // Only what the tape has is counted: what else a client thinks of has no bound.
        self.live.notes.insert(key.into_owned(), nth + 1);
        let slot = self.context.tape.index.slot(anchor);
        if slot.next == NONE {
            return Ok(());
        }
        let number = self.live.scene_number();
        self.play_on(Scene::new((number, self.live.run), anchor, &slot, self.at))
    }

    fn reply(&mut self, text: &[u8], said: &Envelope<'_>) -> io::Result<()> {
        let Some(id) = said.id else { return Ok(()) };
        if self.live.pass_reply(text, id, self.act) {
            return Ok(());
        }
        let Some((number, request)) = self.live.reply(id) else {
            let id = String::from_utf8_lossy(id).into_owned();
            self.desk.debug(format!("the client answers {id}, which nobody asked"));
            return Ok(());
        };
        let Some(mut scene) = self.live.take(number) else { return Ok(()) };
        if scene.replied(request, self.at, self.context.tape) {
            self.play_on(scene)
        } else {
            self.live.keep(scene);
            Ok(())
        }
    }

    pub(super) fn due(&mut self) -> io::Result<()> {
        while let Some(mut scene) = self.live.take_due(self.at.mono_ns) {
            if let Wait::Reply(request, _) = scene.wait {
                let number = self.context.tape.index.slot(request).number;
                self.desk.warn(format!("the client does not answer the server's request {number}"));
                scene.wait_no_longer(self.at, self.context.tape);
            }
            self.play_on(scene)?;
        }
        self.tell_missing();
        Ok(())
    }

    /// The client says no more: what waits for its word goes on without it.
    pub(super) fn left(&mut self) -> io::Result<()> {
        for mut scene in self.live.take_unreplied() {
            scene.wait_no_longer(self.at, self.context.tape);
            self.play_on(scene)?;
        }
        Ok(())
    }

    pub(super) fn too_large(&mut self, message: &Oversize, bytes_max: usize) -> io::Result<()> {
        let words =
            format!("a message of {} bytes is over the limit of {bytes_max}", message.bytes_total);
        self.desk.warn(words.clone());
        if let (Some(id), Some(_)) = (&message.said.id, &message.said.method) {
            self.refuse(id, CODE_INVALID, &words, None);
        }
        Ok(())
    }

    fn tell_missing(&mut self) {
        for method in self.live.take_missing() {
            self.desk.warn(format!(
                "the tape has the server ask for {method}, which this client cannot answer; left out"
            ));
        }
    }

    fn result(&mut self, id: &[u8], result: &[u8], batch: Option<u32>) {
        let parts: [&[u8]; 5] =
            [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":", result, b"}"];
        self.live.expect(batch);
        self.live.give(parts.concat(), batch, self.act);
    }

    fn refuse(&mut self, id: &[u8], code: i32, words: &str, batch: Option<u32>) {
        let answer = error_reply(id, code, words, "{\"by\":\"tapegate\"}");
        self.live.expect(batch);
        self.live.give(answer, batch, self.act);
    }
}

/// Whether a request says itself which revision it is of, as those of stateless clients do.
fn is_stateless(said: &Envelope<'_>) -> bool {
    said.protocol_version.is_some()
}

/// A run through the session of the tape that fits the first request best: one that begins with
/// the same, has been played least, and comes first.
fn open_run(context: &Context<'_>, live: &mut Live, played: &mut [u32], asked: &Asked<'_>) -> Run {
    let index = &context.tape.index;
    let begins = |session: usize| {
        let asks = &index.sessions()[session];
        !asks.is_empty() && index.ask(asks.start).signature.like == asked.signature.like
    };
    let best = (0..played.len()).min_by_key(|session| (!begins(*session), played[*session]));
    if let Some(session) = best {
        played[session] += 1;
    }
    live.runs_made += 1;
    Run::new(live.runs_made, Part::Session(best.unwrap_or(0) as u32))
}
