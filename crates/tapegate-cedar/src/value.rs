//! Converts JSON to Cedar values.
//!
//! This cannot fail. A value that does not match its declared type is a [`MisfitArgument`]: it is not
//! converted, and policies that read it are not evaluated. The same goes for values that JSON
//! parsers understand differently, such as members that occur twice, or twice up to spelling. If a
//! value matches but may be read differently, the other readings are returned too.

mod call_arguments;
mod leaf;
mod number;

use cedar_policy::RestrictedExpression;
use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr};
use tapegate_core::lenient::key::fold;

use crate::UrlReader;
use crate::attribute_tree::AttributeTree;
use crate::types::{CedarType, RecordType};
use number::number;

pub(crate) use call_arguments::{
    AlternativeReadings, CallArguments, CedarMembers, CedarValue, FolderFacts, MemberTypes,
    MisfitArgument, record,
};

/// How deeply values may be nested.
const DEPTH_MAX: usize = 64;

/// Converts those arguments that are read.
pub(crate) fn arguments(
    raw: Option<&[u8]>,
    reads: &AttributeTree,
    types: MemberTypes<'_>,
    url_reader: Option<UrlReader>,
) -> CallArguments {
    let mut maker = ValueBuilder { url_reader, ..ValueBuilder::default() };
    let members = match raw {
        // Arguments that no policy reads are not even parsed.
        Some(raw) if reads.whole || reads.read => maker.read_arguments(raw, reads, types),
        _ => Ok(Vec::new()),
    };
    let members = members.unwrap_or_else(|fault| {
        maker.path.clear();
        maker.add_misfit(format!("they are not JSON: {fault}"));
        Vec::new()
    });
    CallArguments { members, ..maker.made }
}

impl<'a> MemberTypes<'a> {
    fn place(&self, name: &str, tree: Option<&'a AttributeTree>) -> ValueContext<'a> {
        let of =
            |types: Option<&'a RecordType>| types?.members.get(name).map(|member| &member.kind);
        let implied = of(self.implied);
        ValueContext {
            tree,
            kind: of(self.declared).or(implied).unwrap_or(&CedarType::Any),
            implied,
        }
    }
}

#[derive(Default)]
struct ValueBuilder {
    path: Vec<String>,
    made: CallArguments,
    /// Whether texts with more than one reading are misfits.
    plain_only: bool,
    url_reader: Option<UrlReader>,
}

impl ValueBuilder {
    fn add_misfit(&mut self, reason: impl Into<String>) {
        let (path, reason) = (self.path.clone(), reason.into());
        self.made.misfits.push(MisfitArgument { path, reason, climbs: false });
    }

    fn read_arguments(
        &mut self,
        raw: &[u8],
        reads: &AttributeTree,
        types: MemberTypes<'_>,
    ) -> Result<CedarMembers, JsonFault> {
        let mut cursor = Cursor::new(raw)?;
        match cursor.kind()? {
            JsonKind::Object => {
                // A policy that compares the whole record cannot be evaluated for each reading of
                // each text in it.
                self.plain_only = reads.wanted.is_some();
                let members = self.object(&mut cursor, Some(reads), types, DEPTH_MAX)?;
                cursor.expect_end()?;
                Ok(members)
            }
            JsonKind::Null => Ok(Vec::new()),
            _ => {
                self.add_misfit("they are not an object");
                Ok(Vec::new())
            }
        }
    }

