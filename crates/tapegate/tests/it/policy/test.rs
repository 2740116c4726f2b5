//! `tapegate policy test`

use super::PolicyProject;

const CASES: &str = r#"server: files
cases:
  - {name: reading is fine, call: read_file, expect: forward, rule: reads}
  - {name: deleting is not, call: delete_file, expect: deny, gate: rules, rule: no-deletes}
  - {name: writing is asked about, call: write_file, arguments: {path: /etc/x}, expect: approve, workflow: people}
  - {name: writing to tmp is fine, call: write_file, arguments: {path: /tmp/x}, expect: forward, rule: tmp-only}
  - {name: passwords are hidden, method: resources/read, uri: "file:///etc/passwd", expect: deny, gate: visibility}
  - {name: in development all is fine, call: delete_file, profile: development, expect: forward}
  - {name: twice the name, message: '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}', expect: deny, gate: framing}
"#;

const WRONG: &str = r#"  - {name: deleting is fine, call: delete_file, expect: forward, rule: reads}
  - {name: nobody is asked, call: write_file, expect: deny}
  - {name: another workflow, call: write_file, expect: approve, workflow: boss}
  - {name: a good message, message: '{"jsonrpc":"2.0","id":1,"method":"ping"}', expect: deny, gate: framing}
"#;

#[test]
fn what_is_as_expected_is_ok() {
    let project = PolicyProject::new();
    project.write("tapegate.test.yaml", CASES);
    let done = project.policy(&["test"]).exits(0).golden("test.txt");
    assert!(done.out.ends_with("7 cases: 7 as expected, 0 not\n"));
    assert_eq!(project.policy(&["test", "--quiet"]).exits(0).out, "");
}

#[test]
fn what_is_not_as_expected_fails_and_says_why() {
    let project = PolicyProject::new();
    project.write("tapegate.test.yaml", format!("{CASES}{WRONG}"));
    project.policy(&["test", "-q"]).exits(1).golden("test-failed.txt");
    let json = project.policy(&["test", "--format", "json", "--coverage"]).exits(1).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["passed"], &json["failed"]), (&7.into(), &4.into()));
    assert_eq!((&json["tests"], &json["ok"]), (&"tapegate.test.yaml".into(), &false.into()));
    assert_eq!(
        json["cases"][7]["message"],
        "expect is deny, not forward; rule is no-deletes, not reads"
    );
    let junit = project.policy(&["test", "--format", "junit"]).exits(1).out;
    assert!(junit.contains("tests=\"11\" failures=\"4\""), "{junit}");
    assert!(junit.contains("<failure message=\"workflow is people, not boss\""), "{junit}");
}

#[test]
fn the_report_goes_to_files_in_the_format_of_their_names() {
    let project = PolicyProject::new();
    project.write("tapegate.test.yaml", CASES);
    project.policy(&["test", "-q", "--report", "r.xml", "--report", "r.json"]).exits(0);
    assert!(project.read("r.xml").starts_with("<?xml") && project.read("r.json").starts_with('{'));
}

#[test]
fn rules_that_no_case_reaches_are_named() {
    let project = PolicyProject::new();
    project.write("tapegate.test.yaml", CASES);
    let out = project.policy(&["test", "-q", "--coverage"]).exits(0).out;
    assert_eq!(
        out,
        "warning: tapegate.yaml:19: no test reaches rule `resources`\n\
         warning: tapegate.yaml:20: no test reaches rule `quiet`\n\
         warning: tapegate.yaml: no test reaches the default\n"
    );
    let more = "  - {call: unheard, expect: deny}\n  - {method: resources/read, uri: 'file:///a', expect: forward}\n  - {method: logging/setLevel, expect: deny}\n";
    project.write("tapegate.test.yaml", format!("{CASES}{more}"));
    assert_eq!(project.policy(&["test", "-q", "--coverage"]).exits(0).out, "");
}

#[test]
fn a_file_of_cases_with_faults_is_invalid_and_all_of_them_are_told() {
    let project = PolicyProject::new();
    project
        .write("bad.yaml", "serfer: a\ncases:\n  - {call: a, expect: maybe}\n  - {expect: deny}\n");
    let done = project.policy(&["test", "bad.yaml"]).fails(2, "error: `bad.yaml` cannot be used\n");
    for words in
        ["bad.yaml:1:1: there is no key `serfer` here", "bad.yaml:3:23: ", "bad.yaml:4:5: "]
    {
        assert!(done.err.contains(words), "{words} is not in {}", done.err);
    }
    project.policy(&["test", "no.yaml"]).fails(3, "error: cannot read `no.yaml`: ");
    project.policy(&["test"]).fails(2, "error: there is no tapegate.test.yaml here\n");
}

#[test]
fn the_policy_is_the_one_that_is_named_then_that_of_the_file_then_the_one_beside_it() {
    let project = PolicyProject::new();
    let open = "schema: 1\ngovernance: {defaults: {action: forward}}\n";
    project.write("sub/tapegate.yaml", open);
    project.write("sub/a.test.yaml", "cases: [{call: delete_file, expect: forward}]");
    project.write(
        "sub/b.test.yaml",
        "config: ../tapegate.yaml\nserver: files\ncases: [{call: delete_file, expect: deny}]",
    );
    project.policy(&["test", "-q", "sub/a.test.yaml", "sub/b.test.yaml"]).exits(0);
    let named = ["test", "-q", "--config", "sub/tapegate.yaml", "sub/b.test.yaml"];
    project.policy(&named).exits(1);
}

#[test]
fn the_schema_is_printed() {
    let project = PolicyProject::new();
    let schema = project.policy(&["test", "--schema"]).exits(0).out;
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(schema["title"], "Tapegate policy tests");
}
