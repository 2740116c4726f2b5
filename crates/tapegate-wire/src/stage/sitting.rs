//! A seat whose client is inside the process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::Stage;
use super::seat::Seat;
use crate::child::Pipes;
use crate::port::Port;
use crate::stdio::ClientPorts;

/// How much longer than the server behind it a seat may take to end.
const SLACK: Duration = Duration::from_secs(1);

/// A seat that is taken. Dropping it empties the seat.
pub(crate) struct Sitting {
    stage: Rc<Stage>,
    task: JoinHandle<()>,
    /// The grace of the server behind, once nobody hears what is said.
    unheard: Rc<Cell<Option<Duration>>>,
}

impl Stage {
    /// Takes a seat for a bridge inside the process, which sees a server on pipes, and has streams
    /// for answers or not. Must run inside a `LocalSet`. Messages are not measured: whoever passes
    /// them on has.
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
    /// What clients are told whose requests are not answered because the seat is empty.
    pub(crate) fn farewell(&self) -> String {
        self.stage.farewell().to_owned()
    }

    /// Has the actor hear what was said already, and waits until the seat is empty. The input must
    /// be closed, and the output be read.
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
