//! Disks that fill up or vanish: nothing passes unrecorded unless that was requested.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tapegate_core::side::Side;
use tempfile::TempDir;

use crate::http_peers::{WebRecorder, WebServer, ask, json};
use crate::support::{
    SessionSetup, check, fake_server, kept, record, request, tape, tapegate, wait_until,
};

/// A small file system of its own. It is unmounted however a test ends.
pub(crate) struct SmallFileSystem {
    folder: TempDir,
}

impl SmallFileSystem {
    pub(crate) fn new(size: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tapegate-test"]);
        let done = mount.arg(folder.path()).output().unwrap();
        let reason = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "these tests mount a small tmpfs, as root: {reason}");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for SmallFileSystem {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.folder.path()).status());
    }
}

/// A setup whose tape is on `disk` and whose server logs its input to the returned file.
fn on(disk: &SmallFileSystem, setup: SessionSetup, name: &str) -> (SessionSetup, PathBuf) {
    let log = setup.folder().join("log");
    let setup = setup.tape_at(disk.path().join(name));
    (setup.sh(&format!("exec \"$FAKE\" log={} serve", log.display())), log)
}

/// Writes requests a few at a time, so that each write is small compared with the disk.
fn trickle(mut input: fs::File, line: impl Fn(usize) -> String + Send + 'static) {
    // A pipe of one page, so that no more is read at once.
    rustix::pipe::fcntl_setpipe_size(&input, 4096).unwrap();
    std::thread::spawn(move || {
        for id in (0..3000).step_by(20) {
            let lines: String = (id..id + 20).map(&line).collect();
            if std::io::Write::write_all(&mut input, lines.as_bytes()).is_err() {
                return;
            }
        }
    });
}

/// Asserts that the summary counts what `check` finds on the tape.
#[track_caller]
fn counts_what_is_on_the_tape(said: &str, tape: &Path) {
    let (_, summary) = said.split_once("recorded ").expect("a summary");
    let (count, _) = summary.split_once(" to ").unwrap();
    let found = check(tape, 0);
    assert!(found.contains(count), "said {count}, found {found}");
}

fn requests(count: usize) -> String {
    (0..count).map(request).collect()
}

#[test]
fn a_full_disk_stops_the_session_and_the_tape_holds_exactly_what_was_forwarded() {
    for (setup, name) in [(record(&[]), "t.jsonl"), (tape(&[]), "t.jsonl")] {
        let disk = SmallFileSystem::new("64k");
        let (setup, log) = on(&disk, setup, name);
        let mut run = setup.start();
        run.send(request("\"first\"").as_bytes());
        run.lines(1);
        // The input stays open: the disk ends the session.
        let input = run.take_input();
        let _open = input.try_clone().unwrap();
        trickle(input, request::<usize>);
        let end = run.end().exits(3).leaves_no_process();
        let end = end.complains("error: the session was stopped: cannot write `");
        let end = end.complains("No space left on device").complains("hint: ");
        counts_what_is_on_the_tape(&end.stderr, end.run.tape_path());
        let on_tape = |side| {
            let theirs = kept(end.run.tape_path()).into_iter().filter(move |k| k.from == side);
            theirs.flat_map(|k| [k.bytes, b"\n".to_vec()].concat()).collect::<Vec<u8>>()
        };
        let got = String::from_utf8(end.stdout.clone()).unwrap();
        let (ours, theirs): (Vec<&str>, Vec<&str>) =
            got.lines().partition(|line| line.contains("recording stopped: "));
        assert_eq!(theirs.join("\n") + "\n", String::from_utf8(on_tape(Side::Server)).unwrap());
        assert!(!ours.is_empty(), "pending requests are answered");
        // The server may have been ended before it read everything that was sent to it.
        let read = fs::read(log).unwrap();
        assert!(on_tape(Side::Client).starts_with(&read));
    }
}

