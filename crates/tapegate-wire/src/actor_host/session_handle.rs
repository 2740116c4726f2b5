//! An actor session for a client in the same process.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::ActorHost;
use super::session::ActorSession;
use crate::child::ServerPipes;
use crate::port::StreamPort;
use crate::stdio::ClientPorts;

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
    /// Starts a session for a bridge in the same process, to which it looks like a server on pipes.
    /// `streams` tells whether the bridge has streams for answers. Must run inside a `LocalSet`.
    /// Message sizes are not checked: the bridge has done that.
    pub(crate) fn open_session(
        self: &Rc<Self>,
        shared: bool,
        streams: bool,
    ) -> (ActorSessionHandle, ServerPipes) {
        let (from_client, input) = StreamPort::pair();
        let (output, to_client) = StreamPort::pair();
        let client = ClientPorts { input: from_client, output: to_client };
        let unheard = Rc::new(Cell::new(None));
        let (host, heard) = (Rc::clone(self), Rc::clone(&unheard));
        let task = tokio::task::spawn_local(async move {
            let mut session = ActorSession::open(&host, client, None).in_process(heard, streams);
            let cause = session.run(shared).await;
            session.close(&cause).await;
        });
        (ActorSessionHandle { host: Rc::clone(self), task, unheard }, ServerPipes { input, output })
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
