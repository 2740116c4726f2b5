//! A hash table of requests: open addressing, four bytes per place, keys stored elsewhere.
//!
//! The bits of a place that the number of a request does not need hold a few bits of its key, so
//! that requests with other keys are rarely compared.

use super::NONE;

/// Maps a key to the first request that has it. Keys are stored with the requests, so the caller
/// compares them.
#[derive(Debug, Default)]
pub(super) struct KeyTable {
    places: Vec<u32>,
    count: usize,
    /// How many bits of a place are the number of a request; the others belong to its key.
    number_bits: u32,
}

impl KeyTable {
    /// A table for up to `request_numbers` requests that holds `count` keys without growing.
    pub(super) fn with_capacity(request_numbers: usize, count: usize) -> Self {
        // One number is reserved for free places.
        let number_bits = usize::BITS - request_numbers.leading_zeros();
        Self { places: vec![NONE; count + count / 3 + 1], count: 0, number_bits }
    }

    /// The request with the key whose evenly spread bits are `spread`; `is` returns whether a request
    /// has the key.
    pub(super) fn find(&self, spread: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.place(spread, is)?;
        self.ask_at(place)
    }

    /// Puts a request at its key and returns the previous one, or [`NONE`]. `spread_of` returns the
    /// bits of any request in the table.
    pub(super) fn insert(
        &mut self,
        request_number: u32,
        spread_of: impl Fn(u32) -> u64,
        is: impl Fn(u32) -> bool,
    ) -> u32 {
        // At most three quarters full, so that a search stays short.
        if (self.count + 1) * 4 > self.places.len() * 3 {
            self.grow(&spread_of);
        }
        let spread = spread_of(request_number);
        let Some(place) = self.place(spread, is) else { return NONE };
        let before = self.ask_at(place).unwrap_or(NONE);
        self.places[place] = self.mark(spread) | request_number;
        self.count += usize::from(before == NONE);
        before
    }

    /// The place of a key: its own, or the first free one where it may be put.
    fn place(&self, spread: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        // The upper bits of the product scale the hash to the table without a division.
        let start = ((u128::from(spread) * self.places.len() as u128) >> 64) as usize;
        let (mark, number) = (self.mark(spread), self.number());
        let fits = |place: u32| place == NONE || (place & !number == mark && is(place & number));
        let found = self.places[start..].iter().position(|place| fits(*place));
        match found {
            Some(found) => Some(start + found),
            None => self.places[..start].iter().position(|place| fits(*place)),
        }
    }

    fn ask_at(&self, place: usize) -> Option<u32> {
        Some(self.places[place]).filter(|place| *place != NONE).map(|place| place & self.number())
    }

    /// The mask of the bits of a place that are a number.
    fn number(&self) -> u32 {
        1u32.checked_shl(self.number_bits).map_or(u32::MAX, |bit| bit - 1)
    }

    /// The bits of a place that belong to a key.
    fn mark(&self, spread: u64) -> u32 {
        // The upper bits already determine its position.
        spread as u32 & !self.number()
    }

    fn grow(&mut self, spread_of: &impl Fn(u32) -> u64) {
        let room = (self.places.len() * 2).max(16);
        let places = vec![NONE; room + room / 3 + 1];
        let before = std::mem::replace(&mut self.places, places);
        for marked in before.into_iter().filter(|place| *place != NONE) {
            let spread = spread_of(marked & self.number());
            // Keys in the old table differ from each other, so none has to be compared.
            if let Some(place) = self.place(spread, |_| false) {
                self.places[place] = marked;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts one request for each key, the last first, and checks that each is found by its key.
    #[track_caller]
    fn finds(keys: &[u64], mut table: KeyTable) {
        let first = |key: u64| keys.iter().position(|other| *other == key).unwrap() as u32;
        let next = |request_number: u32| {
            let rest = keys[request_number as usize + 1..].iter();
            let next = rest.clone().position(|other| *other == keys[request_number as usize]);
            next.map_or(NONE, |next| request_number + 1 + next as u32)
        };
        for request_number in (0..keys.len() as u32).rev() {
            let key = keys[request_number as usize];
            let is = |other: u32| keys[other as usize] == key;
            assert_eq!(
                table.insert(request_number, |request_number| keys[request_number as usize], is),
                next(request_number)
            );
        }
        for &key in keys {
            let is = |request_number: u32| keys[request_number as usize] == key;
            assert_eq!(table.find(key, is), Some(first(key)));
        }
        assert_eq!(table.find(7 << 40, |_| false), None);
    }

    #[test]
    fn every_key_is_found_whatever_its_bits_and_however_small_the_table() {
        let spread = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for count in [1, 2, 3, 4, 7, 8, 100, 1000] {
            let keys: Vec<u64> = (0..count).map(spread).collect();
            finds(&keys, KeyTable::with_capacity(keys.len(), keys.len()));
            finds(&keys, KeyTable::with_capacity(keys.len(), 0));
            let repeated: Vec<u64> = (0..count).map(|n| spread(n / 3)).collect();
            finds(&repeated, KeyTable::with_capacity(repeated.len(), 0));
            // Keys with the same upper or lower bits, all of them set.
            let upper: Vec<u64> = (0..count).map(|n| u64::MAX << 16 | n).collect();
            finds(&upper, KeyTable::with_capacity(upper.len(), upper.len()));
            let lower: Vec<u64> = (0..count).map(|n| n << 33 | u64::from(u32::MAX)).collect();
            finds(&lower, KeyTable::with_capacity(lower.len(), 0));
        }
    }
}
