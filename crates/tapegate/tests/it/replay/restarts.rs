//! A client that starts its server more than once: no start hides what another has found.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{answer, ask, call, lines, piped, tape};
use crate::reports::{assert_json, assert_junit, assert_sarif};
use crate::support::tapegate;

const FILES: [&str; 3] = ["r.json", "r.xml", "r.sarif"];

fn two() -> String {
    let pair = |n: u32| format!("> {}\n< {}\n", call(n, "t", n), answer(n, n));
    tape(&(1..=2).map(pair).collect::<String>())
}

/// One start in this folder, with reports in every format: its exit code and output.
fn start(folder: &Path, live: &[String], flags: &[&str]) -> (Option<i32>, String) {
    if !folder.join("t.jsonl").exists() {
        fs::write(folder.join("t.jsonl"), two()).unwrap();
    }
    let reports = FILES.iter().flat_map(|file| ["--report", file]);
    let mut command = tapegate();
    command.current_dir(folder).args(["replay", "-r", "t.jsonl"]).args(reports).args(flags);
    fs::write(folder.join("live"), lines(live)).unwrap();
    let input = fs::File::open(folder.join("live")).unwrap();
    let done = command.stdin(input).output().unwrap();
    (done.status.code(), String::from_utf8(done.stderr).unwrap())
}

fn good() -> [String; 2] {
    [call(1, "t", 1), call(2, "t", 2)]
}

fn json(folder: &Path) -> Value {
    assert_json(&folder.join("r.json"))
}

#[test]
fn a_good_start_does_not_hide_a_failed_one_in_any_format() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert_eq!(start(folder, &[call(1, "new", 1)], &[]).0, Some(6));
    let (code, stderr) = start(folder, &good(), &[]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stderr.contains("added to the report `r.json` as start 2; delete"), "{stderr}");

    let report = json(folder);
    assert_eq!((&report["ok"], &report["verdict"]), (&false.into(), &"failed".into()));
    let verdicts: Vec<&Value> =
        report["starts"].as_array().unwrap().iter().map(|start| &start["verdict"]).collect();
    assert_eq!(verdicts, ["failed", "passed"]);
    assert_eq!((&report["matched"], &report["unmatched"]), (&2.into(), &1.into()));
    // A request left unused by one start was used by another.
    assert_eq!(report["unused"], 0, "{report:#}");
    assert!(!report.to_string().contains("\"rule\":\"unused\""), "{report:#}");

    let cases = assert_junit(&folder.join("r.xml"));
    let suites: Vec<&str> = cases.iter().map(|case| case[0].as_str().unwrap()).collect();
    assert!(suites.contains(&"replay.asked") && suites.contains(&"replay.start2.asked"));
    assert!(cases.iter().any(|case| case[2] == "Failure"), "{cases:?}");
    let text = fs::read_to_string(folder.join("r.xml")).unwrap();
    assert!(text.lines().nth(1).unwrap().contains("failures=\"1\""), "{text}");

    let sarif = assert_sarif(&folder.join("r.sarif"));
    let run = &sarif["runs"][0];
    assert_eq!(run["invocations"].as_array().unwrap().len(), 2);
    let levels: Vec<&Value> =
        run["results"].as_array().unwrap().iter().map(|result| &result["level"]).collect();
    assert!(levels.contains(&&"error".into()), "{sarif:#}");
    assert_eq!(run["properties"]["unused"], 0, "{sarif:#}");
    assert!(!sarif.to_string().contains("\"ruleId\":\"unused\""), "{sarif:#}");
    assert!(!text.contains("no client requested"), "{text}");
    // The order of the good and the bad start does not matter.
    assert_eq!(start(folder, &good(), &[]).0, Some(0));
    assert_eq!(json(folder)["ok"], false);
}

