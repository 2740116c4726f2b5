//! Hashes params in one pass, without a tree and without sorting.
//!
//! The members of an object are hashed apart and added up, so that their order does not count.
//! Two lanes of 64 bits go side by side. Folded multiplication mixes well and fast; it is no
//! cryptography, and whoever finds an ask by its hash compares before believing it.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use super::walk::{Event, Walk};
use crate::json::{Fault, Number, Str};

/// What makes the hashes of this process differ from those of another, so that nobody can write a
/// tape whose asks all fall together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed([u64; 4]);

/// A hash in two lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Lanes(u64, u64);

/// What keeps values of different sorts apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum Tag {
    Method = 1,
    Name,
    Key,
    String,
    Number,
    Text,
    Hidden,
    Object,
    Array,
}

/// An open object or array.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    object: bool,
    children: u64,
    key: Lanes,
    sum: Lanes,
}

/// The levels above the open one; the first ones need no memory.
#[derive(Debug, Default)]
struct Levels {
    near: [Level; 8],
    count: usize,
    far: Vec<Level>,
}

impl Default for Seed {
    /// The seed of this process.
    fn default() -> Self {
        static SEED: OnceLock<[u64; 4]> = OnceLock::new();
        Self(*SEED.get_or_init(|| {
            let random = RandomState::new();
            [1, 2, 3, 4].map(|lane: u64| random.hash_one(lane))
        }))
    }
}

impl Lanes {
    pub(super) fn wide(self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }

    pub(super) fn narrow(self) -> u32 {
        (self.0 ^ self.1) as u32
    }
}

impl Seed {
    /// The hash of what `walk` goes through.
    pub(super) fn params(&self, mut walk: Walk<'_, '_>) -> Result<Lanes, Fault> {
        let mut levels = Levels::default();
        let mut open = Level::default();
        let mut decoded = Vec::new();
        while let Some(event) = walk.next()? {
            let value = match event {
                Event::Key(key) => {
                    open.key = self.string(Tag::Key, key, &mut decoded);
                    continue;
                }
                Event::Open { object } => {
                    levels.push(open);
                    open = Level { object, ..Level::default() };
                    continue;
                }
                Event::Close => {
                    let value = self.close(open);
                    open = levels.pop();
                    value
                }
                Event::String(string) => self.string(Tag::String, string, &mut decoded),
                Event::Number(text) => self.number(text),
                Event::Text(text) => self.bytes(Tag::Text, text),
                Event::Hidden => self.bytes(Tag::Hidden, b""),
            };
            self.add(&mut open, value);
        }
        Ok(open.sum)
    }

    /// The hash of a string's meaning.
    pub(super) fn string(&self, tag: Tag, string: Str<'_>, decoded: &mut Vec<u8>) -> Lanes {
        if !string.escaped {
            return self.bytes(tag, string.raw);
        }
        decoded.clear();
        string.exact(decoded);
        self.bytes(tag, decoded)
    }

    /// One hash of two, whose order counts.
    pub(super) fn mix(&self, one: Lanes, two: Lanes) -> Lanes {
        let Self([a, b, c, d]) = *self;
        Lanes(fold(one.0 ^ a, two.0 ^ b), fold(one.1 ^ c, two.1 ^ d))
    }

    fn add(&self, level: &mut Level, value: Lanes) {
        level.children += 1;
        if level.object {
            let member = self.mix(level.key, value);
            level.sum.0 = level.sum.0.wrapping_add(member.0);
            level.sum.1 = level.sum.1.wrapping_add(member.1);
        } else {
            level.sum = self.mix(level.sum, value);
        }
    }

    fn close(&self, level: Level) -> Lanes {
        let tag = if level.object { Tag::Object } else { Tag::Array };
        self.mix(level.sum, Lanes(tag as u64, level.children))
    }

    fn number(&self, text: &[u8]) -> Lanes {
        // As many digits as fit 64 bits are taken at once.
        const DIGITS_MAX: u32 = 19;
        let number = Number::read(text);
        let power = match number.power() {
            Ok(power) => power,
            Err(text) => return self.bytes(Tag::Number, text),
        };
        let mut hash = Lanes(Tag::Number as u64, u64::from(number.is_negative()));
        let (mut part, mut count) = (0u64, 0);
        for digit in number.digits() {
            part = part * 10 + u64::from(digit - b'0');
            count += 1;
            if count == DIGITS_MAX {
                hash = self.mix(hash, Lanes(part, part));
                (part, count) = (0, 0);
            }
        }
        hash = self.mix(hash, Lanes(part, u64::from(count)));
        self.mix(hash, Lanes(power as u64, power as u64))
    }

    fn bytes(&self, tag: Tag, bytes: &[u8]) -> Lanes {
        let Self([a, b, c, d]) = *self;
        let (mut one, mut two) = (a ^ tag as u64, c ^ bytes.len() as u64);
        let (pairs, rest) = bytes.as_chunks::<16>();
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        for pair in pairs.iter().chain([&last]) {
            let pair = u128::from_le_bytes(*pair);
            let (low, high) = (pair as u64, (pair >> 64) as u64);
            one = fold(one ^ low, b ^ high);
            two = fold(two ^ high, d ^ low);
        }
        self.mix(Lanes(one, two), Lanes(two, bytes.len() as u64))
    }
}

impl Levels {
    fn push(&mut self, level: Level) {
        match self.near.get_mut(self.count) {
            Some(place) => *place = level,
            None => self.far.push(level),
        }
        self.count += 1;
    }

    fn pop(&mut self) -> Level {
        self.count = self.count.saturating_sub(1);
        let near = self.near.get(self.count).copied();
        near.or_else(|| self.far.pop()).unwrap_or_default()
    }
}

/// Both halves of a product, one upon the other.
fn fold(one: u64, two: u64) -> u64 {
    let product = u128::from(one) * u128::from(two);
    product as u64 ^ (product >> 64) as u64
}
