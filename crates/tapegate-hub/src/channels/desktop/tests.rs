//! What a notification says, and which signals count.

use std::fs;
use std::path::Path;

use tapegate_store::approvals::ApprovalRecord;

use super::*;

const ALL: DaemonFeatures = DaemonFeatures { actions: true, body: true };

fn request(tool: &str, params: &str) -> ChannelRequest {
    let record = ApprovalRecord {
        id: "ap_0000000000000000".to_owned(),
        server_id: "files".to_owned(),
        tool: tool.to_owned(),
        params: Some(params.to_owned()),
        principal: "agent".to_owned(),
        folder: "/home/u/shop".to_owned(),
        reason: "rule `rules[0]` requires approval".to_owned(),
        ..ApprovalRecord::default()
    };
    ChannelRequest::new(&record, None)
}

fn text(notification: &Notification) -> String {
    let buttons: Vec<&str> = notification.buttons.iter().map(|(_, label)| *label).collect();
    format!("# {}\n{}\n[{}]\n\n", notification.title, notification.body, buttons.join("] ["))
}

#[test]
fn notifications_are_as_the_golden_has_them() {
    let plain = request("write_file", r#"{"arguments":{"path":"/a","content":"one\ntwo\n"}}"#);
    let hostile = request(
        "<b>rm</b> &amp; \u{202e}\u{1b}[2J",
        "{\"arguments\":{\"a\":\"</b><img src='http://evil.example/x'/><a href=\\\"http://evil.example\\\">Approve</a>\\n\\u001b]0;t\\u0007 \\u202e &lt; [REDACTED:x]\"}}",
    );
    let long = request(
        "write_file",
        &format!(r#"{{"arguments":{{"content":"{}"}}}}"#, "0123456789 ".repeat(200)),
    );
    let lines =
        request("write_file", &format!(r#"{{"arguments":{{"content":"{}"}}}}"#, "a\\n".repeat(40)));
    let outcome = ChannelOutcome {
        word: "denied",
        by: Some("<i>ann</i>".to_owned()),
        reason: Some("a & b".to_owned()),
    };
    let bare = DaemonFeatures { body: true, actions: false };
    let shown = [
        notification::request(&plain, ALL, true),
        notification::request(&plain, ALL, false),
        notification::request(&plain, bare, true),
        notification::request(&plain, DaemonFeatures { actions: true, body: false }, true),
        notification::request(&hostile, ALL, true),
        notification::request(&hostile, bare, true),
        notification::request(&long, ALL, true),
        notification::request(&lines, ALL, true),
        notification::ended(&hostile, &outcome),
    ];
    let found: String = shown.iter().map(text).collect();
    let file =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/desktop-notifications.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &found).unwrap();
    }
    assert_eq!(fs::read_to_string(&file).unwrap_or_default(), found, "UPDATE_GOLDEN=1 rewrites it");
    for notification in &shown {
        let text = text(notification);
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text:?}");
        assert!(!notification.body.contains('<'), "no mark-up: {text}");
        assert!(notification.body.len() < 1500, "{}", notification.body.len());
    }
}

#[test]
fn only_buttons_that_a_notification_has_count() {
    let settings = ChannelSettings {
        kind: tapegate_policy::model::ChannelKind::Desktop,
        url: String::new(),
        secret: None,
        links: None,
        approver: "ann".to_owned(),
        room: String::new(),
        users: BTreeMap::new(),
        signing_secret: None,
        approve_button: true,
    };
    let channel = DesktopChannel::new(&settings);
    let shown = |number, has_approve| ShownNotification { number, has_approve, is_closed: false };
    channel.shown.borrow_mut().insert("ap_a".to_owned(), shown(1, true));
    channel.shown.borrow_mut().insert("ap_b".to_owned(), shown(2, false));
    assert!(!channel.take_action(2, "approve"), "it had no such button");
    assert!(!channel.take_action(3, "approve") && !channel.take_action(1, "default"));
    assert!(channel.take_action(1, "approve") && channel.take_action(2, "deny"));
    let answers = channel.answers.take();
    let found: Vec<_> =
        answers.iter().map(|one| (one.id.as_str(), one.approve, one.by.as_str())).collect();
    assert_eq!(found, [("ap_a", true, "ann"), ("ap_b", false, "ann")]);
}
