//! The values that tests which stop look for, and the readings of a text that matter to them.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cedar_policy::pst::{BinaryOp, Clause, Expr, Literal, Var};
use tapegate_core::json::{JsonFault, JsonToken, tokens};
use tapegate_core::lenient::embedded::{EmbeddedJson, parse_embedded, pieces, unescaped};
use tapegate_core::lenient::equivalence::TextForms;
use tapegate_core::lenient::reading::{ScanBudget, any_reading};

use crate::UrlReader;
use crate::attribute_reads::chain;
use crate::pattern::LikePattern;
use crate::polarity::READINGS;

mod relevant_readings;

use relevant_readings::RelevantReadings;

/// The maximum number of readings of one text.
pub(crate) const READINGS_MAX: usize = 64;
/// Limits for JSON embedded in a text: the number of texts, the depth, and embedding in embedding.
const EMBEDDED_MAX: usize = 4_096;
const DEPTH_MAX: usize = 64;
const NESTED_MAX: usize = 4;

/// The values that one argument is compared with.
#[derive(Debug, Clone, Default)]
pub(crate) struct ComparedValues {
    /// The texts it is compared with.
    texts: BTreeMap<String, Arc<ComparedText>>,
    /// The patterns it is matched against.
    patterns: Vec<Arc<LikePattern>>,
    /// Whether it is compared with something that is not known before the call.
    pub(crate) other: bool,
}

/// A text that an argument is compared with, and all of its readings.
#[derive(Debug)]
struct ComparedText {
    forms: TextForms,
    /// Its readings as a URL, computed when the first URL is compared with it.
    urls: OnceLock<Option<Vec<String>>>,
}

/// The compared values, by the path of the argument.
pub(crate) type ComparedPaths = BTreeMap<Vec<String>, ComparedValues>;

/// There are too many readings to evaluate.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooManyReadingsError;

/// Collects the values that clauses compare the readings of arguments with.
pub(crate) fn collect_compared(clauses: &[Clause], all: &mut ComparedPaths) {
    for clause in clauses {
        let (Clause::When(expr) | Clause::Unless(expr)) = clause;
        walk(expr, all);
    }
}

fn walk(expr: &Expr, all: &mut ComparedPaths) {
    if let Some(path) = path(expr) {
        // Used outside of a comparison, so any reading may matter.
        all.entry(path).or_default().other = true;
        return;
    }
    match expr {
        Expr::BinaryOp { op, left, right } => binary(*op, left, right, all),
        Expr::Like { expr, pattern } => match path(expr) {
            Some(path) => {
                all.entry(path).or_default().patterns.push(Arc::new(LikePattern::new(pattern)));
            }
            None => walk(expr, all),
        },
        // Whether a member is present is the same in every reading.
        Expr::HasAttr { expr, .. } if path(expr).is_some() => {}
        Expr::UnaryOp { expr, .. } | Expr::GetAttr { expr, .. } | Expr::HasAttr { expr, .. } => {
            walk(expr, all);
        }
        Expr::Is { expr, in_expr, .. } => {
            walk(expr, all);
            in_expr.iter().for_each(|expr| walk(expr, all));
        }
        Expr::IfThenElse { cond, then_expr, else_expr } => {
            [cond, then_expr, else_expr].into_iter().for_each(|expr| walk(expr, all));
        }
        Expr::Set(elements) => elements.iter().for_each(|expr| walk(expr, all)),
        Expr::Record(members) => members.values().for_each(|expr| walk(expr, all)),
        _ => {}
    }
}

fn binary(op: BinaryOp, left: &Expr, right: &Expr, all: &mut ComparedPaths) {
    // An argument directly under `&&` is a boolean, with no text to compare.
    let compares = !matches!(op, BinaryOp::And | BinaryOp::Or);
    for (one, other) in [(left, right), (right, left)] {
        match path(one).filter(|_| compares) {
            Some(path) => {
                let wanted = all.entry(path).or_default();
                match texts(other) {
                    Some(texts) => {
                        for text in texts {
                            let new = || Arc::new(ComparedText::new(&text));
                            wanted.texts.entry(text.clone()).or_insert_with(new);
                        }
                    }
                    None => wanted.other = true,
                }
            }
            None => walk(one, all),
        }
    }
}

/// The texts of a literal, none for a number; `None` if it is not a literal.
fn texts(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(vec![text.to_string()]),
        Expr::Literal(_) => Some(Vec::new()),
        // A negated number or `decimal("1.0")` is a literal, but not a text.
        Expr::UnaryOp { expr, .. } => texts(expr).map(|_| Vec::new()),
        Expr::Set(elements) => {
            let all: Option<Vec<_>> = elements.iter().map(|one| texts(one)).collect();
            Some(all?.concat())
        }
        _ => None,
    }
}

/// The path of an argument that is tested in all its readings.
fn path(expr: &Expr) -> Option<Vec<String>> {
    let (Var::Context, names) = chain(expr)? else { return None };
    let [READINGS, path @ ..] = &names[..] else { return None };
    Some(path.iter().map(|name| (*name).to_owned()).collect())
}

