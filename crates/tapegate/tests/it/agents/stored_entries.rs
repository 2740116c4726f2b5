//! Command lines that a client may split are stored for as long as they are installed.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::{AgentMachine, POLICY, mode};
use crate::support::fake_server;

const CONFIG: &str = "home/.cursor/mcp.json";

/// A machine with a policy, and a server with a blank in its arguments beside one without.
fn machine() -> (AgentMachine, String) {
    let machine = AgentMachine::new();
    machine.write("home/project/tapegate.yaml", POLICY);
    let server = fake_server().display().to_string();
    let odd = json!({ "command": server, "args": ["mcp=rm", "my files"] });
    let text = json!({ "mcpServers": { "odd": odd, "plain": { "command": "p" } } }).to_string();
    machine.write(CONFIG, &text);
    (machine, text)
}

/// The stored command lines.
fn stored(machine: &AgentMachine) -> Vec<PathBuf> {
    let entries = fs::read_dir(machine.at("state/entries")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// The words of an entry of the config.
fn args(machine: &AgentMachine, name: &str) -> Vec<String> {
    let config: Value = serde_json::from_str(&machine.read(CONFIG)).unwrap();
    let words = config["mcpServers"][name]["args"].as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// What the shim of the server `odd` answers to a call that is denied.
fn answer(machine: &AgentMachine) -> String {
    let config: Value = serde_json::from_str(&machine.read(CONFIG)).unwrap();
    let mut shim = Command::new(config["mcpServers"]["odd"]["command"].as_str().unwrap());
    shim.args(args(machine, "odd")).current_dir("/").env_clear();
    shim.env("HOME", machine.at("home")).env("TAPEGATE_HOME", machine.at("state"));
    let mut shim = shim.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"rm"}}"#;
    writeln!(shim.stdin.take().unwrap(), "{call}").unwrap();
    String::from_utf8(shim.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn they_are_private_used_by_the_shim_and_gone_with_the_installation() {
    let (machine, original) = machine();
    machine.ok("install cursor");
    assert_eq!(args(&machine, "odd").len(), 3);
    assert_eq!(args(&machine, "odd")[..2], ["shim", "--entry"]);
    assert!(args(&machine, "plain").contains(&"--require-policy".to_owned()));
    let [file] = &stored(&machine)[..] else { panic!("{:?}", stored(&machine)) };
    assert_eq!(mode(file), 0o600);
    assert!(answer(&machine).contains("-32014"), "{}", answer(&machine));
    // People see what the server runs.
    assert!(machine.ok("list").contains("'mcp=rm' 'my files'"), "{}", machine.ok("list"));
    let first = machine.read(CONFIG);
    assert!(machine.ok("install cursor").contains("nothing to change"));
    assert_eq!((machine.read(CONFIG), stored(&machine).len()), (first, 1));
    // `unwrap` is for sessions.
    let mut unwrap = machine.command("");
    let program = unwrap.get_program().to_owned();
    unwrap = Command::new(program);
    unwrap.arg("unwrap").current_dir(machine.at("home/project"));
    unwrap.env("HOME", machine.at("home")).env("TAPEGATE_HOME", machine.at("state"));
    assert!(unwrap.output().unwrap().status.success());
    assert_eq!(stored(&machine).len(), 1);
    machine.ok("uninstall cursor --server plain");
    assert_eq!(stored(&machine).len(), 1);
    machine.ok("uninstall cursor");
    assert_eq!((machine.read(CONFIG), stored(&machine)), (original, Vec::new()));
}

#[test]
fn what_others_have_changed_stays_and_a_copy_keeps_what_it_refers_to() {
    let (machine, original) = machine();
    machine.ok("install cursor");
    // A client that writes its whole config again, with a setting in the entry.
    let mut config: Value = serde_json::from_str(&machine.read(CONFIG)).unwrap();
    config["mcpServers"]["odd"]["env"] = json!({ "A": "1" });
    machine.write(CONFIG, &serde_json::to_string_pretty(&config).unwrap());
    machine.ok("uninstall cursor");
    let mut expected: Value = serde_json::from_str(&original).unwrap();
    expected["mcpServers"]["odd"]["env"] = json!({ "A": "1" });
    assert_eq!(serde_json::from_str::<Value>(&machine.read(CONFIG)).unwrap(), expected);
    assert_eq!(stored(&machine), Vec::<PathBuf>::new());
    // An entry under another name is not ours to put back, and goes on working.
    machine.write(CONFIG, &original);
    machine.ok("install cursor");
    let text = machine.read(CONFIG).replace("\"odd\":", "\"renamed\":");
    machine.write(CONFIG, &text);
    machine.ok("uninstall cursor");
    assert!(machine.read(CONFIG).contains("\"--entry\""), "{}", machine.read(CONFIG));
    assert_eq!(stored(&machine).len(), 1);
    // A config that is gone needs nothing any more.
    machine.write(CONFIG, &original);
    machine.ok("install cursor");
    fs::remove_file(machine.at(CONFIG)).unwrap();
    assert!(machine.ok("uninstall cursor").contains("it is gone"));
    assert_eq!(stored(&machine), Vec::<PathBuf>::new());
}

#[test]
fn one_that_is_lost_or_has_another_policy_is_written_again() {
    let (machine, original) = machine();
    machine.ok("install cursor");
    let text = fs::read_to_string(&stored(&machine)[0]).unwrap();
    fs::remove_file(&stored(&machine)[0]).unwrap();
    assert!(answer(&machine).contains("`tapegate agents install`"), "{}", answer(&machine));
    machine.ok("install cursor");
    assert_eq!(fs::read_to_string(&stored(&machine)[0]).unwrap(), text);
    let other = machine.write("home/other.yaml", POLICY).display().to_string();
    machine.ok(&format!("install cursor --config {other}"));
    assert!(fs::read_to_string(&stored(&machine)[0]).unwrap().contains("/home/other.yaml"));
    // A dry run says what an id stands for, and stores nothing.
    machine.ok("uninstall cursor");
    let done = machine.run("install cursor --dry-run");
    let text = super::errors(&done);
    assert!(text.contains("stands for: shim --require-policy"), "{text}");
    assert_eq!((machine.read(CONFIG), stored(&machine)), (original, Vec::new()));
}
