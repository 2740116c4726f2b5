//! What goes wrong: killed servers, floods, fork bombs and daemons.

use std::io::Write;
use std::process::Command;

use serde_json::{Value, json};

use super::client::{self, BashClient, entries, metadata};
use crate::support::{SeededRandom, wait_until};

#[test]
fn a_killed_server_leaves_no_process_and_its_command_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let mut client = BashClient::spawn(folder.path(), &[]);
    client.execute("echo first");
    let mark = client.mark();
    let daemon = client.mark();
    // One that ignores SIGTERM, and one that has left the session.
    let command =
        format!("trap '' TERM; setsid tail -s {daemon} -f /dev/null & tail -s {mark} -f /dev/null");
    client.ask(
        "tools/call",
        &json!({"name": "bash_recorder.execute", "arguments": {"command": command}}),
    );
    wait_until("both run", || client::is_running(&mark) && client::is_running(&daemon));
    client.kill();
    wait_until("nothing is left", || !client::is_running(&mark) && !client::is_running(&daemon));
    let recordings = folder.path().join(".cuff/recordings");
    assert_eq!(entries(&recordings).len(), 1);
    BashClient::spawn(folder.path(), &[]).close();
    let all = entries(&recordings);
    assert_eq!(all.len(), 2);
    assert_eq!((&all[1]["command"], &all[1]["interrupted"]), (&json!(command), &json!(true)));
    let sessions = metadata(&recordings);
    assert_eq!((sessions.len(), &sessions[0]["status"]), (1, &json!("interrupted")));
    assert_eq!(sessions[0]["entry_count"], 2);
    let index: Value =
        serde_json::from_str(&std::fs::read_to_string(recordings.join("index.json")).unwrap())
            .unwrap();
    assert_eq!((&index["total_sessions"], &index["total_entries"]), (&json!(1), &json!(2)));
}

#[test]
fn the_end_of_the_client_ends_everything_even_daemons() {
    let mut client = BashClient::start();
    let (mark, daemon) = (client.mark(), client.mark());
    let detached = format!(
        "setsid tail -s {daemon} -f /dev/null > /dev/null 2>&1 < /dev/null & disown; echo up"
    );
    assert_eq!(client.execute(&detached)["background_children"], true);
    let command =
        json!({"command": format!("tail -s {mark} -f /dev/null"), "run_in_background": true});
    client.call("execute", &command);
    wait_until("both run", || client::is_running(&mark) && client::is_running(&daemon));
    let entries = client.end();
    assert!(!client::is_running(&mark) && !client::is_running(&daemon));
    assert_eq!(entries[1]["interrupted"], true);
}

