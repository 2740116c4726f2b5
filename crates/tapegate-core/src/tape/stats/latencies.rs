//! A histogram of durations: it takes the same memory for ten calls as for ten million.

/// Values below this have a bucket each.
const EXACT: u64 = 64;
/// The number of buckets for each doubling beyond; values are accurate to about one part in 32.
const STEPS: u64 = 32;

/// Durations in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Latencies {
    /// The count of each bucket, up to the highest non-empty one.
    buckets: Vec<u64>,
    count: u64,
    total_ms: u128,
    max_ms: u64,
}

impl Latencies {
    /// Counts a duration.
    pub fn add(&mut self, ms: u64) {
        let bucket = bucket(ms);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.total_ms += u128::from(ms);
        self.max_ms = self.max_ms.max(ms);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, others: &Self) {
        if self.buckets.len() < others.buckets.len() {
            self.buckets.resize(others.buckets.len(), 0);
        }
        for (ours, theirs) in self.buckets.iter_mut().zip(&others.buckets) {
            *ours += theirs;
        }
        self.count += others.count;
        self.total_ms += others.total_ms;
        self.max_ms = self.max_ms.max(others.max_ms);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The longest duration.
    pub fn max_ms(&self) -> u64 {
        self.max_ms
    }

    /// The mean, rounded.
    pub fn mean_ms(&self) -> u64 {
        let count = u128::from(self.count);
        let mean = (self.total_ms + count / 2).checked_div(count).unwrap_or_default();
        u64::try_from(mean).unwrap_or(u64::MAX)
    }

    /// The duration that this percentage does not exceed, to within one part in 32.
    pub fn percentile_ms(&self, percent: u64) -> u64 {
        let wanted = (u128::from(self.count) * u128::from(percent)).div_ceil(100).max(1);
        let mut seen = 0u128;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u128::from(*count);
            if seen >= wanted {
                // A bucket may reach beyond the longest duration that was counted.
                return longest_in_bucket(bucket).min(self.max_ms);
            }
        }
        self.max_ms
    }

    /// How many were shorter than `ms`; exact if that is less than 64 or a power of two.
    pub fn count_below(&self, ms: u64) -> u64 {
        self.buckets.iter().take(bucket(ms)).sum()
    }
}

fn bucket(ms: u64) -> usize {
    if ms < EXACT {
        return ms as usize;
    }
    let doubling = u64::from(ms.ilog2() - EXACT.ilog2());
    let step = (ms >> (doubling + 1)) - STEPS;
    (EXACT + doubling * STEPS + step) as usize
}

/// The longest duration of a bucket.
fn longest_in_bucket(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    let (doubling, step) = ((bucket - EXACT) / STEPS, (bucket - EXACT) % STEPS);
    let next = u128::from(STEPS + step + 1) << (doubling + 1);
    u64::try_from(next - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_in_a_bucket_that_is_nearly_exact() {
        let far = (0..58).flat_map(|power| {
            let base = 1u64 << power;
            [base, base + base / 3, base * 2 - 1]
        });
        for ms in (0..5000).chain(far).chain([u64::MAX]) {
            let top = longest_in_bucket(bucket(ms));
            assert!(top >= ms && top - ms <= ms / 32, "{ms} {top}");
            assert!(bucket(ms) < 2000, "{ms}");
        }
    }

    #[test]
    fn percentiles_are_those_of_the_durations() {
        let mut latencies = Latencies::default();
        (1..=100).for_each(|ms| latencies.add(ms));
        assert_eq!(latencies.percentile_ms(50), 50);
        assert_eq!(latencies.percentile_ms(99), 99);
        assert_eq!(latencies.percentile_ms(100), 100);
        assert_eq!((latencies.max_ms(), latencies.mean_ms(), latencies.count()), (100, 51, 100));
        assert_eq!(latencies.count_below(10), 9);
        assert_eq!(latencies.count_below(64), 63);
        assert_eq!(Latencies::default().percentile_ms(50), 0);
    }
}
