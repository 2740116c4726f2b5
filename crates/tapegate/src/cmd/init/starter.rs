//! The text of a first policy.

use std::fmt::Write;

use super::clients::Server;

const HEAD: &str = "\
# What an agent may do with its MCP servers. `tapegate check` looks this file over,
# `tapegate policy explain NAME` says what becomes of a call, docs/policy.md says more.
# A change here takes effect once a person has run `tapegate policy accept`.
schema: 1

# The servers, by the names that `shim --server-id` gives them. `expose` hides tools.
sources:
";

const RULES: &str =
    "  # Every other server. Without this line, what is not named above is refused.
  - id: \"*\"

governance:
  defaults:
    # Whatever no rule below names: ask a person. `deny` would refuse it.
    action: approve
  # The first rule that matches counts.
  rules:
    # Whatever a server says of itself, nothing is destroyed unasked.
    - id: ask-before-destroying
      match: [\"*delete*\", \"*remove*\", \"*drop*\", \"*destroy*\", \"*wipe*\", \"*purge*\"]
      method: tools/call
      action: approve
    - id: ask-if-destructive
      method: tools/call
      annotations: { destructiveHint: true }
      action: approve

    # Tools that only read pass. Hints count as they were when a person pinned the tool
    # (`tapegate policy pin`); what a server says later does not. Until then, people are asked.
    - id: reading-is-free
      method: tools/call
      annotations: { readOnlyHint: true }
      action: forward

    # Resources and prompts are read; completions are typed by people.
    - id: resources-and-prompts
      method: [resources/read, resources/subscribe, subscriptions/listen, prompts/get, completion/complete]
      action: forward

    # - id: writing-in-the-project
    #   match: [write_file, edit_file]
    #   action: forward
    #   arguments:
    #     path: { under: /home/me/project }

# How people are asked. `tapegate approvals` lists what waits and takes their answers.
approval:
  default:
    destination: cli
    timeout: 10m
    on_timeout: deny
";

const MORE: &str = "
# What is masked in tapes, approvals and logs.
redaction:
  patterns: [secrets]

# Once there is a tapegate.lock, which `tapegate policy pin` writes, a tool that is no longer
# defined as it was accepted is refused.
# pins:
#   on_drift: deny
";

/// A policy for the servers that were found.
pub(super) fn write(servers: &[Server]) -> String {
    let mut out = HEAD.to_owned();
    let mut ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    for id in ids {
        let mut clients: Vec<&str> =
            servers.iter().filter(|one| one.id == id).map(|one| one.client.name).collect();
        clients.dedup();
        let _ = writeln!(out, "  # Of {}.\n  - id: \"{id}\"", clients.join(", "));
        out.push_str("    # expose: { mode: blocklist, tools: [\"delete_*\"] }\n");
    }
    out + RULES + MORE
}

/// A policy generated from tapes, with the rest of a first policy.
pub(super) fn with_more(made: &str) -> String {
    format!("{made}{MORE}")
}
