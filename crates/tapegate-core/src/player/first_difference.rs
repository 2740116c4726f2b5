//! What differs first between a live request and the recorded one that it was expected to be, in the
//! words of an error. The client that made the request reads them, and may be a model.

use std::io;

use super::tape::{LiveRequest, PlayerTape};
use crate::json::JsonLocation;
use crate::json::diff::{DiffOptions, ValueChange, diff};

/// Longer values are cut.
const VALUE_CHARS_MAX: usize = 80;
/// Longer places are cut.
const PLACE_CHARS_MAX: usize = 200;

/// Names the first difference between the params of a recorded request and those of a live one;
/// `None` if there is none that can be told.
pub(super) fn first_difference(
    tape: &mut PlayerTape,
    request_number: u32,
    request: &LiveRequest<'_>,
) -> io::Result<Option<String>> {
    let number = tape.entry_of(request_number).number;
    let (recorded, live) = (tape.canonical(request_number)?, tape.signer.canonical(request.text));
    let terms = DiffOptions { root: JsonLocation::member("params"), ignored: &[], listed_max: 1 };
    // Both are canonical JSON, so a fault can only be one of ours.
    let Ok(found) = diff(&recorded, &live, &terms) else { return Ok(None) };
    let Some(first) = found.listed.first() else { return Ok(None) };
    let place = truncate(&first.location.to_string(), PLACE_CHARS_MAX);
    let value = |raw: &[u8]| truncate(&String::from_utf8_lossy(raw), VALUE_CHARS_MAX);
    let what = match first.change {
        ValueChange::Added(new) => format!("{place} is {} and was not recorded", value(new)),
        ValueChange::Removed(old) => {
            format!("{place} is missing and was recorded as {}", value(old))
        }
        ValueChange::Value { old, new } | ValueChange::Kind { old, new } => {
            format!("{place} is {} and was recorded as {}", value(new), value(old))
        }
    };
    let more = match found.more {
        0 => String::new(),
        1 => "; 1 more difference".to_owned(),
        more => format!("; {more} more differences"),
    };
    Ok(Some(format!("its arguments differ from those of #{number} on the tape: {what}{more}")))
}

fn truncate(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
