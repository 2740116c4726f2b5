//! Response bodies, and reading bodies in bounded memory.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame as BodyFrame, Incoming, SizeHint};
use tapegate_core::lines::{OversizeDrain, OversizeMessage};
use tokio::time::Instant;

use super::OutboundBytes;

/// How often an idle stream of events sends a keep-alive comment.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Why a response body broke off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenBody(pub String);

/// A stream of pieces that makes up a body.
pub trait PieceStream<P = OutboundBytes> {
    /// The next piece, as [`Body::poll_frame`] would return it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<P, BrokenBody>>>;
}

/// A response body. A session's body consists of [`OutboundBytes`] pieces; an API that carries no MCP
/// messages may use [`Bytes`].
pub enum ReplyBody<P = OutboundBytes> {
    /// Complete from the start.
    Full(Option<P>),
    /// Piece by piece.
    Stream(Box<dyn PieceStream<P>>),
}

/// A piece of a body.
pub trait Chunk: AsRef<[u8]> + Into<Bytes> + Unpin + 'static {}

impl<P: AsRef<[u8]> + Into<Bytes> + Unpin + 'static> Chunk for P {}

impl<P: Chunk> ReplyBody<P> {
    /// A complete body.
    pub fn from_whole(whole: P) -> Self {
        Self::Full(Some(whole).filter(|whole| !whole.as_ref().is_empty()))
    }

    /// A body sent piece by piece.
    pub fn stream(pieces: impl PieceStream<P> + 'static) -> Self {
        Self::Stream(Box::new(pieces))
    }

    /// The next piece, for code that sends the body by other means than hyper.
    pub(crate) async fn next_piece(&mut self) -> Option<Result<P, BrokenBody>> {
        poll_fn(|cx| self.poll_piece(cx)).await
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<P, BrokenBody>>> {
        match self {
            Self::Full(whole) => Poll::Ready(whole.take().map(Ok)),
            Self::Stream(pieces) => pieces.poll_piece(cx),
        }
    }
}

impl ReplyBody {
    /// The complete body.
    pub(crate) async fn collect(mut self) -> OutboundBytes {
        let mut pieces = Vec::new();
        while let Some(Ok(piece)) = self.next_piece().await {
            pieces.push(piece);
        }
        OutboundBytes::concat(&pieces)
    }
}

impl<P: Chunk> Body for ReplyBody<P> {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BrokenBody>>> {
        let data = |piece: P| BodyFrame::data(piece.into());
        self.get_mut().poll_piece(cx).map(|piece| piece.map(|piece| piece.map(data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.as_ref().len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// How much of an oversized body is read beyond the limit to identify its message.
const DRAIN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How long that may take.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
/// How long a body is read whose declared length is far too large: its first bytes identify it.
const GLANCE_PATIENCE: Duration = Duration::from_millis(500);
/// How many bytes of it are read.
const GLANCE_BYTES_MAX: u64 = 64 * 1024;
/// A request or response body, read within limits.
pub enum CollectedBody {
    /// It fits.
    Whole(Bytes),
    /// Over the limit; the rest was drained, or left unread where that would take too much.
    TooLarge(OversizeMessage),
}

/// How much of an oversized body is read, and until when.
struct BodyBounds {
    bytes_max: u64,
    until: Instant,
}

impl BodyBounds {
    /// The bounds for a body with the `declared` length, if it has one.
    fn new(declared: Option<u64>, limit: usize) -> Self {
        let bytes_max = DRAIN_BYTES_MAX.saturating_add(limit as u64);
        match declared {
            Some(declared) if declared > bytes_max => {
                Self { bytes_max: GLANCE_BYTES_MAX, until: Instant::now() + GLANCE_PATIENCE }
            }
            _ => Self { bytes_max, until: Instant::now() + DRAIN_PATIENCE },
        }
    }
}

/// Reads a response body to its end, keeping at most `bytes_max` bytes of it. An oversized body is
/// drained within bounds of size and time.
pub(crate) async fn collect(
    body: &mut Incoming,
    bytes_max: usize,
) -> Result<CollectedBody, hyper::Error> {
    let declared = body.size_hint().exact();
    if declared.is_some_and(|declared| declared > bytes_max as u64) {
        return drain_declared(body, bytes_max).await;
    }
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        // Most bodies arrive in one piece, which then need not be copied.
        if whole.is_empty() && first.is_none() && piece.len() <= bytes_max {
            first = Some(piece);
            continue;
        }
        if let Some(first) = first.take() {
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
        if whole.len() > bytes_max {
            let mut over = OversizeDrain::default();
            over.feed(&whole);
            drop(whole);
            return drain_undeclared(body, over, bytes_max).await;
        }
    }
    Ok(CollectedBody::Whole(first.unwrap_or_else(|| whole.freeze())))
}

/// Reads a body whose declared length is over the limit, within bounds.
pub(super) async fn drain_declared(
    body: &mut Incoming,
    bytes_max: usize,
) -> Result<CollectedBody, hyper::Error> {
    let declared = body.size_hint().exact();
    drain(body, OversizeDrain::default(), BodyBounds::new(declared, bytes_max)).await
}

/// Reads the rest of a body that has turned out to be over the limit, within bounds.
pub(super) async fn drain_undeclared(
    body: &mut Incoming,
    over: OversizeDrain,
    bytes_max: usize,
) -> Result<CollectedBody, hyper::Error> {
    drain(body, over, BodyBounds::new(None, bytes_max)).await
}

/// Reads an oversized body within bounds.
async fn drain(
    body: &mut Incoming,
    mut over: OversizeDrain,
    bounds: BodyBounds,
) -> Result<CollectedBody, hyper::Error> {
    while over.bytes_total() < bounds.bytes_max {
        let Ok(next) = tokio::time::timeout_at(bounds.until, body.frame()).await else { break };
        let Some(frame) = next else { break };
        if let Ok(piece) = frame?.into_data() {
            over.feed(&piece);
        }
    }
    let mut message = over.into_oversize();
    // Count the unread bytes too, if the length was declared.
    message.bytes_total += body.size_hint().exact().unwrap_or(0);
    Ok(CollectedBody::TooLarge(message))
}
