//! The tables of the policy language, a flat list: its keys, their values and their meaning.

use tapegate_yaml::shape::Shape::{
    Any, Bool, Bytes, Choice, Either, List, MapOf, Name, Number, Table, Text, Whole, Word,
};
use tapegate_yaml::shape::{CheckedWord, Shape, StrayKeys};
use tapegate_yaml::table;

use super::{duration, expression, url};
use crate::command_rules::RunPattern;
use crate::glob::Glob;
use tapegate_core::lenient::folder::FolderPath;

/// The schema versions that this build reads.
const SCHEMA: Shape = Whole(1, 1);
const GLOB_SHAPE: Shape = Word(&GLOB);
const GLOBS: Shape = Either(&[GLOB_SHAPE, List(&GLOB_SHAPE)]);
const FOLDER_SHAPE: Shape = Word(&FOLDER);
const FOLDERS: Shape = Either(&[FOLDER_SHAPE, List(&FOLDER_SHAPE)]);
const OTHER_ARGUMENTS: Shape = Either(&[Choice(&["none"]), List(&Name)]);
const HINT_VALUE: Shape = Either(&[Bool, Choice(&["unknown"])]);
const HINT_VALUES: Shape = Either(&[Bool, Choice(&["unknown"]), List(&HINT_VALUE)]);
const RUN_SHAPE: Shape = Word(&RUN);
const RUNS: Shape = Either(&[RUN_SHAPE, List(&RUN_SHAPE)]);
const TEXTS: Shape = Either(&[Text, List(&Text)]);
const CLASS: Shape = Choice(&["read-only", "writes", "network", "runs-commands", "unknown"]);
const CLASSES: Shape = Either(&[CLASS, List(&CLASS)]);
const NAMES: Shape = Either(&[Name, List(&Name)]);
const TIME_SHAPE: Shape = Word(&TIME);
const URL_SHAPE: Shape = Word(&URL);
const ACTION: Shape = Choice(&["forward", "deny", "approve", "policy"]);
const PROFILE: Shape = Choice(&["production", "development"]);
const ON_TIMEOUT: Shape = Choice(&["deny", "approve"]);
const OWN_FILES: Shape = Choice(&["deny", "forward"]);
const EMBEDDED: Shape = Choice(&["log", "refuse"]);
const ON_DRIFT: Shape = Choice(&["deny", "approve", "warn", "ignore"]);
const TEST_SHAPE: Shape = Either(&[GLOB_SHAPE, Number, Bool, Table(&TEST)]);

/// Keys of other formats, and their equivalents here.
pub const STRAYS: StrayKeys = &[
    ("pattern", "there is no key `pattern` here; use `match`"),
    ("adapter", "there is no key `adapter` here; use `destination`"),
    ("policy_path", "there is no key `policy_path` here; use `policies`, a list of Cedar files"),
];

/// A pattern of names.
pub static GLOB: CheckedWord = CheckedWord {
    name: "a glob, such as `read_*`",
    numbers: false,
    check: |text| Glob::parse(text).map(drop),
    pattern: String::new,
};

pub static FOLDER: CheckedWord = CheckedWord {
    name: "an absolute folder, such as `/data` or `file:///data`",
    numbers: false,
    check: |text| FolderPath::parse(text).map(drop),
    pattern: || "^(/|file:///)[^*]*$".to_owned(),
};

/// A pattern of a command.
pub static RUN: CheckedWord = CheckedWord {
    name: "a pattern of a command, such as `git diff *`",
    numbers: false,
    check: |text| RunPattern::parse(text).map(drop),
    pattern: String::new,
};

/// A regular expression.
pub static REGEX: CheckedWord = CheckedWord {
    name: "a regular expression",
    numbers: false,
    check: |text| expression::parse(text).map(drop),
    pattern: String::new,
};

pub static TIME: CheckedWord = CheckedWord {
    name: "a time, such as `10m`",
    numbers: true,
    check: |text| duration::parse(text).map(drop),
    pattern: || r"^\s*(P.+|([0-9]+\s*[A-Za-zµ]+\s*)+)$".to_owned(),
};

pub static URL: CheckedWord = CheckedWord {
    name: "a URL",
    numbers: false,
    check: url::check,
    pattern: || "^https?://.+".to_owned(),
};

/// A server's name.
pub static SOURCE_ID: CheckedWord = CheckedWord {
    name: "the name of a server",
    numbers: false,
    check: source_id,
    pattern: || r"^(\*|[A-Za-z0-9.-][A-Za-z0-9._-]*)$".to_owned(),
};

