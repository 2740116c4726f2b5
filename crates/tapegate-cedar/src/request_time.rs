//! The value of `context.time`.

/// A point in time as policies see it, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestTime {
    /// 0 to 23.
    pub(crate) hour: i64,
    /// 0 for Sunday.
    pub(crate) day_of_week: i64,
    /// Seconds since 1970.
    pub(crate) timestamp: i64,
}

impl RequestTime {
    /// Converts microseconds since 1970, which started on a Thursday.
    pub(crate) fn new(wall_us: i64) -> Self {
        const DAY: i64 = 86_400;
        const THURSDAY: i64 = 4;
        let timestamp = wall_us.div_euclid(1_000_000);
        let hour = timestamp.rem_euclid(DAY) / 3_600;
        let day_of_week = (timestamp.div_euclid(DAY) + THURSDAY).rem_euclid(7);
        Self { hour, day_of_week, timestamp }
    }
}
