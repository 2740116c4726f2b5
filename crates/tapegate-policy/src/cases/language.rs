//! The tables of the language of cases: its keys and their values.

use tapegate_core::time::read_rfc3339;
use tapegate_yaml::shape::Shape::{Any, Choice, List, Name, Text};
use tapegate_yaml::shape::{CheckedWord, Shape, Table, TableEntry, UnknownKeys};

/// The outcomes that a case may expect.
pub const FATES: &[&str] = &["forward", "deny", "approve"];
/// The gates, in order of evaluation. Logs and messages call the rules `governance` and Cedar
/// `policy`.
pub const GATES: &[&str] =
    &["framing", "visibility", "rules", "governance", "cedar", "policy", "approval"];

/// A point in time.
static MOMENT: CheckedWord = CheckedWord {
    name: "a time, such as `2026-03-20T14:22:11Z`",
    numbers: false,
    check: |text| match read_rfc3339(text) {
        Some(_) => Ok(()),
        None => Err(format!("`{text}` is not a time such as `2026-03-20T14:22:11Z`")),
    },
    pattern: || {
        "^[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9]{2}:[0-9]{2}:[0-9]{2}([.][0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})$"
            .to_owned()
    },
};

/// The caller: a name, or all its attributes.
const WHO: Shape = Shape::Either(&[Name, Shape::Table(&PRINCIPAL)]);

/// Keys that are allowed at the top, for all cases, and in a single case.
const AROUND: &[TableEntry] = &[
    TableEntry::new("server", Name, "The server that is called. Default: `*`."),
    TableEntry::new(
        "profile",
        Choice(&["production", "development"]),
        "The profile. Default: production.",
    ),
    TableEntry::new("principal", WHO, "The caller."),
    TableEntry::new("at", Shape::Word(&MOMENT), "Time of the call. Default: now."),
];

/// A file of cases.
pub static SUITE: Table = Table {
    name: "suite",
    about: "Tests of a policy.",
    rest: UnknownKeys::Refuse,
    groups: &[
        &[TableEntry::new("config", Name, "The policy, relative to the folder of this file.")],
        AROUND,
        &[TableEntry::new("cases", List(&Shape::Table(&CASE)), "The tests.").required()],
    ],
};

pub static CASE: Table = Table {
    name: "case",
    about: "A call and its expected outcome.",
    rest: UnknownKeys::Refuse,
    groups: &[
        &[
            TableEntry::new("name", Name, "Name of the case. Default: what the case calls."),
            TableEntry::new("call", Name, "The tool to call, with `tools/call`."),
            TableEntry::new("method", Name, "Another method, such as `resources/read`."),
            TableEntry::new("prompt", Name, "The prompt, for `prompts/get` and completions."),
            TableEntry::new("uri", Name, "The URI, for `resources/read` and the like."),
            TableEntry::new("arguments", Any, "The arguments of the call."),
            TableEntry::new("message", Text, "A whole JSON-RPC message, verbatim."),
        ],
        AROUND,
        &[
            TableEntry::new("expect", Choice(FATES), "The expected outcome.").required(),
            TableEntry::new("gate", Choice(GATES), "The gate that decides."),
            TableEntry::new("rule", Name, "Name of the rule that matches."),
            TableEntry::new("workflow", Name, "The approval workflow that is used."),
            TableEntry::new("policy", Name, "`@id` of a Cedar policy that decides."),
        ],
    ],
};

/// The caller.
pub static PRINCIPAL: Table = Table {
    name: "principal",
    about: "The caller.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("name", Name, "The application or user."),
        TableEntry::new("namespace", Name, "Namespace that the caller runs in."),
        TableEntry::new("service_account", Name, "Service account that the caller runs as."),
        TableEntry::new("roles", List(&Name), "Roles of the caller."),
        TableEntry::new("client", Name, "The name that the agent gives itself."),
    ]],
};
