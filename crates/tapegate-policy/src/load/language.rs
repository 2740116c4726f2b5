//! The tables of the policy language, a flat list: its keys, their values and their meaning.

use tapegate_yaml::shape::Shape::{
    Any, Bool, Bytes, Choice, Either, List, MapOf, Name, Number, Text, Whole,
};
use tapegate_yaml::shape::{Entry, Rest, Shape, Strays, Table, Word};

use super::{expression, time, url};
use crate::glob::Glob;
use tapegate_core::lenient::folder::Folder;

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
pub const STRAYS: Strays = &[
    ("pattern", "there is no key `pattern` here; use `match`"),
    ("adapter", "there is no key `adapter` here; use `destination`"),
    ("policy_path", "there is no key `policy_path` here; use `policies`, a list of Cedar files"),
];

/// A pattern of names.
pub static GLOB: Word = Word {
    name: "a glob, such as `read_*`",
    numbers: false,
    check: |text| Glob::parse(text).map(drop),
    pattern: String::new,
};

/// A folder.
pub static FOLDER: Word = Word {
    name: "an absolute folder, such as `/data` or `file:///data`",
    numbers: false,
    check: |text| Folder::parse(text).map(drop),
    pattern: || "^(/|file:///)[^*]*$".to_owned(),
};

/// A regular expression.
pub static REGEX: Word = Word {
    name: "a regular expression",
    numbers: false,
    check: |text| expression::parse(text).map(drop),
    pattern: String::new,
};

/// A time.
pub static TIME: Word = Word {
    name: "a time, such as `10m`",
    numbers: true,
    check: |text| time::parse(text).map(drop),
    pattern: || r"^\s*(P.+|([0-9]+\s*[A-Za-zµ]+\s*)+)$".to_owned(),
};

/// A URL.
pub static URL: Word = Word {
    name: "a URL",
    numbers: false,
    check: url::check,
    pattern: || "^https?://.+".to_owned(),
};

/// A server's name.
pub static SOURCE_ID: Word = Word {
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("schema", SCHEMA, "Version of the policy language: 1.").required(),
        Entry::new(
            "profile",
            PROFILE,
            "Profile to use unless `--profile` or `TAPEGATE_PROFILE` is set. Default: production.",
        )
        .ours(),
        Entry::new(
            "sources",
            List(&Shape::Table(&SOURCE)),
            "The servers, and what each of them exposes. Default: everything on every server.",
        ),
        Entry::new(
            "governance",
            Shape::Table(&GOVERNANCE),
            "Which calls are forwarded, denied or held for approval.",
        )
        .required(),
        Entry::new("approval", MapOf(&Shape::Table(&WORKFLOW)), "Approval workflows, by name."),
        Entry::new(
            "cedar",
            Shape::Table(&CEDAR),
            "Cedar policies, for rules with `action: policy`.",
        ),
        Entry::new(
            "redaction",
            Shape::Table(&REDACTION),
            "Which values are redacted in tapes, approvals and logs.",
        )
        .ours(),
        Entry::new(
            "pins",
            Shape::Table(&PINS),
            "How the definitions of servers are compared with the pinned ones.",
        )
        .ours(),
        Entry::new(
            "recording",
            Shape::Table(&RECORDING),
            "Whether and where sessions are recorded on tape.",
        )
        .ours(),
        Entry::new(
            "activity",
            Shape::Table(&ACTIVITY),
            "Rotation and retention of the activity log.",
        )
        .ours(),
        Entry::new("telemetry", Shape::Table(&TELEMETRY), "Export of telemetry."),
        Entry::new("principal", Shape::Table(&PRINCIPAL), "The caller, as Cedar sees it.").ours(),
        Entry::new("profiles", Shape::Table(&PROFILES), "Settings that a profile overrides.")
            .ours(),
    ]],
};

