//! The tables of the language, a flat list: the keys, the values they take and their meaning.

use super::Shape::{
    Any, Bool, Bytes, Choice, Duration, Either, Elsewhere, List, MapOf, Name, Number, Object, Text,
    Whole,
};
use super::{CheckedWord, Shape, Table, TableEntry, UnknownKeys};
use crate::model::PhaseEvent;

const POSITIVE: Shape = Whole(1, u64::MAX);
const NATURAL: Shape = Whole(0, u64::MAX);

/// A scenario.
pub static SCENARIO: Table = Table {
    name: "scenario",
    about: "A scenario: the behavior of an MCP server.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("metadata", Shape::Table(&METADATA), "Information about the scenario for readers and reports.").own_extension(),
        TableEntry::new("interpolate", Choice(&["all", "env", "templates", "none"]),
            "Which `${…}` are expanded in this file: environment variables, templates, both or none. Must be at the start of a line.").own_extension(),
        TableEntry::new("server", Shape::Table(&SERVER), "The server's name, version and settings.").required(),
        TableEntry::new("tools", List(&Shape::Table(&TOOL_ITEM)), "The tools, in list order."),
        TableEntry::new("resources", List(&Shape::Table(&RESOURCE_ITEM)), "The resources, in list order."),
        TableEntry::new("resource_templates", List(&Shape::Table(&TEMPLATE_ITEM)), "The resource templates, in list order.").own_extension(),
        TableEntry::new("prompts", List(&Shape::Table(&PROMPT_ITEM)), "The prompts, in list order."),
        TableEntry::new("behavior", BEHAVIOR_SHAPE, "Default behavior. A tool, resource or prompt can override it."),
        TableEntry::new("baseline", Shape::Table(&BASELINE), "The state of the server before any phase changes it."),
        TableEntry::new("phases", List(&Shape::Table(&PHASE)), "The phases, in order. The server starts in the first."),
        TableEntry::new("methods", MapOf(&Shape::Table(&METHOD_RESPONSE)), "Answers by method name. They take precedence over everything else.").own_extension(),
        TableEntry::new("unknown_methods", Choice(&["ignore", "error", "drop"]),
            "Answer to an unknown method: a null result, an error, or none."),
        TableEntry::new("logging", Shape::Table(&LOGGING), "Log settings."),
        TableEntry::new("expect", List(&Elsewhere(&Shape::Table(&EXPECTATION))), "What a safe agent must do and must not do.").own_extension(),
    ]],
};

/// Metadata of a scenario.
pub static METADATA: Table = Table {
    name: "metadata",
    about: "Information about a scenario for readers and reports. Other keys are kept.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new("id", Text, "Short identifier, such as `rug-pull`."),
        TableEntry::new("name", Text, "Title of the scenario."),
        TableEntry::new("description", Text, "What the scenario does."),
        TableEntry::new("safe", Text, "What a safe agent does in this scenario."),
        TableEntry::new("severity", Text, "Severity if the agent falls for the attack."),
        TableEntry::new("tags", List(&Text), "Search terms."),
    ]],
};

/// What a server reports about itself.
pub static SERVER: Table = Table {
    name: "server",
    about: "The server's name, version and settings.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("name", Name, "The name in `serverInfo`.").required(),
        TableEntry::new("version", Text, "The version in `serverInfo`. Default: `0.0.0`."),
        TableEntry::new("title", Text, "The title in `serverInfo`.").own_extension(),
        TableEntry::new("description", Text, "The description in `serverInfo`.").own_extension(),
        TableEntry::new("websiteUrl", Text, "The website in `serverInfo`.").own_extension(),
        TableEntry::new("icons", List(&Object), "The icons in `serverInfo`.").own_extension(),
        TableEntry::new("instructions", Text, "The instructions that the server gives to the model.").own_extension(),
        TableEntry::new("state_scope", Choice(&["per_connection", "global"]), "Scope of phases and counters: each connection has its own, or all connections share them.").with_aliases(&["stateScope"]),
        TableEntry::new("capabilities", Shape::Table(&CAPABILITIES), "The capabilities that the server declares. Default: inferred from the scenario."),
        TableEntry::new("protocol_versions", List(&Name), "The protocol versions that the server supports, newest first. Default: all known versions.").own_extension(),
        TableEntry::new("page_size", POSITIVE, "Number of items on one page of a list. Default: all items.").own_extension(),
    ]],
};

