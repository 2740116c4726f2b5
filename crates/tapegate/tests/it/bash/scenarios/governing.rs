//! Commands under a policy: forwarded, denied, and approved by a person.

use std::fs;
use std::path::Path;

use serde_json::json;

use super::support::{BashScenario, execute};
use crate::real_clients::approvals;
use crate::support::wait_until;

const POLICY: &str = "\
schema: 1
sources: [{ id: bash, kind: mcp }]
governance:
  defaults: { action: deny }
  rules:
    - { match: bash_recorder.execute, action: forward, command: { class: read-only } }
    - { match: bash_recorder.execute, action: approve, command: { run: \"touch *\" } }
    - { match: bash_recorder.execute, action: deny, command: { run: \"rm *\" }, description: use trash }
";

#[test]
fn a_policy_forwards_denies_and_asks() {
    let prepare = |folder: &Path| {
        fs::write(folder.join("commands.yml"), POLICY).unwrap();
        fs::write(folder.join("kept"), "").unwrap();
    };
    let approve = |folder: &Path| {
        let state = folder.join(".local/state/tapegate");
        wait_until("the gate has started", || state.exists());
        let state = state.display().to_string();
        approvals(&["list", "--wait"], &state);
        assert!(!folder.join("made").exists());
        approvals(&["approve", "--all"], &state);
    };
    let steps = json!([
        execute("ls | wc -l"),
        execute("ls; rm kept"),
        execute("make all"),
        execute("touch made")
    ]);
    let scenario = BashScenario::new(steps).flags(&["--policy", "commands.yml"]);
    scenario.prepare(&prepare).beside(&approve).check(|seen| {
        assert_eq!(seen.at(0, "exit_code"), 0);
        for (step, words) in [(1, "use trash"), (2, "read-only")] {
            let denied = seen.text(step, "exception");
            assert!(denied.contains(words) && denied.contains("Tapegate: "), "{denied}");
        }
        assert_eq!(seen.at(3, "exit_code"), 0);
        assert!(seen.path("made").exists() && seen.path("kept").exists());
        let commands: Vec<_> = seen.entries.iter().map(|entry| &entry["command"]).collect();
        assert_eq!(commands, ["ls | wc -l", "touch made"]);
    });
}
