//! The passthrough server of an actor: one per session, started on first use.

use std::time::Duration;

use tapegate_core::actor::Cue;
use tapegate_core::frame::error_reply;
use tapegate_core::lines::{Cut, Lines, Oversize};
use tapegate_core::relay::CODE_TOO_LARGE;
use tapegate_core::time::At;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::Stage;
use super::desk::Desk;
use super::outbox::Outbox;
use crate::child::Pipes;
use crate::link::Link;
use crate::port::Port;
use crate::stdio::LINGER;

/// The error when no passthrough server is configured.
const NOBODY: &str = "there is no upstream server";

/// The passthrough servers of one session: the running one, and those being shut down.
#[derive(Default)]
pub(super) struct Behind {
    server: Option<Server>,
    leaving: JoinSet<()>,
}

/// A running server.
struct Server {
    link: Link,
    /// Its input, until it stops reading.
    input: Option<Port>,
    output: Port,
    lines: Lines,
    /// Whether there may be lines not yet passed to the actor.
    unheard: bool,
    /// When to stop reading its output even if it is open: the server has exited or stopped
    /// reading.
    deadline: Option<Instant>,
    /// Whether its output has ended.
    ended: bool,
    /// Why it has ended.
    gone: Option<String>,
}

/// An event of the server.
pub(super) enum Turn {
    /// It has written this many bytes; 0 means the end.
    Read(usize),
    /// It has read this many bytes of the actor's requests.
    Wrote(usize),
    /// It reads no more input.
    Deaf,
    /// Its process has exited.
    Exited,
    /// It has ended, for this reason.
    Gone(String),
}

impl Behind {
    /// Sends the actor's requests and passes on the answers, as far as possible without waiting.
    pub(super) fn work(&mut self, at: At, desk: &mut Desk<'_>) {
        if desk.ask.left() > 0 && self.server.is_none() {
            match Server::start(&desk.stage) {
                Ok(server) => self.server = Some(server),
                Err(why) => {
                    desk.ask.clear();
                    desk.feed(at, Cue::BehindGone { why: &why });
                }
            }
        }
        let Some(server) = &mut self.server else { return };
        server.hear(at, desk);
        server.send(&mut desk.ask);
        let over = server.gone.is_some() && !server.unheard;
        if let Some(server) = self.server.take_if(|_| over) {
            // It has never read its last requests.
            desk.ask.clear();
            desk.feed(at, Cue::BehindGone { why: server.gone.as_deref().unwrap_or_default() });
            let grace = desk.stage.options.patience.grace;
            while self.leaving.try_join_next().is_some() {}
            self.leaving.spawn_local(async move { drop(server.close().end(grace).await) });
        }
    }

    /// Whether there is work that can be done at once.
    pub(super) fn is_due(&self, desk: &Desk<'_>) -> bool {
        match &self.server {
            Some(server) => server.unheard && desk.has_room_behind(),
            None => desk.ask.left() > 0,
        }
    }

    /// Waits for an event of the server; its output is read only if `may_read`.
    pub(super) async fn turn(&mut self, ask: &Outbox, may_read: bool) -> Turn {
        match &mut self.server {
            Some(server) => server.turn(ask, may_read).await,
            None => std::future::pending().await,
        }
    }

    /// Handles an event of the server.
    pub(super) fn moved(&mut self, turn: Turn, ask: &mut Outbox) {
        let Some(server) = &mut self.server else { return };
        match turn {
            Turn::Read(0) => server.ended = true,
            Turn::Read(count) => {
                server.lines.filled(count);
                server.unheard = true;
            }
            Turn::Wrote(count) => ask.wrote(count),
            Turn::Deaf => {
                server.input = None;
                server.linger();
            }
            Turn::Exited => server.linger(),
            Turn::Gone(why) => server.gone = Some(why),
        }
    }

    /// Ends the servers and cleans up.
    pub(super) async fn close(&mut self, grace: Duration) {
        if let Some(server) = self.server.take() {
            server.close().end(grace).await;
        }
        while self.leaving.join_next().await.is_some() {}
    }
}

impl Server {
    fn start(stage: &Stage) -> Result<Self, String> {
        let upstream = stage.options.behind.as_ref().ok_or(NOBODY)?;
        let link = Link::open(upstream, &stage.options.link());
        let (link, Pipes { input, output }) = link.map_err(|error| error.to_string())?;
        Ok(Self {
            link,
            input: Some(input),
            output,
            lines: Lines::new(stage.options.message_bytes_max),
            unheard: false,
            deadline: None,
            ended: false,
            gone: None,
        })
    }

    /// Passes the server's output to the actor while there is room for the actor's reactions.
    fn hear(&mut self, at: At, desk: &mut Desk<'_>) {
        loop {
            if !desk.has_room_behind() {
                return;
            }
            let Some(cut) = self.lines.cut() else { break };
            self.tell(at, cut, desk);
        }
        self.unheard = false;
        self.lines.release();
        if self.ended
            && let Some(cut) = self.lines.finish()
        {
            self.tell(at, cut, desk);
        }
    }

    fn tell(&self, at: At, cut: Cut, desk: &mut Desk<'_>) {
        match cut {
            Cut::Line(range) | Cut::Unterminated(range) => {
                desk.feed(at, Cue::Behind(self.lines.bytes(range)));
            }
            Cut::Oversize(message) => refuse(at, message, desk),
        }
    }

    /// Writes the actor's requests as far as possible without waiting.
    fn send(&mut self, ask: &mut Outbox) {
        ask.release();
        while let Some(input) = &self.input
            && !ask.due().is_empty()
        {
            match input.write_now(ask.due()) {
                Ok(0) => return,
                Ok(count) => ask.wrote(count),
                Err(_) => {
                    self.input = None;
                    self.linger();
                }
            }
        }
    }

    async fn turn(&mut self, ask: &Outbox, may_read: bool) -> Turn {
        if self.ended {
            return Turn::Gone(self.link.farewell().await);
        }
        let Self { link, input, output, lines, unheard, deadline, .. } = self;
        let reads = may_read && !*unheard;
        let write = async {
            match input {
                Some(input) => input.write(ask.due()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = async { output.read(lines.room()).await }, if reads => {
                Turn::Read(count.unwrap_or(0))
            }
            written = write, if !ask.due().is_empty() => written.map_or(Turn::Deaf, Turn::Wrote),
            () = link.exited(), if deadline.is_none() => Turn::Exited,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && reads => {
                Turn::Read(0)
            }
        }
    }

    fn linger(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + LINGER);
    }

    /// Closes the pipes.
    fn close(self) -> Link {
        self.link
    }
}

/// Refuses an oversized message: the side that waits for it, or for its answer, gets an error.
fn refuse(at: At, message: Oversize, desk: &mut Desk<'_>) {
    let Some(id) = &message.said.id else { return };
    let (bytes, bytes_max) = (message.bytes_total, desk.stage.options.message_bytes_max);
    let words = format!(
        "message of {bytes} bytes refused: the limit is {bytes_max} bytes (--max-message-bytes)"
    );
    let data = format!("{{\"bytes\":{bytes},\"limit\":{bytes_max}}}");
    let text = error_reply(id, CODE_TOO_LARGE, &words, &data);
    match message.said.method {
        Some(_) => drop(desk.ask.add(&[&text])),
        None => desk.feed(at, Cue::Behind(&text)),
    }
}
