//! What a call names: the name or URI in its params, or several.

use std::borrow::Cow;

use tapegate_core::frame::{self, Envelope};
use tapegate_core::json::{Cursor, Kind, Str, member};

use super::Fault;
use crate::gated::Gated;

/// What a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target<'a> {
    /// One item.
    One(Cow<'a, str>),
    /// Any number of items.
    Each(Vec<Cow<'a, str>>),
    /// No item: the call is about changes of lists, or about nothing at all.
    Nothing,
}

/// What a call names. A call that should name something but does not is at fault.
///
/// A subscription with nothing but `_meta` asks for nothing: clients use it to find out whether the
/// server still has the method, which 2026-07-28 removed. The server must answer it.
pub fn targets<'a>(said: &Envelope<'a>, gated: Gated) -> Result<Target<'a>, Fault> {
    let subscribes = matches!(gated, Gated::Subscribe | Gated::Unsubscribe);
    if subscribes && said.params.is_some_and(has_only_meta) {
        return Ok(Target::Nothing);
    }
    let one = match gated {
        Gated::Call | Gated::Prompt => said.name,
        Gated::Read | Gated::Subscribe | Gated::Unsubscribe => said.uri,
        Gated::Complete => said.params.and_then(completed),
        Gated::Listen => return listened(said.params.unwrap_or(b"{}")),
    };
    name(one.ok_or(Fault::Nameless)?).map(Target::One)
}

/// Whether `_meta` is the only member.
fn has_only_meta(params: &[u8]) -> bool {
    let members = || {
        let mut cursor = Cursor::new(params).ok()?;
        if cursor.open().ok()? != Kind::Object {
            return None;
        }
        let (mut first, mut only) = (true, false);
        while let Some(key) = cursor.key(&mut first).ok()? {
            if only || !key.is("_meta") {
                return None;
            }
            cursor.value().ok()?;
            only = true;
        }
        Some(only)
    };
    members() == Some(true)
}

/// The prompt or resource whose arguments are completed.
fn completed(params: &[u8]) -> Option<Str<'_>> {
    let wanted = member(params, "ref")?;
    let kind = string(member(wanted, "type")?)?;
    let (prompt, resource) = (member(wanted, "name"), member(wanted, "uri"));
    match (prompt, resource) {
        (Some(name), None) if kind.is("ref/prompt") => string(name),
        (None, Some(uri)) if kind.is("ref/resource") => string(uri),
        _ => None,
    }
}

/// The resources whose changes are subscribed to. Only the form that the protocol defines is
/// accepted, since a server might read subscriptions from a string or a list.
fn listened(params: &[u8]) -> Result<Target<'_>, Fault> {
    if params.first() != Some(&b'{') {
        return Err(Fault::Nameless);
    }
    let wanted = match member(params, "notifications") {
        None | Some(b"null") => return Ok(Target::Nothing),
        Some(wanted) if wanted.first() == Some(&b'{') => wanted,
        Some(_) => return Err(Fault::Nameless),
    };
    if has_twin(wanted, "resourceSubscriptions") {
        return Err(Fault::Twin);
    }
    let uris = match member(wanted, "resourceSubscriptions") {
        None | Some(b"null") => return Ok(Target::Nothing),
        Some(uris) if uris.first() == Some(&b'[') => frame::array_items(uris),
        Some(_) => return Err(Fault::Nameless),
    };
    if uris.is_empty() {
        return Ok(Target::Nothing);
    }
    let names = uris.into_iter().map(|item| name(string(item).ok_or(Fault::Nameless)?));
    names.collect::<Result<_, _>>().map(Target::Each)
}

/// Whether an object has a member whose name is confusable with `name`, but not equal to it.
fn has_twin(object: &[u8], name: &str) -> bool {
    let twin = || {
        let mut cursor = Cursor::new(object).ok()?;
        if cursor.open().ok()? != Kind::Object {
            return None;
        }
        let mut first = true;
        while let Some(key) = cursor.key(&mut first).ok()? {
            if !key.is(name) && frame::careless(key, &[name]).is_some() {
                return Some(());
            }
            cursor.value().ok()?;
        }
        None
    };
    twin().is_some()
}

/// The decoded name, if all readers decode it alike.
fn name(text: Str<'_>) -> Result<Cow<'_, str>, Fault> {
    if text.escaped && lone(text) {
        return Err(Fault::Surrogate);
    }
    let name = text.decode();
    if text.escaped && name.contains('\0') { Err(Fault::Nul) } else { Ok(name) }
}

/// Whether a string contains an unpaired surrogate.
pub(super) fn lone(text: Str<'_>) -> bool {
    text.scalars().any(|code| (0xd800..0xe000).contains(&code))
}

fn string(text: &[u8]) -> Option<Str<'_>> {
    let mut cursor = Cursor::new(text).ok()?;
    if cursor.kind().ok()? == Kind::String { cursor.string().ok() } else { None }
}
