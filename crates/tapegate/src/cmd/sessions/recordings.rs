//! The recordings that these commands work on.

use std::io::Write;
use std::path::PathBuf;

use tapegate_bash::recording::RecordingFolder;
use tapegate_bash::recording::session_reader::{self, SessionPath, SessionSummary};
use tapegate_bash::reports::session_lookup::{self, SessionMatch};
use tapegate_bash::reports::since;

use super::failure::{SessionsError, SessionsFailure};
use crate::cmd::bash::SettingsFile;
use crate::state_folder::now_us;
use crate::terminal_output;

/// Where recordings are.
#[derive(Debug, clap::Args)]
pub(super) struct RecordingsArgs {
    /// The folder of the recordings [default: from the settings, or .cuff/recordings]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// The settings of the bash tool [default: settings.yml, settings.yaml or .cuff/settings.yml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// The recordings, and how long they are kept.
pub(super) struct Recordings {
    pub(super) folder: RecordingFolder,
    pub(super) retention_days: u64,
}

impl RecordingsArgs {
    /// Finds the recordings.
    pub(super) fn open(&self) -> Result<Recordings, SessionsError> {
        let settings = SettingsFile::find(self.config.as_deref())?;
        let recording = settings.config.recording;
        // The same settings as the server's, so that both mean the same folder.
        let folder = self.directory.clone().unwrap_or(recording.directory);
        let retention_days = recording.retention_days;
        Ok(Recordings { folder: RecordingFolder::new(folder), retention_days })
    }
}

impl Recordings {
    /// The sessions on disk, oldest first.
    pub(super) fn paths(&self) -> Result<Vec<SessionPath>, SessionsError> {
        session_reader::sessions(&self.folder)
            .map_err(|error| SessionsFailure::file("read", self.folder.path(), &error))
    }

    /// The session that a text names.
    pub(super) fn find(&self, text: &str) -> Result<SessionPath, SessionsError> {
        let found = session_lookup::find(&self.folder, text)
            .map_err(|error| SessionsFailure::file("read", self.folder.path(), &error))?;
        match found {
            SessionMatch::One(session) => Ok(session),
            SessionMatch::None => Err(SessionsFailure::not_found(text)),
            SessionMatch::Many(ids) => Err(SessionsFailure::ambiguous(text, &ids)),
        }
    }
}

/// What is known of a session.
pub(super) fn summary(session: &SessionPath) -> Result<SessionSummary, SessionsError> {
    session_reader::summary(session)
        .map_err(|error| SessionsFailure::file("read", &session.path, &error))
}

/// The point in time that `--since` names.
pub(super) fn since_us(text: Option<&str>) -> Result<Option<i64>, SessionsError> {
    text.map(time_us).transpose()
}

/// The point in time that an option names. A month may have been meant as a minute, so that is said.
pub(super) fn time_us(text: &str) -> Result<i64, SessionsError> {
    let at = since::parse(text, now_us()).ok_or_else(|| SessionsFailure::date(text))?;
    if let Some(note) = since::month_note(text) {
        terminal_output::info(&format!("note: {note}"));
    }
    Ok(at)
}

/// Says that there is nothing, and why.
pub(super) fn print_empty(out: &mut dyn Write) -> Result<(), SessionsError> {
    writeln!(
        out,
        "No recordings found.\n\n\
         Recordings are created when the BashRecorder plugin executes commands.\n\
         Configure the plugin in settings.yml to start recording."
    )?;
    Ok(())
}

/// Shows on a terminal how far a long command has come.
pub(super) struct ProgressLine {
    total: usize,
    done: usize,
    show: Box<dyn FnMut(u64, u64)>,
}

impl ProgressLine {
    pub(super) fn new(recordings: &Recordings, total: usize) -> Self {
        Self { total, done: 0, show: terminal_output::progress(recordings.folder.path()) }
    }

    /// Counts a session.
    pub(super) fn step(&mut self) {
        self.done += 1;
        (self.show)(self.done as u64, self.total as u64);
    }
}