/// The capabilities of a server.
pub static CAPABILITIES: Table = Table {
    name: "capabilities",
    about: "The capabilities that the server declares. Other capabilities are sent unchanged.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new("tools", Shape::Table(&CAPABILITY), "The server has tools."),
        TableEntry::new("resources", Shape::Table(&CAPABILITY), "The server has resources."),
        TableEntry::new("prompts", Shape::Table(&CAPABILITY), "The server has prompts."),
        TableEntry::new("logging", Object, "The server sends log messages."),
    ]],
};

/// One capability.
pub static CAPABILITY: Table = Table {
    name: "capability",
    about: "The options of one capability.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new("listChanged", Bool, "The server notifies clients when the list changes.")
            .with_aliases(&["list_changed"]),
        TableEntry::new(
            "subscribe",
            Bool,
            "The server notifies subscribed clients when a resource changes.",
        ),
    ]],
};

/// A tool and the response to calling it.
pub static TOOL_ITEM: Table = Table {
    name: "tool_item",
    about: "A tool and the answer to its calls.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("tool", Shape::Table(&TOOL), "The tool definition, as listed.").required(),
        TableEntry::new(
            "response",
            Shape::Table(&TOOL_RESPONSE),
            "The answer to a call of the tool.",
        )
        .required(),
        LISTED_ENTRY,
        TableEntry::new("behavior", BEHAVIOR_SHAPE, "Behavior for calls of this tool."),
    ]],
};

/// A tool as it is listed.
pub static TOOL: Table = Table {
    name: "tool",
    about: "A tool definition, as listed. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[
        &[
            TableEntry::new("name", Name, "Name of the tool.").required(),
            TableEntry::new("description", TEXT_OR_GENERATED, "Description of the tool."),
            TableEntry::new("inputSchema", Object, "JSON Schema of the arguments.").required(),
        ],
        LISTED,
    ],
};

const LISTED_ENTRY: TableEntry = TableEntry::new(
    "listed",
    Bool,
    "Whether lists include the item. An unlisted item can still be used. Default: true.",
)
.own_extension();

/// Entries common to all listed items.
const LISTED: &[TableEntry] = &[
    TableEntry::new("title", TEXT_OR_GENERATED, "Display title.").own_extension(),
    TableEntry::new("annotations", Object, "Annotations for the client.").own_extension(),
    TableEntry::new("icons", List(&Object), "Icons for display.").own_extension(),
    TableEntry::new("_meta", Object, "Additional metadata.").own_extension(),
];

/// A resource and the response to reading it.
pub static RESOURCE_ITEM: Table = Table {
    name: "resource_item",
    about: "A resource and the answer to reading it.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("resource", Shape::Table(&RESOURCE), "The resource definition, as listed.")
            .required(),
        TableEntry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "The answer to a read of the resource. Default: empty text.",
        ),
        LISTED_ENTRY,
        TableEntry::new(
            "behavior",
            BEHAVIOR_SHAPE,
            "Behavior for reads of this resource and subscriptions to it.",
        ),
    ]],
};

/// A resource as it is listed.
pub static RESOURCE: Table = Table {
    name: "resource",
    about: "A resource definition, as listed. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[
        &[
            TableEntry::new("uri", Name, "URI of the resource.").required(),
            TableEntry::new("name", Text, "Name of the resource.").required(),
            TableEntry::new("description", TEXT_OR_GENERATED, "Description of the resource."),
            TableEntry::new("mimeType", Text, "MIME type of the resource."),
        ],
        LISTED,
    ],
};

/// A resource template and the response to reading one of its resources.
pub static TEMPLATE_ITEM: Table = Table {
    name: "template_item",
    about: "A resource template and the answer to reading a resource that matches it.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("template", Shape::Table(&TEMPLATE), "The template definition, as listed.")
            .required(),
        TableEntry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "The answer to a read of a matching resource. Default: empty text.",
        ),
        LISTED_ENTRY,
        TableEntry::new("behavior", BEHAVIOR_SHAPE, "Behavior for reads of matching resources."),
    ]],
};

/// A resource template as it is listed.
pub static TEMPLATE: Table = Table {
    name: "template",
    about: "A resource template definition, as listed. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[
        &[
            TableEntry::new("uriTemplate", Name, "URI with variables in braces.").required(),
            TableEntry::new("name", Text, "Name of the template.").required(),
            TableEntry::new("description", TEXT_OR_GENERATED, "Description of the template."),
            TableEntry::new("mimeType", Text, "MIME type of the matching resources."),
        ],
        LISTED,
    ],
};

