//! The tables of the policy language, a flat list: its keys, their values and their meaning.

use tapegate_yaml::shape::Shape::{
    Any, Bool, Bytes, Choice, Either, List, MapOf, Name, Number, Text, Whole,
};
use tapegate_yaml::shape::{CheckedWord, Shape, StrayKeys, Table, TableEntry, UnknownKeys};

use super::{duration, expression, url};
use crate::glob::Glob;
use tapegate_core::lenient::folder::FolderPath;

/// The schema versions that this build reads.
const SCHEMA: Shape = Whole(1, 1);
const GLOB_SHAPE: Shape = Shape::Word(&GLOB);
const GLOBS: Shape = Either(&[GLOB_SHAPE, List(&GLOB_SHAPE)]);
const FOLDER_SHAPE: Shape = Shape::Word(&FOLDER);
const FOLDERS: Shape = Either(&[FOLDER_SHAPE, List(&FOLDER_SHAPE)]);
const OTHER_ARGUMENTS: Shape = Either(&[Choice(&["none"]), List(&Name)]);
const HINT_VALUE: Shape = Either(&[Bool, Choice(&["unknown"])]);
const HINT_VALUES: Shape = Either(&[Bool, Choice(&["unknown"]), List(&HINT_VALUE)]);
const NAMES: Shape = Either(&[Name, List(&Name)]);
const TIME_SHAPE: Shape = Shape::Word(&TIME);
const URL_SHAPE: Shape = Shape::Word(&URL);
const ACTION: Shape = Choice(&["forward", "deny", "approve", "policy"]);
const PROFILE: Shape = Choice(&["production", "development"]);
const ON_TIMEOUT: Shape = Choice(&["deny", "approve"]);
const OWN_FILES: Shape = Choice(&["deny", "forward"]);
const EMBEDDED: Shape = Choice(&["log", "refuse"]);
const ON_DRIFT: Shape = Choice(&["deny", "approve", "warn", "ignore"]);
const TEST_SHAPE: Shape = Either(&[GLOB_SHAPE, Number, Bool, Shape::Table(&TEST)]);

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

/// A folder.
pub static FOLDER: CheckedWord = CheckedWord {
    name: "an absolute folder, such as `/data` or `file:///data`",
    numbers: false,
    check: |text| FolderPath::parse(text).map(drop),
    pattern: || "^(/|file:///)[^*]*$".to_owned(),
};

/// A regular expression.
pub static REGEX: CheckedWord = CheckedWord {
    name: "a regular expression",
    numbers: false,
    check: |text| expression::parse(text).map(drop),
    pattern: String::new,
};

/// A time.
pub static TIME: CheckedWord = CheckedWord {
    name: "a time, such as `10m`",
    numbers: true,
    check: |text| duration::parse(text).map(drop),
    pattern: || r"^\s*(P.+|([0-9]+\s*[A-Za-zµ]+\s*)+)$".to_owned(),
};

/// A URL.
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

/// A policy.
pub static POLICY: Table = Table {
    name: "policy",
    about: "A policy controls what an agent may see, call and receive.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("schema", SCHEMA, "Version of the policy language: 1.").required(),
        TableEntry::new(
            "profile",
            PROFILE,
            "Profile to use unless `--profile` or `TAPEGATE_PROFILE` is set. Default: production.",
        )
        .own_extension(),
        TableEntry::new(
            "sources",
            List(&Shape::Table(&SOURCE)),
            "The servers, and what each of them exposes. Default: everything on every server.",
        ),
        TableEntry::new(
            "governance",
            Shape::Table(&GOVERNANCE),
            "Which calls are forwarded, denied or held for approval.",
        )
        .required(),
        TableEntry::new(
            "approval",
            MapOf(&Shape::Table(&WORKFLOW)),
            "Approval workflows, by name.",
        ),
        TableEntry::new(
            "cedar",
            Shape::Table(&CEDAR),
            "Cedar policies, for rules with `action: policy`.",
        ),
        TableEntry::new(
            "redaction",
            Shape::Table(&REDACTION),
            "Which values are redacted in tapes, approvals and logs.",
        )
        .own_extension(),
        TableEntry::new(
            "pins",
            Shape::Table(&PINS),
            "How the definitions of servers are compared with the pinned ones.",
        )
        .own_extension(),
        TableEntry::new(
            "recording",
            Shape::Table(&RECORDING),
            "Whether and where sessions are recorded on tape.",
        )
        .own_extension(),
        TableEntry::new(
            "activity",
            Shape::Table(&ACTIVITY),
            "Rotation and retention of the activity log.",
        )
        .own_extension(),
        TableEntry::new("telemetry", Shape::Table(&TELEMETRY), "Export of telemetry."),
        TableEntry::new("principal", Shape::Table(&PRINCIPAL), "The caller, as Cedar sees it.")
            .own_extension(),
        TableEntry::new("profiles", Shape::Table(&PROFILES), "Settings that a profile overrides.")
            .own_extension(),
    ]],
};

