//! Whatever a message looks like: if any reader could take it for a denied call, it is not sent on.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use tapegate_core::frame::Frame;
use tapegate_core::gate::{Topic, Verdict};
use tapegate_core::json;
use tapegate_core::side::Side;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::{Policy, Profile};

use crate::gate_harness::{GateHarness, GateRecord, policy};
use crate::lenient_readers::{FoundCall, calls_in_body, calls_in_line};

/// `ls` passes, `write` passes in its folder, and nothing else does.
pub(crate) const POLICY: &str = "
schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [hidden]}}]
governance:
  embedded_messages: refuse
  defaults: {action: deny}
  rules:
    - {match: ls, action: forward}
    - {match: write, action: forward, arguments: {path: '/data/*'}}
";

pub(crate) fn may_run(call: &FoundCall) -> bool {
    match call.tool.as_str() {
        "ls" => true,
        "write" => call.path.as_deref().is_some_and(|path| path.starts_with("/data/")),
        _ => false,
    }
}

/// Asserts that a message that is sent on is not a denied call to any reader.
fn holds(
    harness: &mut GateHarness,
    carrier: TransportKind,
    text: &[u8],
) -> Result<bool, TestCaseError> {
    let verdict = harness.judge(Side::Client, None, text);
    let sent = matches!(verdict, Verdict::Forward);
    if sent {
        let calls = match carrier {
            TransportKind::Lines => calls_in_line(text),
            TransportKind::Http => calls_in_body(text),
        };
        let bad = calls.iter().find(|call| !may_run(call));
        prop_assert!(bad.is_none(), "{bad:?} in {}", String::from_utf8_lossy(text));
    }
    prop_assert!(matches!(verdict, Verdict::Forward | Verdict::Refuse(_)));
    Ok(sent)
}