/// A server.
pub static SOURCE: Table = Table {
    name: "source",
    about: "A server, and what it exposes.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "id",
            Shape::Word(&SOURCE_ID),
            "Name of the server, as given to the shim. `*` stands for all other servers.",
        )
        .required(),
        Entry::new("kind", Choice(&["mcp"]), "Protocol of the server: `mcp`."),
        Entry::new("url", URL_SHAPE, "URL of the server, for a shim that is started without one."),
        Entry::new("enabled", Bool, "Whether the server may be used at all. Default: true."),
        Entry::new(
            "expose",
            Either(&[Choice(&["all"]), Shape::Table(&EXPOSE)]),
            "Which items are visible and callable. Default: all.",
        ),
        Entry::new("description", Text, "Description of the server, for people."),
    ]],
};

/// Which items are visible and callable.
pub static EXPOSE: Table = Table {
    name: "expose",
    about: "Which items of a server are visible and callable. If only `tools` is given, its globs also apply to the names of prompts and the URIs of resources. Otherwise each kind has its own list, and a missing list counts as empty.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "mode",
            Choice(&["all", "allowlist", "blocklist"]),
            "`all` exposes everything, `allowlist` only what is listed, `blocklist` everything else.",
        )
        .required(),
        Entry::new("tools", List(&GLOB_SHAPE), "Globs for the names of tools."),
        Entry::new("prompts", List(&GLOB_SHAPE), "Globs for the names of prompts.").ours(),
        Entry::new(
            "resources",
            List(&GLOB_SHAPE),
            "Globs for the URIs of resources. URI templates are matched as written.",
        )
        .ours(),
    ]],
};

/// The rules for calls.
pub static GOVERNANCE: Table = Table {
    name: "governance",
    about: "Which calls are forwarded, denied or held for approval.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("defaults", Shape::Table(&DEFAULTS), "Action when no rule matches.")
            .required(),
        Entry::new(
            "rules",
            List(&Shape::Table(&RULE)),
            "The rules, in order. The first rule that matches decides.",
        ),
        Entry::new("builtin", Shape::Table(&BUILTIN), "Rules that are part of every policy.").ours(),
        Entry::new(
            "embedded_messages",
            EMBEDDED,
            "Action for a message that contains another JSON-RPC message in a string, as a log of MCP traffic does: `log` forwards and logs it, `refuse` refuses it. Default: log.",
        )
        .ours(),
    ]],
};

/// The built-in rules.
pub static BUILTIN: Table = Table {
    name: "builtin",
    about: "Rules that are part of every policy. Each can be lifted by name.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new(
        "own_files",
        OWN_FILES,
        "Action for calls whose arguments name Tapegate's own files: the policy and the files it names, `tapegate.lock`, `.tapegate/`, and the user's state and config folders. `forward` lifts the rule. Default: deny.",
    )
    .ours()]],
};

/// The action when no rule matches.
pub static DEFAULTS: Table = Table {
    name: "defaults",
    about: "Action when no rule matches.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("action", ACTION, "Forward, deny, hold for approval, or ask Cedar.").required(),
        Entry::new("approval", Name, "The approval workflow to use.").ours(),
        Entry::new("policy_id", Name, "Value of `context.policy_id` in Cedar. Default: `default`.")
            .ours(),
    ]],
};

/// A rule.
pub static RULE: Table = Table {
    name: "rule",
    about: "A rule. It matches a call if all of its conditions hold.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("id", Name, "Name of the rule in logs. Default: its position.").ours(),
        Entry::new("match", GLOBS, "Globs for the names of tools and prompts and the URIs of resources that the rule applies to. Default: all."),
        Entry::new("action", ACTION, "Forward, deny, hold for approval, or ask Cedar.").required(),
        Entry::new("source", GLOBS, "Globs for the servers that the rule applies to. Default: all."),
        Entry::new("method", GLOBS, "Globs for the methods that the rule applies to, in any letter case. Default: all gated methods. Other methods are only checked against rules that name them.").ours(),
        Entry::new("arguments", MapOf(&TEST_SHAPE), "Tests of the arguments: paths into them, with a test for each. For `forward`, every value that the path leads to must pass the test exactly as it is written. For `deny` and `approve`, it is enough that some server could read one of the values as one that passes.").ours(),
        Entry::new("other_arguments", OTHER_ARGUMENTS, "For `forward`: the arguments, besides those that are tested, that a call may have with any value, or `none`. Without this key, other arguments are not checked.").ours(),
        Entry::new("annotations", Shape::Table(&ANNOTATIONS), "Tests of the annotations in the tool's pinned definition. A rule with this key applies to `tools/call` only.").ours(),
        Entry::new("policy_id", Name, "Value of `context.policy_id` in Cedar. Required with `action: policy`."),
        Entry::new("approval", Name, "The approval workflow to use. With `action: policy`, it applies after Cedar has permitted the call. Default: the only workflow, if there is just one."),
        Entry::new("description", Text, "Why the rule exists. A caller that the rule denies receives this text."),
    ]],
};

