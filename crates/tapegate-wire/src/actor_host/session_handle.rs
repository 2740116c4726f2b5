//! An actor session for a client in the same process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::ActorHost;
use super::bridge_channel::{self, OutputReceiver};
use super::bridge_client::BridgeClient;
use super::client_input::{ClientInput, MessageGroup};
use super::session::ActorSession;

/// How much longer than its passthrough server a session may take to end.
const SLACK: Duration = Duration::from_secs(1);

/// A handle to a running actor session. Dropping it ends the session.
pub(crate) struct ActorSessionHandle {
    host: Rc<ActorHost>,
    task: JoinHandle<()>,
    /// Set once the output is discarded: the grace for the passthrough server.
    unheard: Rc<Cell<Option<Duration>>>,
}

impl ActorHost {
    /// Starts a session for a bridge in the same process, whose messages come from `queue`.
    /// `streams` tells whether the bridge has streams for answers. Must run inside a `LocalSet`.
    /// Message sizes are not checked: the bridge has done that.
    pub(crate) fn open_session(
        self: &Rc<Self>,
        (shared, streams): (bool, bool),
        queue: mpsc::Receiver<MessageGroup>,
    ) -> (ActorSessionHandle, OutputReceiver) {
        let (output, receiver) = bridge_channel::channel();
        let unheard = Rc::new(Cell::new(None));
        let discard_grace = Rc::clone(&unheard);
        let client = BridgeClient { output, shared, streams, discard_grace };
        let host = Rc::clone(self);
        let task = tokio::task::spawn_local(async move {
            let input = ClientInput::from_bridge(queue);
            let mut session = ActorSession::open(&host, input, client);
            let cause = session.run(shared, streams).await;
            session.close(&cause).await;
        });
        (ActorSessionHandle { host: Rc::clone(self), task, unheard }, receiver)
    }
}

impl ActorSessionHandle {
    /// The error given for requests left unanswered because the session has ended.
    pub(crate) fn end_reason(&self) -> String {
        self.host.end_reason().to_owned()
    }

    /// Lets the actor process the remaining input, and waits for the session to end. The input must
    /// be closed, and the output must be read meanwhile.
    pub(crate) async fn shutdown(&mut self, grace: Duration) {
        // Set before the wait: the session need not finish output that is discarded.
        self.unheard.set(Some(grace));
        let patience = grace + self.host.options.patience.after_term + SLACK;
        if tokio::time::timeout(patience, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}

impl Drop for ActorSessionHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}
