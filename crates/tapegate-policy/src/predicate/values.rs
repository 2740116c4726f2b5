//! The values that a path leads to in a JSON text.
//!
//! One walk over the text, without recursion, in time in proportion to the text however deep it
//! is; only the parts that the path may lead into are looked at from inside.

use tapegate_core::json::path::{Child, Descent, Path};
use tapegate_core::json::{Cursor, Kind};

/// A list or map that has been stepped into.
struct Open {
    is_map: bool,
    first: bool,
    /// How many children it has had.
    count: usize,
    /// What goes on in it starts here, and ends where the next begins.
    states: std::ops::Range<usize>,
    /// Where its text starts, if the path leads to it.
    wanted: Option<usize>,
}

/// Shows every value that `path` leads to; false if the text is no JSON.
pub(super) fn at(text: &[u8], path: &Path, show: &mut dyn FnMut(&[u8])) -> bool {
    walk(text, path, show).is_some()
}

fn walk(text: &[u8], path: &Path, show: &mut dyn FnMut(&[u8])) -> Option<()> {
    let paths = std::slice::from_ref(path);
    let mut cursor = Cursor::new(text).ok()?;
    let mut descent = Descent::new([0]);
    let mut open: Vec<Open> = Vec::new();
    if !matches!(cursor.kind().ok()?, Kind::Object | Kind::Array) {
        cursor.value().ok()?;
        return cursor.end().ok();
    }
    let is_map = cursor.open().ok()? == Kind::Object;
    open.push(Open { is_map, first: true, count: 0, states: 0..1, wanted: None });
    while let Some(top) = open.last_mut() {
        let key = match top.is_map {
            true => cursor.key(&mut top.first).ok()?.map(|key| Some(key.decode())),
            false => cursor.element(&mut top.first).ok()?.then_some(None),
        };
        let Some(key) = key else {
            if let Some(start) = top.wanted {
                show(cursor.slice(start, cursor.position()));
            }
            descent.leave(top.states.start);
            open.pop();
            continue;
        };
        let child = key.as_deref().map_or(Child::Index(top.count), Child::Key);
        top.count += 1;
        let start = descent.end();
        let reached = descent.step(paths, top.states.clone(), child);
        let states = start..descent.end();
        let kind = cursor.kind().ok()?;
        if !states.is_empty() && matches!(kind, Kind::Object | Kind::Array) {
            let wanted = reached.then_some(cursor.position());
            cursor.open().ok()?;
            let is_map = kind == Kind::Object;
            open.push(Open { is_map, first: true, count: 0, states, wanted });
            continue;
        }
        descent.leave(start);
        let value = cursor.value().ok()?;
        if reached {
            show(value);
        }
    }
    cursor.end().ok()
}
