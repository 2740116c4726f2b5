//! The hash function: two lanes of 64 bits.
//!
//! Folded multiplication mixes well and fast. It is not cryptographic, so a request that is found
//! by its hash is compared before it is trusted.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use crate::json::{JsonStr, Number};

/// Makes the hashes of each process different, so that a tape cannot be crafted whose requests all
/// collide.
#[derive(Debug, Clone, Copy)]
pub(super) struct HashSeed([u64; 4]);

/// A hash of two lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct DoubleHash(u64, u64);

/// The hash of an id, a progress token or a session name: strings by meaning, everything else by
/// spelling, so that `1`, `1.0` and `"1"` differ.
///
/// At 128 bits, with a secret seed, different values are not expected to collide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct HashedKey(DoubleHash);

/// Keeps values of different kinds apart.
#[derive(Debug, Clone, Copy)]
pub(super) enum HashTag {
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

/// The children of an object or array that is being hashed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ChildHashes {
    sum: DoubleHash,
    count: u64,
}

impl Default for HashSeed {
    /// The seed of this process.
    fn default() -> Self {
        static SEED: OnceLock<[u64; 4]> = OnceLock::new();
        Self(*SEED.get_or_init(|| {
            let random = RandomState::new();
            [1, 2, 3, 4].map(|lane: u64| random.hash_one(lane))
        }))
    }
}

impl DoubleHash {
    pub(super) fn as_u128(self) -> u128 {
        u128::from(self.0) << 64 | u128::from(self.1)
    }

    pub(super) fn as_u32(self) -> u32 {
        (self.0 ^ self.1) as u32
    }
}

impl HashSeed {
    /// The hash of a string's value. `decoded` is scratch space.
    #[inline]
    pub(super) fn string(
        &self,
        tag: HashTag,
        string: JsonStr<'_>,
        decoded: &mut Vec<u8>,
    ) -> DoubleHash {
        if string.escaped {
            decoded.clear();
            string.write_value_bytes(decoded);
            return self.bytes(tag, decoded);
        }
        self.bytes(tag, string.raw)
    }

    /// The key of a raw JSON text.
    #[inline]
    pub(super) fn key(&self, raw: &[u8]) -> HashedKey {
        HashedKey(match raw {
            [b'"', raw @ .., b'"'] => {
                let escaped = raw.contains(&b'\\');
                self.string(HashTag::String, JsonStr { raw, escaped }, &mut Vec::new())
            }
            _ => self.bytes(HashTag::Text, raw),
        })
    }

    /// The hash of a number's value.
    #[inline]
    pub(super) fn number(&self, text: &[u8]) -> DoubleHash {
        match small(text) {
            Some(whole) => {
                self.mix(DoubleHash(HashTag::Number as u64, 0), DoubleHash(whole, whole))
            }
            None => self.any_number(text),
        }
    }

    /// The hash of any bytes.
    #[inline]
    pub(super) fn bytes(&self, tag: HashTag, bytes: &[u8]) -> DoubleHash {
        let Self([a, b, c, d]) = *self;
        let (mut one, mut two) = (a ^ tag as u64, c ^ bytes.len() as u64);
        let mut last = (0, 0);
        let mut take = |low: u64, high: u64| {
            one = fold(one ^ low, b ^ high);
            two = fold(two ^ high, d ^ low);
        };
        let count = bytes.len();
        if let Some(end) = bytes.last_chunk::<16>() {
            let (pairs, _) = bytes[..count - 1].as_chunks::<16>();
            for pair in pairs {
                let (low, high) = halves(pair);
                take(low, high);
            }
            // The last 16 bytes, which may overlap those already taken.
            last = halves(end);
        } else if let (Some(start), Some(end)) = (bytes.first_chunk::<8>(), bytes.last_chunk::<8>())
        {
            last = (u64::from_le_bytes(*start), u64::from_le_bytes(*end));
        } else if let (Some(start), Some(end)) = (bytes.first_chunk::<4>(), bytes.last_chunk::<4>())
        {
            last = (u32::from_le_bytes(*start).into(), u32::from_le_bytes(*end).into());
        } else if let [start, ..] = *bytes {
            last = (start.into(), u64::from(bytes[count / 2]) << 8 | u64::from(bytes[count - 1]));
        }
        take(last.0, last.1);
        DoubleHash(one, two)
    }

    /// Combines two hashes; their order matters.
    #[inline]
    pub(super) fn mix(&self, one: DoubleHash, two: DoubleHash) -> DoubleHash {
        let Self([a, b, c, d]) = *self;
        DoubleHash(fold(one.0 ^ a, two.0 ^ b), fold(one.1 ^ c, two.1 ^ d))
    }

    /// Adds a member to the children of an object. Members are summed, so their order does not
    /// matter.
    #[inline]
    pub(super) fn member(&self, children: &mut ChildHashes, key: DoubleHash, value: DoubleHash) {
        let member = self.mix(key, value);
        children.sum.0 = children.sum.0.wrapping_add(member.0);
        children.sum.1 = children.sum.1.wrapping_add(member.1);
        children.count += 1;
    }

    /// Adds an element to the children of an array.
    #[inline]
    pub(super) fn element(&self, children: &mut ChildHashes, value: DoubleHash) {
        children.sum = self.mix(children.sum, value);
        children.count += 1;
    }

    /// The hash of an object or array.
    #[inline]
    pub(super) fn close(&self, object: bool, children: ChildHashes) -> DoubleHash {
        let tag = if object { HashTag::Object } else { HashTag::Array };
        self.mix(children.sum, DoubleHash(tag as u64, children.count))
    }

    fn any_number(&self, text: &[u8]) -> DoubleHash {
        let number = Number::read(text);
        let power = match number.power() {
            Ok(power) => power,
            Err(text) => return self.bytes(HashTag::Number, text),
        };
        if let Some(whole) = number.as_u64() {
            return self.mix(DoubleHash(HashTag::Number as u64, 0), DoubleHash(whole, whole));
        }
        // Take as many digits at once as fit into 64 bits.
        const DIGITS_MAX: u32 = 19;
        let mut hash = DoubleHash(HashTag::Number as u64, 1 + u64::from(number.is_negative()));
        let (mut part, mut count) = (0u64, 0);
        for digit in number.digits() {
            part = part * 10 + u64::from(digit - b'0');
            count += 1;
            if count == DIGITS_MAX {
                hash = self.mix(hash, DoubleHash(part, part));
                (part, count) = (0, 0);
            }
        }
        hash = self.mix(hash, DoubleHash(part, u64::from(count)));
        self.mix(hash, DoubleHash(power as u64, power as u64))
    }
}

/// The value of a non-negative integer with at most 18 digits and no sign, point or exponent.
#[inline]
fn small(text: &[u8]) -> Option<u64> {
    const DIGITS_MAX: usize = 18;
    if text.len() > DIGITS_MAX {
        return None;
    }
    let mut whole = 0;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        whole = whole * 10 + u64::from(digit);
    }
    Some(whole)
}

fn halves(pair: &[u8; 16]) -> (u64, u64) {
    let pair = u128::from_le_bytes(*pair);
    (pair as u64, (pair >> 64) as u64)
}

/// Both halves of a product, combined by XOR.
#[inline]
fn fold(one: u64, two: u64) -> u64 {
    let product = u128::from(one) * u128::from(two);
    product as u64 ^ (product >> 64) as u64
}
