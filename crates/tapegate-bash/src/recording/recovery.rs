//! Closes sessions whose server was killed.

use std::io;

use super::RecordingFolder;
use super::metadata::{ACTIVE, INTERRUPTED, SessionMetadata};
use super::pending;
use super::session_file::SessionFile;
use super::session_reader::{self, SessionPath};

/// Marks every session without a writer as interrupted, and records the commands that were running
/// then. Returns their ids.
pub(super) fn recover(folder: &RecordingFolder) -> io::Result<Vec<String>> {
    let mut recovered = Vec::new();
    for session in session_reader::sessions(folder)? {
        let known = SessionMetadata::read(&folder.metadata(&session.session_id));
        // Without metadata, the server was killed before it wrote any.
        if known.as_ref().is_none_or(|known| known.status == ACTIVE)
            // One session that cannot be closed must not keep the server from starting.
            && recover_session(folder, &session, known).unwrap_or(false)
        {
            recovered.push(session.session_id);
        }
    }
    Ok(recovered)
}

fn recover_session(
    folder: &RecordingFolder,
    session: &SessionPath,
    known: Option<SessionMetadata>,
) -> io::Result<bool> {
    let Some(mut file) = SessionFile::take_over(&session.path)? else { return Ok(false) };
    let marks = folder.pending(&session.session_id);
    let mut left = pending::read(&marks, &session.session_id);
    // A command may have been recorded in the instant before the mark was removed.
    session_reader::entries(&session.path, &mut |entry| {
        left.retain(|one| one.sequence_number != entry.sequence_number);
        Ok(())
    })?;
    for entry in left {
        file.append(format!("{}\n", entry.to_json()).as_bytes())?;
    }
    // After the entries are synced; a crash before this only repeats the check above.
    std::fs::remove_file(marks).ok();
    let mut metadata = session_reader::scan(session, known)?;
    metadata.status = INTERRUPTED.to_owned();
    metadata.write(&folder.metadata(&session.session_id))?;
    Ok(true)
}
