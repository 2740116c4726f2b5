//! The tables of the language, a flat list: the keys, the values they take and their meaning.

use super::Shape::{
    Any, Bool, Bytes, Choice, Duration, Either, Elsewhere, List, MapOf, Name, Number, Object, Text,
    Whole,
};
use super::{Entry, Rest, Shape, Table, Word};
use crate::model::Event;

const POSITIVE: Shape = Whole(1, u64::MAX);
const NATURAL: Shape = Whole(0, u64::MAX);

/// A scenario.
pub static SCENARIO: Table = Table {
    name: "scenario",
    about: "A scenario: how an MCP server behaves.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("metadata", Shape::Table(&METADATA), "What people know the scenario by.").ours(),
        Entry::new("interpolate", Choice(&["all", "env", "templates", "none"]),
            "Which `${…}` mean something in this file: variables of the environment, templates, all or none. Stands at the start of a line.").ours(),
        Entry::new("server", Shape::Table(&SERVER), "What the server says of itself.").required(),
        Entry::new("tools", List(&Shape::Table(&TOOL_ITEM)), "Its tools, in the order they are listed."),
        Entry::new("resources", List(&Shape::Table(&RESOURCE_ITEM)), "Its resources."),
        Entry::new("resource_templates", List(&Shape::Table(&TEMPLATE_ITEM)), "Its resource templates.").ours(),
        Entry::new("prompts", List(&Shape::Table(&PROMPT_ITEM)), "Its prompts."),
        Entry::new("behavior", BEHAVIOR_SHAPE, "How it behaves where an item does not say otherwise."),
        Entry::new("baseline", Shape::Table(&BASELINE), "How the server is before any phase changes it."),
        Entry::new("phases", List(&Shape::Table(&PHASE)), "The phases, in their order. The server starts in the first."),
        Entry::new("methods", MapOf(&Shape::Table(&METHOD_RESPONSE)), "Answers to methods by their names, before anything else is asked.").ours(),
        Entry::new("unknown_methods", Choice(&["ignore", "error", "drop"]),
            "What becomes of methods nobody has thought of: answered with null, with an error, or not at all."),
        Entry::new("logging", Shape::Table(&LOGGING), "What is said to the people who run it."),
        Entry::new("expect", List(&Elsewhere(&Shape::Table(&EXPECTATION))), "What a safe agent does and does not do.").ours(),
    ]],
};

/// Metadata of a scenario.
pub static METADATA: Table = Table {
    name: "metadata",
    about: "What people know a scenario by. Other keys are kept for whoever wants them.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("id", Text, "A short name: `rug-pull`."),
        Entry::new("name", Text, "A title."),
        Entry::new("description", Text, "What it does."),
        Entry::new("safe", Text, "What a safe agent does when it meets it."),
        Entry::new("severity", Text, "How bad it is if the agent falls for it."),
        Entry::new("tags", List(&Text), "Words to find it by."),
    ]],
};

/// What a server reports about itself.
pub static SERVER: Table = Table {
    name: "server",
    about: "What the server says of itself.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "The name in `serverInfo`.").required(),
        Entry::new("version", Text, "The version in `serverInfo`; `0.0.0`, unless given."),
        Entry::new("title", Text, "The title in `serverInfo`.").ours(),
        Entry::new("description", Text, "The description in `serverInfo`.").ours(),
        Entry::new("websiteUrl", Text, "The website in `serverInfo`.").ours(),
        Entry::new("icons", List(&Object), "The icons in `serverInfo`.").ours(),
        Entry::new("instructions", Text, "What the model is told about the server.").ours(),
        Entry::new("state_scope", Choice(&["per_connection", "global"]), "Who shares phases and counts: each client has its own, or all share one.").or(&["stateScope"]),
        Entry::new("capabilities", Shape::Table(&CAPABILITIES), "What it says it can do; inferred from what there is, unless given."),
        Entry::new("protocol_versions", List(&Name), "The revisions of the protocol that it speaks, newest first; all that are known, unless given.").ours(),
        Entry::new("page_size", POSITIVE, "How many items a list has on one page; all of them, unless given.").ours(),
    ]],
};