#[test]
fn a_message_larger_than_the_disk_is_not_forwarded_and_leaves_a_whole_tape() {
    let disk = SmallFileSystem::new("256k");
    let (setup, log) = on(&disk, record(&[]), "t.jsonl");
    let mut run = setup.start();
    run.send(request(1).as_bytes());
    run.lines(1);
    let big = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"m\",\"params\":\"{}\"}}\n",
        "x".repeat(900_000)
    );
    run.send(big.as_bytes());
    let end = run.end().exits(3).client_got_some("\"id\":2,\"error\"").checks();
    assert_eq!(end.tape().len(), 2);
    assert_eq!(fs::read_to_string(log).unwrap(), request(1));
}

#[test]
fn a_request_whose_answer_does_not_fit_on_the_disk_gets_an_error_in_its_place() {
    let disk = SmallFileSystem::new("256k");
    let setup = record(&["read=1", "big=1,900000", "eof"]).tape_at(disk.path().join("t.jsonl"));
    let mut run = setup.start();
    run.send(request(1).as_bytes());
    let end = run.end().exits(3).checks().leaves_no_process();
    let got = String::from_utf8(end.stdout.clone()).unwrap();
    assert_eq!(got.lines().count(), 1, "{got}");
    assert!(got.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"#), "{got}");
    assert_eq!(end.tape().len(), 1);
}

#[test]
fn a_tape_over_the_limit_for_files_is_an_error_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = Command::new("sh")
        .args(["-c", "ulimit -f 64; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_tapegate")])
        .args(["record", "-o", "t.jsonl", "--", "cat"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let big = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "m".repeat(300_000));
    // Only a part may be read before the session ends.
    std::io::Write::write_all(&mut run.stdin.take().unwrap(), big.as_bytes()).ok();
    let end = run.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&end.stderr).into_owned();
    assert!(end.status.code() == Some(3) && said.contains("File too large"), "{said}");
    check(&folder.path().join("t.jsonl"), 0);
}

#[test]
fn a_full_disk_lets_the_session_go_on_if_asked_and_it_is_said() {
    let disk = SmallFileSystem::new("64k");
    let (setup, log) = on(&disk, record(&[]), "t.jsonl");
    let mut run = setup.flags(&["--on-tape-error", "continue"]).start();
    // The recorder runs before much waits for it: what it reads at once could be larger than the disk.
    run.send(request("\"first\"").as_bytes());
    run.lines(1);
    trickle(run.take_input(), request::<usize>);
    let end = run.end();
    let end = end.exits(0).complains("warning: the session was not recorded to its end: ");
    let end = end.complains("No space left on device").checks().leaves_no_process();
    let sent = request("\"first\"") + &requests(3000);
    let replies: String = (0..3000).map(crate::support::reply).collect();
    assert_eq!(fs::read(log).unwrap(), sent.as_bytes());
    let on_tape = end.said(Side::Client);
    assert!(sent.as_bytes().starts_with(&on_tape) && !on_tape.is_empty());
    end.client_got((crate::support::reply("\"first\"") + &replies).as_bytes());
}

#[test]
fn a_full_disk_leaves_a_gzip_tape_that_reads() {
    let disk = SmallFileSystem::new("512k");
    let setup = record(&[]).tape_at(disk.path().join("t.jsonl.gz"));
    let setup = setup.flags(&["--flush-interval", "20ms"]);
    let mut run = setup.sh("exec \"$FAKE\" copy").start();
    let mut input = run.take_input();
    let tape = run.tape_path().to_owned();
    std::thread::spawn(move || {
        let mut dice = crate::support::SeededRandom::roll();
        for number in 0..20_000 {
            if number == 10 {
                wait_until("a flush", || !kept(&tape).is_empty());
            }
            // Random data does not compress.
            let noise: String = (0..60).map(|_| format!("{:016x}", dice.below(u64::MAX))).collect();
            let line = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"params\":\"{noise}\"}}\n");
            if std::io::Write::write_all(&mut input, line.as_bytes()).is_err() {
                return;
            }
        }
    });
    let end = run.end().exits(3).complains("No space left on device");
    counts_what_is_on_the_tape(&end.stderr, end.run.tape_path());
    let text = check(end.run.tape_path(), 0);
    assert!(!text.contains(" 0 messages"), "{text}");
}

