//! The messages about invalid policies, with their positions.

use super::*;

const READ: &str = r#"{"type":"object","required":["path"],"properties":{
    "path":{"type":"string"},
    "limit":{"type":"integer"},
    "odd":{"anyOf":[{"type":"string"},{"type":"integer"}]},
    "more":{"type":"object","properties":{"deep":{"type":"string"}}}}}"#;
const WRITE: &str = r#"{"type":"object","required":["path"],"properties":{
    "path":{"type":"string"},"limit":{"type":"string"}}}"#;

fn pins() -> [ToolDefinition; 2] {
    [tool("files", "read", READ), tool("files", "write", WRITE)]
}

/// Checks the faults of `permit(SCOPE) when { CONDITION };` with known tools.
fn check(scope: &str, condition: &str, expected: &[&str]) {
    assert_eq!(faults(&format!("permit({scope}) when {{\n{condition} }};"), &pins()), expected);
}

const PINNED: &str = r#"principal, action, resource == Tool::"read""#;
const TOOLS: &str = r#"principal, action == Action::"tools/call", resource"#;

#[test]
fn text_that_is_no_cedar_is_refused_with_its_place() {
    assert_eq!(
        faults("permit(principal, action, resource);\n\npermit(principal, action, resource)", &[]),
        ["3:36: unexpected end of input"]
    );
    assert_eq!(
        faults("permit(principal, action, resource == ?resource);", &[]),
        ["1:1: templates are not supported; write a policy without slots"]
    );
}

#[test]
fn an_argument_that_may_be_missing_must_be_tested_for() {
    let output_text = "the argument `limit` may be missing; write `context.arguments has limit && …` \
                 before it is read";
    check(PINNED, "context.arguments.limit > 3", &[&format!("2:1: {output_text}")]);
    check(PINNED, "context.arguments has limit && context.arguments.limit > 3", &[]);
    let output_text = "the argument `more.deep` may be missing; write `context.arguments has more && \
                 context.arguments.more has deep && …` before it is read";
    let half = "context.arguments has more && context.arguments.more.deep == \"x\"";
    check(PINNED, half, &[&format!("2:31: {output_text}")]);
    check(PINNED, "context.arguments has more.deep && context.arguments.more.deep == \"x\"", &[]);
}

#[test]
fn an_argument_that_is_required_needs_no_test() {
    check(PINNED, "context.arguments.path like \"*.txt\"", &[]);
    check(TOOLS, "context.arguments.path like \"*.txt\"", &[]);
    let output_text = "only tools always have the argument `path`; name the action `tools/call`, or \
                 write `context.arguments has path && …` before it is read";
    let open = "principal, action, resource";
    check(open, "context.arguments.path like \"*.txt\"", &[&format!("2:1: {output_text}")]);
}

#[test]
fn a_pattern_of_a_path_that_lets_pass_is_told_with_the_test_that_was_meant() {
    let warning = |like: &str, up: &str, folder: &str| {
        format!(
            "2:30: warning: `like \"{like}\"` compares text, and a path has other spellings \
             (`{up}/../etc/passwd`, `../x`); write `context.folders.path.contains(\"{folder}\")`"
        )
    };
    for (like, up, folder) in [
        ("/tmp/*", "/tmp", "/tmp"),
        ("file:///tmp/*", "/tmp", "file:///tmp"),
        ("~/code/*", "~/code", "/home/NAME/code"),
    ] {
        let test = format!("context.arguments.path like \"{like}\"");
        check(PINNED, &test, &[&warning(like, up, folder)]);
    }
    for other in ["*.txt", "/tmp/a", "src/*", "https://a.example/*"] {
        check(PINNED, &format!("context.arguments.path like \"{other}\""), &[]);
    }
    // Tests that stop cover all spellings.
    check(PINNED, "!(context.arguments.path like \"/tmp/*\")", &[]);
    let forbid = "forbid(principal, action, resource == Tool::\"read\") when { \
                  context.arguments.path like \"/tmp/*\" };";
    assert_eq!(faults(forbid, &pins()), [""; 0]);
}

#[test]
fn an_argument_that_no_tool_has_is_an_error_even_if_it_is_only_tested_for() {
    let output_text = "no tool that the policy can apply to has `pth`; did you mean `path`?";
    check(PINNED, "context.arguments.pth like \"a*\"", &[&format!("2:19: {output_text}")]);
    check(PINNED, "context.arguments has pth", &[&format!("2:23: {output_text}")]);
    // A prompt might have it.
    let open = "principal, action, resource";
    check(open, "context.arguments has pth", &[&format!("2:23: warning: {output_text}")]);
}

