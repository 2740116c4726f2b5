//! Ctrl-C and other signals that end the demo, so that it can restore the terminal and clean up.

use std::cell::Cell;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use tapegate_wire::signals::Signals;

use crate::runtime;

/// Whether a signal has asked the demo to end.
pub(super) struct Interruption {
    signals: Receiver<i32>,
    seen: Cell<Option<i32>>,
}

impl Interruption {
    /// Catches the signals from now on.
    pub(super) fn watch() -> anyhow::Result<Self> {
        let runtime = runtime::start()?;
        let mut streams = {
            let _inside = runtime.enter();
            Signals::listen()?
        };
        let (sender, signals) = mpsc::channel();
        thread::spawn(move || sender.send(runtime.block_on(streams.next())));
        Ok(Self { signals, seen: Cell::new(None) })
    }

    /// The signal that came, or comes within this time.
    pub(super) fn signal(&self, patience: Duration) -> Option<i32> {
        if self.seen.get().is_none() {
            self.seen.set(self.signals.recv_timeout(patience).ok());
        }
        self.seen.get()
    }
}