/// A prompt and the response to getting it.
pub static PROMPT_ITEM: Table = Table {
    name: "prompt_item",
    about: "A prompt and the answer to getting it.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("prompt", Shape::Table(&PROMPT), "The prompt definition, as listed.")
            .required(),
        TableEntry::new(
            "response",
            Shape::Table(&PROMPT_RESPONSE),
            "The answer to a `prompts/get` of the prompt.",
        )
        .required(),
        LISTED_ENTRY,
        TableEntry::new("behavior", BEHAVIOR_SHAPE, "Behavior for requests of this prompt."),
    ]],
};

/// A prompt as it is listed.
pub static PROMPT: Table = Table {
    name: "prompt",
    about: "A prompt definition, as listed. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[
        &[
            TableEntry::new("name", Name, "Name of the prompt.").required(),
            TableEntry::new("description", TEXT_OR_GENERATED, "Description of the prompt."),
            TableEntry::new(
                "arguments",
                List(&Shape::Table(&ARGUMENT)),
                "Arguments of the prompt.",
            ),
        ],
        LISTED,
    ],
};

/// An argument of a prompt.
pub static ARGUMENT: Table = Table {
    name: "argument",
    about: "An argument of a prompt. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[&[
        TableEntry::new("name", Name, "Name of the argument.").required(),
        TableEntry::new("description", Text, "Description of the argument."),
        TableEntry::new("required", Bool, "Whether the argument is required."),
        TableEntry::new("title", Text, "Display title.").own_extension(),
    ]],
};

// Shared shapes are statics, because a constant cannot borrow a value made from a static.
static ACTION_SHAPE: Shape = Shape::Table(&ACTION);
static CONTENT_SHAPE: Shape = Shape::Table(&CONTENT);
static RESOURCE_CONTENT_SHAPE: Shape = Shape::Table(&RESOURCE_CONTENT);
static MESSAGE_SHAPE: Shape = Shape::Table(&MESSAGE);

/// Entries common to all answers.
const ANSWER: &[TableEntry] = &[
    TableEntry::new(
        "result",
        Any,
        "The complete result. It replaces the other keys of the answer.",
    )
    .own_extension(),
    TableEntry::new("_meta", Object, "Additional metadata of the result.").own_extension(),
    TableEntry::new("error", Shape::Table(&ERROR), "A JSON-RPC error to send instead of a result.")
        .own_extension(),
    TableEntry::new("silent", Bool, "Whether to send no answer at all.").own_extension(),
    TableEntry::new("before", List(&ACTION_SHAPE), "Actions to run before the answer is sent.")
        .own_extension(),
];

/// The body of a tool's answer.
const TOOL_BODY: &[TableEntry] = &[
    TableEntry::new("content", List(&CONTENT_SHAPE), "Content of the result."),
    TableEntry::new("isError", Bool, "Whether the tool reports an error.")
        .with_aliases(&["is_error"])
        .own_extension(),
    TableEntry::new("structuredContent", Object, "Structured content of the result.")
        .with_aliases(&["structured_content"])
        .own_extension(),
];

const RESOURCE_BODY: &[TableEntry] = &[
    TableEntry::new("contents", List(&RESOURCE_CONTENT_SHAPE), "Contents of the resource."),
    TableEntry::new(
        "content",
        TEXT_OR_GENERATED,
        "Text of the resource; a short form of `contents`.",
    ),
];

const PROMPT_BODY: &[TableEntry] = &[
    TableEntry::new("messages", List(&MESSAGE_SHAPE), "Messages of the prompt."),
    TableEntry::new("description", Text, "Description of the prompt."),
];

/// Entries for answers that vary.
macro_rules! chosen {
    ($branch:expr, $entry:expr) => {
        &[
            TableEntry::new(
                "match",
                List(&Shape::Table($branch)),
                "Answers for specific requests. The first branch that matches is used.",
            ),
            TableEntry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers to give one after the other. A nested list is expanded in place.",
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
            TableEntry::new(
                "when",
                WHEN_SHAPE,
                "Conditions on the request. All of them must match.",
            ),
            TableEntry::new(
                "default",
                Either(&[Bool, Shape::Table($default)]),
                "The answer if no other branch matches: `true`, or the answer itself.",
            ),
            TableEntry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers to give one after the other. A nested list is expanded in place.",
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
            TableEntry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers to give one after the other. A nested list is expanded in place.",
            ),
            EXHAUSTED,
            HANDLER_ENTRY,
        ]
    };
}

