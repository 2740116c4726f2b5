//! The place of a frame that is not a message among the messages of a tape.

use super::{BadFrame, EntryTime};
use crate::json;
use crate::time::read_rfc3339;

impl BadFrame<'_> {
    /// Whether a frame of an anomalies file came before a message: by time, and if both have the
    /// same, by `after`, the number of the message that it followed.
    pub fn precedes(&self, message_us: Option<i64>, message_seq: Option<u64>) -> bool {
        let (Some(at_us), Some(message_us)) = (self.ts.micros(), message_us) else { return true };
        match self.after().zip(message_seq) {
            Some((after, seq)) if at_us == message_us => after < seq,
            _ => at_us <= message_us,
        }
    }

    fn after(&self) -> Option<u64> {
        let object = [b"{", self.extra.get(1..)?, b"}"].concat();
        std::str::from_utf8(json::member(&object, "after")?).ok()?.parse().ok()
    }
}

impl EntryTime<'_> {
    /// The time in microseconds since 1970, if it is valid.
    pub fn micros(self) -> Option<i64> {
        match self {
            Self::At(at_us) => Some(at_us),
            Self::Text(text) => read_rfc3339(text),
        }
    }
}