#[test]
fn a_disk_too_full_for_the_first_line_is_an_error_before_the_server_starts() {
    let disk = SmallFileSystem::new("16k");
    fs::write(disk.path().join("fill"), vec![0; 64 * 1024]).ok();
    let (setup, log) = on(&disk, record(&[]), "t.jsonl");
    let end = setup.start().end().exits(3).complains("No space left on device").client_got(b"");
    assert!(!log.exists());
    assert!(!end.run.tape_path().exists(), "an empty tape would be in the way of the next try");
}

#[test]
fn a_full_disk_for_what_lies_beside_the_tape_stops_the_session_too() {
    let disk = SmallFileSystem::new("64k");
    let setup = record(&["copy"]).tape_at(disk.path().join("t.jsonl"));
    let garbage = "not json, but long enough to fill a small disk quite soon\n";
    let mut run = setup.start();
    let input = run.take_input();
    trickle(input, move |_| garbage.to_owned());
    let end = run.end().exits(3).complains("No space left on device").checks();
    let beside = crate::support::beside(end.run.tape_path());
    if !beside.exists() {
        // On a busy machine the first read can be more than the disk holds. Then nothing was kept or forwarded.
        assert_eq!(end.stdout, b"");
        return;
    }
    check(&beside, 0);
    let theirs = kept(&beside).into_iter().filter(|kept| kept.from == Side::Server).count();
    assert_eq!(end.stdout, garbage.repeat(theirs).as_bytes());
}

#[test]
fn a_read_only_or_impossible_folder_is_an_error_before_the_server_starts() {
    let disk = SmallFileSystem::new("64k");
    let done = Command::new("mount").args(["-o", "remount,ro"]).arg(disk.path()).status().unwrap();
    assert!(done.success());
    let (setup, log) = on(&disk, record(&[]), "deep/t.jsonl");
    setup.start().end().exits(3).complains("Read-only file system").client_got(b"");
    assert!(!log.exists());
    let setup = record(&["serve"]);
    fs::write(setup.folder().join("file"), "").unwrap();
    setup.tape_at("file/t.jsonl").start().end().exits(3).complains("error: cannot open `");
}

#[test]
fn a_tape_that_is_deleted_ends_the_session() {
    let setup = record(&["serve"]).flags(&["--flush-interval", "1ms"]).tape_at("gone/t.jsonl");
    let mut run = setup.start();
    run.send(request(1).as_bytes());
    run.lines(1);
    fs::remove_dir_all(run.folder().join("gone")).unwrap();
    // The file is checked at each request; the one after the first failed check ends the session.
    let many: String = (2..20_000).map(request).collect();
    run.send_aside(many.into_bytes());
    let end = run.end().exits(3).complains("the file was deleted").leaves_no_process();
    assert!(!end.stderr.contains("free some space"), "{}", end.stderr);
}

#[test]
fn a_tape_that_is_deleted_before_the_session_ends_is_missed_at_the_latest_then() {
    let setup = record(&["serve"]).flags(&["--flush-interval", "60s"]).tape_at("gone/t.jsonl");
    let mut run = setup.start();
    run.send(request(1).as_bytes());
    run.lines(1);
    fs::remove_dir_all(run.folder().join("gone")).unwrap();
    run.close_input();
    run.end().exits(3).complains("the file was deleted").leaves_no_process();
}

#[test]
fn a_server_that_cannot_be_started_costs_no_tape() {
    for flags in [&[][..], &["--force"]] {
        let folder = tempfile::tempdir().unwrap();
        let tape = folder.path().join("t.jsonl");
        fs::write(&tape, "precious").unwrap();
        let mut command = tapegate();
        command.arg("record").arg("-o").arg(&tape).args(flags).args(["--", "/no/such/server"]);
        let done = command.output().unwrap();
        assert_eq!(done.status.code(), Some(4));
        let output_text =
            "error: cannot start `/no/such/server`: No such file or directory (os error 2)\n";
        assert!(String::from_utf8_lossy(&done.stderr).starts_with(output_text));
        assert_eq!(fs::read_to_string(&tape).unwrap(), "precious");
    }
}

