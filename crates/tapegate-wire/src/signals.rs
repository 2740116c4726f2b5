//! Signals that end a session.

use std::io;
use std::sync::Arc;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver;

/// The signal number used for a request to end from within the process.
pub const ASKED: i32 = 0;

/// The signals that ask us to end.
#[derive(Debug)]
pub struct Signals(Option<SignalStreams>);

#[derive(Debug)]
struct SignalStreams {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Notified of SIGHUP, if that is not a reason to end.
    reload: Option<Arc<Notify>>,
    /// Requests the end from within the process.
    stop: Option<Receiver<()>>,
    /// Caught and ignored: a tape that exceeds the user's file size limit is then an error like a
    /// full disk, and does not kill us.
    _file_limit: Signal,
}

impl Signals {
    /// Starts listening.
    pub fn listen() -> io::Result<Self> {
        Ok(Self(Some(SignalStreams {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            reload: None,
            stop: None,
            _file_limit: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })))
    }

    /// Makes SIGHUP notify `reload` instead of ending the session.
    pub fn with_reload(mut self, reload: Arc<Notify>) -> Self {
        if let Some(streams) = &mut self.0 {
            streams.reload = Some(reload);
        }
        self
    }

    /// Also listens to `stop`, reported as the signal [`ASKED`].
    pub fn with_stop(mut self, stop: Receiver<()>) -> Self {
        if let Some(streams) = &mut self.0 {
            streams.stop = Some(stop);
        }
        self
    }

    /// Listens to nothing, for a session that is ended from within the process.
    pub fn never() -> Self {
        Self(None)
    }

    /// Waits for the next signal that asks us to end, and returns its number.
    pub async fn next(&mut self) -> i32 {
        let Some(streams) = &mut self.0 else { return std::future::pending().await };
        loop {
            let number = tokio::select! {
                _ = streams.interrupt.recv() => SignalKind::interrupt().as_raw_value(),
                _ = streams.terminate.recv() => SignalKind::terminate().as_raw_value(),
                // A handled SIGHUP does not end the wait: the caller expects only reasons to end.
                _ = streams.hang_up.recv() => match &streams.reload {
                    Some(reload) => {
                        reload.notify_one();
                        continue;
                    }
                    None => SignalKind::hangup().as_raw_value(),
                },
                () = stop_requested(&mut streams.stop) => ASKED,
            };
            return number;
        }
    }
}

/// Waits for a request to end; never returns if the sender is gone.
async fn stop_requested(stop: &mut Option<Receiver<()>>) {
    // A sender that is dropped has not asked for anything, so the session goes on.
    let stop_request = match stop {
        Some(stop) => stop.recv().await,
        None => None,
    };
    if stop_request.is_none() {
        std::future::pending().await
    }
}
