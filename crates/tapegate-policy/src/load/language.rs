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
    ("pattern", "there is no key `pattern` here; what a rule is about is `match`"),
    ("adapter", "there is no key `adapter` here; where people are asked is `destination`"),
    ("policy_path", "there is no key `policy_path` here; Cedar files are a list, `policies`"),
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
            Err(format!("`{text}` begins with `_`; such names are not for servers"))
        }
        _ if text.bytes().all(allowed) => Ok(()),
        _ => Err(format!(
            "`{text}` is no name of a server: letters, digits, `.`, `_` and `-`, or `*`"
        )),
    }
}

/// A policy.
pub static POLICY: Table = Table {
    name: "policy",
    about: "A policy: what an agent may see, call and be told.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("schema", SCHEMA, "The version of this language: 1.").required(),
        Entry::new(
            "profile",
            PROFILE,
            "The profile that holds if nobody names one; production, unless given.",
        )
        .ours(),
        Entry::new(
            "sources",
            List(&Shape::Table(&SOURCE)),
            "The servers, and what of each may be seen and used; all of all, unless given.",
        ),
        Entry::new("governance", Shape::Table(&GOVERNANCE), "What is done with calls.").required(),
        Entry::new(
            "approval",
            MapOf(&Shape::Table(&WORKFLOW)),
            "The ways of asking people, by name.",
        ),
        Entry::new(
            "cedar",
            Shape::Table(&CEDAR),
            "Cedar policies, for rules with `action: policy`.",
        ),
        Entry::new(
            "redaction",
            Shape::Table(&REDACTION),
            "What is taken out of tapes, approvals and logs.",
        )
        .ours(),
        Entry::new(
            "pins",
            Shape::Table(&PINS),
            "How definitions of servers are held to what was accepted.",
        )
        .ours(),
        Entry::new("recording", Shape::Table(&RECORDING), "What is kept on tape.").ours(),
        Entry::new("activity", Shape::Table(&ACTIVITY), "How the activity log is kept.").ours(),
        Entry::new("telemetry", Shape::Table(&TELEMETRY), "What is exported."),
        Entry::new("principal", Shape::Table(&PRINCIPAL), "Who calls, as Cedar sees it.").ours(),
        Entry::new("profiles", Shape::Table(&PROFILES), "What is otherwise under a profile.")
            .ours(),
    ]],
};

/// A server.
pub static SOURCE: Table = Table {
    name: "source",
    about: "A server, and what of it may be seen and used.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "id",
            Shape::Word(&SOURCE_ID),
            "The name of the server, as the shim is told it; `*` for all that are not named.",
        )
        .required(),
        Entry::new("kind", Choice(&["mcp"]), "What it speaks: `mcp`."),
        Entry::new("url", URL_SHAPE, "Where it is reached, for a shim that is not told."),
        Entry::new("enabled", Bool, "Whether anything on it may be used; true, unless given."),
        Entry::new(
            "expose",
            Either(&[Choice(&["all"]), Shape::Table(&EXPOSE)]),
            "What may be seen and used; everything, unless given.",
        ),
        Entry::new("description", Text, "What it is, for people."),
    ]],
};

/// Which items are visible and callable.
pub static EXPOSE: Table = Table {
    name: "expose",
    about: "What of a server may be seen and used. If only `tools` is given, it is also held against the names of prompts and the URIs of resources; else each kind has its own list, and a kind without one has an empty list.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "mode",
            Choice(&["all", "allowlist", "blocklist"]),
            "Everything, only what is listed, or all but what is listed.",
        )
        .required(),
        Entry::new("tools", List(&GLOB_SHAPE), "Globs on the names of tools."),
        Entry::new("prompts", List(&GLOB_SHAPE), "Globs on the names of prompts.").ours(),
        Entry::new(
            "resources",
            List(&GLOB_SHAPE),
            "Globs on the URIs of resources, and on templates as they are written.",
        )
        .ours(),
    ]],
};

/// The rules for calls.
pub static GOVERNANCE: Table = Table {
    name: "governance",
    about: "What is done with calls.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("defaults", Shape::Table(&DEFAULTS), "What is done when no rule matches.")
            .required(),
        Entry::new(
            "rules",
            List(&Shape::Table(&RULE)),
            "The rules, in their order; the first that matches counts.",
        ),
        Entry::new("builtin", Shape::Table(&BUILTIN), "The rules that every policy has.").ours(),
        Entry::new(
            "embedded_messages",
            EMBEDDED,
            "What is done with a message in which a string holds another JSON-RPC message, as an MCP log does: `log` passes and logs it, `refuse` refuses it; log, unless given.",
        )
        .ours(),
    ]],
};

