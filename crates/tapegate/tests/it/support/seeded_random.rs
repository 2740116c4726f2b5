//! Reproducible random numbers.

use std::time::Duration;

use super::waiting;

/// Random numbers that differ from run to run; the seed is printed when a test fails.
pub(crate) struct SeededRandom(u64);

impl SeededRandom {
    #[expect(clippy::print_stdout, reason = "a failure can be had again by its seed")]
    pub(crate) fn roll() -> Self {
        use std::hash::{BuildHasher, Hasher};
        let given = std::env::var("DICE").ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            std::collections::hash_map::RandomState::new().build_hasher().finish() | 1
        });
        println!("DICE={seed}");
        Self(seed)
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Lets a random time pass before a process is killed.
    pub(crate) fn pause_us(&mut self, end: u64) {
        waiting::pause(Duration::from_micros(self.below(end)));
    }
}
