//! The signals that concern a program which has our terminal, and who sent them.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::raw;

/// The signals that are caught. None of them ends us: the program decides what they mean.
const CAUGHT: [Number; 7] = [
    Number::INT,
    Number::TERM,
    Number::HUP,
    Number::QUIT,
    Number::TSTP,
    Number::USR1,
    Number::USR2,
];

/// Receives the signals sent to us.
#[derive(Debug)]
pub struct ForegroundSignals {
    received: mpsc::UnboundedReceiver<ReceivedSignal>,
    /// Caught and ignored: a log that exceeds the user's file size limit is then an error like a
    /// full disk, and does not kill us.
    _file_limit: Signal,
}

/// A signal that we have received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: Number,
    /// Whether a process sent it to us. Otherwise it came from the terminal, which has sent it to
    /// the program, too.
    pub is_from_process: bool,
}

impl ForegroundSignals {
    /// Starts listening. A signal that we were started to ignore, as `nohup` does, stays ignored,
    /// for the program, too.
    pub fn listen() -> io::Result<Self> {
        let ignored = ignored_signals();
        let (sender, received) = mpsc::unbounded_channel();
        for number in CAUGHT {
            if ignored & (1 << (number.as_raw() - 1)) != 0 {
                continue;
            }
            let origin = Arc::new(AtomicBool::new(false));
            raw::watch_origin(number.as_raw(), Arc::clone(&origin))?;
            let mut stream = signal(SignalKind::from_raw(number.as_raw()))?;
            let sender = sender.clone();
            tokio::spawn(async move {
                while stream.recv().await.is_some() {
                    let is_from_process = origin.load(Ordering::Relaxed);
                    if sender.send(ReceivedSignal { signal: number, is_from_process }).is_err() {
                        return;
                    }
                }
            });
        }
        let _file_limit = signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?;
        Ok(Self { received, _file_limit })
    }

    /// The next signal.
    pub async fn next(&mut self) -> ReceivedSignal {
        match self.received.recv().await {
            Some(received) => received,
            // Everything is ignored.
            None => std::future::pending().await,
        }
    }
}

/// The signals that this process ignores, one bit each; none where the system does not tell.
fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
