//! The tables of the language, a flat list: the keys, the values they take and their meaning.

use tapegate_yaml::choice::WordChoice;
use tapegate_yaml::{table, table_entries};

use super::Shape::{
    Any, Bool, Bytes, Choice, Duration, Either, Elsewhere, List, MapOf, Name, Number, Object,
    Table, Text, Whole, Word,
};
use super::{CheckedWord, ResponseTables, Shape, TableEntry};
use crate::behavior::{DeliveryType, EffectType};
use crate::expect::ExpectationSeverity;
use crate::generate::{AnsiSequence, Charset, GeneratorType, NestingStructure, SpamCategory};
use crate::model::{
    EffectTrigger, HandlerType, LogLevel, MESSAGE_LEVELS, OnCancel, OnSequenceEnd, OnTimeout,
    PhaseEvent, ScenarioScope, UnknownMethods,
};

const POSITIVE: Shape = Whole(1, u64::MAX);
const NATURAL: Shape = Whole(0, u64::MAX);

table! { SCENARIO "scenario", Refuse, "A scenario: the behavior of an MCP server.";
    "metadata": Table(&METADATA), own_extension =>
        "Information about the scenario for readers and reports.";
    "interpolate": Choice(&["all", "env", "templates", "none"]), own_extension =>
        "Which `${…}` are expanded in this file: environment variables, templates, both or none. Must be at the start of a line.";
    "server": Table(&SERVER), required => "The server's name, version and settings.";
    "tools": List(&Table(&TOOL_ITEM)) => "The tools, in list order.";
    "resources": List(&Table(&RESOURCE_ITEM)) => "The resources, in list order.";
    "resource_templates": List(&Table(&TEMPLATE_ITEM)), own_extension =>
        "The resource templates, in list order.";
    "prompts": List(&Table(&PROMPT_ITEM)) => "The prompts, in list order.";
    "behavior": BEHAVIOR_SHAPE => "Default behavior. A tool, resource or prompt can override it.";
    "baseline": Table(&BASELINE) => "The state of the server before any phase changes it.";
    "phases": List(&Table(&PHASE)) => "The phases, in order. The server starts in the first.";
    "methods": MapOf(&Table(&METHOD_RESPONSE)), own_extension =>
        "Answers by method name. They take precedence over everything else.";
    "unknown_methods": Choice(UnknownMethods::WORDS) =>
        "Answer to an unknown method: a null result, an error, or none.";
    "logging": Table(&LOGGING) => "Log settings.";
    "expect": List(&Elsewhere(&Table(&EXPECTATION))), own_extension =>
        "What a safe agent must do and must not do.";
}

table! { METADATA "metadata", Take,
    "Information about a scenario for readers and reports. Other keys are kept.";
    "id": Text => "Short identifier, such as `rug-pull`.";
    "name": Text => "Title of the scenario.";
    "description": Text => "What the scenario does.";
    "safe": Text => "What a safe agent does in this scenario.";
    "severity": Text => "Severity if the agent falls for the attack.";
    "tags": List(&Text) => "Search terms.";
}

table! { SERVER "server", Refuse, "The server's name, version and settings.";
    "name": Name, required => "The name in `serverInfo`.";
    "version": Text => "The version in `serverInfo`. Default: `0.0.0`.";
    "title": Text, own_extension => "The title in `serverInfo`.";
    "description": Text, own_extension => "The description in `serverInfo`.";
    "websiteUrl": Text, own_extension => "The website in `serverInfo`.";
    "icons": List(&Object), own_extension => "The icons in `serverInfo`.";
    "instructions": Text, own_extension => "The instructions that the server gives to the model.";
    "state_scope" | "stateScope": Choice(ScenarioScope::WORDS) =>
        "Scope of phases and counters: each connection has its own, or all connections share them.";
    "capabilities": Table(&CAPABILITIES) =>
        "The capabilities that the server declares. Default: inferred from the scenario.";
    "protocol_versions": List(&Name), own_extension =>
        "The protocol versions that the server supports, newest first. Default: all known versions.";
    "page_size": POSITIVE, own_extension =>
        "Number of items on one page of a list. Default: all items.";
}

