//! URLs in arguments, as some server's parser reads them.
//!
//! `HTTP://user@2852039166:80` and `http://169.254.169.254/` lead to the same place, so a rule that
//! stops calls is tested on every reading of a URL.

use crate::decide::{shortened_forms_of, url_readings};
use crate::uri::is_url;

/// Whether `is` holds for some reading of a URL, with or without its query, fragment and trailing
/// slash. A URL with too many readings is crafted to be misread, so it counts as a match.
pub(super) fn any_reading(text: &str, is: impl Fn(&str) -> bool) -> bool {
    let shown =
        |reading: &str| is(reading) || shortened_forms_of(reading).into_iter().flatten().any(&is);
    is_url(text)
        && (shown(text)
            || url_readings(text).map_or(true, |readings| readings.iter().any(|one| shown(one))))
}

/// The readings of a text if it is a URL and does not have too many.
pub(super) fn readings(text: &str) -> Vec<String> {
    if is_url(text) { url_readings(text).unwrap_or_default() } else { Vec::new() }
}
