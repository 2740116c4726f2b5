//! Reads the client's input line by line, records it, and sends it on in order.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{Body, Frame, Garbage};
use tapegate_core::gate::Ticket;
use tapegate_core::lines::{Cut, Lines};
use tapegate_core::relay::{Event, Permitted};
use tapegate_core::side::Side;
use tokio::sync::OwnedSemaphorePermit;

use super::calls::{Call, Sort, Step};
use super::problem::Problem;
use super::{Bridge, MESSAGE_COST_BYTES, Transport, apart};
use crate::deck::Disposition;
use crate::http::Outbound;
use crate::http::station::{Judged, Stopped, Word};
use crate::port::Port;
use crate::stdio::{LEFT, LOOK_ROUND};

/// How long a message without an answer may delay the messages after it.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a first request other than `initialize` may delay the others: it is a probe, and
/// clients treat silence as an answer too.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a cancellation waits for the server to accept the request it cancels: they travel on
/// two connections, and a cancellation that arrives first would be lost.
const CANCEL_PATIENCE: Duration = Duration::from_millis(250);

impl Bridge {
    /// Reads the client's input to its end, then waits for outstanding answers.
    pub(super) async fn serve(self: &Rc<Self>, input: Port) {
        if self.read_all(&input).await.is_err() {
            // The tape failed; the task that runs the session notices that and ends it.
            return std::future::pending().await;
        }
        self.set_blocked(true);
        self.station.deck().settle();
        if self.unhold().await.is_err() {
            return std::future::pending().await;
        }
        for subscription in self.calls.subscriptions() {
            self.end_subscription(&subscription).await;
        }
        // Requests that no task works on any more are answered when the session ends.
        while self.station.deck().wanted(Side::Client) > 0 && self.is_busy() {
            tokio::select! {
                () = self.progress.notified() => {}
                () = tokio::time::sleep(LOOK_ROUND) => {}
            }
            // A fetched tool list may have shown that a call needs approval.
            if self.unhold().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn read_all(self: &Rc<Self>, input: &Port) -> Result<(), Stopped> {
        let mut lines = Lines::new(self.station.message_bytes_max());
        loop {
            self.set_blocked(true);
            loop {
                self.room(input).await?;
                let Some(cut) = lines.cut() else { break };
                self.take(&lines, cut).await?;
            }
            lines.release();
            self.set_blocked(false);
            match input.read(lines.room()).await {
                Ok(count) if count > 0 => lines.filled(count),
                // A hung-up terminal or socket reads as an error; treat it as end of input.
                Ok(_) | Err(_) => break,
            }
        }
        match lines.finish() {
            Some(cut) => self.take(&lines, cut).await,
            None => Ok(()),
        }
    }

    /// Waits until another call may be held. The client is not read from meanwhile, so check
    /// whether it has left; otherwise its calls would stay held, and might run for no one.
    async fn room(&self, input: &Port) -> Result<(), Stopped> {
        loop {
            tokio::select! {
                biased;
                () = self.station.room() => return Ok(()),
                () = tokio::time::sleep(LOOK_ROUND) => {
                    if input.has_ended() {
                        self.unhold().await?;
                    }
                }
            }
        }
    }

    /// Ends holds that wait for an approver, because the client they belong to has left. Calls that
    /// wait for a tool list continue: a client may close its output and still read the answers.
    async fn unhold(&self) -> Result<(), Stopped> {
        if self.station.deck().held() == 0 {
            return Ok(());
        }
        let turn = self.outlet.turn().await;
        let unheld = Event::Unheld { lane: Some(self.lane), why: LEFT, keeps_lists: true };
        let outgoing = self.station.pass(unheld)?;
        self.say(&turn, None, apart(outgoing).0);
        Ok(())
    }

    async fn take(self: &Rc<Self>, lines: &Lines, cut: Cut) -> Result<(), Stopped> {
        let (lane, from) = (self.lane, Side::Client);
        let (bytes, terminated) = match cut {
            Cut::Line(range) => (lines.bytes(range), true),
            Cut::Unterminated(range) => (lines.bytes(range), false),
            Cut::Oversize(message) => return self.refuse(None, from, message).await,
        };
        let event = Event::Received { lane, from, bytes, terminated };
        let Judged { disposition, said } = self.station.judge(event, from)?;
        let (to_client, to_server) = apart(said);
        if !to_client.is_empty() {
            let turn = self.outlet.turn().await;
            self.say(&turn, None, to_client);
        }
        // Register the hold first: our own request may lead to a decision about it.
        if let Disposition::Hold(ticket) = disposition {
            self.wait_for(ticket);
        }
        for message in to_server {
            self.send(message).await;
        }
        if let Disposition::Forward(message) = disposition {
            self.pass_line(message, terminated).await;
        }
        Ok(())
    }

    /// Waits for the decision about a held call; then sends the call or answers the client.
    fn wait_for(self: &Rc<Self>, ticket: Ticket) {
        let number = self.holds.get() + 1;
        self.holds.set(number);
        let bridge = Rc::downgrade(self);
        let waiting = self.station.wait(ticket, move |word| {
            let Some(bridge) = bridge.upgrade() else { return };
            match word {
                Word::Tell(message) => return bridge.outlet.say(message),
                Word::Answer(message) => bridge.outlet.say(message),
                Word::Send(message) => bridge.tell_server(message),
                Word::Over => {}
            }
            bridge.held.borrow_mut().remove(&number);
            bridge.progress.notify_one();
        });
        self.held.borrow_mut().insert(number, waiting);
    }

    /// Sends a permitted line to the server.
    async fn pass_line(self: &Rc<Self>, message: Permitted<'_>, terminated: bool) {
        let frame = Frame::read(message.bytes());
        match frame.body() {
            // Blank lines and incomplete lines are not messages.
            Body::Garbage(Garbage::Empty) => return,
            Body::Garbage(_) if !terminated => return,
            Body::Message(said) if said.is_method("notifications/cancelled") => {
                if let Some(id) = said.request_id
                    && self.cancel(id).await
                {
                    return;
                }
            }
            _ => {}
        }
        self.send(message).await;
    }

    /// Starts sending a message, and waits while later messages must not overtake it.
    pub(super) async fn send(self: &Rc<Self>, message: Permitted<'_>) {
        let call = Call::of(&Frame::read(message.bytes()));
        let message = Outbound::message(message);
        let place = if call.asks { self.enter_queue(message.bytes().len()).await } else { None };
        let unsettled = *self.transport.borrow() == Transport::Unknown;
        let held = (!call.asks || call.sort == Sort::Initialize || unsettled).then(|| call.hold());
        self.calls.add(&call);
        let task = self.spawn(Rc::clone(self).carry(Rc::clone(&call), message, place));
        call.carried_by(task);
        match held {
            Some(held) if call.sort == Sort::Initialize => drop(held.await),
            Some(held) if call.asks => drop(tokio::time::timeout(PROBE_PATIENCE, held).await),
            Some(held) => drop(tokio::time::timeout(ACCEPT_PATIENCE, held).await),
            None => {}
        }
    }

    /// Waits for queue space for a request of `length` bytes.
    async fn enter_queue(&self, length: usize) -> Option<OwnedSemaphorePermit> {
        let cost = (length + MESSAGE_COST_BYTES).min(self.queue_bytes_max);
        self.queue.clone().acquire_many_owned(cost as u32).await.ok()
    }

    /// Cancels a request; true if the server need not be told.
    async fn cancel(self: &Rc<Self>, id: &[u8]) -> bool {
        let Some(call) = self.calls.settle(None, id) else {
            // It is answered already. Only a server with a session expects the notification.
            return self.session.borrow().version.is_none();
        };
        let older = matches!(*self.transport.borrow(), Transport::Older(_));
        let closes = (call.modern && !older) || call.step() < Step::Sent;
        // Other requests of the same batch may still be pending.
        if closes && call.is_over() {
            call.abort();
            self.forget(id);
            return true;
        }
        drop(tokio::time::timeout(CANCEL_PATIENCE, call.accepted()).await);
        false
    }

    /// Ends a subscription whose client has left.
    async fn end_subscription(&self, call: &Rc<Call>) {
        call.abort();
        for id in call.unanswered() {
            self.forget(&id);
        }
        self.give_up(call, &Problem::new("the client has left")).await;
    }

    /// Forgets a request whose answer is no longer wanted.
    fn forget(&self, id: &[u8]) {
        let bytes = [b"{\"id\":", id, b"}"].concat();
        let (lane, asker) = (self.lane, Side::Client);
        // If the tape has failed, the session is ending.
        self.station.pass(Event::Dismissed { lane, asker, bytes: Some(&bytes), why: None }).ok();
        self.progress.notify_one();
    }
}
