//! The canonical form of an item's definition.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr};
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
    let mut cursor = Cursor::new(object)?;
    if cursor.kind()? != JsonKind::Object {
        return Ok(object.to_vec());
    }
    let mut out = b"{".to_vec();
    let mut first = true;
    cursor.open()?;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        if is_one_of(key, left_out) {
            continue;
        }
        out.extend((out.len() > 1).then_some(b','));
        out.push(b'"');
        out.extend_from_slice(key.raw);
        out.extend_from_slice(b"\":");
        match inside {
            Some(name) if key.is(name) => {
                out.extend(without_members(value, &["lastModified"], None)?);
            }
            _ => out.extend_from_slice(value),
        }
    }
    out.push(b'}');
    Ok(out)
}

fn is_one_of(key: JsonStr<'_>, names: &[&str]) -> bool {
    // Only the exact name: a lookalike is not the state that the protocol defines, so it counts.
    lenient_key_match(key, names).is_some_and(|name| key.is(names[name]))
}
