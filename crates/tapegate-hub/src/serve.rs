//! A hub from its start to its end.
//!
//! When it ends, whether by a signal or because somebody asked, every shim is told so and waited
//! for; then the last answers are given and the door is closed. A second signal ends the waiting.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::Signal as Number;
use tapegate_wire::http::listen::Listener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::LocalSet;

use crate::service::Hub;

/// How long shims are waited for.
const SHIMS_PATIENCE: Duration = Duration::from_secs(10);
/// How long those are waited for that do not read their last answer.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a hub has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// A signal came.
    Signal(i32),
    /// Somebody asked.
    Asked,
}

/// The signals of a hub: two that end it, and one that has it load its policy.
#[derive(Debug)]
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Listened to and not heard: a log over the user's limit for files is an error like a full
    /// disk, not the end of us.
    _file_limit: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            _file_limit: signal(SignalKind::from_raw(Number::XFSZ.as_raw()))?,
        })
    }

    /// Waits for one that ends the hub. One that does not has the policy loaded anew.
    async fn end(&mut self, hub: &Hub) -> i32 {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return SignalKind::interrupt().as_raw_value(),
                _ = self.terminate.recv() => return SignalKind::terminate().as_raw_value(),
                _ = self.hang_up.recv() => hub.reload(),
            }
        }
    }
}

/// Serves until there is a reason to end. `beside` is what goes on meanwhile, such as watching the
/// files of the policy.
pub async fn serve(
    hub: Rc<Hub>,
    listener: Listener,
    mut signals: Signals,
    beside: impl Future<Output = ()>,
) -> Ended {
    let limits = hub.limits();
    let listener = listener.limited(limits.connections_max, limits.head_patience);
    let session = async {
        let work = async {
            tokio::join!(beside, hub.work());
            std::future::pending::<()>().await
        };
        let shims = async {
            let ended = tokio::select! {
                number = signals.end(&hub) => Ended::Signal(number),
                () = hub.stopped() => Ended::Asked,
            };
            hub.stop();
            let leave = async {
                if tokio::time::timeout(SHIMS_PATIENCE, hub.deserted()).await.is_err() {
                    hub.left_behind();
                }
            };
            tokio::select! {
                () = leave => {}
                // Who signals twice has no patience left.
                _ = signals.end(&hub) => {}
            }
            ended
        };
        let ended = tokio::select! {
            ended = shims => ended,
            () = work => Ended::Asked,
            never = listener.serve(Rc::clone(&hub)) => match never {},
        };
        hub.close();
        hub.last_export().await;
        listener.drain(LAST_WORDS).await;
        ended
    };
    LocalSet::new().run_until(session).await
}
