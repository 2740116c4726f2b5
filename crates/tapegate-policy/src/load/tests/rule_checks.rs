//! Rules that do nothing or less than they seem to, and what a default may name.

use super::*;
use crate::model::RuleAction;

fn rule(text: &str) -> String {
    format!("schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n  - {text}\n")
}

/// The findings for a policy with this rule, without positions.
fn words(text: &str) -> Vec<String> {
    let found = told(&read(&rule(text))).into_iter();
    found.map(|line| line.split_once(' ').unwrap_or_default().1.to_owned()).collect()
}

#[test]
fn a_rule_about_arguments_that_are_never_there_is_refused() {
    let error = "error: governance.rules[0].arguments: this rule matches nothing by";
    let only = "only `tools/call`, `prompts/get`, `completion/complete` has `arguments`";
    assert_eq!(
        words("{method: resources/read, action: deny, arguments: {uri: {under: /etc}}}"),
        [format!(
            "{error} `method: resources/read`: {only}; write the URI as `match`, such as `match: \"file:///etc/*\"`"
        )]
    );
    assert_eq!(
        words("{method: Logging/setLevel, action: deny, arguments: {level: debug}}"),
        [format!("{error} `method: logging/setLevel`: {only}; remove it, or the rule")]
    );
    for bad in [
        "{method: 'resources/*', action: deny, arguments: {uri: x}}",
        "{method: [tools/call, ping], action: deny, arguments: {a: x}}",
        "{method: sampling/createMessage, action: deny, arguments: {a: x}}",
        "{method: resources/read, action: forward, other_arguments: none}",
        "{method: completion/complete, action: forward, arguments: {a: x}}",
        "{match: 'file:///etc/*', action: deny, arguments: {a: x}}",
        "{method: prompts/get, action: deny, annotations: {readOnlyHint: true}}",
    ] {
        let found = words(bad);
        assert!(found.iter().any(|one| one.contains("matches nothing")), "{bad}: {found:?}");
    }
    for good in [
        "{method: tools/call, action: deny, arguments: {a: x}}",
        "{method: 'TOOLS/*', action: deny, arguments: {a: x}}",
        "{method: '*', action: deny, arguments: {a: x}}",
        "{method: [prompts/get, admin/run], action: deny, arguments: {a: x}}",
        "{method: completion/complete, action: approve, arguments: {a: x}}",
        "{method: resources/read, match: 'file:///etc/*', action: deny}",
    ] {
        assert_eq!(words(good), [""; 0], "{good}");
    }
}

#[test]
fn a_method_that_the_protocol_nearly_has_is_told() {
    let warning = "warning: governance.rules[0].method: the protocol has no method";
    assert_eq!(
        words("{method: tools/cal, action: deny}"),
        [format!("{warning} `tools/cal`; did you mean `tools/call`?")]
    );
    for good in ["tools/call", "Tools/Call", "logging/setLevel", "admin/run", "'tool/*'"] {
        assert_eq!(words(&format!("{{method: {good}, action: deny}}")), [""; 0], "{good}");
    }
}

#[test]
fn a_rule_that_forwards_several_tools_names_all_arguments() {
    let warned = |text: &str| words(text).iter().any(|one| one.contains("are not checked"));
    for bad in [
        "{match: 'read_*', action: forward, arguments: {path: {under: /tmp}}}",
        "{match: [a, 'b*'], action: forward, arguments: {path: x}}",
        "{action: forward, arguments: {..path: x}}",
    ] {
        assert!(warned(bad), "{bad}");
    }
    for good in [
        "{match: read_file, action: forward, arguments: {path: {under: /tmp}}}",
        "{match: 'read_*', action: forward, arguments: {path: x}, other_arguments: none}",
        "{match: 'read_*', action: forward, arguments: {path: x}, other_arguments: [head]}",
        "{match: 'read_*', action: forward, arguments: {'*': {under: /tmp}}}",
        "{match: 'read_*', action: deny, arguments: {path: x}}",
        "{match: 'read_*', action: forward}",
    ] {
        assert_eq!(words(good), [""; 0], "{good}");
    }
}

