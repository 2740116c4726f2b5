//! Tests of the rows that people see of a tape.

use super::super::TapeReader;
use super::super::stats::TapeStats;
use super::*;

fn options() -> TimelineOptions {
    TimelineOptions { rows_max: 100, bytes_max: 1 << 20, chars_max: 40, whole: false, wanted: None }
}

/// A thoughtjack tape of these messages, a millisecond apart.
fn tape(messages: &[&str]) -> String {
    let mut out = String::new();
    for (at, message) in messages.iter().enumerate() {
        let (dir, msg) = message.split_at(2);
        let dir = if dir == "c " { "c2s" } else { "s2c" };
        out.push_str(&format!(
            "{{\"type\":\"message\",\"seq\":{},\"ts\":\"2026-03-20T14:22:11.{:03}Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n",
            at + 1,
            at
        ));
    }
    out
}

fn rows(text: &str, options: TimelineOptions) -> Vec<TimelineRow> {
    let mut timeline = Timeline::new(options);
    let mut reader = TapeReader::new(text.as_bytes());
    let mut rows = Vec::new();
    while let Some(next) = reader.next() {
        timeline.line(&next);
        rows.extend(std::iter::from_fn(|| timeline.next_row()));
    }
    timeline.finish();
    rows.extend(std::iter::from_fn(|| timeline.next_row()));
    rows
}

/// A short description of a row.
fn told(row: &TimelineRow) -> String {
    let call = row.call().cloned().unwrap_or_default();
    let name = call.name.map(|name| format!(" {name}")).unwrap_or_default();
    let state = match (&row.kind, &row.answer) {
        (RowKind::LateAnswer(_), Some(answer)) => format!(" late={}", answer.text),
        (_, Some(answer)) => {
            format!(" = {} ({:?} {:?})", answer.text, answer.outcome, answer.latency_us)
        }
        (RowKind::Request { state, .. }, None) => format!(" {state:?}"),
        (RowKind::NoAnswer { state, .. }, None) => format!(" no answer: {state:?}"),
        (RowKind::Notification(_), None) => String::new(),
        (kind, None) => format!("{kind:?}"),
    };
    let under = row.under.as_ref().map(|under| format!(" under {under}")).unwrap_or_default();
    let children: String =
        row.children.iter().map(|child| format!("\n  {}", told(child))).collect();
    format!("{}{name} {}{state}{under}{children}", call.method, call.arguments)
}

#[track_caller]
fn shows(text: &str, options: TimelineOptions, expected: &[&str]) {
    let seen: Vec<String> = rows(text, options).iter().map(told).collect();
    assert_eq!(seen, expected);
}

const CALL: &str = r#"c {"id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p"},"name":"a","arguments":{"x":1}}}"#;
const ANSWER: &str = r#"s {"id":1,"result":{"content":[{"type":"text","text":"done"}]}}"#;

#[test]
fn a_request_and_its_answer_are_one_row_with_what_belongs_to_it_below() {
    let text = tape(&[
        CALL,
        r#"s {"method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
        r#"s {"id":1,"method":"roots/list"}"#,
        r#"c {"id":1,"result":{"roots":[{"uri":"file:///a"}]}}"#,
        ANSWER,
    ]);
    shows(
        &text,
        options(),
        &["tools/call a {\"x\":1} = done (Ok Some(4000))\n  \
           notifications/progress {\"progressToken\":\"p\",\"progress\":1}\n  \
           roots/list  = 1 root: file:///a (Ok Some(1000))"],
    );
}

#[test]
fn rows_stand_in_the_order_of_their_requests() {
    let second = r#"c {"id":2,"method":"ping"}"#;
    let pong = r#"s {"id":2,"result":{}}"#;
    let text = tape(&[CALL, second, pong, ANSWER]);
    let call = "tools/call a {\"x\":1} = done (Ok Some(3000))";
    let ping = "ping  = {} (Ok Some(1000))";
    shows(&text, options(), &[call, ping]);
    // If nothing is held back, they are in the order in which they become complete.
    shows(&text, TimelineOptions { rows_max: 0, ..options() }, &[ping, call]);
}

#[test]
fn what_waits_too_long_is_handed_out_and_its_answer_later() {
    let ping = r#"c {"id":2,"method":"ping"}"#;
    let pong = r#"s {"id":2,"result":{}}"#;
    let progress = r#"s {"method":"notifications/progress","params":{"progressToken":"p"}}"#;
    let text = tape(&[CALL, ping, pong, progress, ANSWER]);
    shows(
        &text,
        TimelineOptions { rows_max: 1, ..options() },
        &[
            "tools/call a {\"x\":1} Waiting",
            "ping  = {} (Ok Some(1000))",
            "notifications/progress {\"progressToken\":\"p\"} under a",
            "tools/call a  late=done",
        ],
    );
    shows(
        &text,
        TimelineOptions { bytes_max: 600, ..options() },
        &[
            "tools/call a {\"x\":1} Waiting",
            "ping  = {} (Ok Some(1000))",
            "notifications/progress {\"progressToken\":\"p\"} under a",
            "tools/call a  late=done",
        ],
    );
}

