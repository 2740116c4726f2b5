//! Bytes as hexadecimal text.

use std::fmt::Write;

/// The bytes in lower-case hexadecimal.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string cannot fail.
        write!(out, "{byte:02x}").unwrap_or_default();
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(encode(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
