//! A note before it is owned.

use std::sync::Arc;

use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;

use crate::decide::GateName;
use crate::model::Profile;
use crate::note::{Note, NoteKind};

/// How much of an id or a name is noted: more than is kept, so that secrets can be masked before
/// they are cut.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// What is to be noted about a message.
pub(super) struct Jot<'a> {
    pub(super) at: At,
    pub(super) lane: Lane,
    pub(super) from: Side,
    pub(super) kind: NoteKind,
    pub(super) word: &'static str,
    pub(super) method: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) id: Option<&'a [u8]>,
    pub(super) gate: Option<GateName>,
    pub(super) rule: Option<String>,
    pub(super) policies: Vec<String>,
    pub(super) reason: Option<String>,
    pub(super) forwarded: Option<bool>,
    pub(super) auto_approved: bool,
    pub(super) latency_ns: Option<u64>,
    pub(super) principal: Option<String>,
    pub(super) correlation_id: Option<&'a str>,
    pub(super) traceparent: Option<String>,
}

impl<'a> Jot<'a> {
    /// A note about a message, of which nothing is said yet.
    pub(super) fn new(at: At, lane: Lane, from: Side) -> Self {
        Self {
            at,
            lane,
            from,
            kind: NoteKind::Decision,
            word: "forward",
            method: None,
            name: None,
            id: None,
            gate: None,
            rule: None,
            policies: Vec::new(),
            reason: None,
            forwarded: None,
            auto_approved: false,
            latency_ns: None,
            principal: None,
            correlation_id: None,
            traceparent: None,
        }
    }

    pub(super) fn note(self, policy_version: Option<Arc<str>>, profile: Profile) -> Note {
        Note {
            at: self.at,
            lane: self.lane,
            from: self.from,
            kind: self.kind,
            method: self.method.map(short),
            name: self.name.map(short),
            id: self.id.map(|id| short(&String::from_utf8_lossy(id))),
            word: self.word,
            gate: self.gate,
            rule: self.rule,
            policies: self.policies,
            reason: self.reason,
            policy_version,
            profile,
            forwarded: self.forwarded,
            auto_approved: self.auto_approved,
            latency_ns: self.latency_ns,
            principal: self.principal,
            correlation_id: self.correlation_id.map(str::to_owned),
            traceparent: self.traceparent,
        }
    }
}

fn short(text: &str) -> String {
    let end = text.len().min(TEXT_BYTES_MAX);
    text[..text.floor_char_boundary(end)].to_owned()
}
