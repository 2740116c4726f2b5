//! Correlation ids, which link a refusal to its log entry.

/// Generates ids: a prefix unique to the session, and a counter.
#[derive(Debug, Clone, Default)]
pub struct IdGenerator {
    text: Vec<u8>,
    /// The length of the common prefix.
    common: usize,
}

impl IdGenerator {
    /// Ids that begin with `session`.
    pub fn new(session: &str) -> Self {
        let text = format!("{session}-").into_bytes();
        Self { common: text.len(), text }
    }

    /// The next id. Every call needs one, so the digits are incremented in place.
    pub(super) fn next(&mut self) -> &str {
        let number = &mut self.text[self.common..];
        let nines = number.iter().rev().take_while(|digit| **digit == b'9').count();
        let (rest, full) = number.split_at_mut(number.len() - nines);
        full.fill(b'0');
        match rest.last_mut() {
            Some(digit) => *digit += 1,
            // All digits were nines, or there were none yet.
            None => self.text.insert(self.common, b'1'),
        }
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_counted() {
        let mut ids = IdGenerator::new("a9");
        for number in 1..12_345 {
            assert_eq!(ids.next(), format!("a9-{number}"));
        }
    }
}
