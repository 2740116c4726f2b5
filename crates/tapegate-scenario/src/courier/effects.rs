//! Side effects that consist of sending something.

use tapegate_core::json;
use tapegate_core::time::At;

use super::flood::{Flood, times};
use super::line::{Load, Pace, raw};
use super::parcel::Parcel;
use super::{Courier, Leaving};
use crate::model::Effect;

/// How many side effects may be active at once.
const EFFECTS_MAX: usize = 64;

/// The parameters of a side effect.
#[derive(Debug, Clone, Copy, Default)]
pub struct Start<'a> {
    /// The params of the messages it sends, as JSON.
    pub params: Option<&'a [u8]>,
    /// The request that caused it.
    pub about: Option<&'a [u8]>,
    /// Whether a flood never ends.
    pub endless: bool,
}

impl Courier {
    /// Starts a side effect, which [`Courier::run`] carries out; on failure, why it is skipped.
    pub fn start(&mut self, at: At, effect: &Effect, how: Start<'_>) -> Result<(), &'static str> {
        if self.left {
            return Err("the client has disconnected");
        }
        if self.under_way() >= EFFECTS_MAX {
            return Err("too many side effects are running");
        }
        match effect {
            Effect::NotificationFlood { per_second, duration_ns, method, .. } => {
                let times = (!how.endless).then(|| times(*per_second, *duration_ns));
                self.flood(at, message(None, method, how.params), Some(*per_second), times, how);
            }
            Effect::DuplicateRequestIds { count, id, method, .. } => {
                let message = message(Some(id), method, how.params);
                self.flood(at, message, None, Some(*count as u64), how);
            }
            Effect::BatchAmplify { count, method, .. } => {
                let last = message(None, method, how.params);
                let others = [&last[..], b","].concat();
                let batch = Parcel::default().and(b"[".to_vec(), 1);
                let batch = batch.and(others, count.saturating_sub(1)).and(last, 1.min(*count));
                self.wait(raw(at, batch.and(b"]".to_vec(), 1), Pace::FULL, true), None, None);
            }
            Effect::PipeDeadlock { .. } if self.streams => {
                return Err("pipe_deadlock needs a pipe; HTTP has none");
            }
            Effect::PipeDeadlock { bytes } => {
                self.wait(raw(at, filling(*bytes), Pace::FULL, true), None, None);
            }
            Effect::CloseConnection { graceful, delay_ns } => {
                let (due_ns, graceful) = (at.mono_ns.saturating_add(*delay_ns), *graceful);
                self.leaving.push(Leaving { due_ns, graceful, about: how.about.map(Into::into) });
            }
        }
        Ok(())
    }

    fn flood(
        &mut self,
        at: At,
        message: Vec<u8>,
        per_second: Option<u32>,
        times: Option<u64>,
        how: Start<'_>,
    ) {
        // A bridge that parses requests with duplicate ids would drop all but one as errors.
        let raw = self.streams && per_second.is_none();
        let (message, about) = (message.into(), how.about.map(Into::into));
        let (from_ns, next) = (at.mono_ns, 0);
        let flood = Flood { message, about, from_ns, per_second, times, next, raw };
        self.backlog += flood.bytes();
        self.floods.push(flood);
    }

    fn under_way(&self) -> usize {
        let is_effect =
            |line: &&super::Line| line.ticket.is_none() && matches!(line.load, Load::Raw(_));
        self.floods.len() + self.leaving.len() + self.lines.iter().filter(is_effect).count()
    }
}

/// Writes a request or a notification.
fn message(id: Option<&str>, method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut text = b"{\"jsonrpc\":\"2.0\",".to_vec();
    if let Some(id) = id {
        text.extend_from_slice(b"\"id\":");
        text.extend_from_slice(id.as_bytes());
        text.push(b',');
    }
    text.extend_from_slice(b"\"method\":");
    json::write_str(&mut text, method);
    if let Some(params) = params {
        text.extend_from_slice(b",\"params\":");
        text.extend_from_slice(params);
    }
    text.push(b'}');
    text
}

/// A message of exactly this many bytes, its line end included. It is harmless to a client that
/// reads it; one that does not read blocks the pipe.
fn filling(bytes: usize) -> Parcel {
    let head = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":\"";
    let tail = b"\"}}";
    let filled = bytes.saturating_sub(head.len() + tail.len() + 1);
    Parcel::of(&[head]).and(b"A".to_vec(), filled).and(tail.to_vec(), 1)
}
