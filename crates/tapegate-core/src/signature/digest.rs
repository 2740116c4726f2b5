//! Hashes params in one pass, without building a tree and without sorting.
//!
//! There are two ways to the same hash. The fast one observes the scan of a message; the other
//! follows a [`ParamsWalk`], which can skip the paths that the user ignores.

use super::seed::{ChildHashes, DoubleHash, HashSeed, HashTag};
use super::walk::{DEPTH_MAX, ParamsEvent, ParamsWalk};
use crate::frame::ScanObserver;
use crate::json::{Cursor, JsonFault, JsonKind, JsonStr};

/// Hashes params while they are scanned, without skipping ignored paths.
#[derive(Debug)]
pub(crate) struct ParamsDigest {
    seed: HashSeed,
    children: ChildHashes,
    /// The hash of params that are not an object.
    whole: Option<DoubleHash>,
    decoded: Vec<u8>,
}

impl ParamsDigest {
    pub(super) fn new(seed: HashSeed) -> Self {
        Self { seed, children: ChildHashes::default(), whole: None, decoded: Vec::new() }
    }

    /// The hash of the params that were scanned last; without params, that of an empty object.
    pub(super) fn finish(&self) -> DoubleHash {
        self.whole.unwrap_or_else(|| self.seed.close(true, self.children))
    }

    /// Moves over params and hashes them.
    pub(super) fn params(&mut self, cursor: &mut Cursor<'_>) -> Result<(), JsonFault> {
        self.params_begin();
        if cursor.kind()? != JsonKind::Object {
            return self.scan_non_object(cursor).map(drop);
        }
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            self.member(key, cursor)?;
        }
        Ok(())
    }

    /// Moves over a value at `depth` and hashes it.
    fn value(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<DoubleHash, JsonFault> {
        let kind = cursor.kind()?;
        Ok(match kind {
            JsonKind::String => {
                let string = cursor.string()?;
                self.seed.string(HashTag::String, string, &mut self.decoded)
            }
            JsonKind::Number => self.seed.number(cursor.value()?),
            JsonKind::Object | JsonKind::Array if depth < DEPTH_MAX => {
                cursor.open()?;
                let mut children = ChildHashes::default();
                let object = kind == JsonKind::Object;
                if object {
                    while let Some(key) = cursor.next_key()? {
                        let key = self.seed.string(HashTag::Key, key, &mut self.decoded);
                        let value = self.value(cursor, depth + 1)?;
                        self.seed.member(&mut children, key, value);
                    }
                } else {
                    while cursor.next_item()? {
                        let value = self.value(cursor, depth + 1)?;
                        self.seed.element(&mut children, value);
                    }
                }
                self.seed.close(object, children)
            }
            _ => self.seed.bytes(HashTag::Text, cursor.value()?),
        })
    }

    /// Moves over `inputResponses`, of which only the keys count.
    fn responses(&mut self, cursor: &mut Cursor<'_>) -> Result<DoubleHash, JsonFault> {
        cursor.open()?;
        let mut children = ChildHashes::default();
        while let Some(key) = cursor.next_key()? {
            let key = self.seed.string(HashTag::Key, key, &mut self.decoded);
            cursor.value()?;
            self.seed.member(&mut children, key, self.hidden());
        }
        Ok(self.seed.close(true, children))
    }

    fn hidden(&self) -> DoubleHash {
        self.seed.bytes(HashTag::Hidden, b"")
    }
}

impl<'a> ScanObserver<'a> for ParamsDigest {
    fn params_begin(&mut self) {
        (self.children, self.whole) = (ChildHashes::default(), None);
    }

    fn string(&mut self, key: JsonStr<'a>, value: JsonStr<'a>) {
        let key = self.seed.string(HashTag::Key, key, &mut self.decoded);
        let value = self.seed.string(HashTag::String, value, &mut self.decoded);
        self.seed.member(&mut self.children, key, value);
    }

    fn member(&mut self, key: JsonStr<'a>, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        let kind = cursor.kind()?;
        let start = cursor.position();
        let value = match &*key.bytes() {
            b"_meta" => return cursor.value(),
            b"cursor" if kind == JsonKind::Null => return cursor.value(),
            b"cursor" => {
                cursor.value()?;
                self.hidden()
            }
            b"inputResponses" if kind == JsonKind::Object => self.responses(cursor)?,
            _ => self.value(cursor, 1)?,
        };
        let key = self.seed.string(HashTag::Key, key, &mut self.decoded);
        self.seed.member(&mut self.children, key, value);
        Ok(cursor.slice(start, cursor.position()))
    }

    fn scan_non_object(&mut self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        cursor.kind()?;
        let start = cursor.position();
        self.whole = Some(self.value(cursor, 0)?);
        Ok(cursor.slice(start, cursor.position()))
    }
}

/// The hash of the values that `walk` visits.
pub(super) fn of_walk(
    seed: &HashSeed,
    mut walk: ParamsWalk<'_, '_>,
) -> Result<DoubleHash, JsonFault> {
    let mut levels: Vec<(bool, DoubleHash, ChildHashes)> = Vec::new();
    let mut key = DoubleHash::default();
    let mut decoded = Vec::new();
    let mut whole = DoubleHash::default();
    while let Some(event) = walk.next()? {
        let value = match event {
            ParamsEvent::Key(name) => {
                key = seed.string(HashTag::Key, name, &mut decoded);
                continue;
            }
            ParamsEvent::Open { object } => {
                levels.push((object, key, ChildHashes::default()));
                continue;
            }
            ParamsEvent::Close => {
                let Some((object, own_key, children)) = levels.pop() else { break };
                key = own_key;
                seed.close(object, children)
            }
            ParamsEvent::String(string) => seed.string(HashTag::String, string, &mut decoded),
            ParamsEvent::Number(text) => seed.number(text),
            ParamsEvent::Text(text) => seed.bytes(HashTag::Text, text),
            ParamsEvent::Hidden => seed.bytes(HashTag::Hidden, b""),
        };
        match levels.last_mut() {
            Some((true, _, children)) => seed.member(children, key, value),
            Some((false, _, children)) => seed.element(children, value),
            None => whole = value,
        }
    }
    Ok(whole)
}
