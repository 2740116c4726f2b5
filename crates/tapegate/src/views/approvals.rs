//! Formats approval requests: as a table, one in detail, and as JSON.
//!
//! Everything in a request comes from an agent that may try to look harmless to be approved, so
//! only visible characters of it reach the terminal.

pub(crate) mod grants_view;
pub(crate) mod watch_view;

use std::fmt::Write;

use tapegate_core::json::compact;
use tapegate_core::time::{SubSecond, write_rfc3339};
use tapegate_policy::approval_channel::has_more_than_arguments;
use tapegate_store::approvals::{ApprovalEntry, ApprovalRecord, ApprovalState};

use super::columns::{pad, truncate_to, width};
use super::json::JsonWriter;
use super::{readable_json, visible_text};
use crate::program_name;
use crate::zone::TimeZone;

/// Longer arguments are truncated in the table.
const ARGUMENTS_CHARS_MAX: usize = 80;
/// Nothing is truncated where a person decides: the hidden part could be what matters.
const DETAILS_CHARS_MAX: usize = usize::MAX / 8;
/// Terminals at least this wide have a column for the caller.
const CALLER_COLUMNS: usize = 100;
/// Longer names are truncated.
const NAME_CHARS_MAX: usize = 40;
/// Longer paths lose their beginning.
const PATH_CHARS_MAX: usize = 40;
/// A caller that leaves this close to the deadline counts as having waited until the end.
const MOMENT_US: i64 = 2_000_000;

/// Whether the request can still be decided.
pub(crate) fn is_pending(entry: &ApprovalEntry, now_us: i64) -> bool {
    entry.is_pending(now_us)
}

/// A table of requests with a heading, as wide as the terminal allows.
pub(crate) fn table(
    entries: &[ApprovalEntry],
    with_state: bool,
    now_us: i64,
    columns: Option<usize>,
) -> String {
    match columns {
        // Only on a terminal: scripts that read the columns need all of them.
        Some(columns) if !entries.is_empty() => narrow_table(entries, with_state, now_us, columns),
        _ => wide_table(entries, with_state, now_us),
    }
}