#[test]
fn a_gigabyte_of_output_takes_bounded_memory() {
    let mut client = BashClient::start();
    let result = client.execute("head -c 1000000000 /dev/zero | tr '\\0' 'x'; echo end");
    assert_eq!((&result["exit_code"], &result["stdout_bytes"]), (&json!(0), &json!(1_000_000_004)));
    assert!(result["stdout"].as_str().unwrap().ends_with("xend\n"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", client.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak_kb: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak_kb < 100_000, "{peak_kb} KB");
    let entry = &client.end()[0];
    assert_eq!(
        (&entry["output_truncated"], &entry["output_truncated_bytes"]),
        (&json!(true), &json!(1_000_000_004))
    );
    assert_eq!(entry["stdout"].as_str().unwrap().len(), 1_000_000);
}

#[test]
fn a_hundred_commands_run_at_once_and_all_are_recorded() {
    let mut client = BashClient::start();
    let gate = client.folder().join("gate");
    assert!(Command::new("mkfifo").arg(&gate).status().unwrap().success());
    // Each waits for a byte of its own, which comes when all have begun.
    let command = "touch begun.$$; read < gate; echo done";
    let call = json!({"name": "bash_recorder.execute", "arguments": {"command": command}});
    let ids: Vec<u64> = (0..100).map(|_| client.ask("tools/call", &call)).collect();
    let folder = client.folder().to_owned();
    let begun = || {
        let names = std::fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_str().unwrap().starts_with("begun.")).count()
    };
    wait_until("all have begun", || begun() == 100);
    // Opened for reading too, so that this does not wait.
    let mut gate = std::fs::OpenOptions::new().read(true).write(true).open(gate).unwrap();
    gate.write_all(&[b'\n'; 100]).unwrap();
    let mut answers: Vec<Value> = Vec::new();
    while answers.len() < ids.len() {
        let answer = client.receive();
        assert_eq!(answer["result"]["structuredContent"]["stdout"], "done\n", "{answer}");
        answers.push(answer["id"].clone());
    }
    answers.sort_by_key(Value::as_u64);
    assert_eq!(answers, ids.iter().map(|id| json!(id)).collect::<Vec<_>>());
    let entries = client.end();
    let numbers: Vec<u64> =
        entries.iter().map(|entry| entry["sequence_number"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=100).collect::<Vec<u64>>());
}

#[test]
fn a_fork_bomb_ends_with_its_timeout() {
    let mut client = BashClient::start();
    let mark = client.mark();
    // Bounded, so that a broken build does not take the machine with it.
    let bomb = format!(
        "bomb() {{ if [ $1 -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & fi; tail -s {mark} -f /dev/null; }}; bomb 5; wait"
    );
    let result = client.call("execute", &json!({"command": bomb, "timeout": 2}));
    assert_eq!(result["timed_out"], true);
    assert!(!client::is_running(&mark));
}

#[test]
fn a_cancelled_call_is_killed_and_gets_no_answer() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let call = json!({"name": "bash_recorder.execute", "arguments": {"command": format!("tail -s {mark} -f /dev/null")}});
    let id = client.ask("tools/call", &call);
    wait_until("it runs", || client::is_running(&mark));
    let params = json!({"requestId": id, "reason": "enough"});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    wait_until("it has ended", || !client::is_running(&mark));
    client.request("ping", &json!({}));
    assert_eq!(client.notifications, Vec::<Value>::new());
    let entry = &client.end()[0];
    assert_eq!((&entry["cancelled"], &entry["exit_code"]), (&json!(true), &Value::Null));
}

#[test]
fn a_fork_bomb_is_stopped_by_the_limit_of_processes() {
    let folder = tempfile::tempdir().unwrap();
    // The limit counts all processes of a user, and has no effect on root.
    let user = 61_235;
    std::os::unix::fs::chown(folder.path(), Some(user), Some(user)).expect("tests run as root");
    client::write_settings(folder.path(), "execution: {limits: {processes: 40}}");
    let command = client::as_user(user);
    let mut client = BashClient::spawn_command(command, folder.path(), "bash", &[]);
    let mark = client.mark();
    // A build that sets no limit gets a few thousand processes, which it must end.
    let bomb = format!(
        "bomb() {{ if [ $1 -gt 0 ]; then bomb $(($1 - 1)) & bomb $(($1 - 1)) & fi; tail -s {mark} -f /dev/null; }}; bomb 11; wait"
    );
    let result = client.call("execute", &json!({"command": bomb, "timeout": 3}));
    assert_eq!(result["timed_out"], true, "{result}");
    let said = result["stderr"].as_str().unwrap();
    assert!(said.contains("fork: retry: Resource temporarily unavailable"), "{said}");
    assert!(!client::is_running(&mark));
    assert_eq!(client.execute("echo alive")["stdout"], "alive\n");
}

