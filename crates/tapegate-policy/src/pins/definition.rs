//! The canonical form of an item's definition.

use std::borrow::Cow;

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{JsonFault, JsonKind, JsonStr, map_members};
use tapegate_core::signature::canonical;

use crate::gated_requests::OfferKind;

/// The canonical text of an item's definition: the item without members that only describe its
/// state.
pub(super) fn definition(offer: OfferKind, item: &[u8]) -> Vec<u8> {
    let stable = match offer {
        // A file that grows is still the accepted file.
        OfferKind::Resource => without_members(item, &["size"], Some("annotations")),
        OfferKind::Template => without_members(item, &[], Some("annotations")),
        OfferKind::Tool | OfferKind::Prompt => Ok(item.to_vec()),
    };
    let text = canonical(&stable.unwrap_or_else(|_| item.to_vec()));
    // The canonical text is wrapped in brackets.
    text.get(1..text.len() - 1).unwrap_or_default().to_vec()
}

/// An object without some members; the member `inside` loses its `lastModified`.
fn without_members(
    object: &[u8],
    left_out: &[&str],
    inside: Option<&str>,
) -> Result<Vec<u8>, JsonFault> {
    if JsonKind::of(object)? != JsonKind::Object {
        return Ok(object.to_vec());
    }
    map_members(object, |key, value| {
        Ok(match inside {
            _ if is_one_of(key, left_out) => None,
            Some(name) if key.is(name) => {
                Some(Cow::Owned(without_members(value, &["lastModified"], None)?))
            }
            _ => Some(Cow::Borrowed(value)),
        })
    })
}

fn is_one_of(key: JsonStr<'_>, names: &[&str]) -> bool {
    // Only the exact name: a lookalike is not the state that the protocol defines, so it counts.
    lenient_key_match(key, names).is_some_and(|name| key.is(names[name]))
}