#[test]
fn requests_without_an_answer_are_told_from_those_that_were_cancelled() {
    let cancelled = r#"c {"method":"notifications/cancelled","params":{"requestId":1}}"#;
    let text = tape(&[CALL, cancelled, r#"c {"id":2,"method":"tools/list"}"#]);
    shows(
        &text,
        options(),
        &[
            "tools/call a {\"x\":1} Cancelled\n  notifications/cancelled {\"requestId\":1}",
            "tools/list  Unanswered",
        ],
    );
}

#[test]
fn what_was_handed_out_while_it_waited_gets_a_row_if_no_answer_comes() {
    let list = r#"c {"id":2,"method":"tools/list"}"#;
    let listen = r#"c {"id":3,"method":"subscriptions/listen"}"#;
    let cancel = r#"c {"method":"notifications/cancelled","params":{"requestId":2}}"#;
    let ping = r#"c {"id":4,"method":"ping"}"#;
    let cancel_ping = r#"c {"method":"notifications/cancelled","params":{"requestId":4}}"#;
    let text = tape(&[CALL, list, listen, cancel, ping, cancel_ping]);
    let seen = rows(&text, TimelineOptions { rows_max: 1, ..options() });
    let told: Vec<String> = seen.iter().map(told).collect();
    let expected = [
        "tools/call a {\"x\":1} Waiting",
        "tools/list  Waiting",
        "subscriptions/listen  Waiting",
        "notifications/cancelled {\"requestId\":2} under tools/list",
        "ping  Cancelled\n  notifications/cancelled {\"requestId\":4}",
        "tools/call a  no answer: Unanswered",
        "tools/list  no answer: Cancelled",
    ];
    assert_eq!(told, expected);
    assert_eq!(seen[5].line, 1);
    let mut stats = TapeStats::default();
    seen.iter().for_each(|row| stats.row(row));
    let total = stats.total();
    assert_eq!((total.count, total.unanswered, total.cancelled), (4, 1, 2));
}

#[test]
fn a_subscription_keeps_nothing_back() {
    let text = tape(&[
        r#"c {"id":1,"method":"subscriptions/listen"}"#,
        r#"c {"id":2,"method":"ping"}"#,
        r#"s {"id":2,"result":{}}"#,
        r#"s {"id":1,"result":{}}"#,
    ]);
    let expected = [
        "subscriptions/listen  Waiting",
        "ping  = {} (Ok Some(1000))",
        "subscriptions/listen  late={}",
    ];
    shows(&text, options(), &expected);
}

#[test]
fn batches_of_either_dialect_are_shown_message_by_message() {
    let line = |direction: &str, parsed: &str| {
        format!(
            "{{\"ts\":\"2026-03-20T14:22:11Z\",\"direction\":\"{direction}\",\"parsed\":{parsed}}}\n"
        )
    };
    let ask = r#"[{"id":1,"method":"ping"},{"id":"1","method":"tools/list"},7]"#;
    let answers =
        r#"[{"id":"1","result":{"tools":[{"name":"a"},{"name":"b"}]}},{"id":1,"result":{}}]"#;
    let text = line("client_to_server", ask) + &line("server_to_client", answers);
    shows(
        &text,
        options(),
        &["ping  = {} (Ok Some(0))", "tools/list  = 2 tools: a, b (Ok Some(0))", " Other(\"7\")"],
    );
    assert!(rows(&text, options()).iter().all(|row| row.batch == Some(1)));
}

#[test]
fn sessions_are_kept_apart_and_a_new_recording_forgets_what_was_open() {
    let line = |direction: &str, id: &str, parsed: &str| {
        format!(
            "{{\"ts\":\"2026-03-20T14:22:11Z\",\"direction\":\"{direction}\",\"parsed\":{parsed}{id}}}\n"
        )
    };
    let hello = r#"{"id":1,"method":"initialize"}"#;
    let reply = r#"{"id":1,"result":{"serverInfo":{"name":"s","version":"1"}}}"#;
    let other = ",\"session_id\":\"s2\"";
    let text = line("client_to_server", "", hello)
        + &line("client_to_server", other, hello)
        + &line("server_to_client", other, reply)
        + &line("client_to_server", "", hello)
        + &line("server_to_client", "", reply);
    let expected = [
        "initialize  Unanswered",
        "initialize  = s 1 (Ok Some(0))",
        "initialize  = s 1 (Ok Some(0))",
    ];
    shows(&text, options(), &expected);
    assert_eq!(rows(&text, options())[1].session.as_deref(), Some("s2"));
}

#[test]
fn errors_marks_and_what_is_not_a_message_are_told() {
    let text = format!(
        "{}{}{}",
        r#"{"type":"message","seq":1,"ts":"x","dir":"c2s","msg":{"id":1,"method":"tools/call","params":{"name":"rm"}},"refused":"no"}
{"type":"message","seq":2,"ts":"x","dir":"s2c","msg":{"id":1,"error":{"code":-32001,"message":"denied"}},"latency_ms":7,"by":"tapegate"}
"#,
        r#"{"type":"message","seq":3,"ts":"x","dir":"s2c","msg":{"id":9,"result":{"isError":true,"content":[]}}}
"#,
        "{\"ts\":\"x\",\"direction\":\"server_to_client\",\"raw\":\"hello\",\"parse_error\":\"no JSON\"}\nnonsense\n{}"
    );
    let seen = rows(&text, options());
    assert_eq!(seen[0].marks.refused.as_deref(), Some("no"));
    let answer = seen[0].answer.as_ref().unwrap();
    assert_eq!(answer.outcome, AnswerOutcome::Error(Some(-32001)));
    assert_eq!((answer.latency_us, answer.marks.ours), (Some(7000), true));
    assert_eq!(seen[1].answer.as_ref().unwrap().outcome, AnswerOutcome::ToolError);
    assert!(matches!(&seen[2].kind, RowKind::Anomaly { reason, text, bytes_total: 5 }
        if reason == "no JSON" && text == "hello"));
    assert!(matches!(&seen[3].kind, RowKind::Fault(words) if words.starts_with("not JSON")));
    assert!(matches!(&seen[4].kind, RowKind::Fault(_)));
}

#[test]
fn short_texts_are_decoded_and_cut_between_characters() {
    let call = r#"c {"id":1,"method":"tools/call","params":{"name":"a","arguments":{"t":"\u65e5\u672c\"\\n\ud800","more":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"},"task":{"ttl":1}}}"#;
    let seen = rows(&tape(&[call]), options());
    let arguments = &seen[0].call().unwrap().arguments;
    assert_eq!(arguments, "{\"arguments\":{\"t\":\"日本\\\"\\\\n\\ud800\",\"more\"…");
}

#[test]
fn only_what_is_looked_for_is_marked() {
    let wanted: MessageTest = Box::new(|text| text.windows(4).any(|part| part == b"done"));
    let ping = r#"c {"id":2,"method":"ping"}"#;
    let seen =
        rows(&tape(&[CALL, ping, ANSWER]), TimelineOptions { wanted: Some(wanted), ..options() });
    let matched: Vec<bool> = seen.iter().map(|row| row.matched).collect();
    assert_eq!(matched, [true, false]);
}

#[test]
fn stats_count_every_message_once_however_rows_are_handed_out() {
    let ping = r#"c {"id":2,"method":"ping"}"#;
    let pong = r#"s {"id":2,"result":{}}"#;
    let ask = r#"s {"id":1,"method":"roots/list"}"#;
    let note = r#"s {"method":"notifications/message"}"#;
    let text = tape(&[CALL, ping, ask, note, pong, ANSWER, r#"s {"id":7,"result":{}}"#]);
    let sum = |rows_max| {
        let mut stats = TapeStats::default();
        let options = TimelineOptions { rows_max, ..options() };
        rows(&text, options).iter().for_each(|row| stats.row(row));
        stats
    };
    let stats = sum(0);
    assert_eq!((stats.client_messages, stats.server_messages, stats.notifications), (2, 5, 1));
    let total = stats.total();
    assert_eq!((total.count, total.unanswered, stats.stray_answers), (3, 1, 1));
    assert_eq!(total.latencies.count(), 2);
    for rows_max in [1, 2, 100] {
        let other = sum(rows_max);
        assert_eq!(other.client_messages + other.server_messages, 7);
        assert_eq!(other.bytes, stats.bytes);
        assert_eq!(other.total().latencies, total.latencies);
    }
}

#[test]
fn a_bash_session_is_calls_of_a_tool() {
    let line = r#"{"entry_id":"e1","session_id":"s","sequence_number":1,"timestamp":"2025-01-15T14:30:52.123456Z","duration_ms":1523,"command":"git status","description":null,"working_directory":"/srv","timeout_seconds":120,"timed_out":false,"exit_code":1,"stdout":"On branch\n","stderr":"","x":1}"#;
    let mut timeline = Timeline::new(TimelineOptions { chars_max: 20, ..options() });
    timeline.command(1, &BashCommand::read(line.as_bytes()).unwrap());
    let row = timeline.next_row().unwrap();
    assert_eq!(
        told(&row),
        "tools/call bash_recorder.execute {\"command\":\"git stat… = On branch (ToolError Some(1523000))"
    );
}
