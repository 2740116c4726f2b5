//! `tapegate show`: a tape for people and programs. Its output at 80 and 120 columns is a golden
//! (`tests/golden/show`); `UPDATE_GOLDEN=1` rewrites it.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::support::{at_terminal, tapegate};

mod held;

pub(crate) fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/show")
}

/// A command in the folder of the goldens, under a fixed time zone.
pub(crate) fn command(columns: &str) -> Command {
    let mut command = tapegate();
    command.current_dir(golden()).env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
    command.env("COLUMNS", columns).env_remove("CLICOLOR_FORCE").stdin(Stdio::null());
    command
}

#[track_caller]
pub(crate) fn out(done: &Output) -> String {
    let err = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && err.is_empty(), "{:?} {err}", done.status);
    String::from_utf8(done.stdout.clone()).unwrap()
}

#[track_caller]
pub(crate) fn compare(name: &str, text: &str, columns: usize) {
    let long = text.lines().find(|line| line.width() > columns);
    assert_eq!(long, None, "{name}");
    let file = golden().join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, text).unwrap();
    }
    assert_eq!(text, fs::read_to_string(&file).unwrap_or_default(), "{name}");
}

fn shown(arguments: &[&str]) -> String {
    out(&command("200").arg("show").args(arguments).output().unwrap())
}

#[test]
fn a_tape_is_a_timeline_at_every_width() {
    for columns in [80, 120] {
        let done = command(&columns.to_string()).args(["show", "tape.jsonl"]).output().unwrap();
        compare(&format!("show-{columns}.txt"), &out(&done), columns);
    }
    let done = command("120").args(["show", "--full", "tape.jsonl"]).output().unwrap();
    let text = out(&done);
    compare("show-full.txt", &text, usize::MAX);
    let unsafe_letter =
        |letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}';
    assert!(!text.chars().any(unsafe_letter), "{text:?}");
}

/// More requests than lines may wait: the oldest are printed before it is known that no answer
/// comes.
#[test]
fn filters_find_every_request_without_an_answer_and_none_that_has_one() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("t.jsonl");
    let line = |seq: u32, dir: &str, msg: String| {
        format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-03-20T14:22:11.000Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
        )
    };
    let call = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let answer = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    let mut text: String = (1..=2500).map(|id| line(id, "c2s", call(id))).collect();
    // Of the first 1500, which do not fit, every second one is answered after all.
    text.extend((1..=750).map(|half| line(2500 + half, "s2c", answer(2 * half))));
    fs::write(&tape, text).unwrap();
    for filter in ["--errors", "--slow"] {
        let text = shown(&[filter, tape.to_str().unwrap()]);
        assert_eq!(text.matches("no answer").count(), 1750, "{filter}");
        let jsonl = shown(&[filter, "--format", "jsonl", tape.to_str().unwrap()]);
        assert_eq!(jsonl.lines().count(), 1750, "{filter}");
        assert!(jsonl.lines().all(|line| line.contains("\"state\":\"unanswered\"")), "{filter}");
    }
}