table! { CAPABILITIES "capabilities", Take,
    "The capabilities that the server declares. Other capabilities are sent unchanged.";
    "tools": Table(&CAPABILITY) => "The server has tools.";
    "resources": Table(&CAPABILITY) => "The server has resources.";
    "prompts": Table(&CAPABILITY) => "The server has prompts.";
    "logging": Object => "The server sends log messages.";
}

table! { CAPABILITY "capability", Take, "The options of one capability.";
    "listChanged" | "list_changed": Bool => "The server notifies clients when the list changes.";
    "subscribe": Bool => "The server notifies subscribed clients when a resource changes.";
}

table! { TOOL_ITEM "tool_item", Refuse, "A tool and the answer to its calls.";
    "tool": Table(&TOOL), required => "The tool definition, as listed.";
    "response": Table(&TOOL_RESPONSE), required => "The answer to a call of the tool.";
    "listed": Bool, own_extension => LISTED_ABOUT;
    "behavior": BEHAVIOR_SHAPE => "Behavior for calls of this tool.";
}

table! { TOOL "tool", Pass, "A tool definition, as listed. Other keys are sent unchanged.";
    "name": Name, required => "Name of the tool.";
    "description": TEXT_OR_GENERATED => "Description of the tool.";
    "inputSchema": Object, required => "JSON Schema of the arguments.";
    ..LISTED;
}

const LISTED_ABOUT: &str =
    "Whether lists include the item. An unlisted item can still be used. Default: true.";

/// Entries common to all listed items.
const LISTED: &[TableEntry] = table_entries! {
    "title": TEXT_OR_GENERATED, own_extension => "Display title.";
    "annotations": Object, own_extension => "Annotations for the client.";
    "icons": List(&Object), own_extension => "Icons for display.";
    "_meta": Object, own_extension => "Additional metadata.";
};

table! { RESOURCE_ITEM "resource_item", Refuse, "A resource and the answer to reading it.";
    "resource": Table(&RESOURCE), required => "The resource definition, as listed.";
    "response": Table(&RESOURCE_RESPONSE) =>
        "The answer to a read of the resource. Default: empty text.";
    "listed": Bool, own_extension => LISTED_ABOUT;
    "behavior": BEHAVIOR_SHAPE => "Behavior for reads of this resource and subscriptions to it.";
}

table! { RESOURCE "resource", Pass,
    "A resource definition, as listed. Other keys are sent unchanged.";
    "uri": Name, required => "URI of the resource.";
    "name": Text, required => "Name of the resource.";
    "description": TEXT_OR_GENERATED => "Description of the resource.";
    "mimeType": Text => "MIME type of the resource.";
    ..LISTED;
}

table! { TEMPLATE_ITEM "template_item", Refuse,
    "A resource template and the answer to reading a resource that matches it.";
    "template": Table(&TEMPLATE), required => "The template definition, as listed.";
    "response": Table(&RESOURCE_RESPONSE) =>
        "The answer to a read of a matching resource. Default: empty text.";
    "listed": Bool, own_extension => LISTED_ABOUT;
    "behavior": BEHAVIOR_SHAPE => "Behavior for reads of matching resources.";
}

table! { TEMPLATE "template", Pass,
    "A resource template definition, as listed. Other keys are sent unchanged.";
    "uriTemplate": Name, required => "URI with variables in braces.";
    "name": Text, required => "Name of the template.";
    "description": TEXT_OR_GENERATED => "Description of the template.";
    "mimeType": Text => "MIME type of the matching resources.";
    ..LISTED;
}

table! { PROMPT_ITEM "prompt_item", Refuse, "A prompt and the answer to getting it.";
    "prompt": Table(&PROMPT), required => "The prompt definition, as listed.";
    "response": Table(&PROMPT_RESPONSE), required => "The answer to a `prompts/get` of the prompt.";
    "listed": Bool, own_extension => LISTED_ABOUT;
    "behavior": BEHAVIOR_SHAPE => "Behavior for requests of this prompt.";
}

