//! The members that are specific to each kind of note.

use std::borrow::Cow;

use serde_json::{Value, json};
use tapegate_core::gate::HoldEnd;
use tapegate_core::hex;
use tapegate_policy::note::NoteKind;
use tapegate_policy::redact::Redactor;

use super::masked;

/// How many characters of a malformed message are kept.
const RAW_CHARS_MAX: usize = 1024;
/// How many characters of the name of a hidden item are kept.
const NAME_CHARS_MAX: usize = 200;

/// The beginning of a malformed message. Bytes that are not UTF-8 are written as hexadecimal digits
/// or, where secrets are masked, with the invalid ones replaced.
pub(super) fn message_beginning(
    bytes: &[u8],
    masking: Option<&Redactor>,
) -> (&'static str, String) {
    let text = match (std::str::from_utf8(bytes), masking) {
        (Ok(text), _) => Cow::Borrowed(text),
        // The message may be cut in the middle of a character.
        (Err(error), _) if error.error_len().is_none() => String::from_utf8_lossy(bytes),
        (Err(_), Some(_)) => String::from_utf8_lossy(bytes),
        (Err(_), None) => {
            let beginning = &bytes[..bytes.len().min(RAW_CHARS_MAX / 2)];
            return ("raw_hex", hex::encode(beginning));
        }
    };
    // Redact before truncating: a truncated secret no longer matches.
    let text = masked(masking, Some(&text)).unwrap_or_default();
    ("raw", text.chars().take(RAW_CHARS_MAX).collect())
}

/// The members that are specific to a note.
pub(super) fn details(kind: &NoteKind, masking: Option<&Redactor>) -> Value {
    match kind {
        NoteKind::Decision | NoteKind::ServerRequest | NoteKind::Drift { .. } | NoteKind::Http => {
            Value::Null
        }
        NoteKind::Framing { faults } => {
            json!({ "faults": faults.iter().map(|fault| fault.label()).collect::<Vec<_>>() })
        }
        NoteKind::Oversized { bytes_total } => {
            json!({ "faults": ["message_too_large"], "bytes": bytes_total })
        }
        NoteKind::Filter { kept, hidden, hidden_total, .. } => {
            // Redact before truncating: a truncated secret no longer matches.
            let short = |name: &String| -> String {
                let name = masked(masking, Some(name)).unwrap_or_default();
                name.chars().take(NAME_CHARS_MAX).collect()
            };
            let names: Vec<String> = hidden.iter().map(short).collect();
            json!({ "kept": kept, "hidden": hidden_total, "hidden_names": names })
        }
        NoteKind::OrphanReply { count } => json!({ "orphan": "reply", "count": count }),
        NoteKind::OrphanRequest { waited_ms, count } => {
            json!({ "orphan": "request", "waited_ms": waited_ms, "count": count })
        }
        NoteKind::Redaction { count } => json!({ "masked": count }),
        NoteKind::HoldOpened { workflow, timeout_ms, .. } => {
            json!({ "workflow": workflow, "timeout_ms": timeout_ms })
        }
        NoteKind::HoldApproved { .. } => json!({ "outcome": "approved" }),
        NoteKind::HoldEnded { how, workflow, .. } => {
            let outcome = match how {
                HoldEnd::TimedOut => "expired",
                HoldEnd::Cancelled => "cancelled",
                HoldEnd::Abandoned => "abandoned",
                HoldEnd::Asked => "asked",
                HoldEnd::Unanswered => "unanswered",
                HoldEnd::Closed => "closed",
            };
            json!({ "workflow": workflow, "outcome": outcome })
        }
    }
}
