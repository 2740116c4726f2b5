//! The stream on which a server speaks first.

use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;

use super::Bridge;
use super::events::{Opened, Place};
use super::problem::Problem;

/// How long the messages behind `notifications/initialized` wait for the stream to be open, so
/// that nothing the server says because of them is lost.
const OPEN_PATIENCE: Duration = Duration::from_millis(500);

impl Bridge {
    /// Listens to what the server has to say by itself, from now on.
    pub(super) async fn listen(self: &Rc<Self>) {
        self.stop_listening();
        self.deaf.set(false);
        let (opened, is_open) = oneshot::channel();
        let task = self.spawn(Rc::clone(self).keep_listening(opened));
        *self.listener.borrow_mut() = Some(task);
        drop(tokio::time::timeout(OPEN_PATIENCE, is_open).await);
    }

    /// Listens again if the stream was lost.
    pub(super) fn listen_again(self: &Rc<Self>) {
        if self.deaf.take() {
            let (opened, _) = oneshot::channel();
            let task = self.spawn(Rc::clone(self).keep_listening(opened));
            *self.listener.borrow_mut() = Some(task);
        }
    }

    pub(super) fn stop_listening(&self) {
        if let Some(task) = self.listener.borrow_mut().take() {
            task.abort();
        }
    }

    /// Whether answers may come on the server's own stream.
    pub(super) fn is_listening(&self) -> bool {
        self.listener.borrow().as_ref().is_some_and(|task| !task.is_finished())
    }

    async fn keep_listening(self: Rc<Self>, opened: oneshot::Sender<()>) {
        let mut place = Place::default();
        let mut opened = Some(opened);
        while !place.is_hopeless() {
            match self.open_stream(&place).await {
                Opened::Stream(stream) => {
                    opened.take();
                    if self.follow(*stream, &mut place, None).await.is_err() {
                        return;
                    }
                }
                Opened::NotNow(_) => place.tried_in_vain(),
                Opened::Refused(status) => {
                    // A server need not offer the stream.
                    if status != StatusCode::METHOD_NOT_ALLOWED {
                        self.notify(&format!(
                            "the MCP server answered {status} to the request for its own messages"
                        ));
                    }
                    return self.give_up_elsewhere().await;
                }
            }
            opened.take();
            place.pause().await;
        }
        // The server may come back; the next message that it accepts tells.
        self.deaf.set(true);
        self.notify("the stream of the MCP server's own messages is lost for now");
        self.give_up_elsewhere().await;
    }

    /// Gives up what was only accepted, once the stream is lost on which its answer was to come.
    pub(super) async fn give_up_elsewhere(&self) {
        let problem = Problem::new(
            "the MCP server accepted the request, but its stream was lost before it answered",
        );
        for call in self.calls.elsewhere() {
            self.give_up(&call, &problem).await;
        }
    }
}
