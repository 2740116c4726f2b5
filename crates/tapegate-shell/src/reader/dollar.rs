//! Expansions that begin with `$`.

use super::{CommandReader, ReadResult};
use crate::command_tree::{ArithmeticText, LENGTH, ParameterExpansion, ShellWord, WordPart};

/// The parameters with a character for a name.
const SPECIAL: &str = "@*#?-$!";
/// The transformations that do not run the value.
const SAFE_TRANSFORMATIONS: &str = "QULuaAEKk";

impl CommandReader {
    /// Reads what begins with `$`.
    pub(super) fn dollar(&mut self, word: &mut ShellWord, quoted: bool) -> ReadResult<()> {
        let part = match self.peek_at(1) {
            Some('(') if self.peek_at(2) == Some('(') => {
                self.at += 1;
                WordPart::Arithmetic(self.nest(Self::double_parens)?)
            }
            Some('(') => {
                self.at += 2;
                self.refuse_time()?;
                let list = self.nest(Self::list)?;
                self.close_list(")")?;
                WordPart::Commands { list, quoted }
            }
            Some('{') => {
                self.at += 2;
                WordPart::Parameter(Box::new(self.nest(|reader| reader.braced(quoted))?))
            }
            Some('\'') if !quoted => return self.ansi_quotes(word),
            Some('"') if !quoted => return Err(self.unreadable("a translated text `$\"`")),
            Some('[') => return Err(self.unreadable("arithmetic in the old form `$[`")),
            Some('\\') if self.peek_at(2) == Some('\n') => {
                return Err(self.unreadable("an escaped line break after `$`"));
            }
            Some(first) if first.is_ascii_digit() || SPECIAL.contains(first) => {
                self.at += 2;
                WordPart::Parameter(Box::new(ParameterExpansion::new(first.to_string(), quoted)))
            }
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                self.at += 1;
                let name = self.parameter_name();
                WordPart::Parameter(Box::new(ParameterExpansion::new(name, quoted)))
            }
            _ => {
                self.at += 1;
                word.push_quoted('$');
                return Ok(());
            }
        };
        word.parts.push(part);
        Ok(())
    }

    pub(super) fn parameter_name(&mut self) -> String {
        let mut name = String::new();
        while let Some(letter) =
            self.peek().filter(|one| one.is_ascii_alphanumeric() || *one == '_')
        {
            name.push(letter);
            self.at += 1;
        }
        name
    }

    /// The inside of `${…}`, with the closing brace.
    fn braced(&mut self, quoted: bool) -> ReadResult<ParameterExpansion> {
        let begins_name = |next: Option<char>| {
            next.is_some_and(|next| next.is_ascii_alphanumeric() || "_@*".contains(next))
        };
        let is_length = self.peek() == Some('#') && begins_name(self.peek_at(1));
        let is_indirect = self.peek() == Some('!') && begins_name(self.peek_at(1));
        if is_length || is_indirect {
            self.at += 1;
        }
        let mut name = self.parameter_name();
        if name.is_empty() {
            match self.peek().filter(|one| SPECIAL.contains(*one)) {
                Some(special) => name.push(special),
                None => return Err(self.unreadable("an unknown parameter expansion")),
            }
            self.at += 1;
        }
        let mut parameter = ParameterExpansion::new(name, quoted);
        if is_indirect {
            parameter.runs_value = Some("an indirect expansion may run code in a subscript");
        }
        if self.take("[") {
            if self.take("@]") || self.take("*]") {
                // All elements, as `$@` is all positional parameters.
                parameter.name = "@".to_owned();
            } else {
                let subscript = self.subscript()?;
                parameter.arithmetic.push(subscript);
            }
        }
        if is_length {
            parameter.name = LENGTH.to_owned();
            self.expect("}")?;
            return Ok(parameter);
        }
        self.operator(&mut parameter, quoted)?;
        self.expect("}")?;
        Ok(parameter)
    }

    /// The operator of `${name…}` and its words.
    fn operator(&mut self, parameter: &mut ParameterExpansion, quoted: bool) -> ReadResult<()> {
        match self.peek() {
            Some('}') => return Ok(()),
            Some('@') => {
                self.at += 1;
                let Some(kind) = self.peek() else { return Err(self.unexpected()) };
                self.at += 1;
                if kind == 'P' {
                    parameter.runs_value = Some("`@P` runs the commands in a value");
                } else if kind == '}' && parameter.runs_value.is_some() {
                    // `${!prefix@}`: the names of variables.
                    self.at -= 1;
                } else if !SAFE_TRANSFORMATIONS.contains(kind) {
                    return Err(self.unreadable("an unknown transformation of a parameter"));
                }
                return Ok(());
            }
            Some('*') if parameter.runs_value.is_some() && self.peek_at(1) == Some('}') => {
                self.at += 1;
                return Ok(());
            }
            Some(':') if self.peek_at(1).is_none_or(|next| !"-=?+".contains(next)) => {
                self.at += 1;
                let offsets = self.offsets()?;
                parameter.arithmetic.push(offsets);
                return Ok(());
            }
            Some(':') => self.at += 1,
            Some('-' | '=' | '?' | '+' | '%' | '#' | '/' | '^' | ',') => {}
            _ => return Err(self.unreadable("an unknown parameter expansion")),
        }
        parameter.assigns = self.peek() == Some('=');
        self.at += 1;
        let word = self.braced_word(quoted)?;
        parameter.words.push(word);
        Ok(())
    }

    /// The offset and length of `${name:…}`, up to the brace.
    fn offsets(&mut self) -> ReadResult<ArithmeticText> {
        let mut arithmetic = ArithmeticText::default();
        loop {
            match self.peek() {
                Some('}') => return Ok(arithmetic),
                Some(letter) => self.arithmetic_piece(&mut arithmetic, letter)?,
                None => return Err(self.unexpected()),
            }
        }
    }

    /// The text after an operator, up to the brace.
    fn braced_word(&mut self, quoted: bool) -> ReadResult<ShellWord> {
        let mut word = ShellWord::default();
        loop {
            match self.peek() {
                Some('}') => return Ok(word),
                Some('{') => return Err(self.unreadable("a brace inside of `${…}`")),
                Some('\'') if quoted => {
                    return Err(self.unreadable("a single quote inside of `${…}` in quotes"));
                }
                Some('\'') => self.single_quotes(&mut word)?,
                Some('"') => self.double_quotes(&mut word)?,
                Some('<' | '>') if self.peek_at(1) == Some('(') => {
                    return Err(self.unreadable("a process substitution inside of `${…}`"));
                }
                Some('\\') if !quoted || self.peek_at(1) == Some('}') => {
                    let Some(escaped) = self.peek_at(1).filter(|next| *next != '\n') else {
                        return Err(self.unexpected());
                    };
                    self.at += 2;
                    word.push_quoted(escaped);
                }
                Some('$') => self.dollar(&mut word, quoted)?,
                Some(letter) => self.quoted_piece(&mut word, letter, true)?,
                None => return Err(self.unreadable("`${` is not closed")),
            }
        }
    }
}

impl ParameterExpansion {
    fn new(name: String, quoted: bool) -> Self {
        Self {
            name,
            quoted,
            runs_value: None,
            assigns: false,
            arithmetic: Vec::new(),
            words: Vec::new(),
        }
    }
}
