//! The report of a verification: changes fail, requests that were not sent are skipped, and notes
//! are warnings.

use tapegate_core::verifier::{
    Discrepancy, ItemChange, ListKind, MessageRef, SkippedMessage, VerifyFinding, VerifyNote,
    VerifyNoteKind, VerifyReport,
};

use super::{ReportCase, ReportOutcome, ReportRule, ReportSuite, RunReport, TapePosition};
use crate::views::divergence::subject;
use crate::views::json;
use crate::views::palette::Palette;
use crate::views::server_change::{details, differences, headline, reason, subject_text};
use crate::views::verification::note_text;

/// Groups of related changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeGroup {
    /// Tools: they may no longer be what the user agreed to.
    Tools,
    /// The server's data about itself.
    Server,
    /// The other lists of what it offers.
    Lists,
    Answers,
    Notifications,
    /// Its requests to the client.
    Questions,
}

/// The groups in the order in which they are reported.
pub(crate) const GROUPS: [ChangeGroup; 6] = [
    ChangeGroup::Tools,
    ChangeGroup::Server,
    ChangeGroup::Lists,
    ChangeGroup::Answers,
    ChangeGroup::Notifications,
    ChangeGroup::Questions,
];

const ACCEPT: &str = "Check whether the change is intended; if so, record the session again.";
const AGREE: &str = "Check whether users of the server would accept the tool as it is now.";
const IGNORE: &str =
    "Check whether the change is intended; use --ignore for values that always differ.";

macro_rules! rules {
    ($($name:ident: $id:literal, $text:literal, $help:expr;)*) => {
        $(static $name: ReportRule = ReportRule::new($id, $text, $help);)*
    };
}

rules! {
    TOOL_ADDED: "tool-added", "The server has a tool that was not recorded.", AGREE;
    TOOL_REMOVED: "tool-removed", "The server no longer has a tool.", ACCEPT;
    TOOL_CHANGED: "tool-changed", "The definition of a tool has changed.", AGREE;
    ITEM_ADDED: "item-added", "A list has an item that was not recorded.", ACCEPT;
    ITEM_REMOVED: "item-removed", "A list no longer has an item.", ACCEPT;
    ITEM_CHANGED: "item-changed", "An item of a list has changed.", ACCEPT;
    VERSION: "server-version", "The version of the server has changed.", ACCEPT;
    SERVER: "server-changed", "The server introduces itself differently.", ACCEPT;
    ENDED: "server-ended", "The server ended or stopped answering too early.", "Check what the server writes to standard error.";
    ANSWER: "answer-changed", "An answer has changed.", IGNORE;
    ERROR: "answer-error", "An answer is an error instead of a result.", ACCEPT;
    RESULT: "answer-result", "An answer is a result instead of an error.", ACCEPT;
    NO_ANSWER: "no-answer", "The server did not answer in time.", "Check whether the server hangs, or give it more time with --timeout.";
    TOO_LARGE: "too-large", "A message was too large to be read.", "Allow larger messages with --max-message-bytes.";
    STRAY: "stray-answer", "The server sent an answer that matches no request.", "Check whether the server answers twice, or with wrong ids.";
    NOTICE_ADDED: "notification-added", "The server sent a notification that was not recorded.", IGNORE;
    NOTICE_REMOVED: "notification-removed", "The server did not send a recorded notification.", IGNORE;
    NOTICE_CHANGED: "notification-changed", "A notification has changed.", IGNORE;
    NOTICE_MOVED: "notification-moved", "A notification comes in another order.", ACCEPT;
    QUESTION_ADDED: "request-added", "The server makes a request that was not recorded.", AGREE;
    QUESTION_REMOVED: "request-removed", "The server did not make a recorded request.", ACCEPT;
    QUESTION_CHANGED: "request-changed", "A request of the server has changed.", AGREE;
    NOT_SENT: "not-sent", "A recorded message was not sent.", "Send more messages with --calls read-only, or with --calls all if the server may be changed.";
    NOTE: "note", "For information.", "No action is needed.";
}

