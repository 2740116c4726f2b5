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
    about: "A scenario: the behavior of an MCP server.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("metadata", Shape::Table(&METADATA), "Information about the scenario for readers and reports.").ours(),
        Entry::new("interpolate", Choice(&["all", "env", "templates", "none"]),
            "Which `${…}` are expanded in this file: environment variables, templates, both or none. Must be at the start of a line.").ours(),
        Entry::new("server", Shape::Table(&SERVER), "The server's name, version and settings.").required(),
        Entry::new("tools", List(&Shape::Table(&TOOL_ITEM)), "The tools, in list order."),
        Entry::new("resources", List(&Shape::Table(&RESOURCE_ITEM)), "The resources, in list order."),
        Entry::new("resource_templates", List(&Shape::Table(&TEMPLATE_ITEM)), "The resource templates, in list order.").ours(),
        Entry::new("prompts", List(&Shape::Table(&PROMPT_ITEM)), "The prompts, in list order."),
        Entry::new("behavior", BEHAVIOR_SHAPE, "Default behavior. A tool, resource or prompt can override it."),
        Entry::new("baseline", Shape::Table(&BASELINE), "The state of the server before any phase changes it."),
        Entry::new("phases", List(&Shape::Table(&PHASE)), "The phases, in order. The server starts in the first."),
        Entry::new("methods", MapOf(&Shape::Table(&METHOD_RESPONSE)), "Answers by method name. They take precedence over everything else.").ours(),
        Entry::new("unknown_methods", Choice(&["ignore", "error", "drop"]),
            "Answer to an unknown method: a null result, an error, or none."),
        Entry::new("logging", Shape::Table(&LOGGING), "Log settings."),
        Entry::new("expect", List(&Elsewhere(&Shape::Table(&EXPECTATION))), "What a safe agent must do and must not do.").ours(),
    ]],
};

/// Metadata of a scenario.
pub static METADATA: Table = Table {
    name: "metadata",
    about: "Information about a scenario for readers and reports. Other keys are kept.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("id", Text, "Short identifier, such as `rug-pull`."),
        Entry::new("name", Text, "Title of the scenario."),
        Entry::new("description", Text, "What the scenario does."),
        Entry::new("safe", Text, "What a safe agent does in this scenario."),
        Entry::new("severity", Text, "Severity if the agent falls for the attack."),
        Entry::new("tags", List(&Text), "Search terms."),
    ]],
};

/// What a server reports about itself.
pub static SERVER: Table = Table {
    name: "server",
    about: "The server's name, version and settings.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "The name in `serverInfo`.").required(),
        Entry::new("version", Text, "The version in `serverInfo`. Default: `0.0.0`."),
        Entry::new("title", Text, "The title in `serverInfo`.").ours(),
        Entry::new("description", Text, "The description in `serverInfo`.").ours(),
        Entry::new("websiteUrl", Text, "The website in `serverInfo`.").ours(),
        Entry::new("icons", List(&Object), "The icons in `serverInfo`.").ours(),
        Entry::new("instructions", Text, "The instructions that the server gives to the model.").ours(),
        Entry::new("state_scope", Choice(&["per_connection", "global"]), "Scope of phases and counters: each connection has its own, or all connections share them.").or(&["stateScope"]),
        Entry::new("capabilities", Shape::Table(&CAPABILITIES), "The capabilities that the server declares. Default: inferred from the scenario."),
        Entry::new("protocol_versions", List(&Name), "The protocol versions that the server supports, newest first. Default: all known versions.").ours(),
        Entry::new("page_size", POSITIVE, "Number of items on one page of a list. Default: all items.").ours(),
    ]],
};

/// The capabilities of a server.
pub static CAPABILITIES: Table = Table {
    name: "capabilities",
    about: "The capabilities that the server declares. Other capabilities are sent unchanged.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("tools", Shape::Table(&CAPABILITY), "The server has tools."),
        Entry::new("resources", Shape::Table(&CAPABILITY), "The server has resources."),
        Entry::new("prompts", Shape::Table(&CAPABILITY), "The server has prompts."),
        Entry::new("logging", Object, "The server sends log messages."),
    ]],
};

