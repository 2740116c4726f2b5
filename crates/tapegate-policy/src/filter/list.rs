//! The lists in a result, and the names of their items.

use std::borrow::Cow;

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{Cursor, JsonFault, JsonKind, JsonStr};

use crate::gated_requests::OfferKind;

/// A list in a result.
#[derive(Debug, Clone)]
pub struct ResultList<'a> {
    /// The kind of item listed.
    pub offer: OfferKind,
    /// The text of the list.
    pub text: &'a [u8],
    /// Its items, if it is an array.
    pub items: Option<Vec<ListItem<'a>>>,
}

/// An item of a list.
#[derive(Debug, Clone)]
pub struct ListItem<'a> {
    /// Its text.
    pub text: &'a [u8],
    /// Its name; all of them if lenient readers find several.
    pub names: Vec<Cow<'a, str>>,
    /// Whether every reader finds a name that is a string.
    pub named: bool,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub(crate) struct ListMember<'a> {
    pub(crate) key: JsonStr<'a>,
    pub(crate) value: &'a [u8],
}

/// Every list in a result.
pub fn lists(result: &[u8]) -> Vec<ResultList<'_>> {
    let names = OfferKind::ALL.map(OfferKind::list);
    let members = members(result);
    let found = members.iter().filter_map(|member| {
        let offer = OfferKind::ALL[lenient_key_match(member.key, &names)?];
        Some(ResultList {
            offer,
            text: member.value,
            items: items(member.value, offer).ok().flatten(),
        })
    });
    found.collect()
}

fn items(list: &[u8], offer: OfferKind) -> Result<Option<Vec<ListItem<'_>>>, JsonFault> {
    let mut cursor = Cursor::new(list)?;
    if cursor.kind()? != JsonKind::Array {
        return Ok(None);
    }
    let (mut first, mut found) = (true, Vec::new());
    cursor.open()?;
    while cursor.next_element(&mut first)? {
        found.push(item(cursor.value()?, offer));
    }
    Ok(Some(found))
}

fn item(text: &[u8], offer: OfferKind) -> ListItem<'_> {
    let mut item = ListItem { text, names: Vec::new(), named: false };
    let mut odd = false;
    for member in members(text) {
        if lenient_key_match(member.key, &[offer.key()]).is_none() {
            continue;
        }
        match string(member.value) {
            Some(name) => {
                item.names.push(name.decode());
                item.named |= member.key.is(offer.key());
            }
            None => odd = true,
        }
    }
    item.named &= !odd;
    item
}

/// The members of an object, as far as it can be parsed; none for any other value.
pub(crate) fn members(object: &[u8]) -> Vec<ListMember<'_>> {
    let mut found = Vec::new();
    // Part of a parsed message, so it is JSON. No reader can act on members that cannot be parsed.
    collect(object, &mut found).unwrap_or_default();
    found
}

fn collect<'a>(object: &'a [u8], found: &mut Vec<ListMember<'a>>) -> Result<(), JsonFault> {
    let mut cursor = Cursor::new(object)?;
    if cursor.kind()? != JsonKind::Object {
        return Ok(());
    }
    let mut first = true;
    cursor.open()?;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        found.push(ListMember { key, value });
    }
    Ok(())
}

fn string(text: &[u8]) -> Option<JsonStr<'_>> {
    let mut cursor = Cursor::new(text).ok()?;
    if cursor.kind().ok()? == JsonKind::String { cursor.string().ok() } else { None }
}

impl ListMember<'_> {
    /// The replacement value that keeps the reply out of shared caches and makes it expire at once.
    pub(super) fn uncacheable_value(&self) -> Option<&'static [u8]> {
        match lenient_key_match(self.key, &["ttlMs", "cacheScope"])? {
            0 => Some(b"0"),
            _ if string(self.value).is_some_and(|scope| !scope.is("public")) => None,
            _ => Some(b"\"private\""),
        }
    }
}