fn source_id(text: &str) -> Result<(), String> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    match text {
        "" => Err("the name of a server must not be empty".to_owned()),
        "*" => Ok(()),
        _ if text.starts_with('_') => {
            Err(format!("`{text}` begins with `_`, which is reserved; use another name"))
        }
        _ if text.bytes().all(allowed) => Ok(()),
        _ => Err(format!(
            "`{text}` is not a server name; use letters, digits, `.`, `_` and `-`, or `*`"
        )),
    }
}

table! { POLICY "policy", Refuse, "A policy controls what an agent may see, call and receive.";
    "schema": SCHEMA, required => "Version of the policy language: 1.";
    "profile": PROFILE, own_extension =>
        "Profile to use unless `--profile` or `TAPEGATE_PROFILE` is set. Default: production.";
    "sources": List(&Table(&SOURCE)) =>
        "The servers, and what each of them exposes. Default: everything on every server.";
    "governance": Table(&GOVERNANCE), required =>
        "Which calls are forwarded, denied or held for approval.";
    "policies": List(&Table(&GROUP)), own_extension => "Groups of permitted commands.";
    "approval": MapOf(&Table(&WORKFLOW)) => "Approval workflows, by name.";
    "channels": MapOf(&Table(&CHANNEL)), own_extension =>
        "Where a hub tells people of calls that wait, by name. Workflows choose among them. Nothing is sent until a person has accepted the policy.";
    "cedar": Table(&CEDAR) => "Cedar policies, for rules with `action: policy`.";
    "redaction": Table(&REDACTION), own_extension =>
        "Which values are redacted in tapes, approvals and logs.";
    "pins": Table(&PINS), own_extension =>
        "How the definitions of servers are compared with the pinned ones.";
    "recording": Table(&RECORDING), own_extension =>
        "Whether and where sessions are recorded on tape.";
    "activity": Table(&ACTIVITY), own_extension => "Rotation and retention of the activity log.";
    "telemetry": Table(&TELEMETRY) => "Export of telemetry.";
    "principal": Table(&PRINCIPAL), own_extension => "The caller, as Cedar sees it.";
    "profiles": Table(&PROFILES), own_extension => "Settings that a profile overrides.";
}

table! { SOURCE "source", Refuse, "A server, and what it exposes.";
    "id": Word(&SOURCE_ID), required =>
        "Name of the server, as given to the shim. `*` stands for all other servers.";
    "kind": Choice(&["mcp"]) => "Protocol of the server: `mcp`.";
    "url": URL_SHAPE => "URL of the server, for a shim that is started without one.";
    "enabled": Bool => "Whether the server may be used at all. Default: true.";
    "expose": Either(&[Choice(&["all"]), Table(&EXPOSE)]) =>
        "Which items are visible and callable. Default: all.";
    "description": Text => "Description of the server, for people.";
}

table! { EXPOSE "expose", Refuse,
    "Which items of a server are visible and callable. If only `tools` is given, its globs also apply to the names of prompts and the URIs of resources. Otherwise each kind has its own list, and a missing list counts as empty.";
    "mode": Choice(&["all", "allowlist", "blocklist"]), required =>
        "`all` exposes everything, `allowlist` only what is listed, `blocklist` everything else.";
    "tools": List(&GLOB_SHAPE) => "Globs for the names of tools.";
    "prompts": List(&GLOB_SHAPE), own_extension => "Globs for the names of prompts.";
    "resources": List(&GLOB_SHAPE), own_extension =>
        "Globs for the URIs of resources. URI templates are matched as written.";
}

table! { GOVERNANCE "governance", Refuse, "Which calls are forwarded, denied or held for approval.";
    "defaults": Table(&DEFAULTS), required => "Action when no rule matches.";
    "rules": List(&Table(&RULE)) => "The rules, in order. The first rule that matches decides.";
    "builtin": Table(&BUILTIN), own_extension => "Rules that are part of every policy.";
    "embedded_messages": EMBEDDED, own_extension =>
        "Action for a message that contains another JSON-RPC message in a string, as a log of MCP traffic does: `log` forwards and logs it, `refuse` refuses it. Default: log.";
}

table! { BUILTIN "builtin", Refuse,
    "Rules that are part of every policy. Each can be lifted by name.";
    "own_files": OWN_FILES, own_extension =>
        "Action for calls whose arguments name Tapegate's own files: the policy and the files it names, `tapegate.lock`, `.tapegate/`, and the user's state and config folders. `forward` lifts the rule. Default: deny.";
}

