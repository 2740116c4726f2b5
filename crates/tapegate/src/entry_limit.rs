//! Arguments of the commands that read tapes.

use std::path::PathBuf;

use tapegate_core::tape::set_entry_bytes_max;

/// What all commands take that read tapes.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct EntryArgs {
    /// The longest tape entry to read, such as 1GB. An entry is held in memory while it is read
    #[arg(long, value_name = "BYTES", default_value = "128MB", value_parser = crate::units::bytes)]
    max_entry_bytes: usize,
}

/// What the commands take that play a tape.
#[derive(Debug, clap::Args)]
pub(crate) struct PlayedTapeArgs {
    /// The file with the secret that the tape was redacted with, if it was your own
    #[arg(long, value_name = "FILE")]
    pub(crate) redact_key_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) entries: EntryArgs,
    /// The largest message to accept, such as 10MB
    #[arg(long, value_name = "BYTES", default_value = "1GB", value_parser = crate::units::bytes)]
    pub(crate) max_message_bytes: usize,
}

impl EntryArgs {
    /// Sets the limit for the whole process, before the first tape is opened.
    pub(crate) fn apply(self) {
        set_entry_bytes_max(self.max_entry_bytes);
    }
}