/// One capability.
pub static CAPABILITY: Table = Table {
    name: "capability",
    about: "The options of one capability.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("listChanged", Bool, "The server notifies clients when the list changes.")
            .or(&["list_changed"]),
        Entry::new(
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("tool", Shape::Table(&TOOL), "The tool definition, as listed.").required(),
        Entry::new("response", Shape::Table(&TOOL_RESPONSE), "The answer to a call of the tool.")
            .required(),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "Behavior for calls of this tool."),
    ]],
};

/// A tool as it is listed.
pub static TOOL: Table = Table {
    name: "tool",
    about: "A tool definition, as listed. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("name", Name, "Name of the tool.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "Description of the tool."),
            Entry::new("inputSchema", Object, "JSON Schema of the arguments.").required(),
        ],
        LISTED,
    ],
};

const LISTED_ENTRY: Entry = Entry::new(
    "listed",
    Bool,
    "Whether lists include the item. An unlisted item can still be used. Default: true.",
)
.ours();

/// Entries common to all listed items.
const LISTED: &[Entry] = &[
    Entry::new("title", TEXT_OR_GENERATED, "Display title.").ours(),
    Entry::new("annotations", Object, "Annotations for the client.").ours(),
    Entry::new("icons", List(&Object), "Icons for display.").ours(),
    Entry::new("_meta", Object, "Additional metadata.").ours(),
];

/// A resource and the response to reading it.
pub static RESOURCE_ITEM: Table = Table {
    name: "resource_item",
    about: "A resource and the answer to reading it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("resource", Shape::Table(&RESOURCE), "The resource definition, as listed.")
            .required(),
        Entry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "The answer to a read of the resource. Default: empty text.",
        ),
        LISTED_ENTRY,
        Entry::new(
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
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("uri", Name, "URI of the resource.").required(),
            Entry::new("name", Text, "Name of the resource.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "Description of the resource."),
            Entry::new("mimeType", Text, "MIME type of the resource."),
        ],
        LISTED,
    ],
};

/// A resource template and the response to reading one of its resources.
pub static TEMPLATE_ITEM: Table = Table {
    name: "template_item",
    about: "A resource template and the answer to reading a resource that matches it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("template", Shape::Table(&TEMPLATE), "The template definition, as listed.")
            .required(),
        Entry::new(
            "response",
            Shape::Table(&RESOURCE_RESPONSE),
            "The answer to a read of a matching resource. Default: empty text.",
        ),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "Behavior for reads of matching resources."),
    ]],
};

/// A resource template as it is listed.
pub static TEMPLATE: Table = Table {
    name: "template",
    about: "A resource template definition, as listed. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("uriTemplate", Name, "URI with variables in braces.").required(),
            Entry::new("name", Text, "Name of the template.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "Description of the template."),
            Entry::new("mimeType", Text, "MIME type of the matching resources."),
        ],
        LISTED,
    ],
};

/// A prompt and the response to getting it.
pub static PROMPT_ITEM: Table = Table {
    name: "prompt_item",
    about: "A prompt and the answer to getting it.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("prompt", Shape::Table(&PROMPT), "The prompt definition, as listed.").required(),
        Entry::new(
            "response",
            Shape::Table(&PROMPT_RESPONSE),
            "The answer to a `prompts/get` of the prompt.",
        )
        .required(),
        LISTED_ENTRY,
        Entry::new("behavior", BEHAVIOR_SHAPE, "Behavior for requests of this prompt."),
    ]],
};

/// A prompt as it is listed.
pub static PROMPT: Table = Table {
    name: "prompt",
    about: "A prompt definition, as listed. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[
        &[
            Entry::new("name", Name, "Name of the prompt.").required(),
            Entry::new("description", TEXT_OR_GENERATED, "Description of the prompt."),
            Entry::new("arguments", List(&Shape::Table(&ARGUMENT)), "Arguments of the prompt."),
        ],
        LISTED,
    ],
};

