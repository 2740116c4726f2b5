//! The lists in a result, and the names of their items.

use std::borrow::Cow;

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{self, JsonStr};

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

#[derive(Debug, Clone)]
pub struct ListItem<'a> {
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
        Some(ResultList { offer, text: member.value, items: items(member.value, offer) })
    });
    found.collect()
}

/// The items of a list; `None` if it is not an array.
fn items(list: &[u8], offer: OfferKind) -> Option<Vec<ListItem<'_>>> {
    if !list.starts_with(b"[") {
        return None;
    }
    let items = json::elements(list).map(|text| text.map(|text| item(text, offer)));
    items.collect::<Result<_, _>>().ok()
}

fn item(text: &[u8], offer: OfferKind) -> ListItem<'_> {
    let mut item = ListItem { text, names: Vec::new(), named: false };
    let mut odd = false;
    for member in members(text) {
        if lenient_key_match(member.key, &[offer.key()]).is_none() {
            continue;
        }
        match JsonStr::read(member.value) {
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
    // Part of a parsed message, so it is JSON. No reader can act on members that cannot be parsed.
    json::members(object).flatten().map(|(key, value)| ListMember { key, value }).collect()
}

impl ListMember<'_> {
    /// The replacement value that keeps the reply out of shared caches and makes it expire at once.
    pub(super) fn uncacheable_value(&self) -> Option<&'static [u8]> {
        match lenient_key_match(self.key, &["ttlMs", "cacheScope"])? {
            0 => Some(b"0"),
            _ if JsonStr::read(self.value).is_some_and(|scope| !scope.is("public")) => None,
            _ => Some(b"\"private\""),
        }
    }
}
