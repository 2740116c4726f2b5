//! The values at a path in a JSON text.
//!
//! One walk over the text without recursion, in time linear in its length at any depth; only the
//! parts that the path may lead into are entered.

use tapegate_core::json::path::{ChildPosition, JsonPath, PathDescent};
use tapegate_core::json::{Cursor, JsonKind};

/// A list or map that has been entered.
struct EnteredValue {
    is_map: bool,
    /// The number of children so far.
    count: usize,
    /// The range of its path states.
    states: std::ops::Range<usize>,
    /// Where its text starts, if the path leads to it.
    wanted: Option<usize>,
}

/// Calls `show` with every value at `path`; returns false if the text is not JSON.
pub(super) fn visit_values_at(text: &[u8], path: &JsonPath, show: &mut dyn FnMut(&[u8])) -> bool {
    walk(text, path, show).is_some()
}

fn walk(text: &[u8], path: &JsonPath, show: &mut dyn FnMut(&[u8])) -> Option<()> {
    let paths = std::slice::from_ref(path);
    let mut cursor = Cursor::new(text).ok()?;
    let mut descent = PathDescent::new([0]);
    let mut open: Vec<EnteredValue> = Vec::new();
    if !matches!(cursor.kind().ok()?, JsonKind::Object | JsonKind::Array) {
        cursor.value().ok()?;
        return cursor.expect_end().ok();
    }
    let is_map = cursor.open().ok()? == JsonKind::Object;
    open.push(EnteredValue { is_map, count: 0, states: 0..1, wanted: None });
    while let Some(top) = open.last_mut() {
        let key = match top.is_map {
            true => cursor.next_key().ok()?.map(|key| Some(key.decode())),
            false => cursor.next_item().ok()?.then_some(None),
        };
        let Some(key) = key else {
            if let Some(start) = top.wanted {
                show(cursor.slice(start, cursor.position()));
            }
            descent.truncate(top.states.start);
            open.pop();
            continue;
        };
        let child = key.as_deref().map_or(ChildPosition::Index(top.count), ChildPosition::Key);
        top.count += 1;
        let start = descent.end();
        let reached = descent.descend(paths, top.states.clone(), child);
        let states = start..descent.end();
        let kind = cursor.kind().ok()?;
        // Without a state the path cannot lead inside, so the value is skipped in one scan.
        if !states.is_empty() && matches!(kind, JsonKind::Object | JsonKind::Array) {
            let wanted = reached.then_some(cursor.position());
            cursor.open().ok()?;
            let is_map = kind == JsonKind::Object;
            open.push(EnteredValue { is_map, count: 0, states, wanted });
            continue;
        }
        descent.truncate(start);
        let value = cursor.value().ok()?;
        if reached {
            show(value);
        }
    }
    cursor.expect_end().ok()
}