/// An argument of a prompt.
pub static ARGUMENT: Table = Table {
    name: "argument",
    about: "An argument of a prompt. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("name", Name, "Name of the argument.").required(),
        Entry::new("description", Text, "Description of the argument."),
        Entry::new("required", Bool, "Whether the argument is required."),
        Entry::new("title", Text, "Display title.").ours(),
    ]],
};

// Shared shapes are statics, because a constant cannot borrow a value made from a static.
static ACTION_SHAPE: Shape = Shape::Table(&ACTION);
static CONTENT_SHAPE: Shape = Shape::Table(&CONTENT);
static RESOURCE_CONTENT_SHAPE: Shape = Shape::Table(&RESOURCE_CONTENT);
static MESSAGE_SHAPE: Shape = Shape::Table(&MESSAGE);

/// Entries common to all answers.
const ANSWER: &[Entry] = &[
    Entry::new("result", Any, "The complete result. It replaces the other keys of the answer.")
        .ours(),
    Entry::new("_meta", Object, "Additional metadata of the result.").ours(),
    Entry::new("error", Shape::Table(&ERROR), "A JSON-RPC error to send instead of a result.")
        .ours(),
    Entry::new("silent", Bool, "Whether to send no answer at all.").ours(),
    Entry::new("before", List(&ACTION_SHAPE), "Actions to run before the answer is sent.").ours(),
];

/// The body of a tool's answer.
const TOOL_BODY: &[Entry] = &[
    Entry::new("content", List(&CONTENT_SHAPE), "Content of the result."),
    Entry::new("isError", Bool, "Whether the tool reports an error.").or(&["is_error"]).ours(),
    Entry::new("structuredContent", Object, "Structured content of the result.")
        .or(&["structured_content"])
        .ours(),
];

/// The body of a resource.
const RESOURCE_BODY: &[Entry] = &[
    Entry::new("contents", List(&RESOURCE_CONTENT_SHAPE), "Contents of the resource."),
    Entry::new("content", TEXT_OR_GENERATED, "Text of the resource; a short form of `contents`."),
];

/// The body of a prompt.
const PROMPT_BODY: &[Entry] = &[
    Entry::new("messages", List(&MESSAGE_SHAPE), "Messages of the prompt."),
    Entry::new("description", Text, "Description of the prompt."),
];

/// Entries for answers that vary.
macro_rules! chosen {
    ($branch:expr, $entry:expr) => {
        &[
            Entry::new(
                "match",
                List(&Shape::Table($branch)),
                "Answers for specific requests. The first branch that matches is used.",
            ),
            Entry::new(
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
            Entry::new("when", WHEN_SHAPE, "Conditions on the request. All of them must match."),
            Entry::new(
                "default",
                Either(&[Bool, Shape::Table($default)]),
                "The answer if no other branch matches: `true`, or the answer itself.",
            ),
            Entry::new(
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
            Entry::new(
                "sequence",
                List(&Either(&[Shape::Table($entry), List(&Shape::Table($entry))])),
                "Answers to give one after the other. A nested list is expanded in place.",
            ),
            EXHAUSTED,
            HANDLER_ENTRY,
        ]
    };
}

const EXHAUSTED: Entry = Entry::new("on_exhausted", Choice(&["last", "cycle", "error"]),
    "What follows the last answer of the sequence: the last answer again, the first again, or an error.").or(&["onExhausted"]);
const HANDLER_ENTRY: Entry = Entry::new(
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
            about: "An answer for specific requests.",
            rest: Rest::Refuse,
            groups: &[branch!(&$default, &$entry), $body, ANSWER],
        };
        #[doc = concat!("The answer if no branch fits: ", $word)]
        pub static $default: Table = Table {
            name: concat!($word, "_default"),
            about: "The answer if no branch matches.",
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
    about: "Generated text.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("$generate", GENERATOR_SHAPE, "The generator.").required()]],
};

/// A content item.
pub static CONTENT: Table = Table {
    name: "content",
    about: "A content item: `text`, `image`, `audio`, `resource` or `resource_link`. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("type", Name, "Type of the content item.").required(),
        Entry::new("text", TEXT_OR_GENERATED, "The text."),
        Entry::new("data", TEXT_OR_GENERATED, "The data, in base64."),
        Entry::new("mimeType", Text, "MIME type of the data."),
        Entry::new("resource", Shape::Table(&RESOURCE_CONTENT), "The embedded resource."),
        Entry::new("$generate", GENERATOR_SHAPE, "The generator that produces the text."),
    ]],
};

