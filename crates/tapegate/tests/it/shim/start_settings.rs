//! Every way in which a shim can fail to start: the client is told, and it is logged.

use std::fs;
use std::net::TcpListener;
use std::process::Stdio;

use super::setup::{FORWARD, answer, ask, event, events, server_got};
use crate::support::{RunningSession, SessionSetup, shim, tapegate};
use crate::tape_faults::SmallFileSystem;

/// A way to fail, and the expected result.
struct StartCase {
    name: &'static str,
    setup: fn(SessionSetup) -> SessionSetup,
    /// Parts of the message to the client.
    told: &'static [&'static str],
    error_type: &'static str,
    exit: i32,
    /// Whether the reason can be logged in the state folder of the test.
    logged: bool,
}

const SETTINGS: &str = "settings_invalid";

fn in_folder(setup: &SessionSetup, name: &str) -> String {
    setup.folder().join(name).display().to_string()
}

/// A state folder that cannot be created, even by root.
fn unwritable_state(setup: SessionSetup) -> SessionSetup {
    fs::write(setup.folder().join("file"), "").unwrap();
    let state = in_folder(&setup, "file/state");
    setup.env("TAPEGATE_HOME", &state)
}

const CASES: &[StartCase] = &[
    StartCase {
        name: "a bad profile in the environment",
        setup: |setup| setup.env("TAPEGATE_PROFILE", "strict"),
        told: &["the profile `strict` is unknown", "`production` or `development`"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a bad log level in the environment",
        setup: |setup| setup.env("TAPEGATE_LOG", "loud"),
        told: &["the log level `loud` is unknown", "TAPEGATE_LOG is"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a bad switch in the environment",
        setup: |setup| setup.env("TAPEGATE_REQUIRE_POLICY", "perhaps"),
        told: &["TAPEGATE_REQUIRE_POLICY is `perhaps`"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a misspelt variable that decides what is governed",
        setup: |setup| setup.env("TAPEGATE_REQIRE_POLICY", "1"),
        told: &["`TAPEGATE_REQIRE_POLICY` is not known", "did you mean `TAPEGATE_REQUIRE_POLICY`?"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "several bad variables",
        setup: |setup| setup.env("TAPEGATE_PROFILE", "x").env("TAPEGATE_LOG", "y"),
        told: &["2 settings are wrong", "the profile `x`", "the log level `y`"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "no server",
        setup: |setup| setup.server(&[]),
        told: &["no MCP server to govern", "Name one: `-- CMD ARGS`"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a command line with a quote too many",
        setup: |setup| setup.server(&[]).flags(&["--upstream", "npx 'x"]),
        told: &["`--upstream npx 'x` is not a command line"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a bad value of a flag",
        setup: |setup| setup.flags(&["--max-message-bytes", "many"]),
        told: &["invalid value 'many' for '--max-message-bytes", "in the client's configuration"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "flags that exclude each other",
        setup: |setup| setup.flags(&["--upstream-http", "http://127.0.0.1:1/mcp"]),
        told: &["cannot be used with"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a header of a variable that is not set",
        setup: |setup| {
            let setup = setup.server(&[]).flags(&["--upstream-http", "http://127.0.0.1:1/mcp"]);
            setup.flags(&["--header-env", "Authorization=NO_SUCH_VARIABLE"])
        },
        told: &["the variable `NO_SUCH_VARIABLE` is not set"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a bad header",
        setup: |setup| {
            let setup = setup.server(&[]).flags(&["--upstream-http", "http://127.0.0.1:1/mcp"]);
            setup.flags(&["--header", "no colon"])
        },
        told: &["header"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a bad URL of the server",
        setup: |setup| setup.server(&[]).flags(&["--upstream-http", "ftp://x"]),
        told: &["ftp://x"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
    StartCase {
        name: "a config that is not there",
        setup: |setup| setup.flags(&["--config", "none.yaml"]),
        told: &["none.yaml"],
        error_type: "policy_not_loaded",
        exit: 2,
        logged: true,
    },
    StartCase {
        name: "a config that is a folder",
        setup: |setup| setup.flags(&["--config", "/"]),
        told: &["does not load"],
        error_type: "policy_not_loaded",
        exit: 2,
        logged: false,
    },
    StartCase {
        name: "a state folder that cannot be made",
        setup: unwritable_state,
        told: &["file/state", "Not a directory"],
        error_type: "policy_not_loaded",
        exit: 2,
        logged: false,
    },
    StartCase {
        name: "a program that is not there",
        setup: |setup| setup.server(&["/no/such/server"]),
        told: &["cannot start `/no/such/server`"],
        error_type: "upstream_connection_failed",
        exit: 4,
        logged: true,
    },
    StartCase {
        name: "a bad URL of the hub",
        setup: |setup| setup.flags(&["--governance-endpoint", "nowhere"]),
        told: &["nowhere", "Start one with `tapegate hub`"],
        error_type: SETTINGS,
        exit: 64,
        logged: true,
    },
];

/// Sends the first request of a client, and returns the answer.
fn told(run: &mut RunningSession) -> serde_json::Value {
    run.send(ask(0, "initialize").as_bytes());
    answer(run, 0)
}

#[test]
fn a_session_that_cannot_start_tells_its_client_why_and_logs_it() {
    for StartCase { name, setup, told: words, error_type, exit, logged } in CASES {
        let mut run = setup(shim(FORWARD, &["log=log", "serve"])).start();
        let said = told(&mut run);
        let message = said["error"]["message"].as_str().unwrap_or_else(|| panic!("{name}: {said}"));
        assert!(message.starts_with("Tapegate: "), "{name}: {message}");
        for word in *words {
            assert!(message.contains(word), "{name}: {word}: {message}");
        }
        assert_eq!(said["error"]["data"]["error_type"], *error_type, "{name}: {said}");
        let end = run.end_of_input().exits(*exit).leaves_no_process();
        assert_eq!(server_got(end.run.folder()), "", "{name}: no server was started");
        if *logged {
            let failed = event(end.run.folder(), &[("event", "start_failed")]);
            assert_eq!(failed["level"], "error", "{name}");
            assert_eq!(failed["component"], "shim", "{name}: {failed}");
        }
    }
}

#[test]
fn a_full_disk_is_told_to_the_client() {
    let disk = SmallFileSystem::new("16k");
    fs::write(disk.path().join("filler"), vec![0; 16 << 10]).ok();
    let home = disk.path().join("state").display().to_string();
    let mut run = shim(FORWARD, &["log=log", "serve"]).env("TAPEGATE_HOME", &home).start();
    let said = told(&mut run);
    let message = said["error"]["message"].as_str().unwrap_or_else(|| panic!("{said}"));
    assert!(message.contains("No space left on device"), "{message}");
    run.end_of_input().exits(3);
}

#[test]
fn an_address_in_use_is_told_on_standard_error_and_in_the_log() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let end = shim(FORWARD, &["serve"]).flags(&["--http", &address]).run(b"");
    let end = end.exits(4).complains(&address);
    event(end.run.folder(), &[("event", "start_failed")]);
    assert_eq!(end.stdout, b"");
}

#[test]
fn by_http_a_bad_setting_is_told_to_every_client() {
    let setup = shim(FORWARD, &["serve"]).env("TAPEGATE_PROFILE", "x");
    let run = setup.flags(&["--http", "127.0.0.1:0"]).start();
    let head = ["content-type: application/json", "accept: application/json, text/event-stream"];
    let got = crate::http_peers::ask(run.port(), "POST /mcp", &head, ask(3, "initialize").trim());
    assert!(got.body.contains("the profile `x` is unknown"), "{}", got.body);
}

#[test]
fn an_unknown_flag_is_an_error_on_standard_error_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tapegate();
    command.args(["shim", "--no-such-flag", "--", "x"]).current_dir(folder.path());
    command.env("TAPEGATE_HOME", folder.path().join("state")).stdin(Stdio::piped());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // It exits by itself, although its input stays open.
    let done = child.wait_with_output().unwrap();
    assert_eq!((done.status.code(), &done.stdout[..]), (Some(64), &b""[..]));
    assert!(String::from_utf8_lossy(&done.stderr).contains("--no-such-flag"));
    assert!(!folder.path().join("state").exists());
}

#[test]
fn a_command_line_without_a_client_is_an_error_on_standard_error_alone() {
    let end = shim(FORWARD, &["serve"]).flags(&["--http", ":0", "--profile", "x"]).start();
    let end = end.end().exits(64).complains("invalid value 'x' for '--profile");
    assert!(events(end.run.folder()).is_empty());
}