/// A server.
pub static SOURCE: Table = Table {
    name: "source",
    about: "A server, and what it exposes.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "id",
            Shape::Word(&SOURCE_ID),
            "Name of the server, as given to the shim. `*` stands for all other servers.",
        )
        .required(),
        TableEntry::new("kind", Choice(&["mcp"]), "Protocol of the server: `mcp`."),
        TableEntry::new(
            "url",
            URL_SHAPE,
            "URL of the server, for a shim that is started without one.",
        ),
        TableEntry::new("enabled", Bool, "Whether the server may be used at all. Default: true."),
        TableEntry::new(
            "expose",
            Either(&[Choice(&["all"]), Shape::Table(&EXPOSE)]),
            "Which items are visible and callable. Default: all.",
        ),
        TableEntry::new("description", Text, "Description of the server, for people."),
    ]],
};

/// Which items are visible and callable.
pub static EXPOSE: Table = Table {
    name: "expose",
    about: "Which items of a server are visible and callable. If only `tools` is given, its globs also apply to the names of prompts and the URIs of resources. Otherwise each kind has its own list, and a missing list counts as empty.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "mode",
            Choice(&["all", "allowlist", "blocklist"]),
            "`all` exposes everything, `allowlist` only what is listed, `blocklist` everything else.",
        )
        .required(),
        TableEntry::new("tools", List(&GLOB_SHAPE), "Globs for the names of tools."),
        TableEntry::new("prompts", List(&GLOB_SHAPE), "Globs for the names of prompts.").own_extension(),
        TableEntry::new(
            "resources",
            List(&GLOB_SHAPE),
            "Globs for the URIs of resources. URI templates are matched as written.",
        )
        .own_extension(),
    ]],
};

/// The rules for calls.
pub static GOVERNANCE: Table = Table {
    name: "governance",
    about: "Which calls are forwarded, denied or held for approval.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("defaults", Shape::Table(&DEFAULTS), "Action when no rule matches.")
            .required(),
        TableEntry::new(
            "rules",
            List(&Shape::Table(&RULE)),
            "The rules, in order. The first rule that matches decides.",
        ),
        TableEntry::new("builtin", Shape::Table(&BUILTIN), "Rules that are part of every policy.").own_extension(),
        TableEntry::new(
            "embedded_messages",
            EMBEDDED,
            "Action for a message that contains another JSON-RPC message in a string, as a log of MCP traffic does: `log` forwards and logs it, `refuse` refuses it. Default: log.",
        )
        .own_extension(),
    ]],
};

/// The built-in rules.
pub static BUILTIN: Table = Table {
    name: "builtin",
    about: "Rules that are part of every policy. Each can be lifted by name.",
    rest: UnknownKeys::Refuse,
    groups: &[&[TableEntry::new(
        "own_files",
        OWN_FILES,
        "Action for calls whose arguments name Tapegate's own files: the policy and the files it names, `tapegate.lock`, `.tapegate/`, and the user's state and config folders. `forward` lifts the rule. Default: deny.",
    )
    .own_extension()]],
};

/// The action when no rule matches.
pub static DEFAULTS: Table = Table {
    name: "defaults",
    about: "Action when no rule matches.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("action", ACTION, "Forward, deny, hold for approval, or ask Cedar.")
            .required(),
        TableEntry::new("approval", Name, "The approval workflow to use.").own_extension(),
        TableEntry::new(
            "policy_id",
            Name,
            "Value of `context.policy_id` in Cedar. Default: `default`.",
        )
        .own_extension(),
    ]],
};

