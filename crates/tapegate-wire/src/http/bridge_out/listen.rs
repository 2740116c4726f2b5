//! The stream for messages that a server sends on its own.

use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;

use super::Bridge;
use super::events::{Opened, Place};
use super::problem::Problem;

/// How long messages after `notifications/initialized` wait for the stream to open, so that no
/// message the server sends in response is lost.
const OPEN_PATIENCE: Duration = Duration::from_millis(500);

impl Bridge {
    /// Starts listening for messages that the server sends on its own.
    pub(super) async fn listen(self: &Rc<Self>) {
        self.stop_listening();
        self.deaf.set(false);
        let (opened, is_open) = oneshot::channel();
        let task = self.spawn(Rc::clone(self).keep_listening(opened));
        *self.listener.borrow_mut() = Some(task);
        drop(tokio::time::timeout(OPEN_PATIENCE, is_open).await);
    }

    /// Reopens the stream if it was lost.
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

    /// Whether answers may arrive on the server's own stream.
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
                    // Servers need not offer the stream.
                    if status != StatusCode::METHOD_NOT_ALLOWED {
                        self.notify(&format!(
                            "the MCP server answered {status} to the request for its event stream"
                        ));
                    }
                    return self.give_up_elsewhere().await;
                }
            }
            opened.take();
            place.pause().await;
        }
        // The server may come back; the next accepted message triggers another attempt.
        self.deaf.set(true);
        self.notify("lost the MCP server's event stream; the next message tries again");
        self.give_up_elsewhere().await;
    }

    /// Gives up requests whose answers were expected on the server's own stream, which is lost.
    pub(super) async fn give_up_elsewhere(&self) {
        let problem = Problem::new(
            "the MCP server accepted the request, but its stream was lost before it answered",
        );
        for call in self.calls.elsewhere() {
            self.give_up(&call, &problem).await;
        }
    }
}
