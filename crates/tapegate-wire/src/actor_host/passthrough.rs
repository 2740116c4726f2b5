//! The passthrough server of an actor: one per session, started on first use.

use std::time::Duration;

use tapegate_core::actor::ActorEvent;
use tapegate_core::frame::error_reply;
use tapegate_core::lines::{LineSplitter, OversizeMessage, StreamLine};
use tapegate_core::relay::CODE_TOO_LARGE;
use tapegate_core::time::Timestamp;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::ActorHost;
use super::client_io::ClientIo;
use super::outbox::LineOutbox;
use crate::child::ServerPipes;
use crate::link::ServerLink;
use crate::port::StreamPort;
use crate::stdio::LINGER;

/// The error when no passthrough server is configured.
const NOBODY: &str = "there is no upstream server";

/// The passthrough servers of one session: the running one, and those being shut down.
#[derive(Default)]
pub(super) struct PassthroughServers {
    server: Option<PassthroughServer>,
    leaving: JoinSet<()>,
}

/// A running server.
struct PassthroughServer {
    link: ServerLink,
    /// Its input, until it stops reading.
    input: Option<StreamPort>,
    output: StreamPort,
    lines: LineSplitter,
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
pub(super) enum PassthroughEvent {
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

impl PassthroughServers {
    /// Sends the actor's requests and passes on the answers, as far as possible without waiting.
    pub(super) fn process_ready(&mut self, at: Timestamp, client_io: &mut ClientIo<'_>) {
        if client_io.ask.unwritten_bytes() > 0 && self.server.is_none() {
            match PassthroughServer::start(&client_io.host) {
                Ok(server) => self.server = Some(server),
                Err(reason) => {
                    client_io.ask.clear();
                    client_io.feed(at, ActorEvent::BehindGone { reason: &reason });
                }
            }
        }
        let Some(server) = &mut self.server else { return };
        server.read_lines(at, client_io);
        server.send(&mut client_io.ask);
        // Lines that were read before its end are still passed on.
        let over = server.gone.is_some() && !server.unheard;
        if let Some(server) = self.server.take_if(|_| over) {
            // It has never read its last requests.
            client_io.ask.clear();
            client_io.feed(
                at,
                ActorEvent::BehindGone { reason: server.gone.as_deref().unwrap_or_default() },
            );
            let grace = client_io.host.options.patience.grace;
            while self.leaving.try_join_next().is_some() {}
            // In the background, because the client does not wait for this server any longer.
            self.leaving.spawn_local(async move { drop(server.close().shutdown(grace).await) });
        }
    }

    /// Whether there is work that can be done at once.
    pub(super) fn is_due(&self, client_io: &ClientIo<'_>) -> bool {
        match &self.server {
            Some(server) => server.unheard && client_io.can_receive_from_passthrough(),
            None => client_io.ask.unwritten_bytes() > 0,
        }
    }

    /// Waits for an event of the server; its output is read only if `may_read`.
    pub(super) async fn next_event(
        &mut self,
        ask: &LineOutbox,
        may_read: bool,
    ) -> PassthroughEvent {
        match &mut self.server {
            Some(server) => server.next_event(ask, may_read).await,
            None => std::future::pending().await,
        }
    }

    /// Handles an event of the server.
    pub(super) fn handle_event(&mut self, turn: PassthroughEvent, ask: &mut LineOutbox) {
        let Some(server) = &mut self.server else { return };
        match turn {
            PassthroughEvent::Read(0) => server.ended = true,
            PassthroughEvent::Read(count) => {
                server.lines.filled(count);
                server.unheard = true;
            }
            PassthroughEvent::Wrote(count) => ask.mark_written(count),
            PassthroughEvent::Deaf => {
                server.input = None;
                server.wait_for_exit();
            }
            PassthroughEvent::Exited => server.wait_for_exit(),
            PassthroughEvent::Gone(reason) => server.gone = Some(reason),
        }
    }