#[test]
fn an_argument_without_one_type_is_an_error_that_says_why() {
    check(
        PINNED,
        "context.arguments has odd",
        &["2:23: the argument `odd` cannot be read here: its schema has anyOf with String and \
           Long; name the tool by `resource == …`, or do not read the argument"],
    );
    check(
        TOOLS,
        "context.arguments has limit && context.arguments.limit > 3",
        &["2:23: the argument `limit` cannot be read here: it is Long in `read` of `files` but \
           String in `write` of `files`; name the tool by `resource == …`, or do not read the \
           argument"],
    );
    check(
        TOOLS,
        "resource.name == \"read\" && context.arguments has limit && context.arguments.limit > 3",
        &[],
    );
}

#[test]
fn a_condition_narrows_only_what_is_read_after_it() {
    let late = "context.arguments has limit && context.arguments.limit > 3 && \
                resource.name == \"read\"";
    let found = faults(&format!("permit({TOOLS}) when {{ {late} }};"), &pins());
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("it is Long in `read`"), "{found:?}");
    for early in [
        "[\"read\"].contains(resource.name) && ",
        "(resource.name == \"read\" || \"read\" == resource.name) && ",
        "resource == Tool::\"read\" && ",
    ] {
        let condition =
            format!("{early}context.arguments has limit && context.arguments.limit > 3");
        check(TOOLS, &condition, &[]);
    }
}

#[test]
fn an_argument_of_another_type_is_an_error() {
    check(
        PINNED,
        "context.arguments.path > 3",
        &["2:1: unexpected type: expected Long but saw String"],
    );
}

#[test]
fn names_that_do_not_exist_are_errors_with_a_hint() {
    assert_eq!(
        faults(r#"permit(principal, action == Action::"tools/cal", resource);"#, &[]),
        [
            r#"1:29: unrecognized action `Action::"tools/cal"`; did you mean `Action::"tools/call"`?"#
        ]
    );
    assert_eq!(
        faults(r#"permit(principal, action, resource == Tol::"x");"#, &[]),
        ["1:39: unrecognized entity type `Tol`; did you mean `Tool`?"]
    );
    let found = faults("permit(principal, action, resource) when { resource.tool == 1 };", &[]);
    assert!(found[0].starts_with("1:44: attribute `tool` on entity type"), "{found:?}");
}

#[test]
fn what_never_holds_is_a_warning() {
    let output_text = "unable to find an applicable action given the policy scope constraints";
    assert_eq!(
        faults(
            r#"permit(principal, action == Action::"prompts/get", resource == Tool::"x");"#,
            &[]
        ),
        [format!("1:1: warning: {output_text}")]
    );
    assert_eq!(
        faults(r#"forbid(principal, action, resource == Tool::"raed");"#, &pins()),
        ["1:1: warning: no pinned tool has the name `raed`"]
    );
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_in_order() {
    let text = "permit(principal, action, resource == Tol::\"x\");\n\
                // A comment; with a semicolon.\n\
                @id(\"a;b\") permit(principal, action, resource) when { context.odd == 1 };\n\
                permit(principal, action, resource in Rol::\"y\");";
    let lines: Vec<String> =
        faults(text, &[]).iter().map(|one| one.split(": ").next().unwrap().to_owned()).collect();
    assert_eq!(lines, ["1:39", "3:55", "4:39"]);
}

#[test]
fn ids_are_unique_across_files_and_default_to_their_place() {
    let text = |name: &str, text: &str| CedarText { name: name.to_owned(), text: text.to_owned() };
    let open = "permit(principal, action, resource);";
    let one = text("a.cedar", &format!("@id(\"same\") {open}"));
    let two = text("b.cedar", &format!("\n{open}\n  @id(\"same\") {open}"));
    let (cedar, faults) = CedarPolicies::load(&[one, two], None, &[]);
    assert!(cedar.is_none());
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert_eq!((fault.text, fault.line, fault.column), (1, 3, 3));
    assert_eq!(
        fault.message,
        "`@id(\"same\")` is used by the policy at a.cedar:1; ids must be unique"
    );
    let cedar = fine(&format!("{open}{open}\n{open}"), &[]);
    assert_eq!(call(&cedar, "x", "{}").policies, ["p.cedar:1", "p.cedar:1:37", "p.cedar:2"]);
}

#[test]
fn an_approval_belongs_to_a_permit_and_names_a_workflow() {
    let forbid = "@approval(\"ops\") forbid(principal, action, resource);";
    assert!(faults(forbid, &[])[0].contains("`@approval` on a forbid does nothing"));
    let forbid = "@thoughtgate_approval(\"ops\") forbid(principal, action, resource);";
    assert!(faults(forbid, &[])[0].contains("`@approval` on a forbid does nothing"));
    let empty = "@approval permit(principal, action, resource);";
    assert!(faults(empty, &[])[0].contains("names no workflow"));
    let both = "@approval(\"a\") @thoughtgate_approval(\"b\") permit(principal, action, resource);";
    assert!(faults(both, &[])[0].contains("keep one"));
}