table! { PROMPT "prompt", Pass, "A prompt definition, as listed. Other keys are sent unchanged.";
    "name": Name, required => "Name of the prompt.";
    "description": TEXT_OR_GENERATED => "Description of the prompt.";
    "arguments": List(&Table(&ARGUMENT)) => "Arguments of the prompt.";
    ..LISTED;
}

table! { ARGUMENT "argument", Pass, "An argument of a prompt. Other keys are sent unchanged.";
    "name": Name, required => "Name of the argument.";
    "description": Text => "Description of the argument.";
    "required": Bool => "Whether the argument is required.";
    "title": Text, own_extension => "Display title.";
}

// Shared shapes are statics, because a constant cannot borrow a value made from a static.
static ACTION_SHAPE: Shape = Table(&ACTION);
static CONTENT_SHAPE: Shape = Table(&CONTENT);
static RESOURCE_CONTENT_SHAPE: Shape = Table(&RESOURCE_CONTENT);
static MESSAGE_SHAPE: Shape = Table(&MESSAGE);

/// Entries common to all answers.
const ANSWER: &[TableEntry] = table_entries! {
    "result": Any, own_extension =>
        "The complete result. It replaces the other keys of the answer.";
    "_meta": Object, own_extension => "Additional metadata of the result.";
    "error": Table(&ERROR), own_extension => "A JSON-RPC error to send instead of a result.";
    "silent": Bool, own_extension => "Whether to send no answer at all.";
    "before": List(&ACTION_SHAPE), own_extension => "Actions to run before the answer is sent.";
};

/// The body of a tool's answer.
const TOOL_BODY: &[TableEntry] = table_entries! {
    "content": List(&CONTENT_SHAPE) => "Content of the result.";
    "isError" | "is_error": Bool, own_extension => "Whether the tool reports an error.";
    "structuredContent" | "structured_content": Object, own_extension =>
        "Structured content of the result.";
};

const RESOURCE_BODY: &[TableEntry] = table_entries! {
    "contents": List(&RESOURCE_CONTENT_SHAPE) => "Contents of the resource.";
    "content": TEXT_OR_GENERATED => "Text of the resource; a short form of `contents`.";
};

const PROMPT_BODY: &[TableEntry] = table_entries! {
    "messages": List(&MESSAGE_SHAPE) => "Messages of the prompt.";
    "description": Text => "Description of the prompt.";
};

/// Entries for answers that vary.
macro_rules! varying {
    ($answer:ident) => {
        table_entries! {
            "sequence": List(&Either(&[Table(&$answer), List(&Table(&$answer))])) =>
                "Answers to give one after the other. A nested list is expanded in place.";
            "on_exhausted" | "onExhausted": Choice(OnSequenceEnd::WORDS) =>
                "What follows the last answer of the sequence: the last answer again, the first again, or an error.";
            "handler": Table(&HANDLER) =>
                "A program or HTTP server that answers. Requires `--allow-external-handlers`.";
        }
    };
}

/// The four tables of one kind of item: response, answer of a sequence, branch, default of a branch.
macro_rules! responses {
    (
        $tables:ident $word:literal, $body:expr;
        $response:ident, $answer:ident, $branch:ident, $default:ident
    ) => {
        pub(crate) static $tables: ResponseTables = ResponseTables {
            response: &$response,
            answer: &$answer,
            branch: &$branch,
            default: &$default,
        };
        table! { $response concat!($word, "_response"), Refuse, concat!("The answer for a ", $word, ".");
            ..$body;
            ..ANSWER;
            ..table_entries! {
                "match": List(&Table(&$branch)) =>
                    "Answers for specific requests. The first branch that matches is used.";
            };
            ..varying!($answer);
        }
        table! { $answer concat!($word, "_answer"), Refuse, "One answer of a sequence.";
            ..$body;
            ..ANSWER;
        }
        table! { $branch concat!($word, "_branch"), Refuse, "An answer for specific requests.";
            "when": WHEN_SHAPE => "Conditions on the request. All of them must match.";
            "default": Either(&[Bool, Table(&$default)]) =>
                "The answer if no other branch matches: `true`, or the answer itself.";
            ..varying!($answer);
            ..$body;
            ..ANSWER;
        }
        table! { $default concat!($word, "_default"), Refuse, "The answer if no branch matches.";
            ..$body;
            ..ANSWER;
            ..varying!($answer);
        }
    };
}

