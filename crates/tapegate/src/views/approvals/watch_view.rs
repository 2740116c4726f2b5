//! What `tapegate approvals watch` shows: each request as a block, and one line with the keys.
//!
//! Every line is cut to the width of the terminal by us, with a bar before what continues, so that
//! no text of a call can begin a line of its own. Nothing here moves the cursor up or switches
//! screens: earlier output stays in the terminal's history, also in tmux and over ssh.

use similar::{Algorithm, DiffTag, capture_diff_slices};
use tapegate_store::approvals::{ApprovalEntry, ApprovalRecord};

use super::{DETAILS_CHARS_MAX, NAME_CHARS_MAX};
use crate::views::columns::{truncate_to, width};
use crate::views::palette::Palette;
use crate::views::{readable_json, visible_text};

/// Narrower terminals are treated as this wide.
const COLUMNS_MIN: usize = 40;
/// Longer arguments are not compared with those of the last call.
const COMPARED_LINES_MAX: usize = 2000;
/// The width of the names of a block's lines.
const KEY_COLUMNS: usize = 11;
/// The keys of a session, while a request is shown.
const KEYS: &str = "y approve  a this session  n deny  d details  s skip  q quit";
/// Marks the rest of a line that did not fit.
const CONTINUED: &str = "      ┆ ";

/// How text is written on this terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WatchLayout {
    /// The width of the terminal.
    pub(crate) columns: usize,
    /// Whether there are colours.
    pub(crate) palette: Palette,
    /// The current time, by the clock of the process that asked.
    pub(crate) now_us: i64,
}

