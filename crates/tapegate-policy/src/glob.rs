//! The glob syntax of policies: `*`, `?`, `[a-z]`, `[!x]`; case-sensitive.
//!
//! A `*` matches any run of characters, including `/`, and `**` means the same; names and URIs are
//! not paths. There is no escape character: `[*]` is a literal star. Matching searches for the
//! pieces between stars one after the other and never backtracks over a star. Its time is
//! proportional to the length of the name, times that of the longest piece with a `?` or a class.

mod case_insensitive;
mod decoded_glob;

/// A compiled glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    text: String,
    /// The pieces between stars, in order. A single piece means that there is no star.
    pieces: Vec<GlobPiece>,
    /// The same glob with its text decoded like that of names, in each way that makes a difference.
    decoded: Vec<Glob>,
}

/// The text between two stars.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobPiece {
    /// Literal text.
    Plain(String),
    /// Text with wildcards or classes.
    Open(Vec<GlobLetter>),
}

/// A pattern for one character.
#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobLetter {
    /// This character.
    Is(char),
    /// Any character.
    One,
    /// A character in these ranges, or with `not`, in none of them; case is ignored if `any_case`
    /// is set.
    Class { not: bool, ranges: Vec<(char, char)>, any_case: bool },
}

impl GlobPiece {
    /// The same piece with `text` applied to its literal parts and `open` to the rest.
    fn map(&self, text: impl Fn(&str) -> String, open: impl Fn(&GlobLetter) -> GlobLetter) -> Self {
        let letters = match self {
            Self::Plain(plain) => return Self::Plain(text(plain)),
            Self::Open(letters) => letters,
        };
        let (mut out, mut run) = (Vec::new(), String::new());
        for letter in letters {
            match letter {
                GlobLetter::Is(letter) => run.push(*letter),
                letter => {
                    out.extend(text(&run).chars().map(GlobLetter::Is));
                    run.clear();
                    out.push(open(letter));
                }
            }
        }
        out.extend(text(&run).chars().map(GlobLetter::Is));
        Self::Open(out)
    }
}

impl Glob {
    /// Parses a glob; the error describes what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = vec![Vec::new()];
        let mut chars = text.chars().peekable();
        while let Some(letter) = chars.next() {
            let letter = match letter {
                '*' => {
                    // `**` means the same as `*`, so the second star starts no piece of its own.
                    if pieces.len() == 1 || pieces.last().is_some_and(|piece| !piece.is_empty()) {
                        pieces.push(Vec::new());
                    }
                    continue;
                }
                '?' => GlobLetter::One,
                '[' if opens_address(text, chars.clone()) => GlobLetter::Is('['),
                '[' => class(&mut chars)?,
                letter => GlobLetter::Is(letter),
            };
            if let Some(piece) = pieces.last_mut() {
                piece.push(letter);
            }
        }
        let pieces: Vec<GlobPiece> = pieces.into_iter().map(GlobPiece::new).collect();
        let decoded = decoded_glob::decoded(&pieces);
        Ok(Self { text: text.to_owned(), pieces, decoded })
    }

    /// Whether it matches a whole name.
    pub fn matches(&self, name: &str) -> bool {
        let [first, rest @ ..] = self.pieces.as_slice() else { return false };
        let Some(at) = first.start_of(name) else { return false };
        let Some((last, middle)) = rest.split_last() else { return at == name.len() };
        let mut name = &name[at..];
        // The first match of each piece leaves the most text for those that follow, so it is never
        // revised.
        for piece in middle {
            match piece.find(name) {
                Some(end) => name = &name[end..],
                None => return false,
            }
        }
        last.is_end_of(name)
    }

    /// Whether it matches a whole name, as written or with its own escapes decoded.
    pub(crate) fn matches_decoded(&self, name: &str) -> bool {
        self.matches(name) || self.decoded.iter().any(|glob| glob.matches(name))
    }

    /// Whether a stopping rule matches more with it than a forwarding one: other spellings of its
    /// text, and URIs with an added query.
    pub(crate) fn matches_more_leniently(&self) -> bool {
        let open_end = self.text.ends_with('*');
        !self.decoded.is_empty() || !open_end && self.text.contains([':', '/', '*', '?', '['])
    }

    /// The glob as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether it matches one name only: its text, apart from single characters in brackets.
    pub fn is_plain(&self) -> bool {
        matches!(self.pieces.as_slice(), [GlobPiece::Plain(_)])
    }

    /// Whether it matches every name.
    pub fn is_all(&self) -> bool {
        let empty = |piece: &GlobPiece| matches!(piece, GlobPiece::Plain(text) if text.is_empty());
        self.pieces.len() > 1 && self.pieces.iter().all(empty)
    }
}

