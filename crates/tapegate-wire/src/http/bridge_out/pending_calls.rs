//! Messages sent by the client that the server has not finished processing.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use http::HeaderValue;
use tapegate_core::frame::{Frame, same_id};
use tapegate_core::pending::IdKey;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::task::AbortHandle;

use super::super::pending_message::PendingMessage;
use super::upstream_session::MessageHead;

/// How long a reply is still read after its answer has arrived or was cancelled.
const LINGER: Duration = Duration::from_secs(1);

/// The methods that the bridge treats specially.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Opens a session; all other messages wait for its answer.
    Initialize,
    /// After it, the server may send messages on its own.
    Initialized,
    /// Its result determines which arguments are mirrored in headers.
    ToolsList,
    /// A stream that ends when the client disconnects, not with an answer.
    Subscription,
    /// Any other message.
    Other,
}

/// One message in flight, and the answers it waits for.
pub(super) struct BridgeCall {
    pub(super) kind: CallKind,
    /// What its HTTP headers are made of.
    pub(super) head: MessageHead,
    /// Whether it contains requests.
    pub(super) asks: bool,
    /// The session that the reply to it opens.
    pub(super) opens: RefCell<Option<HeaderValue>>,
    /// The raw ids of unanswered requests.
    waiting: RefCell<Vec<Vec<u8>>>,
    step: Cell<CallStep>,
    over: Cell<bool>,
    /// Whether its answer is expected on a stream other than its reply.
    elsewhere: Cell<bool>,
    changed: Notify,
    hold: RefCell<Option<oneshot::Sender<()>>>,
    slot: RefCell<Option<OwnedSemaphorePermit>>,
    task: RefCell<Option<AbortHandle>>,
}

/// How far a message has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallStep {
    /// Waiting for its turn.
    Queued,
    /// Being sent.
    Sent,
    /// The server has begun to reply.
    Accepted,
}

/// The messages in flight, by the ids they wait for.
#[derive(Default)]
pub(super) struct BridgeCalls {
    by_id: RefCell<HashMap<IdKey, VecDeque<Rc<BridgeCall>>>>,
}

impl BridgeCall {
    /// The call that a message makes.
    pub(super) fn of(message: &Frame<'_>) -> Rc<Self> {
        let waiting = PendingMessage::of(message).ids;
        Rc::new(Self {
            kind: call_kind(message),
            head: MessageHead::of(message),
            asks: !waiting.is_empty(),
            opens: RefCell::default(),
            waiting: RefCell::new(waiting),
            step: Cell::new(CallStep::Queued),
            over: Cell::new(false),
            elsewhere: Cell::new(false),
            changed: Notify::new(),
            hold: RefCell::default(),
            slot: RefCell::default(),
            task: RefCell::default(),
        })
    }

    /// How far the message has got.
    pub(super) fn step(&self) -> CallStep {
        self.step.get()
    }

    /// Advances to `step`, never back.
    pub(super) fn advance_to(&self, step: CallStep) {
        self.step.set(self.step.get().max(step));
        self.changed.notify_waiters();
    }

    /// Waits until the server has begun to reply.
    pub(super) async fn accepted(&self) {
        while self.step.get() < CallStep::Accepted {
            self.changed.notified().await;
        }
    }

    /// Whether no answer is awaited any more.
    pub(super) fn is_finished(&self) -> bool {
        self.over.get()
    }

    /// Waits until the rest of the reply is no longer needed.
    pub(super) async fn no_longer_wanted(&self) {
        if !self.asks {
            self.accepted().await;
        }
        while self.asks && !self.over.get() {
            self.changed.notified().await;
        }
        tokio::time::sleep(LINGER).await;
    }

    /// Blocks the messages after this one until [`BridgeCall::release`].
    pub(super) fn hold(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        *self.hold.borrow_mut() = Some(sender);
        receiver
    }

    /// Unblocks the messages after this one.
    pub(super) fn release(&self) {
        self.hold.borrow_mut().take();
    }

    /// Expects the answer on another stream, and keeps its slot until then.
    pub(super) fn wait_on_other_stream(&self, slot: Option<OwnedSemaphorePermit>) {
        self.elsewhere.set(true);
        if !self.is_finished() {
            *self.slot.borrow_mut() = slot;
        }
    }

    /// Sets the task that sends the message.
    pub(super) fn set_task(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }

