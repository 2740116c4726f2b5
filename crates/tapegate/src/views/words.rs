//! One word for one thing: what became of a call, as people read it. The words of logs and tapes are a
//! promise to programs and stay.

/// What a decision of the activity log is called.
pub(crate) fn decision(word: &str) -> &str {
    match word {
        "forward" => "allowed",
        "deny" | "denied" | "reject" | "rejected" => "denied",
        "drop" => "dropped",
        "pending_approval" => "waits for a person",
        "filter" => "hidden",
        "redact" => "masked",
        "warn" => "warned",
        "WOULD_BLOCK" | "would_block" | "WOULD_REJECT" | "would_reject" => "would be denied",
        "WOULD_REQUIRE_APPROVAL" | "would_require_approval" => "would wait",
        "WOULD_DROP" | "would_drop" => "would be dropped",
        "WOULD_FILTER" | "would_filter" => "would be hidden",
        "WOULD_REDACT" | "would_redact" => "would be masked",
        other => other,
    }
}

/// A duration, short enough for a column.
pub(crate) fn duration(us: u64) -> String {
    match us / 1000 {
        ms @ 0..1000 => format!("{ms} ms"),
        ms @ 1000..60_000 => format!("{}.{} s", ms / 1000, ms / 100 % 10),
        ms @ 60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
        ms => format!("{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// A count of bytes.
pub(crate) fn bytes(count: u64) -> String {
    let scaled =
        |unit: u64, word: &str| format!("{}.{} {word}", count / unit, count % unit / (unit / 10));
    match count {
        0..1000 => format!("{count} B"),
        1000..1_000_000 => scaled(1000, "kB"),
        1_000_000..1_000_000_000 => scaled(1_000_000, "MB"),
        _ => scaled(1_000_000_000, "GB"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_fit_a_column() {
        let told = [0, 999_999, 1_234_000, 61_000_000, 7_260_000_000].map(duration);
        assert_eq!(told, ["0 ms", "999 ms", "1.2 s", "1m01s", "2h01m"]);
        let told = [0, 999, 1250, 2_500_000, 1_200_000_000].map(bytes);
        assert_eq!(told, ["0 B", "999 B", "1.2 kB", "2.5 MB", "1.2 GB"]);
        assert_eq!(decision("pending_approval"), "waits for a person");
    }
}