/// A rule.
pub static RULE: Table = Table {
    name: "rule",
    about: "A rule. It matches a call if all of its conditions hold.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("id", Name, "Name of the rule in logs. Default: its position.").own_extension(),
        TableEntry::new("match", GLOBS, "Globs for the names of tools and prompts and the URIs of resources that the rule applies to. Default: all."),
        TableEntry::new("action", ACTION, "Forward, deny, hold for approval, or ask Cedar.").required(),
        TableEntry::new("source", GLOBS, "Globs for the servers that the rule applies to. Default: all."),
        TableEntry::new("method", GLOBS, "Globs for the methods that the rule applies to, in any letter case. Default: all gated methods. Other methods are only checked against rules that name them.").own_extension(),
        TableEntry::new("arguments", MapOf(&TEST_SHAPE), "Tests of the arguments: paths into them, with a test for each. For `forward`, every value that the path leads to must pass the test exactly as it is written. For `deny` and `approve`, it is enough that some server could read one of the values as one that passes.").own_extension(),
        TableEntry::new("other_arguments", OTHER_ARGUMENTS, "For `forward`: the arguments, besides those that are tested, that a call may have with any value, or `none`. Without this key, other arguments are not checked.").own_extension(),
        TableEntry::new("annotations", Shape::Table(&ANNOTATIONS), "Tests of the annotations in the tool's pinned definition. A rule with this key applies to `tools/call` only.").own_extension(),
        TableEntry::new("policy_id", Name, "Value of `context.policy_id` in Cedar. Required with `action: policy`."),
        TableEntry::new("approval", Name, "The approval workflow to use. With `action: policy`, it applies after Cedar has permitted the call. Default: the only workflow, if there is just one."),
        TableEntry::new("description", Text, "Why the rule exists. A caller that the rule denies receives this text."),
    ]],
};

/// Tests on the pinned definition of a tool.
pub static ANNOTATIONS: Table = Table {
    name: "annotations",
    about: "Hints that a tool gives about itself, read from its definition in `tapegate.lock`, never from the wire. Each key takes `true`, `false`, `unknown` or a list of these. A hint is unknown if the tool is not pinned, has drifted, or pins are ignored; a pinned definition without the hint has MCP's default. In `deny` and `approve` rules, an unknown hint matches every value; in `forward` rules, it matches only `unknown`.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "readOnlyHint",
            HINT_VALUES,
            "Whether the tool changes nothing; false by default.",
        )
        .own_extension(),
        TableEntry::new(
            "destructiveHint",
            HINT_VALUES,
            "Whether the tool may destroy something; true by default, unless it only reads.",
        )
        .own_extension(),
        TableEntry::new(
            "idempotentHint",
            HINT_VALUES,
            "Whether repeating a call changes nothing more; false by default.",
        )
        .own_extension(),
        TableEntry::new(
            "openWorldHint",
            HINT_VALUES,
            "Whether the tool reaches the outside world, such as the web; true by default.",
        )
        .own_extension(),
    ]],
};

/// A test of the value at a path.
pub static TEST: Table = Table {
    name: "test",
    about: "A test of the value at a path of the arguments. A plain text is a glob; a plain number, true or false must be equal. If there is no value at the path, only `exists: false` passes.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("glob", GLOB_SHAPE, "Text that this glob matches.").own_extension(),
        TableEntry::new("regex", Shape::Word(&REGEX), "Text in which this regular expression finds a match.").own_extension(),
        TableEntry::new("under", FOLDERS, "A path in this folder, or in one of these folders: the folder itself or anything below it. `forward` accepts only absolute paths, or only URIs if the folder is a URI such as `file:///data`. `deny` and `approve` match every value that some server could read as such a path. Symbolic links are not followed.").own_extension(),
        TableEntry::new("equals", Any, "Equal to this text, number, true, false or null.").own_extension(),
        TableEntry::new("in", List(&Any), "Equal to one of these texts, numbers, true, false or null.").own_extension(),
        TableEntry::new("min", Number, "A number that is at least this.").own_extension(),
        TableEntry::new("max", Number, "A number that is at most this.").own_extension(),
        TableEntry::new("exists", Bool, "Whether there is a value at the path.").own_extension(),
        TableEntry::new("optional", Bool, "Whether the tests also pass if the value is missing or null. Default: false.").own_extension(),
        TableEntry::new(
            "not",
            Either(&[GLOB_SHAPE, Number, Bool, Shape::Table(&TEST)]),
            "A value for which this one test fails.",
        )
        .own_extension(),
    ]],
};

/// An approval workflow.
pub static WORKFLOW: Table = Table {
    name: "workflow",
    about: "An approval workflow.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "destination",
            Either(&[Choice(&["cli"]), Shape::Table(&DESTINATION)]),
            "Where approvers are asked. Default: `cli`, the terminal.",
        ),
        TableEntry::new(
            "timeout",
            TIME_SHAPE,
            "How long to wait for an answer, at least 5s. Default: 10m.",
        ),
        TableEntry::new(
            "blocking_timeout",
            TIME_SHAPE,
            "How long to hold a call over HTTP, at least 5s. Default: the value of `timeout`, or 5m if that is not given.",
        ),
        TableEntry::new(
            "on_timeout",
            ON_TIMEOUT,
            "Action when no answer arrives in time. Default: deny.",
        ),
        TableEntry::new(
            "redact_fields",
            List(&Name),
            "Paths into the arguments whose values approvers do not see: `token`, `user.email`, `items[*].key`, `..secret` at any depth.",
        ),
        TableEntry::new(
            "approvers",
            List(&Name),
            "Users who may answer. With this list, callers cannot approve their own calls. Default: any user.",
        )
        .own_extension(),
    ]],
};

