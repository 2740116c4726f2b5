//! What the client has sent and the server has not dealt with.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

use http::HeaderValue;
use tapegate_core::frame::{self, Body, Frame, Kind, same_id};
use tapegate_core::pending::IdKey;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::task::AbortHandle;

use super::mirror;

/// How long a reply is still read after its answer came or was taken back.
const LINGER: Duration = Duration::from_secs(1);

/// The methods that make a difference to the bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Opens a session; everything else waits for its answer.
    Initialize,
    /// After it, the server may speak first.
    Initialized,
    /// Its result says which arguments are mirrored in headers.
    ToolsList,
    /// A stream that ends when the client leaves, not by an answer.
    Subscription,
    /// Any other message.
    Other,
}

/// One message on its way, and the answers it waits for.
pub(super) struct Call {
    pub(super) sort: Sort,
    /// Whether it says itself which protocol revision it belongs to: closing its reply cancels it.
    pub(super) modern: bool,
    /// Whether an answer was due at the start.
    pub(super) asks: bool,
    /// The session that the reply to it opens.
    pub(super) opens: RefCell<Option<HeaderValue>>,
    /// The raw ids that are not answered.
    waiting: RefCell<Vec<Vec<u8>>>,
    step: Cell<Step>,
    over: Cell<bool>,
    /// Whether its answer is to come on another stream than its reply.
    elsewhere: Cell<bool>,
    changed: Notify,
    hold: RefCell<Option<oneshot::Sender<()>>>,
    slot: RefCell<Option<OwnedSemaphorePermit>>,
    task: RefCell<Option<AbortHandle>>,
}

/// How far a message has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// It waits for its turn.
    Queued,
    /// It is being sent.
    Sent,
    /// The server has begun to reply.
    Accepted,
}

/// The messages on their way, by the ids they wait for.
#[derive(Default)]
pub(super) struct Calls {
    by_id: RefCell<HashMap<IdKey, VecDeque<Rc<Call>>>>,
}

impl Call {
    /// The call that a message makes.
    pub(super) fn of(message: &Frame<'_>) -> Rc<Self> {
        let elements = match message.body() {
            Body::Batch => frame::elements(message.bytes()),
            _ => vec![message.clone()],
        };
        let requests = elements.iter().filter_map(Frame::envelope);
        let requests = requests.filter(|said| said.kind() == Kind::Request);
        let waiting: Vec<Vec<u8>> =
            requests.filter_map(|said| said.id.map(<[u8]>::to_vec)).collect();
        Rc::new(Self {
            sort: sort(message),
            modern: mirror::revision(message).is_some(),
            asks: !waiting.is_empty(),
            opens: RefCell::default(),
            waiting: RefCell::new(waiting),
            step: Cell::new(Step::Queued),
            over: Cell::new(false),
            elsewhere: Cell::new(false),
            changed: Notify::new(),
            hold: RefCell::default(),
            slot: RefCell::default(),
            task: RefCell::default(),
        })
    }

    /// How far the message has come.
    pub(super) fn step(&self) -> Step {
        self.step.get()
    }

    /// Goes on to `step`, never back.
    pub(super) fn reach(&self, step: Step) {
        self.step.set(self.step.get().max(step));
        self.changed.notify_waiters();
    }

    /// Waits until the server has begun to reply.
    pub(super) async fn accepted(&self) {
        while self.step.get() < Step::Accepted {
            self.changed.notified().await;
        }
    }

    /// Whether nobody waits for an answer any more.
    pub(super) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Waits until nobody cares for the rest of the reply.
    pub(super) async fn lapsed(&self) {
        if !self.asks {
            self.accepted().await;
        }
        while self.asks && !self.over.get() {
            self.changed.notified().await;
        }
        tokio::time::sleep(LINGER).await;
    }

    /// Has the messages behind this one wait until [`Call::release`].
    pub(super) fn hold(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        *self.hold.borrow_mut() = Some(sender);
        receiver
    }

    /// Lets the messages behind this one go on.
    pub(super) fn release(&self) {
        self.hold.borrow_mut().take();
    }