table! { DEFAULTS "defaults", Refuse, "Action when no rule matches.";
    "action": ACTION, required => "Forward, deny, hold for approval, or ask Cedar.";
    "approval": Name, own_extension => "The approval workflow to use.";
    "policy_id": Name, own_extension =>
        "Value of `context.policy_id` in Cedar. Default: `default`.";
}

table! { RULE "rule", Refuse, "A rule. It matches a call if all of its conditions hold.";
    "id": Name, own_extension => "Name of the rule in logs. Default: its position.";
    "match": GLOBS =>
        "Globs for the names of tools and prompts and the URIs of resources that the rule applies to. Default: all.";
    "action": ACTION, required => "Forward, deny, hold for approval, or ask Cedar.";
    "source": GLOBS => "Globs for the servers that the rule applies to. Default: all.";
    "method": GLOBS, own_extension =>
        "Globs for the methods that the rule applies to, in any letter case. Default: all gated methods. Other methods are only checked against rules that name them.";
    "arguments": MapOf(&TEST_SHAPE), own_extension =>
        "Tests of the arguments: paths into them, with a test for each. For `forward`, every value that the path leads to must pass the test exactly as it is written. For `deny` and `approve`, it is enough that some server could read one of the values as one that passes.";
    "other_arguments": OTHER_ARGUMENTS, own_extension =>
        "For `forward`: the arguments, besides those that are tested, that a call may have with any value, or `none`. Without this key, other arguments are not checked.";
    "command": Table(&COMMAND), own_extension =>
        "A test of the commands that a call asks a shell to run. A rule with this key applies to `tools/call` only.";
    "annotations": Table(&ANNOTATIONS), own_extension =>
        "Tests of the annotations in the tool's pinned definition. A rule with this key applies to `tools/call` only.";
    "policy_id": Name => "Value of `context.policy_id` in Cedar. Required with `action: policy`.";
    "approval": Name =>
        "The approval workflow to use. With `action: policy`, it applies after Cedar has permitted the call. Default: the only workflow, if there is just one.";
    "description": Text => "Why the rule exists. A caller that the rule denies receives this text.";
}

table! { COMMAND "command", Refuse,
    "A test of the commands that a call asks a shell to run. The command line is read by the grammar of bash, and every command in it is decided about on its own, also inside of substitutions, functions and wrappers such as `timeout` and `bash -c`. The strictest decision is that of the call. `forward` needs a command that is certain to pass; where a rule with `deny` depends on something that is only known when the command runs, a person is asked.";
    "run": RUNS, own_extension =>
        "Patterns of the program and its arguments, one glob for each word: `git status`, `cargo test *`. A `*` that stands alone is any number of words, also none; text in quotes is literal.";
    "line": TEXTS, own_extension =>
        "Whole command lines, compared as text. A `forward` rule with this key alone permits such a line with everything in it that can be read.";
    "class": CLASSES, own_extension =>
        "What the command does: `read-only`, `writes` (files or processes), `network`, `runs-commands` (code that the line does not show) or `unknown`. `forward` permits commands that do nothing else.";
    "under": FOLDERS, own_extension =>
        "Folders. For `forward`, every argument and redirection, taken as a path, and the folder in which the command runs must be in one of them; for `deny` and `approve`, one that may be is enough. Symbolic links are not followed.";
    "redirects_to": GLOBS, own_extension =>
        "Globs for the absolute paths of files that redirections write. Without this key and without `under`, `forward` permits such redirections only if `class` includes `writes`.";
    "piped_from": RUNS, own_extension =>
        "Patterns of a command in front of it in its pipeline, such as `curl *`.";
    "in": Text, own_extension => "Path of the argument that holds the command line. Default: `command`.";
    "folder_in": Text, own_extension =>
        "Path of the argument that holds the folder in which the line runs. Default: `working_directory`.";
    "folder": FOLDER_SHAPE, own_extension =>
        "The folder in which the line runs if the arguments do not name one. Without it, relative paths are unknown.";
}

table! { GROUP "group", Refuse,
    "Commands that are permitted, as `tapegate sessions generate` writes them. Groups come after the rules and apply to the tool `bash_recorder.execute`.";
    "name": Name, required => "Name of the group in logs.";
    "description": Text => "What the commands have in common.";
    "commands": List(&Table(&GROUP_COMMAND)), required => "The commands.";
}

