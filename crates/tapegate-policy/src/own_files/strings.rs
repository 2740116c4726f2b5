//! The strings in a call's arguments, and their purpose.

use tapegate_core::json::string;

use super::entities::entity_bytes;

/// The purpose of a string, according to its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// Content that is written to a file. It may mention any name.
    Content,
    /// Text for people. It may mention a name among other words.
    Told,
    /// Prose, or input to a terminal.
    Text,
    /// Search words, or a statement.
    Query,
    Command,
    /// A command line for a shell.
    Shell,
    /// A list of entities of a knowledge graph.
    Entities,
    /// The name of such an entity.
    EntityName,
    /// One or several paths, of any length.
    Path,
    /// A path or a web address.
    Url,
    /// A pattern, or anything else.
    Other,
}

/// Keys of content, in lower case without separators.
const CONTENT: [&str; 18] = [
    "body",
    "codeedit",
    "content",
    "contents",
    "filecontent",
    "filecontents",
    "filetext",
    "html",
    "inserttext",
    "markdown",
    "newcontent",
    "newstr",
    "newstring",
    "newtext",
    "oldstr",
    "oldstring",
    "oldtext",
    "replacement",
];
/// Keys of text for people.
const TOLD: [&str; 28] = [
    "answer",
    "comment",
    "commitmessage",
    "description",
    "explanation",
    "feedback",
    "instructions",
    "message",
    "note",
    "notes",
    "observation",
    "observations",
    "prompt",
    "prompts",
    "question",
    "questions",
    "rationale",
    "reason",
    "reasoning",
    "subject",
    "summary",
    "systemprompt",
    "thinking",
    "thought",
    "thoughts",
    "title",
    "userprompt",
    "usermessage",
];
/// Keys of prose that may also be typed into a terminal.
const TEXT: [&str; 8] = ["goal", "input", "task", "tasks", "text", "texts", "todo", "todos"];
/// Keys of search queries.
const QUERY: [&str; 4] = ["q", "query", "search", "searchquery"];
/// Endings of keys of paths.
const PATH_ENDS: [&str; 11] = [
    "path",
    "paths",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "directory",
    "folder",
    "destination",
    "target",
];
/// Endings of keys of addresses.
const URL_ENDS: [&str; 4] = ["uri", "uris", "url", "urls"];
/// Keys of lists of entities.
const ENTITIES: &str = "entities";
/// The depth of an entity: an element of a list that is an argument.
const ENTITY_DEPTH: usize = 2;
/// Keys of command lines for a shell.
const SHELL: [&str; 3] = ["cmd", "command", "commandline"];
/// Keys of other commands.
const COMMAND: [&str; 27] = [
    "args",
    "argv",
    "bash",
    "cmdline",
    "cmds",
    "code",
    "commands",
    "eval",
    "exec",
    "expression",
    "javascript",
    "js",
    "perl",
    "powershell",
    "program",
    "python",
    "ruby",
    "run",
    "script",
    "sh",
    "shell",
    "source",
    "sourcecode",
    "sql",
    "statement",
    "statements",
    "stdin",
];

impl TextKind {
    fn of_key(key: &str) -> Self {
        let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        if CONTENT.contains(&plain.as_str()) {
            Self::Content
        } else if TOLD.contains(&plain.as_str()) {
            Self::Told
        } else if SHELL.contains(&plain.as_str()) {
            Self::Shell
        } else if COMMAND.contains(&plain.as_str()) {
            Self::Command
        } else if plain == ENTITIES {
            Self::Entities
        } else if TEXT.contains(&plain.as_str()) {
            Self::Text
        } else if QUERY.contains(&plain.as_str()) {
            Self::Query
        } else if URL_ENDS.iter().any(|end| plain.ends_with(end)) {
            Self::Url
        } else if PATH_ENDS.iter().any(|end| plain.ends_with(end)) {
            Self::Path
        } else {
            Self::Other
        }
    }
}

/// Calls `take` with every string in a JSON text and its purpose. Keys are included: some tools
/// take file names as keys.
pub(super) fn each_string(json: &[u8], take: &mut dyn FnMut(&str, TextKind)) {
    // The purpose of the values in each open object and list.
    let mut open: Vec<TextKind> = Vec::new();
    let mut kind = TextKind::Other;
    // The end of the current entity.
    let mut entity_end = 0;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                if kind == TextKind::Entities && open.len() == ENTITY_DEPTH {
                    entity_end = at - 1 + entity_bytes(&json[at - 1..]).unwrap_or_default();
                }
                open.push(kind);
                // The elements of a list may be joined, or be the input of another command.
                if kind == TextKind::Shell {
                    kind = TextKind::Command;
                }
            }
            b'}' | b']' => kind = open.pop().unwrap_or(TextKind::Other),
            b'"' => {
                let end = string_end(json, at);
                let text = string(&json[at - 1..end]).unwrap_or_default();
                let rest = &json[end..];
                let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    take(&text, TextKind::Other);
                    let in_entity = end < entity_end && open.len() == ENTITY_DEPTH + 1;
                    kind = match in_entity && text == "name" {
                        true => TextKind::EntityName,
                        false => TextKind::of_key(&text),
                    };
                } else {
                    take(&text, kind);
                }
                at = end;
            }
            _ => {}
        }
    }
}

/// The end of a string that begins before `at`, after its closing quote.
pub(super) fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at = (at + 2).min(json.len());
    }
    json.len()
}