/// The built-in rules.
pub static BUILTIN: Table = Table {
    name: "builtin",
    about: "The rules that every policy has, and that can be lifted by name.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new(
        "own_files",
        OWN_FILES,
        "Calls whose arguments name Tapegate's own files (the policy and the files it names, `tapegate.lock`, `.tapegate/`, the user's state and config folders) are refused; `forward` lifts this. `deny`, unless given.",
    )
    .ours()]],
};

/// The action when no rule matches.
pub static DEFAULTS: Table = Table {
    name: "defaults",
    about: "What is done when no rule matches.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("action", ACTION, "Send on, refuse, ask people, or ask Cedar.").required(),
        Entry::new("approval", Name, "The workflow by which people are asked.").ours(),
        Entry::new(
            "policy_id",
            Name,
            "What `context.policy_id` says to Cedar; `default`, unless given.",
        )
        .ours(),
    ]],
};

/// A rule.
pub static RULE: Table = Table {
    name: "rule",
    about: "A rule. It matches a call if all that it says of it is so.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("id", Name, "What it goes by in logs; its place, unless given.").ours(),
        Entry::new("match", GLOBS, "The names of tools and prompts and the URIs of resources that it is about; all, unless given."),
        Entry::new("action", ACTION, "Send on, refuse, ask people, or ask Cedar.").required(),
        Entry::new("source", GLOBS, "The servers it is about; all, unless given."),
        Entry::new("method", GLOBS, "The methods it is about, in any letter case; all that are gated, unless given. Others are only held against rules that name them.").ours(),
        Entry::new("arguments", MapOf(&TEST_SHAPE), "What the arguments must be like: paths into them, and a test for each. For `forward` a test must hold for every value that the path leads to, exactly as it is written; for `deny` and `approve` it is enough that some server could read one of them so.").ours(),
        Entry::new("other_arguments", OTHER_ARGUMENTS, "For `forward`: the arguments that may be there besides those that are tested, with any value, or `none`. Others are not looked at, unless this is given.").ours(),
        Entry::new("annotations", Shape::Table(&ANNOTATIONS), "What the pinned definition of the tool must say about it. Such a rule is about `tools/call` only.").ours(),
        Entry::new("policy_id", Name, "What `context.policy_id` says to Cedar. Must be there if Cedar is asked."),
        Entry::new("approval", Name, "The workflow by which people are asked; with `action: policy`, after Cedar has permitted. The only one there is, unless given."),
        Entry::new("description", Text, "Why it is there. A caller that the rule denies is told this."),
    ]],
};

/// Tests on the pinned definition of a tool.
pub static ANNOTATIONS: Table = Table {
    name: "annotations",
    about: "Hints that a tool gives about itself, from its definition in `tapegate.lock`, never from the wire. `true`, `false`, `unknown` or a list of these. A hint is unknown if the tool is not pinned, has drifted, or pins are ignored; a pinned definition without the hint has MCP's default. An unknown hint matches in `deny` and `approve` rules whatever is wanted, in `forward` rules only `unknown`.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("readOnlyHint", HINT_VALUES, "Whether it changes nothing; false by default.")
            .ours(),
        Entry::new(
            "destructiveHint",
            HINT_VALUES,
            "Whether it may destroy something; true by default, unless it only reads.",
        )
        .ours(),
        Entry::new(
            "idempotentHint",
            HINT_VALUES,
            "Whether a repeated call changes nothing more; false by default.",
        )
        .ours(),
        Entry::new(
            "openWorldHint",
            HINT_VALUES,
            "Whether it deals with the world outside, such as the web; true by default.",
        )
        .ours(),
    ]],
};

/// A test of the value at a path.
pub static TEST: Table = Table {
    name: "test",
    about: "What must be at a path of the arguments. A text alone is a glob, a number, true or false alone must be equal. If there is nothing at the path, no test holds but `exists: false`.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("glob", GLOB_SHAPE, "Text that this glob matches.").ours(),
        Entry::new("regex", Shape::Word(&REGEX), "Text in which this expression is found.").ours(),
        Entry::new("under", FOLDERS, "A path in this folder, or in one of these: the folder itself and everything below it. `forward` takes absolute paths only, or with a folder such as `file:///data` only such URIs; a rule that stops takes whatever some server could read so. Symbolic links are not followed.").ours(),
        Entry::new("equals", Any, "This text, number, true, false or null.").ours(),
        Entry::new("in", List(&Any), "One of these texts, numbers, true, false or null.").ours(),
        Entry::new("min", Number, "A number from this on.").ours(),
        Entry::new("max", Number, "A number up to this.").ours(),
        Entry::new("exists", Bool, "Whether there is anything.").ours(),
        Entry::new("optional", Bool, "Whether the tests also hold where there is nothing, or null; false, unless given.").ours(),
        Entry::new(
            "not",
            Either(&[GLOB_SHAPE, Number, Bool, Shape::Table(&TEST)]),
            "Something for which this one test does not hold.",
        )
        .ours(),
    ]],
};

