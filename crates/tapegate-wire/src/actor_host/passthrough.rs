//! The passthrough server of an actor: one per session, started on first use.

use std::time::Duration;

use tapegate_core::actor::ActorEvent;
use tapegate_core::frame::{error_reply, oversize_error};
use tapegate_core::lines::OversizeMessage;
use tapegate_core::relay::CODE_TOO_LARGE;
use tapegate_core::time::Timestamp;
use tokio::task::JoinSet;

use super::ActorHost;
use super::client_end::ClientEnd;
use super::client_io::ClientIo;
use super::outbox::LineOutbox;
use crate::link::{LinkEvent, LinkStream};
use crate::port::ReceivedLine;

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
    stream: LinkStream,
    /// Whether there may be lines not yet passed to the actor.
    unheard: bool,
    /// Whether its output has ended.
    ended: bool,
    /// Why it has ended.
    gone: Option<String>,
}

/// An event of the server.
pub(super) enum PassthroughEvent {
    Link(LinkEvent),
    /// It has ended, for this reason.
    Gone(String),
}

impl PassthroughServers {
    /// Sends the actor's requests and passes on the answers, as far as possible without waiting.
    pub(super) fn process_ready(
        &mut self,
        at: Timestamp,
        client_io: &mut ClientIo<impl ClientEnd>,
    ) {
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
            self.leaving
                .spawn_local(async move { drop(server.stream.close().shutdown(grace).await) });
        }
    }

    /// Whether there is work that can be done at once.
    pub(super) fn is_due(&self, client_io: &ClientIo<impl ClientEnd>) -> bool {
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
            PassthroughEvent::Link(LinkEvent::Read(is_more)) => {
                // At the end too: a last line without its ending can be taken only now.
                server.unheard = true;
                server.ended = !is_more;
            }
            PassthroughEvent::Link(LinkEvent::Wrote(count)) => ask.mark_written(count),
            PassthroughEvent::Link(LinkEvent::Deaf) => {}
            PassthroughEvent::Gone(reason) => server.gone = Some(reason),
        }
    }

    /// Ends the servers and cleans up.
    pub(super) async fn close(&mut self, grace: Duration) {
        if let Some(server) = self.server.take() {
            server.stream.close().shutdown(grace).await;
        }
        while self.leaving.join_next().await.is_some() {}
    }
}

impl PassthroughServer {
    fn start(host: &ActorHost) -> Result<Self, String> {
        let upstream = host.options.passthrough.as_ref().ok_or(NOBODY)?;
        let stream = LinkStream::open(upstream, &host.options.link());
        let stream = stream.map_err(|error| error.to_string())?;
        Ok(Self { stream, unheard: false, ended: false, gone: None })
    }

    /// Passes the server's output to the actor while there is room for the actor's reactions.
    fn read_lines(&mut self, at: Timestamp, client_io: &mut ClientIo<impl ClientEnd>) {
        while client_io.can_receive_from_passthrough() {
            match self.stream.output.next_line(self.ended) {
                Some(ReceivedLine::Line(bytes, _)) => client_io.feed(at, ActorEvent::Behind(bytes)),
                Some(ReceivedLine::Oversize(message)) => refuse(at, message, client_io),
                None => {
                    self.unheard = false;
                    return;
                }
            }
        }
    }

    /// Writes the actor's requests as far as possible without waiting.
    fn send(&mut self, ask: &mut LineOutbox) {
        ask.release();
        while let Some(input) = &self.stream.input
            && !ask.writable().is_empty()
        {
            match input.write_now(ask.writable()) {
                Ok(0) => return,
                Ok(count) => ask.mark_written(count),
                Err(_) => self.stream.stop_writing(),
            }
        }
    }

    async fn next_event(&mut self, ask: &LineOutbox, may_read: bool) -> PassthroughEvent {
        if self.gone.is_some() {
            // Only room for its last lines is waited for.
            return std::future::pending().await;
        }
        // Everything it wrote was read, so only the reason is left to find out.
        if self.ended {
            return PassthroughEvent::Gone(self.stream.link.end_reason().await);
        }
        // Lines that wait for room stay in the buffer, and more must not be added.
        let reads = may_read && !self.unheard;
        PassthroughEvent::Link(self.stream.next_event(ask.writable(), reads).await)
    }
}

/// Refuses an oversized message: the side that waits for it, or for its answer, gets an error.
fn refuse(at: Timestamp, message: OversizeMessage, client_io: &mut ClientIo<impl ClientEnd>) {
    let Some(id) = &message.envelope.id else { return };
    let (bytes, bytes_max) = (message.bytes_total, client_io.host.options.message_bytes_max);
    let (message_text, data) = oversize_error(bytes, bytes_max);
    let text = error_reply(id, CODE_TOO_LARGE, &message_text, &data);
    // A request expects our error itself; an answer is replaced by an error for the actor.
    match message.envelope.method {
        Some(_) => drop(client_io.ask.add(&[&text])),
        None => client_io.feed(at, ActorEvent::Behind(&text)),
    }
}

#[cfg(test)]
mod tests;
