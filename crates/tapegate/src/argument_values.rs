//! Values of flags that are texts of no other kind.

/// A text that is not empty, as an unset variable in a script would make it.
pub(crate) fn non_empty(text: &str) -> Result<String, String> {
    if text.is_empty() { Err("must not be empty".to_owned()) } else { Ok(text.to_owned()) }
}
