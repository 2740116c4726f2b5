//! `tapegate check` with policies: on the real file system, as text and JSON.

use std::fs;
use std::path::Path;

use super::scenario::check;

const GOOD: &str = "\
schema: 1
governance:
  defaults: {action: deny}
  rules:
    - {match: 'get_*', action: policy, policy_id: reads}
cedar: {policies: [conf/reads.cedar]}
principal: {name: '${TAPEGATE_TEST_NAME:-nobody}'}
";

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

#[test]
fn a_good_policy_is_ok_and_counted() {
    let folder = folder(&[
        ("tapegate.yaml", GOOD),
        ("conf/reads.cedar", "@id(\"reads\")\npermit(principal, action, resource);\n"),
    ]);
    let (said, code) = check(folder.path(), &["tapegate.yaml"]);
    let (start, version) = said.trim_end().split_at(said.len() - 17);
    let output_text = "tapegate.yaml: ok, 1 source, 1 rule, 1 workflow, 1 Cedar policy; version ";
    assert_eq!((start, version.len(), code), (output_text, 16, 0));
    let (said, code) = check(folder.path(), &["--format", "jsonl", "tapegate.yaml"]);
    let json = format!(
        "{{\"policy\":\"tapegate.yaml\",\"errors\":0,\"warnings\":0,\"sources\":1,\"rules\":1,\
         \"workflows\":1,\"cedar_policies\":1,\"version\":\"{version}\"}}\n"
    );
    assert_eq!((said, code), (json, 0));
}

#[test]
fn every_fault_has_its_file_and_its_place() {
    let folder = folder(&[
        ("tapegate.yaml", &GOOD.replace("match:", "mtach:").replace("schema: 1", "schema: 2")),
        ("conf/reads.cedar", "permit(principal, action, resource);\npermit(principal;\n"),
    ]);
    let (said, code) = check(folder.path(), &["tapegate.yaml"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 4, "{said}");
    assert_eq!(lines[0], "tapegate.yaml:1:9: error: schema: this must be 1, not 2");
    let output_text = "tapegate.yaml:5:8: error: governance.rules[0]: there is no key `mtach` here; did you mean `match`?";
    assert_eq!(lines[1], output_text);
    assert!(lines[2].starts_with("conf/reads.cedar:2:17: error: cedar: "), "{said}");
    assert_eq!((lines[3], code), ("tapegate.yaml: 3 errors", 1));
    let (said, _) = check(folder.path(), &["--format", "jsonl", "tapegate.yaml"]);
    for line in said.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["policy"], "tapegate.yaml");
    }
    assert!(
        said.ends_with("{\"policy\":\"tapegate.yaml\",\"errors\":3,\"warnings\":0}\n"),
        "{said}"
    );
}

#[test]
fn a_policy_is_known_by_its_name_or_by_what_is_in_it() {
    let nothing = "# nothing yet\n";
    let policy = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
    let folder = folder(&[
        ("tapegate.yaml", nothing),
        ("a/thoughtgate.yaml", nothing),
        ("other.yaml", policy),
        ("conf", policy),
        ("scenario.yaml", "server: {name: s}\n"),
    ]);
    let said = |file: &str| check(folder.path(), &["--format", "jsonl", file]).0;
    for file in ["tapegate.yaml", "a/thoughtgate.yaml", "other.yaml", "conf"] {
        assert!(said(file).starts_with("{\"policy\":"), "{file}: {}", said(file));
    }
    assert!(said("scenario.yaml").starts_with("{\"scenario\":"));
}

#[test]
fn tests_of_a_policy_and_lock_files_are_looked_over_too() {
    let folder = folder(&[
        ("tapegate.test.yaml", "cases:\n- {call: read, expect: forward}\n"),
        ("bad.test.yaml", "casses: []\n"),
        ("tapegate.lock", "{\"schema\": 1, \"servers\": {\"a\": {}}}\n"),
        ("bad.lock", "{\n\"schema\": 2}\n"),
    ]);
    let said = |args: &[&str]| check(folder.path(), args);
    assert_eq!(said(&["tapegate.test.yaml"]), ("tapegate.test.yaml: ok, 1 case\n".to_owned(), 0));
    assert_eq!(said(&["bad.test.yaml"]).1, 1);
    let output_text = "tapegate.lock: ok, 1 server, 0 definitions\n";
    assert_eq!(said(&["tapegate.lock"]), (output_text.to_owned(), 0));
    let output_text =
        "bad.lock:1:1: error: this is not a lock file of schema 1\nbad.lock: 1 error\n";
    assert_eq!(said(&["bad.lock"]), (output_text.to_owned(), 1));
    let (json, _) = said(&["--format", "jsonl", "tapegate.test.yaml", "tapegate.lock"]);
    let lines: Vec<&str> = json.lines().collect();
    assert_eq!(lines[0], r#"{"tests":"tapegate.test.yaml","errors":0,"warnings":0,"cases":1}"#);
    let lock = r#"{"lock":"tapegate.lock","errors":0,"warnings":0,"servers":1,"definitions":0}"#;
    assert_eq!(lines[1], lock);
}

#[test]
fn warnings_count_when_it_is_strict() {
    let text = "schema: 1\ngovernance: {defaults: {action: deny, policy_id: x}}\n";
    let folder = folder(&[("tapegate.yaml", text)]);
    let run = |args: &[&str]| check(Path::new(folder.path()), args).1;
    assert_eq!(run(&["tapegate.yaml"]), 0);
    assert_eq!(run(&["--strict", "tapegate.yaml"]), 1);
}

#[test]
fn the_schema_of_policies_is_the_one_that_is_published() {
    let folder = folder(&[]);
    let (said, code) = check(folder.path(), &["--schema=policy"]);
    let published = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/policy.schema.json");
    assert_eq!((said, code), (fs::read_to_string(published).unwrap(), 0));
    assert_ne!(check(folder.path(), &["--schema"]).0, check(folder.path(), &["--schema=policy"]).0);
}

#[test]
fn a_workflow_that_only_the_caller_could_approve_is_warned_of() {
    let policy = |principal: &str, approvers: &str| {
        format!(
            "schema: 1\ngovernance: {{defaults: {{action: approve}}}}\n\
             principal: {{name: {principal}}}\napproval: {{people: {{{approvers}}}}}\n"
        )
    };
    let warned = |principal: &str, approvers: &str| {
        let folder = folder(&[("tapegate.yaml", &policy(principal, approvers))]);
        let (said, code) = check(folder.path(), &["tapegate.yaml"]);
        assert_eq!(code, 0, "{said}");
        said.contains("approval.people.approvers: the only approver is `ada`")
    };
    assert!(warned("ada", "approvers: [ada]"));
    assert!(!warned("ada", "approvers: [ada, grace]"));
    assert!(!warned("agent", "approvers: [ada]"));
    assert!(!warned("ada", ""));
}