/// All lines of one read have the same time, so only their numbers show what came first.
#[test]
fn frames_that_are_not_messages_stand_between_the_messages_they_came_between() {
    let folder = tempfile::tempdir().unwrap();
    let note = |name: &str| format!(r#"{{"jsonrpc":"2.0","method":"notifications/{name}"}}"#);
    // In a file, so that the heading does not contain it.
    let (first, last) = (note("a"), note("b"));
    let script = format!("printf '%s\\nnoise\\n%s\\n' '{first}' '{last}'\ncat > /dev/null\n");
    fs::write(folder.path().join("server.sh"), script).unwrap();
    let mut record = tapegate();
    record.current_dir(folder.path()).env("TAPEGATE_HOME", folder.path()).stdin(Stdio::null());
    let done = record.args(["record", "-o", "t.jsonl", "--", "sh", "server.sh"]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let convert = ["convert", "-r", "t.jsonl", "-o", "o.jsonl", "--to", "overwatch"];
    let done = tapegate().current_dir(folder.path()).args(convert).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    let show = tapegate().current_dir(folder.path()).args(["show", "t.jsonl"]).output().unwrap();
    for text in [out(&show), fs::read_to_string(folder.path().join("o.jsonl")).unwrap()] {
        let place = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}: {text}"));
        assert!(place("notifications/a") < place("noise"), "{text}");
        assert!(place("noise") < place("notifications/b"), "{text}");
    }
    assert!(!fs::read_to_string(folder.path().join("o.jsonl")).unwrap().contains("after"));
}

#[test]
fn counts_are_worded_and_latencies_rounded_alike_everywhere() {
    let folder = tempfile::tempdir().unwrap();
    let line = |seq: u32, us: u32, dir: &str, msg: &str| {
        format!(
            "{{\"type\":\"message\",\"seq\":{seq},\"ts\":\"2026-03-20T14:22:11.{us:06}Z\",\"dir\":\"{dir}\",\"msg\":{msg}}}\n"
        )
    };
    let ask = line(1, 0, "c2s", r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    let tape = folder.path().join("t.jsonl");
    fs::write(&tape, ask.clone() + &line(2, 600, "s2c", r#"{"jsonrpc":"2.0","id":1,"result":{}}"#))
        .unwrap();
    let name = tape.to_str().unwrap();
    assert!(shown(&[name]).contains(" 1 ms  {}"));
    assert!(shown(&["--format", "jsonl", name]).contains("\"latency_ms\":1,"));
    let stats = command("200").args(["stats", "--format", "json", name]).output().unwrap();
    let stats: Value = serde_json::from_str(&out(&stats)).unwrap();
    assert!(stats.to_string().contains("\"max\":1"), "{stats}");
    let footer = r#"{"type":"footer","total_messages":1,"duration_ms":5,"client_messages":1,"server_messages":0}"#;
    fs::write(&tape, format!("{ask}{footer}\n")).unwrap();
    assert!(shown(&[name]).contains("end: 1 message in 5 ms"));
}

#[test]
fn a_full_standard_output_is_named() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let done = command("80").args(["show", "tape.jsonl"]).stdout(full).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{said}");
    assert!(said.contains("error: cannot write to standard output: No space left"), "{said}");
}

/// Names that are wide, long, empty, right-to-left, or contain control characters.
#[test]
fn odd_names_fit_every_width_and_no_terminal_obeys_them() {
    for columns in [80, 120] {
        for verb in ["show", "stats"] {
            let done = command(&columns.to_string()).args([verb, "odd.jsonl"]).output().unwrap();
            let text = out(&done);
            compare(&format!("odd-{verb}-{columns}.txt"), &text, columns);
            let is_unsafe = |letter: char| {
                letter != '\n' && letter.is_control()
                    || matches!(letter, '\u{200d}' | '\u{202e}' | '\u{2066}')
            };
            assert!(!text.chars().any(is_unsafe), "{text:?}");
        }
    }
}

#[test]
fn filters_choose_what_is_shown() {
    for (arguments, expected) in [
        (&["--errors"][..], &["rm", "read_file", "not a message", "tools/list"][..]),
        (&["--tool", "*_file"], &["write_file", "read_file"]),
        (&["--slow"], &["write_file", "tools/list"]),
        (&["--slow=3000"], &["tools/list"]),
        (&["--grep", "OVERWRITE"], &["elicitation/create"]),
        (&["--grep", "line one\nline"], &["write_file"]),
        (&["--tool", "nothing"], &["nothing that matches"]),
    ] {
        let text = shown(&[arguments, &["tape.jsonl"]].concat());
        let rows: Vec<&str> = text.lines().filter(|line| !line.starts_with("2026-")).collect();
        let rows: Vec<&str> =
            rows.into_iter().skip(1).filter(|line| !line.contains("   ← ")).collect();
        for word in expected {
            assert!(text.contains(word), "{arguments:?}: no {word} in {text}");
        }
        let others = ["write_file", "rm {", "read_file", "initialize", "tools/list"];
        for word in others.iter().filter(|word| !expected.iter().any(|it| word.contains(it))) {
            let parent = *word == "write_file" && expected == ["elicitation/create"];
            assert!(parent || !text.contains(word), "{arguments:?}: {word} in {text} {rows:?}");
        }
    }
    let done = command("80").args(["show", "--grep", "(", "tape.jsonl"]).output().unwrap();
    assert_eq!(done.status.code(), Some(64));
}

#[test]
fn json_is_one_document_and_jsonl_one_object_a_line() {
    let document: Vec<Value> =
        serde_json::from_str(&shown(&["--format", "json", "tape.jsonl"])).unwrap();
    let lines: Vec<Value> = shown(&["--format", "jsonl", "tape.jsonl"])
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(document, lines);
    let call = lines.iter().find(|row| row["name"] == "write_file").unwrap();
    assert_eq!(call["answer"]["latency_ms"], 2011);
    assert_eq!(call["children"][1]["method"], "elicitation/create");
    assert_eq!(call["children"][1]["answer"]["result"]["action"], "accept");
    assert_eq!(shown(&["--format", "json", "--tool", "nothing", "tape.jsonl"]), "[]\n");
    assert_eq!(shown(&["--format", "jsonl", "--tool", "nothing", "tape.jsonl"]), "");
}

#[test]
fn standard_input_compressed_tapes_and_bash_sessions_are_read() {
    let tape = fs::read(golden().join("tape.jsonl")).unwrap();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(&tape).unwrap();
    let bash = br#"{"entry_id":"e1","session_id":"s","sequence_number":1,"timestamp":"2025-01-15T14:30:52.1Z","duration_ms":1523,"command":"git status","exit_code":0,"stdout":"clean\n","stderr":""}"#;
    for (input, word) in [
        (tape, "write_file"),
        (packed.finish().unwrap(), "write_file"),
        (bash.to_vec(), "git status"),
    ] {
        let mut child = command("200")
            .args(["show", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(&input).unwrap();
        let text = out(&child.wait_with_output().unwrap());
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn what_is_not_a_tape_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x");
    fs::write(&file, "hello\nworld\n").unwrap();
    let done = command("80").arg("show").arg(&file).output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&done.stderr).contains("is not a tape"));
    let done = command("80").args(["show", "no-such-file"]).output().unwrap();
    assert_eq!(done.status.code(), Some(3));
}

#[test]
fn a_tape_in_utf_16_is_named_as_such() {
    let folder = tempfile::tempdir().unwrap();
    let text = "{\"type\":\"header\"}\n".repeat(3);
    let bytes: Vec<u8> =
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    fs::write(folder.path().join("t.jsonl"), bytes).unwrap();
    let mut command = tapegate();
    let done = command.args(["show", "t.jsonl"]).current_dir(folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("hint: it is UTF-16 text"), "{stderr}");
}

#[test]
fn slow_takes_a_duration_with_its_unit() {
    let folder = tempfile::tempdir().unwrap();
    for (flag, code) in [("--slow=1s", 3), ("--slow=500", 3), ("--slow=x", 64)] {
        let mut command = tapegate();
        command.args(["show", flag, "none.jsonl"]).current_dir(folder.path());
        let done = command.output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{stderr}");
        assert_eq!(stderr.contains("expected milliseconds such as 500"), code == 64, "{stderr}");
    }
}

#[test]
fn the_tapes_of_a_folder_are_shown_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("tapes/files");
    fs::create_dir_all(&inner).unwrap();
    let tape = |name: &str| {
        format!(
            "{{\"type\":\"header\",\"version\":\"1.0\",\"recorded_at\":\"2026-01-01T00:00:00Z\",\"upstream\":\"x\",\"thoughtjack_version\":\"1\"}}\n{{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\"msg\":{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"}}}}}}\n"
        )
    };
    fs::write(folder.path().join("tapes/a.jsonl"), tape("alpha")).unwrap();
    fs::write(inner.join("b.jsonl"), tape("beta")).unwrap();
    fs::write(folder.path().join("tapes/notes.jsonl"), "{\"note\":1}\n").unwrap();
    for word in ["show", "stats"] {
        let text = out(&command("100").arg(word).arg(folder.path()).output().unwrap());
        assert!(text.contains("alpha") && text.contains("beta"), "{text}");
    }
    fs::create_dir(folder.path().join("e")).unwrap();
    let done = command("80").arg("show").arg(folder.path().join("e")).output().unwrap();
    assert_eq!(done.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&done.stderr).starts_with("error: there is no tape in `"));
}

