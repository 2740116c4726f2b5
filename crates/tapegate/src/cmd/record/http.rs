//! Recording for clients that come by HTTP.

use std::rc::Rc;

use tapegate_wire::http::Station;
use tapegate_wire::http::listen::{Handler, Listener};
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{Cause, Outcome};
use tokio::task::LocalSet;

use crate::talk;

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
            tokio::select! {
                number = signals.next() => Ok(Cause::Signal(number)),
                error = station.failed() => Ok(Cause::Tape(error)),
                error = listener.serve(handler) => Err(error),
            }
        })
        .await?;
    Ok(Outcome { cause, status: None })
}
