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

/// The bytes that lower-case hexadecimal digits stand for; `None` for any other text.
pub fn decode(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(value(pair[0])? << 4 | value(*pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_two_digits() {
        assert_eq!(encode(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
        assert_eq!(decode("000fa0ff"), Some(vec![0, 0x0f, 0xa0, 0xff]));
        assert_eq!(decode(""), Some(Vec::new()));
        for bad in ["0", "0g", "FF", "+1", "é"] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
