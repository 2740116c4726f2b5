//! The held calls of a session, and how those who wait for them are notified.
//!
//! The relay decides about held calls; this register knows whom to tell. Clients on pipes and
//! exchanges that react at once register a listener; an exchange that is a task of its own awaits
//! [`HoldUpdates`].

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, MessageKind, find_envelope};
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tokio::sync::mpsc;

use super::SharedSession;
use crate::recorded_session::{OutgoingMessage, next_hold_outcome, sleep_until_due};

/// The held calls, by sequence number: the id of a hold may change.
#[derive(Default)]
pub(super) struct HoldWaiters {
    count: u64,
    waiting: BTreeMap<u64, HeldCall>,
}

/// A held call, and whom to tell about it.
struct HeldCall {
    hold_id: HoldId,
    lane: Lane,
    listener: HoldListener,
}

/// Called with updates about a held call.
type HoldListener = Rc<dyn Fn(HoldUpdate)>;

/// An update about a held call.
#[derive(Debug)]
pub(crate) enum HoldUpdate {
    /// The call may be sent, in this form.
    Send(PermittedMessage<'static>),
    /// The call is answered with this.
    Answer(PermittedMessage<'static>),
    /// A message for the caller while the call stays held.
    Tell(PermittedMessage<'static>),
    /// The call was withdrawn; there is no answer.
    Over,
}

/// A registered waiter for a held call. Dropping it withdraws the call.
pub(crate) struct HoldWaiter {
    shared_session: Rc<SharedSession>,
    number: u64,
}

impl Drop for HoldWaiter {
    fn drop(&mut self) {
        // The borrow ends here: feeding the event notifies waiters, which borrows again.
        let waiter = self.shared_session.waiters.borrow_mut().waiting.remove(&self.number);
        if let Some(HeldCall { hold_id, .. }) = waiter {
            // If the tape has failed, the session ends anyway.
            self.shared_session.feed_and_commit(RelayEvent::HoldWithdrawn { hold_id }).ok();
            self.shared_session.unheld.notify_waiters();
        }
    }
}

/// The updates about a held call. Dropping them withdraws the call.
pub(crate) struct HoldUpdates {
    updates: mpsc::UnboundedReceiver<HoldUpdate>,
    _waiter: HoldWaiter,
}

impl HoldUpdates {
    /// The next update. After the last one, the hold is always over.
    pub(crate) async fn next(&mut self) -> HoldUpdate {
        self.updates.recv().await.unwrap_or(HoldUpdate::Over)
    }

    /// Waits for the final update, skipping messages that the caller cannot be sent.
    pub(crate) async fn last(&mut self) -> HoldUpdate {
        loop {
            match self.next().await {
                HoldUpdate::Tell(_) => {}
                update => return update,
            }
        }
    }

    /// Ends the updates, and returns the message if the call was released meanwhile.
    pub(crate) fn close(&mut self) -> Option<PermittedMessage<'static>> {
        // Closed first: no update may arrive after the last one that is read here.
        self.updates.close();
        std::iter::from_fn(|| self.updates.try_recv().ok()).find_map(|update| match update {
            HoldUpdate::Send(message) => Some(message),
            HoldUpdate::Answer(_) | HoldUpdate::Tell(_) | HoldUpdate::Over => None,
        })
    }
}

impl SharedSession {
    /// Registers `listener` for updates on a held call, whose caller stays as long as the session.
    /// Any update but [`HoldUpdate::Tell`] is the last. Returns the number of the waiter.
    pub(crate) fn listen(
        &self,
        lane: Lane,
        hold_id: HoldId,
        listener: impl Fn(HoldUpdate) + 'static,
    ) -> u64 {
        let mut waiters = self.waiters.borrow_mut();
        waiters.count += 1;
        let number = waiters.count;
        let listener = Rc::new(listener);
        waiters.waiting.insert(number, HeldCall { hold_id, lane, listener });
        self.held.notify_one();
        number
    }

    /// The same for a caller that may leave earlier: the call is withdrawn when the waiter is dropped.
    pub(crate) fn wait(
        self: &Rc<Self>,
        lane: Lane,
        hold_id: HoldId,
        listener: impl Fn(HoldUpdate) + 'static,
    ) -> HoldWaiter {
        let number = self.listen(lane, hold_id, listener);
        HoldWaiter { shared_session: Rc::clone(self), number }
    }

    /// The same for a caller that awaits the updates.
    pub(crate) fn hold_updates(self: &Rc<Self>, lane: Lane, hold_id: HoldId) -> HoldUpdates {
        let (sender, updates) = mpsc::unbounded_channel();
        let waiter = self.wait(lane, hold_id, move |update| drop(sender.send(update)));
        HoldUpdates { updates, _waiter: waiter }
    }

    /// The lanes of a session in which someone waits for a held call.
    pub(crate) fn held_lanes(&self, session: u32) -> Vec<Lane> {
        let waiters = self.waiters.borrow();
        let lanes = waiters.waiting.values().map(|held| held.lane);
        lanes.filter(|lane| lane.session == session).collect()
    }

    /// If `frame` contains a request, waits until another call of this session may be held. Other
    /// sessions are not affected.
    pub(crate) async fn wait_for_hold_capacity_in(&self, lane: Lane, frame: &Frame<'_>) {
        while self.recording.borrow().is_full_for(lane) && contains_request(frame) {
            self.unheld.notified().await;
        }
    }

    /// Waits until another call may be held.
    pub(crate) async fn wait_for_hold_capacity(&self) {
        while self.recording.borrow().is_full() {
            self.unheld.notified().await;
        }
    }

    /// Processes decisions and timeouts of held calls; never returns. `deliver` gets the messages
    /// that no one waits for who is registered here.
    pub(crate) async fn run_holds(&self, deliver: impl Fn(OutgoingMessage<'static>)) {
        if !self.is_governed() {
            return std::future::pending().await;
        }
        let mut hold_outcomes = self.recording.borrow_mut().take_hold_outcomes();
        loop {
            let due = self.recording.borrow().next_hold_deadline();
            let event = tokio::select! {
                (hold_id, outcome) = next_hold_outcome(&mut hold_outcomes) => {
                    RelayEvent::HoldSettled { hold_id, outcome }
                }
                () = sleep_until_due(due) => RelayEvent::Tick,
                // A new call may have an earlier deadline, so the wait starts again.
                () = self.held.notified() => continue,
            };
            match self.feed_and_commit(event) {
                Ok(outgoing) => outgoing.into_iter().for_each(&deliver),
                // The tape has failed; the task that runs the session notices that and ends it.
                Err(_) => return std::future::pending().await,
            }
        }
    }

    /// Notifies the waiters of held calls; returns the messages that are for no waiter.
    pub(super) fn notify_waiters<'e>(
        &self,
        outgoing: Vec<OutgoingMessage<'e>>,
    ) -> Vec<OutgoingMessage<'e>> {
        if self.waiters.borrow().waiting.is_empty() {
            return outgoing;
        }
        let mut rest = Vec::new();
        let mut updates = Vec::new();
        // The borrows end before listeners run, because a listener may feed the session again.
        {
            let mut session = self.recording.borrow_mut();
            let mut waiters = self.waiters.borrow_mut();
            // Renamed first: messages and checks below use the new id.
            for (was, now) in session.take_renamed_holds() {
                waiters.rename(was, now);
            }
            for outgoing in outgoing {
                let hold_id = outgoing.message.hold_id();
                let Some(number) = hold_id.and_then(|hold_id| waiters.number(hold_id)) else {
                    rest.push(outgoing);
                    continue;
                };
                let going_on = hold_id.is_some_and(|hold_id| session.is_held(hold_id));
                updates.extend(waiters.update_for(number, outgoing, going_on));
            }
            let over = waiters.waiting.extract_if(.., |_, held| !session.is_held(held.hold_id));
            updates.extend(over.map(|(_, held)| (held.listener, HoldUpdate::Over)));
        }
        if !updates.is_empty() {
            self.unheld.notify_waiters();
        }
        updates.into_iter().for_each(|(listener, update)| listener(update));
        rest
    }
}

/// Whether a message or batch contains a request.
fn contains_request(frame: &Frame<'_>) -> bool {
    let is_request = |envelope: &Envelope<'_>| envelope.kind() == MessageKind::Request;
    find_envelope(frame, |envelope| is_request(envelope).then_some(())).is_some()
}

impl HoldWaiters {
    fn number(&self, hold_id: HoldId) -> Option<u64> {
        self.waiting.iter().find(|(_, held)| held.hold_id == hold_id).map(|(number, _)| *number)
    }

