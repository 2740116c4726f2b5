//! Which files are written, and which are left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{convert, converted, sample, tape};

#[track_caller]
fn fails(run: &std::process::Output, code: i32, output_text: &str) {
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(code), "{stderr}");
    assert!(stderr.contains(output_text), "{stderr}");
}

#[test]
fn a_scenario_is_private_and_nothing_is_overwritten_without_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.yaml");
    fs::write(folder.path().join("t.jsonl"), sample()).unwrap();
    let said = converted(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    assert_eq!(said, "s.yaml: 2 tools from 4 calls\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&path, "mine").unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    fails(&run, 3, "error: `s.yaml` exists already\n\nhint: choose another name, or pass --force");
    assert_eq!(fs::read(&path).unwrap(), b"mine");
    converted(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml", "--force", "-q"]);
    assert!(fs::read_to_string(&path).unwrap().contains("read_file"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_scenario_on_standard_output_is_all_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), sample().replace("localhost", &"x".repeat(30_000)))
        .unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "-"]);
    let text = String::from_utf8(run.stdout).unwrap();
    assert!(text.starts_with("# ") && text.ends_with("unknown_methods: error\n"), "{text}");
    assert!(text.contains(&"x".repeat(30_000)));
    assert!(String::from_utf8_lossy(&run.stderr).contains("2 tools from 4 calls"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn large_texts_lie_beside_the_scenario_in_private_files() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), sample().replace("localhost", &"x".repeat(30_000)))
        .unwrap();
    let said = converted(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    assert!(said.contains("  1 file (60016 bytes) in s.yaml.assets/\n"), "{said}");
    let asset = folder.path().join("s.yaml.assets/read_file-1.txt");
    assert_eq!(fs::metadata(&asset).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(folder.path().join("s.yaml")).unwrap();
    assert!(text.contains("$file: s.yaml.assets/read_file-1.txt\n"), "{text}");
    // Again with other texts: the files of the first scenario stay.
    fs::write(folder.path().join("t.jsonl"), sample().replace("localhost", &"y".repeat(30_000)))
        .unwrap();
    converted(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml", "--force"]);
    assert!(fs::read_to_string(&asset).unwrap().contains("xxx"));
    assert!(folder.path().join("s.yaml.assets/read_file-1-2.txt").exists());
}

#[test]
fn a_tape_with_texts_of_eleven_megabytes_is_converted_and_served() {
    let folder = tempfile::tempdir().unwrap();
    let texts = ["x", "y"].map(|text| text.repeat(11 << 20));
    let tape = sample().replace("localhost", &texts[0]).replace("file1.txt", &texts[1]);
    fs::write(folder.path().join("t.jsonl"), tape).unwrap();
    let said = converted(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    assert!(said.contains("s.yaml: 2 tools from 4 calls\n  2 files ("), "{said}");
    assert!(fs::metadata(folder.path().join("s.yaml")).unwrap().len() < 10_000);
    let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_tapegate"));
    let done = check.args(["check", "s.yaml"]).current_dir(&folder).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

#[test]
fn what_was_found_is_told_as_json() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), sample()).unwrap();
    let args = ["-r", "t.jsonl", "-o", "s.yaml", "--style", "phased", "--format", "json"];
    let said: serde_json::Value = serde_json::from_str(&converted(folder.path(), &args)).unwrap();
    assert_eq!(said["tools"], 2);
    assert_eq!((said["calls"].as_u64(), said["attack_after"].as_u64()), (Some(4), Some(3)));
    assert_eq!(said["phases"], serde_json::json!(["benign", "attack"]));
    assert_eq!(said["warnings"], serde_json::json!([]));
    assert_eq!(said["bytes"], fs::metadata(folder.path().join("s.yaml")).unwrap().len());
}

#[test]
fn what_cannot_be_converted_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), "no tape\n").unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    fails(&run, 2, "`t.jsonl` is not a tape");
    fails(
        &convert(folder.path(), &["-r", "none.jsonl", "-o", "s.yaml"]),
        3,
        "cannot read `none.jsonl`",
    );
    fs::write(folder.path().join("t.jsonl"), sample().replace("localhost", &"x".repeat(2000)))
        .unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "t.jsonl/s.yaml"]);
    fails(&run, 3, "Not a directory");
    // There is a file where the folder for large texts should be.
    fs::write(folder.path().join("s.yaml.assets"), "mine").unwrap();
    let run =
        convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml", "--max-inline-bytes", "1KB"]);
    fails(&run, 3, "cannot convert `t.jsonl`");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn the_folder_of_the_output_is_created() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), sample()).unwrap();
    for arguments in [&["-o", "new/sub/s.yaml"][..], &["-o", "other/s.jsonl", "--to", "overwatch"]]
    {
        let run = convert(folder.path(), &[&["-r", "t.jsonl"], arguments].concat());
        assert_eq!(run.status.code(), Some(0), "{run:?}");
        assert!(folder.path().join(arguments[1]).is_file());
    }
}

#[test]
fn wrong_usage_is_told() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), tape(&[])).unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml", "--phase-after", "3"]);
    fails(
        &run,
        64,
        "--phase-after has no effect without --style phased\n\nhint: add --style phased",
    );
    let args = ["-r", "t.jsonl", "-o", "s.yaml", "--style", "phased", "--phase-after", "0"];
    fails(&convert(folder.path(), &args), 64, "--phase-after");
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml", "--session", "9"]);
    fails(&run, 64, "the tape has no session 9");
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "-", "--to", "overwatch"]);
    fails(&run, 64, "a tape cannot go to standard output");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_schema_that_a_scenario_names_can_be_printed() {
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_tapegate"))
        .args(["check", "--schema"])
        .output()
        .unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/scenario.schema.json");
    assert!(run.status.success() && run.stdout == fs::read(path).unwrap());
}
