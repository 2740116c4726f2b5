//! Finds sessions by a part of their id.

use std::io;

use crate::recording::RecordingFolder;
use crate::recording::session_reader::{self, SessionPath};

/// The session that a text names.
#[derive(Debug)]
pub enum SessionMatch {
    /// There is one.
    One(SessionPath),
    /// There is none.
    None,
    /// There are several, with these ids.
    Many(Vec<String>),
}

/// The word for the newest session. No id contains it.
const LAST: &str = "last";

/// Finds the session whose id is `text`, or the only one whose id contains it; or the newest one.
pub fn find(folder: &RecordingFolder, text: &str) -> io::Result<SessionMatch> {
    let mut all = session_reader::sessions(folder)?;
    if let Some(position) = all.iter().position(|session| session.session_id == text) {
        return Ok(SessionMatch::One(all.swap_remove(position)));
    }
    if text == LAST {
        return Ok(all.pop().map_or(SessionMatch::None, SessionMatch::One));
    }
    // An empty text would match the only session of a project by accident.
    all.retain(|session| !text.is_empty() && session.session_id.contains(text));
    Ok(match all.len() {
        0 => SessionMatch::None,
        1 => SessionMatch::One(all.swap_remove(0)),
        _ => SessionMatch::Many(all.into_iter().map(|session| session.session_id).collect()),
    })
}