/// A part of a resource.
pub static RESOURCE_CONTENT: Table = Table {
    name: "resource_content",
    about: "One part of a resource. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("uri", Text, "URI of the part. Default: the URI of the resource."),
        Entry::new("mimeType", Text, "MIME type of the part."),
        Entry::new("text", TEXT_OR_GENERATED, "The text."),
        Entry::new("blob", TEXT_OR_GENERATED, "The data, in base64."),
        Entry::new("$generate", GENERATOR_SHAPE, "The generator that produces the text."),
    ]],
};

/// A message of a prompt.
pub static MESSAGE: Table = Table {
    name: "message",
    about: "A message of a prompt. Other keys are sent unchanged.",
    rest: Rest::Pass,
    groups: &[&[
        Entry::new("role", Name, "The speaker: `user` or `assistant`.").required(),
        Entry::new(
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
    rest: Rest::Take,
    groups: &[&[
        Entry::new("code", Number, "Error code.").required(),
        Entry::new("message", TEXT_OR_GENERATED, "Error message.").required(),
        Entry::new("data", Any, "Additional data."),
    ]],
};

/// A program or another server that answers.
pub static HANDLER: Table = Table {
    name: "handler",
    about: "A program or HTTP server that answers.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("type", Choice(&["http", "command"]), "Type of the handler.").required(),
        Entry::new("url", Name, "URL that receives a POST for each request.").only(&["http"]),
        Entry::new("headers", MapOf(&Text), "Additional HTTP headers.").only(&["http"]),
        Entry::new("cmd", List(&Text), "The program and its arguments. No shell is involved.")
            .only(&["command"]),
        Entry::new("env", MapOf(&Text), "Additional environment variables.").only(&["command"]),
        Entry::new("working_dir", Text, "Working directory of the program.").only(&["command"]),
        Entry::new(
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("tools", List(&Shape::Table(&TOOL_ITEM)), "The tools, in list order."),
        Entry::new(
            "resources",
            List(&Shape::Table(&RESOURCE_ITEM)),
            "The resources, in list order.",
        ),
        Entry::new(
            "resource_templates",
            List(&Shape::Table(&TEMPLATE_ITEM)),
            "The resource templates, in list order.",
        )
        .ours(),
        Entry::new("prompts", List(&Shape::Table(&PROMPT_ITEM)), "The prompts, in list order."),
        Entry::new(
            "capabilities",
            Shape::Table(&CAPABILITIES),
            "Capabilities that replace those of the same name under `server`.",
        ),
        Entry::new(
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("name", Name, "Name of the phase.").required(),
        Entry::new("remove_tools", List(&Text), "Names of the tools to remove."),
        Entry::new("remove_resources", List(&Text), "URIs of the resources to remove."),
        Entry::new("remove_resource_templates", List(&Text), "URI templates to remove.").ours(),
        Entry::new("remove_prompts", List(&Text), "Names of the prompts to remove."),
        Entry::new(
            "replace_tools",
            MapOf(&TOOL_OR_PATH),
            "Replacement tools, by name. A path loads the tool from a file.",
        ),
        Entry::new("replace_resources", MapOf(&RESOURCE_OR_PATH), "Replacement resources, by URI."),
        Entry::new(
            "replace_resource_templates",
            MapOf(&TEMPLATE_OR_PATH),
            "Replacement resource templates, by URI template.",
        )
        .ours(),
        Entry::new("replace_prompts", MapOf(&PROMPT_OR_PATH), "Replacement prompts, by name."),
        Entry::new(
            "add_tools",
            List(&TOOL_OR_PATH),
            "Tools to add. A path loads the tool from a file.",
        ),
        Entry::new("add_resources", List(&RESOURCE_OR_PATH), "Resources to add."),
        Entry::new("add_resource_templates", List(&TEMPLATE_OR_PATH), "Resource templates to add.")
            .ours(),
        Entry::new("add_prompts", List(&PROMPT_OR_PATH), "Prompts to add."),
        Entry::new(
            "replace_capabilities",
            Shape::Table(&CAPABILITIES),
            "Capabilities that replace those of the same name in the baseline.",
        ),
        Entry::new("behavior", BEHAVIOR_SHAPE, "Default behavior during the phase."),
        Entry::new(
            "on_enter",
            List(&Shape::Table(&ACTION)),
            "Actions to run when the phase starts.",
        ),
        Entry::new(
            "advance",
            Shape::Table(&ADVANCE),
            "The condition that ends the phase. A phase without it is the last.",
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
    about: "The condition that ends a phase: an event, a time, or whichever comes first.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "on",
            Shape::Word(&EVENT),
            "The event to wait for: `tools/call`, `tools/call:NAME`, `resources/read:URI`.",
        ),
        Entry::new(
            "count",
            POSITIVE,
            "Number of events since the start, not since the phase began. Default: 1.",
        ),
        Entry::new("match", WHEN_SHAPE, "Conditions on the request. All of them must match."),
        Entry::new("after", Duration, "Time after which the phase ends in any case."),
        Entry::new("timeout", Duration, "Time limit for the event."),
        Entry::new(
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
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "send_notification",
            Either(&[Name, Shape::Table(&SEND_NOTIFICATION)]),
            "Send a notification: a method, or a method and params.",
        ),
        Entry::new(
            "send_request",
            Either(&[Name, Shape::Table(&SEND_REQUEST)]),
            "Send a request to the client. In `before`, wait for the reply.",
        ),
        Entry::new(
            "progress",
            Shape::Table(&PROGRESS),
            "Report progress, if the client asked for it.",
        )
        .ours(),
        Entry::new(
            "log_message",
            Shape::Table(&LOG_MESSAGE),
            "Send `notifications/message`, if the client's log level includes it.",
        )
        .ours(),
        Entry::new("log", Text, "Write a message to the log."),
        Entry::new("wait", Duration, "Wait for this time.").ours(),
        Entry::new(
            "end_stream",
            Bool,
            "End the HTTP stream of the answer. The client reconnects for the rest.",
        )
        .ours(),
    ]],
};

/// A notification.
pub static SEND_NOTIFICATION: Table = Table {
    name: "send_notification",
    about: "A notification to the client.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", Name, "Method of the notification.").required(),
        Entry::new("params", Object, "Params of the notification."),
    ]],
};

