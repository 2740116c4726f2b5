//! What the client says: read line by line, recorded, and sent on in order.

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

/// How long a message that wants no answer may keep the others waiting.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a first request that is not `initialize` may keep the others waiting: it is a probe,
/// and a client takes silence for an answer too.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a cancellation waits for the server to have begun with what it cancels: they travel
/// on two connections, and one that comes first would be lost.
const CANCEL_PATIENCE: Duration = Duration::from_millis(250);

impl Bridge {
    /// Reads the client to its end, and waits for the answers it still wants.
    pub(super) async fn serve(self: &Rc<Self>, input: Port) {
        if self.read_all(&input).await.is_err() {
            // The tape failed, which whoever ends the session learns from the station.
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
        // What nobody works on any more is answered by the session's end.
        while self.station.deck().wanted(Side::Client) > 0 && self.is_busy() {
            tokio::select! {
                () = self.progress.notified() => {}
                () = tokio::time::sleep(LOOK_ROUND) => {}
            }
            // A list may have shown that a call needs a person.
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
                // A terminal or socket that was hung up reads as an error; it is an end all the same.
                Ok(_) | Err(_) => break,
            }
        }
        match lines.finish() {
            Some(cut) => self.take(&lines, cut).await,
            None => Ok(()),
        }
    }

    /// Waits until another call could be held. While the client is not read from, its end is looked
    /// for, or calls would stay held and be run for nobody.
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

    /// Ends what is held for a person, because the client that would be answered has left. What waits
    /// for a list of ours goes on: a client may ask, close its end and still read.
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
        // What a request of our own leads to must find somebody who waits for it.
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

    /// Has a held call sent once it may be, and said to the client what becomes of it.
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

    /// Sends on a line that may pass.
    async fn pass_line(self: &Rc<Self>, message: Permitted<'_>, terminated: bool) {
        let frame = Frame::read(message.bytes());
        match frame.body() {
            // A blank line says nothing, and half a line is no message.
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

    /// Sends a message on its way, and waits as long as those behind it must not overtake it.
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

    /// Waits until a request of `length` bytes may wait for its turn.
    async fn enter_queue(&self, length: usize) -> Option<OwnedSemaphorePermit> {
        let cost = (length + MESSAGE_COST_BYTES).min(self.queue_bytes_max);
        self.queue.clone().acquire_many_owned(cost as u32).await.ok()
    }

    /// Takes a request back; true if the server need not be told.
    async fn cancel(self: &Rc<Self>, id: &[u8]) -> bool {
        let Some(call) = self.calls.settle(None, id) else {
            // Its answer has passed already. Only a session has somebody who expects the news.
            return self.session.borrow().version.is_none();
        };
        let older = matches!(*self.transport.borrow(), Transport::Older(_));
        let closes = (call.modern && !older) || call.step() < Step::Sent;
        // Of a batch, others may still be waited for.
        if closes && call.is_over() {
            call.abort();
            self.forget(id);
            return true;
        }
        drop(tokio::time::timeout(CANCEL_PATIENCE, call.accepted()).await);
        false
    }

    /// Ends a stream that the client, which has left, will not end.
    async fn end_subscription(&self, call: &Rc<Call>) {
        call.abort();
        for id in call.unanswered() {
            self.forget(&id);
        }
        self.give_up(call, &Problem::new("the client has left")).await;
    }

    /// Forgets a request that nobody waits for.
    fn forget(&self, id: &[u8]) {
        let bytes = [b"{\"id\":", id, b"}"].concat();
        let (lane, asker) = (self.lane, Side::Client);
        // If the tape has failed, the session is being ended.
        self.station.pass(Event::Dismissed { lane, asker, bytes: Some(&bytes), why: None }).ok();
        self.progress.notify_one();
    }
}
