//! Recording for clients that come by HTTP.

use std::rc::Rc;
use std::time::Duration;

use tapegate_wire::http::Station;
use tapegate_wire::http::listen::{Handler, Listener};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{Cause, Outcome};
use tokio::task::LocalSet;

use crate::talk;

/// How long clients are waited for that do not read their last reply.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Serves clients until a signal comes or the tape fails.
pub(super) async fn serve(
    listener: Listener,
    handler: Rc<impl Handler + 'static>,
    station: &Station,
    mut signals: Signals,
    quiet: bool,
) -> anyhow::Result<Outcome> {
    let address = listener.address()?;
    if !quiet {
        talk::say(&format!("listening on http://{address}/mcp"));
    }
    let local = LocalSet::new();
    let cause = local
        .run_until(async {
            let cause = tokio::select! {
                number = signals.next() => Cause::Signal(number),
                error = station.failed() => Cause::Tape(error),
                error = listener.serve(Rc::clone(&handler)) => return Err(error),
            };
            let why = cause.words();
            let end = async {
                handler.shutdown(&why).await;
                listener.drain(LAST_WORDS).await;
            };
            tokio::select! {
                () = end => {}
                // Who signals twice has no patience left.
                _ = signals.next() => {}
            }
            Ok(cause)
        })
        .await?;
    Ok(Outcome { cause, status: None })
}
