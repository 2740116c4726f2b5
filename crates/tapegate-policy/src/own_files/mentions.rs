//! Mentions of our files that pass.
//!
//! The rule tells a mention from a path by the text alone. So each mention is logged, and a search for
//! attempts also finds those that passed as prose.

use super::OwnFiles;
use super::strings::each_string;

/// The number of bytes of a text that are searched: the content of a file may be megabytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

impl OwnFiles {
    /// Whether some text in these params contains one of the names as it is written. Other spellings
    /// matter only where a call may be refused.
    pub(crate) fn mentioned_in(&self, params: Option<&[u8]>) -> bool {
        let Some(params) = params.filter(|params| self.refuse && self.is_marked(params)) else {
            return false;
        };
        let mut found = false;
        each_string(params, &mut |text, _| {
            let text = &text[..text.floor_char_boundary(TEXT_BYTES_MAX)];
            found = found
                || self.is_marked(text.as_bytes())
                    && self.file_named_by_reading(&text.to_lowercase()).is_some();
        });
        found
    }
}