table! { GROUP_COMMAND "group_command", Refuse, "A permitted command.";
    "pattern": Text, required => "A pattern as in `run` of a rule, or with `exact` a whole line.";
    "frequency": Whole(0, 1_000_000_000) => "How often such commands were recorded. For people.";
    "exact": Bool, own_extension => "Whether the pattern is a whole line, compared as text. Default: false.";
    "review": Bool, own_extension =>
        "Whether a person is asked before the command runs, since it may do more than it seems to. Default: false.";
    "class": CLASS, own_extension =>
        "The most that a command may do to be permitted by the pattern, from `read-only` over `writes`, `network` and `runs-commands` to `unknown`. Default: unknown.";
    "risk": Choice(&["low", "medium", "high"]), own_extension => "How much harm such commands can do. For people.";
    "why": Text, own_extension => "The reason for the pattern. For people.";
}

table! { ANNOTATIONS "annotations", Refuse,
    "Hints that a tool gives about itself, read from its definition in `tapegate.lock`, never from the wire. Each key takes `true`, `false`, `unknown` or a list of these. A hint is unknown if the tool is not pinned, has drifted, or pins are ignored; a pinned definition without the hint has MCP's default. In `deny` and `approve` rules, an unknown hint matches every value; in `forward` rules, it matches only `unknown`.";
    "readOnlyHint": HINT_VALUES, own_extension =>
        "Whether the tool changes nothing; false by default.";
    "destructiveHint": HINT_VALUES, own_extension =>
        "Whether the tool may destroy something; true by default, unless it only reads.";
    "idempotentHint": HINT_VALUES, own_extension =>
        "Whether repeating a call changes nothing more; false by default.";
    "openWorldHint": HINT_VALUES, own_extension =>
        "Whether the tool reaches the outside world, such as the web; true by default.";
}

table! { TEST "test", Refuse,
    "A test of the value at a path of the arguments. A plain text is a glob; a plain number, true or false must be equal. If there is no value at the path, only `exists: false` passes.";
    "glob": GLOB_SHAPE, own_extension => "Text that this glob matches.";
    "regex": Word(&REGEX), own_extension => "Text in which this regular expression finds a match.";
    "under": FOLDERS, own_extension =>
        "A path in this folder, or in one of these folders: the folder itself or anything below it. `forward` accepts only absolute paths, or only URIs if the folder is a URI such as `file:///data`. `deny` and `approve` match every value that some server could read as such a path. Symbolic links are not followed.";
    "equals": Any, own_extension => "Equal to this text, number, true, false or null.";
    "in": List(&Any), own_extension => "Equal to one of these texts, numbers, true, false or null.";
    "min": Number, own_extension => "A number that is at least this.";
    "max": Number, own_extension => "A number that is at most this.";
    "exists": Bool, own_extension => "Whether there is a value at the path.";
    "optional": Bool, own_extension =>
        "Whether the tests also pass if the value is missing or null. Default: false.";
    "not": Either(&[GLOB_SHAPE, Number, Bool, Table(&TEST)]), own_extension =>
        "A value for which this one test fails.";
}

table! { WORKFLOW "workflow", Refuse, "An approval workflow.";
    "destination": Either(&[Choice(&["cli"]), Table(&DESTINATION)]) =>
        "Where approvers are asked. Default: `cli`, the terminal.";
    "timeout": TIME_SHAPE => "How long to wait for an answer, at least 5s. Default: 10m.";
    "blocking_timeout": TIME_SHAPE =>
        "How long to hold a call over HTTP, at least 5s. Default: the value of `timeout`, or 5m if that is not given.";
    "on_timeout": ON_TIMEOUT => "Action when no answer arrives in time. Default: deny.";
    "redact_fields": List(&Name) =>
        "Paths into the arguments whose values approvers do not see: `token`, `user.email`, `items[*].key`, `..secret` at any depth.";
    "approvers": List(&Name), own_extension =>
        "Users who may answer. With this list, callers cannot approve their own calls. Default: any user.";
    "quorum": Whole(2, 20), own_extension =>
        "How many of the `approvers` must approve. One denial is enough. Default: one.";
    "in_agent": List(&GLOB_SHAPE), own_extension =>
        "Clients whose user may answer in the client itself, by MCP elicitation: globs over the name by which a client introduces itself, such as `claude-code` and `codex-mcp-client`. Name only clients that show the question to their user. Not with `approvers`, since the user is the caller. Default: none.";
    "escalate": Table(&ESCALATION), own_extension =>
        "A second workflow, which a call goes to if it is still undecided after a while. Default: none.";
    "channels": List(&Name), own_extension =>
        "Channels that are told of each call, all at once; the first answer counts. They need a hub. `tapegate approvals` can always decide. Default: none.";
}

