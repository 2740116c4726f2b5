//! How a session ends: detecting that the client has left, and notifying both sides.

use std::time::Duration;

use http::{Method, StatusCode};
use tapegate_core::relay::{CODE_GONE, HoldsEndedCause, OwnMessage};

use super::super::OutboundBytes;
use super::problem::ExchangeProblem;
use super::{OutboundBridge, Reachability};
use crate::signals::Signals;
use crate::stdio::{EndCause, FINAL_WRITE_TIMEOUT, HANGUP_CHECK_INTERVAL, ShutdownTimeouts};

/// How long the server may take to acknowledge the end of the session.
const FAREWELL: Duration = Duration::from_secs(2);

impl OutboundBridge {
    /// Waits until the client hangs up while it is not being read from.
    pub(super) async fn client_gone(&self) {
        loop {
            while !self.blocked.get() {
                self.block.notified().await;
            }
            tokio::time::sleep(HANGUP_CHECK_INTERVAL).await;
            if self.blocked.get() && self.client_writer.has_hung_up() {
                return;
            }
        }
    }

    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.set(blocked);
        self.block.notify_one();
    }

    pub(super) fn end_cause(&self) -> EndCause {
        match &*self.reach.borrow() {
            Reachability::Failed(reason) => EndCause::Unreachable(reason.clone()),
            Reachability::Untried | Reachability::Heard => EndCause::Client,
        }
    }

    pub(super) fn mark_server_seen(&self) {
        *self.reach.borrow_mut() = Reachability::Heard;
    }

    /// Remembers why a message got no answer, in case no message ever gets one.
    pub(super) fn note_failure(&self, problem: &ExchangeProblem) {
        if !matches!(*self.reach.borrow(), Reachability::Heard) {
            let message = self.masked(problem).reason_text();
            self.report_unreachable(&message);
        }
    }

    pub(super) fn report_unreachable(&self, reason: &str) {
        let mut reach = self.reach.borrow_mut();
        if !matches!(*reach, Reachability::Heard) {
            *reach = Reachability::Failed(reason.to_owned());
        }
    }

    /// Ends the session: unanswered requests get an error, and the server's session is deleted.
    pub(super) async fn close(
        &self,
        cause: &EndCause,
        signals: &mut Signals,
        patience: ShutdownTimeouts,
    ) {
        tracing::debug!(?cause, "session ended");
        // First, so that no task writes to the client after its final errors.
        self.tasks.borrow_mut().abort_all();
        let reason = cause.client_message();
        let recorded = || self.shared_session.recorded_session();
        let held_message = cause.held_message();
        let mut answers = match cause.unheld_cause() {
            HoldsEndedCause::ServiceGone => recorded().answer_held(self.lane, &held_message),
            HoldsEndedCause::SessionEnded => Vec::new(),
        };
        answers.extend(recorded().answer_for_server(self.lane, &reason, None));
        for message in answers {
            // Removes the calls that are answered here, so that only lost answers remain for the
            // loop below.
            self.learn_from_frame(None, &message.frame());
            self.client_writer.enqueue(message);
        }
        recorded().end_session(cause);
        if let EndCause::Tape(_) = cause {
            // The rest was answered, but the answers were not recorded and so may not be sent.
            for id in self.calls.unanswered() {
                self.client_writer.enqueue(OwnMessage::error(&id, CODE_GONE, &reason).into());
            }
        }
        drop(tokio::time::timeout(FINAL_WRITE_TIMEOUT, self.client_writer.flush()).await);
        let farewell = FAREWELL.min(patience.grace_after(cause));
        tokio::select! {
            () = self.end_session() => {}
            () = tokio::time::sleep(farewell) => {}
            _ = signals.next() => {}
        }
    }

    /// Tells the server that the session is over.
    async fn end_session(&self) {
        let session = self.session.borrow().clone();
        if session.id.is_none() {
            return;
        }
        let headers = session.headers("application/json");
        let path = self.path.borrow().clone();
        let reply = self.upstream.send(Method::DELETE, path, headers, OutboundBytes::empty()).await;
        // Servers need not support DELETE, and may have forgotten the session already.
        let fine = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_FOUND];
        if let Ok(reply) = reply
            && !reply.status().is_success()
            && !fine.contains(&reply.status())
        {
            self.notify(&format!(
                "the MCP server answered {} to the request to end the session",
                reply.status()
            ));
        }
    }
}