#[test]
fn a_new_run_begins_with_another_id_by_choice_or_without_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    start(folder, &[call(1, "new", 1)], &["--run-id", "monday"]);
    start(folder, &good(), &["--run-id", "monday"]);
    let report = json(folder);
    assert_eq!((&report["run_id"], &report["ok"]), (&"monday".into(), &false.into()));
    start(folder, &good(), &["--run-id", "tuesday"]);
    let report = json(folder);
    assert_eq!((&report["run_id"], &report["ok"]), (&"tuesday".into(), &true.into()));
    assert_eq!(report["starts"].as_array().unwrap().len(), 1);

    start(folder, &[call(1, "new", 1)], &[]);
    assert_eq!((&json(folder)["ok"], &json(folder)["run_id"]), (&false.into(), &"tuesday".into()));
    start(folder, &good(), &["--report-mode", "new"]);
    assert_eq!(json(folder)["ok"], true);

    start(folder, &[call(1, "new", 1)], &[]);
    FILES.iter().for_each(|file| fs::remove_file(folder.join(file)).unwrap());
    start(folder, &good(), &[]);
    assert_eq!(json(folder)["ok"], true);
}

#[test]
fn a_start_that_only_looks_is_no_success_and_takes_none_away() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for live in [vec![], vec![ask(1, "ping")]] {
        assert_eq!(start(folder, &live, &[]).0, Some(0));
        let report = json(folder);
        assert_eq!((&report["ok"], &report["verdict"]), (&false.into(), &"untested".into()));
        let cases = assert_junit(&folder.join("r.xml"));
        assert_eq!(cases.iter().filter(|case| case[2] == "Error").count(), 1, "{cases:?}");
        assert!(assert_sarif(&folder.join("r.sarif")).to_string().contains("\"untested\""));
    }
    start(folder, &good(), &[]);
    assert_eq!((&json(folder)["ok"], &json(folder)["verdict"]), (&true.into(), &"passed".into()));
    start(folder, &[], &[]);
    assert_eq!(json(folder)["ok"], true);
    assert!(assert_junit(&folder.join("r.xml")).iter().all(|case| case[2] != "Error"));
}

#[test]
fn starts_that_end_at_once_are_all_in_the_report() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), two()).unwrap();
    let children: Vec<_> = (0..12)
        .map(|n| {
            let reports = FILES.iter().flat_map(|file| ["--report", file]);
            let mut command: Command = tapegate();
            command.current_dir(&folder).args(["replay", "-q", "-r", "t.jsonl"]).args(reports);
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
            let live = if n == 5 { lines(&[call(1, "new", 1)]) } else { lines(&good()) };
            std::io::Write::write_all(child.stdin.as_mut().unwrap(), live.as_bytes()).unwrap();
            child
        })
        .collect();
    for mut child in children {
        child.wait().unwrap();
    }
    let report = json(folder.path());
    let starts = report["starts"].as_array().unwrap();
    let numbers: Vec<u64> = starts.iter().map(|start| start["start"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<u64>>());
    assert_eq!((&report["ok"], &report["unmatched"]), (&false.into(), &1.into()));
    let sarif = assert_sarif(&folder.path().join("r.sarif"));
    assert_eq!(sarif["runs"][0]["invocations"].as_array().unwrap().len(), 12);
    let left = fs::read_dir(&folder).unwrap().count();
    assert_eq!(left, 4, "nothing is left beside the tape and the reports");
}

/// A start that runs until it is told to end, already listed in all reports as start `number`.
fn begin(folder: &Path, number: usize, live: &[String]) -> std::process::Child {
    let reports = FILES.iter().flat_map(|file| ["--report", file]);
    let mut command: Command = tapegate();
    command.current_dir(folder).args(["replay", "-q", "-r", "t.jsonl"]).args(reports);
    let (read, write) = std::io::pipe().unwrap();
    let mut child = command.stdin(Stdio::piped()).stdout(write).spawn().unwrap();
    drop(command);
    std::io::Write::write_all(child.stdin.as_mut().unwrap(), lines(live).as_bytes()).unwrap();
    // It answers only after it has been registered.
    let answered = std::io::BufRead::lines(std::io::BufReader::new(read)).take(live.len());
    assert_eq!(answered.filter(Result::is_ok).count(), live.len());
    assert_eq!(json(folder)["starts"].as_array().unwrap().len(), number);
    child
}

