//! One word of a command, as far as its value is known before the line runs.

use crate::command_tree::{ParameterExpansion, ShellWord, WordPart};

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandArgument {
    /// The value, if it is known. A home folder stays a `~`.
    pub text: Option<String>,
    /// The start of the value that is known. If the word becomes several, each starts with it,
    /// unless it splits.
    pub prefix: String,
    /// Whether it begins with `~`.
    pub has_tilde: bool,
    /// Whether it may become any number of words with any values.
    pub splits: bool,
    /// Whether it may become several words or none, each of which begins with the prefix.
    pub repeats: bool,
    /// Whether it cannot begin with `-`, although its value is unknown.
    pub never_option: bool,
    /// Whether it is the pipe of a process substitution.
    pub is_pipe: bool,
}

impl CommandArgument {
    /// A word with a known value.
    pub fn known(text: &str) -> Self {
        Self { text: Some(text.to_owned()), prefix: text.to_owned(), ..Self::default() }
    }

    /// Any number of words with any values.
    pub fn unknown() -> Self {
        Self { splits: true, ..Self::default() }
    }

    /// The value of a word, as far as it is known.
    pub fn of(word: &ShellWord) -> Self {
        let mut argument = Self { text: Some(String::new()), ..Self::default() };
        for part in &word.parts {
            argument.add(part);
        }
        argument.is_pipe = matches!(word.parts.as_slice(), [WordPart::Process(_)]);
        argument
    }

    fn add(&mut self, part: &WordPart) {
        match part {
            WordPart::Literal { text, .. } => self.add_text(text),
            WordPart::Tilde(user) => {
                self.has_tilde = true;
                self.add_text(&format!("~{user}"));
            }
            WordPart::Wildcard(_) | WordPart::Braces(_) => {
                // The prefix stays: every word that this becomes begins with it.
                self.text = None;
                self.repeats = true;
            }
            WordPart::Parameter(parameter) => self.add_parameter(parameter),
            WordPart::Commands { quoted, .. } => {
                self.text = None;
                self.splits |= !quoted;
            }
            // A pipe, whatever runs at its other end.
            WordPart::Process(_) => {
                self.add_text("/dev/fd/");
                self.text = None;
            }
            WordPart::Arithmetic(_) => self.add_number(),
            WordPart::Array(_) => {
                self.text = None;
                self.splits = true;
            }
        }
    }

    fn add_parameter(&mut self, parameter: &ParameterExpansion) {
        if parameter.is_number() {
            self.add_number();
            // Without a command in the background, `$!` is empty, and no word at all.
            self.splits |= parameter.name == "!" && !parameter.quoted;
            return;
        }
        self.text = None;
        // `"$@"` is as many words as there are parameters, also in `"${x-$@}"`.
        self.splits |= !parameter.quoted
            || parameter.name == "@"
            || parameter.words.iter().any(|word| Self::of(word).splits);
    }

    fn add_number(&mut self) {
        // A number at the start cannot begin with a dash.
        self.never_option |= self.text.as_deref() == Some("");
        self.text = None;
    }

    fn add_text(&mut self, text: &str) {
        // After an unknown part, further text no longer adds to the beginning.
        if let Some(known) = &mut self.text {
            known.push_str(text);
            self.prefix.push_str(text);
        }
    }

    /// Whether a program may take it for an option although it is not known to be one.
    pub fn may_be_option(&self) -> bool {
        match &self.text {
            Some(text) => text.starts_with('-'),
            None => {
                self.splits
                    || !self.never_option
                        && (self.prefix.is_empty() || self.prefix.starts_with('-'))
            }
        }
    }

    /// Whether it is one word, whatever its value.
    pub fn is_one_word(&self) -> bool {
        !self.splits && !self.repeats
    }

    /// Whether its value is this text.
    pub fn is(&self, text: &str) -> bool {
        self.text.as_deref() == Some(text)
    }

    /// The argument for people.
    pub(super) fn shown(&self) -> String {
        match &self.text {
            Some(text)
                if text.is_empty()
                    || text
                        .contains(|letter: char| " \t\n'\"$`;&|<>()*?[{\\#".contains(letter)) =>
            {
                format!("'{}'", text.replace('\'', r"'\''"))
            }
            Some(text) => text.clone(),
            None => format!("{}…", self.prefix),
        }
    }
}