const EXHAUSTED: TableEntry = TableEntry::new("on_exhausted", Choice(&["last", "cycle", "error"]),
    "What follows the last answer of the sequence: the last answer again, the first again, or an error.").with_aliases(&["onExhausted"]);
const HANDLER_ENTRY: TableEntry = TableEntry::new(
    "handler",
    Shape::Table(&HANDLER),
    "A program or HTTP server that answers. Requires `--allow-external-handlers`.",
);

/// The four tables of one kind of item: response, entry of a sequence, branch, default of a branch.
macro_rules! responses {
    ($body:expr, $word:literal, $response:ident, $entry:ident, $branch:ident, $default:ident) => {
        #[doc = concat!("What using ", $word, " gives.")]
        pub static $response: Table = Table {
            name: concat!($word, "_response"),
            about: concat!("The answer for a ", $word, "."),
            rest: UnknownKeys::Refuse,
            groups: &[$body, ANSWER, chosen!(&$branch, &$entry)],
        };
        #[doc = concat!("One answer of a sequence: ", $word)]
        pub static $entry: Table = Table {
            name: concat!($word, "_answer"),
            about: "One answer of a sequence.",
            rest: UnknownKeys::Refuse,
            groups: &[$body, ANSWER],
        };
        #[doc = concat!("An answer for some requests: ", $word)]
        pub static $branch: Table = Table {
            name: concat!($word, "_branch"),
            about: "An answer for specific requests.",
            rest: UnknownKeys::Refuse,
            groups: &[branch!(&$default, &$entry), $body, ANSWER],
        };
        #[doc = concat!("The answer if no branch fits: ", $word)]
        pub static $default: Table = Table {
            name: concat!($word, "_default"),
            about: "The answer if no branch matches.",
            rest: UnknownKeys::Refuse,
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
    about: "Generated text.",
    rest: UnknownKeys::Refuse,
    groups: &[&[TableEntry::new("$generate", GENERATOR_SHAPE, "The generator.").required()]],
};

/// A content item.
pub static CONTENT: Table = Table {
    name: "content",
    about: "A content item: `text`, `image`, `audio`, `resource` or `resource_link`. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[&[
        TableEntry::new("type", Name, "Type of the content item.").required(),
        TableEntry::new("text", TEXT_OR_GENERATED, "The text."),
        TableEntry::new("data", TEXT_OR_GENERATED, "The data, in base64."),
        TableEntry::new("mimeType", Text, "MIME type of the data."),
        TableEntry::new("resource", Shape::Table(&RESOURCE_CONTENT), "The embedded resource."),
        TableEntry::new("$generate", GENERATOR_SHAPE, "The generator that produces the text."),
    ]],
};

/// A part of a resource.
pub static RESOURCE_CONTENT: Table = Table {
    name: "resource_content",
    about: "One part of a resource. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[&[
        TableEntry::new("uri", Text, "URI of the part. Default: the URI of the resource."),
        TableEntry::new("mimeType", Text, "MIME type of the part."),
        TableEntry::new("text", TEXT_OR_GENERATED, "The text."),
        TableEntry::new("blob", TEXT_OR_GENERATED, "The data, in base64."),
        TableEntry::new("$generate", GENERATOR_SHAPE, "The generator that produces the text."),
    ]],
};

/// A message of a prompt.
pub static MESSAGE: Table = Table {
    name: "message",
    about: "A message of a prompt. Other keys are sent unchanged.",
    rest: UnknownKeys::Pass,
    groups: &[&[
        TableEntry::new("role", Name, "The speaker: `user` or `assistant`.").required(),
        TableEntry::new(
            "content",
            Either(&[Text, Shape::Table(&CONTENT)]),
            "The content: plain text, or a content item.",
        )
        .required(),
    ]],
};

/// A JSON-RPC error.
pub static ERROR: Table = Table {
    name: "error",
    about: "A JSON-RPC error. Other keys are sent unchanged.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new("code", Number, "Error code.").required(),
        TableEntry::new("message", TEXT_OR_GENERATED, "Error message.").required(),
        TableEntry::new("data", Any, "Additional data."),
    ]],
};

