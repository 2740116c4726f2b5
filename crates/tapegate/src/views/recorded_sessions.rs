//! The recorded sessions of a project, as a table and as JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_store::recorded_sessions::SessionRecording;

use super::columns::{pad, truncate_to, width};
use super::palette::Palette;
use super::{plural, visible_text};
use crate::zone::TimeZone;

/// The length of a time up to its minute.
const MINUTE_CHARS: usize = 16;
/// What a table has in place of what is not known.
const NONE: &str = "-";
/// Longer names of agents are truncated.
const AGENT_COLUMNS_MAX: usize = 16;

/// The table of the sessions, no wider than `columns`.
pub(crate) fn table(
    sessions: &[SessionRecording],
    others: usize,
    zone: &TimeZone,
    palette: Palette,
    columns: Option<usize>,
) -> String {
    let columns = columns.unwrap_or(usize::MAX / 2);
    let agents = sessions.iter().map(|session| width(&agent(session)));
    let agent_columns = agents.max().unwrap_or(0).clamp("AGENT".len(), AGENT_COLUMNS_MAX);
    let line = |id: &str, started: &str, agent: &str, counts: (&str, &str), servers: &str| {
        let (calls, denials) = counts;
        let agent = pad(agent, agent_columns);
        let text = format!("{id:<16}  {started:<16}  {agent}  {calls:>5}  {denials:>6}  {servers}");
        truncate_to(text.trim_end(), columns)
    };
    let mut out = String::new();
    if sessions.is_empty() {
        out += "no session is recorded in this project\n";
    } else {
        let head = line("SESSION", "STARTED", "AGENT", ("CALLS", "DENIED"), "SERVERS");
        out += &format!("{}\n", palette.bold(&head));
    }
    for session in sessions {
        let mut started = zone.local(session.started_us).replace('T', " ");
        started.truncate(MINUTE_CHARS);
        let counts = session.counts.map(|it| (it.calls.to_string(), it.denials.to_string()));
        let (calls, denials) = counts.unwrap_or_else(|| (NONE.to_owned(), NONE.to_owned()));
        let servers = servers(session).into_iter().collect::<Vec<_>>().join(", ");
        let id = visible_text::inline(&session.id, usize::MAX);
        let counts = (calls.as_str(), denials.as_str());
        out += &line(&id, &started, &agent(session), counts, &servers);
        out.push('\n');
    }
    if others > 0 {
        let text =
            format!("{} of other projects; --state DIR lists all", plural(others, "session"));
        out += &format!("{}\n", palette.faint(&truncate_to(&text, columns)));
    }
    out
}

/// A session in a list of candidates.
pub(crate) fn line(session: &SessionRecording) -> String {
    let text = format!("{}  {}  {}", session.id, started(session), agent(session));
    visible_text::inline(&text, usize::MAX)
}

/// A session as one line of JSON.
pub(crate) fn json_line(session: &SessionRecording) -> String {
    let mut value = json!({
        "session": session.id,
        "started": started(session),
        "servers": servers(session),
        "tapes": session.tapes.iter().map(|tape| tape.path.to_string_lossy()).collect::<Vec<_>>(),
    });
    // What is not known is left out, like everything empty in the output of `show`.
    if let Some(agent) = &session.agent {
        value["agent"] = Value::from(agent.as_str());
    }
    if let Some(counts) = session.counts {
        (value["calls"], value["denials"]) = (counts.calls.into(), counts.denials.into());
    }
    format!("{value}\n")
}

fn started(session: &SessionRecording) -> String {
    let mut out = Vec::new();
    write_rfc3339(&mut out, session.started_us, SubSecond::Millis);
    String::from_utf8(out).unwrap_or_default()
}

fn agent(session: &SessionRecording) -> String {
    visible_text::inline(session.agent.as_deref().unwrap_or(NONE), AGENT_COLUMNS_MAX)
}

/// The servers by name, each once. The order of their tapes is that in which they happened to start.
fn servers(session: &SessionRecording) -> BTreeSet<String> {
    session.tapes.iter().map(|tape| visible_text::inline(&tape.server, usize::MAX)).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tapegate_store::recorded_sessions::{CallCounts, SessionTape};

    use super::*;

    fn session(id: &str, servers: &[&str], counts: Option<CallCounts>) -> SessionRecording {
        let tape = |server: &&str| SessionTape {
            path: PathBuf::from(format!("/state/tapes/{server}/t.jsonl")),
            server: (*server).to_owned(),
            folder: "/p".into(),
            started_us: 1_774_016_531_804_012,
        };
        SessionRecording {
            id: id.to_owned(),
            agent: counts.map(|_| "claude-code".to_owned()),
            started_us: 1_774_016_531_804_012,
            tapes: servers.iter().map(tape).collect(),
            counts,
        }
    }

    #[test]
    fn a_table_fits_and_no_name_acts_on_the_terminal() {
        let counts = Some(CallCounts { calls: 14, denials: 1 });
        let sessions = [
            session("6f012eb03c6c76c9", &["files", "search", "files", "search-two"], counts),
            session("0c7a8e55d1b0a4f2", &["\u{1b}[2J"], None),
        ];
        let text =
            |columns| table(&sessions, 2, &TimeZone::default(), Palette::Plain, Some(columns));
        assert_eq!(
            text(80),
            "\
SESSION           STARTED           AGENT        CALLS  DENIED  SERVERS
6f012eb03c6c76c9  2026-03-20 14:22  claude-code     14       1  files, search, …
0c7a8e55d1b0a4f2  2026-03-20 14:22  -                -       -  \\u001b[2J
2 sessions of other projects; --state DIR lists all
"
        );
        assert!(text(120).contains("files, search, search-two\n"));
        assert!(text(40).lines().all(|line| width(line) <= 40));
        let empty = table(&[], 0, &TimeZone::default(), Palette::Plain, None);
        assert_eq!(empty, "no session is recorded in this project\n");
    }

    #[test]
    fn json_has_the_tapes_and_leaves_out_what_is_not_known() {
        let value: Value = serde_json::from_str(&json_line(&session("a1", &["s"], None))).unwrap();
        let expected = json!({
            "session": "a1", "started": "2026-03-20T14:22:11.804Z", "servers": ["s"],
            "tapes": ["/state/tapes/s/t.jsonl"],
        });
        assert_eq!(value, expected);
    }
}