/// Fills `report` with the result of a verification.
pub(crate) fn fill(verify_report: &VerifyReport, mut report: RunReport) -> RunReport {
    let changes = verify_report.findings.len() as u64 + verify_report.findings_more;
    let drift =
        verify_report.findings.iter().filter(|finding| finding.discrepancy.is_tool_drift()).count();
    report.counts = vec![
        ("changes", changes),
        ("tool_changes", drift as u64),
        ("requests", verify_report.requests),
        ("answers", verify_report.answers),
        ("not_compared", verify_report.not_compared),
        ("notifications", verify_report.notifications),
        ("skipped", verify_report.skipped.len() as u64 + verify_report.skipped_more),
        ("sessions", u64::from(verify_report.sessions)),
    ];
    for group in GROUPS {
        let mut cases: Vec<ReportCase> = Vec::new();
        let of_group = |finding: &&VerifyFinding| group_of(&finding.discrepancy) == group;
        cases.extend(verify_report.findings.iter().filter(of_group).map(changed_case));
        cases.extend(unchanged_case(verify_report, group, cases.len()));
        if !cases.is_empty() {
            report.suites.push(ReportSuite { name: suite_name(group).to_owned(), cases });
        }
    }
    if verify_report.findings_more > 0 {
        let name = format!("{} more changes", verify_report.findings_more);
        let message = "there are more changes than can be listed".to_owned();
        let outcome = ReportOutcome::Failed;
        let cases = vec![ReportCase {
            name,
            outcome,
            rule: Some((&ANSWER).into()),
            message,
            ..ReportCase::default()
        }];
        report.suites.push(ReportSuite { name: "more".to_owned(), cases });
    }
    let mut cases: Vec<ReportCase> = verify_report.skipped.iter().map(skipped).collect();
    cases.extend((verify_report.skipped_more > 0).then(|| {
        let name = format!("{} more", verify_report.skipped_more);
        let message = "there are more than can be listed".to_owned();
        ReportCase {
            name,
            outcome: ReportOutcome::Skipped,
            rule: Some((&NOT_SENT).into()),
            message,
            ..ReportCase::default()
        }
    }));
    if !cases.is_empty() {
        report.suites.push(ReportSuite { name: "not-sent".to_owned(), cases });
    }
    let cases: Vec<ReportCase> = verify_report.notes.iter().map(note_case).collect();
    if !cases.is_empty() {
        report.suites.push(ReportSuite { name: "notes".to_owned(), cases });
    }
    report
}

/// One case for all comparisons that found no change.
fn unchanged_case(
    verify_report: &VerifyReport,
    group: ChangeGroup,
    changed: usize,
) -> Option<ReportCase> {
    let (count, word) = match group {
        ChangeGroup::Answers => (verify_report.answers, "answers"),
        ChangeGroup::Notifications => (verify_report.notifications, "notifications"),
        _ => return None,
    };
    let name = match changed {
        0 => format!("{count} {word} are as recorded"),
        _ => format!("{count} {word} were compared"),
    };
    (count > 0).then(|| ReportCase { name, ..ReportCase::default() })
}

/// The group a change belongs to.
pub(crate) fn group_of(discrepancy: &Discrepancy) -> ChangeGroup {
    match discrepancy {
        Discrepancy::Item { list: ListKind::Tools, .. } => ChangeGroup::Tools,
        Discrepancy::Item { .. } => ChangeGroup::Lists,
        Discrepancy::Server(_) | Discrepancy::Version { .. } | Discrepancy::Ended { .. } => {
            ChangeGroup::Server
        }
        Discrepancy::Notice(_) | Discrepancy::Moved { .. } => ChangeGroup::Notifications,
        Discrepancy::Question(_) => ChangeGroup::Questions,
        Discrepancy::Answer(_)
        | Discrepancy::Error { .. }
        | Discrepancy::Result { .. }
        | Discrepancy::NoAnswer { .. }
        | Discrepancy::TooLarge { .. }
        | Discrepancy::Stray { .. } => ChangeGroup::Answers,
    }
}

fn suite_name(group: ChangeGroup) -> &'static str {
    match group {
        ChangeGroup::Tools => "tools",
        ChangeGroup::Server => "server",
        ChangeGroup::Lists => "lists",
        ChangeGroup::Answers => "answers",
        ChangeGroup::Notifications => "notifications",
        ChangeGroup::Questions => "requests",
    }
}