/// Tests on the pinned definition of a tool.
pub static ANNOTATIONS: Table = Table {
    name: "annotations",
    about: "Hints that a tool gives about itself, read from its definition in `tapegate.lock`, never from the wire. Each key takes `true`, `false`, `unknown` or a list of these. A hint is unknown if the tool is not pinned, has drifted, or pins are ignored; a pinned definition without the hint has MCP's default. In `deny` and `approve` rules, an unknown hint matches every value; in `forward` rules, it matches only `unknown`.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "readOnlyHint",
            HINT_VALUES,
            "Whether the tool changes nothing; false by default.",
        )
        .ours(),
        Entry::new(
            "destructiveHint",
            HINT_VALUES,
            "Whether the tool may destroy something; true by default, unless it only reads.",
        )
        .ours(),
        Entry::new(
            "idempotentHint",
            HINT_VALUES,
            "Whether repeating a call changes nothing more; false by default.",
        )
        .ours(),
        Entry::new(
            "openWorldHint",
            HINT_VALUES,
            "Whether the tool reaches the outside world, such as the web; true by default.",
        )
        .ours(),
    ]],
};

/// A test of the value at a path.
pub static TEST: Table = Table {
    name: "test",
    about: "A test of the value at a path of the arguments. A plain text is a glob; a plain number, true or false must be equal. If there is no value at the path, only `exists: false` passes.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("glob", GLOB_SHAPE, "Text that this glob matches.").ours(),
        Entry::new("regex", Shape::Word(&REGEX), "Text in which this regular expression finds a match.").ours(),
        Entry::new("under", FOLDERS, "A path in this folder, or in one of these folders: the folder itself or anything below it. `forward` accepts only absolute paths, or only URIs if the folder is a URI such as `file:///data`. `deny` and `approve` match every value that some server could read as such a path. Symbolic links are not followed.").ours(),
        Entry::new("equals", Any, "Equal to this text, number, true, false or null.").ours(),
        Entry::new("in", List(&Any), "Equal to one of these texts, numbers, true, false or null.").ours(),
        Entry::new("min", Number, "A number that is at least this.").ours(),
        Entry::new("max", Number, "A number that is at most this.").ours(),
        Entry::new("exists", Bool, "Whether there is a value at the path.").ours(),
        Entry::new("optional", Bool, "Whether the tests also pass if the value is missing or null. Default: false.").ours(),
        Entry::new(
            "not",
            Either(&[GLOB_SHAPE, Number, Bool, Shape::Table(&TEST)]),
            "A value for which this one test fails.",
        )
        .ours(),
    ]],
};

/// An approval workflow.
pub static WORKFLOW: Table = Table {
    name: "workflow",
    about: "An approval workflow.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "destination",
            Either(&[Choice(&["cli"]), Shape::Table(&DESTINATION)]),
            "Where approvers are asked. Default: `cli`, the terminal.",
        ),
        Entry::new(
            "timeout",
            TIME_SHAPE,
            "How long to wait for an answer, at least 5s. Default: 10m.",
        ),
        Entry::new(
            "blocking_timeout",
            TIME_SHAPE,
            "How long to hold a call over HTTP, at least 5s. Default: the value of `timeout`, or 5m if that is not given.",
        ),
        Entry::new(
            "on_timeout",
            ON_TIMEOUT,
            "Action when no answer arrives in time. Default: deny.",
        ),
        Entry::new(
            "redact_fields",
            List(&Name),
            "Paths into the arguments whose values approvers do not see: `token`, `user.email`, `items[*].key`, `..secret` at any depth.",
        ),
        Entry::new(
            "approvers",
            List(&Name),
            "Users who may answer. With this list, callers cannot approve their own calls. Default: any user.",
        )
        .ours(),
    ]],
};

