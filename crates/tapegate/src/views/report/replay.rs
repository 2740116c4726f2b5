//! The report of a replay. Requests without an answer on the tape fail, requests answered for other
//! params are warnings, and recorded requests that the client never sent are skipped. Replies of
//! the client that differ from the recorded ones fail or are warnings.

use tapegate_core::player::{
    ChangedReply, DifferingRequest, Divergence, DivergenceReason, ExtraRead, ReplaySummary,
    UnusedRequest,
};

use super::{ReportCase, ReportOutcome, ReportRule, ReportSuite, RunReport, TapePosition};
use crate::views::divergence::{DivergenceView, differences, subject, subject_of};
use crate::views::json::{self, JsonWriter};
use crate::views::palette::Palette;
use crate::views::{client_reply, plural, visible_text};

/// How many differences are listed for each nearest recorded request.
const DIFFERENCES_MAX: usize = 50;
const WHY_CHARS_MAX: usize = 300;
/// The message for a recorded request that was never sent, before its number.
pub(crate) const UNUSED_MESSAGE: &str = "no client requested #";
/// The suite that contains only these.
pub(crate) const UNUSED_SUITE: &str = "recorded";

static NOT_RECORDED: ReportRule = ReportRule::new(
    "not-recorded",
    "The client made a request that is not on the tape.",
    "Record the session again, or ignore the differences with --ignore or --match-mode fuzzy.",
);
static EXHAUSTED: ReportRule = ReportRule::new(
    "exhausted",
    "The client made a request more often than it was recorded.",
    "Record the session again, or repeat answers with --on-exhausted.",
);
static OUT_OF_ORDER: ReportRule = ReportRule::new(
    "out-of-order",
    "The client made a request that is not next on the tape.",
    "If the order does not matter, replay with --match-mode by-request.",
);
static PARAMS_DIFFER: ReportRule = ReportRule::new(
    "params-differ",
    "The request that comes next on the tape was made with other params, which --strict-params refuses.",
    "Check why the params differ, or ignore the differences with --ignore.",
);
static TAPE_ENDED: ReportRule = ReportRule::new(
    "tape-ended",
    "The client made a request after the end of the tape.",
    "Record the session again.",
);
static UNANSWERED: ReportRule = ReportRule::new(
    "unanswered",
    "The client made a request that was recorded without an answer.",
    "Record the session again.",
);
static NOT_CANCELLED: ReportRule = ReportRule::new(
    "not-cancelled",
    "The recorded client cancelled the request before it was answered; this client did not.",
    "Check why the client waits for the answer now, or record the session again.",
);
static OTHER_PARAMS: ReportRule = ReportRule::new(
    "other-params",
    "A request was answered with the answer recorded for other params.",
    "Refuse such requests with --strict-params or, with --match-mode fuzzy, --fuzzy-threshold 1; or ignore the differences with --ignore.",
);
static OTHER_REPLY: ReportRule = ReportRule::new(
    "other-reply",
    "The answer of the client to a request of the server differs from the recorded one.",
    "Check why the client answers differently, or record the session again.",
);
static EXTRA_READ: ReportRule = ReportRule::new(
    "extra-read",
    "A list or similar was requested more often than recorded, or out of order.",
    "Refuse such requests with --strict-reads, or record the session again.",
);
pub(super) static UNUSED: ReportRule = ReportRule::new(
    "unused",
    "A recorded request was not made.",
    "Check whether the client still does everything it did.",
);

static SERVER_FAILED: ReportRule = ReportRule::new(
    "server-failed",
    "The passthrough server did not start or failed, so requests were not answered.",
    "Start the server on its own to see its output, then correct its command line or URL.",
);

static TAPE_BROKEN: ReportRule = ReportRule::new(
    "tape-broken",
    "The tape could not be read while it was played.",
    "Do not change a tape while it is played, or replay a copy.",
);

/// Adds a failure because the tape could not be read further.
pub(crate) fn add_read_failure(report: &mut RunReport, cause_text: &str) {
    let case = ReportCase {
        name: "the tape".to_owned(),
        outcome: ReportOutcome::Failed,
        rule: Some((&TAPE_BROKEN).into()),
        message: cause_text.to_owned(),
        ..ReportCase::default()
    };
    report.suites.push(ReportSuite { name: "tape".to_owned(), cases: vec![case] });
}

