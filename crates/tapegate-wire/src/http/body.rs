//! Bodies of replies, and reading bodies in bounded memory.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame as BodyFrame, Incoming, SizeHint};
use tapegate_core::lines::{Drain, Oversize};

/// Why the body of a reply broke off.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BrokenBody(pub String);

/// A stream of pieces that makes a body.
pub trait Pieces {
    /// The next piece, as [`Body::poll_frame`] would give it.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenBody>>>;
}

/// The body of a reply.
pub enum ReplyBody {
    /// All of it at once.
    Full(Option<Bytes>),
    /// Piece by piece.
    Stream(Box<dyn Pieces>),
}

impl ReplyBody {
    /// A body that is known.
    pub fn full(bytes: Bytes) -> Self {
        Self::Full(Some(bytes).filter(|bytes| !bytes.is_empty()))
    }

    /// A body that comes piece by piece.
    pub fn stream(pieces: impl Pieces + 'static) -> Self {
        Self::Stream(Box::new(pieces))
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BrokenBody;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, BrokenBody>>> {
        match self.get_mut() {
            Self::Full(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(BodyFrame::data(bytes)))),
            Self::Stream(pieces) => {
                pieces.poll_piece(cx).map(|piece| piece.map(|piece| piece.map(BodyFrame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

/// A body that was read to its end.
pub(crate) enum Collected {
    /// It fits.
    Whole(Bytes),
    /// It is over the limit, and was drained.
    TooLarge(Oversize),
}

/// Reads a body to its end, keeping at most `bytes_max` bytes of it.
pub(crate) async fn collect(
    mut body: Incoming,
    bytes_max: usize,
) -> Result<Collected, hyper::Error> {
    let mut whole = BytesMut::new();
    let mut first: Option<Bytes> = None;
    let mut over: Option<Drain> = None;
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame?.into_data() else { continue };
        if let Some(drain) = &mut over {
            drain.feed(&piece);
            continue;
        }
        // Most bodies come in one piece, which then need not be copied.
        if whole.is_empty() && first.is_none() && piece.len() <= bytes_max {
            first = Some(piece);
            continue;
        }
        if let Some(first) = first.take() {
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&piece);
        if whole.len() > bytes_max {
            over.get_or_insert_default().feed(&whole);
            whole = BytesMut::new();
        }
    }
    Ok(match over {
        Some(drain) => Collected::TooLarge(drain.finish()),
        None => Collected::Whole(first.unwrap_or_else(|| whole.freeze())),
    })
}
