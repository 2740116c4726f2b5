//! Formats a client's reply that differs from the recorded one.

use tapegate_core::json::JsonLocation;
use tapegate_core::json::diff::{DiffOptions, JsonDifferences, diff};
use tapegate_core::player::{ChangedReply, ReplyChange};

use super::palette::Palette;
use super::{diff as diff_view, visible_text};

/// How many differences are shown.
const DIFFERENCES_MAX: usize = 8;
const METHOD_CHARS_MAX: usize = 80;
const ERROR_CHARS_MAX: usize = 300;

/// What the user can do about it.
pub(crate) const HINT: &str = "check why the client answers differently, or record the session again; or pass --on-unmatched warn";

/// The complete text: several terminated lines.
pub(crate) fn text(reply: &ChangedReply, palette: Palette) -> String {
    let what = palette.bold(&subject(reply));
    let (number, message) = (reply.number, reply.change.as_str());
    let signs = if is_incomparable(reply) { " (- recorded, + answered)" } else { "" };
    format!("{what} of #{number}: {message}{signs}\n{}", details(reply, palette))
}

/// The differences: several terminated lines.
pub(crate) fn details(reply: &ChangedReply, palette: Palette) -> String {
    match reply.change {
        ReplyChange::ErrorForResult => {
            format!("    {}\n", visible_text::value(&reply.live, ERROR_CHARS_MAX))
        }
        _ if is_incomparable(reply) => {
            let found = differences(reply, DIFFERENCES_MAX).unwrap_or_default();
            diff_view::render(&found, palette, "    ")
        }
        _ => String::new(),
    }
}

/// The server's request.
pub(crate) fn subject(reply: &ChangedReply) -> String {
    visible_text::inline(&reply.method, METHOD_CHARS_MAX)
}

/// The differences between the recorded and the live reply, if both are results or both errors.
pub(crate) fn differences(reply: &ChangedReply, listed_max: usize) -> Option<JsonDifferences<'_>> {
    let root = match reply.change {
        ReplyChange::OtherResult => "result",
        ReplyChange::OtherError => "error",
        _ => return None,
    };
    let terms = DiffOptions { root: JsonLocation::member(root), ignored: &[], listed_max };
    diff(&reply.recorded, &reply.live, &terms).ok()
}

fn is_incomparable(reply: &ChangedReply) -> bool {
    matches!(reply.change, ReplyChange::OtherResult | ReplyChange::OtherError)
}
