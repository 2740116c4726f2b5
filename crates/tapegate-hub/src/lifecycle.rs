//! A hub from start to shutdown.
//!
//! On shutdown, by a signal or on request, every shim is told and waited for; then the last answers
//! are sent and the listener is closed. A second signal ends the wait.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal as Number;
use tapegate_wire::http::listener::HttpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

use crate::service::Hub;

/// How long to wait for shims to end.
pub const SHIMS_PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait for clients to read their last answer.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a hub has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubExit {
    /// By a signal.
    Signal(i32),
    /// By a shutdown request.
    Asked,
}

/// The signals that a hub handles: two that end it, and one that reloads the policy.
#[derive(Debug)]
pub struct HubSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Caught and ignored: a log that exceeds the user's file size limit is then a write error,
    /// like a full disk, and does not kill the hub.
    _file_limit: Signal,
}

impl HubSignals {
    /// Installs the signal handlers.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_limit: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })
    }

    /// Waits for a signal that ends the hub, and reloads the policy on SIGHUP.
    async fn end_requested(&mut self, hub: &Hub) -> i32 {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return SignalKind::interrupt().as_raw_value(),
                _ = self.terminate.recv() => return SignalKind::terminate().as_raw_value(),
                _ = self.hang_up.recv() => hub.reload(),
            }
        }
    }
}

/// Waits until no shim is left, and reports those that take too long.
pub async fn wait_for_shims(hub: &Hub) {
    if tokio::time::timeout(SHIMS_PATIENCE, hub.wait_until_no_shims()).await.is_err() {
        hub.report_remaining_shims();
    }
}

/// Serves until shutdown. `beside` runs alongside, such as a watcher of the policy's files. On
/// shutdown, the hub serves on as long as `shims_left` takes, or until a second signal.
pub async fn serve(
    hub: Rc<Hub>,
    listener: HttpListener,
    mut signals: HubSignals,
    beside: impl Future<Output = ()>,
    shims_left: impl Future<Output = ()>,
) -> HubExit {
    let limits = hub.limits();
    let listener = listener.with_limits(limits.connections_max, limits.head_patience);
    let session = async {
        let work = async {
            tokio::join!(beside, hub.run_background());
            std::future::pending::<()>().await
        };
        let shims = async {
            let ended = tokio::select! {
                number = signals.end_requested(&hub) => HubExit::Signal(number),
                () = hub.stop_requested() => HubExit::Asked,
            };
            // Tell shims first: while they finish, the hub still answers, logs and decides.
            hub.stop();
            tokio::select! {
                () = shims_left => {}
                // A second signal ends the wait for shims.
                _ = signals.end_requested(&hub) => {}
            }
            ended
        };
        let ended = tokio::select! {
            ended = shims => ended,
            () = work => HubExit::Asked,
            never = listener.serve(Rc::clone(&hub)) => match never {},
        };
        // After the shims: to them, a closed stream looks like a hub that is gone.
        hub.close();
        // After `close`, whose last count is exported too.
        hub.export_rest().await;
        // The answer to the shutdown request itself may still be on its way.
        listener.drain(LAST_WORDS).await;
        ended
    };
    LocalSet::new().run_until(session).await
}
