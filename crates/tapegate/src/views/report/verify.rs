//! The report of a verification: what has changed fails, what was not sent is skipped. Tools stand
//! in a suite of their own, because one that has changed may not be what a user agreed to.

mod found;
mod rules;

use tapegate_core::verifier::{self, About, List, NoteSort, Token, What, Why};

use super::{Case, Outcome, Place, Report, Rule, Suite};
use crate::views::divergence::subject;
use crate::views::palette::Palette;
use crate::views::{json, visible};
use found::found;

/// The suites, in the order in which they are read.
const SUITES: [&str; 8] =
    ["compared", "tools", "lists", "server", "answers", "messages", "not sent", "notes"];

/// Fills `report` with what came of a verification.
pub(crate) fn fill(verified: &verifier::Report, palette: Palette, mut report: Report) -> Report {
    let tools = verified.findings.iter().filter(|finding| finding.what.is_tool_drift()).count();
    report.counts = vec![
        ("sessions", u64::from(verified.sessions)),
        ("requests", verified.requests),
        ("answers", verified.answers),
        ("notifications", verified.notifications),
        ("changed", verified.findings.len() as u64 + verified.findings_more),
        ("tools_changed", tools as u64),
        ("not_sent", verified.skipped.len() as u64 + verified.skipped_more),
    ];
    let mut cases = cases(verified, palette);
    for name in SUITES {
        let (own, others) = cases.into_iter().partition(|(suite, _)| *suite == name);
        cases = others;
        let own: Vec<Case> = own.into_iter().map(|(_, case): (_, Case)| case).collect();
        if !own.is_empty() {
            report.suites.push(Suite { name: name.to_owned(), cases: own });
        }
    }
    report
}

/// All cases, each with its suite.
fn cases(verified: &verifier::Report, palette: Palette) -> Vec<(&'static str, Case)> {
    let verifier::Report { answers, notifications, .. } = verified;
    let name = format!("{answers} answers and {notifications} notifications compared");
    let mut cases = vec![("compared", Case { name, ..Case::default() })];
    cases.extend(verified.findings.iter().map(|one| (suite(&one.what), found(one, palette))));
    let more = rest(verified.findings_more, "changes", Outcome::Failed, &rules::ANSWER);
    cases.extend(more.map(|case| ("answers", case)));
    cases.extend(verified.skipped.iter().map(|skipped| {
        let message = why(skipped.why).to_owned();
        let (rule, outcome) = (Some(&rules::NOT_SENT), Outcome::Skipped);
        ("not sent", Case { rule, outcome, message, ..about(&skipped.about) })
    }));
    let more = rest(verified.skipped_more, "messages", Outcome::Skipped, &rules::NOT_SENT);
    cases.extend(more.map(|case| ("not sent", case)));
    cases.extend(verified.notes.iter().map(|note| {
        let (rule, outcome) = (Some(&rules::NOTE), Outcome::Warning);
        ("notes", Case { rule, outcome, message: noted(&note.sort), ..about(&note.about) })
    }));
    cases
}

/// The suite that a finding belongs to.
fn suite(what: &What) -> &'static str {
    match what {
        What::Item { list: List::Tools, .. } => "tools",
        What::Item { .. } => "lists",
        What::Server(_) | What::Version { .. } | What::Ended { .. } => "server",
        What::Notice(_) | What::Moved { .. } | What::Question(_) => "messages",
        What::Answer(_) | What::Error { .. } | What::Result { .. } | What::NoAnswer { .. } => {
            "answers"
        }
        What::TooLarge { .. } | What::Stray { .. } => "answers",
    }
}

/// A case about a message.
fn about(about: &About) -> Case {
    let name = match about.method.as_str() {
        "" => "server".to_owned(),
        method => subject(method, about.name.as_deref()),
    };
    Case {
        name,
        place: Place { number: about.number, line: None },
        facts: vec![
            ("session", about.session.to_string().into_bytes()),
            ("method", json::quoted(&about.method)),
            ("target", about.name.as_deref().map_or(b"null".to_vec(), json::quoted)),
        ],
        ..Case::default()
    }
}

fn rest(count: u64, word: &str, outcome: Outcome, rule: &'static Rule) -> Option<Case> {
    let (name, message) = (format!("{count} more {word}"), "too many to list".to_owned());
    (count > 0).then(|| Case { name, outcome, rule: Some(rule), message, ..Case::default() })
}

fn why(why: Why) -> &'static str {
    match why {
        Why::NotAskedFor => "it may change something; --calls sends it",
        Why::NotReadOnlyLive => "the live server does not say that the tool only reads",
        Why::NotReadOnlyOnTape => "the tape does not say that the tool only reads",
        Why::Masked => "it holds secrets that are masked on the tape",
        Why::NotMinted(Token::Cursor) => "it needs a page that the live server does not have",
        Why::NotMinted(Token::State) => "it needs a state that the live server has not given out",
        Why::NotMinted(Token::Task) => "it is about a task that the live server has not begun",
        Why::ServerGone => "the server was gone",
    }
}

fn noted(sort: &NoteSort) -> String {
    match sort {
        NoteSort::Reordered(list) => format!("the {}s come in another order", list_word(*list)),
        NoteSort::Moved => "it comes in another order".to_owned(),
        NoteSort::PlaceholderSent => "a masked secret was sent as its placeholder".to_owned(),
        NoteSort::NoMessage { start } => {
            format!("the server wrote something that is no message: {}", visible::inline(start, 80))
        }
        NoteSort::ToolsUnknown => {
            "the live list of tools could not be had, so no tool is known to read only".to_owned()
        }
    }
}

fn list_word(list: List) -> &'static str {
    match list {
        List::Tools => "tool",
        List::Resources => "resource",
        List::Templates => "resource template",
        List::Prompts => "prompt",
    }
}

#[cfg(test)]
mod tests;