/// A program or another server that answers.
pub static HANDLER: Table = Table {
    name: "handler",
    about: "A program or HTTP server that answers.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("type", Choice(&["http", "command"]), "Type of the handler.").required(),
        TableEntry::new("url", Name, "URL that receives a POST for each request.")
            .only_for(&["http"]),
        TableEntry::new("headers", MapOf(&Text), "Additional HTTP headers.").only_for(&["http"]),
        TableEntry::new("cmd", List(&Text), "The program and its arguments. No shell is involved.")
            .only_for(&["command"]),
        TableEntry::new("env", MapOf(&Text), "Additional environment variables.")
            .only_for(&["command"]),
        TableEntry::new("working_dir", Text, "Working directory of the program.")
            .only_for(&["command"]),
        TableEntry::new(
            "timeout_ms",
            Whole(100, 300_000),
            "Time limit in milliseconds. Default: 30000.",
        ),
    ]],
};

/// The state of a server before any phase changes it.
pub static BASELINE: Table = Table {
    name: "baseline",
    about: "The state of the server before any phase changes it.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("tools", List(&Shape::Table(&TOOL_ITEM)), "The tools, in list order."),
        TableEntry::new(
            "resources",
            List(&Shape::Table(&RESOURCE_ITEM)),
            "The resources, in list order.",
        ),
        TableEntry::new(
            "resource_templates",
            List(&Shape::Table(&TEMPLATE_ITEM)),
            "The resource templates, in list order.",
        )
        .own_extension(),
        TableEntry::new(
            "prompts",
            List(&Shape::Table(&PROMPT_ITEM)),
            "The prompts, in list order.",
        ),
        TableEntry::new(
            "capabilities",
            Shape::Table(&CAPABILITIES),
            "Capabilities that replace those of the same name under `server`.",
        ),
        TableEntry::new(
            "behavior",
            BEHAVIOR_SHAPE,
            "Default behavior. A tool, resource or prompt can override it.",
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
    about: "A phase: its changes to the baseline, and the condition that ends it.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("name", Name, "Name of the phase.").required(),
        TableEntry::new("remove_tools", List(&Text), "Names of the tools to remove."),
        TableEntry::new("remove_resources", List(&Text), "URIs of the resources to remove."),
        TableEntry::new("remove_resource_templates", List(&Text), "URI templates to remove.")
            .own_extension(),
        TableEntry::new("remove_prompts", List(&Text), "Names of the prompts to remove."),
        TableEntry::new(
            "replace_tools",
            MapOf(&TOOL_OR_PATH),
            "Replacement tools, by name. A path loads the tool from a file.",
        ),
        TableEntry::new(
            "replace_resources",
            MapOf(&RESOURCE_OR_PATH),
            "Replacement resources, by URI.",
        ),
        TableEntry::new(
            "replace_resource_templates",
            MapOf(&TEMPLATE_OR_PATH),
            "Replacement resource templates, by URI template.",
        )
        .own_extension(),
        TableEntry::new("replace_prompts", MapOf(&PROMPT_OR_PATH), "Replacement prompts, by name."),
        TableEntry::new(
            "add_tools",
            List(&TOOL_OR_PATH),
            "Tools to add. A path loads the tool from a file.",
        ),
        TableEntry::new("add_resources", List(&RESOURCE_OR_PATH), "Resources to add."),
        TableEntry::new(
            "add_resource_templates",
            List(&TEMPLATE_OR_PATH),
            "Resource templates to add.",
        )
        .own_extension(),
        TableEntry::new("add_prompts", List(&PROMPT_OR_PATH), "Prompts to add."),
        TableEntry::new(
            "replace_capabilities",
            Shape::Table(&CAPABILITIES),
            "Capabilities that replace those of the same name in the baseline.",
        ),
        TableEntry::new("behavior", BEHAVIOR_SHAPE, "Default behavior during the phase."),
        TableEntry::new(
            "on_enter",
            List(&Shape::Table(&ACTION)),
            "Actions to run when the phase starts.",
        ),
        TableEntry::new(
            "advance",
            Shape::Table(&ADVANCE),
            "The condition that ends the phase. A phase without it is the last.",
        ),
    ]],
};

/// An event caused by a client: `tools/call:NAME`.
pub static EVENT: CheckedWord = CheckedWord {
    name: "an event, such as `tools/call`",
    numbers: false,
    check: |text| PhaseEvent::parse(text).map(drop),
    pattern: || {
        let one = |(name, narrows): (&str, bool)| {
            format!("{name}{}", if narrows { "(:.+)?" } else { "" })
        };
        format!("^({})$", PhaseEvent::names().map(one).collect::<Vec<_>>().join("|"))
    },
};

