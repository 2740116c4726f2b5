//! Reads the client's input line by line, records it, and sends it on in order.

use std::rc::Rc;
use std::time::Duration;

use tapegate_core::frame::{FrameBody, FrameError};
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{HoldsEndedCause, PermittedMessage, RelayEvent};
use tapegate_core::side::Side;
use tokio::sync::OwnedSemaphorePermit;

use super::pending_calls::{BridgeCall, CallKind, CallStep};
use super::problem::ExchangeProblem;
use super::{MESSAGE_COST_BYTES, OutboundBridge, UpstreamTransport};
use crate::http::OutboundBytes;
use crate::http::shared_session::{GateResult, HoldUpdate, SessionStoppedError};
use crate::port::{LineReader, ReceivedLine, StreamPort};
use crate::recorded_session::{Disposition, split_by_side};
use crate::stdio::{CLIENT_LEFT_REASON, HANGUP_CHECK_INTERVAL};

/// How long a message without an answer may delay the messages after it.
const ACCEPT_PATIENCE: Duration = Duration::from_secs(10);
/// How long a first request other than `initialize` may delay the others: it is a probe, and
/// clients treat silence as an answer too.
const PROBE_PATIENCE: Duration = Duration::from_secs(2);
/// How long a cancellation waits for the server to accept the request it cancels: they travel on
/// two connections, and a cancellation that arrives first would be lost.
const CANCEL_PATIENCE: Duration = Duration::from_millis(250);

impl OutboundBridge {
    /// Reads the client's input to its end, then waits for outstanding answers.
    pub(super) async fn serve(self: &Rc<Self>, input: StreamPort) {
        if self.read_all(input).await.is_err() {
            // The tape failed; the task that runs the session notices that and ends it.
            return std::future::pending().await;
        }
        self.set_blocked(true);
        self.shared_session.recorded_session().checkpoint();
        if self.end_holds().await.is_err() {
            return std::future::pending().await;
        }
        // A subscription is never answered, so waiting for it would keep the session open.
        for subscription in self.calls.subscriptions() {
            self.end_subscription(&subscription).await;
        }
        // Requests that no task works on any more are answered when the session ends.
        let unanswered =
            || self.shared_session.recorded_session().unanswered_requests(Side::Client);
        while unanswered() > 0 && self.is_busy() {
            tokio::select! {
                () = self.progress.notified() => {}
                () = tokio::time::sleep(HANGUP_CHECK_INTERVAL) => {}
            }
            // A fetched tool list may have shown that a call needs approval.
            if self.end_holds().await.is_err() {
                return std::future::pending().await;
            }
        }
    }

    async fn read_all(self: &Rc<Self>, input: StreamPort) -> Result<(), SessionStoppedError> {
        let mut input = LineReader::new(input, self.shared_session.message_bytes_max());
        let mut is_over = false;
        while !is_over {
            self.set_blocked(false);
            is_over = !input.read().await;
            self.set_blocked(!is_over);
            loop {
                if !is_over {
                    self.wait_for_hold_capacity(&input).await?;
                }
                let Some(line) = input.next_line(is_over) else { break };
                self.process_line(line).await?;
            }
        }
        Ok(())
    }

    /// Waits until another call may be held. The client is not read from meanwhile, so check
    /// whether it has left; otherwise its calls would stay held, and might run for no one.
    async fn wait_for_hold_capacity(&self, input: &LineReader) -> Result<(), SessionStoppedError> {
        loop {
            tokio::select! {
                biased;
                () = self.shared_session.wait_for_hold_capacity() => return Ok(()),
                () = tokio::time::sleep(HANGUP_CHECK_INTERVAL) => {
                    if input.has_ended() {
                        self.end_holds().await?;
                    }
                }
            }
        }
    }

    /// Ends holds that wait for an approver, because the client they belong to has left. Calls that
    /// wait for a tool list continue: a client may close its output and still read the answers.
    async fn end_holds(&self) -> Result<(), SessionStoppedError> {
        if self.shared_session.recorded_session().held_calls() == 0 {
            return Ok(());
        }
        let turn = self.client_writer.acquire().await;
        let unheld = RelayEvent::HoldsEnded {
            lane: Some(self.lane),
            reason: CLIENT_LEFT_REASON,
            cause: HoldsEndedCause::SessionEnded,
            keeps_lists: true,
        };
        let (to_client, _) = split_by_side(self.shared_session.feed_and_commit(unheld)?);
        // Sending reports progress, and `serve` comes back here on each: without anything to send,
        // it would not wait any more.
        if !to_client.is_empty() {
            self.send_own_to_client(&turn, None, to_client);
        }
        Ok(())
    }