    /// Waits for an answer on another stream, and keeps its slot until then.
    pub(super) fn wait_elsewhere(&self, slot: Option<OwnedSemaphorePermit>) {
        self.elsewhere.set(true);
        if !self.is_over() {
            *self.slot.borrow_mut() = slot;
        }
    }

    /// The task that carries the message.
    pub(super) fn carried_by(&self, task: AbortHandle) {
        *self.task.borrow_mut() = Some(task);
    }

    /// Closes the reply.
    pub(super) fn abort(&self) {
        if let Some(task) = self.task.borrow_mut().take() {
            task.abort();
        }
        self.end();
    }

    /// The raw ids that are not answered.
    pub(super) fn unanswered(&self) -> Vec<Vec<u8>> {
        self.waiting.borrow().clone()
    }

    fn waits_for(&self, id: &[u8]) -> bool {
        self.waiting.borrow().iter().any(|waiting| same_id(waiting, id))
    }

    /// Waits no longer for `id`.
    fn settle(&self, id: &[u8]) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(at) = waiting.iter().position(|waiting| same_id(waiting, id)) {
            waiting.swap_remove(at);
        }
        if waiting.is_empty() {
            drop(waiting);
            self.end();
        }
    }

    fn end(&self) {
        self.release();
        self.slot.borrow_mut().take();
        self.over.set(true);
        self.changed.notify_waiters();
    }
}

impl Calls {
    /// Remembers a call.
    pub(super) fn add(&self, call: &Rc<Call>) {
        let mut by_id = self.by_id.borrow_mut();
        for id in call.waiting.borrow().iter() {
            by_id.entry(IdKey::new(id)).or_default().push_back(Rc::clone(call));
        }
    }

    /// The call that an answer with `id` is for, which waits for it no longer: the one whose
    /// reply it came in, or else the oldest.
    pub(super) fn settle(&self, own: Option<&Rc<Call>>, id: &[u8]) -> Option<Rc<Call>> {
        let own = own.filter(|call| call.waits_for(id)).cloned();
        let call = own.or_else(|| self.by_id.borrow().get(&IdKey::new(id))?.front().cloned())?;
        self.forget(&call, id);
        call.settle(id);
        Some(call)
    }

    /// Forgets a call that will not be answered.
    pub(super) fn drop_call(&self, call: &Rc<Call>) {
        for id in call.unanswered() {
            self.forget(call, &id);
        }
        call.end();
    }

    /// Whether no call waits for an answer.
    pub(super) fn is_empty(&self) -> bool {
        self.by_id.borrow().is_empty()
    }

    /// Forgets all calls.
    pub(super) fn clear(&self) {
        let all = std::mem::take(&mut *self.by_id.borrow_mut());
        all.into_values().flatten().for_each(|call| call.end());
    }

    /// The raw ids that are not answered.
    pub(super) fn unanswered(&self) -> Vec<Vec<u8>> {
        let mut ids = Vec::new();
        for (key, calls) in self.by_id.borrow().iter() {
            let raw =
                |call: &Rc<Call>| call.unanswered().into_iter().find(|id| IdKey::new(id) == *key);
            ids.extend(calls.iter().filter_map(raw));
        }
        ids
    }

    /// The streams that end when the client leaves.
    pub(super) fn subscriptions(&self) -> Vec<Rc<Call>> {
        let by_id = self.by_id.borrow();
        by_id.values().flatten().filter(|call| call.sort == Sort::Subscription).cloned().collect()
    }

    /// Those whose answers were to come on a stream that is not their own.
    pub(super) fn elsewhere(&self) -> Vec<Rc<Call>> {
        let by_id = self.by_id.borrow();
        by_id.values().flatten().filter(|call| call.elsewhere.get()).cloned().collect()
    }

    fn forget(&self, call: &Rc<Call>, id: &[u8]) {
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

fn sort(message: &Frame<'_>) -> Sort {
    let Some(said) = message.envelope() else { return Sort::Other };
    match said.method.map(|method| method.decode()).as_deref() {
        Some("initialize") => Sort::Initialize,
        Some("notifications/initialized") => Sort::Initialized,
        Some("tools/list") => Sort::ToolsList,
        Some("subscriptions/listen") => Sort::Subscription,
        _ => Sort::Other,
    }
}