impl ComparedValues {
    /// Adds the values of another policy.
    pub(crate) fn add(&mut self, other: &Self) {
        self.texts
            .extend(other.texts.iter().map(|(text, wanted)| (text.clone(), Arc::clone(wanted))));
        self.patterns.extend(other.patterns.iter().cloned());
        self.other |= other.other;
    }

    /// Whether the empty text is compared with; `null` may be read as that.
    pub(crate) fn takes_empty(&self) -> bool {
        self.texts.contains_key("")
    }

    /// The readings of a text that policies can distinguish from the text and from each other.
    /// `url_reader` gives its readings as a URL.
    pub(crate) fn readings(
        &self,
        text: &str,
        url_reader: Option<UrlReader>,
    ) -> Result<Vec<String>, TooManyReadingsError> {
        let urls =
            url_reader.map_or(Some(Vec::new()), |read| read(text)).ok_or(TooManyReadingsError)?;
        let alike = self.texts.iter().filter(|(own, wanted)| {
            wanted.forms.has_same_meaning(text)
                || url_reader.is_some_and(|read| wanted.is_url_of(own, read, text, &urls))
        });
        let mut kept = RelevantReadings::new(self, text);
        let mut all_kept = true;
        let mut keep = |reading: &str| {
            all_kept = all_kept && kept.add(reading);
            !all_kept
        };
        // The text itself too: its own case and spelling may equal a literal of the policy.
        keep(text);
        let too_many = alike.map(|(wanted, _)| wanted).chain(&urls).any(|reading| keep(reading))
            || any_within(text, &ScanBudget::new(text.len()), NESTED_MAX, &mut keep);
        if too_many || !all_kept { Err(TooManyReadingsError) } else { Ok(kept.found) }
    }

    /// Everything policies can observe of a text: which of their texts it equals, and which
    /// patterns match.
    fn observable_form(&self, text: &str) -> (Option<String>, Vec<bool>) {
        let same = self.texts.contains_key(text).then(|| text.to_owned());
        (same, self.patterns.iter().map(|pattern| pattern.matches(text)).collect())
    }
}

impl ComparedText {
    fn new(text: &str) -> Self {
        Self { forms: TextForms::of(text), urls: OnceLock::new() }
    }

    /// Whether it is a URL that leads to the same place as `text`, whose readings are `urls`. A URL
    /// with too many readings counts as one.
    fn is_url_of(&self, own: &str, read: UrlReader, text: &str, urls: &[String]) -> bool {
        let own = self.urls.get_or_init(|| read(own));
        own.as_ref().is_none_or(|own| own.iter().any(|one| one == text || urls.contains(one)))
    }
}

/// Whether a text can be read only as it is written.
pub(crate) fn is_plain(text: &str) -> bool {
    !any_within(text, &ScanBudget::new(text.len()), NESTED_MAX, &mut |reading| reading != text)
}

/// Whether some reading of a text, or of a text embedded in it, satisfies `is`. Input beyond the
/// limits counts as satisfying it.
fn any_within(
    text: &str,
    budget: &ScanBudget,
    nested: usize,
    is: &mut dyn FnMut(&str) -> bool,
) -> bool {
    if any_reading(text, budget, &mut *is) {
        return true;
    }
    let json = match parse_embedded(text) {
        EmbeddedJson::Nothing => return false,
        EmbeddedJson::Json(json) => json,
        EmbeddedJson::Unclear => {
            let plain = unescaped(text);
            let plain = plain.as_deref().unwrap_or(text);
            return is(plain) || pieces(plain).any(is);
        }
    };
    let Some(nested) = nested.checked_sub(1) else { return true };
    let mut inner = Vec::new();
    if strings(&json, &mut inner) != Ok(true) || inner.len() > EMBEDDED_MAX {
        return true;
    }
    inner.iter().any(|text| any_within(text, budget, nested, is))
}

/// Collects the texts in a JSON value; false if it is nested too deeply.
fn strings(json: &[u8], all: &mut Vec<String>) -> Result<bool, JsonFault> {
    let mut depth = 0;
    for token in tokens(json)? {
        match token? {
            JsonToken::Open(_) if depth == DEPTH_MAX => return Ok(false),
            JsonToken::Open(_) => depth += 1,
            JsonToken::Close => depth -= 1,
            JsonToken::String(text) => all.push(text.decode().into_owned()),
            JsonToken::Key(_) | JsonToken::Scalar(_) => {}
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_readings_that_make_a_difference_are_kept() {
        let mut wanted = ComparedValues::default();
        wanted.texts.insert("all".to_owned(), Arc::new(ComparedText::new("all")));
        assert_eq!(wanted.readings("one", None), Ok(vec![]));
        assert_eq!(wanted.readings("all", None), Ok(vec![]));
        assert_eq!(wanted.readings(" %6fne\n", None), Ok(vec![]));
        for text in
            [" all", "%61ll", "ａll", "\"all\"", "[\"x\",[\"all\"]]", "{\"a\":\"al\\u006c\"}"]
        {
            assert_eq!(wanted.readings(text, None), Ok(vec!["all".to_owned()]), "{text}");
        }
        let many = format!("[{}\"x\"]", "\"x\",".repeat(EMBEDDED_MAX));
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(wanted.readings(&many, None), Err(TooManyReadingsError));
        assert_eq!(wanted.readings(&deep, None), Err(TooManyReadingsError));
    }
}