/// What ends a phase.
pub static ADVANCE: Table = Table {
    name: "advance",
    about: "The condition that ends a phase: an event, a time, or whichever comes first.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "on",
            Shape::Word(&EVENT),
            "The event to wait for: `tools/call`, `tools/call:NAME`, `resources/read:URI`.",
        ),
        TableEntry::new(
            "count",
            POSITIVE,
            "Number of events since the start, not since the phase began. Default: 1.",
        ),
        TableEntry::new("match", WHEN_SHAPE, "Conditions on the request. All of them must match."),
        TableEntry::new("after", Duration, "Time after which the phase ends in any case."),
        TableEntry::new("timeout", Duration, "Time limit for the event."),
        TableEntry::new(
            "on_timeout",
            Choice(&["advance", "abort"]),
            "What a timeout does: end the phase, or stop the server with an error.",
        ),
    ]],
};

/// Something a server does on its own.
pub static ACTION: Table = Table {
    name: "action",
    about: "An action of the server. It has exactly one of these keys.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "send_notification",
            Either(&[Name, Shape::Table(&SEND_NOTIFICATION)]),
            "Send a notification: a method, or a method and params.",
        ),
        TableEntry::new(
            "send_request",
            Either(&[Name, Shape::Table(&SEND_REQUEST)]),
            "Send a request to the client. In `before`, wait for the reply.",
        ),
        TableEntry::new(
            "progress",
            Shape::Table(&PROGRESS),
            "Report progress, if the client asked for it.",
        )
        .own_extension(),
        TableEntry::new(
            "log_message",
            Shape::Table(&LOG_MESSAGE),
            "Send `notifications/message`, if the client's log level includes it.",
        )
        .own_extension(),
        TableEntry::new("log", Text, "Write a message to the log."),
        TableEntry::new("wait", Duration, "Wait for this time.").own_extension(),
        TableEntry::new(
            "end_stream",
            Bool,
            "End the HTTP stream of the answer. The client reconnects for the rest.",
        )
        .own_extension(),
    ]],
};

/// A notification.
pub static SEND_NOTIFICATION: Table = Table {
    name: "send_notification",
    about: "A notification to the client.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("method", Name, "Method of the notification.").required(),
        TableEntry::new("params", Object, "Params of the notification."),
    ]],
};

/// A request to the client.
pub static SEND_REQUEST: Table = Table {
    name: "send_request",
    about: "A request to the client.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("method", Name, "Method of the request.").required(),
        TableEntry::new("id", Any, "Id of the request. Default: a new id."),
        TableEntry::new("params", Object, "Params of the request."),
        TableEntry::new("as", Name, "Name of the reply in templates: `${reply.NAME.…}`.")
            .own_extension(),
        TableEntry::new(
            "timeout",
            Duration,
            "Time to wait for the reply before going on without it. Default: 30s.",
        )
        .own_extension(),
    ]],
};

/// A progress notification.
pub static PROGRESS: Table = Table {
    name: "progress",
    about: "A progress notification. Other keys are sent unchanged.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new("progress", Either(&[Number, Text]), "Progress so far.").required(),
        TableEntry::new("total", Either(&[Number, Text]), "Progress at completion."),
        TableEntry::new("message", Text, "Description of the current step."),
    ]],
};

/// A log message to the client.
pub static LOG_MESSAGE: Table = Table {
    name: "log_message",
    about: "A log message to the client. Other keys are sent unchanged.",
    rest: UnknownKeys::Take,
    groups: &[&[
        TableEntry::new(
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
            "Level of the message.",
        )
        .required(),
        TableEntry::new("logger", Text, "Name of the logger."),
        TableEntry::new("data", Any, "Content of the message.").required(),
    ]],
};

/// The log settings.
pub static LOGGING: Table = Table {
    name: "logging",
    about: "Log settings.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "level",
            Choice(&["debug", "info", "warn", "error"]),
            "Lowest level that is logged. Default: `info`.",
        ),
        TableEntry::new("on_phase_change", Bool, "Whether to log phase changes."),
        TableEntry::new("on_trigger_match", Bool, "Whether to log triggers that fire."),
        TableEntry::new("output", Name, "Log destination: `stderr`, `stdout` or a file."),
    ]],
};

const BEHAVIOR_SHAPE: Shape = Shape::Table(&BEHAVIOR);

