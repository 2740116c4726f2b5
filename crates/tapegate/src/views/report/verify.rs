//! The report of a verification: changes fail, requests that were not sent are skipped, and notes
//! are warnings.

use tapegate_core::verifier::{
    About, Became, Finding, List, Note, NoteSort, Report as Found, Skipped, What,
};

use super::{Case, Outcome, Place, Report, Rule, Suite};
use crate::views::change::{about, details, differences, headline, reason};
use crate::views::divergence::subject;
use crate::views::json;
use crate::views::palette::Palette;
use crate::views::verified::note_words;

/// Groups of related changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Tools: they may no longer be what the user agreed to.
    Tools,
    /// The server's data about itself.
    Server,
    /// The other lists of what it offers.
    Lists,
    /// Its answers.
    Answers,
    /// Its notifications.
    Notifications,
    /// Its requests to the client.
    Questions,
}

/// The groups in the order in which they are reported.
pub(crate) const GROUPS: [Group; 6] = [
    Group::Tools,
    Group::Server,
    Group::Lists,
    Group::Answers,
    Group::Notifications,
    Group::Questions,
];

const ACCEPT: &str = "Check whether the change is intended; if so, record the session again.";
const AGREE: &str = "Check whether users of the server would accept the tool as it is now.";
const IGNORE: &str =
    "Check whether the change is intended; use --ignore for values that always differ.";

macro_rules! rules {
    ($($name:ident: $id:literal, $text:literal, $help:expr;)*) => {
        $(static $name: Rule = Rule::new($id, $text, $help);)*
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
pub(crate) fn fill(found: &Found, mut report: Report) -> Report {
    let changes = found.findings.len() as u64 + found.findings_more;
    let drift = found.findings.iter().filter(|finding| finding.what.is_tool_drift()).count();
    report.counts = vec![
        ("changes", changes),
        ("tool_changes", drift as u64),
        ("requests", found.requests),
        ("answers", found.answers),
        ("notifications", found.notifications),
        ("skipped", found.skipped.len() as u64 + found.skipped_more),
        ("sessions", u64::from(found.sessions)),
    ];
    for group in GROUPS {
        let mut cases: Vec<Case> = Vec::new();
        let of_group = |finding: &&Finding| group_of(&finding.what) == group;
        cases.extend(found.findings.iter().filter(of_group).map(changed));
        cases.extend(sound(found, group, cases.len()));
        if !cases.is_empty() {
            report.suites.push(Suite { name: suite_name(group).to_owned(), cases });
        }
    }
    if found.findings_more > 0 {
        let name = format!("{} more changes", found.findings_more);
        let message = "there are more changes than can be listed".to_owned();
        let outcome = Outcome::Failed;
        let cases =
            vec![Case { name, outcome, rule: Some((&ANSWER).into()), message, ..Case::default() }];
        report.suites.push(Suite { name: "more".to_owned(), cases });
    }
    let mut cases: Vec<Case> = found.skipped.iter().map(skipped).collect();
    cases.extend((found.skipped_more > 0).then(|| {
        let name = format!("{} more", found.skipped_more);
        let message = "there are more than can be listed".to_owned();
        Case {
            name,
            outcome: Outcome::Skipped,
            rule: Some((&NOT_SENT).into()),
            message,
            ..Case::default()
        }
    }));
    if !cases.is_empty() {
        report.suites.push(Suite { name: "not-sent".to_owned(), cases });
    }
    let cases: Vec<Case> = found.notes.iter().map(noted).collect();
    if !cases.is_empty() {
        report.suites.push(Suite { name: "notes".to_owned(), cases });
    }
    report
}

/// One case for everything that was compared and has not changed.
fn sound(found: &Found, group: Group, changed: usize) -> Option<Case> {
    let (count, word) = match group {
        Group::Answers => (found.answers, "answers"),
        Group::Notifications => (found.notifications, "notifications"),
        _ => return None,
    };
    let name = match changed {
        0 => format!("{count} {word} are as recorded"),
        _ => format!("{count} {word} were compared"),
    };
    (count > 0).then(|| Case { name, ..Case::default() })
}

/// The group a change belongs to.
pub(crate) fn group_of(what: &What) -> Group {
    match what {
        What::Item { list: List::Tools, .. } => Group::Tools,
        What::Item { .. } => Group::Lists,
        What::Server(_) | What::Version { .. } | What::Ended { .. } => Group::Server,
        What::Notice(_) | What::Moved { .. } => Group::Notifications,
        What::Question(_) => Group::Questions,
        What::Answer(_)
        | What::Error { .. }
        | What::Result { .. }
        | What::NoAnswer { .. }
        | What::TooLarge { .. }
        | What::Stray { .. } => Group::Answers,
    }
}

fn suite_name(group: Group) -> &'static str {
    match group {
        Group::Tools => "tools",
        Group::Server => "server",
        Group::Lists => "lists",
        Group::Answers => "answers",
        Group::Notifications => "notifications",
        Group::Questions => "requests",
    }
}

fn rule(what: &What) -> &'static Rule {
    let of = |became: &Became, [added, removed, changed]: [&'static Rule; 3]| match became {
        Became::Added(_) => added,
        Became::Removed(_) => removed,
        Became::Changed(_) => changed,
    };
    match what {
        What::Item { list: List::Tools, became, .. } => {
            of(became, [&TOOL_ADDED, &TOOL_REMOVED, &TOOL_CHANGED])
        }
        What::Item { became, .. } => of(became, [&ITEM_ADDED, &ITEM_REMOVED, &ITEM_CHANGED]),
        What::Notice(became) => of(became, [&NOTICE_ADDED, &NOTICE_REMOVED, &NOTICE_CHANGED]),
        What::Question(became) => {
            of(became, [&QUESTION_ADDED, &QUESTION_REMOVED, &QUESTION_CHANGED])
        }
        What::Moved { .. } => &NOTICE_MOVED,
        What::Server(_) => &SERVER,
        What::Version { .. } => &VERSION,
        What::Ended { .. } => &ENDED,
        What::Answer(_) => &ANSWER,
        What::Error { .. } => &ERROR,
        What::Result { .. } => &RESULT,
        What::NoAnswer { .. } => &NO_ANSWER,
        What::TooLarge { .. } => &TOO_LARGE,
        What::Stray { .. } => &STRAY,
    }
}