/// An approval workflow.
pub static WORKFLOW: Table = Table {
    name: "workflow",
    about: "A way of asking people.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "destination",
            Either(&[Choice(&["cli"]), Shape::Table(&DESTINATION)]),
            "Where the question is put; at the terminal, unless given.",
        ),
        Entry::new(
            "timeout",
            TIME_SHAPE,
            "How long an answer may take; 10m, unless given. At least 5s.",
        ),
        Entry::new(
            "blocking_timeout",
            TIME_SHAPE,
            "How long a call over HTTP is held; as long as `timeout`, or 5m if that is not given. At least 5s.",
        ),
        Entry::new(
            "on_timeout",
            ON_TIMEOUT,
            "What is done when nobody has answered; deny, unless given.",
        ),
        Entry::new(
            "redact_fields",
            List(&Name),
            "Paths into the arguments whose values are not shown to people: `token`, `user.email`, `items[*].key`, `..secret` at any depth.",
        ),
        Entry::new(
            "approvers",
            List(&Name),
            "Who may answer, but never the one who calls; anybody, unless given.",
        )
        .ours(),
    ]],
};

/// Where a request for approval is sent.
pub static DESTINATION: Table = Table {
    name: "destination",
    about: "Where a question is put.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("type", Choice(&["cli"]), "At the terminal: `tapegate approvals`.").required()
    ]],
};

/// Cedar policies.
pub static CEDAR: Table = Table {
    name: "cedar",
    about: "Cedar policies. Paths start at the folder of this file.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("policies", NAMES, "Files with policies."),
        Entry::new(
            "schema",
            Name,
            "A file with a schema, in place of the one that is made from the tools that are pinned.",
        ),
        Entry::new("inline", Text, "Policies as text.").ours(),
    ]],
};

/// What is redacted.
pub static REDACTION: Table = Table {
    name: "redaction",
    about: "What is taken out of tapes, approvals and logs.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether anything is; true, unless given.").ours(),
        Entry::new("patterns", List(&Name), "Built-in patterns by name, as `record --redact` takes them: `secrets` for all, `entropy` for random-looking text; `secrets`, unless anything is given.").or(&["rules"]).ours(),
        Entry::new("fields", List(&Name), "Paths into messages: `params.arguments.password`, `result.content[*].text`. A word alone is a key at any depth.").ours(),
        Entry::new("on_wire", Bool, "Whether secrets are taken out of what the server sends before the agent gets it: results, errors, notifications and requests; false, unless given.").ours(),
    ]],
};

/// How definitions are compared with the accepted ones.
pub static PINS: Table = Table {
    name: "pins",
    about: "How definitions of servers are held to what was accepted, which is kept in the lock file.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("on_drift", ON_DRIFT, "What becomes of calls to something that is not as it was accepted; deny, unless given.").ours(),
        Entry::new("approval", Name, "The workflow by which people are asked, with `on_drift: approve`.").ours(),
        Entry::new("lock", Name, "The lock file, from the folder of this file; `tapegate.lock`, unless given.").ours(),
    ]],
};

/// What is recorded on tape.
pub static RECORDING: Table = Table {
    name: "recording",
    about: "What is kept on tape.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether tapes are kept; true, unless given.").ours(),
        Entry::new("folder", Name, "Where; in the state folder, unless given.").ours(),
        Entry::new(
            "retention",
            TIME_SHAPE,
            "After how long tapes are cleaned away; never, unless given.",
        )
        .ours(),
    ]],
};

/// How the activity log is kept.
pub static ACTIVITY: Table = Table {
    name: "activity",
    about: "How the activity log is kept.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "rotate_bytes",
            Bytes,
            "How large the file gets before a new one is begun; 64mb, unless given. At least 64kb.",
        )
        .ours(),
        Entry::new(
            "retention",
            TIME_SHAPE,
            "After how long full files are cleaned away; never, unless given.",
        )
        .ours(),
    ]],
};

/// The caller.
pub static PRINCIPAL: Table = Table {
    name: "principal",
    about: "Who calls, as Cedar sees it. What is left out is found out by whoever runs the gate.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "name",
            Name,
            "The application, or the user; the user who runs the shim, unless given.",
        )
        .ours(),
        Entry::new("namespace", Name, "Where it runs. Only for Cedar.").ours(),
        Entry::new("service_account", Name, "What it runs as. Only for Cedar.").ours(),
        Entry::new("roles", List(&Name), "What it may act as. Only for Cedar.").ours(),
    ]],
};

