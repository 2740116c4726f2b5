//! From JSON to values of Cedar.
//!
//! This cannot fail. A value that does not fit the type it is declared to have is a [`Misfit`]: it
//! is not made at all, and policies that read it are not asked. So is what different readers of
//! JSON understand differently: members that stand twice, or twice but for their case.

use cedar_policy::RestrictedExpression;
use tapegate_core::json::{Cursor, Fault, Kind, Number};

use crate::reads::Tree;
use crate::types::{Record, Type};

/// How deep values may be nested.
const DEPTH_MAX: usize = 64;
/// The digits after the point that a decimal of Cedar has.
const DECIMAL_DIGITS: i64 = 4;

/// An argument that Cedar cannot be shown as what it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    /// Where it is; empty for the arguments as a whole.
    pub(crate) path: Vec<String>,
    /// What is wrong with it.
    pub(crate) why: String,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    pub(crate) members: Vec<(String, RestrictedExpression)>,
    pub(crate) misfits: Vec<Misfit>,
}

/// Makes values of those arguments that are read.
pub(crate) fn arguments(raw: Option<&[u8]>, reads: &Tree, types: Option<&Record>) -> Arguments {
    let mut maker = Maker { path: Vec::new(), misfits: Vec::new() };
    let members = match raw {
        Some(raw) if reads.whole || reads.read => maker.top(raw, reads, types),
        _ => Ok(Vec::new()),
    };
    let members = members.unwrap_or_else(|fault| {
        maker.path.clear();
        maker.misfit(format!("they are not JSON: {fault}"));
        Vec::new()
    });
    Arguments { members, misfits: maker.misfits }
}

struct Maker {
    path: Vec<String>,
    misfits: Vec<Misfit>,
}

type Members = Vec<(String, RestrictedExpression)>;

impl Maker {
    fn misfit(&mut self, why: impl Into<String>) {
        self.misfits.push(Misfit { path: self.path.clone(), why: why.into() });
    }

    fn top(&mut self, raw: &[u8], reads: &Tree, types: Option<&Record>) -> Result<Members, Fault> {
        let mut cursor = Cursor::new(raw)?;
        match cursor.kind()? {
            Kind::Object => {
                let tree = (!reads.whole).then_some(reads);
                let members = self.object(&mut cursor, tree, types, DEPTH_MAX)?;
                cursor.end()?;
                Ok(members)
            }
            Kind::Null => Ok(Vec::new()),
            _ => {
                self.misfit("they are no object");
                Ok(Vec::new())
            }
        }
    }

