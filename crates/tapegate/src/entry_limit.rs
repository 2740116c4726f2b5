//! The limit on the length of tape entries.

use tapegate_core::tape::set_entry_bytes_max;

/// What all commands take that read tapes.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct EntryArgs {
    /// The longest tape entry to read, such as 1GB. An entry is held in memory while it is read
    #[arg(long, value_name = "BYTES", default_value = "128MB", value_parser = crate::units::bytes)]
    max_entry_bytes: usize,
}

impl EntryArgs {
    /// Sets the limit for the whole process, before the first tape is opened.
    pub(crate) fn apply(self) {
        set_entry_bytes_max(self.max_entry_bytes);
    }
}
