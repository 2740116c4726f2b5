//! `tapegate convert`

mod dialects;
mod files;
mod phases;
mod real_clients;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub(super) fn convert(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.arg("convert").args(args).current_dir(folder).output().unwrap()
}

/// Converts, and returns the standard output.
#[track_caller]
pub(super) fn converted(folder: &Path, args: &[&str]) -> String {
    let run = convert(folder, args);
    let stderr = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{args:?}: {stderr}");
    String::from_utf8(run.stdout).unwrap()
}

const HEADER: &str = r#"{"type":"header","version":"1.0","name":"filesystem-test-001","tags":["regression","filesystem"],"recorded_at":"2025-02-04T10:00:00.000Z","upstream":"npx -y @anthropic/mcp-server-filesystem /tmp","thoughtjack_version":"0.3.0"}"#;

/// A tape of these messages, the client's and the server's in turns, after a header.
pub(super) fn tape(messages: &[(&str, &str)]) -> String {
    let mut text = format!("{HEADER}\n");
    for (place, (dir, msg)) in messages.iter().enumerate() {
        text += &format!(
            "{{\"type\":\"message\",\"seq\":{},\"ts\":\"2025-02-04T10:00:{place:02}.000000Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n",
            place + 1
        );
    }
    text
}

/// The session that the documentation converts as an example.
pub(super) fn sample() -> String {
    let call = |id: u32, name: &str, path: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}","arguments":{{"path":"{path}"}}}}}}"#
        )
    };
    let answer = |id: u32, text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
        )
    };
    let tool = |name: &str, description: &str| {
        format!(
            r#"{{"name":"{name}","description":"{description}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string"}}}},"required":["path"]}}}}"#
        )
    };
    let tools = [
        tool("read_file", "Read complete contents of a file"),
        tool("list_directory", "List directory contents"),
    ];
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, tools.join(","));
    tape(&[
        ("c2s", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#),
        ("s2c", &list),
        ("c2s", &call(2, "read_file", "/etc/hosts")),
        ("s2c", &answer(2, r"127.0.0.1 localhost\n::1 localhost\n")),
        ("c2s", &call(3, "list_directory", "/tmp")),
        ("s2c", &answer(3, r"file1.txt\nfile2.txt\nsubdir/")),
        ("c2s", &call(4, "read_file", "/etc/passwd")),
        ("s2c", &answer(4, r"root:x:0:0:root:/root:/bin/bash\n...")),
        ("c2s", &call(5, "read_file", "/etc/$HOME")),
        ("s2c", &answer(5, r"yes ${HOME}\t: # 1e3 \u0007")),
    ])
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/convert").join(name)
}

/// Compares with a golden file; `UPDATE_GOLDEN=1` rewrites it.
#[track_caller]
fn compare(name: &str, text: &str) {
    let path = golden(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{}", path.display());
}

#[test]
fn the_samples_of_the_document_are_as_the_goldens_have_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("session.jsonl"), sample()).unwrap();
    for (name, flags) in [
        ("simple.yaml", &[][..]),
        ("phased.yaml", &["--style", "phased"]),
        ("strict.yaml", &["--strict-001"]),
        ("strict-phased.yaml", &["--strict-001", "--style", "phased", "--phase-after", "2"]),
        ("by-arguments.yaml", &["--match-arguments"]),
    ] {
        let args = [&["-r", "session.jsonl", "-o", name][..], flags].concat();
        converted(folder.path(), &args);
        compare(name, &fs::read_to_string(folder.path().join(name)).unwrap());
    }
}

#[test]
fn an_empty_name_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("t.jsonl"), "").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    let arguments = ["convert", "-r", "t.jsonl", "-o", "x.yaml", "--name", ""];
    let done = command.args(arguments).current_dir(folder.path()).output().unwrap();
    assert_eq!(done.status.code(), Some(64));
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(stderr.contains("'--name <NAME>': must not be empty"), "{stderr}");
}

#[test]
fn ec_rec_001_a_tape_of_a_header_alone_is_converted_to_a_minimal_scenario() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("empty.jsonl"), format!("{HEADER}\n")).unwrap();
    let said = converted(folder.path(), &["-r", "empty.jsonl", "-o", "s.yaml"]);
    assert_eq!(said, "s.yaml: no tools, resources or prompts from no calls\n");
    compare("empty.yaml", &fs::read_to_string(folder.path().join("s.yaml")).unwrap());
}

#[test]
fn ec_rec_010_tools_that_were_never_listed_are_inferred_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let tape = tape(&[
        ("c2s", r#"{"id":1,"method":"tools/call","params":{"name":"add","arguments":{"a":1}}}"#),
        ("s2c", r#"{"id":1,"result":{"content":[{"type":"text","text":"1"}]}}"#),
    ]);
    fs::write(folder.path().join("t.jsonl"), tape).unwrap();
    let run = convert(folder.path(), &["-r", "t.jsonl", "-o", "s.yaml"]);
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(
        stderr.contains("warning: the tape has no tools/list: tools are inferred from calls, and their schemas accept anything\n"),
        "{stderr}"
    );
    assert_eq!(run.stdout, b"s.yaml: 1 tool from 1 call\n");
    compare("inferred.yaml", &fs::read_to_string(folder.path().join("s.yaml")).unwrap());
}