/// Whether a bracket, which has been consumed, opens the IPv6 address of a URL, such as
/// `http://[::1]/*`, rather than a class. A class of one character cannot match an address.
fn opens_address(text: &str, rest: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let rest: String = rest.collect();
    let before = &text[..text.len() - rest.len() - 1];
    let host = before.rsplit_once("://").map(|(_, host)| host);
    let at_host = host.is_some_and(|host| host.is_empty() || host.ends_with('@'));
    let Some((address, _)) = rest.split_once(']') else { return false };
    let letter = |byte: u8| byte.is_ascii_hexdigit() || b":.*?%".contains(&byte);
    at_host && address.matches(':').count() > 1 && address.bytes().all(letter)
}

/// Parses a class; its opening bracket has been consumed.
fn class(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Result<GlobLetter, String> {
    let open = || "a `[` has no `]`; a bracket itself is written as `[[]`".to_owned();
    let not = chars.next_if_eq(&'!').is_some();
    let mut ranges = Vec::new();
    loop {
        let low = chars.next().ok_or_else(open)?;
        // As in shells, a `]` directly after the `[` is a member of the class.
        if low == ']' && !ranges.is_empty() {
            return Ok(GlobLetter::Class { not, ranges, any_case: false });
        }
        let mut ahead = chars.clone();
        let is_range = ahead.next() == Some('-') && ahead.next().is_some_and(|next| next != ']');
        let high = if is_range { chars.nth(1).ok_or_else(open)? } else { low };
        if high < low {
            return Err(format!("the range `{low}-{high}` is reversed"));
        }
        ranges.push((low, high));
    }
}

impl GlobPiece {
    fn new(letters: Vec<GlobLetter>) -> Self {
        let plain = |letter: &GlobLetter| match letter {
            GlobLetter::Is(letter) => Some(*letter),
            GlobLetter::Class { not: false, ranges, .. } => match ranges.as_slice() {
                [(low, high)] if low == high => Some(*low),
                _ => None,
            },
            _ => None,
        };
        match letters.iter().map(plain).collect() {
            Some(text) => Self::Plain(text),
            None => Self::Open(letters),
        }
    }

    /// The end of a match at the start of a name. Empty text is not compared: its pointer is
    /// dangling, and comparing that is slow on some processors.
    fn start_of(&self, name: &str) -> Option<usize> {
        match self {
            Self::Plain(text) => {
                (text.is_empty() || name.starts_with(text.as_str())).then_some(text.len())
            }
            Self::Open(letters) => {
                let mut chars = name.chars();
                letters
                    .iter()
                    .all(|letter| chars.next().is_some_and(|one| letter.matches(one)))
                    .then(|| name.len() - chars.as_str().len())
            }
        }
    }

    /// The end of the first match in a name.
    fn find(&self, name: &str) -> Option<usize> {
        match self {
            Self::Plain(text) => {
                let at = memchr::memmem::find(name.as_bytes(), text.as_bytes())?;
                Some(at + text.len())
            }
            Self::Open(_) => {
                let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
                starts.into_iter().find_map(|at| Some(at + self.start_of(&name[at..])?))
            }
        }
    }

    fn is_end_of(&self, name: &str) -> bool {
        match self {
            Self::Plain(text) => text.is_empty() || name.ends_with(text.as_str()),
            Self::Open(letters) => {
                let mut chars = name.chars();
                letters
                    .iter()
                    .rev()
                    .all(|letter| chars.next_back().is_some_and(|one| letter.matches(one)))
            }
        }
    }
}

impl GlobLetter {
    fn matches(&self, one: char) -> bool {
        match self {
            Self::Is(letter) => *letter == one,
            Self::One => true,
            Self::Class { not, ranges, any_case } => {
                let takes = |one: char| {
                    ranges.iter().any(|(low, high)| (*low..=*high).contains(&one)) != *not
                };
                // A negated class takes a letter if it takes either case of it: a blocking rule
                // then matches more.
                takes(one) || *any_case && one.to_uppercase().chain(one.to_lowercase()).any(takes)
            }
        }
    }
}

#[cfg(test)]
mod tests;