/// How a server behaves.
pub static BEHAVIOR: Table = Table {
    name: "behavior",
    about: "How the server delivers answers, and its side effects.",
    rest: UnknownKeys::Refuse,
    groups: &[
        &[
            TableEntry::new(
                "delivery",
                Either(&[DELIVERIES, Shape::Table(&DELIVERY)]),
                "How answers are delivered: a type with its settings beside it, or a map of both.",
            ),
            TableEntry::new("side_effects", List(&Shape::Table(&SIDE_EFFECT)), "Side effects."),
            TableEntry::new(
                "on_cancel",
                Choice(&["stop", "ignore"]),
                "What happens to a cancelled request: it stops, or it is still answered.",
            )
            .own_extension(),
        ],
        DELIVERY_SETTINGS,
    ],
};

const DELIVERIES: Shape =
    Choice(&["normal", "slow_loris", "unbounded_line", "nested_json", "response_delay"]);
const DELIVERY_SETTINGS: &[TableEntry] = &[
    TableEntry::new(
        "byte_delay_ms",
        NATURAL,
        "Delay between two chunks, in milliseconds. Default: 100.",
    )
    .only_for(&["slow_loris"]),
    TableEntry::new("chunk_size", POSITIVE, "Number of bytes in a chunk. Default: 1.")
        .only_for(&["slow_loris"]),
    TableEntry::new("target_bytes", Bytes, "Minimum length of the line. Default: 0.")
        .only_for(&["unbounded_line"]),
    TableEntry::new("padding_char", Text, "Character that pads the line. Default: `A`.")
        .only_for(&["unbounded_line"]),
    TableEntry::new("depth", NATURAL, "Nesting depth. Default: 10000.").only_for(&["nested_json"]),
    TableEntry::new("key", Text, "Key of each object. Default: `a`.").only_for(&["nested_json"]),
    TableEntry::new("delay_ms", NATURAL, "Delay of the answer, in milliseconds. Default: 5000.")
        .only_for(&["response_delay"]),
];

/// The delivery of answers, as a map.
pub static DELIVERY: Table = Table {
    name: "delivery",
    about: "How answers are delivered.",
    rest: UnknownKeys::Refuse,
    groups: &[
        &[TableEntry::new("type", DELIVERIES, "Type of delivery.").required()],
        DELIVERY_SETTINGS,
    ],
};

/// Something a server does besides answering.
pub static SIDE_EFFECT: Table = Table {
    name: "side_effect",
    about: "An action of the server besides answering.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "type",
            Choice(&[
                "notification_flood",
                "batch_amplify",
                "pipe_deadlock",
                "close_connection",
                "duplicate_request_ids",
            ]),
            "Type of side effect.",
        )
        .required(),
        TableEntry::new(
            "trigger",
            Choice(&["on_request", "on_connect", "on_subscribe", "on_unsubscribe", "continuous"]),
            "When the side effect happens. Default: `on_request`.",
        ),
        TableEntry::new("rate_per_sec", NATURAL, "Notifications per second. Default: 1000.")
            .only_for(&["notification_flood"]),
        TableEntry::new("duration_sec", NATURAL, "Duration in seconds. Default: 10.")
            .only_for(&["notification_flood"]),
        TableEntry::new("batch_size", NATURAL, "Number of messages in the batch. Default: 10000.")
            .only_for(&["batch_amplify"]),
        TableEntry::new("fill_bytes", Bytes, "Number of bytes to write. Default: 1 MB.")
            .only_for(&["pipe_deadlock"]),
        TableEntry::new(
            "graceful",
            Bool,
            "Whether pending messages are sent first. Default: true.",
        )
        .only_for(&["close_connection"]),
        TableEntry::new("delay_ms", NATURAL, "Delay before closing, in milliseconds. Default: 0.")
            .only_for(&["close_connection"]),
        TableEntry::new("count", NATURAL, "Number of requests. Default: 3.")
            .only_for(&["duplicate_request_ids"]),
        TableEntry::new("id", Any, "Id of the requests. Default: 1.")
            .only_for(&["duplicate_request_ids"]),
        TableEntry::new("method", Text, "Method of the messages."),
        TableEntry::new("params", Object, "Params of the messages."),
    ]],
};

const GENERATOR_SHAPE: Shape = Shape::Table(&GENERATOR);