/// Where a request for approval is sent.
pub static DESTINATION: Table = Table {
    name: "destination",
    about: "Where approvers are asked.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("type", Choice(&["cli"]), "At the terminal: `tapegate approvals`.").required()
    ]],
};

/// Cedar policies.
pub static CEDAR: Table = Table {
    name: "cedar",
    about: "Cedar policies. Paths are relative to the folder of this file.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("policies", NAMES, "Files with Cedar policies."),
        Entry::new(
            "schema",
            Name,
            "A schema file, used instead of the schema generated from the pinned tools.",
        ),
        Entry::new("inline", Text, "Cedar policies as text.").ours(),
    ]],
};

/// What is redacted.
pub static REDACTION: Table = Table {
    name: "redaction",
    about: "Which values are redacted in tapes, approvals and logs.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether redaction is on. Default: true.").ours(),
        Entry::new("patterns", List(&Name), "Built-in patterns by name, as in `record --redact`: `secrets` for all of them, `entropy` for random-looking text. Default: `secrets`, if `fields` is not given either.").or(&["rules"]).ours(),
        Entry::new("fields", List(&Name), "Paths into messages: `params.arguments.password`, `result.content[*].text`. A single word is a key at any depth.").ours(),
        Entry::new("on_wire", Bool, "Whether to redact secrets in what the server sends before the agent receives it: results, errors, notifications and requests. Default: false.").ours(),
    ]],
};

/// How definitions are compared with the accepted ones.
pub static PINS: Table = Table {
    name: "pins",
    about: "How the definitions of servers are compared with the pinned ones, which are in the lock file.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("on_drift", ON_DRIFT, "Action for calls to an item that is not pinned or differs from its pin. Default: deny.").ours(),
        Entry::new("approval", Name, "The approval workflow to use with `on_drift: approve`.").ours(),
        Entry::new("lock", Name, "The lock file, relative to the folder of this file. Default: `tapegate.lock`.").ours(),
    ]],
};

/// What is recorded on tape.
pub static RECORDING: Table = Table {
    name: "recording",
    about: "Whether and where sessions are recorded on tape.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether to record tapes. Default: true.").ours(),
        Entry::new("folder", Name, "Folder for the tapes. Default: a folder in the state folder.")
            .ours(),
        Entry::new("retention", TIME_SHAPE, "How long tapes are kept. Default: no limit.").ours(),
    ]],
};

/// How the activity log is kept.
pub static ACTIVITY: Table = Table {
    name: "activity",
    about: "Rotation and retention of the activity log.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "rotate_bytes",
            Bytes,
            "Size at which a new file is started, at least 64kb. Default: 64mb.",
        )
        .ours(),
        Entry::new("retention", TIME_SHAPE, "How long full files are kept. Default: no limit.")
            .ours(),
    ]],
};

/// The caller.
pub static PRINCIPAL: Table = Table {
    name: "principal",
    about: "The caller, as Cedar sees it. Attributes that are not given are found at run time.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "The application or user. Default: the user who runs the shim.")
            .ours(),
        Entry::new("namespace", Name, "Namespace that the caller runs in. Only for Cedar.").ours(),
        Entry::new(
            "service_account",
            Name,
            "Service account that the caller runs as. Only for Cedar.",
        )
        .ours(),
        Entry::new("roles", List(&Name), "Roles of the caller. Only for Cedar.").ours(),
    ]],
};

/// The settings that profiles override.
pub static PROFILES: Table = Table {
    name: "profiles",
    about: "Settings that a profile overrides.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "production",
            Shape::Table(&OVERRIDES),
            "Overrides for production, which enforces the policy.",
        )
        .ours(),
        Entry::new(
            "development",
            Shape::Table(&OVERRIDES),
            "Overrides for development, which only logs what production would stop.",
        )
        .ours(),
    ]],
};