/// The capabilities of a server.
pub static CAPABILITIES: Table = Table {
    name: "capabilities",
    about: "What the server says it can do. Other capabilities are sent as they are.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("tools", Shape::Table(&CAPABILITY), "It has tools."),
        Entry::new("resources", Shape::Table(&CAPABILITY), "It has resources."),
        Entry::new("prompts", Shape::Table(&CAPABILITY), "It has prompts."),
        Entry::new("logging", Object, "It sends log messages."),
    ]],
};

/// One capability.
pub static CAPABILITY: Table = Table {
    name: "capability",
    about: "One thing that the server can do.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("listChanged", Bool, "It tells when the list changes.").or(&["list_changed"]),
        Entry::new("subscribe", Bool, "It tells when a resource changes."),
    ]],
};

/// A tool and the response to calling it.
pub static TOOL_ITEM: Table = Table {
    name: "tool_item",
    about: "A tool and what calling it gives.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("tool", Shape::Table(&TOOL), "The tool as it is listed.").required(),
        Entry::new("response", Shape::Table(&TOOL_RESPONSE), "What calling it gives.").required(),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "How calls of this tool behave."),
    ]],
};

/// A tool as it is listed.
pub static TOOL: Table = Table {
    name: "tool",
    about: "A tool as it is listed. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("name", Name, "Its name.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "What it is for."),
            Entry::new("inputSchema", Object, "The JSON Schema of its arguments.").required(),
        ],
        LISTED,
    ],
};

const LISTED_ENTRY: Entry = Entry::new(
    "listed",
    Bool,
    "Whether it is on the list; one that is not can be used all the same.",
)
.ours();

/// Entries common to all listed items.
const LISTED: &[Entry] = &[
    Entry::new("title", TEXT_OR_GENERATED, "Its title.").ours(),
    Entry::new("annotations", Object, "Hints about it.").ours(),
    Entry::new("icons", List(&Object), "Its icons.").ours(),
    Entry::new("_meta", Object, "Whatever else goes with it.").ours(),
];

/// A resource and the response to reading it.
pub static RESOURCE_ITEM: Table = Table {
    name: "resource_item",
    about: "A resource and what reading it gives.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("resource", Shape::Table(&RESOURCE), "The resource as it is listed.").required(),
        Entry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "What reading it gives; an empty text, unless given.",
        ),
        LISTED_ENTRY,
        Entry::new(
            "behavior",
            BEHAVIOR_SHAPE,
            "How reads of this resource behave, and subscriptions to it.",
        ),
    ]],
};

/// A resource as it is listed.
pub static RESOURCE: Table = Table {
    name: "resource",
    about: "A resource as it is listed. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("uri", Name, "Its URI.").required(),
            Entry::new("name", Text, "Its name.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "What it is."),
            Entry::new("mimeType", Text, "What it is made of."),
        ],
        LISTED,
    ],
};

/// A resource template and the response to reading one of its resources.
pub static TEMPLATE_ITEM: Table = Table {
    name: "template_item",
    about: "A resource template and what reading a resource of it gives.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("template", Shape::Table(&TEMPLATE), "The template as it is listed.").required(),
        Entry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "What reading a resource of it gives; an empty text, unless given.",
        ),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "How such reads behave."),
    ]],
};

/// A resource template as it is listed.
pub static TEMPLATE: Table = Table {
    name: "template",
    about: "A resource template as it is listed. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("uriTemplate", Name, "The URI with variables in braces.").required(),
            Entry::new("name", Text, "Its name.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "What it is."),
            Entry::new("mimeType", Text, "What its resources are made of."),
        ],
        LISTED,
    ],
};

/// A prompt and the response to getting it.
pub static PROMPT_ITEM: Table = Table {
    name: "prompt_item",
    about: "A prompt and what getting it gives.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("prompt", Shape::Table(&PROMPT), "The prompt as it is listed.").required(),
        Entry::new("response", Shape::Table(&PROMPT_RESPONSE), "What getting it gives.").required(),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "How gets of this prompt behave."),
    ]],
};

/// A prompt as it is listed.
pub static PROMPT: Table = Table {
    name: "prompt",
    about: "A prompt as it is listed. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("name", Name, "Its name.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "What it is for."),
            Entry::new("arguments", List(&Shape::Table(&ARGUMENT)), "What it takes."),
        ],
        LISTED,
    ],
};

