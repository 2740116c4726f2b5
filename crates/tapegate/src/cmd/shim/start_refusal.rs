//! Reports why a session cannot start: to the client, in the log, and on standard error.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::rc::Rc;

use tapegate_core::actor::Actor;
use tapegate_shim::start_failure::{self, FailureKind, StartFailure, StartFailureActor};
use tapegate_wire::actor_host::{self, ActorHost, ActorHostOptions};
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::{self, SharedSession};
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{EndCause, ShutdownTimeouts};

use super::start_plan::StartPlan;
use crate::client_transport::{client_ports, listen, print_address};
use crate::exit::{Exit, Failure};
use crate::terminal_output;
use crate::verbosity;

/// Reports why the session cannot start: on standard error, in the log, and to the client.
pub(super) async fn refuse_to_start(
    start: &StartPlan,
    kind: FailureKind,
    failure: Failure,
) -> anyhow::Result<Exit> {
    let Failure { exit, message: words, hint } = failure;
    terminal_output::error(&words, hint.as_deref());
    log_failure(start, kind, &words);
    if start.args.http.is_none() && std::io::stdin().is_terminal() {
        // A person started this by hand and has read the reason.
        return Ok(exit);
    }
    let message = start_failure::shorten_reason(&words, hint.as_deref());
    serve_failure(start, (StartFailure { message, kind }, exit), Signals::listen()?).await
}

/// Logs why the session cannot start, before a journal exists.
pub(super) fn log_failure(start: &StartPlan, kind: FailureKind, reason: &str) {
    start_failure::log_failure(&start.shim, kind, reason);
    // This may be the project's first log. Later sessions must continue it.
    start.remember_state();
}

/// Answers every request with the reason why the session cannot start, until the client leaves.
pub(super) async fn serve_failure(
    start: &StartPlan,
    failure: (StartFailure, Exit),
    signals: Signals,
) -> anyhow::Result<Exit> {
    let stand_in = FailureListener {
        http: start.args.http.as_deref(),
        message_bytes_max: start.args.max_message_bytes,
        quiet: verbosity::is_quiet(),
        clock: start.shim.clock,
    };
    stand_in.run(failure, signals).await
}

/// How to reach the clients of a session that cannot start.
pub(super) struct FailureListener<'a> {
    /// The address to listen on; `None` for one client on standard input and output.
    pub(super) http: Option<&'a str>,
    pub(super) message_bytes_max: usize,
    pub(super) quiet: bool,
    pub(super) clock: Clock,
}

impl FailureListener<'_> {
    /// Answers until the client leaves.
    pub(super) async fn run(
        &self,
        (failure, exit): (StartFailure, Exit),
        mut signals: Signals,
    ) -> anyhow::Result<Exit> {
        let bytes_max = self.message_bytes_max;
        let farewell = failure.message.clone();
        let actor: Rc<RefCell<dyn Actor>> = Rc::new(RefCell::new(StartFailureActor(failure)));
        let options = ActorHostOptions {
            message_bytes_max: bytes_max,
            passthrough: None,
            patience: ShutdownTimeouts::default(),
            notice: Rc::new(terminal_output::warn),
            farewell,
        };
        let host = ActorHost::new(actor, self.clock, options);
        let cause = match self.http {
            None => actor_host::run_stdio(&host, client_ports()?, None, signals).await,
            Some(address) => {
                let listener = tokio::select! {
                    listener = listen(address) => listener?,
                    number = signals.next() => return Ok(Exit::from_signal(number)),
                };
                let session =
                    SharedSession::new(RecordedSession::without_recording(self.clock), bytes_max);
                let bridge = InboundBridge::new(
                    Rc::clone(&session),
                    ServerProvider::Stage(host),
                    ShutdownTimeouts::default(),
                );
                print_address(&listener, self.quiet)?;
                http::serve(listener, bridge, &session, signals).await
            }
        };
        Ok(match cause {
            // A stop request is reported as signal 0, and keeps the exit code of the failure.
            EndCause::Signal(number) if number > 0 => Exit::from_signal(number),
            _ => exit,
        })
    }
}
