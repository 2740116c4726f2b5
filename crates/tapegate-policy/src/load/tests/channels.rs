//! The section `channels`, and the workflows that name channels.

use super::*;
use crate::model::{ChannelKind, ChannelSecret};

#[test]
fn channels_are_read_with_their_defaults() {
    let policy = good(&format!(
        "{HEAD}approval: {{w: {{channels: [ops, phone, hook], approvers: [ann]}}}}
channels:
  ops: {{type: slack, room: C1, secret_env: TOKEN, users: {{U1: ann}}}}
  phone: {{type: ntfy, url: 'https://ntfy.sh/x', approver: ann}}
  hook: {{type: webhook, url: 'http://127.0.0.1:1/x', secret_file: hook.secret, approver: ann}}
"
    ));
    assert_eq!(policy.workflows["w"].channels, ["ops", "phone", "hook"]);
    let ops = &policy.channels["ops"];
    assert_eq!(
        (ops.kind, ops.url.as_str(), ops.room.as_str()),
        (ChannelKind::Slack, "https://slack.com/api", "C1")
    );
    assert_eq!(ops.secret, Some(ChannelSecret::Variable("TOKEN".to_owned())));
    assert_eq!((ops.users["U1"].as_str(), ops.approver.as_str()), ("ann", "ops"));
    assert_eq!(
        (policy.channels["phone"].secret.clone(), policy.channels["phone"].links.clone()),
        (None, None)
    );
    assert!(
        matches!(&policy.channels["hook"].secret, Some(ChannelSecret::File(path)) if path.ends_with("hook.secret"))
    );
}

#[test]
fn a_desktop_and_buttons_in_slack_have_keys_of_their_own() {
    let policy = good(&format!(
        "{HEAD}approval: {{w: {{channels: [desk, ops]}}}}
channels:
  desk: {{type: desktop, approve_button: true}}
  ops: {{type: slack, room: C1, secret_env: TOKEN, signing_secret_file: /run/signing}}
"
    ));
    let desk = &policy.channels["desk"];
    assert_eq!(
        (desk.kind, desk.approve_button, desk.approver.as_str(), desk.url.as_str()),
        (ChannelKind::Desktop, true, "desk", "")
    );
    let ops = &policy.channels["ops"];
    assert_eq!(ops.signing_secret, Some(ChannelSecret::File("/run/signing".to_owned())));
    assert!(!ops.approve_button);
}

#[test]
fn a_key_of_a_channel_that_would_do_nothing_is_an_error() {
    let found = |text: &str| {
        let loaded = read(&format!(
            "{HEAD}approval: {{w: {{channels: [c]}}}}\nchannels: {{c: {{{text}}}}}\n"
        ));
        assert!(loaded.policy.is_none(), "{text}");
        told(&loaded).join("\n")
    };
    for (text, message) in [
        ("type: ntfy, url: 'http://h/t', room: C1", "`room` does nothing for `type: ntfy`"),
        (
            "type: slack, room: C1, secret_env: A, links: 'http://h'",
            "`links` does nothing for `type: slack`",
        ),
        ("type: slack, secret_env: A", "`room` is missing"),
        ("type: webhook, secret_env: A", "`url` is missing"),
        ("type: webhook, url: 'http://h'", "`secret_env` or `secret_file` is missing"),
        ("type: webhook, url: 'http://h', secret_env: A, secret_file: b", "not both"),
        ("type: pigeon, url: 'http://h'", "pigeon"),
        ("type: desktop, url: 'http://h'", "`url` does nothing for `type: desktop`"),
        ("type: desktop, secret_env: A", "`secret_env` does nothing for `type: desktop`"),
        ("type: ntfy, url: 'http://h/t', approve_button: true", "`approve_button` does nothing"),
        (
            "type: webhook, url: 'http://h', secret_env: A, signing_secret_env: B",
            "`signing_secret_env` does nothing for `type: webhook`",
        ),
        (
            "type: slack, room: C1, secret_env: A, signing_secret_env: B, signing_secret_file: c",
            "give either `signing_secret_env` or `signing_secret_file`",
        ),
        ("type: desktop, approve_button: sometimes", "approve_button"),
    ] {
        assert!(found(text).contains(message), "{text}: {}", found(text));
    }
}

#[test]
fn a_quorum_needs_as_many_approvers() {
    let policy = good(&format!("{HEAD}approval: {{w: {{approvers: [ann, bob], quorum: 2}}}}\n"));
    assert_eq!(policy.workflows["w"].quorum, 2);
    assert_eq!(good(HEAD).workflows["default"].quorum, 1);
    for approvers in ["", "approvers: [ann], ", "approvers: [ann, ann], "] {
        let text = format!("{HEAD}approval: {{w: {{{approvers}quorum: 2}}}}\n");
        let found = told(&read(&text)).join("\n");
        assert!(found.contains("`approvers` must name at least 2 users"), "{found}");
    }
}

