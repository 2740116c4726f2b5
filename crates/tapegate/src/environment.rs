//! The variables that users set, as the help of the whole command line lists them. The list with
//! every variable is `docs/environment.md`, and a test holds both against the code.

/// The part of the help.
pub(crate) const HELP: &str = "\
Environment variables (flags win; docs/environment.md lists all):
  TAPEGATE_HOME                  the user's state folder [default: ~/.local/state/tapegate]
  TAPEGATE_CONFIG                the policy, as --config
  TAPEGATE_PROFILE               production or development, as --profile
  TAPEGATE_REQUIRE_POLICY        1: refuse to start without a policy, as --require-policy
  TAPEGATE_SERVER_ID             the server's name, as --server-id
  TAPEGATE_GOVERNANCE_ENDPOINT   the hub to join, as --governance-endpoint
  TAPEGATE_TOKEN_FILE            the shims' token of the hub, as --token-file
  TAPEGATE_APPROVER_TOKEN_FILE   the approvers' token of the hub, as --approver-token-file
  TAPEGATE_LOG                   error, warn, info or debug: how much is said on standard error
  TAPEGATE_MAX_TOOLS, ...        limits of scenarios
  NO_COLOR, CLICOLOR_FORCE, COLUMNS, PAGER, TZ   how output looks";
