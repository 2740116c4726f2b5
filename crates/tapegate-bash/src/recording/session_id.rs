//! Ids of sessions and entries, and times as recordings write them.

use std::io;

use tapegate_core::hex;
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_store::random;

/// A time as entries write it: UTC, with microseconds.
pub fn timestamp(wall_us: i64) -> String {
    let mut text = Vec::new();
    write_rfc3339(&mut text, wall_us, SubSecond::Micros);
    String::from_utf8(text).unwrap_or_default()
}

/// `20260118_143052`.
fn stamp(wall_us: i64) -> String {
    let text = timestamp(wall_us);
    let digits: String = text[..19].chars().filter(char::is_ascii_digit).collect();
    format!("{}_{}", &digits[..8], &digits[8..])
}

/// The date: `2026-01-18`.
pub fn date(wall_us: i64) -> String {
    timestamp(wall_us)[..10].to_owned()
}

/// A new session id: `20260118_143052_a7b3c9d2-e4f5`.
pub(crate) fn new_session_id(wall_us: i64) -> io::Result<String> {
    let digits = hex::encode(&random::bytes::<6>()?);
    Ok(format!("{}_{}-{}", stamp(wall_us), &digits[..8], &digits[8..]))
}

/// The id of an entry: `e_20260118_143052_001`.
pub(crate) fn entry_id(wall_us: i64, sequence_number: u64) -> String {
    format!("e_{}_{sequence_number:03}", stamp(wall_us))
}

/// A session id as tables show it, without the last group.
pub fn short_id(session_id: &str) -> &str {
    session_id.split_once('-').map_or(session_id, |(short, _)| short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_form_of_the_document() {
        let at = tapegate_core::time::read_rfc3339("2026-01-18T14:30:52.123456Z").unwrap();
        let id = new_session_id(at).unwrap();
        assert!(id.starts_with("20260118_143052_") && id.len() == 29, "{id}");
        assert!(id[16..].split('-').map(str::len).eq([8, 4]), "{id}");
        assert_ne!(id, new_session_id(at).unwrap());
        assert_eq!(entry_id(at, 1), "e_20260118_143052_001");
        assert_eq!(entry_id(at, 1000), "e_20260118_143052_1000");
        assert_eq!(timestamp(at), "2026-01-18T14:30:52.123456Z");
        assert_eq!(short_id("20260118_143052_a7b3c9d2-e4f5"), "20260118_143052_a7b3c9d2");
    }
}
