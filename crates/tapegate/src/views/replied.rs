//! An answer of the client that is not the recorded one, in words.

use tapegate_core::json::Place;
use tapegate_core::json::diff::{Differences, Terms, diff};
use tapegate_core::player::{ChangedReply, ReplyChange};

use super::palette::Palette;
use super::{diff as diff_view, visible};

/// Differences that are shown.
const DIFFERENCES_MAX: usize = 8;
const METHOD_CHARS_MAX: usize = 80;
const ERROR_CHARS_MAX: usize = 300;

/// What can be done about it.
pub(crate) const HINT: &str = "see why the client answers otherwise, or record the session again; --on-unmatched warn goes on";

/// The whole of it: several lines, the last with its end.
pub(crate) fn text(reply: &ChangedReply, palette: Palette) -> String {
    let what = palette.bold(&subject(reply));
    let (number, words) = (reply.number, reply.change.words());
    let signs = if is_apart(reply) { " (- recorded, + answered)" } else { "" };
    format!("{what} of #{number}: {words}{signs}\n{}", details(reply, palette))
}

/// What differs: several lines, the last with its end.
pub(crate) fn details(reply: &ChangedReply, palette: Palette) -> String {
    match reply.change {
        ReplyChange::ErrorForResult => {
            format!("    {}\n", visible::value(&reply.live, ERROR_CHARS_MAX))
        }
        _ if is_apart(reply) => {
            let found = differences(reply, DIFFERENCES_MAX).unwrap_or_default();
            diff_view::render(&found, palette, "    ")
        }
        _ => String::new(),
    }
}

/// What the server asks for.
pub(crate) fn subject(reply: &ChangedReply) -> String {
    visible::inline(&reply.method, METHOD_CHARS_MAX)
}

/// What differs between the recorded answer and the live one, if both are of one sort.
pub(crate) fn differences(reply: &ChangedReply, listed_max: usize) -> Option<Differences<'_>> {
    let root = match reply.change {
        ReplyChange::OtherResult => "result",
        ReplyChange::OtherError => "error",
        _ => return None,
    };
    let terms = Terms { root: Place::member(root), ignored: &[], listed_max };
    diff(&reply.recorded, &reply.live, &terms).ok()
}

fn is_apart(reply: &ChangedReply) -> bool {
    matches!(reply.change, ReplyChange::OtherResult | ReplyChange::OtherError)
}
