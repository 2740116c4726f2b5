//! Hashes params in one pass, without building a tree and without sorting.
//!
//! There are two ways to the same hash. The fast one observes the scan of a message; the other
//! follows a [`Walk`], which can skip the paths that the user ignores.

use super::seed::{Children, Lanes, Seed, Tag};
use super::walk::{DEPTH_MAX, Event, Walk};
use crate::frame::Along;
use crate::json::{Cursor, Fault, Kind, Str};

/// Hashes params while they are scanned, without skipping ignored paths.
#[derive(Debug)]
pub(crate) struct Digest {
    seed: Seed,
    children: Children,
    /// The hash of params that are not an object.
    whole: Option<Lanes>,
    decoded: Vec<u8>,
}

impl Digest {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, children: Children::default(), whole: None, decoded: Vec::new() }
    }

    /// The hash of the params that were scanned last; without params, that of an empty object.
    pub(super) fn finish(&self) -> Lanes {
        self.whole.unwrap_or_else(|| self.seed.close(true, self.children))
    }

    /// Moves over params and hashes them.
    pub(super) fn params(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Fault> {
        self.begin();
        if cursor.kind()? != Kind::Object {
            return self.whole(cursor).map(drop);
        }
        cursor.open()?;
        let mut first = true;
        while let Some(key) = cursor.key(&mut first)? {
            self.member(key, cursor)?;
        }
        Ok(())
    }

    /// Moves over a value at `depth` and hashes it.
    fn value(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<Lanes, Fault> {
        let kind = cursor.kind()?;
        Ok(match kind {
            Kind::String => {
                let string = cursor.string()?;
                self.seed.string(Tag::String, string, &mut self.decoded)
            }
            Kind::Number => self.seed.number(cursor.value()?),
            Kind::Object | Kind::Array if depth < DEPTH_MAX => {
                cursor.open()?;
                let (mut children, mut first) = (Children::default(), true);
                let object = kind == Kind::Object;
                if object {
                    while let Some(key) = cursor.key(&mut first)? {
                        let key = self.seed.string(Tag::Key, key, &mut self.decoded);
                        let value = self.value(cursor, depth + 1)?;
                        self.seed.member(&mut children, key, value);
                    }
                } else {
                    while cursor.element(&mut first)? {
                        let value = self.value(cursor, depth + 1)?;
                        self.seed.element(&mut children, value);
                    }
                }
                self.seed.close(object, children)
            }
            _ => self.seed.bytes(Tag::Text, cursor.value()?),
        })
    }

    /// Moves over `inputResponses`, of which only the keys count.
    fn responses(&mut self, cursor: &mut Cursor<'_>) -> Result<Lanes, Fault> {
        cursor.open()?;
        let (mut children, mut first) = (Children::default(), true);
        while let Some(key) = cursor.key(&mut first)? {
            let key = self.seed.string(Tag::Key, key, &mut self.decoded);
            cursor.value()?;
            self.seed.member(&mut children, key, self.hidden());
        }
        Ok(self.seed.close(true, children))
    }

    fn hidden(&self) -> Lanes {
        self.seed.bytes(Tag::Hidden, b"")
    }
}

impl<'a> Along<'a> for Digest {
    fn begin(&mut self) {
        (self.children, self.whole) = (Children::default(), None);
    }

    fn string(&mut self, key: Str<'a>, value: Str<'a>) {
        let key = self.seed.string(Tag::Key, key, &mut self.decoded);
        let value = self.seed.string(Tag::String, value, &mut self.decoded);
        self.seed.member(&mut self.children, key, value);
    }

    fn member(&mut self, key: Str<'a>, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
        let kind = cursor.kind()?;
        let start = cursor.position();
        let value = match &*key.bytes() {
            b"_meta" => return cursor.value(),
            b"cursor" if kind == Kind::Null => return cursor.value(),
            b"cursor" => {
                cursor.value()?;
                self.hidden()
            }
            b"inputResponses" if kind == Kind::Object => self.responses(cursor)?,
            _ => self.value(cursor, 1)?,
        };
        let key = self.seed.string(Tag::Key, key, &mut self.decoded);
        self.seed.member(&mut self.children, key, value);
        Ok(cursor.slice(start, cursor.position()))
    }

    fn whole(&mut self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], Fault> {
        cursor.kind()?;
        let start = cursor.position();
        self.whole = Some(self.value(cursor, 0)?);
        Ok(cursor.slice(start, cursor.position()))
    }
}

/// The hash of the values that `walk` visits.
pub(super) fn of_walk(seed: &Seed, mut walk: Walk<'_, '_>) -> Result<Lanes, Fault> {
    let mut levels: Vec<(bool, Lanes, Children)> = Vec::new();
    let mut key = Lanes::default();
    let mut decoded = Vec::new();
    let mut whole = Lanes::default();
    while let Some(event) = walk.next()? {
        let value = match event {
            Event::Key(name) => {
                key = seed.string(Tag::Key, name, &mut decoded);
                continue;
            }
            Event::Open { object } => {
                levels.push((object, key, Children::default()));
                continue;
            }
            Event::Close => {
                let Some((object, own_key, children)) = levels.pop() else { break };
                key = own_key;
                seed.close(object, children)
            }
            Event::String(string) => seed.string(Tag::String, string, &mut decoded),
            Event::Number(text) => seed.number(text),
            Event::Text(text) => seed.bytes(Tag::Text, text),
            Event::Hidden => seed.bytes(Tag::Hidden, b""),
        };
        match levels.last_mut() {
            Some((true, _, children)) => seed.member(children, key, value),
            Some((false, _, children)) => seed.element(children, value),
            None => whole = value,
        }
    }
    Ok(whole)
}
