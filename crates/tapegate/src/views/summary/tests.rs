//! Counts and lists of the summary.

use tapegate_core::player::{Divergence, DivergenceReason, UnusedRequest};

use super::*;
use crate::views::golden::assert_golden;

fn diverged(method: &str, name: Option<&str>, reason: DivergenceReason) -> Divergence {
    Divergence {
        session: 1,
        tape_session: Some(1),
        method: method.to_owned(),
        name: name.map(str::to_owned),
        request: Vec::new(),
        reason,
        next: None,
        nearest: Vec::new(),
        passed_on: false,
    }
}

#[test]
fn the_summary_is_as_the_golden_has_it() {
    let unused =
        |number: u32| UnusedRequest { number, method: "tools/list".to_owned(), name: None };
    let all = [
        ReplaySummary { matched: 12, sessions: 1, ..ReplaySummary::default() },
        ReplaySummary {
            matched: 12,
            differing: 2,
            differing_first: Vec::new(),
            courtesies: 1,
            unmatched: 7,
            passed_on: 3,
            server_failed: 1,
            server_failure: Some("it ended".to_owned()),
            divergences: vec![
                diverged("tools/call", Some("read_file\x1b"), DivergenceReason::NotRecorded),
                diverged("tools/call", Some("read_file"), DivergenceReason::Exhausted),
                diverged("tools/list", None, DivergenceReason::OutOfOrder),
                diverged("ping", None, DivergenceReason::TapeEnded),
                diverged("resources/read", Some("file:///a"), DivergenceReason::Unanswered),
                diverged("tools/list", None, DivergenceReason::OutOfOrder),
            ],
            unused: 2,
            unused_first: vec![unused(3), unused(9)],
            sessions: 4,
            changed_replies: 2,
            failed_replies: 1,
            ..ReplaySummary::default()
        },
    ];
    let told: Vec<String> = all.iter().map(text).collect();
    assert_golden("summary.txt", &told.join("\n"));
}
