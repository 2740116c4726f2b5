//! `context.folders`: the folders an argument is in, for tests that let pass and tests that stop.

use super::*;

const PERMIT: &str = "permit(principal, action, resource) when { \
                      context.folders.path.contains(\"/data\") };";
const FORBID: &str = "permit(principal, action, resource);\n\
                      @id(\"no-etc\") forbid(principal, action, resource) when { \
                      context.folders.path.contains(\"/etc\") };";
const UNLESS: &str = "permit(principal, action, resource);\n\
                      forbid(principal, action, resource) unless { \
                      context.folders.path.containsAny([\"/data\", \"/srv/x\"]) };";
const READ: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"},
    "paths":{"type":"array","items":{"type":"string"}},
    "o":{"type":"object","properties":{"dir":{"type":"string"}}}}}"#;

fn pins() -> Vec<ToolDefinition> {
    vec![tool("files", "read", READ)]
}

fn permits(text: &str, arguments: &str) -> bool {
    let both = [vec![], pins()].map(|tools| call(&fine(text, &tools), "read", arguments).permit);
    assert_eq!(both[0], both[1], "{text} {arguments}");
    both[0]
}

fn path(path: &str) -> String {
    serde_json::json!({ "path": path }).to_string()
}

const INSIDE: [&str; 4] = ["/data", "/data/", "/data/a/b.txt", "/data/a/../b"];
const OUTSIDE: [&str; 16] = [
    // If `/x` is a symbolic link, this is elsewhere.
    "/x/../data/a",
    "file:///data/a",
    "",
    "/",
    "/database",
    "/data/../etc/passwd",
    "/data/..",
    "/data/%2e%2e/etc",
    "/data/..%2fetc",
    "/data\\..\\..\\etc",
    "/data/．．/etc",
    "data/a",
    "~/data",
    "/Data/a",
    "file://host/data/a",
    "file:///data/%2e%2e/etc",
];

#[test]
fn a_permit_takes_a_path_that_lies_in_the_folder_whoever_reads_it() {
    for inside in INSIDE {
        assert!(permits(PERMIT, &path(inside)), "{inside}");
        assert!(permits(UNLESS, &path(inside)), "{inside}");
    }
    for outside in OUTSIDE {
        assert!(!permits(PERMIT, &path(outside)), "{outside}");
        assert!(!permits(UNLESS, &path(outside)), "{outside}");
    }
    for odd in [
        "{}",
        r#"{"path":null}"#,
        r#"{"path":["/data/a"]}"#,
        r#"{"path":7}"#,
        r#"{"path":"/data/a","PATH":"/etc"}"#,
        r#"{"path":"/data/a","pa_th":"/etc"}"#,
        r#"{"path":"/data/a","path":"/data/b"}"#,
    ] {
        let cedar = fine(PERMIT, &pins());
        assert!(!call(&cedar, "read", odd).permit, "{odd}");
    }
}

/// A server that expects paths reads a URI as a relative one, so the folder's form decides.
#[test]
fn a_folder_that_is_written_as_a_uri_takes_such_uris() {
    let uri = PERMIT.replace("\"/data\"", "\"file:///data\"");
    assert!(permits(&uri, &path("file:///data/a%20b")) && permits(&uri, &path("file:///data")));
    for outside in
        ["/data/a", "file:///data/../etc", "file:///data/%2e%2e/etc", "file://host/data/a"]
    {
        assert!(!permits(&uri, &path(outside)), "{outside}");
    }
}

