//! A hash table of asks: open addressing, four bytes a place, keys left where they are.

use super::NONE;

/// From a key to the first ask that has it. Keys stand with the asks, so the caller tells which
/// ask has which.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<u32>,
    count: usize,
}

impl Table {
    /// A table that holds `count` keys without growing.
    pub(super) fn with_room(count: usize) -> Self {
        Self { places: vec![NONE; count + count / 3 + 1], count: 0 }
    }

    /// The ask at the key whose evenly spread bits are `spread`; `is` tells whether an ask has the key.
    pub(super) fn find(&self, spread: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let place = self.place(spread, is)?;
        Some(self.places[place]).filter(|ask| *ask != NONE)
    }

    /// Puts `ask` at its key and returns what was there, or [`NONE`]. `spread_of` gives the bits of
    /// any ask in the table.
    pub(super) fn put(
        &mut self,
        ask: u32,
        spread_of: impl Fn(u32) -> u64,
        is: impl Fn(u32) -> bool,
    ) -> u32 {
        if (self.count + 1) * 4 > self.places.len() * 3 {
            self.grow(&spread_of);
        }
        let Some(place) = self.place(spread_of(ask), is) else { return NONE };
        let before = std::mem::replace(&mut self.places[place], ask);
        self.count += usize::from(before == NONE);
        before
    }

    /// The place of a key: its own, or the first free one where it may stand.
    fn place(&self, spread: u64, is: impl Fn(u32) -> bool) -> Option<usize> {
        let start = ((u128::from(spread) * self.places.len() as u128) >> 64) as usize;
        let fits = |ask: u32| ask == NONE || is(ask);
        let found = self.places[start..].iter().position(|ask| fits(*ask));
        match found {
            Some(found) => Some(start + found),
            None => self.places[..start].iter().position(|ask| fits(*ask)),
        }
    }

    fn grow(&mut self, spread_of: &impl Fn(u32) -> u64) {
        let mut larger = Self::with_room((self.places.len() * 2).max(16));
        for &ask in self.places.iter().filter(|ask| **ask != NONE) {
            if let Some(place) = larger.place(spread_of(ask), |_| false) {
                larger.places[place] = ask;
            }
        }
        self.places = larger.places;
    }
}
