//! Arguments of other types and spellings, against servers that convert them: pydantic behind
//! FastMCP, and zod's `coerce` behind the official TypeScript SDK.
//!
//! Each spelling is first sent directly to the server, to learn how it reads it.

mod table;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::tempdir;

use self::table::{ConversionRow, TABLE};
use super::target_server::SERVER_S_MAX;
use crate::peers;
use crate::shim::setup::{call_with, events, messages};
use crate::support::shim;

/// The lines of a session: its opening, and a call for each spelling, with ids from 1.
fn session() -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut lines = format!("{hello}\n{ready}\n");
    for (id, (row, text)) in calls().enumerate() {
        lines.push_str(&call_with(id + 1, row.tool, &format!("{{\"value\":{text}}}")));
    }
    lines
}

/// Every row with each of its spellings.
fn calls() -> impl Iterator<Item = (&'static ConversionRow, &'static str)> {
    TABLE.iter().flat_map(|row| row.spellings.iter().chain(row.plain).map(move |text| (row, *text)))
}

/// The answers of a server without a proxy, by id.
fn direct(server: &[String]) -> BTreeMap<u64, Value> {
    let mut command = peers::bounded(SERVER_S_MAX);
    command.args(server).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let text = session();
    let writer = std::thread::spawn(move || {
        input.write_all(text.as_bytes()).unwrap();
        input
    });
    let mut answers = BTreeMap::new();
    for line in BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok) {
        let message: Value = serde_json::from_str(&line).unwrap();
        answers.extend(message["id"].as_u64().map(|id| (id, message)));
        if answers.len() == calls().count() + 1 {
            break;
        }
    }
    drop(writer.join().unwrap());
    server.wait().unwrap();
    answers
}

/// The answers of a server behind a shim with one rule per row, and the log of what it ran.
fn behind(
    server: impl Fn(&str) -> Vec<String>,
    action: &str,
    default: &str,
) -> (BTreeMap<u64, Value>, String) {
    let rules: String = TABLE
        .iter()
        .map(|ConversionRow { tool, test, .. }| {
            format!("    - {{ match: {tool}, action: {action}, arguments: {{ {test} }} }}\n")
        })
        .collect();
    let policy =
        format!("schema: 1\ngovernance:\n  defaults: {{ action: {default} }}\n  rules:\n{rules}");
    let setup = shim(&policy, &[]);
    let ran = setup.folder().join("ran");
    let argv = server(&ran.display().to_string());
    let mut run = setup.server(&argv.iter().map(String::as_str).collect::<Vec<_>>()).start();
    run.send(session().as_bytes());
    let mut answers = BTreeMap::new();
    run.until("an answer to every call", |run| {
        let got = run.got();
        let whole = got.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let ids = |message: Value| Some((message["id"].as_u64()?, message));
        answers = messages(&got[..whole]).into_iter().filter_map(ids).collect();
        answers.len() == calls().count() + 1
    });
    let refused = answers.values().filter(|answer| answer["error"]["code"] == -32014).count();
    let is_noted = |event: &Value| event["governance_decision"] == "deny";
    run.until("a note of every refusal", |run| {
        events(run.folder()).iter().filter(|event| is_noted(event)).count() == refused
    });
    let ran = fs::read_to_string(ran).unwrap_or_default();
    run.end_of_input();
    (answers, ran)
}

/// What a tool reports to have read; `None` if it did not run.
fn read(answer: &Value) -> Option<Value> {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().filter(|_| result["isError"] != true)?;
    serde_json::from_str(text).ok()
}

fn hold(server: impl Fn(&str) -> Vec<String>, least: usize) {
    let folder = tempdir().unwrap();
    let log = |name: &str| folder.path().join(name).display().to_string();
    let alone = direct(&server(&log("alone")));
    let (denied, ran) = behind(&server, "deny", "forward");
    let (forwarded, _) = behind(&server, "forward", "deny");
    let mut about = 0;
    for (id, (row, text)) in (1_u64..).zip(calls()) {
        let tool = row.tool;
        let reads = read(&alone[&id]);
        let is_about = reads.as_ref().is_some_and(row.is_about);
        if is_about {
            about += 1;
            assert_eq!(denied[&id]["error"]["code"], -32014, "{tool} reads {text} as {reads:?}");
        }
        if row.plain.contains(&text) {
            assert!(!is_about && denied[&id]["error"].is_null(), "{tool} {text}: {}", denied[&id]);
        }
        // A rule that forwards must forward only values it covers, as the server reads them.
        let passed = read(&forwarded[&id]);
        assert!(passed.is_none_or(|read| (row.is_about)(&read)), "{tool} {text} is forwarded");
    }
    assert!(about >= least, "{about} spellings were read as what a rule is about");
    for line in ran.lines() {
        let (tool, value) = line.split_once(' ').unwrap();
        let row = TABLE.iter().find(|row| row.tool == tool).unwrap();
        assert!(!(row.is_about)(&serde_json::from_str(value).unwrap()), "{line} ran");
    }
    let first = &forwarded[&1];
    assert!(first["result"].is_object(), "the exact value is forwarded: {first}");
}

#[test]
fn what_pydantic_reads_as_a_rule_has_it_is_stopped() {
    let script = peers::peer("convert-server.py");
    let python = peers::tools("py1/bin/python");
    hold(|log| vec![python.clone(), script.clone(), log.to_owned()], 50);
}

#[test]
fn what_zod_reads_as_a_rule_has_it_is_stopped() {
    let script = peers::peer("convert-server.mjs");
    hold(|log| vec![peers::node(), script.clone(), log.to_owned()], 50);
}
