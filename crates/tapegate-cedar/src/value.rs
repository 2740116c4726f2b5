//! Converts JSON to Cedar values.
//!
//! This cannot fail. A value that does not match its declared type is a [`Misfit`]: it is not
//! converted, and policies that read it are not evaluated. The same goes for values that JSON
//! parsers understand differently, such as members that occur twice, or twice up to spelling. If a
//! value matches but may be read differently, the other readings are returned too.

mod leaf;
mod made;
mod number;

use cedar_policy::RestrictedExpression;
use tapegate_core::json::{Cursor, Fault, Kind, Str};
use tapegate_core::lenient::key::fold;

use crate::UrlReader;
use crate::tree::Tree;
use crate::types::{Record, Type};
use number::number;

pub(crate) use made::{
    Alternatives, Arguments, FolderFacts, MemberTypes, Members, Misfit, Shown, record,
};

/// How deeply values may be nested.
const DEPTH_MAX: usize = 64;

/// Converts those arguments that are read.
pub(crate) fn arguments(
    raw: Option<&[u8]>,
    reads: &Tree,
    types: MemberTypes<'_>,
    url_reader: Option<UrlReader>,
) -> Arguments {
    let mut maker = Maker { url_reader, ..Maker::default() };
    let members = match raw {
        Some(raw) if reads.whole || reads.read => maker.top(raw, reads, types),
        _ => Ok(Vec::new()),
    };
    let members = members.unwrap_or_else(|fault| {
        maker.path.clear();
        maker.misfit(format!("they are not JSON: {fault}"));
        Vec::new()
    });
    Arguments { members, ..maker.made }
}

impl<'a> MemberTypes<'a> {
    fn place(&self, name: &str, tree: Option<&'a Tree>) -> Place<'a> {
        let of = |types: Option<&'a Record>| types?.members.get(name).map(|member| &member.kind);
        let implied = of(self.implied);
        Place { tree, kind: of(self.declared).or(implied).unwrap_or(&Type::Any), implied }
    }
}

#[derive(Default)]
struct Maker {
    path: Vec<String>,
    made: Arguments,
    /// Whether texts with more than one reading are misfits.
    plain_only: bool,
    url_reader: Option<UrlReader>,
}

impl Maker {
    fn misfit(&mut self, why: impl Into<String>) {
        let (path, why) = (self.path.clone(), why.into());
        self.made.misfits.push(Misfit { path, why, climbs: false });
    }

    fn top(&mut self, raw: &[u8], reads: &Tree, types: MemberTypes<'_>) -> Result<Members, Fault> {
        let mut cursor = Cursor::new(raw)?;
        match cursor.kind()? {
            Kind::Object => {
                self.plain_only = reads.wanted.is_some();
                let members = self.object(&mut cursor, Some(reads), types, DEPTH_MAX)?;
                cursor.end()?;
                Ok(members)
            }
            Kind::Null => Ok(Vec::new()),
            _ => {
                self.misfit("they are not an object");
                Ok(Vec::new())
            }
        }
    }

    /// The members of an object that are read; all of them if there is no `tree`.
    fn object(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&Tree>,
        types: MemberTypes<'_>,
        depth: usize,
    ) -> Result<Members, Fault> {
        let mut members: Members = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let all = tree.is_none_or(Tree::takes_all);
        cursor.open()?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            let name = key.decode();
            let inner = tree.and_then(|tree| tree.members.get(&*name));
            if inner.is_none()
                && let Some(tree) = tree
            {
                self.lookalike(tree, types.declared, key, &name);
            }
            if inner.is_none() && !all {
                cursor.value()?;
                continue;
            }
            let name = name.into_owned();
            if seen.contains(&name) {
                self.path.push(name);
                self.misfit("it occurs twice");
                let twice = self.path.pop();
                members.retain(|(name, _)| Some(name) != twice.as_ref());
                cursor.value()?;
            } else {
                let place = types.place(&name, inner);
                self.path.push(name);
                let value = self.value(cursor, place, depth)?;
                let name = self.path.pop().unwrap_or_default();
                members.extend(value.map(|value| (name.clone(), value)));
                seen.push(name);
            }
        }
        Ok(members)
    }

