//! Serves HTTP clients until there is a reason to stop.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::relay::RelayEvent;
use tokio::task::LocalSet;

use super::listener::{HttpListener, RequestHandler};
use super::{OutboundBytes, SharedSession};
use crate::signals::Signals;
use crate::stdio::EndCause;

/// How long to wait for clients that do not read their last reply.
const FINAL_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// Serves clients until a signal arrives, the tape fails or the handler ends on its own.
pub async fn serve(
    listener: HttpListener,
    handler: Rc<impl RequestHandler<Piece = OutboundBytes> + 'static>,
    shared_session: &SharedSession,
    mut signals: Signals,
) -> EndCause {
    let session = async {
        let cause = tokio::select! {
            number = signals.next() => EndCause::Signal(number),
            error = shared_session.tape_failed() => EndCause::Tape(error),
            () = handler.finished() => EndCause::Actor,
            // Exchanges are told by their listeners; there is nothing else to deliver.
            () = shared_session.run_holds(drop) => EndCause::Actor,
            never = listener.serve(Rc::clone(&handler)) => match never {},
        };
        tracing::debug!(?cause, "serving ended");
        let reason = cause.client_message();
        // If the tape itself has failed, held calls end with the session instead.
        shared_session
            .feed_and_commit(RelayEvent::HoldsEnded {
                lane: None,
                reason: &cause.held_message(),
                cause: cause.unheld_cause(),
                keeps_lists: false,
            })
            .ok();
        shared_session.recorded_session().end_session(&cause);
        let end = async {
            handler.shutdown(&reason).await;
            listener.drain(FINAL_WRITE_TIMEOUT).await;
        };
        tokio::select! {
            () = end => {}
            // A second signal skips the rest of the shutdown.
            _ = signals.next() => {}
        }
        cause
    };
    LocalSet::new().run_until(session).await
}
