//! Selects the events to show.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tapegate_core::activity::ActivityKind;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::time::read_rfc3339;
use tapegate_policy::glob::Glob;
use tapegate_store::activity::LoggedEvent;

use crate::exit::{Exit, Failure};

/// What can be said about it on a command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LogFilterArgs {
    /// Only events about this server; a glob
    #[arg(long, value_name = "ID", value_parser = glob)]
    server: Vec<Glob>,
    /// Only events about tools, prompts or URIs that match
    #[arg(long, value_name = "GLOB", value_parser = glob)]
    tool: Vec<Glob>,
    /// Only these decisions, in any letter case
    #[arg(long, value_name = "WORD", value_delimiter = ',', ignore_case = true, value_parser = decision_parser())]
    decision: Vec<LoggedDecision>,
    /// Only these kinds
    #[arg(long, value_name = "WORD", value_delimiter = ',', ignore_case = true, value_parser = PossibleValuesParser::new(ActivityKind::WORDS))]
    kind: Vec<String>,
    /// Only events since this time: 30m, 1h, 2d, or an RFC 3339 time
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
}

/// Selects the events to show.
#[derive(Debug)]
pub(super) struct LogFilter {
    args: LogFilterArgs,
    since_us: Option<i64>,
}

impl LogFilterArgs {
    /// The filter at this point in time.
    pub(super) fn filter(&self, now_us: i64) -> Result<LogFilter, Failure> {
        let since_us = match &self.since {
            None => None,
            Some(text) => Some(parse_time(text, now_us).ok_or_else(|| {
                let message = format!("`{}` is not a valid time", text.escape_debug());
                Failure::new(Exit::Usage, message)
                    .hint("write 90s, 30m, 1h, 2d, 1w, or 2026-03-20T14:22:11Z")
            })?),
        };
        Ok(LogFilter { args: self.clone(), since_us })
    }
}

impl LogFilter {
    /// Whether an event is shown.
    pub(super) fn matches(&self, logged: &LoggedEvent) -> bool {
        let text = |key: &str| logged.str(key).unwrap_or_default();
        let globs = |globs: &[Glob], key: &str| {
            globs.is_empty()
                || logged.str(key).is_some_and(|text| globs.iter().any(|glob| glob.matches(&text)))
        };
        let words = |words: &[String], key: &str| {
            words.is_empty()
                || words.iter().any(|word| word.trim().eq_ignore_ascii_case(&text(key)))
        };
        let decisions = |wanted: &[LoggedDecision]| {
            let logged = || LoggedDecision::parse(&text("governance_decision"));
            wanted.is_empty() || logged().is_some_and(|decision| wanted.contains(&decision))
        };
        let is_since = |since_us: i64| {
            // An event without a time cannot be ruled out as older.
            read_rfc3339(&text("timestamp")).is_none_or(|at| at >= since_us)
        };
        globs(&self.args.server, "server_id")
            && globs(&self.args.tool, "tool")
            && decisions(&self.args.decision)
            && words(&self.args.kind, "kind")
            && self.since_us.is_none_or(is_since)
    }
}

/// Accepts only decisions that a log can contain: any other word would match nothing, as if nothing
/// had happened.
fn decision_parser() -> impl TypedValueParser<Value = LoggedDecision> {
    let parser = PossibleValuesParser::new(LoggedDecision::ALL.iter().map(|one| one.as_str()));
    parser.try_map(|word| LoggedDecision::parse(&word).ok_or("not a decision"))
}

fn glob(text: &str) -> Result<Glob, String> {
    Glob::parse(text)
}

/// The point in time given by `1h` or a time.
fn parse_time(text: &str, now_us: i64) -> Option<i64> {
    let text = text.trim();
    if let Some(at) = read_rfc3339(text) {
        return Some(at);
    }
    let unit_at = text.find(|c: char| !c.is_ascii_digit())?;
    let number: i64 = text[..unit_at].parse().ok()?;
    let secs = match &text[unit_at..] {
        "s" => 1,
        "m" | "min" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 7 * 86_400,
        _ => return None,
    };
    now_us.checked_sub(number.checked_mul(secs)?.checked_mul(1_000_000)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_told_by_how_long_ago_or_by_the_clock() {
        const NOW: i64 = 1_000_000_000_000_000;
        for (text, secs_ago) in
            [("90s", 90), ("30m", 1800), ("1h", 3600), ("2d", 172_800), ("1w", 604_800)]
        {
            assert_eq!(parse_time(text, NOW), Some(NOW - secs_ago * 1_000_000));
        }
        assert_eq!(parse_time("1970-01-01T00:00:01Z", NOW), Some(1_000_000));
        for text in
            ["", "1", "h", "-1h", "1x", "1h30m", "99999999999999999999h", "999999999999999d", "ä"]
        {
            assert_eq!(parse_time(text, NOW), None, "{text}");
        }
    }

    #[test]
    fn every_filter_that_is_given_must_pass() {
        let line = br#"{"timestamp":"2026-03-20T14:22:11Z","kind":"decision","server_id":"files","tool":"rm_all","governance_decision":"WOULD_BLOCK"}"#;
        let logged = LoggedEvent::read(1, line).unwrap();
        let passes = |args: LogFilterArgs| args.filter(0).unwrap().matches(&logged);
        let globs = |text: &str| vec![Glob::parse(text).unwrap()];
        let message = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert!(passes(LogFilterArgs::default()));
        assert!(passes(LogFilterArgs {
            server: globs("files"),
            tool: globs("rm_*"),
            ..Default::default()
        }));
        assert!(passes(LogFilterArgs {
            decision: vec![LoggedDecision::Deny, LoggedDecision::WouldBlock],
            ..Default::default()
        }));
        assert!(!passes(LogFilterArgs {
            server: globs("other"),
            tool: globs("rm_*"),
            ..Default::default()
        }));
        assert!(!passes(LogFilterArgs { kind: message("session,policy"), ..Default::default() }));
        let since = |text: &str| Some(text.to_owned());
        assert!(passes(LogFilterArgs {
            since: since("2026-03-20T14:22:11Z"),
            ..Default::default()
        }));
        assert!(!passes(LogFilterArgs {
            since: since("2026-03-20T14:22:12Z"),
            ..Default::default()
        }));
    }
}
