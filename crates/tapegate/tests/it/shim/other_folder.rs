//! Sessions that a client starts outside the project whose policy it names.

use std::fs;
use std::path::Path;

use super::setup::{call, rules};
use crate::support::{shim, tapegate};

#[test]
fn what_a_named_policy_governs_is_found_in_its_project_wherever_the_shim_was_started() {
    for by_flag in [true, false] {
        let setup = shim(&rules(&[("ask", "approve")]), &["log=log", "serve"]);
        let folder = setup.folder().to_owned();
        fs::create_dir(folder.join(".tapegate")).unwrap();
        let own = folder.join("own").display().to_string();
        let config = folder.join("tapegate.yaml").display().to_string();
        // Like editors: `--config ${workspaceFolder}/tapegate.yaml`, in a folder of their own.
        let setup = setup.within(Path::new("/")).env("TAPEGATE_HOME", "");
        let setup = setup.env("XDG_STATE_HOME", &own);
        let setup = match by_flag {
            true => setup.flags(&["--config", &config]),
            false => setup.env("TAPEGATE_CONFIG", &config),
        };
        let mut run = setup.start();
        run.send(call(1, "ask").as_bytes());
        let shown = |args: &[&str]| {
            let mut command = tapegate();
            command.args(args).current_dir(&folder).env("TAPEGATE_HOME", "");
            let done = command.env("XDG_STATE_HOME", &own).output().unwrap();
            String::from_utf8_lossy(&done.stdout).into_owned()
        };
        run.until("the request for approval in the project", |_| {
            shown(&["approvals", "--format", "jsonl"]).contains("\"ask\"")
        });
        run.until("the call in the project's log", |_| {
            shown(&["log", "--format", "jsonl"]).contains("pending_approval")
        });
        assert!(folder.join(".tapegate/tapes/s").is_dir(), "the tape is the project's");
        run.end_of_input().exits(0);
    }
}