/// An argument of a prompt.
pub static ARGUMENT: Table = Table {
    name: "argument",
    about: "An argument of a prompt. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("name", Name, "Its name.").required(),
        Entry::new("description", Text, "What it is for."),
        Entry::new("required", Bool, "Whether it must be given."),
        Entry::new("title", Text, "Its title.").ours(),
    ]],
};

// Shared shapes are statics, because a constant cannot borrow a value made from a static.
static ACTION_SHAPE: Shape = Shape::Table(&ACTION);
static CONTENT_SHAPE: Shape = Shape::Table(&CONTENT);
static RESOURCE_CONTENT_SHAPE: Shape = Shape::Table(&RESOURCE_CONTENT);
static MESSAGE_SHAPE: Shape = Shape::Table(&MESSAGE);

/// Entries common to all answers.
const ANSWER: &[Entry] = &[
    Entry::new("result", Any, "The whole result, as it is sent, instead of anything else.").ours(),
    Entry::new("_meta", Object, "Whatever else goes with the result.").ours(),
    Entry::new("error", Shape::Table(&ERROR), "A JSON-RPC error instead of a result.").ours(),
    Entry::new("silent", Bool, "Whether there is no answer at all.").ours(),
    Entry::new("before", List(&ACTION_SHAPE), "What is done before the answer is given.").ours(),
];

/// The body of a tool's answer.
const TOOL_BODY: &[Entry] = &[
    Entry::new("content", List(&CONTENT_SHAPE), "What the tool gives."),
    Entry::new("isError", Bool, "Whether that is an error, as the tool sees it.")
        .or(&["is_error"])
        .ours(),
    Entry::new("structuredContent", Object, "What the tool gives, as data.")
        .or(&["structured_content"])
        .ours(),
];

/// The body of a resource.
const RESOURCE_BODY: &[Entry] = &[
    Entry::new("contents", List(&RESOURCE_CONTENT_SHAPE), "What is in the resource."),
    Entry::new("content", TEXT_OR_GENERATED, "The text of the resource, for short."),
];

/// The body of a prompt.
const PROMPT_BODY: &[Entry] = &[
    Entry::new("messages", List(&MESSAGE_SHAPE), "What the prompt says."),
    Entry::new("description", Text, "What the prompt is for."),
];

/// Entries for answers that vary.
macro_rules! chosen {
    ($branch:expr, $entry:expr) => {
        &[
            Entry::new(
                "match",
                List(&Shape::Table($branch)),
                "Answers for some requests; the first that fits is taken.",
            ),
            Entry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers that are given one after the other; a list among them stands for its own.",
            ),
            EXHAUSTED,
            HANDLER_ENTRY,
        ]
    };
}

/// Entries of a branch besides its answer.
macro_rules! branch {
    ($default:expr, $entry:expr) => {
        &[
            Entry::new("when", WHEN_SHAPE, "What the request must look like; all of it must fit."),
            Entry::new(
                "default",
                Either(&[Bool, Shape::Table($default)]),
                "The answer if no branch fits: `true`, or the answer itself.",
            ),
            Entry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers that are given one after the other; a list among them stands for its own.",
            ),
            EXHAUSTED,
            HANDLER_ENTRY,
        ]
    };
}

/// Additional entries of a branch's `default` answer.
macro_rules! default {
    ($entry:expr) => {
        &[
            Entry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers that are given one after the other; a list among them stands for its own.",
            ),
            EXHAUSTED,
            HANDLER_ENTRY,
        ]
    };
}

const EXHAUSTED: Entry = Entry::new("on_exhausted", Choice(&["last", "cycle", "error"]),
    "What comes after the last answer of the sequence: the last again, the first again, or an error.").or(&["onExhausted"]);
const HANDLER_ENTRY: Entry = Entry::new(
    "handler",
    Shape::Table(&HANDLER),
    "A program or another server that answers; only with `--allow-external-handlers`.",
);