/// The settings that profiles override.
pub static PROFILES: Table = Table {
    name: "profiles",
    about: "What is otherwise under a profile.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("production", Shape::Table(&OVERRIDES), "What is refused goes nowhere.").ours(),
        Entry::new(
            "development",
            Shape::Table(&OVERRIDES),
            "What would be refused is logged, and sent on.",
        )
        .ours(),
    ]],
};

/// The settings that one profile overrides.
pub static OVERRIDES: Table = Table {
    name: "overrides",
    about: "What is otherwise under a profile. What is left out is as the policy says elsewhere.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "approval",
            Shape::Table(&OVERRIDES_APPROVAL),
            "In every workflow. Only for production: development holds no call.",
        )
        .ours(),
        Entry::new("redaction", Shape::Table(&OVERRIDES_REDACTION), "What is taken out.").ours(),
        Entry::new(
            "pins",
            Shape::Table(&OVERRIDES_PINS),
            "How definitions are held to what was accepted.",
        )
        .ours(),
        Entry::new("recording", Shape::Table(&SWITCH), "What is kept on tape.").ours(),
        Entry::new("telemetry", Shape::Table(&SWITCH), "What is exported.").ours(),
    ]],
};

/// Overrides for workflows.
pub static OVERRIDES_APPROVAL: Table = Table {
    name: "overrides_approval",
    about: "What is otherwise in every workflow.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("timeout", TIME_SHAPE, "How long an answer may take.").ours(),
        Entry::new("blocking_timeout", TIME_SHAPE, "How long a call over HTTP is held.").ours(),
        Entry::new("on_timeout", ON_TIMEOUT, "What is done when nobody has answered.").ours(),
    ]],
};

/// Overrides for redaction.
pub static OVERRIDES_REDACTION: Table = Table {
    name: "overrides_redaction",
    about: "What is otherwise in redaction.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new(
        "on_wire",
        Bool,
        "Whether secrets are taken out of what the server sends.",
    )
    .ours()]],
};

/// Overrides for pins.
pub static OVERRIDES_PINS: Table = Table {
    name: "overrides_pins",
    about: "What is otherwise in pins.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("on_drift", ON_DRIFT, "What becomes of drift.").ours()]],
};

/// A section that is on or off.
pub static SWITCH: Table = Table {
    name: "switch",
    about: "Something that is on or off.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("enabled", Bool, "Whether it is on.").ours()]],
};

/// What telemetry is exported.
pub static TELEMETRY: Table = Table {
    name: "telemetry",
    about: "What is exported.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("enabled", Bool, "Whether anything is; false, unless given."),
        Entry::new("otlp", Shape::Table(&OTLP), "Where to."),
        Entry::new("sampling", Shape::Table(&SAMPLING), "How much."),
        Entry::new("batch", Shape::Table(&BATCH), "How it is gathered."),
        Entry::new(
            "resource",
            MapOf(&Text),
            "What is said of ourselves: attributes of the resource.",
        ),
    ]],
};

/// The destination of telemetry.
pub static OTLP: Table = Table {
    name: "otlp",
    about: "Where telemetry is sent.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("endpoint", URL_SHAPE, "The URL of a collector that takes OTLP over HTTP."),
        Entry::new(
            "protocol",
            Choice(&["http/protobuf", "http/json"]),
            "How it is written; http/protobuf, unless given.",
        ),
        Entry::new("headers", MapOf(&Text), "Headers that go with it."),
    ]],
};

/// How many traces are kept.
pub static SAMPLING: Table = Table {
    name: "sampling",
    about: "Of how many calls a trace is kept.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("strategy", Choice(&["head"]), "When it is chosen: `head`, when a call begins."),
        Entry::new(
            "success_sample_rate",
            Number,
            "The share of calls that went well, from 0 to 1; 1, unless given.",
        ),
    ]],
};

/// How spans are batched.
pub static BATCH: Table = Table {
    name: "batch",
    about: "How telemetry is gathered.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "max_queue_size",
            Whole(1, 1 << 20),
            "How many spans may wait; 2048, unless given.",
        ),
        Entry::new(
            "max_export_batch_size",
            Whole(1, 1 << 20),
            "How many go at once; 512, unless given. Not more than may wait.",
        ),
        Entry::new(
            "scheduled_delay_ms",
            Whole(100, 3_600_000),
            "How long a batch may gather, in milliseconds; 5000, unless given.",
        ),
        Entry::new(
            "export_timeout_ms",
            Whole(100, 3_600_000),
            "How long an export may take, in milliseconds; 30000, unless given.",
        ),
    ]],
};
