//! Bodies of requests: read whole, in bounded memory and in time.
//!
//! All bodies of a process share one budget. A body keeps its part of it for as long as its bytes are used,
//! not only while it comes. A body whose length is told waits for all of its part before it is read, so no
//! two bodies wait for each other; one of unknown length takes its part step by step and waits for nothing.
//! A body that stalls is given up, and its part is free again. Small bodies need no part: ordinary messages
//! are taken, however many large ones are under way. A body of more than half the budget takes none of it:
//! such bodies take turns, so that what is in memory is the budget and one message.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use tapegate_core::lines::Drain;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::body::{self, Collected};

/// What all bodies take together, but for one that is larger than [`SHARED_BYTES_MAX`].
const TOTAL_BYTES_MAX: usize = 128 * 1024 * 1024;
/// The largest body that takes its part of the budget: two of them fit.
const SHARED_BYTES_MAX: usize = TOTAL_BYTES_MAX / 2;
/// The largest body that needs no part of the budget.
const SMALL_BYTES_MAX: usize = 64 * 1024;
/// How long a body waits for its part.
const WAIT: Duration = Duration::from_secs(10);
/// A body that brings less than [`PACE_BYTES_MIN`] in this time is given up.
const PACE: Duration = Duration::from_secs(30);
const PACE_BYTES_MIN: usize = 64 * 1024;
/// The budget is counted in units of as many bytes.
const UNIT_BYTES: usize = 1024;
/// How long a client that was refused is read from, so that it gets to read why.
const LINGER: Duration = Duration::from_secs(2);

/// Memory for the bodies of requests.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    units: Arc<Semaphore>,
    /// The turn of a body that is larger than `shared_bytes_max`.
    turn: Arc<Semaphore>,
    shared_bytes_max: usize,
    wait: Duration,
    pace: Duration,
}

/// Why the body of a request is not there.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// The client broke off.
    #[error("the body broke off: {0}")]
    Broken(#[from] hyper::Error),
    /// It was given up.
    #[error("{}", .0.message())]
    Unread(UnreadBody),
}

/// Why a body was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnreadBody {
    /// Other bodies take up all the memory that there is for them.
    NoRoom,
    /// It came too slowly.
    TooSlow,
}

impl From<UnreadBody> for IntakeError {
    fn from(unread: UnreadBody) -> Self {
        Self::Unread(unread)
    }
}

impl UnreadBody {
    /// The status of the reply.
    pub fn status(self) -> u16 {
        match self {
            Self::NoRoom => 503,
            Self::TooSlow => 408,
        }
    }

    /// What the client is told.
    pub fn message(self) -> &'static str {
        match self {
            Self::NoRoom => {
                "too many large requests are under way; there is no memory for this one. Try again later"
            }
            Self::TooSlow => "the body of the request comes too slowly",
        }
    }
}

/// How many seconds a client should wait that found no room.
pub const RETRY_AFTER_S: u64 = 5;

/// A body together with its part of the budget.
struct PaidBody {
    bytes: BytesMut,
    _part: OwnedSemaphorePermit,
}

impl AsRef<[u8]> for PaidBody {
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
    /// The usual budget.
    pub fn new() -> Self {
        let shared_bytes_max = SHARED_BYTES_MAX;
        Self { shared_bytes_max, ..Self::bounded(TOTAL_BYTES_MAX, WAIT, PACE) }
    }

    /// The same budget, but bodies of more than `shared_bytes_max` take turns.
    pub fn sharing(self, shared_bytes_max: usize) -> Self {
        Self { shared_bytes_max, ..self }
    }

    /// A budget of `bytes_max` for which bodies wait as long as `wait`, and that stalled bodies give back
    /// after `pace`.
    pub fn bounded(bytes_max: usize, wait: Duration, pace: Duration) -> Self {
        let units = bytes_max.div_ceil(UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        let (units, turn) = (Arc::new(Semaphore::new(units)), Arc::new(Semaphore::new(1)));
        Self { units, turn, shared_bytes_max: usize::MAX, wait, pace }
    }

    /// Waits for the part of a body of this length.
    async fn part(&self, bytes: usize) -> Result<OwnedSemaphorePermit, UnreadBody> {
        let (semaphore, permits) = self.permits(bytes)?;
        let part = Arc::clone(semaphore).acquire_many_owned(permits);
        // It is never closed.
        let part = tokio::time::timeout(self.wait, part).await.ok().and_then(Result::ok);
        part.ok_or(UnreadBody::NoRoom)
    }

    /// The part of a body of this length, if it is free.
    fn free_part(&self, bytes: usize) -> Result<OwnedSemaphorePermit, UnreadBody> {
        let (semaphore, permits) = self.permits(bytes)?;
        Arc::clone(semaphore).try_acquire_many_owned(permits).map_err(|_| UnreadBody::NoRoom)
    }

    /// What a body of this length needs.
    fn permits(&self, bytes: usize) -> Result<(&Arc<Semaphore>, u32), UnreadBody> {
        if bytes > self.shared_bytes_max {
            return Ok((&self.turn, 1));
        }
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).map_err(|_| UnreadBody::NoRoom)?;
        Ok((&self.units, units))
    }
}