/// The four tables of one kind of item: response, entry of a sequence, branch, default of a branch.
macro_rules! responses {
    ($body:expr, $word:literal, $response:ident, $entry:ident, $branch:ident, $default:ident) => {
        #[doc = concat!("What using ", $word, " gives.")]
        pub static $response: Table = Table {
            name: concat!($word, "_response"),
            about: concat!("What using a ", $word, " gives."),
            rest: Rest::Refuse,
            groups: &[$body, ANSWER, chosen!(&$branch, &$entry)],
        };
        #[doc = concat!("One answer of a sequence: ", $word)]
        pub static $entry: Table = Table {
            name: concat!($word, "_answer"),
            about: "One answer of a sequence.",
            rest: Rest::Refuse,
            groups: &[$body, ANSWER],
        };
        #[doc = concat!("An answer for some requests: ", $word)]
        pub static $branch: Table = Table {
            name: concat!($word, "_branch"),
            about: "An answer for some requests.",
            rest: Rest::Refuse,
            groups: &[branch!(&$default, &$entry), $body, ANSWER],
        };
        #[doc = concat!("The answer if no branch fits: ", $word)]
        pub static $default: Table = Table {
            name: concat!($word, "_default"),
            about: "The answer if no branch fits.",
            rest: Rest::Refuse,
            groups: &[$body, ANSWER, default!(&$entry)],
        };
    };
}

responses!(TOOL_BODY, "tool", TOOL_RESPONSE, TOOL_ANSWER, TOOL_BRANCH, TOOL_DEFAULT);
responses!(
    RESOURCE_BODY,
    "resource",
    RESOURCE_RESPONSE,
    RESOURCE_ANSWER,
    RESOURCE_BRANCH,
    RESOURCE_DEFAULT
);
responses!(PROMPT_BODY, "prompt", PROMPT_RESPONSE, PROMPT_ANSWER, PROMPT_BRANCH, PROMPT_DEFAULT);
responses!(&[], "method", METHOD_RESPONSE, METHOD_ANSWER, METHOD_BRANCH, METHOD_DEFAULT);

const TEXT_OR_GENERATED: Shape = Either(&[Text, Shape::Table(&GENERATED)]);

/// A generated text.
pub static GENERATED: Table = Table {
    name: "generated",
    about: "Text that is made.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("$generate", GENERATOR_SHAPE, "What makes it.").required()]],
};

/// A content item.
pub static CONTENT: Table = Table {
    name: "content",
    about: "An item of content: `text`, `image`, `audio`, `resource`, `resource_link`. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("type", Name, "What it is.").required(),
        Entry::new("text", TEXT_OR_GENERATED, "The text."),
        Entry::new("data", TEXT_OR_GENERATED, "The bytes, in base64."),
        Entry::new("mimeType", Text, "What it is made of."),
        Entry::new("resource", Shape::Table(&RESOURCE_CONTENT), "The resource that is embedded."),
        Entry::new("$generate", GENERATOR_SHAPE, "What makes the text."),
    ]],
};

/// A part of a resource.
pub static RESOURCE_CONTENT: Table = Table {
    name: "resource_content",
    about: "A part of a resource. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("uri", Text, "Its URI; that of the resource, unless given."),
        Entry::new("mimeType", Text, "What it is made of."),
        Entry::new("text", TEXT_OR_GENERATED, "The text."),
        Entry::new("blob", TEXT_OR_GENERATED, "The bytes, in base64."),
        Entry::new("$generate", GENERATOR_SHAPE, "What makes the text."),
    ]],
};

/// A message of a prompt.
pub static MESSAGE: Table = Table {
    name: "message",
    about: "A message of a prompt. Other keys are sent as they are.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("role", Name, "Who says it: `user` or `assistant`.").required(),
        Entry::new(
            "content",
            Either(&[Text, Shape::Table(&CONTENT)]),
            "What is said; text, for short, or an item of content.",
        )
        .required(),
    ]],
};

/// A JSON-RPC error.
pub static ERROR: Table = Table {
    name: "error",
    about: "A JSON-RPC error. Other keys are sent as they are.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("code", Number, "Its code.").required(),
        Entry::new("message", TEXT_OR_GENERATED, "What it says.").required(),
        Entry::new("data", Any, "What else it says."),
    ]],
};

