//! Reads a server's output, records it, and routes it to the right clients.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Body, Envelope, Frame, Kind as MessageKind, envelopes, same_id};
use tapegate_core::lines::{Cut, Lines, Oversize};
use tapegate_core::relay::{CODE_GONE, Event, OwnMessage, Permitted};
use tapegate_core::side::Side;
use tapegate_core::tape::Provenance;
use tokio::time::Instant;

use super::board::{Board, Kind};
use super::book::Place;
use super::ending::End;
use super::exchange::Exchange;
use super::servers::Server;
use super::stream::Stream;
use crate::deck::{Disposition, Outgoing};
use crate::http::Stopped;
use crate::http::station::Judged;
use crate::port::Port;
use crate::stage::address::{self, Said};
use crate::stdio::{LINGER, Patience, SERVER_ENDED};
use tapegate_core::json::Edits;

/// How long a session's only reader may stall before its connection is dropped.
pub(super) const STALL: Duration = Duration::from_secs(10);
/// How long a client that shares its server may lag while the other clients wait.
pub(super) const LAG: Duration = Duration::from_millis(500);

/// Reads from a server until it ends or is asked to end, then shuts it down and cleans up.
pub(super) async fn run(board: Rc<Board>, mut server: Server, output: Port, patience: Patience) {
    let mut lines = server.lines(board.station.message_bytes_max());
    let read = tokio::select! {
        read = read(&board, &mut server, &output, &mut lines) => read.map_err(|stopped| End {
            why: stopped.to_string(),
            grace: patience.grace_on_signal,
        }),
        end = board.end_before(Duration::MAX) => Err(end),
    };
    let (End { why, mut grace }, error_type) = match read {
        Err(end) => (end, None),
        Ok(()) => (End { why: server.farewell().await, grace: patience.grace }, Some(SERVER_ENDED)),
    };
    let unanswered = board.unanswered();
    board.close(&why, error_type);
    loop {
        tokio::select! {
            () = server.end(grace, patience) => {
                if error_type.is_some() {
                    server.tell_end(unanswered).await;
                }
                return;
            }
            sooner = board.end_before(grace) => grace = sooner.grace,
            () = read_rest(&board, &output, &mut lines) => {}
        }
    }
}

/// Reads until the output ends or the tape fails.
async fn read(
    board: &Board,
    server: &mut Server,
    output: &Port,
    lines: &mut Lines,
) -> Result<(), Stopped> {
    let mut deadline: Option<Instant> = None;
    loop {
        let linger = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        let count = tokio::select! {
            count = read_some(board, output, lines) => count,
            () = server.exited(), if deadline.is_none() => {
                deadline = Some(Instant::now() + LINGER);
                continue;
            }
            () = linger => 0,
        };
        lines.filled(count);
        server.guarded();
        board.pass_lines(lines, count == 0).await?;
        if count == 0 {
            return Ok(());
        }
        lines.release();
    }
}

/// Reads once the server has consumed most of its input; 0 means end of output.
async fn read_some(board: &Board, output: &Port, lines: &mut Lines) -> usize {
    board.relieved().await;
    output.read(lines.room()).await.unwrap_or(0)
}

/// Reads the remaining output of a server that is shutting down; never returns. The output is
/// recorded but not delivered. Left unread, it could block the server's exit.
async fn read_rest(board: &Board, output: &Port, lines: &mut Lines) {
    loop {
        lines.release();
        match output.read(lines.room()).await {
            Ok(count) if count > 0 => lines.filled(count),
            _ => std::future::pending().await,
        }
        // The server is ended whether or not the tape accepts this.
        board.pass_lines(lines, false).await.ok();
    }
}

impl Board {
    async fn pass_lines(&self, lines: &mut Lines, over: bool) -> Result<(), Stopped> {
        while let Some(cut) = lines.cut() {
            self.pass_cut(lines, cut).await?;
        }
        match if over { lines.finish() } else { None } {
            Some(cut) => self.pass_cut(lines, cut).await,
            None => Ok(()),
        }
    }

    async fn pass_cut(&self, lines: &Lines, cut: Cut) -> Result<(), Stopped> {
        match cut {
            Cut::Line(range) => self.pass_line(lines.bytes(range), true).await,
            Cut::Unterminated(range) => self.pass_line(lines.bytes(range), false).await,
            Cut::Oversize(message) => self.refuse(message),
        }
    }