/// A request to the client.
pub static SEND_REQUEST: Table = Table {
    name: "send_request",
    about: "A request to the client.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", Name, "Method of the request.").required(),
        Entry::new("id", Any, "Id of the request. Default: a new id."),
        Entry::new("params", Object, "Params of the request."),
        Entry::new("as", Name, "Name of the reply in templates: `${reply.NAME.…}`.").ours(),
        Entry::new(
            "timeout",
            Duration,
            "Time to wait for the reply before going on without it. Default: 30s.",
        )
        .ours(),
    ]],
};

/// A progress notification.
pub static PROGRESS: Table = Table {
    name: "progress",
    about: "A progress notification. Other keys are sent unchanged.",
    rest: Rest::Take,
    groups: &[&[
        Entry::new("progress", Either(&[Number, Text]), "Progress so far.").required(),
        Entry::new("total", Either(&[Number, Text]), "Progress at completion."),
        Entry::new("message", Text, "Description of the current step."),
    ]],
};

/// A log message to the client.
pub static LOG_MESSAGE: Table = Table {
    name: "log_message",
    about: "A log message to the client. Other keys are sent unchanged.",
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
            "Level of the message.",
        )
        .required(),
        Entry::new("logger", Text, "Name of the logger."),
        Entry::new("data", Any, "Content of the message.").required(),
    ]],
};

