//! Serves HTTP clients until there is a reason to stop.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::relay::Event;
use tokio::task::LocalSet;

use super::listen::{Handler, Listener};
use super::{Outbound, Station};
use crate::signals::Signals;
use crate::stdio::Cause;

/// How long to wait for clients that do not read their last reply.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves clients until a signal arrives, the tape fails or the handler ends on its own.
pub async fn serve(
    listener: Listener,
    handler: Rc<impl Handler<Piece = Outbound> + 'static>,
    station: &Station,
    mut signals: Signals,
) -> Cause {
    let session = async {
        let cause = tokio::select! {
            number = signals.next() => Cause::Signal(number),
            error = station.failed() => Cause::Tape(error),
            () = handler.over() => Cause::Actor,
            () = station.attend() => Cause::Actor,
            never = listener.serve(Rc::clone(&handler)) => match never {},
        };
        let why = cause.words();
        // If the tape itself has failed, held calls end with the session instead.
        station.pass(Event::Unheld { lane: None, why: &why, keeps_lists: false }).ok();
        station.deck().close_books(&cause);
        let end = async {
            handler.shutdown(&why).await;
            listener.drain(LAST_WORDS).await;
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
