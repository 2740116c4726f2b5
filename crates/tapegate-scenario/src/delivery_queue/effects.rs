//! Side effects that consist of sending something.

use tapegate_core::frame::{notification_text, request_text};
use tapegate_core::time::Timestamp;

use super::delivery_line::{DeliveryLoad, DeliveryPace, raw};
use super::flood::{MessageFlood, times};
use super::repeated_bytes::RepeatedBytes;
use super::{DeliveryQueue, PendingClose};
use crate::model::ServerEffect;

/// How many side effects may be active at once.
const EFFECTS_MAX: usize = 64;

/// The parameters of a side effect.
#[derive(Debug, Clone, Copy, Default)]
pub struct EffectStart<'a> {
    /// The params of the messages it sends, as JSON.
    pub params: Option<&'a [u8]>,
    /// The request that caused it.
    pub about: Option<&'a [u8]>,
    /// Whether a flood never ends.
    pub endless: bool,
}

impl DeliveryQueue {
    /// Starts a side effect, which [`DeliveryQueue::run`] carries out; on failure, why it is skipped.
    pub fn start(
        &mut self,
        at: Timestamp,
        effect: &ServerEffect,
        how: EffectStart<'_>,
    ) -> Result<(), &'static str> {
        if self.left {
            return Err("the client has disconnected");
        }
        // A trigger may fire with every request.
        if self.active_effects() >= EFFECTS_MAX {
            return Err("too many side effects are running");
        }
        match effect {
            ServerEffect::NotificationFlood { per_second, duration_ns, method, .. } => {
                // Computed up front, so the number is the same however slow the client reads.
                let times = (!how.endless).then(|| times(*per_second, *duration_ns));
                self.flood(at, message(None, method, how.params), Some(*per_second), times, how);
            }
            ServerEffect::DuplicateRequestIds { count, id, method, .. } => {
                let message = message(Some(id), method, how.params);
                self.flood(at, message, None, Some(*count as u64), how);
            }
            ServerEffect::BatchAmplify { count, method, .. } => {
                let last = message(None, method, how.params);
                let others = [&last[..], b","].concat();
                let batch = RepeatedBytes::default().followed_by(b"[".to_vec(), 1);
                let batch = batch
                    .followed_by(others, count.saturating_sub(1))
                    .followed_by(last, 1.min(*count));
                self.wait(
                    raw(at, batch.followed_by(b"]".to_vec(), 1), DeliveryPace::FULL, true),
                    None,
                    None,
                );
            }
            ServerEffect::PipeDeadlock { .. } if self.streams => {
                // Over HTTP, each side has buffers and streams of its own, so nothing would block.
                return Err("pipe_deadlock needs a pipe; HTTP has none");
            }
            ServerEffect::PipeDeadlock { bytes } => {
                self.wait(raw(at, padding_message(*bytes), DeliveryPace::FULL, true), None, None);
            }
            ServerEffect::CloseConnection { graceful, delay_ns } => {
                let (due_ns, graceful) = (at.mono_ns.saturating_add(*delay_ns), *graceful);
                self.leaving.push(PendingClose {
                    due_ns,
                    graceful,
                    about: how.about.map(Into::into),
                });
            }
        }
        Ok(())
    }

    fn flood(
        &mut self,
        at: Timestamp,
        message: Vec<u8>,
        per_second: Option<u32>,
        times: Option<u64>,
        how: EffectStart<'_>,
    ) {
        // A bridge that parses requests with duplicate ids would drop all but one as errors.
        let raw = self.streams && per_second.is_none();
        let (message, about) = (message.into(), how.about.map(Into::into));
        let (from_ns, next) = (at.mono_ns, 0);
        let flood = MessageFlood { message, about, from_ns, per_second, times, next, raw };
        self.backlog += flood.bytes();
        self.floods.push(flood);
    }

    fn active_effects(&self) -> usize {
        // A raw line without a ticket is not an answer, so an effect sends it.
        let is_effect = |line: &&super::DeliveryLine| {
            line.delivery_id.is_none() && matches!(line.load, DeliveryLoad::Raw(_))
        };
        self.floods.len() + self.leaving.len() + self.lines.iter().filter(is_effect).count()
    }
}

/// Writes a request or a notification.
fn message(id: Option<&str>, method: &str, params: Option<&[u8]>) -> Vec<u8> {
    match id {
        Some(id) => request_text(id.as_bytes(), method, params),
        None => notification_text(method, params),
    }
}

/// A message of exactly this many bytes, its line end included. It is harmless to a client that
/// reads it; one that does not read blocks the pipe.
fn padding_message(bytes: usize) -> RepeatedBytes {
    let head = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"debug\",\"data\":\"";
    let tail = b"\"}}";
    let filled = bytes.saturating_sub(head.len() + tail.len() + 1);
    RepeatedBytes::of(&[head]).followed_by(b"A".to_vec(), filled).followed_by(tail.to_vec(), 1)
}
