//! The server end of a bridge: a process on pipes, or a session of an actor in this process.

use std::rc::Rc;

use tapegate_core::relay::LineBuffer;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::server_connection::ConnectionKind;
use crate::actor_host::{ActorHost, ActorOutput, MessageGroup, OutputReceiver};
use crate::child::{ServerLaunch, ServerProcess, SpawnError};
use crate::port::{LineReader, ReceivedLine, StreamPort};
use crate::server_end::ServerEnd;
use crate::stdio::{EXIT_STATUS_WAIT, EndCause, SessionOutcome, server_end_message};

/// How many server processes may run at once.
const PROCESSES_MAX: usize = 64;
/// How many actor sessions may exist at once. Each costs only a little memory.
const SEATS_MAX: usize = 1024;
/// How many bytes of sent events are kept for the client of a process.
const PROCESS_HISTORY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same for an actor session, of which there may be more.
const SEAT_HISTORY_BYTES_MAX: usize = 512 * 1024;

/// Where the servers of a bridge come from.
pub enum ServerProvider {
    /// Each is a process started like this. The callback is told of servers that end on their own.
    Processes(ServerLaunch, Option<OnServerEnd>),
    /// Each is a session of this actor host.
    Stage(Rc<ActorHost>),
}

/// Called when a server has ended without being asked to.
pub type OnServerEnd = Rc<dyn Fn(&SessionOutcome)>;

/// A running server, and whom to tell if it ends on its own.
pub(super) struct BridgeServer {
    pub(super) server: ServerEnd,
    on_end: Option<OnServerEnd>,
}

/// The output of a server.
pub(super) enum OutputReader {
    Pipe(LineReader),
    Channel(OutputReceiver, Option<ActorOutput>),
}

/// Something that a server has sent.
pub(super) enum ServerOutput<'a> {
    /// A line of a process.
    Process(ReceivedLine<'a>),
    /// Output of an actor session.
    Actor(ActorOutput),
}

impl ServerProvider {
    /// Starts a server for one client, or for all clients without a session. Its input is `queue`;
    /// lines of its output may have `line_bytes_max` bytes.
    pub(super) fn start(
        &self,
        kind: ConnectionKind,
        queue: mpsc::Receiver<MessageGroup>,
        line_bytes_max: usize,
    ) -> Result<(BridgeServer, OutputReader), SpawnError> {
        Ok(match self {
            Self::Processes(launch, on_end) => {
                let (child, pipes) = ServerProcess::launch(launch)?;
                tokio::task::spawn_local(write_all(pipes.input, queue));
                let reader = OutputReader::Pipe(LineReader::new(pipes.output, line_bytes_max));
                let server = ServerEnd::Process(Box::new(child));
                (BridgeServer { server, on_end: on_end.clone() }, reader)
            }
            Self::Stage(host) => {
                let sharing = (kind == ConnectionKind::Shared, kind != ConnectionKind::Old);
                let (session, output) = host.open_session(sharing, queue);
                let server = BridgeServer { server: ServerEnd::Actor(session), on_end: None };
                (server, OutputReader::Channel(output, None))
            }
        })
    }

    /// How many sessions may exist at once.
    pub(super) fn sessions_max(&self) -> usize {
        match self {
            Self::Processes(..) => PROCESSES_MAX,
            Self::Stage(_) => SEATS_MAX,
        }
    }

    /// The reason given to clients if the servers end on their own.
    pub(super) fn end_reason(&self) -> Option<&str> {
        match self {
            Self::Stage(host) if host.is_stopping() => Some(host.end_reason()),
            Self::Stage(_) | Self::Processes(..) => None,
        }
    }

    /// Waits until the servers end on their own.
    pub(super) async fn stopped(&self) {
        match self {
            Self::Stage(host) => host.stop_requested().await,
            Self::Processes(..) => std::future::pending().await,
        }
    }
}

impl BridgeServer {
    /// Whether it is an actor session, which knows about HTTP streams and connections.
    pub(super) fn is_in_process(&self) -> bool {
        matches!(self.server, ServerEnd::Actor(_))
    }

    /// How many bytes of sent events are kept for its client.
    pub(super) fn history_bytes_max(&self) -> usize {
        if self.is_in_process() { SEAT_HISTORY_BYTES_MAX } else { PROCESS_HISTORY_BYTES_MAX }
    }

    /// The reason given for requests left unanswered because the output has ended.
    pub(super) async fn end_reason(&mut self) -> String {
        if let ServerEnd::Actor(session) = &self.server {
            return session.end_reason();
        }
        let until = Instant::now() + EXIT_STATUS_WAIT;
        server_end_message(self.server.exit_status(until).await)
    }

    /// Reports a server that ended without being asked to, with its unanswered requests.
    pub(super) async fn report_end(&self, unanswered: usize) {
        let (ServerEnd::Process(child), Some(on_end)) = (&self.server, &self.on_end) else {
            return;
        };
        let (cause, status) = (EndCause::Server, child.status());
        let stderr_tail = child.stderr_tail().await;
        let was_terminated = child.was_terminated();
        on_end(&SessionOutcome { cause, status, was_terminated, unanswered, stderr_tail });
    }
}

impl OutputReader {
    /// Waits until the server can do nothing before some of its output is taken.
    pub(super) async fn full(&self) {
        match self {
            // Its pipe may be full, but that does not show here.
            Self::Pipe(_) => std::future::pending().await,
            Self::Channel(output, _) => output.full().await,
        }
    }

    /// Waits for more output; false if it has ended.
    pub(super) async fn fill(&mut self) -> bool {
        match self {
            Self::Pipe(reader) => reader.read().await,
            // One at a time, so that the caller can wait for its clients in between.
            Self::Channel(output, next) => {
                *next = output.receive().await;
                next.is_some()
            }
        }
    }

    /// Takes the next output that has arrived; at the end (`is_over`) also an incomplete line.
    pub(super) fn next(&mut self, is_over: bool) -> Option<ServerOutput<'_>> {
        match self {
            Self::Pipe(reader) => reader.next_line(is_over).map(ServerOutput::Process),
            Self::Channel(_, next) => next.take().map(ServerOutput::Actor),
        }
    }
}

/// Writes queued messages until the queue is closed, then closes the server's input.
async fn write_all(input: StreamPort, mut queue: mpsc::Receiver<MessageGroup>) {
    while let Some(messages) = queue.recv().await {
        let mut lines = LineBuffer::default();
        messages.into_iter().for_each(|message| lines.push(message));
        while lines.unwritten_bytes() > 0 {
            match input.write(lines.writable()).await {
                Ok(count) => lines.advance(count),
                // Dropping the queue makes every later `reserve` fail, so senders learn of it.
                Err(_) => return,
            }
        }
    }
}