#[test]
fn other_arguments_go_with_rules_that_forward() {
    for action in ["deny", "approve"] {
        let found = words(&format!("{{match: x, action: {action}, other_arguments: none}}"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("works only with `action: forward`"), "{found:?}");
    }
    assert!(
        words("{match: x, action: forward, other_arguments: ['a[']}")[0]
            .contains("not a valid path")
    );
    assert!(words("{match: x, action: forward, other_arguments: some}")[0].contains("error"));
}

#[test]
fn a_folder_in_which_everything_lies_is_told() {
    let text = rule("{match: x, action: forward, arguments: {path: {under: '${ROOT:-}/'}}}");
    let found = told(&read(&text));
    assert!(found.len() == 1 && found[0].contains("contains every absolute path"), "{found:?}");
    let not = "{match: x, action: deny, arguments: {path: {not: {under: /}}}}";
    assert_eq!(words(not), [""; 0]);
    assert_eq!(words("{match: x, action: deny, arguments: {path: {under: /etc}}}"), [""; 0]);
}

#[test]
fn a_rule_below_one_that_takes_all_its_calls_is_told() {
    for (first, second) in [
        ("{match: push, action: forward}", "{match: push, action: deny, arguments: {force: true}}"),
        ("{match: 'git_*', action: forward}", "{match: git_push, action: deny}"),
        ("{action: forward}", "{match: push, action: deny}"),
        ("{action: forward}", "{match: push, method: tools/call, action: deny}"),
    ] {
        let found = words(&format!("{first}\n  - {second}"));
        let is_told = found.iter().any(|one| one.contains("this rule is never reached"));
        assert!(is_told, "{first} {second}: {found:?}");
    }
    for (first, second) in [
        ("{match: push, action: forward, arguments: {a: x}}", "{match: push, action: deny}"),
        ("{action: forward}", "{match: push, method: [tools/call, admin/run], action: deny}"),
        ("{match: git_push, action: forward}", "{match: 'git_*', action: deny}"),
    ] {
        let found = words(&format!("{first}\n  - {second}"));
        assert!(!found.iter().any(|one| one.contains("never reached")), "{second}: {found:?}");
    }
}

#[test]
fn an_expression_that_lets_more_through_is_told_where_it_forwards() {
    let found = words("{match: read, action: forward, arguments: {path: {regex: '^/srv/data/'}}}");
    assert_eq!(
        found,
        ["warning: governance.rules[0].arguments: `path`: `^/srv/data/` compares text, and also \
          matches `/srv/data/../../x`, which only the gate's own test for `..` keeps out; write `{ under: /srv/data }`"]
    );
    assert_eq!(
        words("{match: read, action: deny, arguments: {path: {regex: '^/srv/data/'}}}"),
        [""; 0]
    );
}

/// The findings for a policy beside a lock with two tools.
fn with_lock(policy: &str) -> Vec<String> {
    let page = br#"{"tools":[{"name":"push","inputSchema":{"properties":{"force":{"type":"boolean"},"paths":{"type":"array"}}}},{"name":"read_file"}]}"#;
    let mut lock = crate::pins::PinLock::default();
    lock.learn("git", &[page]);
    let files = MemoryFiles::default()
        .with_file("tapegate.yaml", policy)
        .with_file("tapegate.lock", lock.write());
    told(&load("tapegate.yaml", &files))
}

#[test]
fn names_that_no_pinned_server_has_are_told_if_they_are_nearly_those_of_one() {
    for (text, expected) in [
        ("{match: puhs, action: deny}", "no pinned server has `puhs`; did you mean `push`?"),
        (
            "{match: push, action: deny, arguments: {forse: true}}",
            "no tool that this rule applies to has an argument `forse`; did you mean `force`?",
        ),
        (
            "{match: push, action: deny, arguments: {paths: {under: /etc}}}",
            "`paths` is a list in the pinned definition; write `paths[*]` for each of its values",
        ),
        (
            "{match: push, action: forward, arguments: {paths: {under: /srv}}}",
            "`paths` is a list in the pinned definition",
        ),
    ] {
        let found = with_lock(&rule(text));
        assert!(found.iter().any(|one| one.contains(expected)), "{text}: {found:?}");
    }
    for text in [
        "{match: push, action: deny, arguments: {Force: true}}",
        "{match: push, action: deny, arguments: {'paths[*]': {under: /etc}}}",
        "{match: unrelated_tool, action: deny}",
        "{match: 'pu*', action: deny, arguments: {other: true}}",
    ] {
        assert_eq!(with_lock(&rule(text)), [""; 0], "{text}");
    }
    let source = "schema: 1\nsources: [{id: git, expose: {mode: blocklist, tools: [raed_file]}}]\n\
                  governance: {defaults: {action: deny}}\n";
    let found = with_lock(source);
    assert!(found.iter().any(|one| one.contains("did you mean `read_file`?")), "{found:?}");
}

#[test]
fn what_was_meant_to_be_something_else_is_told() {
    for (rule, hint) in [
        ("{action: deny, arguments: {arguments.force: true}}", "write `force`"),
        ("{action: deny, arguments: {/force: true}}", "write `force`"),
        ("{match: tools/call, action: deny}", "write `method: tools/call`"),
        ("{match: 'a|b', action: deny}", "write a list: `match: [a, b]`"),
        ("{action: deny, arguments: {force: yes}}", "write `true`"),
        ("{action: deny, arguments: {force: {equals: off}}}", "write `false`"),
        ("{action: deny, arguments: {n: {exists: false, equals: 5}}}", "excludes other tests"),
        ("{match: f, action: forward, arguments: {url: 'https://*.a.example/*'}}", "evil.test"),
        ("{match: 'https://a.example*', action: forward}", "evil.test"),
        ("{action: deny, arguments: {..path: {under: /etc}}}", "name the argument"),
        ("{action: deny, arguments: {'*': '/etc/*'}}", "name the arguments that are paths"),
    ] {
        let found = words(rule);
        assert!(found.iter().any(|one| one.contains(hint)), "{rule}: {found:?}");
    }
    for rule in [
        "{action: deny, arguments: {url: 'https://*.a.example/*', force: true}}",
        "{match: f, action: forward, arguments: {url: 'https://a.example/*'}}",
        "{action: deny, arguments: {path: {under: /etc}}}",
        "{action: deny, arguments: {n: {exists: false}}}",
    ] {
        assert_eq!(words(rule), [""; 0], "{rule}");
    }
}

#[test]
fn a_default_may_name_its_workflow_and_policy() {
    let policy = good(
        "schema: 1\ngovernance: {defaults: {action: approve, approval: b}}\napproval: {a: {}, b: {}}\n",
    );
    assert_eq!(policy.default, RuleAction::Approve { workflow: Some("b".to_owned()) });
}