/// Where a request for approval is sent.
pub static DESTINATION: Table = Table {
    name: "destination",
    about: "Where approvers are asked.",
    rest: UnknownKeys::Refuse,
    groups: &[&[TableEntry::new(
        "type",
        Choice(&["cli"]),
        "At the terminal: `tapegate approvals`.",
    )
    .required()]],
};

/// Cedar policies.
pub static CEDAR: Table = Table {
    name: "cedar",
    about: "Cedar policies. Paths are relative to the folder of this file.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("policies", NAMES, "Files with Cedar policies."),
        TableEntry::new(
            "schema",
            Name,
            "A schema file, used instead of the schema generated from the pinned tools.",
        ),
        TableEntry::new("inline", Text, "Cedar policies as text.").own_extension(),
    ]],
};

/// What is redacted.
pub static REDACTION: Table = Table {
    name: "redaction",
    about: "Which values are redacted in tapes, approvals and logs.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("enabled", Bool, "Whether redaction is on. Default: true.").own_extension(),
        TableEntry::new("patterns", List(&Name), "Built-in patterns by name, as in `record --redact`: `secrets` for all of them, `entropy` for random-looking text. Default: `secrets`, if `fields` is not given either.").with_aliases(&["rules"]).own_extension(),
        TableEntry::new("fields", List(&Name), "Paths into messages: `params.arguments.password`, `result.content[*].text`. A single word is a key at any depth.").own_extension(),
        TableEntry::new("on_wire", Bool, "Whether to redact secrets in what the server sends before the agent receives it: results, errors, notifications and requests. Default: false.").own_extension(),
    ]],
};

/// How definitions are compared with the accepted ones.
pub static PINS: Table = Table {
    name: "pins",
    about: "How the definitions of servers are compared with the pinned ones, which are in the lock file.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("on_drift", ON_DRIFT, "Action for calls to an item that is not pinned or differs from its pin. Default: deny.").own_extension(),
        TableEntry::new("approval", Name, "The approval workflow to use with `on_drift: approve`.").own_extension(),
        TableEntry::new("lock", Name, "The lock file, relative to the folder of this file. Default: `tapegate.lock`.").own_extension(),
    ]],
};

/// What is recorded on tape.
pub static RECORDING: Table = Table {
    name: "recording",
    about: "Whether and where sessions are recorded on tape.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("enabled", Bool, "Whether to record tapes. Default: true.").own_extension(),
        TableEntry::new(
            "folder",
            Name,
            "Folder for the tapes. Default: a folder in the state folder.",
        )
        .own_extension(),
        TableEntry::new("retention", TIME_SHAPE, "How long tapes are kept. Default: no limit.")
            .own_extension(),
    ]],
};

/// How the activity log is kept.
pub static ACTIVITY: Table = Table {
    name: "activity",
    about: "Rotation and retention of the activity log.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "rotate_bytes",
            Bytes,
            "Size at which a new file is started, at least 64kb. Default: 64mb.",
        )
        .own_extension(),
        TableEntry::new(
            "retention",
            TIME_SHAPE,
            "How long full files are kept. Default: no limit.",
        )
        .own_extension(),
    ]],
};

/// The caller.
pub static PRINCIPAL: Table = Table {
    name: "principal",
    about: "The caller, as Cedar sees it. Attributes that are not given are found at run time.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "name",
            Name,
            "The application or user. Default: the user who runs the shim.",
        )
        .own_extension(),
        TableEntry::new("namespace", Name, "Namespace that the caller runs in. Only for Cedar.")
            .own_extension(),
        TableEntry::new(
            "service_account",
            Name,
            "Service account that the caller runs as. Only for Cedar.",
        )
        .own_extension(),
        TableEntry::new("roles", List(&Name), "Roles of the caller. Only for Cedar.")
            .own_extension(),
    ]],
};

/// The settings that profiles override.
pub static PROFILES: Table = Table {
    name: "profiles",
    about: "Settings that a profile overrides.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "production",
            Shape::Table(&OVERRIDES),
            "Overrides for production, which enforces the policy.",
        )
        .own_extension(),
        TableEntry::new(
            "development",
            Shape::Table(&OVERRIDES),
            "Overrides for development, which only logs what production would stop.",
        )
        .own_extension(),
    ]],
};