#[test]
fn a_command_whose_supervisor_is_killed_is_ended_and_recorded() {
    let mut client = BashClient::start();
    let mark = client.mark();
    let command = json!({"command": format!("echo part; exec tail -s {mark} -f /dev/null")});
    let call = json!({"name": "bash_recorder.execute", "arguments": command});
    let id = client.ask("tools/call", &call);
    wait_until("it runs", || client::is_running(&mark));
    let runner = client::children(client.pid())
        .into_iter()
        .find(|(_, name)| name.starts_with("tapegate-runner\0"));
    let (runner, _) = runner.expect("it has a supervisor");
    let pid = rustix::process::Pid::from_raw(runner.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let result = client.answer(id)["result"]["structuredContent"].clone();
    assert_eq!((&result["stdout"], &result["exit_code"]), (&json!("part\n"), &Value::Null));
    assert!(result["notice"].as_str().unwrap().contains("supervisor was killed"), "{result}");
    wait_until("the command is ended", || !client::is_running(&mark));
    assert_eq!(client.execute("echo on")["stdout"], "on\n");
    let entry = &client.end()[0];
    assert_eq!((&entry["entry_id"], &entry["exit_code"]), (&result["recording_id"], &Value::Null));
    assert_eq!(entry["stdout"], "part\n");
}

#[test]
fn a_command_that_kills_its_supervisor_leaves_no_process_behind() {
    let mut client = BashClient::start();
    let mark = client.mark();
    // In a group of its own, and at once: the supervisor may not have told the shell's id yet.
    for command in [
        format!("set -m; tail -s {mark} -f /dev/null & kill -9 $PPID; sleep 1000"),
        format!("kill -9 $PPID; exec tail -s {mark} -f /dev/null"),
    ] {
        for _ in 0..5 {
            let result = client.execute(&command);
            assert!(result["notice"].as_str().unwrap().contains("supervisor was killed"));
            wait_until("the command is ended", || !client::is_running(&mark));
        }
    }
    client.end();
}

#[test]
fn servers_that_are_killed_while_they_write_lose_nothing_that_was_answered() {
    let folder = tempfile::tempdir().unwrap();
    let recordings = folder.path().join(".cuff/recordings");
    let mut dice = SeededRandom::roll();
    let mut answered = Vec::new();
    for round in 0..12_u64 {
        let mut client = BashClient::spawn(folder.path(), &[]);
        for number in 0..10 {
            let command = json!({"command": format!("echo {round}.{number}")});
            let call = json!({"name": "bash_recorder.execute", "arguments": command});
            client.ask("tools/call", &call);
        }
        // After any number of answers, and at any moment after the last of them.
        for _ in 0..dice.below(10) {
            let answer = client.receive();
            answered.push(answer["result"]["structuredContent"]["stdout"].clone());
        }
        dice.pause_us(20_000);
        client.kill();
    }
    BashClient::spawn(folder.path(), &[]).close();
    let all = entries(&recordings);
    for text in &answered {
        assert_eq!(all.iter().filter(|entry| entry["stdout"] == *text).count(), 1, "{text}");
    }
    assert!(all.len() <= 120, "{}", all.len());
    let index: Value =
        serde_json::from_str(&std::fs::read_to_string(recordings.join("index.json")).unwrap())
            .unwrap();
    let mut counted = 0;
    for session in metadata(&recordings) {
        let id = session["session_id"].as_str().unwrap();
        let lines = all.iter().filter(|entry| entry["session_id"] == id).count() as u64;
        assert_eq!(
            (&session["status"], &session["entry_count"]),
            (&json!("interrupted"), &json!(lines))
        );
        assert_eq!(index["sessions"][id]["entry_count"], lines, "{index}");
        counted += lines;
    }
    assert_eq!((&index["total_entries"], counted), (&json!(counted), all.len() as u64));
    let left = std::fs::read_dir(recordings.join("sessions")).unwrap().flatten();
    let left = left.map(|file| file.file_name().into_string().unwrap());
    let odd: Vec<String> =
        left.filter(|name| !name.ends_with(".jsonl") && !name.ends_with(".meta.json")).collect();
    assert!(odd.is_empty(), "{odd:?}");
}
