//! What became of the recording of a command.

/// What became of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordingOutcome {
    /// It is on disk, with this id.
    Recorded(String),
    /// It is on disk, with this id, in a new session: the files of the old one were removed.
    RecordedAnew(String),
    /// Recording is switched off.
    Off,
    /// It could not be written, for this reason.
    Failed(String),
}

impl RecordingOutcome {
    /// The id of the entry, if there is one.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Recorded(id) | Self::RecordedAnew(id) => Some(id),
            Self::Off | Self::Failed(_) => None,
        }
    }

    /// What the caller must know.
    pub fn notice(&self) -> Option<String> {
        match self {
            Self::Failed(reason) => Some(format!("this command was not recorded: {reason}")),
            Self::RecordedAnew(_) => Some(
                "the recordings of this session were removed or changed; a new session begins with this command".to_owned(),
            ),
            Self::Off | Self::Recorded(_) => None,
        }
    }
}
