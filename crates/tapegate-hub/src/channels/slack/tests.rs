//! The messages that are posted to Slack, and how reactions are read.

use tapegate_policy::model::ChannelKind;
use tapegate_store::approvals::ApprovalRecord;

use super::super::sample_requests;
use super::*;

fn channel() -> SlackChannel {
    let settings = ChannelSettings {
        kind: ChannelKind::Slack,
        url: "http://127.0.0.1:1/api".to_owned(),
        secret: None,
        links: None,
        approver: String::new(),
        room: "C1".to_owned(),
        users: BTreeMap::from([("U1".to_owned(), "ann".to_owned())]),
        signing_secret: None,
        approve_button: false,
    };
    SlackChannel::new(&settings, Some("xoxb-1".to_owned()), None).unwrap()
}

fn request(params: &str) -> ChannelRequest {
    let record = ApprovalRecord {
        id: "ap_0000000000000000".to_owned(),
        expires_us: 1_774_016_531_804_012,
        server_id: "files".to_owned(),
        method: "tools/call".to_owned(),
        tool: "write_file".to_owned(),
        params: Some(params.to_owned()),
        principal: "agent".to_owned(),
        folder: "/home/u/shop".to_owned(),
        workflow: "default".to_owned(),
        reason: "rule `rules[0]` requires approval".to_owned(),
        ..ApprovalRecord::default()
    };
    ChannelRequest::new(&record, None)
}

/// Arguments that try to mention, to link, to end a code block and to look like our own text.
fn hostile() -> ChannelRequest {
    let params = "{\"arguments\":{\"a\":\"```\\n<!channel> <https://evil.example|ok> *bold* :white_check_mark: &lt;\\n```\",\"b\":\"[REDACTED:x]\"}}";
    let mut request = request(params);
    request.tool = "<!here> *rm* <@U1> :+1:".to_owned();
    request
}

#[test]
fn messages_are_as_the_golden_has_them() {
    let plain =
        request(r#"{"name":"write_file","arguments":{"path":"/a","content":"one\ntwo\n"}}"#);
    let long =
        request(&format!(r#"{{"arguments":{{"content":"{}"}}}}"#, "0123456789 ".repeat(2000)));
    let mut text = String::new();
    let asked = [
        slack_message::request(&plain, false),
        slack_message::request(&hostile(), true),
        slack_message::request(&long, true),
    ];
    let ended = sample_requests::outcomes();
    let ended = ended.iter().map(|outcome| slack_message::ended(&hostile(), outcome));
    for message in asked.into_iter().chain(ended) {
        text.push_str(&serde_json::to_string_pretty(&message).unwrap());
        text.push('\n');
    }
    sample_requests::golden("slack-messages.json", &text);
    let message = slack_message::request(&long, true);
    assert!(!message.to_string().contains("tapegate_approve"), "{message}");
    let notes = message["blocks"].as_array().unwrap().last().unwrap().to_string();
    assert!(notes.contains("not all of the call") && !notes.contains("👍"), "{notes}");
    assert!(message.to_string().len() < 13_000, "{}", message.to_string().len());
}

#[test]
fn no_text_of_a_call_is_where_slack_looks_for_mark_up() {
    fn visit(value: &Value, parsed: &mut Vec<String>) {
        if value["type"] == "mrkdwn" {
            parsed.push(value["text"].to_string());
        }
        if value["type"] == "plain_text" {
            assert_eq!(value["emoji"], false);
        }
        let children = value.as_array().into_iter().flatten();
        children
            .chain(value.as_object().into_iter().flat_map(|map| map.values()))
            .for_each(|child| visit(child, parsed));
    }
    for message in [
        slack_message::request(&hostile(), true),
        slack_message::ended(
            &hostile(),
            &ChannelOutcome { word: "expired", by: None, reason: None },
        ),
    ] {
        let mut parsed = Vec::new();
        visit(&message, &mut parsed);
        assert!(parsed.is_empty(), "{parsed:?}");
        let text = message["text"].as_str().unwrap();
        assert!(!text.contains('<') && !text.contains('>'), "{text}");
    }
}

#[test]
fn a_denial_outweighs_and_a_message_that_was_cut_cannot_be_approved() {
    let message = |reactions: Value| json!({"ts": "1.2", "reactions": reactions});
    let open = |is_whole: bool| OpenMessage {
        request: std::rc::Rc::new(request("{}")),
        receipt: "C1 1.2".to_owned(),
        is_whole,
    };
    let answers = |reactions: Value, is_whole: bool| -> Vec<(bool, String)> {
        let found = channel().answers(&message(reactions), &open(is_whole));
        found.into_iter().map(|answer| (answer.approve, answer.by)).collect()
    };
    let up = json!({"name": "+1::skin-tone-3", "users": ["U1", "U2"]});
    let down = json!({"name": "x", "users": ["U3"]});
    let other = json!({"name": "eyes", "users": ["U4"]});
    assert_eq!(
        answers(json!([up, other]), true),
        [(true, "ann".to_owned()), (true, "slack:U2".to_owned())]
    );
    assert_eq!(answers(json!([up, down]), true), [(false, "slack:U3".to_owned())]);
    assert_eq!(answers(json!([up]), false), []);
    assert_eq!(answers(json!([down]), false), [(false, "slack:U3".to_owned())]);
    assert_eq!(answers(Value::Null, true), []);
}