#[test]
fn a_running_session_is_followed_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.jsonl");
    let text = fs::read_to_string(golden().join("tape.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut child = command("80")
        .args(["show", "--follow"])
        .arg(&path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut shown = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut file = fs::File::create(&path).unwrap();
    file.lock().unwrap();
    let mut wait_for = |word: &str| {
        let found = shown.by_ref().any(|line| line.unwrap().contains(word));
        assert!(found, "{word}");
    };
    writeln!(file, "{}", lines[..3].join("\n")).unwrap();
    wait_for("initialize");
    // A call without an answer is shown after a moment, and its answer when it arrives.
    writeln!(file, "{}", lines[4]).unwrap();
    wait_for("no answer yet");
    writeln!(file, "{}", lines[8]).unwrap();
    wait_for("answer to tools/call write_file");
    writeln!(file, "{}", lines[lines.len() - 1]).unwrap();
    wait_for("end: ");
    drop(file);
    assert!(child.wait().unwrap().success());
}

#[test]
fn colours_are_used_when_they_are_asked_for() {
    let coloured = |arguments: &[&str], force: bool| {
        let mut command = command("120");
        command.args(["show", "tape.jsonl"]).args(arguments).env_remove("NO_COLOR");
        command.env_remove("TERM");
        if force {
            command.env("CLICOLOR_FORCE", "1");
        }
        out(&command.output().unwrap()).contains('\u{1b}')
    };
    assert!(!coloured(&[], false), "no terminal");
    assert!(coloured(&["--color", "always"], false));
    assert!(coloured(&[], true));
    assert!(!coloured(&["--color", "never"], true));
    let (code, shown) = at_terminal(
        command("120").args(["show", "--no-pager", "tape.jsonl"]).env("TERM", "xterm"),
        "",
    );
    assert!(code == 0 && shown.contains("\u{1b}["), "{shown}");
    let (_, shown) = at_terminal(
        command("120")
            .args(["show", "--no-pager", "tape.jsonl"])
            .env("NO_COLOR", "1")
            .env("TERM", "xterm"),
        "",
    );
    assert!(!shown.contains("\u{1b}["), "{shown}");
}

#[test]
fn a_pager_is_used_on_a_terminal_alone() {
    // The pager marks what it has read.
    let pager = "sed 's/^/PAGED /'";
    for name in ["show", "stats"] {
        let with = |flags: &[&str], pager: &str| {
            let mut command = command("120");
            command.arg(name).args(flags).arg("tape.jsonl").env("PAGER", pager);
            at_terminal(&command, "")
        };
        let (code, shown) = with(&[], pager);
        assert!(code == 0 && shown.starts_with("PAGED "), "{name}: {shown}");
        assert!(
            shown
                .lines()
                .filter(|line| !line.trim().is_empty())
                .all(|line| line.starts_with("PAGED ")),
            "{shown}"
        );
        for (flags, pager) in
            [(&["--no-pager"][..], pager), (&["--format", "json"], pager), (&[], "cat"), (&[], "")]
        {
            let (code, shown) = with(flags, pager);
            assert!(code == 0 && !shown.contains("PAGED"), "{name} {flags:?} {pager:?}: {shown}");
            assert!(shown.contains("write_file"), "{name} {flags:?} {pager:?}: {shown}");
        }
        // The shell would start without it, and the output would be lost.
        let (code, shown) = with(&[], "no-such-pager -R");
        assert!(code == 0 && shown.contains("write_file"), "{name}: {shown}");
        assert!(shown.contains("cannot start `no-such-pager -R`, which PAGER names"), "{shown}");
        // Without a terminal there is no paging.
        let done = command("120").args([name, "tape.jsonl"]).env("PAGER", pager).output().unwrap();
        assert!(!out(&done).contains("PAGED"), "{name}");
    }
}

#[test]
fn what_the_log_beside_a_tape_says_was_decided_is_shown() {
    let folder = crate::tidy::root().join("tests/golden/log");
    let tape = "tapes/files/2026-03-20T14-22-11-804Z-0123456789abcdef.jsonl";
    let show = |arguments: &[&str], folder: &Path| {
        out(&command("200").arg("show").args(arguments).current_dir(folder).output().unwrap())
    };
    let text = show(&[tape], &folder);
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap().to_owned();
    assert!(row("read_file").contains("allowed"), "{text}");
    assert!(row("write_file").contains("ada"), "{text}");
    assert!(row("delete_file").contains("denied"), "{text}");
    let document: Vec<Value> =
        serde_json::from_str(&show(&["--format", "json", tape], &folder)).unwrap();
    let call = document.iter().find(|row| row["name"] == "read_file").unwrap();
    assert_eq!(call["decision"], "forward", "{call}");
    // The same tape elsewhere shows nothing from the log, unless the log is named.
    let elsewhere = tempfile::tempdir().unwrap();
    let name = Path::new(tape).file_name().unwrap();
    fs::copy(folder.join(tape), elsewhere.path().join(name)).unwrap();
    let name = name.to_str().unwrap();
    let alone = command("200")
        .args(["show", name])
        .env("TAPEGATE_HOME", elsewhere.path())
        .current_dir(elsewhere.path())
        .output()
        .unwrap();
    assert!(!out(&alone).contains("ada"), "{alone:?}");
    let state = folder.to_str().unwrap();
    assert!(show(&["--state", state, name], elsewhere.path()).contains("ada"));
}