    /// Cancels the task, which closes the reply.
    pub(super) fn abort(&self) {
        if let Some(task) = self.task.borrow_mut().take() {
            task.abort();
        }
        self.finish();
    }

    /// The raw ids of unanswered requests.
    pub(super) fn unanswered(&self) -> Vec<Vec<u8>> {
        self.waiting.borrow().clone()
    }

    fn waits_for(&self, id: &[u8]) -> bool {
        self.waiting.borrow().iter().any(|waiting| same_id(waiting, id))
    }

    /// Stops waiting for `id`.
    fn settle(&self, id: &[u8]) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(at) = waiting.iter().position(|waiting| same_id(waiting, id)) {
            waiting.swap_remove(at);
        }
        if waiting.is_empty() {
            drop(waiting);
            self.finish();
        }
    }

    fn finish(&self) {
        self.release();
        // Free for other requests before the rest of the reply has been read.
        self.slot.borrow_mut().take();
        self.over.set(true);
        self.changed.notify_waiters();
    }
}

impl BridgeCalls {
    /// Remembers a call.
    pub(super) fn add(&self, call: &Rc<BridgeCall>) {
        let mut by_id = self.by_id.borrow_mut();
        for id in call.waiting.borrow().iter() {
            by_id.entry(IdKey::new(id)).or_default().push_back(Rc::clone(call));
        }
    }

    /// Removes and returns the call that an answer with `id` is for: the one whose reply contained
    /// it, or else the oldest.
    pub(super) fn settle(&self, own: Option<&Rc<BridgeCall>>, id: &[u8]) -> Option<Rc<BridgeCall>> {
        let own = own.filter(|call| call.waits_for(id)).cloned();
        let call = own.or_else(|| self.by_id.borrow().get(&IdKey::new(id))?.front().cloned())?;
        self.remove_id(&call, id);
        call.settle(id);
        Some(call)
    }

    /// Forgets a call that will not be answered.
    pub(super) fn remove(&self, call: &Rc<BridgeCall>) {
        for id in call.unanswered() {
            self.remove_id(call, &id);
        }
        call.finish();
    }

    /// Whether no call waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.borrow().is_empty()
    }

    /// Forgets all calls.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.by_id.borrow_mut());
        all.into_values().flatten().for_each(|call| call.finish());
    }

    /// The raw ids of unanswered requests.
    pub(super) fn unanswered(&self) -> Vec<Vec<u8>> {
        let mut ids = Vec::new();
        for (key, calls) in self.by_id.borrow().iter() {
            let raw = |call: &Rc<BridgeCall>| {
                call.unanswered().into_iter().find(|id| IdKey::new(id) == *key)
            };
            ids.extend(calls.iter().filter_map(raw));
        }
        ids
    }

    /// The subscriptions, which end when the client disconnects.
    pub(super) fn subscriptions(&self) -> Vec<Rc<BridgeCall>> {
        let by_id = self.by_id.borrow();
        by_id
            .values()
            .flatten()
            .filter(|call| call.kind == CallKind::Subscription)
            .cloned()
            .collect()
    }

    /// The calls whose answers were expected on a stream other than their reply.
    pub(super) fn waiting_on_other_stream(&self) -> Vec<Rc<BridgeCall>> {
        let by_id = self.by_id.borrow();
        by_id.values().flatten().filter(|call| call.elsewhere.get()).cloned().collect()
    }

    fn remove_id(&self, call: &Rc<BridgeCall>, id: &[u8]) {
        let mut by_id = self.by_id.borrow_mut();
        let key = IdKey::new(id);
        if let Some(calls) = by_id.get_mut(&key) {
            if let Some(at) = calls.iter().position(|other| Rc::ptr_eq(other, call)) {
                calls.remove(at);
            }
            if calls.is_empty() {
                by_id.remove(&key);
            }
        }
    }
}

fn call_kind(message: &Frame<'_>) -> CallKind {
    let Some(msg) = message.envelope() else { return CallKind::Other };
    match msg.method.map(|method| method.decode()).as_deref() {
        Some("initialize") => CallKind::Initialize,
        Some("notifications/initialized") => CallKind::Initialized,
        Some("tools/list") => CallKind::ToolsList,
        Some("subscriptions/listen") => CallKind::Subscription,
        _ => CallKind::Other,
    }
}
