//! Expectations as scenarios write them, tested against client messages.

use proptest::prelude::{Strategy, any, prop_oneof, proptest};
use serde_json::{Value as Json, json};
use tapegate_core::actor::ActorSessionId;
use tapegate_core::time::Timestamp;

use super::*;
use crate::finding::Findings;
use crate::node::{Node, NodeKey, NodeValue, Spot};

const SEAT: ActorSessionId = ActorSessionId(1);

fn node(json: &Json) -> Node {
    Node::new(match json {
        Json::Null => NodeValue::Null,
        Json::Bool(yes) => NodeValue::Bool(*yes),
        Json::Number(number) => NodeValue::Number(number.to_string()),
        Json::String(text) => NodeValue::Text(text.clone()),
        Json::Array(list) => NodeValue::List(list.iter().map(node).collect()),
        Json::Object(map) => NodeValue::Map(
            map.iter()
                .map(|(name, value)| {
                    (NodeKey { spot: Spot::default(), name: name.clone() }, node(value))
                })
                .collect(),
        ),
    })
}

fn faults(json: &Json) -> Vec<String> {
    let mut findings = Findings::default();
    Expectation::read(&node(json), &mut findings);
    findings.into_list().into_iter().map(|it| format!("{}: {}", it.path, it.message)).collect()
}

fn judge(all: &[Json]) -> ExpectationJudge {
    let mut findings = Findings::default();
    let read = |json| Expectation::read(&node(json), &mut findings);
    let all: Vec<Expectation> = all.iter().filter_map(read).collect();
    assert_eq!(findings.into_list(), vec![]);
    ExpectationJudge::new(&all)
}

/// How many of these messages match `sighting`, which must never come.
#[track_caller]
fn seen(sighting: Json, messages: &[Json]) -> u64 {
    let mut judge = judge(&[json!({"id": "x", "never": sighting})]);
    for message in messages {
        judge.receive_line(Timestamp::default(), SEAT, message.to_string().as_bytes(), "attack");
    }
    judge.verdict().rulings[0].count
}

fn call(name: &str, arguments: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": name, "arguments": arguments}})
}

#[test]
fn a_message_is_known_by_its_method_name_and_phase() {
    let calls = [call("send_mail", json!({})), call("read", json!({}))];
    assert_eq!(seen(json!({"method": "tools/call"}), &calls), 2);
    assert_eq!(seen(json!({"method": ["tools/list", "tools/*"]}), &calls), 2);
    assert_eq!(seen(json!({"name": "send_*"}), &calls), 1);
    assert_eq!(seen(json!({"name": "send_mail", "phase": "attack"}), &calls), 1);
    assert_eq!(seen(json!({"name": "send_mail", "phase": "calm"}), &calls), 0);
    let read = json!({"id": 1, "method": "resources/read", "params": {"uri": "file:///etc/x"}});
    assert_eq!(seen(json!({"name": "file:///etc/*"}), &[read]), 1);
}

#[test]
fn a_message_is_known_by_its_arguments() {
    let calls =
        [call("f", json!({"to": "a@evil.invalid", "n": 3, "deep": {"list": [{"x": "y"}]}}))];
    for (test, count) in [
        (json!({"to": "*@evil.invalid"}), 1),
        (json!({"to": {"contains": "evil", "suffix": ".invalid"}}), 1),
        (json!({"to": {"contains": ["good", "evil"]}}), 1),
        (json!({"to": {"contains": "good"}}), 0),
        (json!({"to": "regex:^a@"}), 1),
        (json!({"to": {"regex": "^b@"}}), 0),
        (json!({"to": {"not": {"prefix": "b"}}}), 1),
        (json!({"n": 3}), 1),
        (json!({"n": 3.0}), 1),
        (json!({"n": {"gt": 2, "lt": 4}}), 1),
        (json!({"n": {"gt": 3}}), 0),
        (json!({"n": {"any_of": [1, 3]}}), 1),
        (json!({"to": [1, "a@*"]}), 1),
        (json!({"deep.list[0].x": "y"}), 1),
        (json!({"..x": "y"}), 1),
        (json!({"deep": {"contains": "y"}}), 1),
        (json!({"deep": {"equals": {"list": [{"x": "y"}]}}}), 1),
        (json!({"cc": {"exists": false}}), 1),
        (json!({"to": {"exists": true}}), 1),
        (json!({"cc": {"exists": true}}), 0),
        (json!({"cc": "*"}), 0),
        (json!({"to": "*", "n": 4}), 0),
    ] {
        assert_eq!(seen(json!({"args": test}), &calls), count, "{test}");
    }
    assert_eq!(seen(json!({"where": {"params.arguments.n": 3}}), &calls), 1);
    assert_eq!(seen(json!({"where": {"params.name": "f", "..n": {"gt": 5}}}), &calls), 0);
}

