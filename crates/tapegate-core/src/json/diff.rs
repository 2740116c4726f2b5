//! The differences between two JSON texts, by value and not by spelling.
//!
//! Objects are compared by key; arrays by element, after pairing elements that correspond; numbers
//! by value; strings after decoding. Of a repeated key the last value counts. Differences refer to
//! both texts and are bounded in number; work and memory are bounded by the size of the texts, not
//! by their depth or width.

use super::likeness::ElementLikeness;
use super::path::JsonPath;
use super::{Cursor, JsonFault, JsonKind, JsonLocation, JsonStr, LocationStep, Number};
use crate::alignment::{AlignedRow, align};

/// Values nested deeper than this are compared as a whole, by their text.
pub(super) const DEPTH_MAX: usize = 64;
/// How often the whole text may be scanned, since each level scans its part again. Beyond that,
/// values are compared as a whole too.
const PASSES_MAX: usize = 8;
/// The minimum number of bytes that may be scanned for any text.
const BYTES_MIN: usize = 16 << 20;
/// Longer arrays are compared by index.
const ELEMENTS_MAX: usize = 1024;
/// The budget for pairing array elements: bytes to scan, and pairs to compare.
const ALIGN_BUDGET: usize = 16 << 20;

/// What to compare, and how many differences to list.
#[derive(Debug, Clone)]
pub struct DiffOptions<'p> {
    /// The location of the two values in the message.
    pub root: JsonLocation,
    /// Paths that are not compared.
    pub ignored: &'p [JsonPath],
    /// How many differences are listed; the rest are only counted.
    pub listed_max: usize,
}

/// The differences between two texts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JsonDifferences<'a> {
    /// The first ones, in the order of the texts.
    pub listed: Vec<JsonDifference<'a>>,
    /// How many more there are.
    pub more: usize,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonDifference<'a> {
    /// Its location. Array indices are those of the new text, except for removed elements.
    pub location: JsonLocation,
    /// What it is.
    pub change: ValueChange<'a>,
}

/// How a value changed, with its raw text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueChange<'a> {
    /// Only the new text has it.
    Added(&'a [u8]),
    /// Only the old text has it.
    Removed(&'a [u8]),
    /// The value changed, but not its type.
    Value {
        /// The old value.
        old: &'a [u8],
        /// The new value.
        new: &'a [u8],
    },
    /// The value and its type changed.
    Kind {
        /// The old value.
        old: &'a [u8],
        /// The new value.
        new: &'a [u8],
    },
}

/// Compares two texts, each of which is one JSON value.
pub fn diff<'a>(
    old: &'a [u8],
    new: &'a [u8],
    terms: &DiffOptions<'_>,
) -> Result<JsonDifferences<'a>, JsonFault> {
    let (old, new) = (super::check(old)?, super::check(new)?);
    let found = JsonDifferences::default();
    let bytes = (old.len() + new.len()) * PASSES_MAX + BYTES_MIN;
    let place = terms.root.clone();
    let mut walk = DiffWalk { terms, location: place, found, bytes, align: ALIGN_BUDGET, depth: 0 };
    walk.compare(old, new)?;
    Ok(walk.found)
}

impl JsonDifferences<'_> {
    /// Whether there are no differences.
    pub fn is_empty(&self) -> bool {
        self.listed.is_empty() && self.more == 0
    }

    /// How many differences there are.
    pub fn count(&self) -> usize {
        self.listed.len() + self.more
    }
}

struct DiffWalk<'a, 't> {
    terms: &'t DiffOptions<'t>,
    location: JsonLocation,
    found: JsonDifferences<'a>,
    /// How many bytes may still be scanned.
    bytes: usize,
    /// The remaining budget for pairing elements.
    align: usize,
    depth: usize,
}