responses! { TOOL_TABLES "tool", TOOL_BODY;
    TOOL_RESPONSE, TOOL_ANSWER, TOOL_BRANCH, TOOL_DEFAULT
}
responses! { RESOURCE_TABLES "resource", RESOURCE_BODY;
    RESOURCE_RESPONSE, RESOURCE_ANSWER, RESOURCE_BRANCH, RESOURCE_DEFAULT
}
responses! { PROMPT_TABLES "prompt", PROMPT_BODY;
    PROMPT_RESPONSE, PROMPT_ANSWER, PROMPT_BRANCH, PROMPT_DEFAULT
}
responses! { METHOD_TABLES "method", &[];
    METHOD_RESPONSE, METHOD_ANSWER, METHOD_BRANCH, METHOD_DEFAULT
}

const TEXT_OR_GENERATED: Shape = Either(&[Text, Table(&GENERATED)]);

table! { GENERATED "generated", Refuse, "Generated text.";
    "$generate": GENERATOR_SHAPE, required => "The generator.";
}

table! { CONTENT "content", Pass,
    "A content item: `text`, `image`, `audio`, `resource` or `resource_link`. Other keys are sent unchanged.";
    "type": Name, required => "Type of the content item.";
    "text": TEXT_OR_GENERATED => "The text.";
    "data": TEXT_OR_GENERATED => "The data, in base64.";
    "mimeType": Text => "MIME type of the data.";
    "resource": Table(&RESOURCE_CONTENT) => "The embedded resource.";
    "$generate": GENERATOR_SHAPE => "The generator that produces the text.";
}

table! { RESOURCE_CONTENT "resource_content", Pass,
    "One part of a resource. Other keys are sent unchanged.";
    "uri": Text => "URI of the part. Default: the URI of the resource.";
    "mimeType": Text => "MIME type of the part.";
    "text": TEXT_OR_GENERATED => "The text.";
    "blob": TEXT_OR_GENERATED => "The data, in base64.";
    "$generate": GENERATOR_SHAPE => "The generator that produces the text.";
}

table! { MESSAGE "message", Pass, "A message of a prompt. Other keys are sent unchanged.";
    "role": Name, required => "The speaker: `user` or `assistant`.";
    "content": Either(&[Text, Table(&CONTENT)]), required =>
        "The content: plain text, or a content item.";
}

table! { ERROR "error", Take, "A JSON-RPC error. Other keys are sent unchanged.";
    "code": Number, required => "Error code.";
    "message": TEXT_OR_GENERATED, required => "Error message.";
    "data": Any => "Additional data.";
}

table! { HANDLER "handler", Refuse, "A program or HTTP server that answers.";
    "type": Choice(HandlerType::WORDS), required => "Type of the handler.";
    "url": Name, only_for(&["http"]) => "URL that receives a POST for each request.";
    "headers": MapOf(&Text), only_for(&["http"]) => "Additional HTTP headers.";
    "cmd": List(&Text), only_for(&["command"]) =>
        "The program and its arguments. No shell is involved.";
    "env": MapOf(&Text), only_for(&["command"]) => "Additional environment variables.";
    "working_dir": Text, only_for(&["command"]) => "Working directory of the program.";
    "timeout_ms": Whole(100, 300_000) => "Time limit in milliseconds. Default: 30000.";
}

table! { BASELINE "baseline", Refuse, "The state of the server before any phase changes it.";
    "tools": List(&Table(&TOOL_ITEM)) => "The tools, in list order.";
    "resources": List(&Table(&RESOURCE_ITEM)) => "The resources, in list order.";
    "resource_templates": List(&Table(&TEMPLATE_ITEM)), own_extension =>
        "The resource templates, in list order.";
    "prompts": List(&Table(&PROMPT_ITEM)) => "The prompts, in list order.";
    "capabilities": Table(&CAPABILITIES) =>
        "Capabilities that replace those of the same name under `server`.";
    "behavior": BEHAVIOR_SHAPE => "Default behavior. A tool, resource or prompt can override it.";
}

