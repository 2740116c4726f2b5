//! Words: text, quotes, wildcards and expansions.

use super::{CommandReader, ReadResult, is_metacharacter};
use crate::command_tree::{ShellWord, WordPart};

/// Where a word stands, which decides what a parenthesis in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordPlace {
    /// In a command.
    Command,
    /// A pattern in `[[ … ]]`, where extended globs are always on.
    Pattern,
    /// A regular expression in `[[ … ]]`.
    Regex,
}

impl CommandReader {
    pub(super) fn word(&mut self) -> ReadResult<ShellWord> {
        self.word_in(WordPlace::Command)
    }

    pub(super) fn word_in(&mut self, place: WordPlace) -> ReadResult<ShellWord> {
        let mut word = ShellWord::default();
        let start = self.at;
        let mut parens = 0_usize;
        while let Some(letter) = self.peek() {
            if is_metacharacter(letter) {
                if !self.takes_metacharacter(letter, place, &mut parens, start)? {
                    break;
                }
                match letter {
                    '<' | '>' => word.parts.push(self.process_substitution()?),
                    letter => {
                        self.at += 1;
                        word.parts.push(WordPart::Wildcard(letter.to_string()));
                    }
                }
                continue;
            }
            self.word_piece(&mut word, letter, start)?;
        }
        if self.at == start || parens > 0 {
            return Err(self.unexpected());
        }
        Ok(word)
    }

    /// Whether a metacharacter belongs to the word.
    fn takes_metacharacter(
        &self,
        letter: char,
        place: WordPlace,
        parens: &mut usize,
        start: usize,
    ) -> ReadResult<bool> {
        if matches!(letter, '<' | '>') && self.peek_at(1) == Some('(') {
            if self.at == start && place == WordPlace::Command {
                return Ok(true);
            }
            return Err(self.unreadable("a process substitution inside of a word"));
        }
        let before = self.at.checked_sub(1).filter(|_| self.at > start);
        let before = before.and_then(|at| self.chars.get(at));
        let opens_glob = before.is_some_and(|before| "?*+@!".contains(*before));
        match (letter, place) {
            ('(', WordPlace::Command) if opens_glob => {
                Err(self.unreadable("an extended glob, which bash reads only with an option"))
            }
            ('(', WordPlace::Regex) => {
                *parens += 1;
                Ok(true)
            }
            ('(', WordPlace::Pattern) if opens_glob || *parens > 0 => {
                *parens += 1;
                Ok(true)
            }
            (')', _) if *parens > 0 => {
                *parens -= 1;
                Ok(true)
            }
            ('|', WordPlace::Regex) => Ok(true),
            (' ' | '|', _) => Ok(*parens > 0),
            _ => Ok(false),
        }
    }

    fn word_piece(&mut self, word: &mut ShellWord, letter: char, start: usize) -> ReadResult<()> {
        match letter {
            '\'' => self.single_quotes(word)?,
            '"' => self.double_quotes(word)?,
            '\\' if self.peek_at(1) == Some('\n') => self.continue_line()?,
            '\\' => {
                let Some(escaped) = self.peek_at(1) else {
                    return Err(self.unreadable("a backslash at the end"));
                };
                self.at += 2;
                word.push_quoted(escaped);
            }
            '$' => self.dollar(word, false)?,
            '`' => {
                let part = self.backquotes(false)?;
                word.parts.push(part);
            }
            '~' if self.at == start => self.tilde(word),
            '*' | '?' => {
                self.at += 1;
                word.parts.push(WordPart::Wildcard(letter.to_string()));
            }
            // A single `[` is the name of a command.
            '[' if self.peek_at(1).is_some_and(|next| !is_metacharacter(next)) => {
                self.at += 1;
                word.parts.push(WordPart::Wildcard(letter.to_string()));
            }
            '{' if self.opens_braces() => {
                self.at += 1;
                word.parts.push(WordPart::Braces(letter.to_string()));
            }
            letter => {
                self.at += 1;
                word.push_plain(letter);
            }
        }
        Ok(())
    }

    /// Whether a `{` may begin a brace expansion. `{}` and `HEAD@{1}` do not.
    fn opens_braces(&self) -> bool {
        let rest = self.chars.get(self.at + 1..).unwrap_or_default();
        if rest.first().is_none_or(|next| is_metacharacter(*next)) {
            return false;
        }
        let plain = |letter: &&char| letter.is_alphanumeric() || "_-/:".contains(**letter);
        let length = rest.iter().take_while(plain).count();
        rest.get(length) != Some(&'}')
    }

    /// `~` and `~user`; any other tilde is text.
    fn tilde(&mut self, word: &mut ShellWord) {
        self.at += 1;
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let in_name = |letter: &&char| letter.is_alphanumeric() || "._+-".contains(**letter);
        let user: String = rest.iter().take_while(in_name).collect();
        let after = rest.get(user.chars().count());
        if after.is_none_or(|after| *after == '/' || is_metacharacter(*after)) {
            self.at += user.chars().count();
            word.parts.push(WordPart::Tilde(user));
        } else {
            word.push_plain('~');
        }
    }

    /// `<( … )` or `>( … )`.
    fn process_substitution(&mut self) -> ReadResult<WordPart> {
        self.at += 2;
        self.refuse_time()?;
        let list = self.full_list()?;
        self.close_list(")")?;
        Ok(WordPart::Process(list))
    }
}

impl ShellWord {
    pub(super) fn push_plain(&mut self, letter: char) {
        match self.parts.last_mut() {
            Some(WordPart::Literal { text, quoted: false }) => text.push(letter),
            _ => self.parts.push(WordPart::Literal { text: letter.to_string(), quoted: false }),
        }
    }

    pub(super) fn push_quoted(&mut self, letter: char) {
        match self.parts.last_mut() {
            Some(WordPart::Literal { text, quoted: true }) => text.push(letter),
            _ => self.parts.push(WordPart::Literal { text: letter.to_string(), quoted: true }),
        }
    }

    /// Notes that there were quotes, even if they were empty.
    pub(super) fn open_quotes(&mut self) {
        if !matches!(self.parts.last(), Some(WordPart::Literal { quoted: true, .. })) {
            self.parts.push(WordPart::Literal { text: String::new(), quoted: true });
        }
    }
}