#[test]
fn tapes_and_the_folders_made_for_them_are_private() {
    let end = record(&["copy"]).tape_at("a/b/t.jsonl").run(b"junk\n").exits(0);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(end.run.tape_path()), 0o600);
    assert_eq!(mode(&crate::support::beside(end.run.tape_path())), 0o600);
    assert_eq!(mode(&end.run.folder().join("a/b")), 0o700);
    assert_eq!(mode(&end.run.folder().join("a")), 0o700);
}

#[test]
fn a_tape_that_is_overwritten_by_force_is_private_and_alone() {
    let setup = record(&["serve"]).flags(&["--force"]);
    fs::write(setup.tape_path(), "precious").unwrap();
    fs::set_permissions(setup.tape_path(), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(crate::support::beside(setup.tape_path()), "old").unwrap();
    let end = setup.run(request(1).as_bytes()).exits(0).checks();
    assert_eq!(end.tape().len(), 2);
    assert_eq!(fs::metadata(end.run.tape_path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!crate::support::beside(end.run.tape_path()).exists(), "it told of another tape");
}

#[test]
fn a_tape_is_never_reached_through_a_symbolic_link() {
    for force in [&[][..], &["--force"]] {
        for setup in [record(&["serve"]), tape(&["serve"])] {
            let target = setup.folder().join("target");
            fs::write(&target, "").unwrap();
            std::os::unix::fs::symlink(&target, setup.tape_path()).unwrap();
            let end = setup.flags(force).start().end().exits(3).complains("a symbolic link");
            assert_eq!(fs::read(end.run.folder().join("target")).unwrap(), b"");
        }
    }
    let setup = tape(&["serve"]).tape_at("folder");
    fs::create_dir(setup.tape_path()).unwrap();
    setup.start().end().exits(3).complains("a folder, not a regular file");
    let setup = record(&["serve"]).tape_at("fifo");
    assert!(Command::new("mkfifo").arg(setup.tape_path()).status().unwrap().success());
    setup.start().end().exits(3).complains("not a regular file");
}

#[test]
fn in_a_folder_each_session_gets_a_tape_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("tapes/");
    for _ in 0..3 {
        let mut command = tapegate();
        command.arg("record").arg("-o").arg(&place).args(["--name", "a b/../c", "--", "true"]);
        assert!(command.stdin(std::process::Stdio::null()).status().unwrap().success());
    }
    let names: Vec<_> =
        fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        let name = name.into_string().unwrap();
        assert!(name.starts_with("tape-a-b-..-c-2") && name.ends_with(".jsonl"), "{name}");
    }
}

#[test]
fn two_recorders_cannot_write_one_tape() {
    let mut first = tape(&["serve"]).start();
    first.send(request(1).as_bytes());
    first.lines(1);
    for flags in [&[][..], &["--if-exists", "append"], &["--force"]] {
        let second = tape(&["serve"]).tape_at(first.tape_path()).flags(flags);
        let second = second.run(request(3).as_bytes()).exits(0);
        let second = second.complains("is recorded to `");
        if !flags.is_empty() {
            second.complains("is being written by another process");
        }
    }
    first.send(request(2).as_bytes());
    first.lines(2);
    first.close_input();
    let end = first.end().exits(0).checks();
    assert_eq!(end.tape().len(), 4);
}

#[test]
fn a_gzip_tape_reads_like_a_plain_one_and_is_never_appended_to() {
    for (setup, footer) in [(record(&["serve"]), true), (tape(&["serve"]), false)] {
        let end = setup.tape_at("t.jsonl.gz").run(requests(300).as_bytes()).exits(0).checks();
        let path = end.run.tape_path().to_owned();
        let text = check(&path, 0);
        assert!(text.contains("600 messages (300 client, 300 server)"), "{text}");
        assert_eq!(fs::read(&path).unwrap()[..2], [0x1f, 0x8b]);
        let again = tape(&["serve"]).tape_at(&path).flags(&["--if-exists", "append"]);
        let again = again.run(request(1).as_bytes());
        again.exits(0).complains("t-2.jsonl.gz`");
        assert!(check(&path, 0).contains("600 messages (300 client, 300 server)"));
        assert!(footer || !text.contains("footer"), "{text}");
    }
}