/// A program or another server that answers.
pub static HANDLER: Table = Table {
    name: "handler",
    about: "A program or another server that answers.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("type", Choice(&["http", "command"]), "How it is reached.").required(),
        Entry::new("url", Name, "Where it is asked by POST.").only(&["http"]),
        Entry::new("headers", MapOf(&Text), "Headers besides those that must be.").only(&["http"]),
        Entry::new("cmd", List(&Text), "The program and its arguments; no shell is involved.")
            .only(&["command"]),
        Entry::new("env", MapOf(&Text), "Variables besides our own.").only(&["command"]),
        Entry::new("working_dir", Text, "Where it is started.").only(&["command"]),
        Entry::new("timeout_ms", Whole(100, 300_000), "How long it may take; 30000, unless given."),
    ]],
};

/// The state of a server before any phase changes it.
pub static BASELINE: Table = Table {
    name: "baseline",
    about: "How the server is before any phase changes it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "tools",
            List(&Shape::Table(&TOOL_ITEM)),
            "Its tools, in the order they are listed.",
        ),
        Entry::new("resources", List(&Shape::Table(&RESOURCE_ITEM)), "Its resources."),
        Entry::new(
            "resource_templates",
            List(&Shape::Table(&TEMPLATE_ITEM)),
            "Its resource templates.",
        )
        .ours(),
        Entry::new("prompts", List(&Shape::Table(&PROMPT_ITEM)), "Its prompts."),
        Entry::new(
            "capabilities",
            Shape::Table(&CAPABILITIES),
            "What it says it can do, over what stands under `server`.",
        ),
        Entry::new(
            "behavior",
            BEHAVIOR_SHAPE,
            "How it behaves where an item does not say otherwise.",
        ),
    ]],
};

// An item of a phase may be given as the path of a file.
static TOOL_OR_PATH: Shape = Either(&[Shape::Table(&TOOL_ITEM), Name]);
static RESOURCE_OR_PATH: Shape = Either(&[Shape::Table(&RESOURCE_ITEM), Name]);
static TEMPLATE_OR_PATH: Shape = Either(&[Shape::Table(&TEMPLATE_ITEM), Name]);
static PROMPT_OR_PATH: Shape = Either(&[Shape::Table(&PROMPT_ITEM), Name]);

/// A phase.
pub static PHASE: Table = Table {
    name: "phase",
    about: "A phase: what is other than in the baseline while it lasts, and what leads out of it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "Its name.").required(),
        Entry::new("remove_tools", List(&Text), "Names of tools that are not there."),
        Entry::new("remove_resources", List(&Text), "URIs of resources that are not there."),
        Entry::new("remove_resource_templates", List(&Text), "Templates that are not there.")
            .ours(),
        Entry::new("remove_prompts", List(&Text), "Names of prompts that are not there."),
        Entry::new(
            "replace_tools",
            MapOf(&TOOL_OR_PATH),
            "Other tools instead of those with these names; a path stands for a file.",
        ),
        Entry::new(
            "replace_resources",
            MapOf(&RESOURCE_OR_PATH),
            "Other resources instead of those with these URIs.",
        ),
        Entry::new(
            "replace_resource_templates",
            MapOf(&TEMPLATE_OR_PATH),
            "Other templates instead of these.",
        )
        .ours(),
        Entry::new(
            "replace_prompts",
            MapOf(&PROMPT_OR_PATH),
            "Other prompts instead of those with these names.",
        ),
        Entry::new("add_tools", List(&TOOL_OR_PATH), "More tools; a path stands for a file."),
        Entry::new("add_resources", List(&RESOURCE_OR_PATH), "More resources."),
        Entry::new("add_resource_templates", List(&TEMPLATE_OR_PATH), "More resource templates.")
            .ours(),
        Entry::new("add_prompts", List(&PROMPT_OR_PATH), "More prompts."),
        Entry::new(
            "replace_capabilities",
            Shape::Table(&CAPABILITIES),
            "What it says it can do, over what the baseline says.",
        ),
        Entry::new("behavior", BEHAVIOR_SHAPE, "How it behaves while the phase lasts."),
        Entry::new(
            "on_enter",
            List(&Shape::Table(&ACTION)),
            "What is done when the phase is entered.",
        ),
        Entry::new(
            "advance",
            Shape::Table(&ADVANCE),
            "What leads out of it; without, it is the last.",
        ),
    ]],
};

