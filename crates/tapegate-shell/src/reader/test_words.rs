//! The inside of `[[ … ]]`.

use super::words::WordPlace;
use super::{CommandReader, ReadResult};
use crate::command_tree::ShellWord;

impl CommandReader {
    /// The words and operators up to `]]`.
    pub(super) fn test_words(&mut self) -> ReadResult<Vec<ShellWord>> {
        let mut words: Vec<ShellWord> = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take_reserved("]]") {
                return Ok(words);
            }
            let before = words.last().and_then(ShellWord::plain);
            let place = if before == Some("=~") { WordPlace::Regex } else { WordPlace::Pattern };
            let operator = match self.peek() {
                Some('(') if place == WordPlace::Pattern => "(",
                Some(')') => ")",
                Some('&') => "&&",
                Some('|') if place == WordPlace::Pattern => "||",
                // Other shells take them for redirections.
                Some('<' | '>') => {
                    return Err(self.unreadable("a comparison in `[[` by `<` or `>`"));
                }
                _ => "",
            };
            if operator.is_empty() {
                let word = self.word_in(place)?;
                words.push(word);
                continue;
            }
            self.expect(operator)?;
            let mut word = ShellWord::default();
            operator.chars().for_each(|letter| word.push_plain(letter));
            words.push(word);
        }
    }
}
