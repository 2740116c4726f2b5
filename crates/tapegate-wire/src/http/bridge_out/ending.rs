//! How a session ends: who has left, what is still to be said, and to whom.

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

/// How often it is looked whether a client that is not read from is still there.
const LOOK_ROUND: Duration = Duration::from_millis(100);
/// How long a client that does not read is waited for at the end.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// How long the server has to take note that a session has ended.
const FAREWELL: Duration = Duration::from_secs(2);

impl Bridge {
    /// Waits until the client is gone while it is not being read from.
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

    /// Notes why a message got no answer, for the case that none ever does.
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

    /// Ends everything: tells the client what will not be answered, and the server good-bye.
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
            // The tape may be what failed; the client is told all the same.
            drop(deck.commit());
            deck.close_books(cause);
        }
        if let Cause::Tape(_) = cause {
            // What is left was answered, but the answer is not on the tape and may not be sent.
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
        // A server need not offer this, and one that has forgotten the session is as good.
        let fine = [StatusCode::METHOD_NOT_ALLOWED, StatusCode::NOT_FOUND];
        if let Ok(reply) = reply
            && !reply.status().is_success()
            && !fine.contains(&reply.status())
        {
            self.notify(&format!(
                "the MCP server answered {} to the session's end",
                reply.status()
            ));
        }
    }
}
