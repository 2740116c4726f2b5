//! A hash table of asks: open addressing, four bytes a place, keys left where they are.

use super::NONE;

/// From a key to the first ask that has it. Keys stand with the asks, so the caller tells which
/// ask has which.
#[derive(Debug, Default)]
pub(super) struct Table {
    places: Vec<u32>,
}

/// A table that is being filled. Each place has some bits of its key too, so that most keys are
/// told apart without a look at the asks, which lie far away.
#[derive(Debug, Default)]
pub(super) struct Filling {
    /// Asks, and the bits that tell where a key may stand.
    places: Vec<(u32, u32)>,
    count: usize,
}

impl Table {
    /// The ask at the key whose evenly spread bits are `spread`; `is` tells whether an ask has the
    /// key.
    pub(super) fn find(&self, spread: u32, is: impl Fn(u32) -> bool) -> Option<u32> {
        let place = place(&self.places, spread, |ask| *ask == NONE || is(*ask))?;
        Some(self.places[place]).filter(|ask| *ask != NONE)
    }
}

impl Filling {
    /// A table that holds `count` keys without growing.
    pub(super) fn with_room(count: usize) -> Self {
        Self { places: vec![(NONE, 0); count + count / 3 + 1], count: 0 }
    }

    /// Puts `ask` at its key, whose evenly spread bits are `spread`, and returns what was there, or
    /// [`NONE`]. `is` tells whether an ask has the key.
    pub(super) fn put(&mut self, ask: u32, spread: u32, is: impl Fn(u32) -> bool) -> u32 {
        if (self.count + 1) * 4 > self.places.len() * 3 {
            self.grow();
        }
        let fits = |(known, bits): &(u32, u32)| *known == NONE || (*bits == spread && is(*known));
        let Some(place) = place(&self.places, spread, fits) else { return NONE };
        let (before, _) = std::mem::replace(&mut self.places[place], (ask, spread));
        self.count += usize::from(before == NONE);
        before
    }

    /// The table, without the bits.
    pub(super) fn finish(self) -> Table {
        let mut places: Vec<_> = self.places.into_iter().map(|(ask, _)| ask).collect();
        places.shrink_to_fit();
        Table { places }
    }

    fn grow(&mut self) {
        let larger = Self::with_room((self.places.len() * 2).max(16));
        for known in std::mem::replace(&mut self.places, larger.places) {
            if known.0 != NONE
                && let Some(place) = place(&self.places, known.1, |(ask, _)| *ask == NONE)
            {
                self.places[place] = known;
            }
        }
    }
}

/// The first place, from where a key's bits say, that is fit for it.
fn place<T>(places: &[T], spread: u32, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let start = ((u64::from(spread) * places.len() as u64) >> 32) as usize;
    match places[start..].iter().position(&fits) {
        Some(found) => Some(start + found),
        None => places[..start].iter().position(fits),
    }
}