/// A small mutation of a text.
#[derive(Debug, Clone)]
pub(crate) enum TextMutation {
    /// Writes the letter there as an escape.
    Escape(usize),
    /// Swaps the case of the letter there.
    Case(usize),
    /// Inserts a text.
    Insert(usize, &'static str),
    /// Replaces a letter by a text.
    Replace(usize, &'static str),
    /// Removes a run.
    Cut(usize, usize),
    /// Duplicates a run.
    Double(usize, usize),
    /// Appends a text.
    Append(&'static str),
}

const PIECES: &[&str] = &[
    "\r",
    "\n",
    "\0",
    " ",
    ",",
    "\"",
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    "\\n",
    "\\u0000",
    "\\ud800",
    "\u{2028}",
    "\u{85}",
    "\u{feff}",
    "\u{17f}",
    "\u{212a}",
    "_",
    "-",
    "null",
    "\"name\":\"rm\",",
    "\"Name\":\"rm\",",
    "\"n\\u0061me\":\"rm\",",
    "\"method\":\"ping\",",
    "\"METHOD\":\"tools/call\",",
    "\"params\":{\"name\":\"rm\"},",
    "\"PARAMS\":{\"name\":\"rm\"},",
    "\"path\":\"/etc/x\",",
    "\"Path\":\"/etc/x\",",
    "\"arguments\":{\"path\":\"/etc/x\"},",
    "\"__proto__\":{\"path\":\"/etc/x\"},",
    "\"__proto__\":",
    "\"id\":2,",
    "\"jsonrpc\":\"2.0\",",
    "\\n{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":9,\\\"method\\\":\\\"tools/call\\\",\\\"params\\\":{\\\"name\\\":\\\"rm\\\"}}",
    "{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}",
];

fn piece() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(PIECES)
}

fn twist() -> impl Strategy<Value = TextMutation> {
    let at = 0..400_usize;
    prop_oneof![
        at.clone().prop_map(TextMutation::Escape),
        at.clone().prop_map(TextMutation::Case),
        (at.clone(), piece()).prop_map(|(at, piece)| TextMutation::Insert(at, piece)),
        (at.clone(), piece()).prop_map(|(at, piece)| TextMutation::Replace(at, piece)),
        (at.clone(), 0..20_usize).prop_map(|(at, length)| TextMutation::Cut(at, length)),
        (at, 0..60_usize).prop_map(|(at, length)| TextMutation::Double(at, length)),
        piece().prop_map(TextMutation::Append),
    ]
}

pub(crate) fn twisted(text: &str, twists: &[TextMutation]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for twist in twists {
        let within = |at: &usize| at % (letters.len() + 1);
        match twist {
            TextMutation::Escape(at) => {
                let at = within(at).min(letters.len().saturating_sub(1));
                if let Some(letter) = letters.get(at).copied().filter(|c| c.is_ascii_alphanumeric())
                {
                    let escape = format!("\\u{:04x}", u32::from(letter));
                    letters.splice(at..=at, escape.chars());
                }
            }
            TextMutation::Case(at) => {
                let at = within(at);
                if let Some(letter) = letters.get_mut(at) {
                    let other = letter.to_ascii_uppercase();
                    *letter = if other == *letter { letter.to_ascii_lowercase() } else { other };
                }
            }
            TextMutation::Insert(at, piece) => {
                let at = within(at);
                letters.splice(at..at, piece.chars());
            }
            TextMutation::Replace(at, piece) => {
                let at = within(at);
                let end = (at + 1).min(letters.len());
                letters.splice(at..end, piece.chars());
            }
            TextMutation::Cut(at, length) => {
                let at = within(at);
                let end = (at + length).min(letters.len());
                letters.drain(at..end);
            }
            TextMutation::Double(at, length) => {
                let at = within(at);
                let end = (at + length).min(letters.len());
                let run = letters[at..end].to_vec();
                letters.splice(at..at, run);
            }
            TextMutation::Append(piece) => letters.extend(piece.chars()),
        }
    }
    letters.into_iter().collect()
}

/// Members that conflict with those of a call.
const MEMBERS: &[&str] = &[
    r#""name":"rm""#,
    r#""Name":"rm""#,
    r#""n\u0061me":"rm""#,
    r#""na\ud800me":"rm""#,
    r#""name\u0000x":"rm""#,
    r#""method":"ping""#,
    r#""method":"tools/call""#,
    r#""METHOD":"tools/call""#,
    r#""params":{"name":"rm"}"#,
    r#""params":{"name":"ls"}"#,
    r#""PARAMS":{"name":"rm"}"#,
    r#""arguments":{"path":"/etc/x"}"#,
    r#""Arguments":{"path":"/etc/x"}"#,
    r#""path":"/etc/x""#,
    r#""PATH":"/etc/x""#,
    r#""__proto__":{"name":"rm"}"#,
    r#""__proto__":{"path":"/etc/x"}"#,
    r#""__proto__":{"arguments":{"path":"/etc/x"}}"#,
    r#""__pr\u006fto__":{"method":"tools/call","params":{"name":"rm"}}"#,
    r#""other":["/etc/x",{"name":"rm"}]"#,
    "\"other\":\r{\"method\":\"tools/call\",\"params\":{\"name\":\"rm\"}}\r",
    "\"other\":\"\u{2028}{}\"",
];

/// A call, well-formed or nearly so.
pub(crate) fn call() -> impl Strategy<Value = String> {
    let tool = proptest::sample::select(&["rm", "ls", "ls", "write", "write", "hidden"][..]);
    let path = proptest::sample::select(&["/data/a", "/data/a", "/etc/a"][..]);
    let key = |name: &'static str, odd: &'static [&'static str]| prop_oneof![8 => Just(name), 1 => proptest::sample::select(odd)];
    let method = key("method", &["Method", r"\u006dethod", "met_hod", r"metho\ud800d"]);
    let params = key("params", &["PARAMS", "param\u{17f}", r"p\u0061rams"]);
    let name = key("name", &["Name", r"\u006eame", "na-me", r"na\ud800me"]);
    let says = proptest::sample::select(&["tools/call", "tools/call", "ping"][..]);
    let member = (proptest::sample::select(MEMBERS), 0..6_usize);
    let extra = proptest::collection::vec(member, 0..3);
    let id = prop_oneof![4 => Just("\"id\":1,"), 1 => Just("")];
    (tool, path, (method, says), params, name, extra, id).prop_map(
        |(tool, path, (method, says), params, name, extra, id)| {
            let at = |wanted: usize| {
                let here = extra.iter().filter(move |(_, place)| *place == wanted);
                let comma = |(member, _): &(&str, usize)| match wanted % 2 {
                    0 => format!("{member},"),
                    _ => format!(",{member}"),
                };
                here.map(comma).collect::<String>()
            };
            let arguments = format!(r#"{{{}"path":"{path}"{}}}"#, at(4), at(5));
            let inner = format!(r#""{name}":"{tool}","arguments":{arguments}"#);
            let params = format!(r#""{params}":{{{}{inner}{}}}"#, at(2), at(3));
            format!(r#"{{{}"jsonrpc":"2.0",{id}"{method}":"{says}",{params}{}}}"#, at(0), at(1),)
        },
    )
}

/// Mostly none, since few mutations leave a text that any reader accepts.
pub(crate) fn twists() -> impl Strategy<Value = Vec<TextMutation>> {
    prop_oneof![2 => Just(Vec::new()), 1 => proptest::collection::vec(twist(), 1..4)]
}

static SHARED: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(policy(POLICY)));

fn harness(carrier: TransportKind) -> GateHarness {
    let policy = Some(Arc::clone(&SHARED));
    GateHarness::sharing(GateRecord::default(), carrier, policy, Profile::Production)
}

proptest! {
    #[test]
    fn no_twist_of_a_call_gets_a_denied_one_through(
        texts in proptest::collection::vec((call(), twists()), 8)
    ) {
        for carrier in [TransportKind::Lines, TransportKind::Http] {
            let mut harness = harness(carrier);
            for (text, twists) in &texts {
                holds(&mut harness, carrier, twisted(text, twists).as_bytes())?;
            }
            let batch: Vec<String> =
                texts.iter().take(3).map(|(text, twists)| twisted(text, twists)).collect();
            holds(&mut harness, carrier, format!("[{}]", batch.join(",")).as_bytes())?;
        }
    }

    #[test]
    fn no_bytes_get_a_denied_call_through(
        parts in proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..8),
                piece().prop_map(|piece| piece.as_bytes().to_vec()),
            ],
            0..12,
        )
    ) {
        let text = parts.concat();
        for carrier in [TransportKind::Lines, TransportKind::Http] {
            holds(&mut harness(carrier), carrier, &text)?;
        }
    }

    #[test]
    fn nothing_hidden_is_listed_and_nothing_else_changes(
        names in proptest::collection::vec(
            proptest::sample::select(&["hidden", "ls", "rm", "h\\u0069dden"][..]), 0..8),
        key in proptest::sample::select(&["tools", "Tools", "\\u0074ools", "TOOLS"][..]),
        id in proptest::sample::select(&["1", "1.0", "\"1\"", "9"][..]),
        topic in proptest::sample::select(
            &[None, Some(Topic::Tools), Some(Topic::Other), Some(Topic::Call)][..]),
    ) {
        let items: Vec<String> =
            names.iter().map(|name| format!(r#"{{"name":"{name}", "x":[1.0] }}"#)).collect();
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"{key}":[ {} ],"nextCursor":"n"}}}}"#,
            items.join(" , ")
        );
        let verdict = harness(TransportKind::Lines).judge(Side::Server, topic, text.as_bytes());
        let sent = match verdict {
            Verdict::Forward => text.clone().into_bytes(),
            Verdict::Rewrite(sent) => sent,
            other => return Err(TestCaseError::fail(format!("{other:?}"))),
        };
        prop_assert!(json::check(&sent).is_ok());
        let sent = String::from_utf8(sent).unwrap();
        prop_assert!(!sent.contains("hidden") && !sent.contains("h\\u0069dden"), "{}", sent);
        let kept: Vec<&String> = items.iter().filter(|item| !item.contains("dden")).collect();
        prop_assert_eq!(sent.matches("\"x\":[1.0] }").count(), kept.len());
        if kept.len() == items.len() {
            prop_assert_eq!(sent, text);
        }
    }

    #[test]
    fn ordinary_calls_pass(tool in "[a-zA-Z0-9_./-]{1,40}", argument in "\\PC{0,40}") {
        let open = "schema: 1\ngovernance: {defaults: {action: forward}}\n";
        let mut harness = GateHarness::new(Some(policy(open)), Profile::Production);
        let mut text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{tool}","arguments":{{"a":"#
        ).into_bytes();
        json::write_str(&mut text, &argument);
        text.extend_from_slice(b"}}}");
        prop_assert!(Frame::read(&text).envelope().is_some());
        let verdict = harness.judge(Side::Client, None, &text);
        prop_assert!(matches!(verdict, Verdict::Forward), "{verdict:?} {}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn well_written_calls_of_what_may_run_are_among_those_that_are_tried() {
    let mut harness = harness(TransportKind::Lines);
    for (text, passes) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ls","arguments":{"path":"/etc/a"}}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/data/a"}}}"#,
            true,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write","arguments":{"path":"/etc/a"}}}"#,
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm","arguments":{}}}"#,
            false,
        ),
    ] {
        assert_eq!(
            holds(&mut harness, TransportKind::Lines, text.as_bytes()).unwrap(),
            passes,
            "{text}"
        );
    }
}