    /// The members of an object that are read; all of them if there is no `tree`.
    fn object(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&Tree>,
        types: Option<&Record>,
        depth: usize,
    ) -> Result<Members, Fault> {
        let mut members: Members = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        cursor.open()?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let key = key.decode();
            let inner = match tree {
                None => None,
                Some(tree) => match tree.members.get(&*key) {
                    Some(inner) => Some(inner),
                    None => {
                        self.twin(tree, types, &key);
                        cursor.value()?;
                        continue;
                    }
                },
            };
            let name = key.into_owned();
            if seen.contains(&name) {
                self.path.push(name);
                self.misfit("it is there twice");
                let twice = self.path.pop();
                members.retain(|(name, _)| Some(name) != twice.as_ref());
                cursor.value()?;
            } else {
                let inner = inner.filter(|inner| !inner.members.is_empty() && !inner.whole);
                let member = types.and_then(|types| types.members.get(&name));
                let kind = member.map_or(&Type::Any, |member| &member.kind);
                self.path.push(name);
                let value = self.value(cursor, inner, kind, depth)?;
                let name = self.path.pop().unwrap_or_default();
                members.extend(value.map(|value| (name.clone(), value)));
                seen.push(name);
            }
        }
        Ok(members)
    }

    /// A key that nobody reads, but that a careless server takes for one that is read.
    fn twin(&mut self, tree: &Tree, types: Option<&Record>, key: &str) {
        if types.is_some_and(|types| types.members.contains_key(key)) {
            return;
        }
        if let Some(name) = tree.members.keys().find(|name| folds_to(name, key)) {
            self.path.push(name.clone());
            self.misfit(format!("there is also `{key}`, which differs only in case"));
            self.path.pop();
        }
    }

    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&Tree>,
        kind: &Type,
        depth: usize,
    ) -> Result<Option<RestrictedExpression>, Fault> {
        let found = cursor.kind()?;
        let made = match (found, kind) {
            (Kind::Null, _) => {
                cursor.value()?;
                return Ok(None);
            }
            (Kind::String, Type::String | Type::Any) => self.string(cursor)?,
            (Kind::Bool, Type::Bool | Type::Any) => {
                Some(RestrictedExpression::new_bool(cursor.value()? == b"true"))
            }
            (Kind::Number, Type::Long | Type::Decimal | Type::Any) => {
                let text = cursor.value()?;
                let made = number(text, kind);
                if made.is_none() {
                    self.misfit(match kind {
                        Type::Long => "it is no whole number of 64 bits",
                        _ => "it has more than four digits after the point, or too many before it",
                    });
                }
                made
            }
            (Kind::Array, Type::Set(_) | Type::Any) => self.array(cursor, kind, depth)?,
            (Kind::Object, Type::Record(_) | Type::Any) => {
                self.record(cursor, tree, kind, depth)?
            }
            (found, kind) => {
                self.misfit(format!("it is {} and not {}", say(found), kind.name()));
                cursor.value()?;
                None
            }
        };
        Ok(made)
    }

    fn string(&mut self, cursor: &mut Cursor<'_>) -> Result<Option<RestrictedExpression>, Fault> {
        let text = cursor.string()?;
        if !text.escaped {
            return Ok(Some(RestrictedExpression::new_string(text.text().to_owned())));
        }
        let mut bytes = Vec::new();
        text.exact(&mut bytes);
        // Only half of a surrogate pair is no UTF-8.
        let made = String::from_utf8(bytes).ok().map(RestrictedExpression::new_string);
        if made.is_none() {
            self.misfit("it holds half a character");
        }
        Ok(made)
    }

    fn array(
        &mut self,
        cursor: &mut Cursor<'_>,
        kind: &Type,
        depth: usize,
    ) -> Result<Option<RestrictedExpression>, Fault> {
        let Some(depth) = self.deeper(cursor, depth)? else { return Ok(None) };
        let of = if let Type::Set(of) = kind { of } else { &Type::Any };
        let mut elements = Vec::new();
        cursor.open()?;
        let mut first = true;
        while cursor.element(&mut first)? {
            elements.extend(self.value(cursor, None, of, depth)?);
        }
        Ok(Some(RestrictedExpression::new_set(elements)))
    }

    fn record(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&Tree>,
        kind: &Type,
        depth: usize,
    ) -> Result<Option<RestrictedExpression>, Fault> {
        let Some(depth) = self.deeper(cursor, depth)? else { return Ok(None) };
        let types = if let Type::Record(types) = kind { Some(types) } else { None };
        let members = self.object(cursor, tree, types, depth)?;
        // Members that stand twice are gone, so this is always a record.
        Ok(RestrictedExpression::new_record(members).ok())
    }

    /// The depth that is left; beyond it, the value is passed over.
    fn deeper(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<usize>, Fault> {
        let left = depth.checked_sub(1);
        if left.is_none() {
            self.misfit("it is nested too deep");
            cursor.value()?;
        }
        Ok(left)
    }
}

fn say(kind: Kind) -> &'static str {
    match kind {
        Kind::Object => "an object",
        Kind::Array => "an array",
        Kind::String => "text",
        Kind::Number => "a number",
        Kind::Bool => "true or false",
        Kind::Null => "null",
    }
}

/// A number as the type it should have; of none, a whole number is a `Long`, one that a decimal can
/// hold is that, and all others are text.
fn number(text: &[u8], kind: &Type) -> Option<RestrictedExpression> {
    let long = || scaled(text, 0).map(RestrictedExpression::new_long);
    let decimal = || scaled(text, DECIMAL_DIGITS).map(decimal);
    match kind {
        Type::Long => long(),
        Type::Decimal => decimal(),
        _ => long().or_else(decimal).or_else(|| {
            Some(RestrictedExpression::new_string(String::from_utf8_lossy(text).into_owned()))
        }),
    }
}

/// A number times a power of ten, if that is a whole number of 64 bits.
fn scaled(text: &[u8], power: i64) -> Option<i64> {
    const DIGITS_MAX: i64 = 19;
    let number = Number::read(text);
    let zeros = number.power().ok()?.checked_add(power)?;
    let count = i64::try_from(number.digits().count()).ok()?;
    if count == 0 {
        return Some(0);
    }
    if zeros < 0 || count.checked_add(zeros)? > DIGITS_MAX {
        return None;
    }
    let digits = number.digits().fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'));
    let value = digits * 10_i128.pow(u32::try_from(zeros).ok()?);
    i64::try_from(if number.is_negative() { -value } else { value }).ok()
}

fn decimal(scaled: i64) -> RestrictedExpression {
    let sign = if scaled < 0 { "-" } else { "" };
    let (whole, fraction) = (scaled.unsigned_abs() / 10_000, scaled.unsigned_abs() % 10_000);
    RestrictedExpression::new_decimal(format!("{sign}{whole}.{fraction:04}"))
}

/// Whether two names differ at most in case, as lenient readers compare them.
fn folds_to(one: &str, two: &str) -> bool {
    let fold = |text: &str| -> Vec<char> {
        let chars = text.chars().map(|one| match one {
            'ſ' => 's',
            '\u{212a}' => 'k',
            one => one,
        });
        chars.flat_map(char::to_lowercase).collect()
    };
    if one.is_ascii() && two.is_ascii() {
        one.eq_ignore_ascii_case(two)
    } else {
        fold(one) == fold(two)
    }
}

#[cfg(test)]
mod tests;
