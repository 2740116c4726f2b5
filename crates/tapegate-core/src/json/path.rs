//! Paths into messages, as written in policies and options.
//!
//! A path is a sequence of steps: `.key`, `['any key']`, `[3]`, `*` or `[*]` for all children, and
//! `..` before a step to match at any depth. It starts at the message, with or without `$`.

use std::ops::Range;

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath {
    /// At least one step.
    pub steps: Vec<PathStep>,
    /// A key that a text must contain for the path to match; only keys that no escape other than
    /// `\u` can hide.
    pub needle: Option<String>,
}

/// One step from a value to its children.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathStep {
    /// Whether any number of levels may be skipped before it.
    pub anywhere: bool,
    /// Which children it selects.
    pub select: StepSelector,
}

/// Which children a step selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StepSelector {
    /// The member of an object.
    Key(String),
    /// The element of an array.
    Index(usize),
    /// Every child.
    All,
}

/// The position of a child in its parent.
#[derive(Debug, Clone, Copy)]
pub enum ChildPosition<'a> {
    /// Under a key.
    Key(&'a str),
    /// In an array.
    Index(usize),
}

/// How far several paths have matched on the way down into a value.
///
/// Each open value owns a range of the states: the paths that continue in it. [`PathDescent::descend`]
/// appends the range when the value is entered; it is truncated when the value is left.
#[derive(Debug, Default)]
pub struct PathDescent {
    states: Vec<DescentState>,
}

/// A path and the index of its next step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DescentState {
    path: usize,
    step: usize,
}

/// Where a path is invalid, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathFault {
    /// The index of the character, from 0.
    pub at: usize,
    /// What is wrong.
    pub what: String,
}

impl StepSelector {
    /// Whether the step selects `child`.
    pub fn matches(&self, child: ChildPosition<'_>) -> bool {
        match (self, child) {
            (Self::All, _) => true,
            (Self::Key(key), ChildPosition::Key(name)) => key == name,
            (Self::Index(index), ChildPosition::Index(place)) => *index == place,
            _ => false,
        }
    }
}

impl JsonPath {
    /// Reads a path.
    pub fn read(text: &str) -> Result<Self, PathFault> {
        let mut scan = PathScanner { chars: text.chars().collect(), at: 0 };
        if scan.peek() == Some('$') {
            scan.at += 1;
        } else if !matches!(scan.peek(), Some('.' | '[')) {
            let select = scan.name()?;
            return scan.rest(vec![PathStep { anywhere: false, select }]);
        }
        scan.rest(Vec::new())
    }
}

impl PathDescent {
    /// Starts the paths with these indices at the outermost value.
    pub fn new(paths: impl IntoIterator<Item = usize>) -> Self {
        Self { states: paths.into_iter().map(|path| DescentState { path, step: 0 }).collect() }
    }

    /// Advances every path of a parent to `child`; returns true if one of them ends there. The
    /// paths that continue in the child are appended.
    pub fn descend(
        &mut self,
        paths: &[JsonPath],
        parent: Range<usize>,
        child: ChildPosition<'_>,
    ) -> bool {
        let before = self.states.len();
        let mut reached = false;
        for index in parent {
            let state = self.states[index];
            let steps = &paths[state.path].steps;
            let next = DescentState { step: state.step + 1, ..state };
            let taken = steps[state.step].select.matches(child);
            reached |= taken && next.step == steps.len();
            let goes_on = taken && next.step < steps.len();
            for kept in [steps[state.step].anywhere.then_some(state), goes_on.then_some(next)] {
                if let Some(kept) = kept.filter(|kept| !self.states[before..].contains(kept)) {
                    self.states.push(kept);
                }
            }
        }
        reached
    }

    /// The start of the next child's range.
    pub fn end(&self) -> usize {
        self.states.len()
    }

    /// Removes the ranges from `start` on.
    pub fn truncate(&mut self, start: usize) {
        self.states.truncate(start);
    }
}

/// Reads a path by characters, so that positions are counted as a person counts them.
struct PathScanner {
    chars: Vec<char>,
    at: usize,
}

impl PathScanner {
    fn rest(mut self, mut steps: Vec<PathStep>) -> Result<JsonPath, PathFault> {
        while let Some(next) = self.peek() {
            let dots = self.chars[self.at..].iter().take_while(|&&dot| dot == '.').count();
            let bracket = self.chars.get(self.at + dots) == Some(&'[');
            match dots {
                0 if next == '[' => {}
                0 => return self.fault(format!("expected `.` or `[`, found `{next}`")),
                1 if bracket => {
                    self.at += 1;
                    return self.fault("`[` must not follow `.`".to_owned());
                }
                1 | 2 => self.at += dots,
                _ => {
                    self.at += 2;
                    return self.fault("more than two dots in a row".to_owned());
                }
            }
            let select = if bracket { self.bracket()? } else { self.name()? };
            steps.push(PathStep { anywhere: dots == 2, select });
        }
        if steps.is_empty() {
            return self.fault("the path ends where a key must follow".to_owned());
        }
        let needle = steps.iter().filter_map(plain_key).max_by_key(|key| key.len());
        Ok(JsonPath { needle: needle.map(str::to_owned), steps })
    }

