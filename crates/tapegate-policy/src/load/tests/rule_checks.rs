//! Rules that do nothing, or less than they seem to.

use super::*;

fn rule(text: &str) -> String {
    format!("schema: 1\ngovernance:\n  defaults: {{action: deny}}\n  rules:\n  - {text}\n")
}

/// What is found in a policy with this rule, without its place.
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
        [format!("{error} `method: logging/setLevel`: {only}; leave it out, or the rule")]
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
    let warned = |text: &str| words(text).iter().any(|one| one.contains("pass unseen"));
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
        assert!(found[0].contains("goes with `action: forward`"), "{found:?}");
    }
    assert!(words("{match: x, action: forward, other_arguments: ['a[']}")[0].contains("no path"));
    assert!(words("{match: x, action: forward, other_arguments: some}")[0].contains("error"));
}

#[test]
fn a_folder_in_which_everything_lies_is_told() {
    let text = rule("{match: x, action: forward, arguments: {path: {under: '${ROOT:-}/'}}}");
    let found = told(&read(&text));
    assert!(found.len() == 1 && found[0].contains("every absolute path lies"), "{found:?}");
    let not = "{match: x, action: deny, arguments: {path: {not: {under: /}}}}";
    assert_eq!(words(not), [""; 0]);
    assert_eq!(words("{match: x, action: deny, arguments: {path: {under: /etc}}}"), [""; 0]);
}