    async fn process_line(
        self: &Rc<Self>,
        line: ReceivedLine<'_>,
    ) -> Result<(), SessionStoppedError> {
        let (lane, from) = (self.lane, Side::Client);
        let (bytes, terminated) = match line {
            ReceivedLine::Line(bytes, terminated) => (bytes, terminated),
            ReceivedLine::Oversize(message) => return self.refuse(None, from, message).await,
        };
        let frame = &self.shared_session.read(bytes);
        let event = RelayEvent::Received { lane, from, frame, terminated };
        let GateResult { disposition, outgoing: said } = self.shared_session.judge(event, from)?;
        let (to_client, to_server) = split_by_side(said);
        if !to_client.is_empty() {
            let turn = self.client_writer.acquire().await;
            self.send_own_to_client(&turn, None, to_client);
        }
        // Register the hold first: our own request may lead to a decision about it.
        if let Disposition::Hold(hold_id) = disposition {
            self.await_hold(hold_id);
        }
        for message in to_server {
            self.send(message).await;
        }
        if let Disposition::Forward(message) = disposition {
            self.forward_line(message, terminated).await;
        }
        Ok(())
    }

    /// Waits for the decision about a held call; then sends the call or answers the client.
    fn await_hold(self: &Rc<Self>, hold_id: HoldId) {
        let bridge = Rc::downgrade(self);
        self.shared_session.listen(self.lane, hold_id, move |update| {
            let Some(bridge) = bridge.upgrade() else { return };
            match update {
                HoldUpdate::Tell(message) => return bridge.client_writer.enqueue(message),
                HoldUpdate::Answer(message) => bridge.client_writer.enqueue(message),
                HoldUpdate::Send(message) => bridge.send_own_to_server(message),
                HoldUpdate::Over => {}
            }
            bridge.progress.notify_one();
        });
    }

    /// Sends a permitted line to the server.
    async fn forward_line(self: &Rc<Self>, message: PermittedMessage<'_>, terminated: bool) {
        let frame = message.frame();
        match frame.body() {
            // Blank lines and incomplete lines are not messages.
            FrameBody::Garbage(FrameError::Empty) => return,
            FrameBody::Garbage(_) if !terminated => return,
            FrameBody::Message(envelope) if envelope.is_method("notifications/cancelled") => {
                if let Some(id) = envelope.request_id
                    && self.cancel(id).await
                {
                    return;
                }
            }
            _ => {}
        }
        let call = BridgeCall::of(&frame);
        self.send_call(call, message).await;
    }

    /// Starts sending a message, and waits while later messages must not overtake it.
    pub(super) async fn send(self: &Rc<Self>, message: PermittedMessage<'_>) {
        let call = BridgeCall::of(&message.frame());
        self.send_call(call, message).await;
    }

    async fn send_call(self: &Rc<Self>, call: Rc<BridgeCall>, message: PermittedMessage<'_>) {
        let message = OutboundBytes::message(message);
        let queue_permit =
            if call.asks { self.enter_queue(message.bytes().len()).await } else { None };
        // Until the transport is known, messages wait for each other: each would probe the server.
        let unsettled = *self.transport.borrow() == UpstreamTransport::Unknown;
        let held =
            (!call.asks || call.kind == CallKind::Initialize || unsettled).then(|| call.hold());
        // Registered before it is sent, because the answer may come at once (invariant 5).
        self.calls.add(&call);
        let task =
            self.spawn(Rc::clone(self).run_exchange(Rc::clone(&call), message, queue_permit));
        call.set_task(task);
        match held {
            Some(held) if call.kind == CallKind::Initialize => drop(held.await),
            Some(held) if call.asks => drop(tokio::time::timeout(PROBE_PATIENCE, held).await),
            Some(held) => drop(tokio::time::timeout(ACCEPT_PATIENCE, held).await),
            None => {}
        }
    }

    /// Waits for queue space for a request of `length` bytes.
    async fn enter_queue(&self, length: usize) -> Option<OwnedSemaphorePermit> {
        // A message of the largest size must fit, or it would wait without end.
        let cost = (length + MESSAGE_COST_BYTES).min(self.queue_bytes_max);
        self.queue.clone().acquire_many_owned(cost as u32).await.ok()
    }

    /// Cancels a request; true if the server need not be told.
    async fn cancel(self: &Rc<Self>, id: &[u8]) -> bool {
        let Some(call) = self.calls.settle(None, id) else {
            // It is answered already. Only a server with a session expects the notification.
            return self.session.borrow().version.is_none();
        };
        let older = matches!(*self.transport.borrow(), UpstreamTransport::Older(_));
        // A message that names its own revision is cancelled by closing its reply.
        let closes = (call.head.modern && !older) || call.step() < CallStep::Sent;
        // Other requests of the same batch may still be pending.
        if closes && call.is_finished() {
            call.abort();
            self.forget_request(id);
            return true;
        }
        drop(tokio::time::timeout(CANCEL_PATIENCE, call.accepted()).await);
        false
    }

    /// Ends a subscription whose client has left.
    async fn end_subscription(&self, call: &Rc<BridgeCall>) {
        call.abort();
        for id in call.unanswered() {
            self.forget_request(&id);
        }
        self.fail_call(call, &ExchangeProblem::new("the client has left")).await;
    }

    /// Forgets a request whose answer is no longer wanted.
    fn forget_request(&self, id: &[u8]) {
        let ids = [id.to_vec()];
        // If the tape has failed, the session is ending.
        self.shared_session.forget_requests((self.lane, Side::Client), Some(&ids)).ok();
        self.progress.notify_one();
    }
}