    fn name(&mut self) -> Result<StepSelector, PathFault> {
        let ends = |letter: &char| matches!(letter, '.' | '[' | ']' | '\'' | '"' | '*' | '(' | '?');
        let rest = &self.chars[self.at..];
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let name: String = rest[..length].iter().collect();
        self.at += length;
        match self.peek() {
            Some('*') if length == 0 => {
                self.at += 1;
                Ok(StepSelector::All)
            }
            Some(odd @ (']' | '\'' | '"' | '*' | '(' | '?')) => {
                self.fault(format!("a key that contains `{odd}` must be quoted: `['key']`"))
            }
            None if length == 0 => self.fault("the path ends where a key must follow".to_owned()),
            _ if length == 0 => self.fault("a key is missing".to_owned()),
            _ => Ok(StepSelector::Key(name)),
        }
    }

    fn bracket(&mut self) -> Result<StepSelector, PathFault> {
        self.at += 1;
        let select = match self.peek() {
            Some('*') => {
                self.at += 1;
                StepSelector::All
            }
            Some(quote @ ('\'' | '"')) => StepSelector::Key(self.quoted(quote)?),
            Some('0'..='9') => self.index()?,
            Some('-' | ':' | '?' | '(') => {
                return self.fault("expected `[*]`, `[0]` or `['key']`".to_owned());
            }
            _ => return self.fault("`*`, a number or a quoted key is missing".to_owned()),
        };
        if self.peek() != Some(']') {
            return self.fault("a `]` is missing".to_owned());
        }
        self.at += 1;
        Ok(select)
    }

    fn quoted(&mut self, quote: char) -> Result<String, PathFault> {
        let opened = self.at;
        let mut key = String::new();
        self.at += 1;
        while let Some(letter) = self.peek() {
            self.at += 1;
            match letter {
                _ if letter == quote => return Ok(key),
                '\\' => {
                    let Some(taken) = self.peek() else { break };
                    self.at += 1;
                    key.push(taken);
                }
                _ => key.push(letter),
            }
        }
        self.at = opened;
        self.fault("the quoted key is not closed".to_owned())
    }

    fn index(&mut self) -> Result<StepSelector, PathFault> {
        let start = self.at;
        while self.peek().is_some_and(|digit| digit.is_ascii_digit()) {
            self.at += 1;
        }
        let digits: String = self.chars[start..self.at].iter().collect();
        match digits.parse() {
            Ok(index) => Ok(StepSelector::Index(index)),
            Err(_) => Err(PathFault { at: start, what: "the number is too large".to_owned() }),
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn fault<T>(&self, what: String) -> Result<T, PathFault> {
        Err(PathFault { at: self.at, what })
    }
}

fn plain_key(step: &PathStep) -> Option<&str> {
    match &step.select {
        StepSelector::Key(key) if !key.is_empty() && !key.contains(['"', '\\', '/']) => {
            let plain = key.chars().all(|letter| !letter.is_control());
            plain.then_some(key)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let path = JsonPath::read(text).unwrap();
        let step = |step: &PathStep| {
            let dots = if step.anywhere { "..".to_owned() } else { String::new() };
            match &step.select {
                StepSelector::Key(key) => format!("{dots}<{key}>"),
                StepSelector::Index(index) => format!("{dots}{index}"),
                StepSelector::All => format!("{dots}*"),
            }
        };
        path.steps.iter().map(step).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn paths_are_read() {
        for (text, steps) in [
            ("$.params.arguments.password", "<params> <arguments> <password>"),
            ("params.arguments.password", "<params> <arguments> <password>"),
            ("result..token", "<result> ..<token>"),
            ("..password", "..<password>"),
            ("$..password", "..<password>"),
            ("result.content[*].text", "<result> <content> * <text>"),
            ("result.content[0].*", "<result> <content> 0 *"),
            ("$['a.b'][\"c'd\"]['e\\'f']", "<a.b> <c'd> <e'f>"),
            ("..[0]", "..0"),
            ("..*", "..*"),
            ("*.x-y_z", "* <x-y_z>"),
            ("[*].é", "* <é>"),
        ] {
            assert_eq!(shown(text), steps, "{text}");
        }
    }

    #[test]
    fn faults_name_the_character() {
        for (text, at, what) in [
            ("$", 1, "the path ends where a key must follow"),
            ("", 0, "the path ends where a key must follow"),
            ("a.", 2, "the path ends where a key must follow"),
            ("a..", 3, "the path ends where a key must follow"),
            ("a...b", 3, "more than two dots in a row"),
            ("$a", 1, "expected `.` or `[`, found `a`"),
            ("a.[0]", 2, "`[` must not follow `.`"),
            ("a[", 2, "`*`, a number or a quoted key is missing"),
            ("a[-1]", 2, "expected `[*]`, `[0]` or `['key']`"),
            ("a[?(@.b)]", 2, "expected `[*]`, `[0]` or `['key']`"),
            ("a['b", 2, "the quoted key is not closed"),
            ("a['b'", 5, "a `]` is missing"),
            ("é.b]c", 3, "a key that contains `]` must be quoted: `['key']`"),
            ("a.b*", 3, "a key that contains `*` must be quoted: `['key']`"),
            ("a[99999999999999999999]", 2, "the number is too large"),
        ] {
            let fault = JsonPath::read(text).unwrap_err();
            assert_eq!((fault.at, fault.what.as_str()), (at, what), "{text}");
        }
    }

    #[test]
    fn the_needle_is_the_longest_key_that_cannot_hide() {
        let needle = |text| JsonPath::read(text).unwrap().needle;
        assert_eq!(needle("params..password").as_deref(), Some("password"));
        assert_eq!(needle("a['x/y-long']").as_deref(), Some("a"));
        assert_eq!(needle("*[0]"), None);
    }
}