#[test]
fn the_binary_answers_to_its_seed_names() {
    let setup = record(&["serve"]);
    let (folder, fake) = (setup.folder().to_owned(), crate::support::fake_server());
    let link = |name: &str| {
        let link = folder.join(name);
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_tapegate"), &link).unwrap();
        Command::new(link)
    };
    let run = |command: &mut Command| {
        fs::write(folder.join("in"), request(1)).unwrap();
        let input = fs::File::open(folder.join("in")).unwrap();
        let done = command.current_dir(&folder).stdin(input).output().unwrap();
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(String::from_utf8(done.stdout).unwrap(), crate::support::reply(1));
    };
    let upstream = format!("{} serve", fake.display());
    let mut jack = link("thoughtjack");
    run(jack.args(["record", "--upstream", &upstream, "--output", "session.jsonl"]).args([
        "--name",
        "filesystem-test-001",
        "--tags",
        "regression,filesystem",
    ]));
    let text = fs::read_to_string(folder.join("session.jsonl")).unwrap();
    assert!(
        text.contains("\"name\":\"filesystem-test-001\",\"tags\":[\"regression\",\"filesystem\"]")
    );
    let mut overwatch = link("overwatch-mcp-tape");
    run(overwatch.args(["--tape", "./tapes/run.jsonl", "--"]).arg(&fake).arg("serve"));
    assert_eq!(kept(&folder.join("tapes/run.jsonl")).len(), 2);
    let mut again = Command::new(folder.join("overwatch-mcp-tape"));
    run(again.args(["--out", "./tapes/out.jsonl", "--quiet", "--"]).arg(&fake).arg("serve"));
    let mut named = Command::new(folder.join("overwatch-mcp-tape"));
    run(named.args(["--tape-dir", "d", "--session", "s1", "--"]).arg(&fake).arg("serve"));
    let names: Vec<_> = fs::read_dir(folder.join("d")).unwrap().flatten().collect();
    assert!(names[0].file_name().to_str().unwrap().starts_with("tape-s1-20"), "{names:?}");
    let none = tapegate().arg("tape").current_dir(&folder).output().unwrap();
    assert_eq!(none.status.code(), Some(64));
}

#[test]
fn over_http_too_an_answer_that_does_not_fit_on_the_disk_is_an_error_in_its_place() {
    let disk = SmallFileSystem::new("256k");
    let folder = || tempfile::tempdir_in(disk.path()).unwrap();
    let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#;
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"recording "#;

    let fake = fake_server();
    let server = ["--", fake.to_str().unwrap(), "read=1", "big=1,900000", "eof"];
    let recorder = WebRecorder::start_in(folder(), &server, |_| ());
    let got = ask(recorder.port, "POST /mcp", &["Content-Type: application/json"], initialize);
    assert!(got.body.starts_with(error), "{}", got.body);
    assert_eq!(recorder.wait().code(), Some(3));

    let server = WebServer::start(|_, out| {
        let big = "x".repeat(900_000);
        let answer = json("", &format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{big}"}}"#));
        out.write_all(&answer).is_ok()
    });
    let folder = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapegate"));
    command.arg("record").arg("-o").arg(folder.path().join("t.jsonl"));
    command.args(["--upstream-http", &server.url("/mcp")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut run = command.spawn().unwrap();
    writeln!(run.stdin.as_mut().unwrap(), "{initialize}").unwrap();
    let done = run.wait_with_output().unwrap();
    let got = String::from_utf8(done.stdout).unwrap();
    assert!(got.starts_with(error) && got.lines().count() == 1, "{got}");
    assert_eq!(done.status.code(), Some(3));
}