/// Reads the body of a request. What is left of one that is refused is read a little longer beside the
/// reply, for a client that is cut off while it writes may never read why. Must run inside a `LocalSet`.
pub async fn collect_request(
    mut body: Incoming,
    bytes_max: usize,
    budget: &BodyBudget,
) -> Result<Collected, IntakeError> {
    let collected = collect(&mut body, bytes_max, budget).await;
    if matches!(collected, Ok(Collected::TooLarge(_)) | Err(IntakeError::Unread(_))) {
        linger(body);
    }
    collected
}

/// Reads a body that nobody wants a little longer, beside the reply. Must run inside a `LocalSet`.
pub fn linger(mut body: Incoming) {
    tokio::task::spawn_local(async move {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        tokio::time::timeout(LINGER, rest).await.ok();
    });
}

/// Reads a body to its end. One over the limit is drained, but neither for ever nor without end.
async fn collect(
    body: &mut Incoming,
    bytes_max: usize,
    budget: &BodyBudget,
) -> Result<Collected, IntakeError> {
    let told = body.size_hint().exact().map(|told| usize::try_from(told).unwrap_or(usize::MAX));
    if told.is_some_and(|told| told > bytes_max) {
        return Ok(body::drain_told(body, bytes_max).await?);
    }
    let (first, whole, part) = (None, BytesMut::new(), None);
    let mut gathered = Gathered { budget, first, whole, part, paid_bytes: 0 };
    if let Some(told) = told.filter(|told| *told > SMALL_BYTES_MAX) {
        gathered.begin(told, budget.part(told).await?);
    }
    let mut pace = Pace::new(budget.pace);
    while let Ok(next) = pace.next(body).await {
        let Some(frame) = next else { return Ok(Collected::Whole(gathered.finish())) };
        let Ok(piece) = frame?.into_data() else { continue };
        if !pace.keeps_up(piece.len()) {
            break;
        }
        if gathered.len() + piece.len() > bytes_max {
            let mut over = Drain::default();
            over.feed(gathered.bytes());
            over.feed(&piece);
            drop(gathered);
            return Ok(body::drain_untold(body, over, bytes_max).await?);
        }
        gathered.push(piece)?;
    }
    Err(UnreadBody::TooSlow.into())
}

/// What has come of a body.
struct Gathered<'b> {
    budget: &'b BodyBudget,
    /// Most bodies come in one piece, which then need not be copied.
    first: Option<Bytes>,
    whole: BytesMut,
    part: Option<OwnedSemaphorePermit>,
    /// How long the body may get before it needs a larger part.
    paid_bytes: usize,
}

impl Gathered<'_> {
    /// Makes room for a body of known length.
    fn begin(&mut self, bytes: usize, part: OwnedSemaphorePermit) {
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
            self.pay_for(bytes)?;
        }
        if let Some(first) = self.first.take() {
            self.whole.extend_from_slice(&first);
        }
        self.whole.extend_from_slice(&piece);
        Ok(())
    }

    /// Takes more of the budget if need be. Memory is doubled when it grows, and so is the part.
    fn pay_for(&mut self, bytes: usize) -> Result<(), UnreadBody> {
        if bytes <= self.paid_bytes {
            return Ok(());
        }
        let shared_bytes_max = self.budget.shared_bytes_max;
        let wanted = bytes.max((self.paid_bytes * 2).min(shared_bytes_max));
        if wanted > shared_bytes_max {
            // It has its turn instead of a part.
            self.part = Some(self.budget.free_part(wanted)?);
            self.paid_bytes = usize::MAX;
            return Ok(());
        }
        let more = self.budget.free_part(wanted - self.paid_bytes)?;
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
            (None, Some(part)) => Bytes::from_owner(PaidBody { bytes: self.whole, _part: part }),
        }
    }
}

/// How fast a body comes.
struct Pace {
    window: Duration,
    until: Instant,
    bytes: usize,
}

/// A body that does not come.
struct Stalled;

impl Pace {
    fn new(window: Duration) -> Self {
        Self { window, until: Instant::now() + window, bytes: 0 }
    }

    /// The next piece of a body.
    async fn next(
        &mut self,
        body: &mut Incoming,
    ) -> Result<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>, Stalled> {
        loop {
            match tokio::time::timeout_at(self.until, body.frame()).await {
                Ok(next) => return Ok(next),
                Err(_) if self.keeps_up(0) => {}
                Err(_) => return Err(Stalled),
            }
        }
    }

    /// Counts what has come; false if it is too little for the time that it took.
    fn keeps_up(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        if Instant::now() < self.until {
            return true;
        }
        let enough = self.bytes >= PACE_BYTES_MIN;
        *self = Self::new(self.window);
        enough
    }
}