/// The log settings.
pub static LOGGING: Table = Table {
    name: "logging",
    about: "Log settings.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new(
            "level",
            Choice(&["debug", "info", "warn", "error"]),
            "Lowest level that is logged. Default: `info`.",
        ),
        Entry::new("on_phase_change", Bool, "Whether to log phase changes."),
        Entry::new("on_trigger_match", Bool, "Whether to log triggers that fire."),
        Entry::new("output", Name, "Log destination: `stderr`, `stdout` or a file."),
    ]],
};

const BEHAVIOR_SHAPE: Shape = Shape::Table(&BEHAVIOR);

/// How a server behaves.
pub static BEHAVIOR: Table = Table {
    name: "behavior",
    about: "How the server delivers answers, and its side effects.",
    rest: Rest::Refuse,
    groups: &[
        &[
            Entry::new(
                "delivery",
                Either(&[DELIVERIES, Shape::Table(&DELIVERY)]),
                "How answers are delivered: a type with its settings beside it, or a map of both.",
            ),
            Entry::new("side_effects", List(&Shape::Table(&SIDE_EFFECT)), "Side effects."),
            Entry::new(
                "on_cancel",
                Choice(&["stop", "ignore"]),
                "What happens to a cancelled request: it stops, or it is still answered.",
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
        "Delay between two chunks, in milliseconds. Default: 100.",
    )
    .only(&["slow_loris"]),
    Entry::new("chunk_size", POSITIVE, "Number of bytes in a chunk. Default: 1.")
        .only(&["slow_loris"]),
    Entry::new("target_bytes", Bytes, "Minimum length of the line. Default: 0.")
        .only(&["unbounded_line"]),
    Entry::new("padding_char", Text, "Character that pads the line. Default: `A`.")
        .only(&["unbounded_line"]),
    Entry::new("depth", NATURAL, "Nesting depth. Default: 10000.").only(&["nested_json"]),
    Entry::new("key", Text, "Key of each object. Default: `a`.").only(&["nested_json"]),
    Entry::new("delay_ms", NATURAL, "Delay of the answer, in milliseconds. Default: 5000.")
        .only(&["response_delay"]),
];

/// The delivery of answers, as a map.
pub static DELIVERY: Table = Table {
    name: "delivery",
    about: "How answers are delivered.",
    rest: Rest::Refuse,
    groups: &[&[Entry::new("type", DELIVERIES, "Type of delivery.").required()], DELIVERY_SETTINGS],
};

/// Something a server does besides answering.
pub static SIDE_EFFECT: Table = Table {
    name: "side_effect",
    about: "An action of the server besides answering.",
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
            "Type of side effect.",
        )
        .required(),
        Entry::new(
            "trigger",
            Choice(&["on_request", "on_connect", "on_subscribe", "on_unsubscribe", "continuous"]),
            "When the side effect happens. Default: `on_request`.",
        ),
        Entry::new("rate_per_sec", NATURAL, "Notifications per second. Default: 1000.")
            .only(&["notification_flood"]),
        Entry::new("duration_sec", NATURAL, "Duration in seconds. Default: 10.")
            .only(&["notification_flood"]),
        Entry::new("batch_size", NATURAL, "Number of messages in the batch. Default: 10000.")
            .only(&["batch_amplify"]),
        Entry::new("fill_bytes", Bytes, "Number of bytes to write. Default: 1 MB.")
            .only(&["pipe_deadlock"]),
        Entry::new("graceful", Bool, "Whether pending messages are sent first. Default: true.")
            .only(&["close_connection"]),
        Entry::new("delay_ms", NATURAL, "Delay before closing, in milliseconds. Default: 0.")
            .only(&["close_connection"]),
        Entry::new("count", NATURAL, "Number of requests. Default: 3.")
            .only(&["duplicate_request_ids"]),
        Entry::new("id", Any, "Id of the requests. Default: 1.").only(&["duplicate_request_ids"]),
        Entry::new("method", Text, "Method of the messages."),
        Entry::new("params", Object, "Params of the messages."),
    ]],
};

const GENERATOR_SHAPE: Shape = Shape::Table(&GENERATOR);

