//! A server that is no process: a tape that is played, a scenario that is run.
//!
//! An actor does no I/O and reads no clock. The wire tells it what clients do, each at a seat of
//! its own, and carries out what it wants done, in order.

use crate::lines::Oversize;
use crate::tape::Provenance;
use crate::time::At;

/// One client in front of an actor, or many clients without sessions that speak through one door.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Seat(pub u32);

/// What happened at a seat.
#[derive(Debug)]
pub enum Cue<'a> {
    /// A client has come. Where it is shared, clients without sessions speak here side by side,
    /// and the wire keeps their ids apart.
    Taken {
        /// Whether more than one client may speak here.
        shared: bool,
        /// Whether each answer travels on a stream of its own, as by HTTP, and not all on one pipe.
        streams: bool,
    },
    /// The client has said something: one line, without its end.
    Said(&'a [u8]),
    /// The client has said something over the limit, which nobody has kept.
    TooLarge {
        /// What is known of it.
        message: Oversize,
        /// The limit.
        bytes_max: usize,
    },
    /// The server behind the actor has said something: one line, without its end.
    Behind(&'a [u8]),
    /// There is no server behind the actor, or it has gone.
    BehindGone {
        /// Why.
        why: &'a str,
    },
    /// An errand is done.
    Done {
        /// Which one.
        ticket: u64,
        /// What came of it, or why nothing did.
        outcome: Result<&'a [u8], &'a str>,
    },
    /// The moment that [`Actor::due`] named has come.
    Due,
    /// The client has closed its end: it will say no more, but may still listen.
    Left,
    /// Nobody is at the seat any more.
    Empty,
}

/// What an actor wants done at the seat it was told about.
#[derive(Debug)]
pub enum Act<'a> {
    /// Say this to the client: the parts together are one line, without its end.
    Say(&'a [&'a [u8]]),
    /// Say this to whoever has made a request, because of it.
    Tell {
        /// The id of the request.
        about: &'a [u8],
        /// What is said, as with [`Act::Say`].
        parts: &'a [&'a [u8]],
    },
    /// The same for what a tape has, or what is said in the place of its server: a new tape tells
    /// where it is from.
    Play {
        /// The id of the request because of which it is said, if it is not the answer to it.
        about: Option<&'a [u8]>,
        /// What is said, as with [`Act::Say`].
        parts: &'a [&'a [u8]],
        /// Where it is from.
        provenance: Provenance,
    },
    /// End the stream on which the request with this id is to be answered, if it has one: what is
    /// said with it from now on is for a client that comes back for the rest.
    Part(&'a [u8]),
    /// Say this to the server behind, which is started if it is not running.
    Ask(&'a [&'a [u8]]),
    /// Send bytes that need not be a message, as they are. With a request they are a part of the body
    /// that answers it; without one, of what the client is told besides. On a pipe nothing else is
    /// sent before they end.
    Raw {
        /// The id of the request.
        about: Option<&'a [u8]>,
        /// The bytes.
        bytes: &'a [u8],
        /// Whether this is the end: of the line, of the body, of the event.
        ends: bool,
    },
    /// Have something done elsewhere; [`Cue::Done`] says what came of it.
    Run {
        /// What it is known by.
        ticket: u64,
        /// What is to be done.
        errand: Errand<'a>,
    },
    /// Leave the client: its connection is closed, and nothing more is heard of it. Where clients
    /// share a seat, only the one is left that has made the request.
    Leave {
        /// The id of the request that it is because of.
        about: Option<&'a [u8]>,
        /// Whether what was said and not yet sent is lost, and the connection broken rather than closed.
        abrupt: bool,
    },
    /// End everything, at every seat: nothing more is read, and once [`Actor::busy`] is over, or
    /// its time is up, the wire ends.
    Stop,
}

/// Something that is done elsewhere for an actor.
#[derive(Debug, Clone, Copy)]
pub struct Errand<'a> {
    /// Who does it.
    pub by: Helper<'a>,
    /// What it is told.
    pub body: &'a [u8],
    /// How much it may say, in bytes.
    pub bytes_max: usize,
    /// How long it may take, in nanoseconds.
    pub timeout_ns: u64,
}

/// Who does an errand.
#[derive(Debug, Clone, Copy)]
pub enum Helper<'a> {
    /// A server that is sent a POST of JSON.
    Http {
        /// Where.
        url: &'a str,
        /// Headers besides those that must be.
        headers: &'a [(String, String)],
    },
    /// A program that is started, without a shell, and told on its standard input.
    Command {
        /// The program and its arguments.
        argv: &'a [String],
        /// Variables besides our own.
        env: &'a [(String, String)],
        /// Where it is started.
        folder: Option<&'a str>,
    },
}

/// Something that plays the server for any number of clients.
pub trait Actor {
    /// Takes what happened at a seat and says what is to be done there.
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>));

    /// When it wants to be woken for a seat, by the monotonic clock in nanoseconds.
    fn due(&self, seat: Seat) -> Option<u64>;

    /// Whether something is still to be said at the seat without the client saying more.
    fn busy(&self, seat: Seat) -> bool;

    /// How many bytes it holds back at the seat. A client for whom too much waits is not heard, while
    /// the moments that the actor wants to be woken at still come.
    fn backlog(&self, seat: Seat) -> usize {
        let _ = seat;
        0
    }
}
