//! Environment variables in the raw text of a scenario: `${VAR}`, `${VAR:-default}`,
//! `${VAR:?message}`, and `$$` for a dollar sign.
//!
//! They are substituted before the YAML is parsed, so that a variable can be a number or a whole
//! list. Values are not expanded again. Anything else, such as `${args.path}`, is left for later.

use std::borrow::Cow;

use crate::files::Files;
use crate::finding::Findings;
use crate::node::Spot;
use crate::template;
use crate::yaml::SourceMap;

/// The meaning of a `${`.
enum VariableSyntax<'t> {
    /// A variable: its name, the part after the name, and its length including the closing brace.
    Variable { name: &'t str, otherwise: VariableFallback<'t>, bytes: usize },
    /// A variable without a closing brace.
    Open,
    /// Something else.
    Other,
}

/// What happens if a variable is not set.
enum VariableFallback<'t> {
    Warn,
    Take(&'t str),
    Refuse(&'t str),
}

/// Substitutes variables, and records the original positions.
pub(super) fn substitute<'t>(
    text: &'t str,
    file: u16,
    files: &dyn Files,
    findings: &mut Findings,
) -> (Cow<'t, str>, SourceMap) {
    let mut origin = SourceMap::default();
    if memchr::memchr(b'$', text.as_bytes()).is_none() {
        return (Cow::Borrowed(text), origin);
    }
    let mut out = String::with_capacity(text.len());
    let (mut new, mut old) = (TextPosition::default(), TextPosition::default());
    let mut rest = text;
    let mut line = LineState::default();
    while let Some(at) = memchr::memchr(b'$', rest.as_bytes()) {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        new.advance(before);
        old.advance(before);
        let spot = old.spot(file);
        let (value, bytes) = match () {
            () if tail.starts_with("$$") => (Cow::Borrowed("$"), 2),
            () if tail.starts_with("${") => match variable(&tail[2..]) {
                VariableSyntax::Variable { name, otherwise, bytes } => {
                    // A commented-out part of a scenario must not require its variables.
                    let quiet = line.is_comment(text, text.len() - tail.len());
                    let value = files.variable(name).map(Cow::Owned);
                    let value = value.unwrap_or_else(|| {
                        Cow::Borrowed(value_if_unset(name, &otherwise, spot, quiet, findings))
                    });
                    (value, bytes + 2)
                }
                VariableSyntax::Open => {
                    let message = "`${` begins a variable that is not closed on this line; \
                                 for a literal `${` write `$${`";
                    findings.error(spot, message);
                    (Cow::Borrowed("${"), 2)
                }
                VariableSyntax::Other => (Cow::Borrowed("${"), 2),
            },
            // A lone dollar sign, as in prices and regular expressions.
            () => (Cow::Borrowed("$"), 1),
        };
        let (taken, left) = tail.split_at(bytes);
        // Positions are mapped only where they differ, since most text has no variables.
        if *taken != *value {
            origin.mark_replaced(new.pair(), old.pair());
        }
        out.push_str(&value);
        new.advance(&value);
        old.advance(taken);
        if *taken != *value {
            origin.mark_unchanged(new.pair(), old.pair());
        }
        rest = left;
    }
    out.push_str(rest);
    (Cow::Owned(out), origin)
}

/// Parses the text after `${`.
fn variable(text: &str) -> VariableSyntax<'_> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        // `${args.path}` is filled when a message is sent. An environment variable `args` must not
        // hide it.
        || name == "fn"
        || template::ROOTS.contains(&name)
    {
        return VariableSyntax::Other;
    }
    if rest.starts_with('}') {
        return VariableSyntax::Variable {
            name,
            otherwise: VariableFallback::Warn,
            bytes: end + 1,
        };
    }
    // At the end of the file. Within the text, the brace may belong to something else.
    if rest.is_empty() {
        return VariableSyntax::Open;
    }
    let Some(sign) = rest.get(..2).filter(|sign| [":-", ":?"].contains(sign)) else {
        return VariableSyntax::Other;
    };
    let rest = &rest[2..];
    // A default ends on its own line, so a forgotten brace cannot swallow the rest of the file.
    let close = rest.find(['}', '\n']).filter(|at| rest[*at..].starts_with('}'));
    let Some(close) = close else { return VariableSyntax::Open };
    let fallback = &rest[..close];
    let otherwise = if sign == ":-" {
        VariableFallback::Take(fallback)
    } else {
        VariableFallback::Refuse(fallback)
    };
    VariableSyntax::Variable { name, otherwise, bytes: end + 2 + close + 1 }
}

/// The replacement for a variable that is not set. In comments it is not reported.
fn value_if_unset<'t>(
    name: &str,
    otherwise: &VariableFallback<'t>,
    spot: Spot,
    quiet: bool,
    findings: &mut Findings,
) -> &'t str {
    match otherwise {
        VariableFallback::Take(value) => value,
        _ if quiet => "",
        VariableFallback::Warn => {
            let message =
                format!("the variable {name} is not set; for literal text write `$${{{name}}}`");
            findings.warning(spot, message);
            ""
        }
        VariableFallback::Refuse("") => {
            findings.error(spot, format!("the variable {name} must be set"));
            ""
        }
        VariableFallback::Refuse(message) => {
            findings.error(spot, format!("the variable {name} must be set: {message}"));
            ""
        }
    }
}