fn rule(discrepancy: &Discrepancy) -> &'static ReportRule {
    let of = |item_change: &ItemChange, [added, removed, changed]: [&'static ReportRule; 3]| {
        match item_change {
            ItemChange::Added(_) => added,
            ItemChange::Removed(_) => removed,
            ItemChange::Changed(_) => changed,
        }
    };
    match discrepancy {
        Discrepancy::Item { list: ListKind::Tools, item_change, .. } => {
            of(item_change, [&TOOL_ADDED, &TOOL_REMOVED, &TOOL_CHANGED])
        }
        Discrepancy::Item { item_change, .. } => {
            of(item_change, [&ITEM_ADDED, &ITEM_REMOVED, &ITEM_CHANGED])
        }
        Discrepancy::Notice(item_change) => {
            of(item_change, [&NOTICE_ADDED, &NOTICE_REMOVED, &NOTICE_CHANGED])
        }
        Discrepancy::Question(item_change) => {
            of(item_change, [&QUESTION_ADDED, &QUESTION_REMOVED, &QUESTION_CHANGED])
        }
        Discrepancy::Moved { .. } => &NOTICE_MOVED,
        Discrepancy::Server(_) => &SERVER,
        Discrepancy::Version { .. } => &VERSION,
        Discrepancy::Ended { .. } => &ENDED,
        Discrepancy::Answer(_) => &ANSWER,
        Discrepancy::Error { .. } => &ERROR,
        Discrepancy::Result { .. } => &RESULT,
        Discrepancy::NoAnswer { .. } => &NO_ANSWER,
        Discrepancy::TooLarge { .. } => &TOO_LARGE,
        Discrepancy::Stray { .. } => &STRAY,
    }
}

fn changed_case(finding: &VerifyFinding) -> ReportCase {
    let name = match &finding.discrepancy {
        Discrepancy::Item { list, name, .. } => {
            subject(crate::views::server_change::noun(*list), Some(name))
        }
        _ => subject_text(&finding.about),
    };
    let mut facts = facts(&finding.about);
    facts.push(("times", finding.times.to_string().into_bytes()));
    facts.push(("after_skipped", finding.after_skipped.to_string().into_bytes()));
    facts.extend(sides(&finding.discrepancy));
    ReportCase {
        name,
        outcome: ReportOutcome::Failed,
        rule: Some(rule(&finding.discrepancy).into()),
        message: headline(finding),
        details: details(finding, Palette::Plain, ""),
        position: place(&finding.about),
        duration_ms: None,
        facts,
    }
}

/// The recorded and the live values, for machines.
fn sides(discrepancy: &Discrepancy) -> Vec<(&'static str, Vec<u8>)> {
    match discrepancy {
        Discrepancy::Answer(changes) | Discrepancy::Server(changes) => list_changes(changes),
        Discrepancy::Error { recorded, live }
        | Discrepancy::Result { recorded, live }
        | Discrepancy::Version { recorded, live } => {
            vec![("recorded", recorded.clone()), ("live", live.clone())]
        }
        Discrepancy::Stray { live } | Discrepancy::Moved { live } => vec![("live", live.clone())],
        Discrepancy::Item { item_change, .. }
        | Discrepancy::Notice(item_change)
        | Discrepancy::Question(item_change) => match item_change {
            ItemChange::Added(text) => vec![("live", text.clone())],
            ItemChange::Removed(text) => vec![("recorded", text.clone())],
            ItemChange::Changed(changes) => list_changes(changes),
        },
        Discrepancy::NoAnswer { .. } | Discrepancy::TooLarge { .. } | Discrepancy::Ended { .. } => {
            Vec::new()
        }
    }
}

fn list_changes(
    changes: &tapegate_core::verifier::RecordedChanges,
) -> Vec<(&'static str, Vec<u8>)> {
    json::differences(&differences(changes))
}

fn skipped(skipped: &SkippedMessage) -> ReportCase {
    ReportCase {
        name: subject_text(&skipped.about),
        outcome: ReportOutcome::Skipped,
        rule: Some((&NOT_SENT).into()),
        message: reason(skipped.skip_reason).to_owned(),
        position: place(&skipped.about),
        facts: facts(&skipped.about),
        ..ReportCase::default()
    }
}

fn note_case(note: &VerifyNote) -> ReportCase {
    let outcome = match note.kind {
        VerifyNoteKind::Reordered(_) | VerifyNoteKind::Moved => ReportOutcome::Passed,
        _ => ReportOutcome::Warning,
    };
    ReportCase {
        name: subject_text(&note.about),
        outcome,
        rule: Some((&NOTE).into()),
        message: note_text(&note.kind),
        position: place(&note.about),
        facts: facts(&note.about),
        ..ReportCase::default()
    }
}

fn facts(about: &MessageRef) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("session", about.session.to_string().into_bytes()),
        ("method", json::quoted(&about.method)),
        ("target", about.name.as_deref().map_or(b"null".to_vec(), json::quoted)),
    ]
}

fn place(about: &MessageRef) -> TapePosition {
    TapePosition { number: about.number, line: None }
}

#[cfg(test)]
mod tests;
