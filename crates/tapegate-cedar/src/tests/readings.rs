//! Values that servers may read differently: one reading is enough to stop, all must pass.

use super::*;

const OPEN: &str = "permit(principal, action, resource);\n";
const SCHEMA: &str = r#"{"type":"object","properties":{"mode":{"type":"string"},"path":{"type":"string"},
    "force":{"type":"boolean"},"n":{"type":"integer"},"amount":{"type":"number"},
    "file_name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}},
    "o":{"type":"object","properties":{"mode":{"type":"string"}}}}}"#;

/// A forbid with this condition on an argument.
fn forbid(name: &str, test: &str) -> String {
    let test = test.replace('$', &format!("context.arguments.{name}"));
    format!(
        "{OPEN}@id(\"f\") forbid(principal, action, resource) when {{ \
         context.arguments has {name} && {test} }};"
    )
}

/// Checks which arguments a policy stops, whether or not the tool's definition is known.
fn check(text: &str, stopped: &[&str], passed: &[&str]) {
    for tools in [vec![], vec![tool("files", "x", SCHEMA)]] {
        let cedar = usable(text, &tools);
        for arguments in stopped {
            assert!(!call(&cedar, "x", arguments).permit, "{text}\nlets pass {arguments}");
        }
        for arguments in passed {
            let answer = call(&cedar, "x", arguments);
            assert!(answer.permit, "{text}\nstops {arguments}: {}", answer.reason);
        }
    }
}