/// The settings that one profile overrides.
pub static OVERRIDES: Table = Table {
    name: "overrides",
    about: "Settings that a profile overrides. Other settings stay as they are in the policy.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "approval",
            Shape::Table(&OVERRIDES_APPROVAL),
            "Overrides for all workflows. Only for production: development holds no calls.",
        )
        .ours(),
        Entry::new("redaction", Shape::Table(&OVERRIDES_REDACTION), "Overrides for redaction.")
            .ours(),
        Entry::new("pins", Shape::Table(&OVERRIDES_PINS), "Overrides for pins.").ours(),
        Entry::new("recording", Shape::Table(&SWITCH), "Overrides for recording.").ours(),
        Entry::new("telemetry", Shape::Table(&SWITCH), "Overrides for telemetry.").ours(),
    ]],
};

/// Overrides for workflows.
pub static OVERRIDES_APPROVAL: Table = Table {
    name: "overrides_approval",
    about: "Overrides for all workflows.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("timeout", TIME_SHAPE, "How long to wait for an answer.").ours(),
        Entry::new("blocking_timeout", TIME_SHAPE, "How long to hold a call over HTTP.").ours(),
        Entry::new("on_timeout", ON_TIMEOUT, "Action when no answer arrives in time.").ours(),
    ]],
};

/// Overrides for redaction.
pub static OVERRIDES_REDACTION: Table = Table {
    name: "overrides_redaction",
    about: "Overrides for redaction.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("on_wire", Bool, "Whether to redact what the server sends.").ours()]],
};

/// Overrides for pins.
pub static OVERRIDES_PINS: Table = Table {
    name: "overrides_pins",
    about: "Overrides for pins.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("on_drift", ON_DRIFT, "Action when an item has drifted.").ours()]],
};

/// A section that is on or off.
pub static SWITCH: Table = Table {
    name: "switch",
    about: "A section that is on or off.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("enabled", Bool, "Whether the section is on.").ours()]],
};

/// What telemetry is exported.
pub static TELEMETRY: Table = Table {
    name: "telemetry",
    about: "Export of telemetry.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether to export telemetry. Default: false."),
        Entry::new("otlp", Shape::Table(&OTLP), "Where telemetry is sent."),
        Entry::new("sampling", Shape::Table(&SAMPLING), "Which calls are traced."),
        Entry::new("batch", Shape::Table(&BATCH), "How spans are batched."),
        Entry::new("resource", MapOf(&Text), "Resource attributes that describe this instance."),
    ]],
};

/// The destination of telemetry.
pub static OTLP: Table = Table {
    name: "otlp",
    about: "Where telemetry is sent.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("endpoint", URL_SHAPE, "URL of a collector that accepts OTLP over HTTP."),
        Entry::new(
            "protocol",
            Choice(&["http/protobuf", "http/json"]),
            "Encoding of the telemetry. Default: http/protobuf.",
        ),
        Entry::new("headers", MapOf(&Text), "Headers to send with every export."),
    ]],
};

/// How many traces are kept.
pub static SAMPLING: Table = Table {
    name: "sampling",
    about: "Which calls are traced.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("strategy", Choice(&["head"]), "When a call is chosen: `head`, when it begins."),
        Entry::new(
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "max_queue_size",
            Whole(1, 1 << 20),
            "Maximum number of queued spans. Default: 2048.",
        ),
        Entry::new(
            "max_export_batch_size",
            Whole(1, 1 << 20),
            "Maximum number of spans in an export, at most `max_queue_size`. Default: 512.",
        ),
        Entry::new(
            "scheduled_delay_ms",
            Whole(100, 3_600_000),
            "Maximum delay before an export, in milliseconds. Default: 5000.",
        ),
        Entry::new(
            "export_timeout_ms",
            Whole(100, 3_600_000),
            "Timeout of an export, in milliseconds. Default: 30000.",
        ),
    ]],
};