/// The columns needed to tell calls apart; `show` has the rest.
fn narrow_table(
    entries: &[ApprovalEntry],
    with_state: bool,
    now_us: i64,
    columns: usize,
) -> String {
    let with_caller = columns >= CALLER_COLUMNS;
    let mut heads = vec!["ID", "AGE", "LEFT", "SERVER", "TOOL"];
    heads.extend(with_caller.then_some("CALLER"));
    heads.extend(with_state.then_some("STATE"));
    let cells = |entry: &ApprovalEntry| {
        // By the clock of the process that waits, since the deadline is by it.
        let (request, now_us) = (&entry.request, entry.asker_now_us(now_us));
        let left = match is_pending(entry, now_us) {
            true => span(request.expires_us - now_us),
            false => "-".to_owned(),
        };
        let name = |text: &str| or_dash(&visible_text::inline(text, NAME_CHARS_MAX));
        let mut row = vec![request.id.clone(), span(now_us - request.created_us), left];
        row.extend([
            truncate_to(&name(&request.server_id), 10),
            truncate_to(&name(&request.tool), 16),
        ]);
        row.extend(with_caller.then(|| caller(request, now_us)));
        row.extend(with_state.then(|| truncate_to(&state(entry, now_us), 18)));
        row
    };
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    rows.extend(entries.iter().map(cells));
    let count = rows[0].len();
    let width_of = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: Vec<usize> = (0..count).map(width_of).collect();
    // The arguments get what is left, because they are the longest.
    let room = columns.saturating_sub(widths.iter().map(|width| width + 1).sum());
    let mut out = String::new();
    for (at, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(&widths) {
            out.push_str(&pad(cell, *width));
            out.push(' ');
        }
        let last = match at.checked_sub(1) {
            None => "ARGUMENTS".to_owned(),
            Some(at) => arguments(&entries[at].request, ARGUMENTS_CHARS_MAX * 2),
        };
        out.push_str(&truncate_to(&last, room));
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// All columns, for output that is not limited to a terminal's width.
fn wide_table(entries: &[ApprovalEntry], with_state: bool, now_us: i64) -> String {
    if entries.is_empty() {
        return "nothing waits for a person\n".to_owned();
    }
    let mut heads = vec!["ID", "AGE", "LEFT", "SERVER", "TOOL", "PRINCIPAL", "WORKFLOW", "CALLER"];
    if with_state {
        heads.push("STATE");
    }
    heads.extend(["FOLDER", "POLICY", "ARGUMENTS"]);
    let mut rows = vec![heads.into_iter().map(str::to_owned).collect::<Vec<_>>()];
    for entry in entries {
        let (request, now_us) = (&entry.request, entry.asker_now_us(now_us));
        let left = match is_pending(entry, now_us) {
            true => span(request.expires_us - now_us),
            false => "-".to_owned(),
        };
        let mut row = vec![request.id.clone(), span(now_us - request.created_us), left];
        let names = [&request.server_id, &request.tool, &request.principal, &request.workflow];
        row.extend(names.map(|name| or_dash(&visible_text::inline(name, NAME_CHARS_MAX))));
        row.push(caller(request, now_us));
        if with_state {
            row.push(state(entry, now_us));
        }
        row.push(or_dash(&path(&request.folder)));
        row.push(or_dash(&path(policy_within(request))));
        row.push(arguments(request, ARGUMENTS_CHARS_MAX));
        rows.push(row);
    }
    aligned(&rows)
}

/// Everything about one request.
pub(crate) fn details(entry: &ApprovalEntry, now_us: i64, zone: &TimeZone) -> String {
    let ApprovalEntry { request, decided, .. } = entry;
    let now_us = entry.asker_now_us(now_us);
    let mut out = String::new();
    let mut line = |key: &str, text: String| {
        if !text.is_empty() {
            // Writing to a string cannot fail.
            writeln!(out, "{key:<12}{text}").ok();
        }
    };
    let plain = |text: &str| visible_text::inline(text, DETAILS_CHARS_MAX);
    let clock = |at_us: i64| {
        let local = zone.local(at_us).replace('T', " ");
        format!("{} {}", local.get(..19).unwrap_or_default(), zone.offset(at_us))
    };
    line("id", request.id.clone());
    line("state", state(entry, now_us));
    line(
        "asked",
        format!("{} ({} ago)", clock(request.created_us), span(now_us - request.created_us)),
    );
    let left = if is_pending(entry, now_us) {
        format!(" (in {})", span(request.expires_us - now_us))
    } else {
        String::new()
    };
    line("expires", format!("{}{left}", clock(request.expires_us)));
    line("server", plain(&request.server_id));
    line("method", plain(&request.method));
    line("tool", plain(&request.tool));
    // The whole of it: a person must not approve what a table has cut off.
    line("arguments", readable_params(&arguments_raw(request, true)));
    if has_more(request) {
        line("params", readable_params(params(request).as_bytes()));
    }
    line("hidden", hidden_note(request));
    line("folder", plain(&request.folder));
    line("policy", plain(&request.policy));
    line("caller", caller(request, now_us));
    line("principal", plain(&request.principal));
    line("workflow", plain(&request.workflow));
    line("because", plain(&request.reason));
    line("approvers", plain(&request.approvers.join(", ")));
    line("escalation", escalation_note(request, now_us));
    line("quorum", quorum_note(entry));
    line("connection", plain(&request.connection_id));
    line("correlation", plain(&request.request_id));
    if let Some(decided) = decided {
        line("decided", clock(decided.at_us));
        line("reason", decided.reason.as_deref().map(plain).unwrap_or_default());
    }
    out
}

/// JSON on one line, or on several if it is long or contains line breaks.
fn readable_params(raw: &[u8]) -> String {
    match readable_json::has_lines(raw) {
        true => format!("\n{}", readable_json::lines(raw, "  ").join("\n")),
        false => visible_text::value(raw, DETAILS_CHARS_MAX),
    }
}

/// A call without masking, for a terminal.
pub(crate) fn revealed_request(request: &ApprovalRecord, params: &[u8]) -> String {
    let plain = |text: &str| visible_text::inline(text, DETAILS_CHARS_MAX);
    let lines = [
        ("id", request.id.clone()),
        ("server", plain(&request.server_id)),
        ("method", plain(&request.method)),
        ("unmasked", readable_params(params)),
    ];
    lines.iter().map(|(key, text)| format!("{key:<12}{text}\n")).collect()
}

/// Whether part of a call is hidden from the person who decides.
pub(crate) fn is_masked(request: &ApprovalRecord) -> bool {
    !hidden_note(request).is_empty()
}

/// A note on what is hidden from the person who decides. A placeholder may stand for any text,
/// since the agent chooses what looks like a secret.
fn hidden_note(request: &ApprovalRecord) -> String {
    // An agent can also write this text itself. Then the count is too high, which only makes the
    // approver look closer.
    match params(request).matches("[REDACTED").count() {
        0 => String::new(),
        count => format!(
            "{} masked as [REDACTED…]: you do not see them, and the server gets them \
             as they are{}",
            match count {
                1 => "1 part is".to_owned(),
                count => format!("{count} parts are"),
            },
            match request.params_hash.is_empty() {
                true => String::new(),
                false => {
                    let line = format!("approvals show {} --reveal", request.id);
                    format!("; `{}` shows them", program_name::command(line))
                }
            }
        ),
    }
}

/// A request as one line of JSON. The keys are stable (docs/approvals.md).
pub(crate) fn json(entry: &ApprovalEntry, now_us: i64) -> Vec<u8> {
    let ApprovalEntry { request, decided, used, .. } = entry;
    let object = JsonWriter::object(|json| {
        json.text("id", &request.id);
        json.text("state", entry.state(now_us).as_str());
        json.text("created_at", &time_text(request.created_us));
        json.text("expires_at", &time_text(request.expires_us));
        json.text("server_id", &request.server_id);
        json.text("method", &request.method);
        json.text("tool", &request.tool);
        request.arguments().iter().for_each(|raw| json.raw("arguments", raw.as_bytes()));
        request.params.iter().for_each(|raw| json.raw("params", raw.as_bytes()));
        json.text("call_hash", &request.call_hash);
        json.text("principal", &request.principal);
        json.text("folder", &request.folder);
        json.text("policy", &request.policy);
        json.text("workflow", &request.workflow);
        json.text("reason", &request.reason);
        json.texts("approvers", &request.approvers);
        if request.needed_approvals() > 1 {
            json.number("quorum", request.needed_approvals().into());
            json.texts("approved_by", &entry.votes);
        }
        if let Some(second) = &request.escalation {
            json.text("escalates_to", &second.workflow);
            json.text("escalates_at", &time_text(second.at_us));
            json.texts("escalation_approvers", &second.approvers);
        }
        json.text("connection_id", &request.connection_id);
        json.text("request_id", &request.request_id);
        json.raw("asked", request.call_count.to_string().as_bytes());
        json.raw("waiting", request.waiting.to_string().as_bytes());
        if let Some(left_us) = request.left_us {
            json.text("caller_left_at", &time_text(left_us));
        }
        if let Some(decided) = decided {
            json.text("decided_by", &decided.by);
            json.text("decided_at", &time_text(decided.at_us));
            decided.reason.iter().for_each(|reason| json.text("decision_reason", reason));
        }
        json.raw("used", if *used { b"true" } else { b"false" });
    });
    let mut line = compact(&object).into_owned();
    line.push(b'\n');
    line
}

/// A call in a few words.
pub(crate) fn call(request: &ApprovalRecord, chars_max: usize) -> String {
    let name = |text: &str| visible_text::inline(text, NAME_CHARS_MAX);
    let (server, tool) = (name(&request.server_id), name(&request.tool));
    format!("{server} {tool} {}", arguments(request, chars_max)).trim_end().to_owned()
}

/// The arguments, or the whole params if they contain more that matters.
fn arguments(request: &ApprovalRecord, chars_max: usize) -> String {
    visible_text::value(&arguments_raw(request, chars_max > ARGUMENTS_CHARS_MAX * 2), chars_max)
}

fn arguments_raw(request: &ApprovalRecord, alone: bool) -> Vec<u8> {
    let raw = match request.arguments() {
        Some(arguments) if alone || !has_more(request) => arguments,
        _ => params(request),
    };
    raw.as_bytes().to_vec()
}

fn params(request: &ApprovalRecord) -> &str {
    request.params.as_deref().unwrap_or_default()
}

/// Whether the params contain more than the name and arguments of the call.
fn has_more(request: &ApprovalRecord) -> bool {
    has_more_than_arguments(params(request).as_bytes())
}

/// When the request goes to a second workflow, and who may decide then.
fn escalation_note(request: &ApprovalRecord, now_us: i64) -> String {
    let Some(second) = &request.escalation else { return String::new() };
    let to = visible_text::inline(&second.workflow, NAME_CHARS_MAX);
    let when = match second.at_us - now_us {
        left_us if left_us > 0 => format!("to {to} in {}", span(left_us)),
        since_us => format!("to {to} {} ago", span(-since_us)),
    };
    match second.approvers.is_empty() {
        true => when,
        false => {
            let approvers = second.approvers.join(", ");
            format!("{when}: {}", visible_text::inline(&approvers, DETAILS_CHARS_MAX))
        }
    }
}

/// How many approvals there are, if several are needed.
fn quorum_note(entry: &ApprovalEntry) -> String {
    match entry.request.needed_approvals() {
        1 => String::new(),
        needed if entry.votes.is_empty() => format!("{needed} approvals are needed"),
        needed => {
            let by = visible_text::inline(&entry.votes.join(", "), DETAILS_CHARS_MAX);
            format!("{} of {needed} approvals, by {by}", entry.votes.len())
        }
    }
}

/// How many times the call was made, and whether a caller still waits for it.
fn caller(request: &ApprovalRecord, now_us: i64) -> String {
    let mut parts = Vec::new();
    if request.call_count > 1 {
        parts.push(format!("asked {}×", request.call_count));
    }
    match request.left_us {
        Some(left_us) if request.waiting == 0 && left_us + MOMENT_US >= request.expires_us => {
            parts.push("waited to the end".to_owned());
        }
        Some(left_us) if request.waiting == 0 => {
            parts.push(format!("caller gave up {} ago", span(now_us - left_us)));
        }
        _ if parts.is_empty() => parts.push("waiting".to_owned()),
        _ => {}
    }
    parts.join(", ")
}

fn state(entry: &ApprovalEntry, now_us: i64) -> String {
    let state = entry.state(now_us);
    let by =
        entry.decided.as_ref().map(|decided| visible_text::inline(&decided.by, NAME_CHARS_MAX));
    let by = by.unwrap_or_default();
    match state {
        ApprovalState::Pending => "waits for a person".to_owned(),
        ApprovalState::Used => format!("{} by {by}, used", state.as_str()),
        ApprovalState::Approved | ApprovalState::Denied => format!("{} by {by}", state.as_str()),
        // Not a person's decision: the shim records that the request expired or was cancelled.
        ApprovalState::Expired | ApprovalState::Cancelled => state.as_str().to_owned(),
    }
}

fn or_dash(text: &str) -> String {
    if text.is_empty() { "-".to_owned() } else { text.to_owned() }
}

/// A path, with its beginning cut off if it is long: the end tells projects apart.
fn path(text: &str) -> String {
    let whole = visible_text::inline(text, DETAILS_CHARS_MAX);
    // In characters: a path may have any letters.
    let cut = whole.chars().count().saturating_sub(PATH_CHARS_MAX);
    match whole.char_indices().nth(cut) {
        Some((from, _)) if cut > 0 => format!("…{}", &whole[from..]),
        _ => whole,
    }
}

/// The policy file, relative to the caller's folder if it is inside it.
fn policy_within(request: &ApprovalRecord) -> &str {
    let inside = request.policy.strip_prefix(&request.folder);
    inside.and_then(|rest| rest.strip_prefix('/')).unwrap_or(&request.policy)
}

/// A duration in its two largest units.
fn span(us: i64) -> String {
    let secs = us.max(0) / 1_000_000;
    let (days, hours, minutes) = (secs / 86_400, secs / 3600 % 24, secs / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{secs}s"),
        (0, 0, _) => format!("{minutes}m{:02}s", secs % 60),
        (0, ..) => format!("{hours}h{minutes:02}m"),
        _ => format!("{days}d{hours:02}h"),
    }
}

fn time_text(us: i64) -> String {
    let mut out = Vec::new();
    write_rfc3339(&mut out, us, SubSecond::Millis);
    String::from_utf8(out).unwrap_or_default()
}

/// Aligns the cells of rows in columns; the last cell may have any length.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |at: usize| rows.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            write!(line, "{cell:<width$}  ").ok();
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// What a person at an idle terminal waits for.
fn waiting_hint(others: usize) -> String {
    match others {
        0 => "waiting for calls".to_owned(),
        1 => "1 call waits".to_owned(),
        others => format!("{others} calls wait"),
    }
}

#[cfg(test)]
mod tests;
