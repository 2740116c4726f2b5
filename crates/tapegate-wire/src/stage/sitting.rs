//! An actor session for a client in the same process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Stage;
use super::seat::Seat;
use crate::child::Pipes;
use crate::port::Port;
use crate::stdio::ClientPorts;

/// How much longer than its passthrough server a session may take to end.
const SLACK: Duration = Duration::from_secs(1);

/// A handle to a running actor session. Dropping it ends the session.
pub(crate) struct Sitting {
    stage: Rc<Stage>,
    task: JoinHandle<()>,
    /// Set once the output is discarded: the grace for the passthrough server.
    unheard: Rc<Cell<Option<Duration>>>,
}

impl Stage {
    /// Starts a session for a bridge in the same process, to which it looks like a server on pipes.
    /// `streams` tells whether the bridge has streams for answers. Must run inside a `LocalSet`.
    /// Message sizes are not checked: the bridge has done that.
    pub(crate) fn seat(self: &Rc<Self>, shared: bool, streams: bool) -> (Sitting, Pipes) {
        let (from_client, input) = Port::pair();
        let (output, to_client) = Port::pair();
        let client = ClientPorts { input: from_client, output: to_client };
        let unheard = Rc::new(Cell::new(None));
        let (stage, heard) = (Rc::clone(self), Rc::clone(&unheard));
        let task = tokio::task::spawn_local(async move {
            let mut seat = Seat::take(&stage, client, None).within(heard, streams);
            let cause = seat.run(shared).await;
            seat.close(&cause).await;
        });
        (Sitting { stage: Rc::clone(self), task, unheard }, Pipes { input, output })
    }
}

impl Sitting {
    /// The error given for requests left unanswered because the session has ended.
    pub(crate) fn farewell(&self) -> String {
        self.stage.farewell().to_owned()
    }

    /// Lets the actor process the remaining input, and waits for the session to end. The input must
    /// be closed, and the output must be read meanwhile.
    pub(crate) async fn end(&mut self, grace: Duration) {
        self.unheard.set(Some(grace));
        let patience = grace + self.stage.options.patience.after_term + SLACK;
        if tokio::time::timeout(patience, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for Sitting {
    fn drop(&mut self) {
        self.task.abort();
    }
}
