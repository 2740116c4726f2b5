//! Decisions on calls, by the kind of thing that can go wrong.

use super::*;

const OPEN: &str = "permit(principal, action, resource);\n";

#[test]
fn nothing_is_permitted_unless_a_policy_permits_it() {
    let answer = call(&fine("", &[]), "read", "{}");
    assert!(!answer.permit);
    assert_eq!(answer.reason, "no policy permits it");
    let other = fine(r#"permit(principal, action, resource == Tool::"write");"#, &[]);
    assert!(!call(&other, "read", "{}").permit);
    assert!(call(&other, "write", "{}").permit);
}

#[test]
fn a_forbid_wins_over_every_permit() {
    let text = format!("{OPEN}@id(\"no-rm\") forbid(principal, action, resource == Tool::\"rm\");");
    let cedar = fine(&text, &[]);
    let answer = call(&cedar, "rm", "{}");
    assert!(!answer.permit);
    assert_eq!(answer.policies, ["no-rm"]);
    assert_eq!(answer.reason, "forbidden by `no-rm`");
    assert!(call(&cedar, "ls", "{}").permit);
}

/// Regression: a forbid that could not be evaluated was ignored, and the call went through.
#[test]
fn a_forbid_that_fails_counts_as_a_refusal_and_is_reported() {
    let text = format!(
        "{OPEN}@id(\"sums\") forbid(principal, action, resource) when {{ \
         context.arguments has n && context.arguments.n + 9223372036854775807 > 3 }};"
    );
    let cedar = fine(&text, &[]);
    assert!(!call(&cedar, "x", r#"{"n":0}"#).permit);
    let answer = call(&cedar, "x", r#"{"n":1}"#);
    assert!(!answer.permit);
    assert_eq!(answer.policies, ["sums"]);
    assert_eq!(answer.errors.len(), 1);
    assert!(answer.reason.contains("could not be evaluated, which counts as a refusal"));
    assert!(call(&cedar, "x", "{}").permit);
}

#[test]
fn a_permit_that_fails_does_not_hold_and_is_reported() {
    let text = "permit(principal, action, resource) when { \
                context.arguments has n && context.arguments.n + 9223372036854775807 > 3 };";
    let answer = call(&fine(text, &[]), "x", r#"{"n":1}"#);
    assert!(!answer.permit);
    assert_eq!(answer.reason, "no policy permits it");
    assert_eq!(answer.errors.len(), 1);
}

/// A comparison of different types is false, not an error, so an array in place of text would get
/// past a forbid, or through a permit, if it were passed to Cedar.
#[test]
fn a_value_of_another_type_opens_neither_a_forbid_nor_a_permit() {
    let forbid = format!(
        "{OPEN}@id(\"f\") forbid(principal, action, resource) when {{ \
         context.arguments has mode && context.arguments.mode == \"all\" }};"
    );
    let permit = "@id(\"p\") permit(principal, action, resource) when { \
                  context.arguments has mode && context.arguments.mode != \"all\" };";
    let mode = r#"{"type":"object","properties":{"mode":{"type":"string"}}}"#;
    for tools in [vec![], vec![tool("files", "x", mode)]] {
        for (text, policy) in [(forbid.as_str(), "f"), (permit, "p")] {
            let cedar = fine(text, &tools);
            assert!(call(&cedar, "x", r#"{"mode":"one"}"#).permit);
            for odd in [
                r#"{"mode":["all"]}"#,
                r#"{"mode":7}"#,
                r#"{"mode":"one","mode":"all"}"#,
                r#"{"mode":null,"mode":"all"}"#,
                r#"{"mode":"one","MODE":"all"}"#,
                r#"{"Mode":"all"}"#,
                r#"{"mode":"\ud800all"}"#,
                r#"["all"]"#,
                r#"{"mode":"#,
            ] {
                let answer = call(&cedar, "x", odd);
                assert!(!answer.permit, "{odd}");
                assert_eq!(answer.errors.len(), 1, "{odd}: {answer:?}");
                let words = format!("policy `{policy}` was not evaluated");
                assert!(answer.errors[0].starts_with(&words));
            }
        }
    }
}

#[test]
fn a_value_that_is_not_as_it_should_be_concerns_only_who_reads_it() {
    let text = format!(
        "{OPEN}forbid(principal, action, resource == Tool::\"x\") when {{ \
         context.arguments has mode && context.arguments.mode == \"all\" }};"
    );
    let cedar = fine(&text, &[]);
    assert!(!call(&cedar, "x", r#"{"mode":1}"#).permit);
    assert!(call(&cedar, "y", r#"{"mode":1}"#).permit);
    assert!(call(&cedar, "x", r#"{"other":1,"other":2}"#).permit);
}

#[test]
fn one_permit_that_asks_for_approval_is_enough_and_the_first_by_id_names_the_workflow() {
    let text = format!(
        "{OPEN}@id(\"b\") @approval(\"second\") {OPEN}\
         @id(\"a\") @thoughtgate_approval(\"first\") permit(principal, action, resource is Tool);"
    );
    let cedar = fine(&text, &[]);
    assert_eq!(cedar.workflows(), ["first", "second"]);
    assert_eq!(call(&cedar, "x", "{}").approval.as_deref(), Some("first"));
    assert_eq!(ask(&cedar, "prompts/get", "x", None).approval.as_deref(), Some("second"));
    let plain = fine(OPEN, &[]);
    assert_eq!(call(&plain, "x", "{}").approval, None);
}

/// Regression: policies saw only the method, never which resource or prompt.
#[test]
fn resources_and_prompts_are_seen_by_uri_and_name() {
    let cedar = fine(
        r#"permit(principal, action == Action::"resources/read", resource is Resource)
             when { resource.uri like "file:///srv/*" };
           permit(principal, action == Action::"resources/subscribe", resource is Resource);
           permit(principal, action == Action::"prompts/get", resource == Prompt::"review");
           permit(principal, action == Action::"completion/complete", resource is Prompt);
           permit(principal, action == Action::"mcp/method",
                  resource == McpMethod::"sampling/createMessage");"#,
        &[],
    );
    let permits = |method: &str, name: &str| ask(&cedar, method, name, None).permit;
    assert!(permits("resources/read", "file:///srv/a"));
    assert!(!permits("resources/read", "file:///etc/passwd"));
    assert!(permits("resources/subscribe", "file:///etc/passwd"));
    assert!(permits("subscriptions/listen", "file:///etc/passwd"));
    assert!(permits("prompts/get", "review"));
    assert!(!permits("prompts/get", "other"));
    assert!(permits("completion/complete", "review"));
    assert!(!permits("completion/complete", "file:///a/{b}"));
    assert!(permits("sampling/createMessage", ""));
    assert!(!permits("elicitation/create", ""));
    assert!(!permits("tools/call", "review"));
}

#[test]
fn who_calls_where_when_and_by_which_rule_is_seen() {
    let holds = |condition: &str| {
        let text = format!("permit(principal, action, resource) when {{ {condition} }};");
        call(&fine(&text, &[]), "x", "{}").permit
    };
    for condition in [
        "principal == App::\"ann\" && principal in Role::\"dev\"",
        "principal.name == \"ann\" && principal.namespace == \"local\"",
        "principal.service_account == \"local\"",
        "principal has client && principal.client == \"claude\"",
        "resource.server == \"files\" && resource in Server::\"files\"",
        "resource.name == \"x\" && resource.method == \"tools/call\"",
        "context.policy_id == \"main\" && context.source_id == \"files\"",
        "context.time.hour == 22 && context.time.day_of_week == 2",
        "context.time.timestamp == 1700000000",
        "context has arguments",
    ] {
        assert!(holds(condition), "{condition}");
    }
    assert!(!holds("principal in Role::\"admin\""));
    assert!(!holds("resource.server == \"other\""));
}

#[test]
fn scenes_that_are_kept_are_not_taken_for_others() {
    let cedar = fine("permit(principal in Role::\"dev\", action, resource in Server::\"a\");", &[]);
    let roles = ["dev".to_owned()];
    let permits = |roles: &[String], server: &str| {
        let caller = CedarPrincipal { name: "ann", roles, ..CedarPrincipal::default() };
        let question =
            CedarQuery { caller, server, method: "tools/call", name: "x", ..CedarQuery::default() };
        cedar.authorize(&question).permit
    };
    for _ in 0..2 {
        assert!(permits(&roles, "a"));
        assert!(!permits(&[], "a"));
        assert!(!permits(&roles, "b"));
    }
}

#[test]
fn arguments_are_typed_by_the_tools_schema() {
    let schema = r##"{"type":"object","required":["n","amount","tags","ok","where"],"properties":{
        "n":{"type":"integer"},"amount":{"type":"number"},"ok":{"type":"boolean"},
        "tags":{"type":"array","items":{"enum":["a","b"]}},
        "where":{"$ref":"#/$defs/place"},"maybe":{"type":["string","null"]}},
        "$defs":{"place":{"type":"object","required":["city"],
            "properties":{"city":{"type":"string","format":"hostname"}}}}}"##;
    let text = "permit(principal, action, resource == Tool::\"pay\") when { \
        context.arguments.n > 3 && context.arguments.amount.lessThan(decimal(\"10.5\")) && \
        context.arguments.tags.contains(\"a\") && context.arguments.ok && \
        context.arguments.where.city == \"Rome\" && \
        (if context.arguments has maybe then context.arguments.maybe == \"yes\" else true) };";
    let cedar = fine(text, &[tool("files", "pay", schema)]);
    let permits = |change: &str, to: &str| {
        let call_with = r#"{"n":4,"amount":10,"tags":["b","a"],"ok":true,"where":{"city":"Rome"},"maybe":null}"#;
        call(&cedar, "pay", &call_with.replace(change, to)).permit
    };
    assert!(permits("", ""));
    assert!(permits("\"amount\":10", "\"amount\":10.4999"));
    assert!(permits("\"amount\":10", "\"amount\":1.04e1"));
    assert!(permits("\"n\":4", "\"n\":4.0"));
    assert!(permits("null", "\"yes\""));
    assert!(!permits("\"amount\":10", "\"amount\":10.5"));
    assert!(!permits("\"amount\":10", "\"amount\":10.49999"), "five decimal places are too many");
    assert!(!permits("\"n\":4", "\"n\":4.5"));
    assert!(!permits("\"n\":4", "\"n\":99999999999999999999"));
    assert!(!permits("[\"b\",\"a\"]", "\"a\""));
    assert!(!permits("[\"b\",\"a\"]", "[\"a\",1]"));
    assert!(!permits("true", "\"true\""));
    assert!(!permits("null", "\"no\""));
}

/// Regression: a policy that named an argument did not load at all.
#[test]
fn policies_about_arguments_work_without_any_tool_known() {
    let text = "permit(principal, action, resource) when { \
        context.arguments has a && context.arguments.a.lessThan(decimal(\"2.0\")) && \
        context.arguments has b && [1, 2].contains(context.arguments.b) && \
        context.arguments has c.d && context.arguments.c.d && \
        context.arguments has e && context.arguments.e.containsAny([\"x\"]) };";
    let cedar = fine(text, &[]);
    assert!(call(&cedar, "x", r#"{"a":1,"b":2,"c":{"d":true},"e":["x","y"]}"#).permit);
    assert!(!call(&cedar, "x", r#"{"a":1,"b":3,"c":{"d":true},"e":["x","y"]}"#).permit);
    assert!(!call(&cedar, "x", r#"{"a":1,"b":2,"c":{"d":true}}"#).permit);
}

#[test]
fn policies_that_take_one_argument_for_different_things_do_not_load() {
    let one = |tool: &str, test: &str| {
        format!(
            "permit(principal, action, resource{tool}) when {{ context.arguments has a && {test} }};\n"
        )
    };
    let number = "context.arguments.a > 1";
    let text = "context.arguments.a like \"x*\"";
    let found = faults(&(one("", number) + &one("", text)), &[]);
    assert!(found[0].contains("`a` is used as Long and as String"), "{found:?}");
    let found = faults(&one("", &format!("({number} || {text})")), &[]);
    assert!(found[0].contains("`a` is used as Long and as String"), "{found:?}");
    let apart = one(" == Tool::\"m\"", number) + &one(" == Tool::\"n\"", text);
    let cedar = fine(&apart, &[]);
    assert!(call(&cedar, "m", r#"{"a":2}"#).permit);
    assert!(call(&cedar, "n", r#"{"a":"x1"}"#).permit);
    assert!(!call(&cedar, "n", r#"{"a":2}"#).permit);
    let elsewhere = one(" in Server::\"files\"", number) + &one(" in Server::\"other\"", text);
    let cedar = fine(&elsewhere, &[]);
    assert!(call(&cedar, "m", r#"{"a":2}"#).permit);
    assert!(!call(&cedar, "m", r#"{"a":"x1"}"#).permit);
}

#[test]
fn a_tool_that_does_not_say_what_it_takes_is_governed_by_what_policies_read() {
    let tools = [tool("files", "any", r#"{"type":"object"}"#), tool("files", "z", "{}")];
    let text = "forbid(principal, action, resource == Tool::\"any\") when { \
                context.arguments has p && context.arguments.p like \"/etc*\" };";
    let cedar = fine(&format!("{OPEN}{text}"), &tools);
    assert!(!call(&cedar, "any", r#"{"p":"/etc/x"}"#).permit);
    assert!(call(&cedar, "any", r#"{"p":"/tmp/x"}"#).permit);
}

#[test]
fn arguments_as_a_whole_can_be_compared() {
    let text = "permit(principal, action, resource) when { context.arguments == {\"a\": 1} };";
    let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
    let text = text.replace("resource)", "resource == Tool::\"x\")");
    let cedar = fine(&text, &[tool("files", "x", schema)]);
    assert!(call(&cedar, "x", r#"{"a":1}"#).permit);
    assert!(!call(&cedar, "x", r#"{"a":1,"b":2}"#).permit);
}
