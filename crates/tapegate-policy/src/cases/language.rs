//! The tables of the language of cases: its keys and their values.

use tapegate_core::time::read_rfc3339;
use tapegate_yaml::shape::Shape::{Any, Choice, List, Name, Text};
use tapegate_yaml::shape::{Entry, Rest, Shape, Table, Word};

/// The outcomes that a case may expect.
pub const FATES: &[&str] = &["forward", "deny", "approve"];
/// The gates, in order of evaluation. Logs and messages call the rules `governance` and Cedar
/// `policy`.
pub const GATES: &[&str] =
    &["framing", "visibility", "rules", "governance", "cedar", "policy", "approval"];

/// A point in time.
static MOMENT: Word = Word {
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
const AROUND: &[Entry] = &[
    Entry::new("server", Name, "The server that is called. Default: `*`."),
    Entry::new(
        "profile",
        Choice(&["production", "development"]),
        "The profile. Default: production.",
    ),
    Entry::new("principal", WHO, "The caller."),
    Entry::new("at", Shape::Word(&MOMENT), "Time of the call. Default: now."),
];

/// A file of cases.
pub static SUITE: Table = Table {
    name: "suite",
    about: "Tests of a policy.",
    rest: Rest::Refuse,
    groups: &[
        &[Entry::new("config", Name, "The policy, relative to the folder of this file.")],
        AROUND,
        &[Entry::new("cases", List(&Shape::Table(&CASE)), "The tests.").required()],
    ],
};

/// A case.
pub static CASE: Table = Table {
    name: "case",
    about: "A call and its expected outcome.",
    rest: Rest::Refuse,
    groups: &[
        &[
            Entry::new("name", Name, "Name of the case. Default: what the case calls."),
            Entry::new("call", Name, "The tool to call, with `tools/call`."),
            Entry::new("method", Name, "Another method, such as `resources/read`."),
            Entry::new("prompt", Name, "The prompt, for `prompts/get` and completions."),
            Entry::new("uri", Name, "The URI, for `resources/read` and the like."),
            Entry::new("arguments", Any, "The arguments of the call."),
            Entry::new("message", Text, "A whole JSON-RPC message, verbatim."),
        ],
        AROUND,
        &[
            Entry::new("expect", Choice(FATES), "The expected outcome.").required(),
            Entry::new("gate", Choice(GATES), "The gate that decides."),
            Entry::new("rule", Name, "Name of the rule that matches."),
            Entry::new("workflow", Name, "The approval workflow that is used."),
            Entry::new("policy", Name, "`@id` of a Cedar policy that decides."),
        ],
    ],
};

/// The caller.
pub static PRINCIPAL: Table = Table {
    name: "principal",
    about: "The caller.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "The application or user."),
        Entry::new("namespace", Name, "Namespace that the caller runs in."),
        Entry::new("service_account", Name, "Service account that the caller runs as."),
        Entry::new("roles", List(&Name), "Roles of the caller."),
        Entry::new("client", Name, "The name that the agent gives itself."),
    ]],
};
