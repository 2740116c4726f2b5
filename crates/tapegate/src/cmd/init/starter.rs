//! The text of a policy to start with.

use std::fmt::Write;

use super::clients::Found;

const HEAD: &str = "\
# What an agent may do with its MCP servers. `tapegate check` looks this file over,
# `tapegate policy explain NAME` says what becomes of a call, docs/policy.md says more.
schema: 1

# What may be seen at all; `expose` narrows it down.
sources:
";

const RULES: &str =
    "  # Every other server. Without this line, what is not named above goes nowhere.
  - id: \"*\"

governance:
  defaults:
    # forward: send on; deny: refuse; approve: ask people; policy: ask Cedar.
    action: forward
  # The first rule that matches counts.
  rules:
    - id: ask-before-destroying
      match: [\"*delete*\", \"*remove*\", \"*drop*\", \"*destroy*\"]
      method: tools/call
      action: approve
      approval: default
    # - id: only-in-the-project
    #   match: write_file
    #   action: deny
    #   arguments:
    #     path: { not: { glob: \"/home/me/project/*\" } }

# How people are asked. `tapegate approvals` lists what waits and takes their answers.
approval:
  default:
    destination: cli
    timeout: 10m
    on_timeout: deny
";

const MORE: &str = "
# What is taken out of tapes, approvals and logs.
redaction:
  patterns: [secrets]

# Once there is a tapegate.lock, which `tapegate policy pin` writes, calls of tools that are no
# longer defined as they were accepted go nowhere.
# pins:
#   on_drift: deny
";

/// A policy for the servers that were found.
pub(super) fn write(found: &[Found]) -> String {
    let mut out = HEAD.to_owned();
    for server in found {
        let _ = writeln!(out, "  # From {}.\n  - id: \"{}\"", server.config, server.id);
        out.push_str("    # expose: { mode: blocklist, tools: [\"delete_*\"] }\n");
    }
    out + RULES + MORE
}

/// A policy that was made from tapes, with what else there is to start with.
pub(super) fn with_more(made: &str) -> String {
    format!("{made}{MORE}")
}