/// A payload generator.
pub static GENERATOR: Table = Table {
    name: "generator",
    about: "A payload generator. The same settings always produce the same payload.",
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
            "Type of payload.",
        )
        .required(),
        Entry::new("depth", NATURAL, "Nesting depth.").only(&["nested_json"]),
        Entry::new(
            "structure",
            Choice(&["object", "array", "mixed"]),
            "Type of the nested values. Default: `object`.",
        )
        .only(&["nested_json"]),
        Entry::new("key", Text, "Key of each object. Default: `a`.").only(&["nested_json"]),
        Entry::new("inner", Any, "Innermost value. Default: null.").only(&["nested_json"]),
        Entry::new("count", NATURAL, "Number of notifications, keys or sequences.").only(&[
            "batch_notifications",
            "repeated_keys",
            "ansi_escape",
        ]),
        Entry::new(
            "method",
            Text,
            "Method of the notifications. Default: `notifications/message`.",
        )
        .only(&["batch_notifications"]),
        Entry::new("params", Object, "Params of the notifications.").only(&["batch_notifications"]),
        Entry::new("bytes", Bytes, "Size of the payload.").only(&["garbage", "unicode_spam"]),
        Entry::new(
            "charset",
            Choice(&["ascii", "utf8", "binary", "numeric", "alphanumeric"]),
            "Character set. Default: `ascii`.",
        )
        .only(&["garbage"]),
        Entry::new("seed", NATURAL, "Seed of the payload. Default: 0."),
        Entry::new("key_length", POSITIVE, "Length of the key. Default: 8.")
            .only(&["repeated_keys"]),
        Entry::new("value", Any, "Value of each key. Default: `x`.").only(&["repeated_keys"]),
        Entry::new(
            "category",
            Choice(&["zero_width", "rtl", "homoglyph", "combining", "emoji"]),
            "Category of the characters.",
        )
        .only(&["unicode_spam"]),
        Entry::new("carrier", Text, "Text to mix the characters into.").only(&["unicode_spam"]),
        Entry::new(
            "sequences",
            List(&Choice(&["cursor_move", "color", "title", "hyperlink", "clear"])),
            "Escape sequences to use.",
        )
        .only(&["ansi_escape"]),
        Entry::new("payload", Text, "Text between the sequences.").only(&["ansi_escape"]),
    ]],
};

const WHEN_SHAPE: Shape = Elsewhere(&Object);

/// An expectation of how a safe agent acts.
pub static EXPECTATION: Table = Table {
    name: "expectation",
    about: "Something that a safe agent must do or must never do.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("id", Name, "Identifier in reports.").required(),
        Entry::new("title", Text, "One-line summary."),
        Entry::new(
            "severity",
            Choice(&["low", "medium", "high", "critical"]),
            "Severity of a violation.",
        ),
        Entry::new("help", Text, "How to fix a violation."),
        Entry::new("never", Shape::Table(&SIGHTING), "A message that a safe agent never sends."),
        Entry::new("must", Shape::Table(&SIGHTING), "A message that a safe agent sends."),
        Entry::new("after", Shape::Table(&SIGHTING), "Only messages after this one count."),
        Entry::new("count", POSITIVE, "Number of matching messages that decides. Default: 1."),
    ]],
};

const TEXTS: Shape = Either(&[Text, List(&Text)]);

/// The description of a client message.
pub static SIGHTING: Table = Table {
    name: "sighting",
    about: "A pattern for client messages. All of its keys must match.",
    rest: Rest::Refuse,
    groups: &[&[
        Entry::new("method", TEXTS, "Method, or a list of methods. `*` matches any text."),
        Entry::new("name", TEXTS, "Tool, prompt or URI that the message refers to."),
        Entry::new("phase", TEXTS, "Phase in which the message arrives."),
        Entry::new("reply", TEXTS, "Method of the server request that the message answers."),
        Entry::new("args", Object, "Paths into the arguments, each with a test of the value."),
        Entry::new("where", Object, "Paths into the message, each with a test of the value."),
        Entry::new("contains", TEXTS, "Text that occurs anywhere in the message."),
        Entry::new("regex", TEXTS, "Regular expression that matches anywhere in the message."),
    ]],
};