fn verdicts(folder: &Path) -> Vec<(String, bool)> {
    let report = json(folder);
    let starts = report["starts"].as_array().unwrap().iter();
    starts
        .map(|start| {
            let verdict = start["verdict"].as_str().unwrap().to_owned();
            (verdict, start["finished"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn a_start_that_is_killed_stays_in_the_report_and_makes_it_fail() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("t.jsonl"), two()).unwrap();
    let mut killed = begin(folder, 1, &good()[..1]);
    killed.kill().unwrap();
    killed.wait().unwrap();
    let unfinished = ("failed".to_owned(), false);
    assert_eq!(verdicts(folder), std::slice::from_ref(&unfinished));
    assert_eq!(start(folder, &good()[..1], &[]).0, Some(0));
    let report = json(folder);
    assert_eq!((&report["ok"], &report["verdict"]), (&false.into(), &"failed".into()));
    assert_eq!(verdicts(folder), [unfinished, ("passed".to_owned(), true)]);
    // It is not known what the first one has used.
    assert_eq!((&report["matched"], &report["unused"]), (&1.into(), &1.into()), "{report:#}");
    let case = &report["cases"][0];
    assert_eq!((&case["rule"], &case["start"]), (&"unfinished".into(), &1.into()), "{report:#}");

    let cases = assert_junit(&folder.join("r.xml"));
    assert_eq!(cases.iter().filter(|case| case[2] == "Failure").count(), 1, "{cases:?}");
    let sarif = assert_sarif(&folder.join("r.sarif"));
    let run = &sarif["runs"][0];
    assert_eq!(run["invocations"][0]["executionSuccessful"], false, "{sarif:#}");
    assert_eq!(run["invocations"][1]["executionSuccessful"], true);
    assert_eq!(run["results"][0]["ruleId"], "unfinished");
}

#[test]
fn a_start_that_ends_after_another_has_begun_keeps_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("t.jsonl"), two()).unwrap();
    let mut first = begin(folder, 1, &good());
    let mut second = begin(folder, 2, &good());
    for child in [&mut first, &mut second] {
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
    let passed = ("passed".to_owned(), true);
    assert_eq!(verdicts(folder), [passed.clone(), passed]);
    let report = json(folder);
    assert_eq!((&report["ok"], &report["matched"]), (&true.into(), &4.into()), "{report:#}");
    assert_eq!(report["cases"].as_array().unwrap().len(), 2, "{report:#}");
    let cases = assert_junit(&folder.join("r.xml"));
    assert!(cases.len() == 2 && cases.iter().all(|case| case[2] != "Failure"), "{cases:?}");
    let sarif = assert_sarif(&folder.join("r.sarif"));
    assert_eq!(sarif["runs"][0]["results"].as_array().unwrap().len(), 0, "{sarif:#}");
    assert_eq!(sarif["runs"][0]["invocations"].as_array().unwrap().len(), 2);
}

#[test]
fn a_report_that_goes_down_a_pipe_is_that_of_this_start() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), two()).unwrap();
    let script = format!(
        "cd {} && {} replay -q -r t.jsonl --report /dev/stderr 2>&1 >/dev/null",
        folder.path().display(),
        env!("CARGO_BIN_EXE_tapegate")
    );
    let said = piped("sh", &["-c", &script], lines(&good()));
    let report: Value = serde_json::from_slice(&said).unwrap();
    assert_eq!(report["starts"].as_array().unwrap().len(), 1);
}