#[test]
fn the_user_of_a_named_client_answers_unless_approvers_are_named() {
    let policy = good(&format!("{HEAD}approval: {{w: {{in_agent: [claude-code, 'codex-*']}}}}\n"));
    let allows = |client: &str| policy.workflows["w"].allows_answers_in(client);
    assert!(allows("claude-code") && allows("codex-mcp-client"));
    assert!(!allows("claude-code-2") && !allows("") && !allows("cline"));
    assert!(!good(HEAD).workflows["default"].allows_answers_in("claude-code"));
    for (workflow, message) in [
        ("in_agent: [a], approvers: [ann]", "none of the `approvers` can answer there"),
        ("in_agent: [a], approvers: [a, b], quorum: 2", "leave one of the two out"),
        ("in_agent: []", "`in_agent` is empty"),
    ] {
        let found = told(&read(&format!("{HEAD}approval: {{w: {{{workflow}}}}}\n"))).join("\n");
        assert!(found.contains(message), "{workflow}: {found}");
    }
}

#[test]
fn an_escalation_leads_to_another_workflow_in_time_and_in_no_circle() {
    let found =
        |workflows: &str| told(&read(&format!("{HEAD}approval: {{ {workflows} }}\n"))).join("\n");
    let text =
        format!("{HEAD}approval: {{ a: {{ escalate: {{ after: 1m, to: b }} }}, b: {{}} }}\n");
    let policy = good(&text);
    let (second, approvers) = policy.escalation_of(&policy.workflows["a"]).unwrap();
    assert_eq!((second.after.as_secs(), second.to.as_str(), approvers.len()), (60, "b", 0));
    for (workflows, message) in [
        ("a: { escalate: { after: 1m, to: x } }", "there is no workflow `x`"),
        ("a: { escalate: { after: 1m, to: a } }", "cannot escalate to itself"),
        (
            "a: { escalate: { after: 1m, to: b } }, b: { escalate: { after: 1m, to: a } }",
            "`a` and `b` escalate in a circle",
        ),
        ("a: { timeout: 1m, escalate: { after: 1m, to: b } }, b: {}", "it never happens"),
        ("a: { escalate: { after: 1s, to: b } }, b: {}", "must be at least 5s"),
        ("a: { approvers: [x], escalate: { after: 1m, to: b } }, b: {}", "any user could decide"),
        ("a: { escalate: { to: b } }, b: {}", "`after` is missing"),
        ("a: { escalate: { after: 1m, to: b, by: c } }, b: {}", "there is no key `by`"),
    ] {
        let found = found(workflows);
        assert!(found.contains(message), "{workflows}: {found}");
    }
    // Two that lead into a circle of others end at them.
    assert_eq!(found("a: { escalate: { after: 1m, to: b } }, b: { approvers: [x] }"), "");
}

#[test]
fn workflows_and_channels_name_each_other() {
    let hook = "type: webhook, url: 'http://h/', secret_env: A";
    let found = |workflow: &str, channels: &str| {
        let text = format!("{HEAD}approval: {{w: {{{workflow}}}}}\nchannels: {{{channels}}}\n");
        told(&read(&text)).join("\n")
    };
    let text = found("channels: [other]", &format!("c: {{{hook}}}"));
    assert!(text.contains("there is no channel `other`; available: `c`"), "{text}");
    assert!(text.contains("no workflow names the channel `c`"), "{text}");
    let text = found("channels: [c], approvers: [ann]", &format!("c: {{{hook}}}"));
    assert!(text.contains("decides as `c`, who is not among the `approvers`"), "{text}");
    let text = found("channels: [c], approvers: [ann]", &format!("c: {{{hook}, approver: ann}}"));
    assert_eq!(text, "");
    let text = found("channels: ['a/b']", &format!("'a/b': {{{hook}}}"));
    assert!(text.contains("`a/b` is not a name for a channel"), "{text}");
    // A channel's receipts are in a folder of its name, which may not begin like this.
    let text = found("channels: [_ops]", &format!("_ops: {{{hook}}}"));
    assert!(text.contains("`_ops` is not a name for a channel"), "{text}");
    let desktop = "c: {type: desktop}";
    let text = found("channels: [c], approvers: [ann]", desktop);
    assert!(text.contains("decides as `c`, who is not among the `approvers`"), "{text}");
}