/// Fills `report` with the result of a replay.
pub(crate) fn fill(
    summary: &ReplaySummary,
    teller: &DivergenceView<'_>,
    mut report: RunReport,
) -> RunReport {
    // Reports are read by machines, even if the run prints in colour.
    let teller = &DivergenceView { palette: Palette::Plain, ..*teller };
    report.counts = vec![
        ("matched", summary.matched),
        ("differing", summary.differing),
        ("courtesies", summary.courtesies),
        ("unmatched", summary.unmatched),
        ("passed_on", summary.passed_on),
        ("server_failed", summary.server_failed),
        ("unused", summary.unused),
        ("sessions", u64::from(summary.sessions)),
        ("changed_replies", summary.changed_replies),
        ("extra_reads", summary.extra_reads),
    ];
    report.only_setup = summary.only_setup;
    let mut cases = Vec::new();
    let differing = &summary.differing_first;
    let extra = &summary.extra_reads_first;
    let apart = (differing.len() + extra.len()) as u64;
    // One case for all: millions of equal requests would make a report unreadable.
    let answered = (summary.matched + summary.courtesies).saturating_sub(apart);
    if answered > 0 {
        let name = format!("{answered} answered");
        cases.push(ReportCase { name, ..ReportCase::default() });
    }
    cases.extend(summary.divergences.iter().map(|divergence| divergence_case(divergence, teller)));
    let listed =
        |on: bool| summary.divergences.iter().filter(|one| one.passed_on == on).count() as u64;
    // Only the first are listed one by one; the counts must still add up.
    let failed = summary.unmatched.saturating_sub(summary.passed_on);
    let failed = failed.saturating_sub(listed(false));
    let passed_on = summary.passed_on.saturating_sub(listed(true));
    cases.extend(
        (failed > 0).then(|| rest_case(failed, "unmatched", ReportOutcome::Failed, &NOT_RECORDED)),
    );
    cases.extend(
        (passed_on > 0)
            .then(|| rest_case(passed_on, "passed on", ReportOutcome::Warning, &NOT_RECORDED)),
    );
    cases.extend((summary.server_failed > 0).then(|| passthrough_failure_case(summary)));
    cases.extend(differing.iter().map(|one| differs(one, teller)));
    cases.extend(extra.iter().map(extra_read_case));
    report.suites.push(ReportSuite { name: "asked".to_owned(), cases });
    let replies = changed_reply_cases(summary);
    if !replies.is_empty() {
        report.suites.push(ReportSuite { name: "replied".to_owned(), cases: replies });
    }
    let mut cases: Vec<ReportCase> = summary.unused_first.iter().map(unused_case).collect();
    let more = summary.unused.saturating_sub(cases.len() as u64);
    cases.extend((more > 0).then(|| rest_case(more, "unused", ReportOutcome::Skipped, &UNUSED)));
    report.suites.push(ReportSuite { name: UNUSED_SUITE.to_owned(), cases });
    report
}

fn divergence_case(divergence: &Divergence, teller: &DivergenceView<'_>) -> ReportCase {
    let Divergence { method, name, reason, .. } = divergence;
    let nearest_one = divergence.nearest.first().or(divergence.next.as_ref());
    let nearest = JsonWriter::line_of(&divergence.nearest, |json, near| {
        json.number("number", u64::from(near.number));
        json.raw("score", format!("{:.3}", near.score).as_bytes());
        let (old, new) = teller.params(divergence, near);
        // Without differences if a text is not JSON; the request itself is in the facts.
        let found = differences(&old, &new, DIFFERENCES_MAX).unwrap_or_default();
        json::differences(&found).iter().for_each(|(key, fact)| json.raw(key, fact));
    });
    let facts = vec![
        ("session", divergence.session.to_string().into_bytes()),
        ("method", json::quoted(method)),
        ("target", name.as_deref().map_or(b"null".to_vec(), json::quoted)),
        ("passed_on", divergence.passed_on.to_string().into_bytes()),
        ("request", divergence.request.clone()),
        ("nearest", nearest),
    ];
    ReportCase {
        name: subject(method, name.as_deref()),
        outcome: if divergence.passed_on { ReportOutcome::Warning } else { ReportOutcome::Failed },
        rule: Some(rule(*reason).into()),
        message: teller.reason(divergence),
        details: teller.details(divergence),
        position: TapePosition { number: nearest_one.map(|near| near.number), line: None },
        duration_ms: None,
        facts,
    }
}

fn passthrough_failure_case(summary: &ReplaySummary) -> ReportCase {
    let (count, cause_text) = (summary.server_failed, summary.server_failure.as_deref());
    let requests = plural(count, "request");
    ReportCase {
        name: "the server behind the tape".to_owned(),
        outcome: ReportOutcome::Failed,
        rule: Some((&SERVER_FAILED).into()),
        message: format!(
            "{requests} not answered: {}",
            visible_text::inline(cause_text.unwrap_or_default(), WHY_CHARS_MAX)
        ),
        ..ReportCase::default()
    }
}