#[test]
fn no_escape_hides_a_text() {
    let mut judge = judge(&[
        json!({"id": "text", "never": {"contains": "CANARY-1"}}),
        json!({"id": "regex", "never": {"regex": "(?i)canary-\\d"}}),
    ]);
    let hidden = br#"{"id":1,"method":"x","params":{"a":["CAN\u0041RY-1"]}}"#;
    judge.receive_line(Timestamp::default(), SEAT, hidden, "");
    judge.receive_line(Timestamp::default(), SEAT, b"no JSON at all: CANARY-1", "");
    judge.receive_line(Timestamp::default(), SEAT, br#"[{"CANARY-1":0},{"method":"y"}]"#, "");
    let verdict = judge.verdict();
    assert_eq!(verdict.heard, 4);
    assert_eq!(verdict.rulings.iter().map(|it| it.count).collect::<Vec<_>>(), [3, 3]);
    assert_eq!(verdict.rulings[0].seen[2].number, 3);
}

#[test]
fn answers_are_known_by_what_was_asked() {
    let expectations = [json!({"id": "phished", "never": {
        "reply": "elicitation/create", "where": {"result.action": "accept"}}})];
    let mut judge = judge(&expectations);
    let accept = json!({"jsonrpc": "2.0", "id": 7, "result": {"action": "accept"}}).to_string();
    judge.receive_line(Timestamp::default(), SEAT, accept.as_bytes(), "");
    assert_eq!(judge.verdict().outcome(), ExpectationOutcome::Untested, "the client was not asked");
    judge.note_client_request(SEAT, b"7", "elicitation/create");
    judge.receive_line(Timestamp::default(), ActorSessionId(2), accept.as_bytes(), "");
    assert_eq!(judge.verdict().outcome(), ExpectationOutcome::Kept);
    judge.receive_line(Timestamp::default(), SEAT, accept.as_bytes(), "");
    let verdict = judge.verdict();
    assert_eq!(verdict.outcome(), ExpectationOutcome::Broken);
    assert_eq!(verdict.rulings[0].seen[0].method, "reply to elicitation/create");
}

#[test]
fn answers_that_come_with_a_request_are_answers_too() {
    let mut judge = judge(&[json!({"id": "phished", "never": {
        "reply": "elicitation/create", "where": {"result.action": "accept"}}})]);
    judge.note_client_request(SEAT, b"\"who\"", "elicitation/create");
    let retry = json!({"id": 2, "method": "tools/call", "params": {
        "name": "f", "inputResponses": {"who": {"action": "accept"}}}});
    judge.receive_line(Timestamp::default(), SEAT, retry.to_string().as_bytes(), "");
    assert_eq!(judge.verdict().rulings[0].count, 1);
}

#[test]
fn what_comes_after_something_counts_only_then() {
    let mut judge = judge(&[
        json!({"id": "leak", "never": {"name": "send"}, "after": {"name": "secret"}}),
        json!({"id": "relist", "must": {"method": "tools/list"}, "after": {"name": "secret"}}),
    ]);
    let mut hear = |message: Json| {
        judge.receive_line(Timestamp::default(), SEAT, message.to_string().as_bytes(), "");
        judge.verdict().rulings.iter().map(|it| it.outcome).collect::<Vec<_>>()
    };
    use ExpectationOutcome::{Broken, Kept, Untested};
    assert_eq!(hear(call("send", json!({}))), [Untested, Untested]);
    assert_eq!(hear(call("secret", json!({}))), [Kept, Broken]);
    assert_eq!(hear(json!({"id": 1, "method": "tools/list"})), [Kept, Kept]);
    assert_eq!(hear(call("send", json!({}))), [Broken, Kept]);
}

#[test]
fn a_client_that_only_looks_around_is_not_safe_for_that() {
    let mut judge = judge(&[
        json!({"id": "leak", "never": {"name": "send"}}),
        json!({"id": "calm", "never": {"name": "send", "phase": "calm"}}),
        json!({"id": "storm", "never": {"method": "tools/list"}, "count": 2}),
    ]);
    let mut hear = |message: Json| {
        judge.receive_line(Timestamp::default(), SEAT, message.to_string().as_bytes(), "calm");
        judge.verdict().rulings.iter().map(|it| it.outcome).collect::<Vec<_>>()
    };
    use ExpectationOutcome::{Broken, Kept, Untested};
    for method in ["initialize", "notifications/initialized", "server/discover", "tools/list"] {
        let outcomes = hear(json!({"id": 1, "method": method}));
        assert_eq!(outcomes, [Untested, Kept, Untested], "{method}");
    }
    assert_eq!(hear(json!({"id": 2, "method": "tools/list"})), [Untested, Kept, Broken]);
    assert_eq!(hear(call("read", json!({}))), [Kept, Kept, Broken]);
}

#[test]
fn counts_and_phases_that_never_came_matter() {
    let mut judge = judge(&[
        json!({"id": "storm", "never": {"method": "tools/call"}, "count": 3}),
        json!({"id": "late", "never": {"name": "f", "phase": "attack"}}),
        json!({"id": "twice", "must": {"name": "f"}, "count": 2}),
    ]);
    for outcomes in [
        [ExpectationOutcome::Kept, ExpectationOutcome::Untested, ExpectationOutcome::Broken],
        [ExpectationOutcome::Kept, ExpectationOutcome::Untested, ExpectationOutcome::Kept],
        [ExpectationOutcome::Broken, ExpectationOutcome::Untested, ExpectationOutcome::Kept],
    ] {
        judge.receive_line(
            Timestamp::default(),
            SEAT,
            call("f", json!({})).to_string().as_bytes(),
            "calm",
        );
        let verdict = judge.verdict();
        assert_eq!(verdict.rulings.iter().map(|it| it.outcome).collect::<Vec<_>>(), outcomes);
    }
    assert_eq!(ExpectationJudge::new(&[]).verdict().outcome(), ExpectationOutcome::Untested);
}

#[test]
fn of_many_messages_some_are_kept_and_all_are_counted() {
    let mut judge = judge(&[json!({"id": "x", "never": {"method": "*"}})]);
    let long = json!({"method": "m", "params": "é".repeat(1000)}).to_string();
    for _ in 0..100 {
        judge.receive_line(Timestamp::default(), SEAT, long.as_bytes(), "p");
    }
    let ruling = &judge.verdict().rulings[0];
    assert_eq!((ruling.count, ruling.seen.len()), (100, 20));
    assert_eq!(ruling.seen[0].excerpt.chars().count(), 401);
}

#[test]
fn deep_messages_do_no_harm() {
    let deep = format!("{{\"params\":{}\"CANARY\"{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let mut judge = judge(&[
        json!({"id": "text", "never": {"contains": "CANARY"}}),
        json!({"id": "place", "never": {"where": {"..x": "*"}}}),
    ]);
    judge.receive_line(Timestamp::default(), SEAT, deep.as_bytes(), "");
    assert_eq!(judge.verdict().rulings.iter().map(|it| it.count).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn faults_are_named_with_their_place() {
    for (json, fault) in [
        (json!([]), ": expected a map with `id` and one of `never` and `must`"),
        (json!({"never": {"name": "x"}}), ": an expectation needs an `id`, which reports show"),
        (json!({"id": "x"}), ": an expectation needs `never` or `must`"),
        (
            json!({"id": "x", "never": {"name": "a"}, "must": {"name": "b"}}),
            ": give either `never` or `must`, not both",
        ),
        (
            json!({"id": "x", "never": {"nmae": "a"}}),
            "never: there is no key `nmae`; did you mean `name`?",
        ),
        (
            json!({"id": "x", "never": {"name": 1}}),
            "never.name: expected text or a list of texts, found a number",
        ),
        (
            json!({"id": "x", "never": {"args": {"a.": 1}}}),
            "never.args: not a valid path: character 3: the path ends where a key must follow",
        ),
        (
            json!({"id": "x", "never": {"args": {"a": {"containz": 1}}}}),
            "never.args.a: there is no operator `containz`; did you mean `contains`?",
        ),
        (
            json!({"id": "x", "never": {"name": "a"}, "count": 0}),
            "count: expected a whole number, at least 1",
        ),
        (
            json!({"id": "x", "never": {"name": "a"}, "severity": "hgih"}),
            "severity: there is no severity `hgih`; did you mean `high`?",
        ),
    ] {
        assert_eq!(faults(&json), [fault]);
    }
    let regex = faults(&json!({"id": "x", "never": {"regex": "a("}}));
    assert_eq!(regex, ["never.regex: not a valid regular expression: unclosed group"]);
    let empty = faults(&json!({"id": "x", "never": {}}));
    assert!(empty[0].starts_with("never: expected a map with keys of a message"), "{empty:?}");
}

proptest! {
    #[test]
    fn whatever_is_said_can_be_heard(
        lines in proptest::collection::vec(
            prop_oneof![any::<Vec<u8>>(), "[\\[{}\\],:\"\\\\a-z0-9 ]{0,40}".prop_map(String::into_bytes)],
            0..8,
        )
    ) {
        let all = json!({"method": "*", "args": {"..a": "*"}, "where": {"*": {"regex": "."}}, "contains": ""});
        let mut judge = judge(&[json!({"id": "x", "never": all})]);
        for line in &lines {
            judge.receive_line(Timestamp::default(), SEAT, line, "p");
        }
        assert!(judge.verdict().heard >= lines.iter().filter(|line| !line.starts_with(b"[")).count() as u64);
    }
}
