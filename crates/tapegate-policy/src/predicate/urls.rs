//! URLs in arguments, as the parser of some server reads them.
//!
//! `HTTP://user@2852039166:80` and `http://169.254.169.254/` are one place to whoever fetches it, so a
//! rule that stops calls is held against every reading of a URL.

use crate::decide::{Name, url_readings};
use crate::glob::Glob;
use crate::uri::is_url;

/// Whether some reading of a text is what `is` looks for. What can be read in too many ways is made to
/// be misread, and counts.
pub(super) fn any_reading(text: &str, is: impl Fn(&str) -> bool) -> bool {
    is_url(text)
        && url_readings(text).map_or(true, |readings| readings.iter().any(|reading| is(reading)))
}

/// Whether some reading of a URL could be what a glob is about.
pub(super) fn may_match(glob: &Glob, url: &str) -> bool {
    let matches = |reading: &str| Name::new(reading, url, true).may_match(glob);
    is_url(url) && matches(url) || any_reading(url, matches)
}

/// Whether two texts are URLs that could lead to the same place.
pub(super) fn may_equal(wanted: &str, url: &str) -> bool {
    if !is_url(wanted) || !is_url(url) {
        return false;
    }
    let is_wanted = |reading: &str| {
        reading == wanted || any_reading(wanted, |other_reading| other_reading == reading)
    };
    is_wanted(url) || any_reading(url, is_wanted)
}
