//! Ids of requests. They become file names, so only safe names are valid.

use crate::random;

/// Letters and digits that are not easily confused.
const LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";
const LETTERS_IN_ID: usize = 16;
const ID_CHARS_MAX: usize = 64;

/// Creates a random id.
pub fn new_id() -> std::io::Result<String> {
    let dice: [u8; LETTERS_IN_ID] = random::bytes()?;
    // 32 divides 256, so every letter is equally likely.
    let letter = |byte: &u8| char::from(LETTERS[usize::from(byte % 32)]);
    Ok(std::iter::once("ap_".to_owned())
        .chain(dice.iter().map(|byte| letter(byte).to_string()))
        .collect())
}

/// Whether a text can be the id of a request.
pub fn is_id(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    // An id must not look like an option or a hidden file.
    let begins = text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    begins && text.len() <= ID_CHARS_MAX && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_names_are_names_and_differ() {
        let (one, two) = (new_id().unwrap(), new_id().unwrap());
        assert!(is_id(&one) && one.len() == 19 && one.starts_with("ap_"), "{one}");
        assert_ne!(one, two);
    }

    #[test]
    fn what_would_lead_elsewhere_is_no_name() {
        let long = "a".repeat(65);
        for text in
            ["", ".", "..", "../x", "a/b", "a\0b", "-rf", "_x", ".x", "a.b", "a b", "ä", &long]
        {
            assert!(!is_id(text), "{text:?}");
        }
    }
}