impl<'a> DiffWalk<'a, '_> {
    fn compare(&mut self, old: &'a [u8], new: &'a [u8]) -> Result<(), JsonFault> {
        // Most of two messages is identical text, which needs no closer look.
        if old == new || self.is_ignored() {
            return Ok(());
        }
        let kinds = (kind(old)?, kind(new)?);
        let bytes = old.len() + new.len();
        let deeper = self.depth < DEPTH_MAX && self.bytes >= bytes;
        self.bytes = self.bytes.saturating_sub(bytes);
        self.depth += 1;
        match kinds {
            (JsonKind::Object, JsonKind::Object) if deeper => self.objects(old, new)?,
            (JsonKind::Array, JsonKind::Array) if deeper => self.arrays(old, new)?,
            (JsonKind::String, JsonKind::String) if string(old)?.has_same_value(&string(new)?) => {}
            (JsonKind::Number, JsonKind::Number) if Number::read(old) == Number::read(new) => {}
            (one, two) if one == two => self.note(ValueChange::Value { old, new }),
            _ => self.note(ValueChange::Kind { old, new }),
        }
        self.depth -= 1;
        Ok(())
    }

    fn objects(&mut self, old: &'a [u8], new: &'a [u8]) -> Result<(), JsonFault> {
        let (old, new) = (ObjectMembers::read(old)?, ObjectMembers::read(new)?);
        for ObjectMember { key, value, .. } in old.iter() {
            let there = new.find(key);
            self.with_step(LocationStep::Key(key.decode().into_owned()), |walk| match there {
                Some(there) => walk.compare(value, there),
                None => walk.note_unpaired(ValueChange::Removed(value)),
            })?;
        }
        for ObjectMember { key, value, .. } in new.iter().filter(|new| old.find(&new.key).is_none())
        {
            self.with_step(LocationStep::Key(key.decode().into_owned()), |walk| {
                walk.note_unpaired(ValueChange::Added(value))
            })?;
        }
        Ok(())
    }

    fn arrays(&mut self, old: &'a [u8], new: &'a [u8]) -> Result<(), JsonFault> {
        let bytes = old.len() + new.len();
        if self.align < bytes {
            return self.compare_by_index(old, new);
        }
        self.align -= bytes;
        let (Some(olds), Some(news)) = (elements(old)?, elements(new)?) else {
            return self.compare_by_index(old, new);
        };
        let alike = |items: &[&[u8]]| -> Result<Vec<ElementLikeness>, JsonFault> {
            items.iter().map(|item| ElementLikeness::of(item)).collect()
        };
        let (before, after) = (alike(&olds)?, alike(&news)?);
        let weight = |one: usize, two: usize| before[one].weight(&after[two]);
        for row in align(olds.len(), news.len(), weight, &mut self.align) {
            self.row(row, |at| olds[at], |at| news[at])?;
        }
        Ok(())
    }

    /// Compares arrays by index, holding only two elements at a time.
    fn compare_by_index(&mut self, old: &'a [u8], new: &'a [u8]) -> Result<(), JsonFault> {
        let (mut olds, mut news) = (Cursor::from_utf8(old), Cursor::from_utf8(new));
        olds.open()?;
        news.open()?;
        let (mut old_left, mut new_left) = (true, true);
        for at in 0.. {
            old_left = old_left && olds.next_item()?;
            new_left = new_left && news.next_item()?;
            let before = if old_left { olds.value()? } else { &[] };
            let after = if new_left { news.value()? } else { &[] };
            let row = match (old_left, new_left) {
                (true, true) => AlignedRow::Both(at, at),
                (true, false) => AlignedRow::Old(at),
                (false, true) => AlignedRow::New(at),
                (false, false) => break,
            };
            self.row(row, |_| before, |_| after)?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        row: AlignedRow,
        old: impl Fn(usize) -> &'a [u8],
        new: impl Fn(usize) -> &'a [u8],
    ) -> Result<(), JsonFault> {
        match row {
            AlignedRow::Both(one, two) => {
                self.with_step(LocationStep::Index(two), |walk| walk.compare(old(one), new(two)))
            }
            AlignedRow::Old(at) => self.with_step(LocationStep::Index(at), |walk| {
                walk.note_unpaired(ValueChange::Removed(old(at)))
            }),
            AlignedRow::New(at) => self.with_step(LocationStep::Index(at), |walk| {
                walk.note_unpaired(ValueChange::Added(new(at)))
            }),
        }
    }

    fn with_step(
        &mut self,
        hop: LocationStep,
        then: impl FnOnce(&mut Self) -> Result<(), JsonFault>,
    ) -> Result<(), JsonFault> {
        self.location.steps.push(hop);
        let done = then(self);
        self.location.steps.pop();
        done
    }

    /// Notes a value that only one text has, unless it is ignored.
    fn note_unpaired(&mut self, change: ValueChange<'a>) -> Result<(), JsonFault> {
        if !self.is_ignored() {
            self.note(change);
        }
        Ok(())
    }

    fn is_ignored(&self) -> bool {
        self.terms.ignored.iter().any(|path| self.location.is_at(path))
    }

    fn note(&mut self, change: ValueChange<'a>) {
        if self.found.listed.len() < self.terms.listed_max {
            self.found.listed.push(JsonDifference { location: self.location.clone(), change });
        } else {
            self.found.more += 1;
        }
    }
}

/// The members of an object; of a repeated key, the last.
struct ObjectMembers<'a> {
    by_key: Vec<ObjectMember<'a>>,
    /// Their indices in `by_key`, in the order of the text.
    in_order: Vec<usize>,
}

struct ObjectMember<'a> {
    at: usize,
    key: JsonStr<'a>,
    value: &'a [u8],
}

impl<'a> ObjectMembers<'a> {
    fn read(text: &'a [u8]) -> Result<Self, JsonFault> {
        let mut cursor = Cursor::from_utf8(text);
        let mut by_key = Vec::new();
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            by_key.push(ObjectMember { at: by_key.len(), key, value: cursor.value()? });
        }
        by_key.sort_by(|one, two| one.key.compare_value(&two.key).then(two.at.cmp(&one.at)));
        by_key.dedup_by(|one, two| one.key.has_same_value(&two.key));
        let mut in_order: Vec<usize> = (0..by_key.len()).collect();
        in_order.sort_unstable_by_key(|number| by_key[*number].at);
        Ok(Self { by_key, in_order })
    }

    fn iter(&self) -> impl Iterator<Item = &ObjectMember<'a>> {
        self.in_order.iter().map(|number| &self.by_key[*number])
    }

    fn find(&self, key: &JsonStr<'_>) -> Option<&'a [u8]> {
        let found = self.by_key.binary_search_by(|member| member.key.compare_value(key)).ok()?;
        Some(self.by_key[found].value)
    }
}

/// The elements of an array, unless there are very many.
fn elements(text: &[u8]) -> Result<Option<Vec<&[u8]>>, JsonFault> {
    let mut cursor = Cursor::from_utf8(text);
    let mut all = Vec::new();
    cursor.open()?;
    while cursor.next_item()? {
        if all.len() == ELEMENTS_MAX {
            return Ok(None);
        }
        all.push(cursor.value()?);
    }
    Ok(Some(all))
}

fn kind(text: &[u8]) -> Result<JsonKind, JsonFault> {
    Cursor::from_utf8(text).kind()
}

fn string(text: &[u8]) -> Result<JsonStr<'_>, JsonFault> {
    Cursor::from_utf8(text).string()
}

#[cfg(test)]
mod tests;