table! { ESCALATION "escalation", Refuse, "When a call that still waits goes to a second workflow.";
    "after": TIME_SHAPE, required => "How long the call waits first, at least 5s and less than `timeout`.";
    "to": Name, required =>
        "The second workflow. Its channels are told of the call, and its approvers may decide, too. Everything else stays as the first workflow says.";
}

table! { CHANNEL "channel", Refuse,
    "A way to tell people of calls that wait. A name consists of letters, digits, `_` and `-`.";
    "type": Choice(&["webhook", "ntfy", "slack", "desktop"]), required =>
        "`webhook` sends a signed POST with one-time links, `ntfy` pushes to a phone through an ntfy server, `slack` posts to a Slack channel and takes reactions and buttons, `desktop` shows a notification on the desktop of the hub's user.";
    "url": URL_SHAPE, own_extension =>
        "URL to send to: of the webhook; of the topic for `ntfy`; of the Web API for `slack`. Required for `webhook` and `ntfy`; the default for `slack` is `https://slack.com/api`.";
    "secret_env": Name, own_extension =>
        "Environment variable of the hub with the secret: the key that signs a webhook, the access token for `ntfy` and `slack`.";
    "secret_file": Name, own_extension =>
        "File with the secret, in place of `secret_env`. Relative paths start at the folder of this file.";
    "links": URL_SHAPE, own_extension =>
        "Where people reach the hub, for one-time links that approve and deny. For `webhook` the default is the hub's own address; `ntfy` has buttons only with this key.";
    "approver": Name, own_extension =>
        "For `webhook`, `ntfy` and `desktop`: the user in whose name the one-time links and the buttons decide. Default: the name of the channel.";
    "room": Name, own_extension => "For `slack`: the id of the channel to post to.";
    "users": MapOf(&Name), own_extension =>
        "For `slack`: names of users, by their ids. Users without a name here decide as `slack:ID`.";
    "signing_secret_env": Name, own_extension =>
        "For `slack`: environment variable of the hub with the app's signing secret. With it, messages have buttons, which need Slack to reach the hub at `/approvals/channels/NAME`.";
    "signing_secret_file": Name, own_extension =>
        "File with the signing secret, in place of `signing_secret_env`.";
    "approve_button": Bool, own_extension =>
        "For `desktop`: whether notifications have a button that approves, and not only one that denies. Every program of the desktop session can press it. Default: false.";
}

table! { DESTINATION "destination", Refuse, "Where approvers are asked.";
    "type": Choice(&["cli"]), required => "At the terminal: `tapegate approvals`.";
}

table! { CEDAR "cedar", Refuse, "Cedar policies. Paths are relative to the folder of this file.";
    "policies": NAMES => "Files with Cedar policies.";
    "schema": Name => "A schema file, used instead of the schema generated from the pinned tools.";
    "inline": Text, own_extension => "Cedar policies as text.";
}

table! { REDACTION "redaction", Refuse, "Which values are redacted in tapes, approvals and logs.";
    "enabled": Bool, own_extension => "Whether redaction is on. Default: true.";
    "patterns" | "rules": List(&Name), own_extension =>
        "Built-in patterns by name, as in `record --redact`: `secrets` for all of them, `entropy` for random-looking text. Default: `secrets`, if `fields` is not given either.";
    "fields": List(&Name), own_extension =>
        "Paths into messages: `params.arguments.password`, `result.content[*].text`. A single word is a key at any depth.";
    "on_wire": Bool, own_extension =>
        "Whether to redact secrets in what the server sends before the agent receives it: results, errors, notifications and requests. Default: false.";
}

table! { PINS "pins", Refuse,
    "How the definitions of servers are compared with the pinned ones, which are in the lock file.";
    "on_drift": ON_DRIFT, own_extension =>
        "Action for calls to an item that is not pinned or differs from its pin. Default: deny.";
    "approval": Name, own_extension => "The approval workflow to use with `on_drift: approve`.";
    "lock": Name, own_extension =>
        "The lock file, relative to the folder of this file. Default: `tapegate.lock`.";
}

table! { RECORDING "recording", Refuse, "Whether and where sessions are recorded on tape.";
    "enabled": Bool, own_extension => "Whether to record tapes. Default: true.";
    "folder": Name, own_extension => "Folder for the tapes. Default: a folder in the state folder.";
    "retention": TIME_SHAPE, own_extension => "How long tapes are kept. Default: no limit.";
}