#[test]
fn a_forbid_stops_a_path_that_lies_in_the_folder_for_some_reader() {
    for inside in [
        "/etc",
        "/etc/passwd",
        "/ETC/passwd",
        "/tmp/../etc/passwd",
        "/%65tc/passwd",
        " /etc/passwd",
        "\\etc\\passwd",
        "/ｅｔｃ/passwd",
        "file:///etc/passwd",
        "FILE://localhost/%65tc/passwd",
        "../../etc/passwd",
        "etc/passwd",
        "[\"/etc/passwd\"]",
    ] {
        assert!(!permits(FORBID, &path(inside)), "{inside}");
    }
    for outside in ["/data/a", "/data/etc/passwd", "/etcetera", "https://etc/passwd"] {
        assert!(permits(FORBID, &path(outside)), "{outside}");
    }
    for odd in [r#"{"path":["/etc/x"]}"#, r#"{"Path":"/etc/x"}"#, r#"{"path":{"a":"/etc/x"}}"#] {
        assert!(!call(&fine(FORBID, &pins()), "read", odd).permit, "{odd}");
    }
    assert!(permits(FORBID, "{}"));
    let answer = call(&fine(FORBID, &[]), "read", &path("/etc/x"));
    assert_eq!(answer.policies, ["no-etc"]);
}

#[test]
fn of_a_list_all_must_lie_in_the_folder_to_pass_and_one_to_be_stopped() {
    let permit = PERMIT.replace("path", "paths");
    let forbid = FORBID.replace("path", "paths");
    for (paths, passes, stopped) in [
        (r#"["/data/a","/data/b"]"#, true, false),
        (r#"["/data/a","/etc/b"]"#, false, true),
        (r#"["/data/a","/x/../etc/b"]"#, false, true),
        (r#"["/data/a","/srv"]"#, false, false),
        ("[]", false, false),
    ] {
        let arguments = format!(r#"{{"paths":{paths}}}"#);
        assert_eq!(permits(&permit, &arguments), passes, "{paths}");
        assert_eq!(permits(&forbid, &arguments), !stopped, "{paths}");
    }
    for odd in
        [r#"{"paths":["/data/a",7]}"#, r#"{"paths":[["/data/a"]]}"#, r#"{"paths":{"a":"/data"}}"#]
    {
        assert!(!permits(&permit, odd) && !permits(&forbid, odd), "{odd}");
    }
}

#[test]
fn folders_of_arguments_in_arguments_are_known_too() {
    let nested = |text: &str| text.replace("folders.path", "folders.o.dir");
    let arguments = |dir: &str| format!(r#"{{"o":{{"dir":"{dir}"}}}}"#);
    assert!(permits(&nested(PERMIT), &arguments("/data/a")));
    assert!(!permits(&nested(PERMIT), &arguments("/data/../a")));
    assert!(!permits(&nested(FORBID), &arguments("/data/../etc")));
    assert!(permits(&nested(FORBID), "{}"));
}

/// A condition of `if` lets one branch pass and stops the other.
#[test]
fn in_a_condition_of_if_both_branches_are_safe() {
    let text = "permit(principal, action, resource);\n\
                forbid(principal, action, resource) when { \
                if context.folders.path.contains(\"/data\") then false else true };";
    assert!(permits(text, &path("/data/a")));
    for outside in ["data/a", "/Data/a", "/data/../etc"] {
        assert!(!permits(text, &path(outside)), "{outside}");
    }
}

#[test]
fn folders_can_only_be_asked_for_folders_that_are_written_down() {
    let found = |condition: &str| {
        let text = format!("permit(principal, action, resource) when {{\n{condition} }};");
        faults(&text, &pins()).join("\n")
    };
    for condition in [
        "context.folders.path == [\"/data\"]",
        "context.folders.path.isEmpty()",
        "context.folders.path.containsAll([\"/data\"])",
        "context.folders.path.contains(resource.name)",
        "context.folders.path.contains(\"/data\") == false",
        "context has folders",
    ] {
        let found = found(condition);
        assert!(found.contains("only folder tests may use"), "{condition}: {found}");
    }
    assert!(
        found("context.folders.path.contains(\"data\")")
            .starts_with("2:9: `data` is not an absolute")
    );
    assert!(found("context.folders.path.contains(\"/data/*\")").contains("is a glob"));
    assert!(found("context.folders.n.contains(\"/data\")").contains("`n` is Long, not a path"));
    let tools = "permit(principal, action == Action::\"tools/call\", resource) when { \
                 context.folders.pth.contains(\"/data\") };";
    let found = faults(tools, &pins()).join("\n");
    assert!(found.contains("has `pth`; did you mean `path`?"), "{found}");
}