/// The settings that one profile overrides.
pub static OVERRIDES: Table = Table {
    name: "overrides",
    about: "Settings that a profile overrides. Other settings stay as they are in the policy.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "approval",
            Shape::Table(&OVERRIDES_APPROVAL),
            "Overrides for all workflows. Only for production: development holds no calls.",
        )
        .own_extension(),
        TableEntry::new(
            "redaction",
            Shape::Table(&OVERRIDES_REDACTION),
            "Overrides for redaction.",
        )
        .own_extension(),
        TableEntry::new("pins", Shape::Table(&OVERRIDES_PINS), "Overrides for pins.")
            .own_extension(),
        TableEntry::new("recording", Shape::Table(&SWITCH), "Overrides for recording.")
            .own_extension(),
        TableEntry::new("telemetry", Shape::Table(&SWITCH), "Overrides for telemetry.")
            .own_extension(),
    ]],
};

/// Overrides for workflows.
pub static OVERRIDES_APPROVAL: Table = Table {
    name: "overrides_approval",
    about: "Overrides for all workflows.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("timeout", TIME_SHAPE, "How long to wait for an answer.").own_extension(),
        TableEntry::new("blocking_timeout", TIME_SHAPE, "How long to hold a call over HTTP.")
            .own_extension(),
        TableEntry::new("on_timeout", ON_TIMEOUT, "Action when no answer arrives in time.")
            .own_extension(),
    ]],
};

/// Overrides for redaction.
pub static OVERRIDES_REDACTION: Table = Table {
    name: "overrides_redaction",
    about: "Overrides for redaction.",
    rest: UnknownKeys::Refuse,
    groups: &[&[TableEntry::new("on_wire", Bool, "Whether to redact what the server sends.")
        .own_extension()]],
};

/// Overrides for pins.
pub static OVERRIDES_PINS: Table = Table {
    name: "overrides_pins",
    about: "Overrides for pins.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("on_drift", ON_DRIFT, "Action when an item has drifted.").own_extension()
    ]],
};

/// A section that is on or off.
pub static SWITCH: Table = Table {
    name: "switch",
    about: "A section that is on or off.",
    rest: UnknownKeys::Refuse,
    groups: &[&[TableEntry::new("enabled", Bool, "Whether the section is on.").own_extension()]],
};

/// What telemetry is exported.
pub static TELEMETRY: Table = Table {
    name: "telemetry",
    about: "Export of telemetry.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("enabled", Bool, "Whether to export telemetry. Default: false."),
        TableEntry::new("otlp", Shape::Table(&OTLP), "Where telemetry is sent."),
        TableEntry::new("sampling", Shape::Table(&SAMPLING), "Which calls are traced."),
        TableEntry::new("batch", Shape::Table(&BATCH), "How spans are batched."),
        TableEntry::new(
            "resource",
            MapOf(&Text),
            "Resource attributes that describe this instance.",
        ),
    ]],
};

/// The destination of telemetry.
pub static OTLP: Table = Table {
    name: "otlp",
    about: "Where telemetry is sent.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("endpoint", URL_SHAPE, "URL of a collector that accepts OTLP over HTTP."),
        TableEntry::new(
            "protocol",
            Choice(&["http/protobuf", "http/json"]),
            "Encoding of the telemetry. Default: http/protobuf.",
        ),
        TableEntry::new("headers", MapOf(&Text), "Headers to send with every export."),
    ]],
};

/// How many traces are kept.
pub static SAMPLING: Table = Table {
    name: "sampling",
    about: "Which calls are traced.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "strategy",
            Choice(&["head"]),
            "When a call is chosen: `head`, when it begins.",
        ),
        TableEntry::new(
            "success_sample_rate",
            Number,
            "Share of successful calls to trace, from 0 to 1. Default: 1.",
        ),
    ]],
};

/// How spans are batched.
pub static BATCH: Table = Table {
    name: "batch",
    about: "How spans are batched.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "max_queue_size",
            Whole(1, 1 << 20),
            "Maximum number of queued spans. Default: 2048.",
        ),
        TableEntry::new(
            "max_export_batch_size",
            Whole(1, 1 << 20),
            "Maximum number of spans in an export, at most `max_queue_size`. Default: 512.",
        ),
        TableEntry::new(
            "scheduled_delay_ms",
            Whole(100, 3_600_000),
            "Maximum delay before an export, in milliseconds. Default: 5000.",
        ),
        TableEntry::new(
            "export_timeout_ms",
            Whole(100, 3_600_000),
            "Timeout of an export, in milliseconds. Default: 30000.",
        ),
    ]],
};