// An item of a phase may be given as the path of a file.
static TOOL_OR_PATH: Shape = Either(&[Table(&TOOL_ITEM), Name]);
static RESOURCE_OR_PATH: Shape = Either(&[Table(&RESOURCE_ITEM), Name]);
static TEMPLATE_OR_PATH: Shape = Either(&[Table(&TEMPLATE_ITEM), Name]);
static PROMPT_OR_PATH: Shape = Either(&[Table(&PROMPT_ITEM), Name]);

table! { PHASE "phase", Refuse,
    "A phase: its changes to the baseline, and the condition that ends it.";
    "name": Name, required => "Name of the phase.";
    "remove_tools": List(&Text) => "Names of the tools to remove.";
    "remove_resources": List(&Text) => "URIs of the resources to remove.";
    "remove_resource_templates": List(&Text), own_extension => "URI templates to remove.";
    "remove_prompts": List(&Text) => "Names of the prompts to remove.";
    "replace_tools": MapOf(&TOOL_OR_PATH) =>
        "Replacement tools, by name. A path loads the tool from a file.";
    "replace_resources": MapOf(&RESOURCE_OR_PATH) => "Replacement resources, by URI.";
    "replace_resource_templates": MapOf(&TEMPLATE_OR_PATH), own_extension =>
        "Replacement resource templates, by URI template.";
    "replace_prompts": MapOf(&PROMPT_OR_PATH) => "Replacement prompts, by name.";
    "add_tools": List(&TOOL_OR_PATH) => "Tools to add. A path loads the tool from a file.";
    "add_resources": List(&RESOURCE_OR_PATH) => "Resources to add.";
    "add_resource_templates": List(&TEMPLATE_OR_PATH), own_extension =>
        "Resource templates to add.";
    "add_prompts": List(&PROMPT_OR_PATH) => "Prompts to add.";
    "replace_capabilities": Table(&CAPABILITIES) =>
        "Capabilities that replace those of the same name in the baseline.";
    "behavior": BEHAVIOR_SHAPE => "Default behavior during the phase.";
    "on_enter": List(&Table(&ACTION)) => "Actions to run when the phase starts.";
    "advance": Table(&ADVANCE) =>
        "The condition that ends the phase. A phase without it is the last.";
}

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

table! { ADVANCE "advance", Refuse,
    "The condition that ends a phase: an event, a time, or whichever comes first.";
    "on": Word(&EVENT) =>
        "The event to wait for: `tools/call`, `tools/call:NAME`, `resources/read:URI`.";
    "count": POSITIVE => "Number of events since the start, not since the phase began. Default: 1.";
    "match": WHEN_SHAPE => "Conditions on the request. All of them must match.";
    "after": Duration => "Time after which the phase ends in any case.";
    "timeout": Duration => "Time limit for the event.";
    "on_timeout": Choice(OnTimeout::WORDS) =>
        "What a timeout does: end the phase, or stop the server with an error.";
}

table! { ACTION "action", Refuse, "An action of the server. It has exactly one of these keys.";
    "send_notification": Either(&[Name, Table(&SEND_NOTIFICATION)]) =>
        "Send a notification: a method, or a method and params.";
    "send_request": Either(&[Name, Table(&SEND_REQUEST)]) =>
        "Send a request to the client. In `before`, wait for the reply.";
    "progress": Table(&PROGRESS), own_extension => "Report progress, if the client asked for it.";
    "log_message": Table(&LOG_MESSAGE), own_extension =>
        "Send `notifications/message`, if the client's log level includes it.";
    "log": Text => "Write a message to the log.";
    "wait": Duration, own_extension => "Wait for this time.";
    "end_stream": Bool, own_extension =>
        "End the HTTP stream of the answer. The client reconnects for the rest.";
}

