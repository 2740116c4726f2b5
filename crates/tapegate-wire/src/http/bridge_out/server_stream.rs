//! The stream for messages that a server sends on its own.

use std::rc::Rc;
use std::time::Duration;

use http::StatusCode;
use tokio::sync::oneshot;

use super::OutboundBridge;
use super::event_reader::{OpenedStream, StreamPosition};
use super::problem::ExchangeProblem;

/// How long messages after `notifications/initialized` wait for the stream to open, so that no
/// message the server sends in response is lost.
const OPEN_PATIENCE: Duration = Duration::from_millis(500);

impl OutboundBridge {
    /// Starts listening for messages that the server sends on its own.
    pub(super) async fn listen(self: &Rc<Self>) {
        self.stop_listening();
        self.deaf.set(false);
        let (opened, is_open) = oneshot::channel();
        let task = self.spawn(Rc::clone(self).run_server_stream(opened));
        *self.listener.borrow_mut() = Some(task);
        drop(tokio::time::timeout(OPEN_PATIENCE, is_open).await);
    }

    /// Reopens the stream if it was lost.
    pub(super) fn reopen_server_stream(self: &Rc<Self>) {
        if self.deaf.take() {
            let (opened, _) = oneshot::channel();
            let task = self.spawn(Rc::clone(self).run_server_stream(opened));
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

    async fn run_server_stream(self: Rc<Self>, opened: oneshot::Sender<()>) {
        let mut position = StreamPosition::default();
        let mut opened = Some(opened);
        while !position.has_too_many_retries() {
            match self.open_stream(&position).await {
                OpenedStream::Stream(stream) => {
                    opened.take();
                    if self.forward_stream(*stream, &mut position, None).await.is_err() {
                        return;
                    }
                }
                OpenedStream::NotNow(_) => position.count_failed_retry(),
                OpenedStream::Refused(status) => {
                    // Servers need not offer the stream.
                    if status != StatusCode::METHOD_NOT_ALLOWED {
                        self.notify(&format!(
                            "the MCP server answered {status} to the request for its event stream"
                        ));
                    }
                    return self.fail_calls_on_lost_stream().await;
                }
            }
            opened.take();
            position.pause().await;
        }
        // The server may come back; the next accepted message triggers another attempt.
        self.deaf.set(true);
        self.notify("lost the MCP server's event stream; the next message tries again");
        self.fail_calls_on_lost_stream().await;
    }

    /// Gives up requests whose answers were expected on the server's own stream, which is lost.
    pub(super) async fn fail_calls_on_lost_stream(&self) {
        let problem = ExchangeProblem::new(
            "the MCP server accepted the request, but its stream was lost before it answered",
        );
        for call in self.calls.waiting_on_other_stream() {
            self.fail_call(&call, &problem).await;
        }
    }
}
