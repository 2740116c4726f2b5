//! What a call names: the name or URI in its params, or several.

use std::borrow::Cow;

use tapegate_core::frame::{self, Envelope};
use tapegate_core::json::{JsonStr, member, members};

use super::MessageFault;
use crate::gated_requests::GatedMethod;

/// What a call names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallTarget<'a> {
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
pub fn find_targets<'a>(
    envelope: &Envelope<'a>,
    gated: GatedMethod,
) -> Result<CallTarget<'a>, MessageFault> {
    let subscribes = matches!(gated, GatedMethod::Subscribe | GatedMethod::Unsubscribe);
    if subscribes && envelope.params.is_some_and(has_only_meta) {
        return Ok(CallTarget::Nothing);
    }
    let one = match gated {
        GatedMethod::Call | GatedMethod::Prompt => envelope.name,
        GatedMethod::Read | GatedMethod::Subscribe | GatedMethod::Unsubscribe => envelope.uri,
        GatedMethod::Complete => envelope.params.and_then(completion_target),
        GatedMethod::Listen => return subscription_targets(envelope.params.unwrap_or(b"{}")),
    };
    name(one.ok_or(MessageFault::Nameless)?).map(CallTarget::One)
}

/// Whether `_meta` is the only member.
fn has_only_meta(params: &[u8]) -> bool {
    let mut members = members(params);
    let is_meta = matches!(members.next(), Some(Ok((key, _))) if key.is("_meta"));
    is_meta && members.next().is_none()
}

/// The prompt or resource whose arguments are completed.
fn completion_target(params: &[u8]) -> Option<JsonStr<'_>> {
    let wanted = member(params, "ref")?;
    let kind = JsonStr::read(member(wanted, "type")?)?;
    // With both members, servers may disagree about which one counts.
    let (prompt, resource) = (member(wanted, "name"), member(wanted, "uri"));
    match (prompt, resource) {
        (Some(name), None) if kind.is("ref/prompt") => JsonStr::read(name),
        (None, Some(uri)) if kind.is("ref/resource") => JsonStr::read(uri),
        _ => None,
    }
}

/// The resources whose changes are subscribed to. Only the form that the protocol defines is
/// accepted, since a server might read subscriptions from a string or a list.
fn subscription_targets(params: &[u8]) -> Result<CallTarget<'_>, MessageFault> {
    if params.first() != Some(&b'{') {
        return Err(MessageFault::Nameless);
    }
    let wanted = match member(params, "notifications") {
        None | Some(b"null") => return Ok(CallTarget::Nothing),
        Some(wanted) if wanted.first() == Some(&b'{') => wanted,
        Some(_) => return Err(MessageFault::Nameless),
    };
    // A Go server would read URIs from `ResourceSubscriptions` that no rule has seen.
    if has_lookalike_member(wanted, "resourceSubscriptions") {
        return Err(MessageFault::Twin);
    }
    let uris = match member(wanted, "resourceSubscriptions") {
        None | Some(b"null") => return Ok(CallTarget::Nothing),
        Some(uris) if uris.first() == Some(&b'[') => frame::array_items(uris),
        Some(_) => return Err(MessageFault::Nameless),
    };
    if uris.is_empty() {
        return Ok(CallTarget::Nothing);
    }
    let names =
        uris.into_iter().map(|item| name(JsonStr::read(item).ok_or(MessageFault::Nameless)?));
    names.collect::<Result<_, _>>().map(CallTarget::Each)
}

/// Whether an object has a member whose name is confusable with `name`, but not equal to it.
fn has_lookalike_member(object: &[u8], name: &str) -> bool {
    members(object)
        .flatten()
        .any(|(key, _)| !key.is(name) && frame::lenient_key_match(key, &[name]).is_some())
}

/// The decoded name, if all readers decode it alike.
fn name(text: JsonStr<'_>) -> Result<Cow<'_, str>, MessageFault> {
    // Decoders replace it, drop it or fail, so the gate and the server would compare different
    // names.
    if text.escaped && has_lone_surrogate(text) {
        return Err(MessageFault::Surrogate);
    }
    let name = text.decode();
    if text.escaped && name.contains('\0') { Err(MessageFault::Nul) } else { Ok(name) }
}

/// Whether a string contains an unpaired surrogate.
pub(super) fn has_lone_surrogate(text: JsonStr<'_>) -> bool {
    text.scalars().any(|code| (0xd800..0xe000).contains(&code))
}