    /// Records a line and delivers it.
    async fn pass_line(&self, line: &[u8], terminated: bool) -> Result<(), Stopped> {
        let provenance = Provenance::default();
        let said = match self.addressed {
            true => address::read(line),
            false => Said::Message { about: None, text: line, provenance },
        };
        let (about, line, provenance) = match said {
            Said::Message { about, text, provenance } => (about, text, provenance),
            Said::Part(id) => {
                self.part(id);
                return Ok(());
            }
            Said::Raw { about, piece, ends } => return self.pass_raw(about, piece, ends).await,
            Said::Leave { about, abrupt } => {
                self.leave(about, abrupt);
                return Ok(());
            }
        };
        let frame = Frame::read(line);
        let from = Side::Server;
        if let Body::Garbage(garbage) = frame.body() {
            let why = format!("{}; only JSON can be sent over HTTP", garbage.reason());
            let (lane, bytes, delivered) = (self.lane, line, false);
            self.station.pass(Event::Marked { lane, from, bytes, why: &why, delivered })?;
            return Ok(());
        }
        let mut edits = Edits::new(line);
        let places: Vec<Place> = {
            let mut book = self.book.borrow_mut();
            envelopes(&frame).iter().map(|said| book.place(said, about, &mut edits)).collect()
        };
        let text = edits.finish();
        let lane = places.iter().find_map(Place::lane).unwrap_or(self.lane);
        let bytes = &text[..];
        let resumed = places.iter().any(Place::is_parted);
        let received = match resumed {
            _ if provenance != Provenance::default() => {
                Event::Played { lane, from, bytes, resumed, provenance }
            }
            true => Event::Resumed { lane, bytes, terminated },
            false => Event::Received { lane, from, bytes, terminated },
        };
        let Judged { disposition, said } = match self.station.judge(received, from) {
            Ok(judged) => judged,
            Err(stopped) => {
                self.owe(&Frame::read(bytes), places);
                return Err(stopped);
            }
        };
        let Disposition::Forward(message) = disposition else {
            self.refused(&Frame::read(bytes), places, said);
            return Ok(());
        };
        let mut parts = message.elements();
        parts.retain(|(frame, _)| frame.envelope().is_some());
        if parts.len() != places.len() {
            // The rest can no longer be matched to its recipients.
            self.refused(&Frame::read(bytes), places, said);
            return Ok(());
        }
        for ((frame, part), place) in parts.into_iter().zip(places) {
            if let Some(said) = frame.envelope() {
                self.deliver(said, part.on_one_line().into_owned(), place).await;
            }
        }
        Ok(())
    }

    /// Sends errors in place of answers that could not be recorded and so may not be sent.
    fn owe(&self, frame: &Frame<'_>, places: Vec<Place>) {
        for (said, place) in envelopes(frame).iter().zip(places) {
            let (MessageKind::Response | MessageKind::Error, Some(id)) = (said.kind(), said.id)
            else {
                continue;
            };
            let message = OwnMessage::error(id, CODE_GONE, &Stopped.to_string()).into();
            match place {
                Place::Answer(exchange) => drop(exchange.answer(message, true)),
                _ if self.kind == Kind::Old => self.main.push(message),
                _ => {}
            }
        }
    }

