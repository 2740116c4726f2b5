//! The current time, by the wall clock and the monotonic clock.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tapegate_core::time::Timestamp;

/// Reads the wall clock and the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock whose monotonic reading counts from now.
    pub fn start() -> Self {
        Self { start: Instant::now() }
    }

    /// The instant of a monotonic reading.
    pub fn instant_at(&self, mono_ns: u64) -> Instant {
        self.start + Duration::from_nanos(mono_ns)
    }

    /// The current time of the monotonic clock alone, which is faster than reading both.
    pub fn mono_ns(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    /// The current time by both clocks.
    pub fn now(&self) -> Timestamp {
        // A clock set before 1970 must not stop a recording.
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp { wall_us: wall.as_micros() as i64, mono_ns: self.mono_ns() }
    }
}
