//! Exchanges that wait for held calls, and how they are notified.

use std::collections::BTreeMap;
use std::rc::Rc;

use tapegate_core::frame::{Envelope, Frame, MessageKind, find_envelope};
use tapegate_core::gate::HoldId;
use tapegate_core::relay::{PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};

use super::SharedSession;
use crate::recorded_session::{OutgoingMessage, next_hold_outcome, sleep_until_due};

/// The waiting exchanges, by sequence number: the ticket of a held call may change.
#[derive(Default)]
pub(super) struct HoldWaiters {
    count: u64,
    waiting: BTreeMap<u64, (HoldId, HoldListener)>,
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
        if let Some((hold_id, _)) = waiter {
            // If the tape has failed, the session ends anyway.
            self.shared_session.feed_and_commit(RelayEvent::Withdrawn { hold_id }).ok();
            self.shared_session.unheld.notify_waiters();
        }
    }
}

impl SharedSession {
    /// Registers `listener` for updates on a held call, whose caller stays as long as the session.
    /// Any update but [`HoldUpdate::Tell`] is the last. Returns the number of the waiter.
    pub(crate) fn listen(&self, hold_id: HoldId, listener: impl Fn(HoldUpdate) + 'static) -> u64 {
        let mut waiters = self.waiters.borrow_mut();
        waiters.count += 1;
        let number = waiters.count;
        waiters.waiting.insert(number, (hold_id, Rc::new(listener)));
        self.held.notify_one();
        number
    }

    /// The same for a caller that may leave earlier: the call is withdrawn when the waiter is dropped.
    pub(crate) fn wait(
        self: &Rc<Self>,
        hold_id: HoldId,
        listener: impl Fn(HoldUpdate) + 'static,
    ) -> HoldWaiter {
        let number = self.listen(hold_id, listener);
        HoldWaiter { shared_session: Rc::clone(self), number }
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

    /// Processes decisions and timeouts of held calls; never returns.
    pub(crate) async fn run_holds(&self) {
        if !self.is_governed() {
            return std::future::pending().await;
        }
        let mut hold_outcomes = self.recording.borrow_mut().take_hold_outcomes();
        loop {
            let due = self.recording.borrow().next_hold_deadline();
            let event = tokio::select! {
                (hold_id, outcome) = next_hold_outcome(&mut hold_outcomes) => {
                    RelayEvent::Settled { hold_id, outcome }
                }
                () = sleep_until_due(due) => RelayEvent::Tick,
                // A new call may have an earlier deadline, so the wait starts again.
                () = self.held.notified() => continue,
            };
            if self.feed_and_commit(event).is_err() {
                // The tape has failed; the task that runs the session notices that and ends it.
                return std::future::pending().await;
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
            let over = waiters.waiting.extract_if(.., |_, (hold_id, _)| !session.is_held(*hold_id));
            updates.extend(over.map(|(_, (_, listener))| (listener, HoldUpdate::Over)));
        }
        if !updates.is_empty() {
            self.unheld.notify_waiters();
        }
        updates.into_iter().for_each(|(listener, word)| listener(word));
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
        self.waiting.iter().find(|(_, one)| one.0 == hold_id).map(|(number, _)| *number)
    }

    fn rename(&mut self, was: HoldId, now: HoldId) {
        self.waiting.values_mut().filter(|one| one.0 == was).for_each(|one| one.0 = now);
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
        if going_on {
            return Some((Rc::clone(&self.waiting.get(&number)?.1), HoldUpdate::Tell(message)));
        }
        let (_, listener) = self.waiting.remove(&number)?;
        debug_assert!(message.is_own() || to == Side::Server);
        let own = message.is_own();
        Some((listener, if own { HoldUpdate::Answer(message) } else { HoldUpdate::Send(message) }))
    }
}