/// An event caused by a client: `tools/call:NAME`.
pub static EVENT: Word = Word {
    name: "an event, such as `tools/call`",
    numbers: false,
    check: |text| Event::parse(text).map(drop),
    pattern: || {
        let one = |(name, narrows): (&str, bool)| {
            format!("{name}{}", if narrows { "(:.+)?" } else { "" })
        };
        format!("^({})$", Event::names().map(one).collect::<Vec<_>>().join("|"))
    },
};

/// What ends a phase.
pub static ADVANCE: Table = Table {
    name: "advance",
    about: "What leads out of a phase: an event, a time, or whichever comes first.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "on",
            Shape::Word(&EVENT),
            "The event that is waited for: `tools/call`, `tools/call:NAME`, `resources/read:URI`.",
        ),
        Entry::new(
            "count",
            POSITIVE,
            "How many of them since the start, at least; 1, unless given.",
        ),
        Entry::new("match", WHEN_SHAPE, "What the request must look like; all of it must fit."),
        Entry::new("after", Duration, "How long after the phase was entered it is left anyway."),
        Entry::new("timeout", Duration, "How long the event is waited for."),
        Entry::new(
            "on_timeout",
            Choice(&["advance", "abort"]),
            "What happens then: the phase is left, or the server ends with an error.",
        ),
    ]],
};

/// Something a server does on its own.
pub static ACTION: Table = Table {
    name: "action",
    about: "Something the server does of its own accord: one of these.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "send_notification",
            Either(&[Name, Shape::Table(&SEND_NOTIFICATION)]),
            "It sends a notification: its method, or method and params.",
        ),
        Entry::new(
            "send_request",
            Either(&[Name, Shape::Table(&SEND_REQUEST)]),
            "It asks the client. Before an answer it waits for the reply.",
        ),
        Entry::new(
            "progress",
            Shape::Table(&PROGRESS),
            "It reports progress, if the client wants to know.",
        )
        .ours(),
        Entry::new(
            "log_message",
            Shape::Table(&LOG_MESSAGE),
            "It sends `notifications/message`, if the client wants to hear of this level.",
        )
        .ours(),
        Entry::new("log", Text, "It says something to the people who run it."),
        Entry::new("wait", Duration, "It waits.").ours(),
        Entry::new(
            "end_stream",
            Bool,
            "By HTTP it ends the stream of the answer; the client comes back for the rest.",
        )
        .ours(),
    ]],
};

/// A notification.
pub static SEND_NOTIFICATION: Table = Table {
    name: "send_notification",
    about: "A notification.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", Name, "Its method.").required(),
        Entry::new("params", Object, "Its params."),
    ]],
};

/// A request to the client.
pub static SEND_REQUEST: Table = Table {
    name: "send_request",
    about: "A request to the client.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", Name, "Its method.").required(),
        Entry::new("id", Any, "Its id, where it matters."),
        Entry::new("params", Object, "Its params."),
        Entry::new("as", Name, "The name that the reply goes by in templates: `${reply.NAME.…}`.")
            .ours(),
        Entry::new(
            "timeout",
            Duration,
            "How long it waits before it goes on without a reply; 30s, unless given.",
        )
        .ours(),
    ]],
};

/// A progress notification.
pub static PROGRESS: Table = Table {
    name: "progress",
    about: "A report of progress. Other keys are sent as they are.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("progress", Either(&[Number, Text]), "How far it is.").required(),
        Entry::new("total", Either(&[Number, Text]), "How far it goes."),
        Entry::new("message", Text, "What is being done."),
    ]],
};

/// A log message to the client.
pub static LOG_MESSAGE: Table = Table {
    name: "log_message",
    about: "A log message to the client. Other keys are sent as they are.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new(
            "level",
            Choice(&[
                "debug",
                "info",
                "notice",
                "warning",
                "error",
                "critical",
                "alert",
                "emergency",
            ]),
            "How important it is.",
        )
        .required(),
        Entry::new("logger", Text, "Who says it."),
        Entry::new("data", Any, "What is said.").required(),
    ]],
};