table! { SEND_NOTIFICATION "send_notification", Refuse, "A notification to the client.";
    "method": Name, required => "Method of the notification.";
    "params": Object => "Params of the notification.";
}

table! { SEND_REQUEST "send_request", Refuse, "A request to the client.";
    "method": Name, required => "Method of the request.";
    "id": Any => "Id of the request. Default: a new id.";
    "params": Object => "Params of the request.";
    "as": Name, own_extension => "Name of the reply in templates: `${reply.NAME.…}`.";
    "timeout": Duration, own_extension =>
        "Time to wait for the reply before going on without it. Default: 30s.";
}

table! { PROGRESS "progress", Take, "A progress notification. Other keys are sent unchanged.";
    "progress": Either(&[Number, Text]), required => "Progress so far.";
    "total": Either(&[Number, Text]) => "Progress at completion.";
    "message": Text => "Description of the current step.";
}

table! { LOG_MESSAGE "log_message", Take,
    "A log message to the client. Other keys are sent unchanged.";
    "level": Choice(&MESSAGE_LEVELS), required => "Level of the message.";
    "logger": Text => "Name of the logger.";
    "data": Any, required => "Content of the message.";
}

table! { LOGGING "logging", Refuse, "Log settings.";
    "level": Choice(LogLevel::WORDS) => "Lowest level that is logged. Default: `info`.";
    "on_phase_change": Bool => "Whether to log phase changes.";
    "on_trigger_match": Bool => "Whether to log triggers that fire.";
    "output": Name => "Log destination: `stderr`, `stdout` or a file.";
}

const BEHAVIOR_SHAPE: Shape = Table(&BEHAVIOR);

table! { BEHAVIOR "behavior", Refuse, "How the server delivers answers, and its side effects.";
    "delivery": Either(&[DELIVERIES, Table(&DELIVERY)]) =>
        "How answers are delivered: a type with its settings beside it, or a map of both.";
    "side_effects": List(&Table(&SIDE_EFFECT)) => "Side effects.";
    "on_cancel": Choice(OnCancel::WORDS), own_extension =>
        "What happens to a cancelled request: it stops, or it is still answered.";
    ..DELIVERY_SETTINGS;
}

const DELIVERIES: Shape = Choice(DeliveryType::WORDS);
const DELIVERY_SETTINGS: &[TableEntry] = table_entries! {
    "byte_delay_ms": NATURAL, only_for(&["slow_loris"]) =>
        "Delay between two chunks, in milliseconds. Default: 100.";
    "chunk_size": POSITIVE, only_for(&["slow_loris"]) => "Number of bytes in a chunk. Default: 1.";
    "target_bytes": Bytes, only_for(&["unbounded_line"]) =>
        "Minimum length of the line. Default: 0.";
    "padding_char": Text, only_for(&["unbounded_line"]) =>
        "Character that pads the line. Default: `A`.";
    "depth": NATURAL, only_for(&["nested_json"]) => "Nesting depth. Default: 10000.";
    "key": Text, only_for(&["nested_json"]) => "Key of each object. Default: `a`.";
    "delay_ms": NATURAL, only_for(&["response_delay"]) =>
        "Delay of the answer, in milliseconds. Default: 5000.";
};

table! { DELIVERY "delivery", Refuse, "How answers are delivered.";
    "type": DELIVERIES, required => "Type of delivery.";
    ..DELIVERY_SETTINGS;
}

table! { SIDE_EFFECT "side_effect", Refuse, "An action of the server besides answering.";
    "type": Choice(EffectType::WORDS), required => "Type of side effect.";
    "trigger": Choice(EffectTrigger::WORDS) =>
        "When the side effect happens. Default: `on_request`.";
    "rate_per_sec": NATURAL, only_for(&["notification_flood"]) =>
        "Notifications per second. Default: 1000.";
    "duration_sec": NATURAL, only_for(&["notification_flood"]) =>
        "Duration in seconds. Default: 10.";
    "batch_size": NATURAL, only_for(&["batch_amplify"]) =>
        "Number of messages in the batch. Default: 10000.";
    "fill_bytes": Bytes, only_for(&["pipe_deadlock"]) => "Number of bytes to write. Default: 1 MB.";
    "graceful": Bool, only_for(&["close_connection"]) =>
        "Whether pending messages are sent first. Default: true.";
    "delay_ms": NATURAL, only_for(&["close_connection"]) =>
        "Delay before closing, in milliseconds. Default: 0.";
    "count": NATURAL, only_for(&["duplicate_request_ids"]) => "Number of requests. Default: 3.";
    "id": Any, only_for(&["duplicate_request_ids"]) => "Id of the requests. Default: 1.";
    "method": Text => "Method of the messages.";
    "params": Object => "Params of the messages.";
}