/// A line before it is cut and coloured.
struct WatchLine {
    kind: LineKind,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineKind {
    Plain,
    Added,
    Removed,
}

/// A request, as lines of the terminal: with its whole arguments, compared with those of `before`,
/// the last similar call.
pub(crate) fn block(
    entry: &ApprovalEntry,
    before: Option<&ApprovalEntry>,
    layout: &WatchLayout,
) -> Vec<String> {
    let request = &entry.request;
    let plain = |text: &str| visible_text::inline(text, DETAILS_CHARS_MAX);
    let mut lines = vec![title(request, layout)];
    let mut line = |key: &str, text: String| {
        if !text.is_empty() {
            lines.push(WatchLine::plain(format!("{key:<KEY_COLUMNS$}{text}")));
        }
    };
    let asked = super::span(layout.now_us - request.created_us);
    let principal = plain(&request.principal);
    line("asked", format!("{asked} ago by {principal}, {}", super::caller(request, layout.now_us)));
    // Nearly all are calls, and the line would be noise.
    if request.method != "tools/call" {
        line("method", plain(&request.method));
    }
    line("because", plain(&request.reason));
    line("workflow", plain(&request.workflow));
    line("folder", plain(&request.folder));
    line("approvers", plain(&request.approvers.join(", ")));
    line("escalates", super::escalation_note(request, layout.now_us));
    line("quorum", super::quorum_note(entry));
    line("hidden", super::hidden_note(request));
    if let Some(before) = before {
        let what = super::state(before, layout.now_us);
        let ago = super::span(layout.now_us - before.request.created_us);
        line("last call", format!("{} {ago} ago: {what}", before.request.id));
    }
    lines.push(WatchLine::plain(String::new()));
    lines.extend(call_lines(request, before.map(|before| &before.request)));
    lines.push(WatchLine::plain(String::new()));
    lines.iter().flat_map(|line| line.cut(layout)).collect()
}

/// The heading of a block, which names the server and the tool in full.
fn title(request: &ApprovalRecord, layout: &WatchLayout) -> WatchLine {
    let name = |text: &str| visible_text::inline(text, DETAILS_CHARS_MAX);
    let mut text = format!("── {} · {} ", name(&request.server_id), name(&request.tool));
    let end = format!(" {} ──", request.id);
    let used = width(&text) + width(&end);
    text.push_str(&"─".repeat((layout.columns() - 1).saturating_sub(used).max(1)));
    WatchLine::plain(text + &end)
}

/// The arguments, and the params if they contain more. Lines that the last call did not have are
/// marked, as are those that only it had.
fn call_lines(request: &ApprovalRecord, before: Option<&ApprovalRecord>) -> Vec<WatchLine> {
    let new = raw_lines(request);
    let old = before.map(raw_lines);
    // The comparison takes time with the square of the differences.
    let Some(old) = old.filter(|old| old.len().max(new.len()) <= COMPARED_LINES_MAX) else {
        return new.iter().map(|line| WatchLine::plain(format!("    {line}"))).collect();
    };
    let mut lines = Vec::new();
    for op in capture_diff_slices(Algorithm::Myers, &old, &new) {
        if op.tag() == DiffTag::Equal {
            let same = new[op.new_range()].iter();
            lines.extend(same.map(|line| WatchLine::plain(format!("    {line}"))));
            continue;
        }
        let (gone, come) = (&old[op.old_range()], &new[op.new_range()]);
        let line = |kind, text| WatchLine { kind, text };
        lines.extend(gone.iter().map(|text| line(LineKind::Removed, format!("  - {text}"))));
        lines.extend(come.iter().map(|text| line(LineKind::Added, format!("  + {text}"))));
    }
    lines
}

fn raw_lines(request: &ApprovalRecord) -> Vec<String> {
    let mut lines = readable_json::lines(&super::arguments_raw(request, true), "");
    if super::has_more(request) {
        lines.push("params:".to_owned());
        lines.extend(readable_json::lines(super::params(request).as_bytes(), "  "));
    }
    lines
}

/// The line below the last block: the keys, once they are taken, and how much time is left. It fits
/// into one line.
pub(crate) fn keys_line(
    current: Option<&ApprovalEntry>,
    others: usize,
    takes_keys: bool,
    layout: &WatchLayout,
) -> String {
    let text = match current {
        None => format!("{} · q quits", super::waiting_hint(others)),
        Some(entry) => {
            let left = super::span(entry.request.expires_us - layout.now_us);
            let more = if others > 0 { format!(" · +{others}") } else { String::new() };
            let keys = if takes_keys { KEYS } else { "a new call" };
            format!("{keys} · {left} left{more}")
        }
    };
    // One column stays free: a terminal that wraps at its last column would start a new line.
    layout.palette.bold(&truncate_to(&text, layout.columns() - 1))
}

/// How a request ended that was on the screen.
pub(crate) fn ended_line(entry: &ApprovalEntry, layout: &WatchLayout) -> String {
    let what = super::state(entry, layout.now_us);
    let call = super::call(&entry.request, NAME_CHARS_MAX);
    truncate_to(&format!("{}: {what}: {call}", entry.request.id), layout.columns() - 1)
}

impl WatchLayout {
    fn columns(&self) -> usize {
        self.columns.max(COLUMNS_MIN)
    }
}

impl WatchLine {
    fn plain(text: String) -> Self {
        Self { kind: LineKind::Plain, text }
    }

    /// The line in pieces that fit, coloured.
    fn cut(&self, layout: &WatchLayout) -> Vec<String> {
        let paint = |text: &str| match self.kind {
            LineKind::Plain => text.to_owned(),
            LineKind::Added => layout.palette.green(text),
            LineKind::Removed => layout.palette.red(text),
        };
        let mut pieces = Vec::new();
        let mut piece = String::new();
        for letter in self.text.chars() {
            piece.push(letter);
            // Measured as a whole, since joined characters take less room than the single ones. The
            // number of characters is limited, since marks that take no room could go on endlessly.
            let is_long = piece.len() > layout.columns() * 8;
            if is_long || width(&piece) > layout.columns() - 1 {
                piece.pop();
                pieces.push(paint(&piece));
                piece = format!("{CONTINUED}{letter}");
            }
        }
        pieces.push(paint(&piece));
        pieces
    }
}

#[cfg(test)]
mod tests;