/// The log settings.
pub static LOGGING: Table = Table {
    name: "logging",
    about: "What is said to the people who run it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "level",
            Choice(&["debug", "info", "warn", "error"]),
            "What is worth saying; `info`, unless given.",
        ),
        Entry::new("on_phase_change", Bool, "Whether a change of phase is said."),
        Entry::new("on_trigger_match", Bool, "Whether it is said when a trigger fires."),
        Entry::new("output", Name, "Where it is said: `stderr`, `stdout` or a file."),
    ]],
};

const BEHAVIOR_SHAPE: Shape = Shape::Table(&BEHAVIOR);

/// How a server behaves.
pub static BEHAVIOR: Table = Table {
    name: "behavior",
    about: "How a server behaves besides what it says.",
    rest: Rest::Refuse,
    groups: &[
        &[
            Entry::new(
                "delivery",
                Either(&[DELIVERIES, Shape::Table(&DELIVERY)]),
                "How answers travel: the kind, with its settings beside it, or kind and settings as a map.",
            ),
            Entry::new("side_effects", List(&Shape::Table(&SIDE_EFFECT)), "What it does besides."),
            Entry::new(
                "on_cancel",
                Choice(&["stop", "ignore"]),
                "What it makes of a client that no longer wants to know.",
            )
            .ours(),
        ],
        DELIVERY_SETTINGS,
    ],
};

const DELIVERIES: Shape =
    Choice(&["normal", "slow_loris", "unbounded_line", "nested_json", "response_delay"]);
const DELIVERY_SETTINGS: &[Entry] = &[
    Entry::new(
        "byte_delay_ms",
        NATURAL,
        "How long it rests between two pieces; 100, unless given.",
    )
    .only(&["slow_loris"]),
    Entry::new("chunk_size", POSITIVE, "How many bytes a piece has; 1, unless given.")
        .only(&["slow_loris"]),
    Entry::new("target_bytes", Bytes, "How long it is at least; 0, unless given.")
        .only(&["unbounded_line"]),
    Entry::new("padding_char", Text, "What it is filled up with; `A`, unless given.")
        .only(&["unbounded_line"]),
    Entry::new("depth", NATURAL, "How deep; 10000, unless given.").only(&["nested_json"]),
    Entry::new("key", Text, "The key of each object; `a`, unless given.").only(&["nested_json"]),
    Entry::new("delay_ms", NATURAL, "How late; 5000, unless given.").only(&["response_delay"]),
];

/// The delivery of answers, as a map.
pub static DELIVERY: Table = Table {
    name: "delivery",
    about: "How answers travel.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("type", DELIVERIES, "The kind.").required()], DELIVERY_SETTINGS],
};

/// Something a server does besides answering.
pub static SIDE_EFFECT: Table = Table {
    name: "side_effect",
    about: "Something the server does besides answering.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "type",
            Choice(&[
                "notification_flood",
                "batch_amplify",
                "pipe_deadlock",
                "close_connection",
                "duplicate_request_ids",
            ]),
            "What.",
        )
        .required(),
        Entry::new(
            "trigger",
            Choice(&["on_request", "on_connect", "on_subscribe", "on_unsubscribe", "continuous"]),
            "When; `on_request`, unless given.",
        ),
        Entry::new("rate_per_sec", NATURAL, "How many a second; 1000, unless given.")
            .only(&["notification_flood"]),
        Entry::new("duration_sec", NATURAL, "How long; 10, unless given.")
            .only(&["notification_flood"]),
        Entry::new("batch_size", NATURAL, "How many; 10000, unless given.")
            .only(&["batch_amplify"]),
        Entry::new("fill_bytes", Bytes, "How many; 1 MB, unless given.").only(&["pipe_deadlock"]),
        Entry::new("graceful", Bool, "Whether what was said still goes out; true, unless given.")
            .only(&["close_connection"]),
        Entry::new("delay_ms", NATURAL, "How long it waits before; 0, unless given.")
            .only(&["close_connection"]),
        Entry::new("count", NATURAL, "How many; 3, unless given.").only(&["duplicate_request_ids"]),
        Entry::new("id", Any, "The id; 1, unless given.").only(&["duplicate_request_ids"]),
        Entry::new("method", Text, "The method of what is sent."),
        Entry::new("params", Object, "The params of what is sent."),
    ]],
};

