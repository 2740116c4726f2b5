//! A server that is no process: a tape that is played, a scenario that is run.
//!
//! An actor does no I/O and reads no clock. The wire tells it what clients do, each at a seat of
//! its own, and carries out what it wants done, in order.

use crate::lines::Oversize;
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
    /// End the stream on which the request with this id is to be answered, if it has one: what is
    /// said with it from now on is for a client that comes back for the rest.
    Part(&'a [u8]),
    /// Say this to the server behind, which is started if it is not running.
    Ask(&'a [&'a [u8]]),
    /// End everything, at every seat: nothing more is read, and once [`Actor::busy`] is over, or
    /// its time is up, the wire ends.
    Stop,
}

/// Something that plays the server for any number of clients.
pub trait Actor {
    /// Takes what happened at a seat and says what is to be done there.
    fn handle(&mut self, at: At, seat: Seat, cue: Cue<'_>, act: &mut dyn FnMut(Act<'_>));

    /// When it wants to be woken for a seat, by the monotonic clock in nanoseconds.
    fn due(&self, seat: Seat) -> Option<u64>;

    /// Whether something is still to be said at the seat without the client saying more.
    fn busy(&self, seat: Seat) -> bool;
}