    /// The members of an object that are read; all of them if there is no `tree`.
    fn object(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&AttributeTree>,
        types: MemberTypes<'_>,
        depth: usize,
    ) -> Result<CedarMembers, JsonFault> {
        let mut members: CedarMembers = Vec::new();
        let mut seen: Vec<String> = Vec::new();
        let all = tree.is_none_or(AttributeTree::is_read_whole);
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            let name = key.decode();
            let inner = tree.and_then(|tree| tree.members.get(&*name));
            if inner.is_none()
                && let Some(tree) = tree
            {
                // Only for keys that no policy reads: a key that is read is itself, whatever else
                // resembles it.
                self.check_lookalike(tree, types.declared, key, &name);
            }
            if inner.is_none() && !all {
                cursor.value()?;
                continue;
            }
            let name = name.into_owned();
            if seen.contains(&name) {
                self.path.push(name);
                self.add_misfit("it occurs twice");
                let twice = self.path.pop();
                // Readers take the first or the last, so policies see neither.
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
    fn check_lookalike(
        &mut self,
        tree: &AttributeTree,
        declared: Option<&RecordType>,
        key: JsonStr<'_>,
        name: &str,
    ) {
        // A declared argument is one of its own, however similar its name is to another.
        if tree.members.is_empty() || declared.is_some_and(|own| own.members.contains_key(name)) {
            return;
        }
        let folded = fold(key);
        if let Some((own, _)) = tree.members.iter().find(|(_, tree)| tree.folded == folded) {
            self.path.push(own.clone());
            self.add_misfit(format!(
                "there is also `{name}`, which servers may read as the same key"
            ));
            self.path.pop();
        }
    }

    fn value(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: ValueContext<'_>,
        depth: usize,
    ) -> Result<Option<CedarValue>, JsonFault> {
        let found = cursor.kind()?;
        let made = match (found, context.kind) {
            (JsonKind::Null, kind) => {
                cursor.value()?;
                self.null(context.tree, kind);
                None
            }
            // Without a type and with an unknown counterpart, a comparison would silently be false.
            (found, CedarType::Any) if found != JsonKind::String && context.is_compared() => {
                self.add_misfit(format!("it is {}, not text", kind_text(found)));
                cursor.value()?;
                None
            }
            (JsonKind::String, CedarType::String | CedarType::Any) => {
                self.string(cursor, context.tree)?
            }
            (JsonKind::Bool, CedarType::Bool | CedarType::Any) => {
                Some(CedarValue::One(RestrictedExpression::new_bool(cursor.value()? == b"true")))
            }
            (JsonKind::Number, CedarType::Long | CedarType::Decimal | CedarType::Any) => {
                self.number(cursor.value()?, context).map(CedarValue::One)
            }
            (JsonKind::Array, CedarType::Set(_) | CedarType::Any) => {
                self.array(cursor, context, depth)?
            }
            (JsonKind::Object, CedarType::Record(_) | CedarType::Any) => {
                self.record(cursor, context, depth)?
            }
            (found, kind) => {
                self.add_misfit(format!("it is {}, not {}", kind_text(found), kind.name()));
                cursor.value()?;
                None
            }
        };
        if matches!(found, JsonKind::Bool | JsonKind::Number | JsonKind::Object)
            && context.wants_path()
        {
            self.add_misfit(format!("it is {}, not a path", kind_text(found)));
        }
        Ok(made)
    }

    fn number(&mut self, text: &[u8], context: ValueContext<'_>) -> Option<RestrictedExpression> {
        let made = number(text, context.kind);
        if made.is_none() {
            self.add_misfit(match context.kind {
                CedarType::Long => "it is not a 64-bit whole number",
                _ => "it has more than four decimal places, or too many digits before them",
            });
        } else if context.tree.is_some_and(|tree| tree.wanted.is_some()) {
            self.alternatives(number::readings(text, context.kind));
        }
        made
    }

    fn string(
        &mut self,
        cursor: &mut Cursor<'_>,
        tree: Option<&AttributeTree>,
    ) -> Result<Option<CedarValue>, JsonFault> {
        let Some(text) = exact_text(cursor.string()?) else {
            self.add_misfit("it contains an unpaired surrogate");
            return Ok(None);
        };
        self.text(&text, tree);
        Ok(Some(CedarValue::One(RestrictedExpression::new_string(text))))
    }

    fn array(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: ValueContext<'_>,
        depth: usize,
    ) -> Result<Option<CedarValue>, JsonFault> {
        let Some(depth) = self.enter_depth(cursor, depth)? else { return Ok(None) };
        let of = if let CedarType::Set(of) = context.kind { of } else { &CedarType::Any };
        let raw = cursor.value()?;
        let mut cursor = Cursor::new(raw)?;
        let mut elements = Vec::new();
        cursor.open()?;
        // Policies cannot read into elements, so `elements` examines the list as a whole.
        let element = ValueContext { tree: None, kind: of, implied: None };
        while cursor.next_item()? {
            let value = self.value(&mut cursor, element, depth)?;
            elements.extend(value.and_then(|value| match value {
                CedarValue::One(value) => Some(value),
                CedarValue::Record(members) => record(members),
            }));
        }
        if let Some(tree) = context.tree {
            self.elements(raw, &elements, tree, of)?;
        }
        Ok(Some(CedarValue::One(RestrictedExpression::new_set(elements))))
    }

    fn record(
        &mut self,
        cursor: &mut Cursor<'_>,
        context: ValueContext<'_>,
        depth: usize,
    ) -> Result<Option<CedarValue>, JsonFault> {
        let Some(depth) = self.enter_depth(cursor, depth)? else { return Ok(None) };
        let declared = context.kind.record();
        let implied = context.implied.and_then(CedarType::record);
        let types = MemberTypes { declared, implied };
        let outside = self.plain_only;
        self.plain_only |= context.tree.is_some_and(|tree| tree.wanted.is_some());
        let members = self.object(cursor, context.tree, types, depth)?;
        self.plain_only = outside;
        Ok(Some(CedarValue::Record(members)))
    }

    /// The remaining depth; at zero, the value is skipped.
    fn enter_depth(
        &mut self,
        cursor: &mut Cursor<'_>,
        depth: usize,
    ) -> Result<Option<usize>, JsonFault> {
        let left = depth.checked_sub(1);
        if left.is_none() {
            self.add_misfit("it is nested too deeply");
            cursor.value()?;
        }
        Ok(left)
    }
}

/// The facts about the place of a value.
#[derive(Clone, Copy)]
struct ValueContext<'a> {
    /// How it is read.
    tree: Option<&'a AttributeTree>,
    kind: &'a CedarType,
    /// The type that policies use it as.
    implied: Option<&'a CedarType>,
}

impl ValueContext<'_> {
    /// Whether it is compared with something that is not known before the call.
    fn is_compared(&self) -> bool {
        let wanted = self.tree.and_then(|tree| tree.wanted.as_ref());
        wanted.is_some_and(|wanted| wanted.other)
            && self.tree.is_some_and(AttributeTree::is_read_whole)
    }

    fn wants_path(&self) -> bool {
        self.tree.is_some_and(|tree| !tree.folders.is_empty())
    }
}

/// The exact text; `None` if it contains a lone surrogate, which UTF-8 cannot encode.
fn exact_text(text: JsonStr<'_>) -> Option<String> {
    if !text.escaped {
        return Some(text.text().to_owned());
    }
    let mut bytes = Vec::new();
    text.write_value_bytes(&mut bytes);
    String::from_utf8(bytes).ok()
}

fn kind_text(kind: JsonKind) -> &'static str {
    match kind {
        JsonKind::Object => "an object",
        JsonKind::Array => "an array",
        JsonKind::String => "text",
        JsonKind::Number => "a number",
        JsonKind::Bool => "true or false",
        JsonKind::Null => "null",
    }
}

#[cfg(test)]
mod tests;
