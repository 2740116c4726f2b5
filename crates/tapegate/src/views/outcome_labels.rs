//! The words for the outcome of a call that people read. The words in logs and tapes are stable,
//! for programs.

use tapegate_core::decision::LoggedDecision;

/// The word for a decision of the activity log. A word from another version is shown as is.
pub(crate) fn decision(word: &str) -> &str {
    use LoggedDecision as Logged;
    let Some(decision) = LoggedDecision::parse(word) else { return word };
    match decision {
        Logged::Forward => "allowed",
        Logged::Deny | Logged::Reject => "denied",
        // The decision, which the command of the person logs. What became of the call is another line.
        Logged::Approved => "person approved",
        Logged::Denied => "person denied",
        Logged::Drop => "dropped",
        Logged::PendingApproval => "waits for a person",
        Logged::ApprovalTimeout => "timed out",
        Logged::Abandoned => "caller gave up",
        Logged::ServiceUnavailable => "no approver",
        Logged::Closed => "session ended",
        Logged::Filter => "hidden",
        Logged::Redact => "masked",
        Logged::Warn => "warned",
        Logged::WouldBlock | Logged::WouldReject => "would be denied",
        Logged::WouldRequireApproval => "would wait",
        Logged::WouldDrop => "would be dropped",
        Logged::WouldFilter => "would be hidden",
        Logged::WouldRedact => "would be masked",
        Logged::Cancelled | Logged::Expired | Logged::Forged | Logged::Refused => decision.as_str(),
    }
}

/// A duration, rounded, and short enough for a column.
pub(crate) fn duration(us: u64) -> String {
    // Rounding may reach the next unit: 999.6 ms are 1.0 s.
    if let ms @ 0..1000 = rounded(us, 1000) {
        return format!("{ms} ms");
    }
    if let tenths @ 0..600 = rounded(us, 100_000) {
        return format!("{}.{} s", tenths / 10, tenths % 10);
    }
    if let secs @ 0..3600 = rounded(us, 1_000_000) {
        return format!("{}m{:02}s", secs / 60, secs % 60);
    }
    if let minutes @ 0..6000 = rounded(us, 60_000_000) {
        return format!("{}h{:02}m", minutes / 60, minutes % 60);
    }
    // A tape may claim any latency, and the columns have no room for more.
    match rounded(us, 3_600_000_000) {
        hours @ 0..24_000 => format!("{}d{:02}h", hours / 24, hours % 24),
        hours => format!("{}d", hours / 24),
    }
}

/// A count of bytes, rounded.
pub(crate) fn bytes(count: u64) -> String {
    if count < 1000 {
        return format!("{count} B");
    }
    let scaled = |unit: u64, word: &str| {
        let tenths = rounded(count, unit / 10);
        (tenths < 10_000).then(|| format!("{}.{} {word}", tenths / 10, tenths % 10))
    };
    let gigabytes = || format!("{:.1} GB", count as f64 / 1e9);
    scaled(1000, "kB").or_else(|| scaled(1_000_000, "MB")).unwrap_or_else(gigabytes)
}

fn rounded(count: u64, unit: u64) -> u64 {
    count / unit + u64::from(count % unit >= unit.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_fit_a_column() {
        let told = [0, 998_700, 1_234_000, 61_000_000, 7_260_000_000].map(duration);
        assert_eq!(told, ["0 ms", "999 ms", "1.2 s", "1m01s", "2h01m"]);
        let told = [0, 999, 1250, 2_500_000, 1_200_000_000].map(bytes);
        assert_eq!(told, ["0 B", "999 B", "1.3 kB", "2.5 MB", "1.2 GB"]);
        assert_eq!(decision("pending_approval"), "waits for a person");
    }

    #[test]
    fn quantities_are_rounded_also_into_the_next_unit() {
        let told = [499, 500, 1_960_000, 999_500, 59_950_000, 119_600_000, 3_599_500_000];
        let expected = ["0 ms", "1 ms", "2.0 s", "1.0 s", "1m00s", "2m00s", "1h00m"];
        assert_eq!(told.map(duration), expected);
        let told = [359_999, 360_000, 100_000_020, 8_640_000_000].map(|secs| secs * 1_000_000);
        assert_eq!(told.map(duration), ["4d04h", "4d04h", "1157d", "100000d"]);
        assert_eq!(duration(359_940_000_000), "99h59m");
        let told = [1949, 1950, 999_949, 999_950, 999_950_000, u64::MAX].map(bytes);
        let expected = ["1.9 kB", "2.0 kB", "999.9 kB", "1.0 MB", "1.0 GB", "18446744073.7 GB"];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_decision_of_a_person_and_what_became_of_the_call_have_two_words() {
        for (person, call) in [("approved", "forward"), ("denied", "deny")] {
            assert_ne!(decision(person), decision(call));
        }
    }
}