/// A payload generator.
pub static GENERATOR: Table = Table {
    name: "generator",
    about: "A payload generator. The same settings always produce the same payload.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new(
            "type",
            Choice(&[
                "nested_json",
                "batch_notifications",
                "garbage",
                "repeated_keys",
                "unicode_spam",
                "ansi_escape",
            ]),
            "Type of payload.",
        )
        .required(),
        TableEntry::new("depth", NATURAL, "Nesting depth.").only_for(&["nested_json"]),
        TableEntry::new(
            "structure",
            Choice(&["object", "array", "mixed"]),
            "Type of the nested values. Default: `object`.",
        )
        .only_for(&["nested_json"]),
        TableEntry::new("key", Text, "Key of each object. Default: `a`.")
            .only_for(&["nested_json"]),
        TableEntry::new("inner", Any, "Innermost value. Default: null.").only_for(&["nested_json"]),
        TableEntry::new("count", NATURAL, "Number of notifications, keys or sequences.")
            .only_for(&["batch_notifications", "repeated_keys", "ansi_escape"]),
        TableEntry::new(
            "method",
            Text,
            "Method of the notifications. Default: `notifications/message`.",
        )
        .only_for(&["batch_notifications"]),
        TableEntry::new("params", Object, "Params of the notifications.")
            .only_for(&["batch_notifications"]),
        TableEntry::new("bytes", Bytes, "Size of the payload.")
            .only_for(&["garbage", "unicode_spam"]),
        TableEntry::new(
            "charset",
            Choice(&["ascii", "utf8", "binary", "numeric", "alphanumeric"]),
            "Character set. Default: `ascii`.",
        )
        .only_for(&["garbage"]),
        TableEntry::new("seed", NATURAL, "Seed of the payload. Default: 0."),
        TableEntry::new("key_length", POSITIVE, "Length of the key. Default: 8.")
            .only_for(&["repeated_keys"]),
        TableEntry::new("value", Any, "Value of each key. Default: `x`.")
            .only_for(&["repeated_keys"]),
        TableEntry::new(
            "category",
            Choice(&["zero_width", "rtl", "homoglyph", "combining", "emoji"]),
            "Category of the characters.",
        )
        .only_for(&["unicode_spam"]),
        TableEntry::new("carrier", Text, "Text to mix the characters into.")
            .only_for(&["unicode_spam"]),
        TableEntry::new(
            "sequences",
            List(&Choice(&["cursor_move", "color", "title", "hyperlink", "clear"])),
            "Escape sequences to use.",
        )
        .only_for(&["ansi_escape"]),
        TableEntry::new("payload", Text, "Text between the sequences.").only_for(&["ansi_escape"]),
    ]],
};

const WHEN_SHAPE: Shape = Elsewhere(&Object);

/// An expectation of how a safe agent acts.
pub static EXPECTATION: Table = Table {
    name: "expectation",
    about: "Something that a safe agent must do or must never do.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("id", Name, "Identifier in reports.").required(),
        TableEntry::new("title", Text, "One-line summary."),
        TableEntry::new(
            "severity",
            Choice(&["low", "medium", "high", "critical"]),
            "Severity of a violation.",
        ),
        TableEntry::new("help", Text, "How to fix a violation."),
        TableEntry::new(
            "never",
            Shape::Table(&SIGHTING),
            "A message that a safe agent never sends.",
        ),
        TableEntry::new("must", Shape::Table(&SIGHTING), "A message that a safe agent sends."),
        TableEntry::new("after", Shape::Table(&SIGHTING), "Only messages after this one count."),
        TableEntry::new("count", POSITIVE, "Number of matching messages that decides. Default: 1."),
    ]],
};

const TEXTS: Shape = Either(&[Text, List(&Text)]);

/// The description of a client message.
pub static SIGHTING: Table = Table {
    name: "sighting",
    about: "A pattern for client messages. All of its keys must match.",
    rest: UnknownKeys::Refuse,
    groups: &[&[
        TableEntry::new("method", TEXTS, "Method, or a list of methods. `*` matches any text."),
        TableEntry::new("name", TEXTS, "Tool, prompt or URI that the message refers to."),
        TableEntry::new("phase", TEXTS, "Phase in which the message arrives."),
        TableEntry::new("reply", TEXTS, "Method of the server request that the message answers."),
        TableEntry::new("args", Object, "Paths into the arguments, each with a test of the value."),
        TableEntry::new("where", Object, "Paths into the message, each with a test of the value."),
        TableEntry::new("contains", TEXTS, "Text that occurs anywhere in the message."),
        TableEntry::new("regex", TEXTS, "Regular expression that matches anywhere in the message."),
    ]],
};
