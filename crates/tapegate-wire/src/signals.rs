//! Signals that end a session.

use std::io;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::Receiver;

/// Stands for a signal's number where somebody inside the process wants the session to end.
pub const ASKED: i32 = 0;

/// The signals that ask us to end.
#[derive(Debug)]
pub struct Signals(Option<Heard>);

#[derive(Debug)]
struct Heard {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if a hang-up means something else.
    hang_up: Option<Signal>,
    /// Asks for the end from inside.
    stop: Option<Receiver<()>>,
    /// Listened to and not heard: a tape over the user's limit for files is an error like a full
    /// disk, not the end of us.
    _file_limit: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(Some(Heard::new(Some(signal(SignalKind::hangup())?), None)?)))
    }

    /// Listens from now on, but not to hang-ups, which mean something else to the caller. What comes
    /// by `stop` counts as the signal [`ASKED`].
    pub fn listen_with(stop: Receiver<()>) -> io::Result<Self> {
        Ok(Self(Some(Heard::new(None, Some(stop))?)))
    }

    /// Listens to nothing, for a session that somebody inside the process ends.
    pub fn never() -> Self {
        Self(None)
    }

    /// Waits for the next signal and returns its number.
    pub async fn next(&mut self) -> i32 {
        let Some(heard) = &mut self.0 else { return std::future::pending().await };
        tokio::select! {
            _ = heard.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
            _ = heard.terminate.recv() => SignalKind::terminate().as_raw_value(),
            () = heard_of(&mut heard.hang_up) => SignalKind::hangup().as_raw_value(),
            () = asked_by(&mut heard.stop) => ASKED,
        }
    }
}

impl Heard {
    fn new(hang_up: Option<Signal>, stop: Option<Receiver<()>>) -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up,
            stop,
            _file_limit: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })
    }
}

async fn heard_of(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => _ = signal.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits for a word; who has gone without one will never say it.
async fn asked_by(stop: &mut Option<Receiver<()>>) {
    let asked = match stop {
        Some(stop) => stop.recv().await,
        None => None,
    };
    if asked.is_none() {
        std::future::pending().await
    }
}
