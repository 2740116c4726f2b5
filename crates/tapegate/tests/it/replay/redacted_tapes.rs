//! Redacted tapes still match requests with the same secrets.

use std::fs;
use std::path::PathBuf;

use super::{MODES, exactly, lines, refusal};
use crate::support::{record, replay};

const TOKEN: &str = "ghp_a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
const OTHER: &str = "ghp_z1B2c3D4e5F6g7H8i9J0k1L2m3N4";

fn login(id: u32, token: &str, password: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"login","arguments":{{"token":"{token}","password":"{password}"}}}}}}"#
    )
}

fn answered(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"for":1}}}}"#)
}

/// A recorded login whose secrets are not on the tape, and its folder.
fn redacted(flags: &[&str]) -> (tempfile::TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("key"), "a secret of my own, long enough").unwrap();
    let key = folder.path().join("key").display().to_string();
    let flags: Vec<&str> =
        flags.iter().map(|flag| if *flag == "KEY" { &*key } else { *flag }).collect();
    let tape = folder.path().join("t.jsonl");
    let setup = record(&["serve"]).tape_at(&tape).flags(&flags);
    let end = setup.run(lines(&[login(1, TOKEN, "hunter2")]).as_bytes()).exits(0).checks();
    end.client_got(lines(&[answered(1)]).as_bytes());
    let text = fs::read_to_string(&tape).unwrap();
    assert!(!text.contains(TOKEN) && !text.contains("hunter2"), "{text}");
    (folder, tape, key)
}

#[test]
fn the_same_secret_matches_and_another_does_not() {
    let rules = ["--redact", "secrets,..password"];
    for own in [false, true] {
        let flags = if own { &["--redact-key-file", "KEY"][..] } else { &[] };
        let (_folder, tape, key) = redacted(&[&rules[..], flags].concat());
        for mode in MODES {
            let setup = || {
                let setup = replay("").tape_at(&tape).flags(&exactly(mode));
                if own { setup.flags(&["--redact-key-file", &key]) } else { setup }
            };
            let live = lines(&[login(7, TOKEN, "hunter2")]);
            let end = setup().run(live.as_bytes()).exits(0);
            end.client_got(lines(&[answered(7)]).as_bytes());
            for (token, password) in [(OTHER, "hunter2"), (TOKEN, "hunter3")] {
                let end = setup().run(lines(&[login(7, token, password)]).as_bytes()).exits(6);
                let end = end.client_got_some(&refusal(7));
                // The report contains no secret either.
                assert!(
                    !end.stderr.contains(token) && !end.stderr.contains(password),
                    "{}",
                    end.stderr
                );
                end.complains("[REDACTED:");
            }
        }
    }
}

#[test]
fn in_order_another_secret_is_a_difference_that_is_told_without_it() {
    let (_folder, tape, _) = redacted(&["--redact", "secrets,..password"]);
    let live = lines(&[login(7, TOKEN, "hunter3")]);
    let end = replay("").tape_at(&tape).run(live.as_bytes()).exits(0);
    let end = end.client_got(lines(&[answered(7)]).as_bytes()).complains("with other params");
    assert!(!end.stderr.contains("hunter3"), "{}", end.stderr);
}

#[test]
fn a_tape_that_needs_a_key_is_not_played_without_it_or_with_another() {
    let (folder, tape, _) =
        redacted(&["--redact", "secrets,..password", "--redact-key-file", "KEY"]);
    let end = replay("").tape_at(&tape).run(b"").exits(2);
    let end = end.complains("error: ").complains("--redact-key-file");
    assert_eq!(end.stdout, b"");
    let other = folder.path().join("other");
    fs::write(&other, "somebody else's secret, long enough").unwrap();
    let flags = ["--redact-key-file", other.to_str().unwrap()];
    let end = replay("").tape_at(&tape).flags(&flags).run(b"").exits(2);
    end.complains("error: ");
}

#[test]
fn a_tape_that_was_redacted_later_is_played_too() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, tape) = (folder.path().join("p.jsonl"), folder.path().join("t.jsonl"));
    let setup = record(&["serve"]).tape_at(&plain);
    setup.run(lines(&[login(1, TOKEN, "hunter2")]).as_bytes()).exits(0);
    for (from, to, rule) in [(&plain, &tape, "secrets"), (&tape, &tape, "..password")] {
        let mut command = crate::support::tapegate();
        command.arg("redact").arg(from).args(["--redact", rule]);
        match from == to {
            true => command.arg("--in-place"),
            false => command.arg("-o").arg(to),
        };
        assert!(command.status().unwrap().success());
    }
    let setup = || replay("").tape_at(&tape).flags(&["--match-mode", "by-request"]);
    let end = setup().run(lines(&[login(7, TOKEN, "hunter2")]).as_bytes()).exits(0);
    end.client_got(lines(&[answered(7)]).as_bytes());
    setup().run(lines(&[login(7, TOKEN, "hunter3")]).as_bytes()).exits(6);
}

#[test]
fn a_new_tape_of_a_redacted_one_is_redacted_as_well() {
    let (folder, tape, _) = redacted(&["--redact", "secrets,..password"]);
    let new = folder.path().join("new.jsonl");
    let flags = ["--record-to", new.to_str().unwrap(), "--match-mode", "by-request"];
    let setup = replay("").tape_at(&tape).flags(&flags).behind(&["serve"]);
    let live = lines(&[login(7, TOKEN, "hunter2"), login(8, OTHER, "hunter3")]);
    setup.run(live.as_bytes()).exits(0);
    let text = fs::read_to_string(&new).unwrap();
    for secret in [TOKEN, OTHER, "hunter2", "hunter3"] {
        assert!(!text.contains(secret), "{text}");
    }
    let setup = || replay("").tape_at(&new).flags(&["--match-mode", "by-request"]);
    let end =
        setup().run(lines(&[login(1, OTHER, "hunter3"), login(2, TOKEN, "hunter2")]).as_bytes());
    let end = end.exits(0).complains("matched 2, unmatched 0, unused 0");
    end.client_got(lines(&[answered(1), answered(2)]).as_bytes());
    setup().run(lines(&[login(1, OTHER, "hunter2")]).as_bytes()).exits(6);
}

#[test]
fn a_tape_of_parts_with_several_keys_says_that_only_one_is_known() {
    let (_one, one, _) = redacted(&["--redact", "secrets,..password"]);
    let (_two, two, _) = redacted(&["--redact", "secrets,..password"]);
    let (one, two) = (fs::read_to_string(one).unwrap(), fs::read_to_string(two).unwrap());
    let output_text = "warning: parts of the tape were redacted with different rules or keys; only those \
                 of the first part are used\n";
    for (tape, warns) in [(format!("{one}{two}"), true), (format!("{one}{one}"), false)] {
        let setup = replay(tape).flags(&["--match-mode", "by-request"]);
        let end = setup.run(lines(&[login(7, TOKEN, "hunter2")]).as_bytes()).exits(0);
        assert_eq!(end.stderr.contains(output_text), warns, "{}", end.stderr);
        end.client_got(lines(&[answered(7)]).as_bytes());
    }
}
