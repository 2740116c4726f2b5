//! The members that are specific to each kind of note.

use std::borrow::Cow;

use tapegate_core::gate::{HoldEnd, HoldId};
use tapegate_policy::note::NoteKind;
use tapegate_policy::redact::Redactor;

use super::{masked, quoted};

/// How many characters of a malformed message are kept.
const RAW_CHARS_MAX: usize = 1024;
/// How many characters of the name of a hidden item are kept.
const NAME_CHARS_MAX: usize = 200;

/// The beginning of a malformed message. Bytes that are not UTF-8 are written as hexadecimal digits
/// or, where secrets are masked, with the invalid ones replaced.
pub(super) fn message_beginning(bytes: &[u8], masking: Option<&Redactor>) -> String {
    let text = match (std::str::from_utf8(bytes), masking) {
        (Ok(text), _) => Cow::Borrowed(text),
        // The message may be cut in the middle of a character.
        (Err(error), _) if error.error_len().is_none() => String::from_utf8_lossy(bytes),
        (Err(_), Some(_)) => String::from_utf8_lossy(bytes),
        (Err(_), None) => {
            let hex: String =
                bytes.iter().take(RAW_CHARS_MAX / 2).map(|byte| format!("{byte:02x}")).collect();
            return format!("\"raw_hex\":\"{hex}\"");
        }
    };
    // Redact before truncating: a truncated secret no longer matches.
    let text = masked(masking, Some(&text)).unwrap_or_default();
    let short: String = text.chars().take(RAW_CHARS_MAX).collect();
    format!("\"raw\":{}", quoted(&short))
}

/// The specific members of a note, its hold, and who decided.
pub(super) fn details<'k>(
    kind: &'k NoteKind,
    masking: Option<&Redactor>,
) -> (String, Option<HoldId>, Option<&'k str>) {
    match kind {
        NoteKind::Decision | NoteKind::ServerRequest => (String::new(), None, None),
        NoteKind::Framing { faults } => {
            let types: Vec<String> =
                faults.iter().map(|fault| format!("\"{}\"", fault.label())).collect();
            (format!("\"faults\":[{}]", types.join(",")), None, None)
        }
        NoteKind::Oversized { bytes_total } => {
            let extra = format!("\"faults\":[\"message_too_large\"],\"bytes\":{bytes_total}");
            (extra, None, None)
        }
        NoteKind::Filter { kept, hidden, hidden_total: count, .. } => {
            // Redact before truncating: a truncated secret no longer matches.
            let short = |name: &String| {
                let name = masked(masking, Some(name)).unwrap_or_default();
                name.chars().take(NAME_CHARS_MAX).collect()
            };
            let names: Vec<String> =
                hidden.iter().map(short).map(|name: String| quoted(&name)).collect();
            let names = names.join(",");
            let extra = format!("\"kept\":{kept},\"hidden\":{count},\"hidden_names\":[{names}]");
            (extra, None, None)
        }
        NoteKind::Drift { .. } | NoteKind::Http => (String::new(), None, None),
        NoteKind::OrphanReply { count } => {
            (format!("\"orphan\":\"reply\",\"count\":{count}"), None, None)
        }
        NoteKind::OrphanRequest { waited_ms, count } => {
            let extra =
                format!("\"orphan\":\"request\",\"waited_ms\":{waited_ms},\"count\":{count}");
            (extra, None, None)
        }
        NoteKind::Redaction { count } => (format!("\"masked\":{count}"), None, None),
        NoteKind::HoldOpened { workflow, timeout_ms, hold_id: ticket } => {
            let workflow = quoted(workflow);
            let extra = format!("\"workflow\":{workflow},\"timeout_ms\":{timeout_ms}");
            (extra, Some(*ticket), None)
        }
        NoteKind::HoldApproved { hold_id: ticket, by } => {
            ("\"outcome\":\"approved\"".to_owned(), Some(*ticket), Some(by))
        }
        NoteKind::HoldEnded { hold_id: ticket, how, workflow, decided_by } => {
            let outcome = match how {
                HoldEnd::TimedOut => "expired",
                HoldEnd::Cancelled => "cancelled",
                HoldEnd::Abandoned => "abandoned",
                HoldEnd::Unanswered => "unanswered",
                HoldEnd::Closed => "closed",
            };
            let extra = format!("\"workflow\":{},\"outcome\":\"{outcome}\"", quoted(workflow));
            (extra, Some(*ticket), decided_by.as_deref())
        }
    }
}