/// The line that was examined last.
#[derive(Default)]
struct LineState {
    /// How far the text was searched for line ends.
    seen: usize,
    comment: bool,
}

impl LineState {
    /// Whether the line around `at` starts as a comment. Positions must be given in ascending
    /// order, so that the text is searched only once.
    fn is_comment(&mut self, text: &str, at: usize) -> bool {
        let from = std::mem::replace(&mut self.seen, at);
        let start = match memchr::memrchr(b'\n', &text.as_bytes()[from..at]) {
            Some(end) => from + end + 1,
            None if from == 0 => 0,
            None => return self.comment,
        };
        self.comment = text[start..].trim_start_matches([' ', '\t']).starts_with('#');
        self.comment
    }
}

/// A position in a text: line and column in characters, from 1.
pub(super) struct TextPosition {
    line: u32,
    column: u32,
}

impl Default for TextPosition {
    fn default() -> Self {
        Self { line: 1, column: 1 }
    }
}

impl TextPosition {
    /// Moves it past a text.
    pub(super) fn advance(&mut self, text: &str) {
        let last = match memchr::memrchr(b'\n', text.as_bytes()) {
            Some(at) => {
                self.line += memchr::memchr_iter(b'\n', text.as_bytes()).count() as u32;
                self.column = 1;
                &text[at + 1..]
            }
            None => text,
        };
        self.column += last.chars().count() as u32;
    }

    pub(super) fn spot(&self, file: u16) -> Spot {
        Spot { file, line: self.line, column: self.column }
    }

    fn pair(&self) -> (u32, u32) {
        (self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::tests::TestFiles;

    #[track_caller]
    fn gives(text: &str, expected: &str, findings: &[&str]) {
        let folder =
            TestFiles::default().with_variable("HOME", "/home/u").with_variable("TWO", "a\nb");
        let mut found = Findings::default();
        let (text, _) = substitute(text, 0, &folder, &mut found);
        assert_eq!(text, expected);
        let found: Vec<String> = found
            .into_list()
            .into_iter()
            .map(|finding| {
                format!("{}:{} {}", finding.spot.line, finding.spot.column, finding.message)
            })
            .collect();
        assert_eq!(found, findings);
    }

    #[test]
    fn variables_are_put_in() {
        gives("${HOME}/x ${NO:-a b} $$ $ $x", "/home/u/x a b $ $ $x", &[]);
    }

    #[test]
    fn what_was_put_in_is_not_looked_through() {
        gives("${NO:-${HOME}", "${HOME", &[]);
        gives("$${HOME}", "${HOME}", &[]);
        gives("$$$${HOME}", "$${HOME}", &[]);
    }

    #[test]
    fn templates_are_left_alone() {
        let text = "${args} ${args.a[0]} ${fn.upper(args.x)} ${env.HOME} ${uri.id} ${} ${1}";
        gives(text, text, &[]);
    }

    #[test]
    fn ec_cfg_005_ec_load_008_a_variable_that_is_not_set_is_empty_with_a_warning() {
        let words = "1:4 the variable NO is not set; for literal text write `$${NO}`";
        gives("x: ${NO}y", "x: y", &[words]);
        gives("# ${NO}\n  # ${NO:?}", "# \n  # ", &[]);
    }

    #[test]
    fn ec_load_009_a_variable_that_must_be_set_is_an_error() {
        gives("\nx: ${NO:?say why}", "\nx: ", &["2:4 the variable NO must be set: say why"]);
        gives("x: ${NO:?}", "x: ", &["1:4 the variable NO must be set"]);
    }

    #[test]
    fn a_variable_without_an_end_is_an_error() {
        let words = "1:1 `${` begins a variable that is not closed on this line; \
                     for a literal `${` write `$${`";
        gives("${HOME:-x\n}", "${HOME:-x\n}", &[words]);
        gives("${HOME", "${HOME", &[words]);
    }

    #[test]
    fn places_are_told_as_they_were() {
        let folder = TestFiles::default().with_variable("TWO", "a\nb");
        let (text, origin) =
            substitute("ä $$ b ${TWO} c\n  d", 0, &folder, &mut Findings::default());
        assert_eq!(text, "ä $ b a\nb c\n  d");
        assert_eq!(origin.original_position(1, 1), (1, 1));
        assert_eq!(origin.original_position(1, 3), (1, 3));
        assert_eq!(origin.original_position(1, 5), (1, 6));
        assert_eq!(origin.original_position(1, 7), (1, 8));
        assert_eq!(origin.original_position(2, 1), (1, 8));
        assert_eq!(origin.original_position(2, 3), (1, 15));
        assert_eq!(origin.original_position(3, 3), (2, 3));
    }
}
