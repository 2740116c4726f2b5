//! How a session ends: detecting that the client has left, and notifying both sides.

use std::time::Duration;

use http::{Method, StatusCode};
use tapegate_core::frame::Frame;
use tapegate_core::relay::{CODE_GONE, Event, OwnMessage};
use tapegate_core::side::Side;

use super::super::Outbound;
use super::problem::Problem;
use super::{Bridge, Reach};
use crate::signals::Signals;
use crate::stdio::{Cause, Patience};

/// How often a client that is not being read from is checked for a hangup.
const LOOK_ROUND: Duration = Duration::from_millis(100);
/// How long to wait at the end for a client that does not read.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the server may take to acknowledge the end of the session.
const FAREWELL: Duration = Duration::from_secs(2);

impl Bridge {
    /// Waits until the client hangs up while it is not being read from.
    pub(super) async fn abandoned(&self) {
        loop {
            while !self.blocked.get() {
                self.block.notified().await;
            }
            tokio::time::sleep(LOOK_ROUND).await;
            if self.blocked.get() && self.outlet.has_hung_up() {
                return;
            }
        }
    }

    pub(super) fn set_blocked(&self, blocked: bool) {
        self.blocked.set(blocked);
        self.block.notify_one();
    }

    pub(super) fn cause_of_leaving(&self) -> Cause {
        match &*self.reach.borrow() {
            Reach::Failed(why) => Cause::Unreachable(why.clone()),
            Reach::Untried | Reach::Heard => Cause::Client,
        }
    }

    pub(super) fn heard(&self) {
        *self.reach.borrow_mut() = Reach::Heard;
    }

    /// Remembers why a message got no answer, in case no message ever gets one.
    pub(super) fn note_failure(&self, problem: &Problem) {
        if !matches!(*self.reach.borrow(), Reach::Heard) {
            let words = self.masked(problem).words();
            self.unheard(&words);
        }
    }

    pub(super) fn unheard(&self, why: &str) {
        let mut reach = self.reach.borrow_mut();
        if !matches!(*reach, Reach::Heard) {
            *reach = Reach::Failed(why.to_owned());
        }
    }

    /// Ends the session: unanswered requests get an error, and the server's session is deleted.
    pub(super) async fn close(&self, cause: &Cause, signals: &mut Signals, patience: Patience) {
        self.tasks.borrow_mut().abort_all();
        let why = cause.words();
        let event =
            Event::Gone { lane: Some(self.lane), side: Side::Server, why: &why, error_type: None };
        {
            let mut deck = self.station.deck();
            let at = deck.now();
            deck.feed(at, event, &mut |outgoing| {
                self.note(None, &Frame::read(outgoing.message.bytes()));
                self.outlet.say(outgoing.message);
            });
            // Even if the tape is what failed, the client gets its errors.
            drop(deck.commit());
            deck.close_books(cause);
        }
        if let Cause::Tape(_) = cause {
            // The rest was answered, but the answers were not recorded and so may not be sent.
            for id in self.calls.unanswered() {
                self.outlet.say(OwnMessage::error(&id, CODE_GONE, &why).into());
            }
        }
        drop(tokio::time::timeout(LAST_WORDS, self.outlet.flush()).await);
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
        let reply = self.upstream.send(Method::DELETE, path, headers, Outbound::empty()).await;
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