    /// Reports a key that no policy reads, but that a lenient server takes for one that is read.
    fn lookalike(&mut self, tree: &Tree, declared: Option<&Record>, key: Str<'_>, name: &str) {
        if tree.members.is_empty() || declared.is_some_and(|own| own.members.contains_key(name)) {
            return;
        }
        let folded = fold(key);
        if let Some((own, _)) = tree.members.iter().find(|(_, tree)| tree.folded == folded) {
            self.path.push(own.clone());
            self.misfit(format!("there is also `{name}`, which servers may read as the same key"));
            self.path.pop();
        }
    }

    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        place: Place<'_>,
        depth: usize,
    ) -> Result<Option<Shown>, Fault> {
        let found = cursor.kind()?;
        let made = match (found, place.kind) {
            (Kind::Null, kind) => {
                cursor.value()?;
                self.null(place.tree, kind);
                None
            }
            (found, Type::Any) if found != Kind::String && place.is_compared() => {
                self.misfit(format!("it is {}, not text", say(found)));
                cursor.value()?;
                None
            }
            (Kind::String, Type::String | Type::Any) => self.string(cursor, place.tree)?,
            (Kind::Bool, Type::Bool | Type::Any) => {
                Some(Shown::One(RestrictedExpression::new_bool(cursor.value()? == b"true")))
            }
            (Kind::Number, Type::Long | Type::Decimal | Type::Any) => {
                self.number(cursor.value()?, place).map(Shown::One)
            }
            (Kind::Array, Type::Set(_) | Type::Any) => self.array(cursor, place, depth)?,
            (Kind::Object, Type::Record(_) | Type::Any) => self.record(cursor, place, depth)?,
            (found, kind) => {
                self.misfit(format!("it is {}, not {}", say(found), kind.name()));
                cursor.value()?;
                None
            }
        };
        if matches!(found, Kind::Bool | Kind::Number | Kind::Object) && place.wants_path() {
            self.misfit(format!("it is {}, not a path", say(found)));
        }
        Ok(made)
    }

    fn number(&mut self, text: &[u8], place: Place<'_>) -> Option<RestrictedExpression> {
        let made = number(text, place.kind);
        if made.is_none() {
            self.misfit(match place.kind {
                Type::Long => "it is not a 64-bit whole number",
                _ => "it has more than four decimal places, or too many digits before them",
            });
        } else if place.tree.is_some_and(|tree| tree.wanted.is_some()) {
            self.alternatives(number::readings(text, place.kind));
        }
        made
    }

    fn string(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&Tree>,
    ) -> Result<Option<Shown>, Fault> {
        let Some(text) = exact(cursor.string()?) else {
            self.misfit("it contains an unpaired surrogate");
            return Ok(None);
        };
        self.text(&text, tree);
        Ok(Some(Shown::One(RestrictedExpression::new_string(text))))
    }

    fn array(
        &mut self,
        cursor: &mut Cursor<'_>,
        place: Place<'_>,
        depth: usize,
    ) -> Result<Option<Shown>, Fault> {
        let Some(depth) = self.deeper(cursor, depth)? else { return Ok(None) };
        let of = if let Type::Set(of) = place.kind { of } else { &Type::Any };
        let raw = cursor.value()?;
        let mut cursor = Cursor::new(raw)?;
        let mut elements = Vec::new();
        cursor.open()?;
        let mut first = true;
        let element = Place { tree: None, kind: of, implied: None };
        while cursor.element(&mut first)? {
            let value = self.value(&mut cursor, element, depth)?;
            elements.extend(value.and_then(|value| match value {
                Shown::One(value) => Some(value),
                Shown::Record(members) => record(members),
            }));
        }
        if let Some(tree) = place.tree {
            self.elements(raw, &elements, tree, of)?;
        }
        Ok(Some(Shown::One(RestrictedExpression::new_set(elements))))
    }

    fn record(
        &mut self,
        cursor: &mut Cursor<'_>,
        place: Place<'_>,
        depth: usize,
    ) -> Result<Option<Shown>, Fault> {
        let Some(depth) = self.deeper(cursor, depth)? else { return Ok(None) };
        let declared = place.kind.record();
        let implied = place.implied.and_then(Type::record);
        let types = MemberTypes { declared, implied };
        let outside = self.plain_only;
        self.plain_only |= place.tree.is_some_and(|tree| tree.wanted.is_some());
        let members = self.object(cursor, place.tree, types, depth)?;
        self.plain_only = outside;
        Ok(Some(Shown::Record(members)))
    }

    /// The remaining depth; at zero, the value is skipped.
    fn deeper(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Option<usize>, Fault> {
        let left = depth.checked_sub(1);
        if left.is_none() {
            self.misfit("it is nested too deeply");
            cursor.value()?;
        }
        Ok(left)
    }
}

/// The facts about the place of a value.
#[derive(Clone, Copy)]
struct Place<'a> {
    /// How it is read.
    tree: Option<&'a Tree>,
    kind: &'a Type,
    /// The type that policies use it as.
    implied: Option<&'a Type>,
}

impl Place<'_> {
    /// Whether it is compared with something that is not known before the call.
    fn is_compared(&self) -> bool {
        let wanted = self.tree.and_then(|tree| tree.wanted.as_ref());
        wanted.is_some_and(|wanted| wanted.other) && self.tree.is_some_and(Tree::takes_all)
    }

    fn wants_path(&self) -> bool {
        self.tree.is_some_and(|tree| !tree.folders.is_empty())
    }
}

/// The exact text; `None` if it contains a lone surrogate, which UTF-8 cannot encode.
fn exact(text: Str<'_>) -> Option<String> {
    if !text.escaped {
        return Some(text.text().to_owned());
    }
    let mut bytes = Vec::new();
    text.exact(&mut bytes);
    String::from_utf8(bytes).ok()
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

#[cfg(test)]
mod tests;