    /// Ends the servers and cleans up.
    pub(super) async fn close(&mut self, grace: Duration) {
        if let Some(server) = self.server.take() {
            server.close().shutdown(grace).await;
        }
        while self.leaving.join_next().await.is_some() {}
    }
}

impl PassthroughServer {
    fn start(host: &ActorHost) -> Result<Self, String> {
        let upstream = host.options.passthrough.as_ref().ok_or(NOBODY)?;
        let link = ServerLink::open(upstream, &host.options.link());
        let (link, ServerPipes { input, output }) = link.map_err(|error| error.to_string())?;
        Ok(Self {
            link,
            input: Some(input),
            output,
            lines: LineSplitter::new(host.options.message_bytes_max),
            unheard: false,
            deadline: None,
            ended: false,
            gone: None,
        })
    }

    /// Passes the server's output to the actor while there is room for the actor's reactions.
    fn read_lines(&mut self, at: Timestamp, client_io: &mut ClientIo<'_>) {
        loop {
            if !client_io.can_receive_from_passthrough() {
                return;
            }
            let Some(cut) = self.lines.next_line() else { break };
            self.feed_line(at, cut, client_io);
        }
        self.unheard = false;
        self.lines.release();
        if self.ended
            && let Some(cut) = self.lines.take_rest()
        {
            self.feed_line(at, cut, client_io);
        }
    }

    fn feed_line(&self, at: Timestamp, cut: StreamLine, client_io: &mut ClientIo<'_>) {
        match cut {
            StreamLine::Line(range) | StreamLine::Unterminated(range) => {
                client_io.feed(at, ActorEvent::Behind(self.lines.bytes(range)));
            }
            StreamLine::Oversize(message) => refuse(at, message, client_io),
        }
    }

    /// Writes the actor's requests as far as possible without waiting.
    fn send(&mut self, ask: &mut LineOutbox) {
        ask.release();
        while let Some(input) = &self.input
            && !ask.writable().is_empty()
        {
            match input.write_now(ask.writable()) {
                Ok(0) => return,
                Ok(count) => ask.mark_written(count),
                Err(_) => {
                    self.input = None;
                    self.wait_for_exit();
                }
            }
        }
    }

    async fn next_event(&mut self, ask: &LineOutbox, may_read: bool) -> PassthroughEvent {
        // Everything it wrote was read, so only the reason is left to find out.
        if self.ended {
            return PassthroughEvent::Gone(self.link.end_reason().await);
        }
        let Self { link, input, output, lines, unheard, deadline, .. } = self;
        // Lines that wait for room stay in the buffer, and more must not be added.
        let reads = may_read && !*unheard;
        let write = async {
            match input {
                Some(input) => input.write(ask.writable()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            count = async { output.read(lines.read_buffer()).await }, if reads => {
                PassthroughEvent::Read(count.unwrap_or(0))
            }
            written = write, if !ask.writable().is_empty() => written.map_or(PassthroughEvent::Deaf, PassthroughEvent::Wrote),
            () = link.exited(), if deadline.is_none() => PassthroughEvent::Exited,
            () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && reads => {
                PassthroughEvent::Read(0)
            }
        }
    }

    fn wait_for_exit(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + LINGER);
    }

    /// Closes the pipes.
    fn close(self) -> ServerLink {
        self.link
    }
}

/// Refuses an oversized message: the side that waits for it, or for its answer, gets an error.
fn refuse(at: Timestamp, message: OversizeMessage, client_io: &mut ClientIo<'_>) {
    let Some(id) = &message.envelope.id else { return };
    let (bytes, bytes_max) = (message.bytes_total, client_io.host.options.message_bytes_max);
    let message_text = format!(
        "message of {bytes} bytes refused: the limit is {bytes_max} bytes (--max-message-bytes)"
    );
    let data = format!("{{\"bytes\":{bytes},\"limit\":{bytes_max}}}");
    let text = error_reply(id, CODE_TOO_LARGE, &message_text, &data);
    // A request expects our error itself; an answer is replaced by an error for the actor.
    match message.envelope.method {
        Some(_) => drop(client_io.ask.add(&[&text])),
        None => client_io.feed(at, ActorEvent::Behind(&text)),
    }
}
