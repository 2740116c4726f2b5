//! The spellings of names, and schemas written by users.

use super::*;

/// Regression: policies had to spell `ThoughtGate::`, though most examples did not.
#[test]
fn policies_may_be_written_without_a_namespace_and_with_either() {
    for space in ["", "Tapegate::", "ThoughtGate::"] {
        for kind in ["Tool", "ToolCall"] {
            let text = format!(
                "permit(principal == {space}App::\"ann\", \
                 action == {space}Action::\"tools/call\", resource == {space}{kind}::\"x\") \
                 when {{ resource.name == \"x\" && resource.server == \"files\" }};"
            );
            let cedar = fine(&text, &[]);
            assert!(call(&cedar, "x", "{}").permit, "{text}");
            assert!(!call(&cedar, "y", "{}").permit, "{text}");
        }
    }
}

#[test]
fn ways_of_writing_names_are_not_mixed() {
    let two = "permit(principal, action, resource == Tool::\"x\");\n\
               permit(principal, action, resource) when { resource is Tapegate::Tool };";
    assert_eq!(
        faults(two, &[]),
        ["2:1: names are written with no namespace in one policy and with `Tapegate::` in \
          another; use one way throughout"]
    );
    let two = "permit(principal, action, resource == Tool::\"x\");\n\
               permit(principal, action, resource == ToolCall::\"x\");";
    assert!(faults(two, &[])[0].starts_with("2:1: a tool is `Tool` in one policy"));
    assert_eq!(
        faults("permit(principal == Acme::App::\"x\", action, resource);", &[]),
        ["1:1: `Acme` is not a supported namespace; write names without a namespace, or with \
          `Tapegate::`"]
    );
}

/// An old forbid of `mcp/method` must still forbid what it forbade.
#[test]
fn in_older_files_mcp_method_stands_for_everything_but_tools() {
    let text = "permit(principal, action, resource);\n\
        forbid(principal, action == ThoughtGate::Action::\"mcp/method\", \
               resource == ThoughtGate::McpMethod::\"resources/read\") \
        when { resource.name like \"file:///etc/*\" };";
    let cedar = fine(text, &[]);
    assert!(!ask(&cedar, "resources/read", "file:///etc/passwd", None).permit);
    assert!(ask(&cedar, "resources/read", "file:///srv/x", None).permit);
    assert!(ask(&cedar, "prompts/get", "x", None).permit);
    let newer = format!(
        "{text}\npermit(principal, action == ThoughtGate::Action::\"prompts/get\", resource);"
    );
    let found = faults(&newer, &[]);
    assert!(found[0].starts_with("2:1: warning: `mcp/method` does not cover"), "{found:?}");
}

#[test]
fn actions_that_are_never_asked_by_load_with_a_warning() {
    let text = "permit(principal, action == ThoughtGate::Action::\"Forward\", resource);";
    assert_eq!(
        faults(text, &[]),
        ["1:1: warning: no request uses the action `Forward`; the policy has no effect"]
    );
}

#[test]
fn arguments_can_be_read_from_the_resource_too() {
    let schema = r#"{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}"#;
    let text = "permit(principal, action == ThoughtGate::Action::\"tools/call\", \
                resource == ThoughtGate::ToolCall::\"x\") \
                when { resource.arguments.p like \"/tmp/*\" };";
    let cedar = usable(text, &[tool("files", "x", schema)]);
    assert!(call(&cedar, "x", r#"{"p":"/tmp/a"}"#).permit);
    assert!(!call(&cedar, "x", r#"{"p":"/etc/a"}"#).permit);
    assert!(!call(&cedar, "x", r#"{"p":7}"#).permit);
}

#[test]
fn a_schema_of_the_users_own_is_taken_instead() {
    let schema = "namespace ThoughtGate {
        type Payment = { amount: decimal, note?: String };
        entity Role = { name: String };
        entity App in [Role] = { name: String, namespace: String, service_account: String };
        entity ToolCall = { name: String, server: String, arguments: Payment };
        entity McpMethod = { method: String, server: String };
        action \"tools/call\" appliesTo { principal: App, resource: ToolCall, context: {
            policy_id: String, source_id: String } };
        action \"mcp/method\" appliesTo { principal: App, resource: McpMethod, context: {} };
    }";
    let text = CedarText {
        name: "p".to_owned(),
        text: "permit(principal, action == ThoughtGate::Action::\"tools/call\", resource) \
               when { resource.arguments.amount.lessThan(decimal(\"5.0\")) };"
            .to_owned(),
    };
    let own = CedarText { name: "s".to_owned(), text: schema.to_owned() };
    let (cedar, faults) = CedarPolicies::load(std::slice::from_ref(&text), Some(&own), &[]);
    assert!(faults.is_empty(), "{faults:?}");
    let cedar = cedar.unwrap();
    assert!(call(&cedar, "pay", r#"{"amount":4}"#).permit);
    assert!(!call(&cedar, "pay", r#"{"amount":5}"#).permit);
    assert!(!call(&cedar, "pay", r#"{"amount":"4"}"#).permit);

    let broken =
        CedarText { name: "s".to_owned(), text: "namespace ThoughtGate {\n entity".to_owned() };
    let (cedar, faults) = CedarPolicies::load(&[text], Some(&broken), &[]);
    assert!(cedar.is_none());
    assert_eq!((faults[0].text, faults[0].line), (1, 2), "{faults:?}");
}
