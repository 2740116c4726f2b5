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
        Logged::Cancelled | Logged::Expired | Logged::Forged | Logged::Refused => decision.word(),
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

    #[test]
    fn a_decision_of_a_person_and_what_became_of_the_call_have_two_words() {
        for (person, call) in [("approved", "forward"), ("denied", "deny")] {
            assert_ne!(decision(person), decision(call));
        }
    }
}
