//! A clock that is set while calls wait, by libfaketime from Debian.

use std::fs;
use std::path::Path;

use super::super::super::setup::{answer, call, server_got};
use super::{HubProcess, event, policy, receiver, start_accepted_with, text, webhook};
use crate::http_peers::WebServer;
use crate::support::{RunningSession, replace_file};

const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";

/// Variables that have a process read its clock's offset from a file.
fn faked(offset: &Path) -> Vec<(&'static str, String)> {
    assert!(Path::new(LIBRARY).exists(), "libfaketime is missing; `scripts/peers` installs it");
    vec![
        ("LD_PRELOAD", LIBRARY.to_owned()),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_string_lossy().into_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
    ]
}

/// A hub and a shim whose clock is read from this file, for calls in this workflow.
fn stepped(offset: &Path, hooks: &WebServer, workflow: &str) -> (HubProcess, RunningSession) {
    fs::write(offset, "+0").unwrap();
    let variables = faked(offset);
    let environment: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let workflow = format!("channels: [hook]{workflow}");
    let hub = start_accepted_with(&policy(&workflow, &webhook("hook", hooks)), &environment);
    let mut setup = hub.shim(&["log=log", "serve"]);
    for (name, value) in &environment {
        setup = setup.env(name, value);
    }
    let run = setup.start();
    (hub, run)
}

#[test]
fn a_call_runs_out_of_time_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let hooks = receiver("200 OK");
    let (hub, mut run) = stepped(&offset, &hooks, ", timeout: 5s");
    for (at, step) in ["-3h", "+2d"].into_iter().enumerate() {
        let id = at as u64 + 1;
        run.send(call(id, &format!("ask_{id}")).as_bytes());
        let asked = event(&hooks.wait(2 * at + 1)[2 * at]);
        replace_file(&offset, step);
        assert_eq!(answer(&run, id)["error"]["code"], -32008, "{step}");
        let settled = event(&hooks.wait(2 * at + 2)[2 * at + 1]);
        assert_eq!(text(&settled["outcome"]), "expired", "{step}");
        assert_eq!(hub.follow(text(&asked["approve_url"])), 409, "{step}");
    }
    assert!(!server_got(run.folder()).contains("ask_"));
}

#[test]
fn an_answer_counts_also_if_the_clock_was_set_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let offset = folder.path().join("offset");
    let hooks = receiver("200 OK");
    let (hub, mut run) = stepped(&offset, &hooks, "");
    for (at, step) in ["+5m", "-3h", "+2d"].into_iter().enumerate() {
        let id = at as u64 + 1;
        run.send(call(id, &format!("ask_{id}")).as_bytes());
        let asked = event(&hooks.wait(2 * at + 1)[2 * at]);
        replace_file(&offset, step);
        assert_eq!(hub.follow(text(&asked["approve_url"])), 200, "{step}");
        assert_eq!(answer(&run, id)["result"]["for"], id, "{step}");
        hooks.wait(2 * at + 2);
    }
}