    /// Sends the replacements for a message that the gate has refused.
    fn refused(&self, frame: &Frame<'_>, places: Vec<Place>, said: Vec<Outgoing<'_>>) {
        let mut told = self.say_apart(said);
        for (said, place) in envelopes(frame).iter().zip(places) {
            let (MessageKind::Response | MessageKind::Error, Some(id)) = (said.kind(), said.id)
            else {
                continue;
            };
            let is_it = |message: &Permitted<'_>| {
                Frame::read(message.bytes())
                    .envelope()
                    .and_then(|said| said.id)
                    .is_some_and(|of| same_id(of, id))
            };
            let answer = told.iter().position(is_it).map(|at| told.remove(at));
            match (place, answer) {
                (Place::Answer(exchange), answer) => {
                    let why = "the server's answer was refused";
                    let own = || OwnMessage::error(id, CODE_GONE, why).into();
                    exchange.answer(answer.map_or_else(own, Permitted::into_owned), true).ok();
                }
                (_, Some(message)) if self.kind == Kind::Old => {
                    self.main.push(message.into_owned());
                }
                _ => {}
            }
        }
    }

    async fn deliver(&self, said: &Envelope<'_>, message: Permitted<'static>, place: Place) {
        if self.is_ended() {
            return;
        }
        if self.kind == Kind::Old {
            return self.push(&self.main, message).await;
        }
        match place {
            Place::Answer(exchange) => {
                if let (Kind::Shared, true, Some(result)) =
                    (self.kind, exchange.lists.get(), said.result)
                {
                    self.params.borrow_mut().learn(result);
                }
                let error = said.kind() == MessageKind::Error;
                if let Err(message) = exchange.answer(message, error) {
                    self.mark(exchange.lane, Side::Server, message.bytes(), "its client is gone");
                }
            }
            Place::With(exchange) if exchange.can_be_told() => self.tell(&exchange, message).await,
            Place::With(exchange) if self.kind == Kind::Shared => {
                self.mark(exchange.lane, Side::Server, message.bytes(), "its client is gone");
            }
            Place::With(exchange) => match exchange.stream() {
                // Its connection broke; the client may resume the stream.
                Some(stream) => stream.push(message),
                None => self.deliver_anywhere(said, message).await,
            },
            Place::Anywhere => self.deliver_anywhere(said, message).await,
            Place::Unasked => {
                let why = "it does not answer any pending request";
                self.mark(self.lane, Side::Server, message.bytes(), why);
            }
        }
    }

    /// Delivers a message that belongs to no exchange, or to one that cannot take it.
    async fn deliver_anywhere(&self, said: &Envelope<'_>, message: Permitted<'static>) {
        if self.kind == Kind::Shared {
            let why = "it cannot be matched to a client";
            self.mark(self.lane, Side::Server, message.bytes(), why);
            return self.decline(said, why);
        }
        if self.main.is_attended() {
            return self.push(&self.main, message).await;
        }
        let listener = self.book.borrow().any_listener();
        if let Some(exchange) = listener {
            return self.tell(&exchange, message).await;
        }
        while !self.main.has_room() {
            let Some(oldest) = self.main.take_oldest() else { break };
            let why = "the client has no open stream, and too many messages are queued for it";
            self.mark(self.lane, Side::Server, oldest.bytes(), why);
            if let Some(said) = Frame::read(oldest.bytes()).envelope() {
                self.decline(said, why);
            }
        }
        self.main.push(message);
    }

    /// Answers a server's request that no client will receive.
    fn decline(&self, said: &Envelope<'_>, why: &str) {
        if let (MessageKind::Request, Some(id)) = (said.kind(), said.id) {
            let message = OwnMessage::error(id, -32601, why);
            let (lane, to) = (self.lane, Side::Server);
            for own in self.station.pass(Event::Ours { lane, to, message }).unwrap_or_default() {
                self.say(own.message);
            }
        }
    }

    /// Sends a message other than an answer on the stream of an exchange.
    async fn tell(&self, exchange: &Exchange, message: Permitted<'static>) {
        let stream = self.stream_of(exchange);
        if self.kind != Kind::Shared || stream.has_room() || stream.caught_up(LAG).await {
            return self.push(&stream, message).await;
        }
        // A slow client may not hold up the others that share the server.
        stream.break_off();
        self.mark(exchange.lane, Side::Server, message.bytes(), "its client reads too slowly");
        self.abandoned(exchange);
    }

    /// Adds to a stream, first waiting for a reader that is far behind.
    pub(super) async fn push(&self, stream: &Rc<Stream>, message: Permitted<'static>) {
        if !stream.room(STALL).await {
            stream.break_off();
            if self.kind == Kind::Old {
                // It is the session's only stream, and this transport cannot resume it.
                self.end("the client does not read its stream", Duration::ZERO);
            }
        }
        stream.push(message);
    }

    /// Refuses an oversized message, and sends an error to the side that waits for it.
    fn refuse(&self, mut message: Oversize) -> Result<(), Stopped> {
        let mut lane = self.lane;
        if let (Some(id), None) = (&message.said.id, &message.said.method)
            && let Some((of, theirs)) = self.book.borrow().theirs(id)
        {
            lane = of;
            message.said.id = Some(theirs);
        }
        let (from, bytes_max) = (Side::Server, self.station.message_bytes_max());
        for answer in self.station.pass(Event::TooLarge { lane, from, message, bytes_max })? {
            match answer.to {
                Side::Client => self.last_answer(lane, answer.message.into_owned()),
                Side::Server => self.say(answer.message),
            }
        }
        Ok(())
    }
}