#[test]
fn a_client_that_only_shakes_hands_and_lists_has_tested_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let setup = [ask(1, "initialize"), ask(2, "tools/list")];
    let said = format!("> {}\n< {}\n> {}\n< {}\n", setup[0], answer(1, 1), setup[1], answer(2, 2));
    let with_call = format!("{said}> {}\n< {}\n", call(3, "t", 3), answer(3, 3));
    fs::write(folder.join("t.jsonl"), tape(&with_call)).unwrap();
    assert_eq!(start(folder, &setup, &[]).0, Some(0));
    let report = json(folder);
    assert_eq!((&report["ok"], &report["verdict"]), (&false.into(), &"untested".into()));
    let [first, second] = setup.clone();
    assert_eq!(start(folder, &[first, second, call(3, "t", 3)], &[]).0, Some(0));
    assert_eq!(json(folder)["verdict"], "passed");

    // If nothing else was recorded, that is the test.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("t.jsonl"), tape(&said)).unwrap();
    assert_eq!(start(folder, &setup, &[]).0, Some(0));
    assert_eq!(json(folder)["verdict"], "passed");
}

#[test]
fn a_file_that_is_not_a_report_is_never_replaced_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, text) in [
        ("tapegate.yaml", "schema: 1\n".to_owned()),
        ("other.jsonl", two()),
        ("package.json", "{\n  \"name\": \"tapegate\"\n}\n".to_owned()),
    ] {
        fs::write(folder.join(name), &text).unwrap();
        for flags in [&["--report", name][..], &["--report", name, "--report-mode", "new"]] {
            let (code, stderr) = start(folder, &good(), flags);
            assert_eq!(code, Some(64), "{stderr}");
            assert!(
                stderr.contains(&format!("`{name}` exists and is not a Tapegate report")),
                "{stderr}"
            );
            assert!(stderr.contains("or delete that one"), "{stderr}");
        }
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), text);
        assert!(
            !folder.join("r.json").exists(),
            "nothing is played for a report that has no place"
        );
    }
}

#[test]
fn an_earlier_report_that_cannot_be_merged_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    start(folder, &[call(1, "new", 1)], &[]);
    let failed = fs::read_to_string(folder.join("r.json")).unwrap();
    let cut = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text[..text.len() - 20].to_owned()
    };
    for (name, text) in [
        ("renamed.xml", failed.clone()),
        ("renamed.sarif", failed.clone()),
        ("renamed.json", fs::read_to_string(folder.join("r.xml")).unwrap()),
        ("torn.json", cut("r.json")),
        ("torn.xml", cut("r.xml")),
        ("torn.sarif", cut("r.sarif")),
        ("serve.json", failed.replace("\"command\": \"replay\"", "\"command\": \"serve\"")),
    ] {
        fs::write(folder.join(name), &text).unwrap();
        for flags in [&["--report", name][..], &["--report", name, "--run-id", "x"]] {
            let (code, stderr) = start(folder, &good(), flags);
            assert_eq!(code, Some(64), "{name}: {stderr}");
            assert!(stderr.contains(&format!("`{name}` is not a whole ")), "{stderr}");
            assert!(stderr.contains("or pass --report-mode new to replace it"), "{stderr}");
        }
        assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), text);
        // A start that is refused is not listed in the other reports either.
        assert_eq!(fs::read_to_string(folder.join("r.json")).unwrap(), failed);
        let flags = ["--report", name, "--report-mode", "new"];
        assert_eq!(start(folder, &good(), &flags).0, Some(0));
        fs::write(folder.join("r.json"), &failed).unwrap();
    }
}

#[test]
fn a_report_that_is_named_twice_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let absolute = folder.join("r.json");
    for again in ["r.json", "./r.json", absolute.to_str().unwrap()] {
        let (code, stderr) = start(folder, &good(), &["--report", again]);
        assert_eq!(code, Some(64), "{stderr}");
        assert!(stderr.contains(&format!("--report names `{again}` more than once")), "{stderr}");
        assert!(!folder.join("r.json").exists());
    }
}
