//! Any answers survive being written and loaded.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn text() -> impl Strategy<Value = String> {
    let pieces = [
        "$",
        "${HOME}",
        "$$",
        "${args.path}",
        "\"",
        "'",
        "\\",
        "\t",
        "\r\n",
        "\n",
        "\n\n",
        " ",
        ": ",
        " #",
        "- ",
        "---",
        "yes",
        "null",
        "1e3",
        "0x1F",
        "~",
        "2026-01-01",
        "|",
        "&a",
        "*a",
        "!b",
        "%",
        "😀",
        "\u{0}",
        "\u{1b}[31m",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "\u{202e}",
        "words of text",
        "{",
        "]",
    ];
    let piece = prop_oneof![
        prop::sample::select(pieces.to_vec()).prop_map(str::to_owned),
        any::<char>().prop_map(String::from)
    ];
    prop::collection::vec(piece, 0..7).prop_map(|pieces| pieces.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000i32..1000).prop_map(|n| json!(f64::from(n) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(text(), inner, 0..4)
                .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn outcome() -> impl Strategy<Value = Value> {
    let structured = prop::collection::btree_map(text(), value(), 0..3)
        .prop_map(|map| Value::from(map.into_iter().collect::<Map<_, _>>()));
    prop_oneof![
        4 => (prop::collection::vec(text(), 0..3), any::<bool>()).prop_map(|(texts, error)| {
            let content: Vec<Value> = texts.iter().map(|text| json!({"type": "text", "text": text})).collect();
            json!({"result": {"content": content, "isError": error}})
        }),
        2 => structured.prop_map(|it| json!({"result": {"content": [], "structuredContent": it, "_meta": it}})),
        1 => value().prop_map(|it| json!({"result": {"odd": it}})),
        1 => (any::<i32>(), text(), value()).prop_map(|(code, message, data)| {
            json!({"error": {"code": code, "message": message, "data": data}})
        }),
    ]
}

/// The answer to the n-th call.
fn nth(answers: &[Value], n: usize) -> &Value {
    answers.get(n).or(answers.last()).unwrap()
}

/// A recorded answer with the injection marker.
fn marked(outcome: &Value) -> Value {
    const MARK: &str = "[INJECT YOUR PAYLOAD HERE]";
    let mut outcome = outcome.clone();
    let Some(items) = outcome["result"]["content"].as_array_mut() else { return outcome };
    match items.iter_mut().rfind(|item| item["type"] == "text" && item["text"].is_string()) {
        None => items.push(json!({"type": "text", "text": MARK})),
        Some(item) => {
            let text = item["text"].as_str().unwrap();
            let gap = if text.ends_with('\n') { "\n" } else { "\n\n" };
            item["text"] = format!("{text}{gap}{MARK}").into();
        }
    }
    outcome
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_call_gets_what_it_got_on_the_tape(
        names in prop::collection::vec(text().prop_filter("a name", |name| !name.is_empty()), 1..3),
        calls in prop::collection::vec((0usize..3, outcome()), 0..8),
        description in text(),
        after in 1u64..6,
        inline in prop_oneof![Just(4usize), Just(1 << 14)],
    ) {
        let names: std::collections::BTreeSet<String> = names.into_iter().collect();
        let names: Vec<String> = names.into_iter().collect();
        let tools: Vec<Value> = names.iter().map(|name| json!({
            "name": name, "description": description, "inputSchema": {"type": "object"},
        })).collect();
        let mut tape = TestTape::new().hello().ask("tools/list", "{}").give(&format!("\"result\":{}", json!({"tools": tools})));
        let mut recorded: Vec<Vec<(u64, Value)>> = vec![Vec::new(); names.len()];
        for (ordinal, (index, outcome)) in calls.iter().enumerate() {
            let place = index % names.len();
            let text = outcome.to_string();
            tape = tape
                .ask("tools/call", &json!({"name": names[place], "arguments": {"a": description}}).to_string())
                .give(&text[1..text.len() - 1]);
            recorded[place].push((ordinal as u64 + 1, outcome.clone()));
        }
        let it = made(&tape, &ConversionOptions { inline_bytes_max: inline, ..SIMPLE });
        for (name, recorded) in names.iter().zip(&recorded) {
            let item = tool(&it.scenario.baseline.tools, name);
            prop_assert_eq!(item.definition.get("description").unwrap().as_text(), Some(description.as_str()));
            let given = answers(item);
            for (n, (_, outcome)) in recorded.iter().enumerate() {
                prop_assert_eq!(nth(&given, n), outcome);
            }
        }
        let it = made(&tape, &ConversionOptions { phase_after: Some(after), inline_bytes_max: inline, ..PHASED });
        for (name, recorded) in names.iter().zip(&recorded) {
            let early = answers(tool(&it.scenario.baseline.tools, name));
            let late = answers(tool(&it.scenario.phases[1].state.tools, name));
            let (mut before, mut behind) = (0, 0);
            for (ordinal, outcome) in recorded {
                if *ordinal <= after {
                    prop_assert_eq!(nth(&early, before), outcome);
                    before += 1;
                } else {
                    let given = nth(&late, behind);
                    prop_assert!(given == outcome || *given == marked(outcome), "{given}");
                    behind += 1;
                }
            }
        }
        made(&tape, &STRICT);
    }
}