fn changed(finding: &Finding) -> Case {
    let name = match &finding.what {
        What::Item { list, name, .. } => subject(crate::views::change::noun(*list), Some(name)),
        _ => about(&finding.about),
    };
    let mut facts = facts(&finding.about);
    facts.push(("times", finding.times.to_string().into_bytes()));
    facts.push(("after_skipped", finding.after_skipped.to_string().into_bytes()));
    facts.extend(sides(&finding.what));
    Case {
        name,
        outcome: Outcome::Failed,
        rule: Some(rule(&finding.what).into()),
        message: headline(finding),
        details: details(finding, Palette::Plain, ""),
        place: place(&finding.about),
        duration_ms: None,
        facts,
    }
}

/// The recorded and the live values, for machines.
fn sides(what: &What) -> Vec<(&'static str, Vec<u8>)> {
    match what {
        What::Answer(changes) | What::Server(changes) => listed(changes),
        What::Error { recorded, live }
        | What::Result { recorded, live }
        | What::Version { recorded, live } => {
            vec![("recorded", recorded.clone()), ("live", live.clone())]
        }
        What::Stray { live } | What::Moved { live } => vec![("live", live.clone())],
        What::Item { became, .. } | What::Notice(became) | What::Question(became) => match became {
            Became::Added(text) => vec![("live", text.clone())],
            Became::Removed(text) => vec![("recorded", text.clone())],
            Became::Changed(changes) => listed(changes),
        },
        What::NoAnswer { .. } | What::TooLarge { .. } | What::Ended { .. } => Vec::new(),
    }
}

fn listed(changes: &tapegate_core::verifier::Changes) -> Vec<(&'static str, Vec<u8>)> {
    json::differences(&differences(changes))
}

fn skipped(skipped: &Skipped) -> Case {
    Case {
        name: about(&skipped.about),
        outcome: Outcome::Skipped,
        rule: Some((&NOT_SENT).into()),
        message: reason(skipped.why).to_owned(),
        place: place(&skipped.about),
        facts: facts(&skipped.about),
        ..Case::default()
    }
}

fn noted(note: &Note) -> Case {
    let outcome = match note.sort {
        NoteSort::Reordered(_) | NoteSort::Moved => Outcome::Passed,
        _ => Outcome::Warning,
    };
    Case {
        name: about(&note.about),
        outcome,
        rule: Some((&NOTE).into()),
        message: note_words(&note.sort),
        place: place(&note.about),
        facts: facts(&note.about),
        ..Case::default()
    }
}

fn facts(about: &About) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("session", about.session.to_string().into_bytes()),
        ("method", json::quoted(&about.method)),
        ("target", about.name.as_deref().map_or(b"null".to_vec(), json::quoted)),
    ]
}

fn place(about: &About) -> Place {
    Place { number: about.number, line: None }
}

#[cfg(test)]
mod tests;