fn differs(one: &DifferingRequest, teller: &DivergenceView<'_>) -> ReportCase {
    let (old, new) =
        (teller.signer.canonical(&one.recorded), teller.signer.canonical(&one.request));
    let found = differences(&old, &new, DIFFERENCES_MAX).unwrap_or_default();
    let mut facts = vec![("request", one.request.clone())];
    facts.extend(json::differences(&found));
    ReportCase {
        name: subject_of(&one.request),
        outcome: ReportOutcome::Warning,
        rule: Some((&OTHER_PARAMS).into()),
        message: format!("it was answered as #{} was, with other params", one.number),
        details: teller.differences_text(&one.recorded, &one.request),
        position: TapePosition { number: Some(one.number), line: None },
        facts,
        ..ReportCase::default()
    }
}

fn extra_read_case(read: &ExtraRead) -> ReportCase {
    let number = read.number;
    ReportCase {
        name: subject_of(&read.request),
        outcome: ReportOutcome::Warning,
        rule: Some((&EXTRA_READ).into()),
        message: match read.again {
            true => {
                format!("it was made more often than recorded, and answered as #{number} again")
            }
            false => format!("it was made out of order, and answered as #{number}"),
        },
        position: TapePosition { number: Some(number), line: None },
        facts: vec![("request", read.request.clone())],
        ..ReportCase::default()
    }
}

/// The client's replies that differ from the recorded ones.
fn changed_reply_cases(summary: &ReplaySummary) -> Vec<ReportCase> {
    let first = &summary.changed_replies_first;
    let mut cases: Vec<ReportCase> = first.iter().map(changed_reply_case).collect();
    let listed = |fails: bool| first.iter().filter(|reply| reply.fails == fails).count() as u64;
    let failed = summary.failed_replies.saturating_sub(listed(true));
    let warned = summary.changed_replies - summary.failed_replies;
    let warned = warned.saturating_sub(listed(false));
    let word = "replies changed";
    cases
        .extend((failed > 0).then(|| rest_case(failed, word, ReportOutcome::Failed, &OTHER_REPLY)));
    cases.extend(
        (warned > 0).then(|| rest_case(warned, word, ReportOutcome::Warning, &OTHER_REPLY)),
    );
    cases
}

fn changed_reply_case(reply: &ChangedReply) -> ReportCase {
    let raw = |text: &[u8]| if text.is_empty() { b"null".to_vec() } else { text.to_vec() };
    let mut facts = vec![("recorded", raw(&reply.recorded)), ("answered", raw(&reply.live))];
    let found = client_reply::differences(reply, DIFFERENCES_MAX);
    facts.extend(found.iter().flat_map(json::differences));
    ReportCase {
        name: client_reply::subject(reply),
        outcome: if reply.fails { ReportOutcome::Failed } else { ReportOutcome::Warning },
        rule: Some((&OTHER_REPLY).into()),
        message: format!("{}, to #{}", reply.change.as_str(), reply.number),
        details: client_reply::details(reply, Palette::Plain),
        position: TapePosition { number: Some(reply.number), line: None },
        facts,
        ..ReportCase::default()
    }
}

fn unused_case(unused: &UnusedRequest) -> ReportCase {
    ReportCase {
        name: subject(&unused.method, unused.name.as_deref()),
        // It is not known that anything is wrong: the client may need less than before.
        outcome: ReportOutcome::Skipped,
        rule: Some((&UNUSED).into()),
        message: format!("{}{}", UNUSED_MESSAGE, unused.number),
        position: TapePosition { number: Some(unused.number), line: None },
        ..ReportCase::default()
    }
}

fn rest_case(
    count: u64,
    word: &str,
    outcome: ReportOutcome,
    rule: &'static ReportRule,
) -> ReportCase {
    let name = format!("{count} more {word}");
    let message = format!("{count} more are {word}, too many to list");
    ReportCase { name, outcome, rule: Some(rule.into()), message, ..ReportCase::default() }
}

fn rule(reason: DivergenceReason) -> &'static ReportRule {
    match reason {
        DivergenceReason::NotRecorded => &NOT_RECORDED,
        DivergenceReason::Exhausted => &EXHAUSTED,
        DivergenceReason::OutOfOrder => &OUT_OF_ORDER,
        DivergenceReason::OtherParams => &PARAMS_DIFFER,
        DivergenceReason::TapeEnded => &TAPE_ENDED,
        DivergenceReason::Unanswered => &UNANSWERED,
        DivergenceReason::NotCancelled => &NOT_CANCELLED,
    }
}
