//! URLs in arguments, as the parser of some server reads them.
//!
//! `HTTP://user@2852039166:80` and `http://169.254.169.254/` are one place to whoever fetches it, so a
//! rule that stops calls is held against every reading of a URL.

use crate::decide::{shortened, url_readings};
use crate::uri::is_url;

/// Whether some reading of a URL is what `is` looks for, with or without its query, fragment and the slash
/// at its end. What can be read in too many ways is made to be misread, and counts.
pub(super) fn any_reading(text: &str, is: impl Fn(&str) -> bool) -> bool {
    let shown = |reading: &str| is(reading) || shortened(reading).into_iter().flatten().any(&is);
    is_url(text)
        && (shown(text)
            || url_readings(text).map_or(true, |readings| readings.iter().any(|one| shown(one))))
}

/// The readings of a text if it is a URL and there are not too many.
pub(super) fn readings(text: &str) -> Vec<String> {
    if is_url(text) { url_readings(text).unwrap_or_default() } else { Vec::new() }
}