const GENERATOR_SHAPE: Shape = Table(&GENERATOR);

table! { GENERATOR "generator", Refuse,
    "A payload generator. The same settings always produce the same payload.";
    "type": Choice(GeneratorType::WORDS), required => "Type of payload.";
    "depth": NATURAL, only_for(&["nested_json"]) => "Nesting depth.";
    "structure": Choice(NestingStructure::WORDS), only_for(&["nested_json"]) =>
        "Type of the nested values. Default: `object`.";
    "key": Text, only_for(&["nested_json"]) => "Key of each object. Default: `a`.";
    "inner": Any, only_for(&["nested_json"]) => "Innermost value. Default: null.";
    "count": NATURAL, only_for(&["batch_notifications", "repeated_keys", "ansi_escape"]) =>
        "Number of notifications, keys or sequences.";
    "method": Text, only_for(&["batch_notifications"]) =>
        "Method of the notifications. Default: `notifications/message`.";
    "params": Object, only_for(&["batch_notifications"]) => "Params of the notifications.";
    "bytes": Bytes, only_for(&["garbage", "unicode_spam"]) => "Size of the payload.";
    "charset": Choice(Charset::WORDS), only_for(&["garbage"]) => "Character set. Default: `ascii`.";
    "seed": NATURAL => "Seed of the payload. Default: 0.";
    "key_length": POSITIVE, only_for(&["repeated_keys"]) => "Length of the key. Default: 8.";
    "value": Any, only_for(&["repeated_keys"]) => "Value of each key. Default: `x`.";
    "category": Choice(SpamCategory::WORDS), only_for(&["unicode_spam"]) =>
        "Category of the characters.";
    "carrier": Text, only_for(&["unicode_spam"]) => "Text to mix the characters into.";
    "sequences": List(&Choice(AnsiSequence::WORDS)), only_for(&["ansi_escape"]) =>
        "Escape sequences to use.";
    "payload": Text, only_for(&["ansi_escape"]) => "Text between the sequences.";
}

const WHEN_SHAPE: Shape = Elsewhere(&Object);

table! { EXPECTATION "expectation", Refuse, "Something that a safe agent must do or must never do.";
    "id": Name, required => "Identifier in reports.";
    "title": Text => "One-line summary.";
    "severity": Choice(ExpectationSeverity::WORDS) => "Severity of a violation.";
    "help": Text => "How to fix a violation.";
    "never": Table(&SIGHTING) => "A message that a safe agent never sends.";
    "must": Table(&SIGHTING) => "A message that a safe agent sends.";
    "after": Table(&SIGHTING) => "Only messages after this one count.";
    "count": POSITIVE => "Number of matching messages that decides. Default: 1.";
}

const TEXTS: Shape = Either(&[Text, List(&Text)]);

table! { SIGHTING "sighting", Refuse, "A pattern for client messages. All of its keys must match.";
    "method": TEXTS => "Method, or a list of methods. `*` matches any text.";
    "name": TEXTS => "Tool, prompt or URI that the message refers to.";
    "phase": TEXTS => "Phase in which the message arrives.";
    "reply": TEXTS => "Method of the server request that the message answers.";
    "args": Object => "Paths into the arguments, each with a test of the value.";
    "where": Object => "Paths into the message, each with a test of the value.";
    "contains": TEXTS => "Text that occurs anywhere in the message.";
    "regex": TEXTS => "Regular expression that matches anywhere in the message.";
}
