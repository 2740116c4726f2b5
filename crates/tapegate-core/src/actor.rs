//! In-process servers: a tape being played, or a scenario being run.
//!
//! An actor does no I/O and reads no clock. The wire tells it what each client does in its session, and
//! carries out the actions it asks for, in order.

use crate::lines::OversizeMessage;
use crate::tape::Provenance;
use crate::time::Timestamp;

/// One client session in front of an actor, or many sessionless clients that share one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ActorSessionId(pub u32);

/// What happened in a client session.
#[derive(Debug)]
pub enum ActorEvent<'a> {
    /// A client has connected. If the session is shared, several sessionless clients speak in it
    /// concurrently, and the wire keeps their ids apart.
    Taken {
        /// Whether more than one client may use this session.
        shared: bool,
        /// Whether each answer has a stream of its own, as over HTTP, instead of all sharing one pipe.
        streams: bool,
    },
    /// The client sent a message: one line, without its line ending.
    Said(&'a [u8]),
    /// The client sent a message over the size limit, whose bytes were not kept.
    TooLarge {
        /// The parts of it that were kept.
        message: OversizeMessage,
        bytes_max: usize,
    },
    /// The server behind the actor sent a message: one line, without its line ending.
    Behind(&'a [u8]),
    /// There is no server behind the actor, or it has exited.
    BehindGone {
        /// Why.
        reason: &'a str,
    },
    /// A call to an external handler has finished.
    Done {
        /// Which one.
        call_id: u64,
        /// Its output, or why there is none.
        outcome: Result<&'a [u8], &'a str>,
    },
    /// The time that [`Actor::next_wakeup`] returned has come.
    Due,
    /// The client has closed its sending end. It may still be listening.
    Left,
    /// The session has no client left.
    Empty,
}

/// What an actor wants done in the session it was told about.
#[derive(Debug)]
pub enum ActorAction<'a> {
    /// Send this to the client: the parts together are one line, without its line ending.
    Say(&'a [&'a [u8]]),
    /// Send this to the client that made a request, as part of handling that request.
    Tell {
        /// The id of the request.
        about: &'a [u8],
        /// The message, as for [`ActorAction::Say`].
        parts: &'a [&'a [u8]],
    },
    /// The same for a recorded message, or one sent in place of the recorded server. A tape of this
    /// session records its provenance.
    Play {
        /// The id of the request being handled, unless this is the answer to it.
        about: Option<&'a [u8]>,
        /// The message, as for [`ActorAction::Say`].
        parts: &'a [&'a [u8]],
        provenance: Provenance,
    },
    /// End the stream that carries the answer to the request with this id, if it has one. Later messages
    /// for that request go to a client that reconnects and resumes the stream.
    Part(&'a [u8]),
    /// Send this to the server behind the actor, starting it if it is not running.
    Ask(&'a [&'a [u8]]),
    /// Send bytes that need not be a message, unchanged. With a request, they are part of the body that
    /// answers it; without one, part of what the client is sent unasked. On a pipe nothing else is sent
    /// until they end.
    Raw {
        /// The id of the request.
        about: Option<&'a [u8]>,
        bytes: &'a [u8],
        /// Whether this is the last part of the line, body or event.
        ends: bool,
    },
    /// Call an external handler; [`ActorEvent::Done`] reports the result.
    Run {
        /// Identifies the call when its result is reported.
        call_id: u64,
        /// The call to make.
        handler_call: HandlerCall<'a>,
    },
    /// Disconnect the client: its connection is closed and it is not read from again. In a shared
    /// session, only the client that made the request is disconnected.
    Leave {
        /// The id of the request that caused it.
        about: Option<&'a [u8]>,
        /// Whether to drop unsent output and reset the connection instead of closing it.
        abrupt: bool,
    },
    /// Shut down every session: nothing more is read, and the wire ends once [`Actor::is_busy`] is false or
    /// its time is up.
    Stop,
}

/// A call to an external handler on behalf of an actor.
#[derive(Debug, Clone, Copy)]
pub struct HandlerCall<'a> {
    pub by: HandlerTarget<'a>,
    /// The input it is given.
    pub body: &'a [u8],
    /// The maximum length of its output, in bytes.
    pub bytes_max: usize,
    /// How long it may take, in nanoseconds.
    pub timeout_ns: u64,
}

/// An external handler.
#[derive(Debug, Clone, Copy)]
pub enum HandlerTarget<'a> {
    /// A server that is sent an HTTP POST with a JSON body.
    Http {
        /// Where.
        url: &'a str,
        /// Headers to send besides the required ones.
        headers: &'a [(String, String)],
    },
    /// A program that is started without a shell and reads the input from stdin.
    Command {
        /// The program and its arguments.
        argv: &'a [String],
        /// Environment variables to set besides our own.
        env: &'a [(String, String)],
        /// Its working directory.
        folder: Option<&'a str>,
    },
}

/// Plays the server for any number of clients.
pub trait Actor {
    /// Handles an event of a session and passes the resulting actions to `act`.
    fn handle(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    );

    /// When it wants to be woken for a session, by the monotonic clock in nanoseconds.
    fn next_wakeup(&self, session: ActorSessionId) -> Option<u64>;

    /// Whether the actor still has something to send in the session without further client input.
    fn is_busy(&self, session: ActorSessionId) -> bool;

    /// How many bytes it holds back in the session. A client with too large a backlog is not read from,
    /// but the actor is still woken when due.
    fn backlog_bytes(&self, session: ActorSessionId) -> usize {
        let _ = session;
        0
    }
}
