//! Selects the rows to show.

use regex::bytes::RegexBuilder;
use tapegate_core::json::JsonStr;
use tapegate_core::tape::timeline::{
    AnswerOutcome, MessageTest, RequestState, RowKind, TimelineRow,
};
use tapegate_policy::glob::Glob;

use crate::exit::{Exit, Failure};
use crate::units;
use crate::views::timeline::CallDecision;

/// What can be said about it on a command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct RowFilterArgs {
    /// Only requests and answers that match this regular expression, ignoring case, in their JSON
    /// or in its texts without escapes
    #[arg(long, value_name = "PATTERN")]
    grep: Option<String>,
    /// Only calls of tools, prompts or URIs that match this glob
    #[arg(long, value_name = "GLOB", value_parser = Glob::parse)]
    tool: Vec<Glob>,
    /// Only failures: errors, denied calls, requests without an answer, frames that are not
    /// messages
    #[arg(long)]
    errors: bool,
    /// Only requests that took at least this many milliseconds [default: 1000], or have no answer
    #[arg(long, value_name = "MS", num_args = 0..=1, require_equals = true, default_missing_value = "1000", value_parser = milliseconds)]
    slow: Option<u64>,
}

/// Parses a number of milliseconds, or a duration with its unit.
fn milliseconds(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(ms) => Ok(ms),
        Err(_) if text.starts_with(|first: char| first.is_ascii_digit()) => {
            Ok(units::duration(text)?.as_millis() as u64)
        }
        Err(_) => Err("expected milliseconds such as 500, or a duration such as 2s".to_owned()),
    }
}

/// Selects the rows to show.
pub(super) struct RowFilter {
    args: RowFilterArgs,
    /// Whether the tape is still being written; then unanswered requests count as slow so far.
    is_live: bool,
}

/// The test for messages that are searched for, if any.
pub(super) type WantedMessage = Option<MessageTest>;

impl RowFilterArgs {
    pub(super) fn filter(&self, is_live: bool) -> Result<RowFilter, Failure> {
        self.build_search()?;
        Ok(RowFilter { args: self.clone(), is_live })
    }

    /// The test that messages are searched with.
    pub(super) fn build_search(&self) -> Result<WantedMessage, Failure> {
        let Some(pattern) = &self.grep else { return Ok(None) };
        let mut builder = RegexBuilder::new(pattern);
        let built = builder.case_insensitive(true).unicode(false).build().map_err(|error| {
            let message = format!("--grep is not a regular expression: {error}");
            Failure::new(Exit::Usage, message)
                .hint("put a backslash before . * + ? ( ) [ ] { } | ^ $")
        })?;
        Ok(Some(Box::new(move |text| {
            built.is_match(text) || text.contains(&b'\\') && built.is_match(&unescaped(text))
        })))
    }
}

/// JSON with its escapes decoded, since people search for plain text.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let text = JsonStr { raw: text, escaped: true };
    let letters = text.scalars().filter_map(char::from_u32);
    letters.collect::<String>().into_bytes()
}

impl RowFilter {
    /// Whether anything is filtered.
    pub(super) fn is_set(&self) -> bool {
        let RowFilterArgs { grep, tool, errors, slow } = &self.args;
        grep.is_some() || !tool.is_empty() || *errors || slow.is_some()
    }

    /// Whether a row is shown.
    pub(super) fn matches(
        &self,
        row: &TimelineRow,
        decided: &dyn Fn(&TimelineRow) -> Option<CallDecision>,
    ) -> bool {
        if !self.is_set() {
            return true;
        }
        let RowFilterArgs { grep, tool, errors, slow } = &self.args;
        let name = row.call().and_then(|call| call.name.as_deref());
        let named = || name.is_some_and(|name| tool.iter().any(|glob| glob.matches(name)));
        (grep.is_none() || row.matched)
            && (tool.is_empty() || named())
            && (!errors || is_error(row, decided))
            && slow.is_none_or(|ms| is_slow(row, ms, self.is_live))
    }
}

fn is_error(row: &TimelineRow, decided: &dyn Fn(&TimelineRow) -> Option<CallDecision>) -> bool {
    let failed = row.answer.as_ref().is_some_and(|answer| answer.outcome != AnswerOutcome::Ok);
    let odd = match &row.kind {
        RowKind::Request { state, .. } | RowKind::NoAnswer { state, .. } => {
            matches!(state, RequestState::Unanswered | RequestState::Unreadable)
        }
        RowKind::Anomaly { .. } | RowKind::Fault(_) | RowKind::Other(_) => true,
        RowKind::LateAnswer(call) => call.method.is_empty(),
        _ => false,
    };
    let denied = || {
        decided(row).is_some_and(|decision| {
            matches!(&*decision.word, "deny" | "denied" | "reject" | "drop" | "expired")
        })
    };
    failed || odd || row.marks.refused.is_some() || denied()
}

fn is_slow(row: &TimelineRow, ms: u64, is_live: bool) -> bool {
    match (&row.answer, &row.kind) {
        (Some(answer), _) => answer.latency_us.is_some_and(|us| us >= ms.saturating_mul(1000)),
        // A later row says how long it took, or that it has no answer.
        (None, RowKind::Request { state: RequestState::Waiting, .. }) => is_live,
        (None, RowKind::Request { .. } | RowKind::NoAnswer { .. }) => true,
        _ => false,
    }
}