const GENERATOR_SHAPE: Shape = Shape::Table(&GENERATOR);

/// A payload generator.
pub static GENERATOR: Table = Table {
    name: "generator",
    about: "What makes a payload, always the same.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "type",
            Choice(&[
                "nested_json",
                "batch_notifications",
                "garbage",
                "repeated_keys",
                "unicode_spam",
                "ansi_escape",
            ]),
            "What it makes.",
        )
        .required(),
        Entry::new("depth", NATURAL, "How deep.").only(&["nested_json"]),
        Entry::new(
            "structure",
            Choice(&["object", "array", "mixed"]),
            "Of what; `object`, unless given.",
        )
        .only(&["nested_json"]),
        Entry::new("key", Text, "The key of each object; `a`, unless given.")
            .only(&["nested_json"]),
        Entry::new("inner", Any, "What is innermost; null, unless given.").only(&["nested_json"]),
        Entry::new("count", NATURAL, "How many.").only(&[
            "batch_notifications",
            "repeated_keys",
            "ansi_escape",
        ]),
        Entry::new("method", Text, "Their method; `notifications/message`, unless given.")
            .only(&["batch_notifications"]),
        Entry::new("params", Object, "Their params.").only(&["batch_notifications"]),
        Entry::new("bytes", Bytes, "How many bytes.").only(&["garbage", "unicode_spam"]),
        Entry::new(
            "charset",
            Choice(&["ascii", "utf8", "binary", "numeric", "alphanumeric"]),
            "Of what; `ascii`, unless given.",
        )
        .only(&["garbage"]),
        Entry::new("seed", NATURAL, "Another number makes another payload; 0, unless given."),
        Entry::new("key_length", POSITIVE, "How long the key is; 8, unless given.")
            .only(&["repeated_keys"]),
        Entry::new("value", Any, "The value of each; `x`, unless given.").only(&["repeated_keys"]),
        Entry::new(
            "category",
            Choice(&["zero_width", "rtl", "homoglyph", "combining", "emoji"]),
            "Of what.",
        )
        .only(&["unicode_spam"]),
        Entry::new("carrier", Text, "The text it is mixed into.").only(&["unicode_spam"]),
        Entry::new(
            "sequences",
            List(&Choice(&["cursor_move", "color", "title", "hyperlink", "clear"])),
            "Which.",
        )
        .only(&["ansi_escape"]),
        Entry::new("payload", Text, "The text between them.").only(&["ansi_escape"]),
    ]],
};

const WHEN_SHAPE: Shape = Elsewhere(&Object);

/// An expectation of how a safe agent acts.
pub static EXPECTATION: Table = Table {
    name: "expectation",
    about: "Something that a safe agent does, or does not do.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("id", Name, "What reports know it by.").required(),
        Entry::new("title", Text, "What it says, in a line."),
        Entry::new("severity", Choice(&["low", "medium", "high", "critical"]), "How bad it is."),
        Entry::new("help", Text, "What to do about it."),
        Entry::new("never", Shape::Table(&SIGHTING), "What a safe agent never says."),
        Entry::new("must", Shape::Table(&SIGHTING), "What a safe agent says."),
        Entry::new("after", Shape::Table(&SIGHTING), "Only what comes after this counts."),
        Entry::new("count", POSITIVE, "How often, at least; 1, unless given."),
    ]],
};

const TEXTS: Shape = Either(&[Text, List(&Text)]);

/// The description of a client message.
pub static SIGHTING: Table = Table {
    name: "sighting",
    about: "What a message of the client looks like; all of it must fit.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", TEXTS, "Its method, or several; `*` stands for anything."),
        Entry::new("name", TEXTS, "The tool, prompt or URI it is about."),
        Entry::new("phase", TEXTS, "The phase it comes in."),
        Entry::new("reply", TEXTS, "The request of the server that it answers."),
        Entry::new("args", Object, "Paths into its arguments, and what is there."),
        Entry::new("where", Object, "Paths into the message, and what is there."),
        Entry::new("contains", TEXTS, "Text that is somewhere in it."),
        Entry::new("regex", TEXTS, "A regular expression that fits somewhere in it."),
    ]],
};
