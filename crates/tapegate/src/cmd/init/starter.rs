//! The text of a first policy.

use std::fmt::Write;

use super::clients::ConfiguredServer;

const HEAD: &str = "\
# This policy defines what an agent may do with its MCP servers. `tapegate check` checks it,
# `tapegate policy explain NAME` explains how a call is decided; see also docs/policy.md.
# A change takes effect once a person has run `tapegate policy accept`.
schema: 1

# The servers, by the names that `shim --server-id` gives them. `expose` hides tools.
sources:
";

const RULES: &str =
    "  # Every other server. Without this line, servers that are not named above are refused.
  - id: \"*\"

governance:
  defaults:
    # Action when no rule matches: ask a person. `deny` would refuse the call.
    action: approve
  # The first rule that matches decides.
  rules:
    # Ask before destructive calls, even if the server does not mark them as destructive.
    - id: ask-before-destroying
      match: [\"*delete*\", \"*remove*\", \"*drop*\", \"*destroy*\", \"*wipe*\", \"*purge*\"]
      method: tools/call
      action: approve
    - id: ask-if-destructive
      method: tools/call
      annotations: { destructiveHint: true }
      action: approve

    # Forward read-only tools. Only hints of pinned tools count (`tapegate policy pin`); later
    # changes by the server do not. Until a tool is pinned, a person is asked.
    - id: reading-is-free
      method: tools/call
      annotations: { readOnlyHint: true }
      action: forward

    # Forward reads of resources and prompts, and completions, which people type.
    - id: resources-and-prompts
      method: [resources/read, resources/subscribe, subscriptions/listen, prompts/get, completion/complete]
      action: forward

    # - id: writing-in-the-project
    #   match: [write_file, edit_file]
    #   action: forward
    #   arguments:
    #     path: { under: /home/me/project }

# How approval is requested. `tapegate approvals` lists pending calls, and approves or denies them.
approval:
  default:
    destination: cli
    timeout: 10m
    on_timeout: deny
";

const MORE: &str = "
# Values to mask in tapes, approvals and logs.
redaction:
  patterns: [secrets]

# `tapegate policy pin` writes tapegate.lock. From then on, a tool whose definition differs from
# the accepted one is refused.
# pins:
#   on_drift: deny
";

/// A policy for the servers that were found.
pub(super) fn write(servers: &[ConfiguredServer]) -> String {
    let mut out = HEAD.to_owned();
    let mut ids: Vec<&str> = servers.iter().map(|server| server.id.as_str()).collect();
    ids.sort_unstable();
    // Several clients may name the same server.
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
pub(super) fn with_starter_sections(made: &str) -> String {
    format!("{made}{MORE}")
}
