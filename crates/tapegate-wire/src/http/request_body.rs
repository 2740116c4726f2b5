//! Request bodies: read whole, within bounds of memory and time.
//!
//! All bodies of a process share one memory budget. A body keeps its share for as long as its bytes
//! are used, not only while it is read. A body with a declared length waits for its whole share
//! before it is read, so no two bodies deadlock; one of unknown length takes its share step by step
//! without waiting. A stalled body is dropped, which frees its share. Small bodies need no share,
//! so ordinary messages are accepted however many large ones are in progress. Bodies of more than
//! half the budget take none of it but take turns, so memory is bounded by the budget and one
//! message.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tapegate_core::lines::OversizeDrain;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::body::{self, CollectedBody};

/// The total for all bodies, except one that is larger than [`SHARED_BYTES_MAX`].
const TOTAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The largest body that is charged to the budget: two of them fit.
const SHARED_BYTES_MAX: usize = TOTAL_BYTES_MAX / 2;
/// The largest body that is not charged to the budget.
const SMALL_BYTES_MAX: usize = 64 * 1024;
/// How long a body waits for its share.
const WAIT: Duration = Duration::from_secs(10);
/// A body that delivers less than [`PACE_BYTES_MIN`] in this time is dropped.
const PACE: Duration = Duration::from_secs(30);
const PACE_BYTES_MIN: usize = 64 * 1024;
/// The unit in which the budget is counted.
const UNIT_BYTES: usize = 1024;
/// How long a refused client is still read from, so that it gets to read the reply.
const LINGER: Duration = Duration::from_secs(2);

/// The memory budget for request bodies.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    units: Arc<Semaphore>,
    /// Held by the one body that may be larger than `shared_bytes_max`.
    turn: Arc<Semaphore>,
    shared_bytes_max: usize,
    wait: Duration,
    pace: Duration,
}

/// Why a request body is not available.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The client broke off.
    #[error("the body ended early: {0}")]
    Broken(#[from] hyper::Error),
    /// We stopped reading it.
    #[error("{}", .0.message())]
    Unread(UnreadBody),
}

/// Why we stopped reading a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadBody {
    /// Other bodies use all of the budget.
    NoRoom,
    /// It arrived too slowly.
    TooSlow,
}

impl From<UnreadBody> for IntakeError {
    fn from(unread: UnreadBody) -> Self {
        Self::Unread(unread)
    }
}

impl UnreadBody {
    /// The HTTP status of the reply.
    pub fn status(self) -> u16 {
        match self {
            Self::NoRoom => 503,
            Self::TooSlow => 408,
        }
    }

    /// The message for the client.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoRoom => {
                "too many large requests are in progress and memory is short. Try again later"
            }
            Self::TooSlow => "the request body arrives too slowly",
        }
    }
}

/// How many seconds a client should wait before it retries after [`UnreadBody::NoRoom`].
pub const RETRY_AFTER_S: u64 = 5;

/// A body together with its share of the budget.
struct BudgetedBody {
    bytes: BytesMut,
    _part: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for BudgetedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self::new()
    }
}

impl BodyBudget {
    /// The default budget.
    pub fn new() -> Self {
        let shared_bytes_max = SHARED_BYTES_MAX;
        Self { shared_bytes_max, ..Self::with_limits(TOTAL_BYTES_MAX, WAIT, PACE) }
    }

    /// Makes bodies of more than `shared_bytes_max` take turns instead of being charged.
    pub fn with_shared_limit(self, shared_bytes_max: usize) -> Self {
        Self { shared_bytes_max, ..self }
    }

    /// A budget of `bytes_max`. Bodies wait up to `wait` for their share, and lose it after
    /// stalling for `pace`.
    pub fn with_limits(bytes_max: usize, wait: Duration, pace: Duration) -> Self {
        let units = bytes_max.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        let (units, turn) = (Arc::new(Semaphore::new(units)), Arc::new(Semaphore::new(1)));
        Self { units, turn, shared_bytes_max: usize::MAX, wait, pace }
    }

    /// Waits for the share of a body of this length.
    async fn acquire(&self, bytes: usize) -> Result<OwnedSemaphorePermit, UnreadBody> {
        let (semaphore, permits) = self.permits(bytes)?;
        let part = Arc::clone(semaphore).acquire_many_owned(permits);
        // The semaphore is never closed.
        let part = tokio::time::timeout(self.wait, part).await.ok().and_then(Result::ok);
        part.ok_or(UnreadBody::NoRoom)
    }

    /// The share of a body of this length, if it is available now.
    fn try_acquire(&self, bytes: usize) -> Result<OwnedSemaphorePermit, UnreadBody> {
        let (semaphore, permits) = self.permits(bytes)?;
        Arc::clone(semaphore).try_acquire_many_owned(permits).map_err(|_| UnreadBody::NoRoom)
    }

    /// The semaphore and permits that a body of this length needs.
    fn permits(&self, bytes: usize) -> Result<(&Arc<Semaphore>, u32), UnreadBody> {
        if bytes > self.shared_bytes_max {
            return Ok((&self.turn, 1));
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).map_err(|_| UnreadBody::NoRoom)?;
        Ok((&self.units, units))
    }
}

/// Reads a request body. The rest of a refused one is read a little longer alongside the reply,
/// because a client that is cut off while writing may never read it. Must run inside a `LocalSet`.
pub async fn collect_request(
    mut body: Incoming,
    bytes_max: usize,
    budget: &BodyBudget,
) -> Result<CollectedBody, IntakeError> {
    let collected = collect(&mut body, bytes_max, budget).await;
    if matches!(collected, Ok(CollectedBody::TooLarge(_)) | Err(IntakeError::Unread(_))) {
        drain_in_background(body);
    }
    collected
}