#[test]
fn a_forbid_stops_true_and_false_however_they_are_given() {
    let stopped = [
        r#"{"force":true}"#,
        r#"{"force":"true"}"#,
        r#"{"force":1}"#,
        r#"{"force":"yes"}"#,
        r#"{"force":[true]}"#,
        r#"{"Force":true}"#,
        r#"{"_force":true}"#,
        r#"{"force":false,"for-ce":true}"#,
    ];
    check(&forbid("force", "$"), &stopped, &[r#"{"force":false}"#, "{}", r#"{"force":null}"#]);
    check(&forbid("force", "$ == true"), &stopped, &[r#"{"force":false}"#]);
    let stopped = [r#"{"force":false}"#, r#"{"force":"off"}"#, r#"{"force":null}"#];
    check(&forbid("force", "$ == false"), &stopped, &[r#"{"force":true}"#, "{}"]);
    check(&forbid("force", "!$"), &stopped, &[r#"{"force":true}"#, "{}"]);
}

#[test]
fn a_forbid_stops_numbers_however_they_are_given() {
    let stopped = [
        r#"{"n":5000}"#,
        r#"{"n":"5000"}"#,
        r#"{"n":5e3}"#,
        r#"{"n":[5000]}"#,
        r#"{"n":5000.5}"#,
        r#"{"n":1e400}"#,
        r#"{"n":99999999999999999999}"#,
        r#"{"n":-4294962296}"#,
    ];
    check(&forbid("n", "$ >= 1000"), &stopped, &[r#"{"n":999}"#, r#"{"n":-5}"#, r#"{"n":null}"#]);
    let stopped = [r#"{"n":1}"#, r#"{"n":4294967297}"#, r#"{"n":true}"#, r#"{"n":"1"}"#];
    check(&forbid("n", "$ == 1"), &stopped, &[r#"{"n":2}"#, r#"{"n":0}"#]);
    check(&forbid("n", "$ < 1"), &[r#"{"n":null}"#, r#"{"n":0}"#], &[r#"{"n":1}"#]);
    let amount = forbid("amount", "$.greaterThan(decimal(\"9.5\"))");
    check(
        &amount,
        &[r#"{"amount":9.51}"#, r#"{"amount":"9.51"}"#],
        &[r#"{"amount":9}"#, r#"{"amount":8.4}"#],
    );
}

#[test]
fn a_forbid_stops_text_in_every_spelling() {
    let stopped = [
        r#"{"mode":"all"}"#,
        r#"{"mode":" all\n"}"#,
        r#"{"mode":"%61ll"}"#,
        r#"{"mode":"%2561ll"}"#,
        r#"{"mode":"ａｌｌ"}"#,
        r#"{"mode":"all\u0000x"}"#,
        r#"{"mode":"\ufeffall"}"#,
        r#"{"mode":"\"all\""}"#,
        r#"{"mode":"[\"all\"]"}"#,
        r#"{"mode":"{\"mode\":\"all\"}"}"#,
        r#"{"mode":["all"]}"#,
        r#"{"MODE":"all"}"#,
        r#"{"mode":"one","mo_de":"all"}"#,
        r#"{"mode":"ALL"}"#,
        r#"{"mode":"all/"}"#,
        r#"{"mode":"a\ufe0fll"}"#,
        r#"{"mode":"[\"\\u0061ll\",NaN]"}"#,
        r#"{"mode":"{'\\x61ll'}"}"#,
    ];
    let passed = [r#"{"mode":"one"}"#, r#"{"mode":" one %20"}"#, r#"{"mode":"al"}"#, "{}"];
    for test in ["$ == \"all\"", "[\"all\", \"every\"].contains($)", "$ like \"al*l\""] {
        check(&forbid("mode", test), &stopped, &passed);
    }
    let accent = forbid("mode", "$ == \"caf\u{e9}\"");
    check(
        &accent,
        &[r#"{"mode":"cafe\u0301"}"#, r#"{"mode":"caf%C3%A9"}"#],
        &[r#"{"mode":"cafe"}"#],
    );
    let apart = forbid("mode", "$ like \"cafe\u{301}*\"");
    check(&apart, &[r#"{"mode":"caf\u00e9 x"}"#], &[r#"{"mode":"cafe"}"#]);
    let word = forbid("mode", "$ == \"true\"");
    check(&word, &[r#"{"mode":"YES"}"#, r#"{"mode":true}"#], &[r#"{"mode":"no"}"#]);
    for test in ["$ like \"/a%20b/*\"", "$ like \"/a%20b/*\" && $ like \"*.txt\""] {
        let stopped = [r#"{"mode":"/a b/c.txt"}"#, r#"{"mode":"/a%20b/c.txt"}"#];
        check(&forbid("mode", test), &stopped, &[r#"{"mode":"/ab/c.txt"}"#]);
    }
    let escaped = forbid("mode", "$ == \"a%20b\"");
    check(&escaped, &[r#"{"mode":"a b"}"#, r#"{"mode":"a%20b"}"#], &[r#"{"mode":"ab"}"#]);
}

#[test]
fn a_forbid_stops_lists_in_every_spelling() {
    let stopped = [
        r#"{"tags":["x","all"]}"#,
        r#"{"tags":["x"," %61ll"]}"#,
        r#"{"tags":"all"}"#,
        r#"{"tags":"[\"all\"]"}"#,
        r#"{"tags":[["all"]]}"#,
        r#"{"tags":["[\"all\"]"]}"#,
    ];
    for test in ["$.contains(\"all\")", "$.containsAny([\"all\", \"every\"])"] {
        check(&forbid("tags", test), &stopped, &[r#"{"tags":["x"]}"#, r#"{"tags":[]}"#]);
    }
    let same = forbid("tags", "$ == [\"a\", \"b\"]");
    check(&same, &[r#"{"tags":["%61","b "]}"#], &[r#"{"tags":["a"]}"#]);
}

#[test]
fn a_forbid_stops_keys_that_careless_servers_take_for_others() {
    let file = forbid("file_name", "$ like \"*.key\"");
    let stopped = [
        r#"{"fileName":"a.key"}"#,
        r#"{"filename":"a.key"}"#,
        r#"{"file-name":"a.key"}"#,
        r#"{"FILE_NAME":"a.key"}"#,
        r#"{"ﬁle_name":"a.key"}"#,
        r#"{"file_name":"a","fileName":"a.key"}"#,
    ];
    check(&file, &stopped, &[r#"{"file_name":"a"}"#, r#"{"file_names":"a.key"}"#]);
    let nested = format!(
        "{OPEN}forbid(principal, action, resource) when {{ context.arguments has o.mode && \
         context.arguments.o.mode == \"all\" }};"
    );
    let stopped = [
        r#"{"o":{"mode":" all"}}"#,
        r#"{"o":{"Mode":"all"}}"#,
        r#"{"o":"{\"mode\":\"all\"}"}"#,
        r#"{"o":[{"mode":"all"}]}"#,
    ];
    check(&nested, &stopped, &[r#"{"o":{"mode":"one"}}"#]);
}

/// An allowlist inside a forbid is compared as written, or ordinary work would be stopped.
#[test]
fn what_a_forbid_spares_must_be_spelled_exactly() {
    let unless = format!(
        "{OPEN}forbid(principal, action, resource) unless {{ context.arguments has path && \
         context.arguments.path like \"https://ok.example/*\" }};"
    );
    check(
        &unless,
        &[
            r#"{"path":"https%3A//ok.example/a"}"#,
            r#"{"path":"/etc"}"#,
            r#"{"path":"https://ok.example/a/../../b"}"#,
        ],
        &[r#"{"path":"https://ok.example/a"}"#, r#"{"path":"https://ok.example/a%20b"}"#],
    );
    let not = forbid("mode", "$ != \"one\"");
    check(&not, &[r#"{"mode":"One"}"#, r#"{"mode":" one"}"#], &[r#"{"mode":"one"}"#]);
}

#[test]
fn a_permit_takes_only_what_is_written_and_no_reading_that_it_excludes() {
    let permit =
        |condition: &str| format!("permit(principal, action, resource) when {{ {condition} }};");
    let mode = permit("context.arguments has mode && context.arguments.mode == \"one\"");
    check(
        &mode,
        &[
            r#"{"mode":" one"}"#,
            r#"{"mode":"%6fne"}"#,
            r#"{"mode":["one"]}"#,
            r#"{"mode":"one","Mode":"x"}"#,
        ],
        &[r#"{"mode":"one"}"#],
    );
    let not = permit("context.arguments has mode && context.arguments.mode != \"all\"");
    check(
        &not,
        &[r#"{"mode":"all"}"#, r#"{"mode":" all"}"#, r#"{"mode":"%61ll"}"#],
        &[r#"{"mode":"one"}"#],
    );
    let url = permit(
        "context.arguments has path && context.arguments.path like \"https://ok.example/*\" && \
         !(context.arguments.path like \"*/admin*\")",
    );
    check(
        &url,
        &[r#"{"path":"https://ok.example/%61dmin"}"#, r#"{"path":"https://ok.example/../x"}"#],
        &[r#"{"path":"https://ok.example/a%20b"}"#, r#"{"path":"https://ok.example/a"}"#],
    );
    let folder = permit("context.arguments has path && context.arguments.path like \"/data/*\"");
    check(
        &folder,
        &[
            r#"{"path":"/data/../etc/passwd"}"#,
            r#"{"path":"/data/%2e%2e/etc"}"#,
            r#"{"path":"/data/..\\etc"}"#,
        ],
        &[r#"{"path":"/data/a"}"#, r#"{"path":"/data/a..b"}"#],
    );
    let left_out =
        permit("if context.arguments has force then context.arguments.force == false else true");
    check(
        &left_out,
        &[r#"{"force":true}"#, r#"{"force":"false"}"#],
        &["{}", r#"{"force":null}"#, r#"{"force":false}"#],
    );
}

/// Regression: a permit with an approval did not apply to another type or spelling, and one without
/// an approval let the call pass.
#[test]
fn people_are_asked_about_whatever_may_be_read_so() {
    let text = format!(
        "{OPEN}@id(\"big\") @approval(\"boss\") permit(principal, action, resource) when {{ \
         context.arguments has n && context.arguments.n >= 1000 }};\n\
         @id(\"mode\") @approval(\"ops\") permit(principal, action, resource) when {{ \
         context.arguments has mode && context.arguments.mode == \"all\" }};"
    );
    for tools in [vec![], vec![tool("files", "x", SCHEMA)]] {
        let cedar = fine(&text, &tools);
        let asks = |arguments: &str| {
            let answer = call(&cedar, "x", arguments);
            assert!(answer.permit, "{arguments}: {answer:?}");
            answer.approval
        };
        for arguments in [r#"{"n":5000}"#, r#"{"n":"5000"}"#, r#"{"N":5000}"#, r#"{"n":1e300}"#] {
            assert_eq!(asks(arguments).as_deref(), Some("boss"), "{arguments}");
        }
        for arguments in [r#"{"mode":"all"}"#, r#"{"mode":" %61ll"}"#, r#"{"mode":["all"]}"#] {
            assert_eq!(asks(arguments).as_deref(), Some("ops"), "{arguments}");
        }
        for arguments in ["{}", r#"{"n":5,"mode":"one"}"#] {
            assert_eq!(asks(arguments), None, "{arguments}");
        }
    }
}

#[test]
fn several_arguments_are_read_in_every_combination_or_refused() {
    let text = format!(
        "{OPEN}forbid(principal, action, resource) when {{ context.arguments has mode && \
         context.arguments has path && context.arguments.mode == \"all\" && \
         context.arguments.path == \"/etc\" }};"
    );
    check(
        &text,
        &[r#"{"mode":" all","path":"/x/../etc"}"#, r#"{"mode":"all","path":"/./etc"}"#],
        &[r#"{"mode":" all","path":"/x"}"#, r#"{"mode":"one ","path":"/x/../etc"}"#],
    );
    let answer = call(&fine(&text, &[]), "x", r#"{"mode":" all","path":"/./etc"}"#);
    assert!(
        answer.reason.contains("`mode` may be read as `all` and `path` may be read as `/etc`"),
        "{answer:?}"
    );
}

/// Arguments that a tool's definition lacks get the types that policies use them as.
#[test]
fn an_argument_that_the_tool_does_not_declare_is_held_to_how_policies_use_it() {
    let tools = [
        tool("files", "x", SCHEMA),
        tool("files", "y", r#"{"type":"object","properties":{"z":{"type":"string"}}}"#),
    ];
    let cedar = fine(&forbid("n", "$ == 5"), &tools);
    assert!(!call(&cedar, "y", r#"{"n":5}"#).permit);
    assert!(!call(&cedar, "y", r#"{"n":"5"}"#).permit);
    assert!(call(&cedar, "y", r#"{"n":6,"z":"5"}"#).permit);
}