    fn rename(&mut self, was: HoldId, now: HoldId) {
        let renamed = self.waiting.values_mut().filter(|held| held.hold_id == was);
        renamed.for_each(|held| held.hold_id = now);
    }

    /// Turns a message into an update for a waiter; the last update removes the waiter.
    fn update_for(
        &mut self,
        number: u64,
        outgoing: OutgoingMessage<'_>,
        going_on: bool,
    ) -> Option<(HoldListener, HoldUpdate)> {
        let OutgoingMessage { to, message, .. } = outgoing;
        let message = message.into_owned();
        // A hold that is over may still owe its caller the cancellation of a question.
        let is_answer = message.frame().envelope().is_none_or(|msg| msg.method.is_none());
        if going_on || (to == Side::Client && !is_answer) {
            let listener = Rc::clone(&self.waiting.get(&number)?.listener);
            return Some((listener, HoldUpdate::Tell(message)));
        }
        let listener = self.waiting.remove(&number)?.listener;
        debug_assert!(message.is_own() || to == Side::Server);
        let own = message.is_own();
        Some((listener, if own { HoldUpdate::Answer(message) } else { HoldUpdate::Send(message) }))
    }
}

#[cfg(test)]
mod tests {
    use tapegate_core::relay::OwnMessage;

    use super::*;
    use crate::clock::Clock;
    use crate::recorded_session::RecordedSession;

    #[test]
    fn a_released_call_is_found_behind_progress_that_no_one_has_read() {
        let session = SharedSession::new(RecordedSession::without_recording(Clock::start()), 1000);
        let mut updates = session.hold_updates(Lane::ONLY, HoldId(1));
        let listener = Rc::clone(&session.waiters.borrow().waiting[&1].listener);
        let message = |id: &[u8]| PermittedMessage::from(OwnMessage::cancelled(id, "test"));
        listener(HoldUpdate::Tell(message(b"1")));
        listener(HoldUpdate::Send(message(b"2")));
        assert_eq!(updates.close().unwrap().bytes(), message(b"2").bytes());
        assert!(updates.close().is_none());
    }
}