/// Reads and discards the rest of a body alongside the reply. Must run inside a `LocalSet`.
pub fn drain_in_background(mut body: Incoming) {
    tokio::task::spawn_local(async move {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::time::timeout(LINGER, rest).await.ok();
    });
}

/// Reads a body to its end. One over the limit is drained within bounds of size and time.
async fn collect(
    body: &mut Incoming,
    bytes_max: usize,
    budget: &BodyBudget,
) -> Result<CollectedBody, IntakeError> {
    let declared =
        body.size_hint().exact().map(|declared| usize::try_from(declared).unwrap_or(usize::MAX));
    if declared.is_some_and(|declared| declared > bytes_max) {
        return Ok(body::drain_declared(body, bytes_max).await?);
    }
    let (first, whole, part) = (None, BytesMut::new(), None);
    let mut gathered = GatheredBody { budget, first, whole, part, paid_bytes: 0 };
    if let Some(declared) = declared.filter(|declared| *declared > SMALL_BYTES_MAX) {
        gathered.reserve(declared, budget.acquire(declared).await?);
    }
    let mut pace = BodyPace::new(budget.pace);
    while let Ok(next) = pace.next(body).await {
        let Some(frame) = next else { return Ok(CollectedBody::Whole(gathered.finish())) };
        let Ok(piece) = frame?.into_data() else { continue };
        if !pace.is_fast_enough(piece.len()) {
            break;
        }
        if gathered.len() + piece.len() > bytes_max {
            let mut over = OversizeDrain::default();
            over.feed(gathered.bytes());
            over.feed(&piece);
            drop(gathered);
            return Ok(body::drain_undeclared(body, over, bytes_max).await?);
        }
        gathered.push(piece)?;
    }
    Err(UnreadBody::TooSlow.into())
}

/// The part of a body that has arrived.
struct GatheredBody<'b> {
    budget: &'b BodyBudget,
    /// Most bodies arrive in one piece, which then need not be copied.
    first: Option<Bytes>,
    whole: BytesMut,
    part: Option<OwnedSemaphorePermit>,
    /// How long the body may get before it needs a larger share.
    paid_bytes: usize,
}

impl GatheredBody<'_> {
    /// Reserves memory for a body of known length.
    fn reserve(&mut self, bytes: usize, part: OwnedSemaphorePermit) {
        (self.part, self.paid_bytes) = (Some(part), bytes);
        self.whole.reserve(bytes);
    }

    fn bytes(&self) -> &[u8] {
        self.first.as_deref().unwrap_or(&self.whole)
    }

    fn len(&self) -> usize {
        self.bytes().len()
    }

    fn push(&mut self, piece: Bytes) -> Result<(), UnreadBody> {
        let bytes = self.len() + piece.len();
        if self.part.is_none() && bytes <= SMALL_BYTES_MAX && self.len() == 0 {
            self.first = Some(piece);
            return Ok(());
        }
        if bytes > SMALL_BYTES_MAX {
            self.acquire_more(bytes)?;
        }
        if let Some(first) = self.first.take() {
            self.whole.extend_from_slice(&first);
        }
        self.whole.extend_from_slice(&piece);
        Ok(())
    }

    /// Enlarges the share if necessary. It doubles, as the buffer does when it grows.
    fn acquire_more(&mut self, bytes: usize) -> Result<(), UnreadBody> {
        if bytes <= self.paid_bytes {
            return Ok(());
        }
        let shared_bytes_max = self.budget.shared_bytes_max;
        let wanted = bytes.max((self.paid_bytes * 2).min(shared_bytes_max));
        if wanted > shared_bytes_max {
            // It takes its turn instead of a share.
            self.part = Some(self.budget.try_acquire(wanted)?);
            self.paid_bytes = usize::MAX;
            return Ok(());
        }
        let more = self.budget.try_acquire(wanted - self.paid_bytes)?;
        self.paid_bytes = wanted;
        match &mut self.part {
            Some(part) => part.merge(more),
            None => self.part = Some(more),
        }
        Ok(())
    }

    fn finish(self) -> Bytes {
        match (self.first, self.part) {
            (Some(first), _) => first,
            (None, None) => self.whole.freeze(),
            (None, Some(part)) => {
                Bytes::from_owner(BudgetedBody { bytes: self.whole, _part: part })
            }
        }
    }
}

/// Measures how fast a body arrives.
struct BodyPace {
    window: Duration,
    until: Instant,
    bytes: usize,
}

struct StalledBody;

impl BodyPace {
    fn new(window: Duration) -> Self {
        Self { window, until: Instant::now() + window, bytes: 0 }
    }

    /// The next piece of a body.
    async fn next(
        &mut self,
        body: &mut Incoming,
    ) -> Result<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>, StalledBody> {
        loop {
            match tokio::time::timeout_at(self.until, body.frame()).await {
                Ok(next) => return Ok(next),
                Err(_) if self.is_fast_enough(0) => {}
                Err(_) => return Err(StalledBody),
            }
        }
    }

    /// Counts received bytes; false if they are too few for the elapsed time.
    fn is_fast_enough(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        if Instant::now() < self.until {
            return true;
        }
        let enough = self.bytes >= PACE_BYTES_MIN;
        *self = Self::new(self.window);
        enough
    }
}