table! { ACTIVITY "activity", Refuse, "Rotation and retention of the activity log.";
    "rotate_bytes": Bytes, own_extension =>
        "Size at which a new file is started, at least 64kb. Default: 64mb.";
    "retention": TIME_SHAPE, own_extension => "How long full files are kept. Default: no limit.";
}

table! { PRINCIPAL "principal", Refuse,
    "The caller, as Cedar sees it. Attributes that are not given are found at run time.";
    "name": Name, own_extension => "The application or user. Default: the user who runs the shim.";
    "namespace": Name, own_extension => "Namespace that the caller runs in. Only for Cedar.";
    "service_account": Name, own_extension =>
        "Service account that the caller runs as. Only for Cedar.";
    "roles": List(&Name), own_extension => "Roles of the caller. Only for Cedar.";
}

table! { PROFILES "profiles", Refuse, "Settings that a profile overrides.";
    "production": Table(&OVERRIDES), own_extension =>
        "Overrides for production, which enforces the policy.";
    "development": Table(&OVERRIDES), own_extension =>
        "Overrides for development, which only logs what production would stop.";
}

table! { OVERRIDES "overrides", Refuse,
    "Settings that a profile overrides. Other settings stay as they are in the policy.";
    "approval": Table(&OVERRIDES_APPROVAL), own_extension =>
        "Overrides for all workflows. Only for production: development holds no calls.";
    "redaction": Table(&OVERRIDES_REDACTION), own_extension => "Overrides for redaction.";
    "pins": Table(&OVERRIDES_PINS), own_extension => "Overrides for pins.";
    "recording": Table(&SWITCH), own_extension => "Overrides for recording.";
    "telemetry": Table(&SWITCH), own_extension => "Overrides for telemetry.";
}

table! { OVERRIDES_APPROVAL "overrides_approval", Refuse, "Overrides for all workflows.";
    "timeout": TIME_SHAPE, own_extension => "How long to wait for an answer.";
    "blocking_timeout": TIME_SHAPE, own_extension => "How long to hold a call over HTTP.";
    "on_timeout": ON_TIMEOUT, own_extension => "Action when no answer arrives in time.";
}

table! { OVERRIDES_REDACTION "overrides_redaction", Refuse, "Overrides for redaction.";
    "on_wire": Bool, own_extension => "Whether to redact what the server sends.";
}

table! { OVERRIDES_PINS "overrides_pins", Refuse, "Overrides for pins.";
    "on_drift": ON_DRIFT, own_extension => "Action when an item has drifted.";
}

table! { SWITCH "switch", Refuse, "A section that is on or off.";
    "enabled": Bool, own_extension => "Whether the section is on.";
}

table! { TELEMETRY "telemetry", Refuse, "Export of telemetry.";
    "enabled": Bool => "Whether to export telemetry. Default: false.";
    "otlp": Table(&OTLP) => "Where telemetry is sent.";
    "sampling": Table(&SAMPLING) => "Which calls are traced.";
    "batch": Table(&BATCH) => "How spans are batched.";
    "resource": MapOf(&Text) => "Resource attributes that describe this instance.";
}

table! { OTLP "otlp", Refuse, "Where telemetry is sent.";
    "endpoint": URL_SHAPE => "URL of a collector that accepts OTLP over HTTP.";
    "protocol": Choice(&["http/protobuf", "http/json"]) =>
        "Encoding of the telemetry. Default: http/protobuf.";
    "headers": MapOf(&Text) => "Headers to send with every export.";
}

table! { SAMPLING "sampling", Refuse, "Which calls are traced.";
    "strategy": Choice(&["head"]) => "When a call is chosen: `head`, when it begins.";
    "success_sample_rate": Number => "Share of successful calls to trace, from 0 to 1. Default: 1.";
}

table! { BATCH "batch", Refuse, "How spans are batched.";
    "max_queue_size": Whole(1, 1 << 20) => "Maximum number of queued spans. Default: 2048.";
    "max_export_batch_size": Whole(1, 1 << 20) =>
        "Maximum number of spans in an export, at most `max_queue_size`. Default: 512.";
    "scheduled_delay_ms": Whole(100, 3_600_000) =>
        "Maximum delay before an export, in milliseconds. Default: 5000.";
    "export_timeout_ms": Whole(100, 3_600_000) =>
        "Timeout of an export, in milliseconds. Default: 30000.";
}
