//! Regular expressions in policies.

use regex::{Regex, RegexBuilder};

/// The maximum size of a compiled expression.
const BYTES_MAX: usize = 1 << 20;

/// Compiles an expression; the error describes what is wrong with it.
pub(super) fn parse(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(BYTES_MAX).build().map_err(|error| {
        let message = error.to_string();
        let last = message.lines().last().unwrap_or_default().trim_start_matches("error: ");
        format!("this is not a valid regular expression: {last}")
    })
}
