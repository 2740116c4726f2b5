//! The strings in a call's arguments, and what they are for.

use tapegate_core::json::string;

/// What a string is for, by the key that it stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// What is written to a file. It may mention any name.
    Content,
    /// What is told to people. It may mention a name among other words.
    Told,
    /// Sentences, or what is typed into a terminal.
    Text,
    /// Words to search for, or a statement.
    Query,
    /// What is run.
    Command,
    /// A path or several, however long.
    Path,
    /// The same, which may also be an address in the web.
    Url,
    /// A pattern, or anything else.
    Other,
}

/// Keys of content, without case and separators.
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
/// Keys of what is told to people.
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
/// Keys of sentences, which may also be typed into a terminal.
const TEXT: [&str; 8] = ["goal", "input", "task", "tasks", "text", "texts", "todo", "todos"];
/// Keys of what is searched for.
const QUERY: [&str; 4] = ["q", "query", "search", "searchquery"];
/// How keys of paths end.
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
/// How keys of addresses end.
const URL_ENDS: [&str; 4] = ["uri", "uris", "url", "urls"];
/// Keys of commands.
const COMMAND: [&str; 30] = [
    "args",
    "argv",
    "bash",
    "cmd",
    "cmdline",
    "cmds",
    "code",
    "command",
    "commandline",
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
        } else if COMMAND.contains(&plain.as_str()) {
            Self::Command
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

/// Hands on every string in a JSON text with what it is for. Keys count too: some tools take files
/// by name as keys.
pub(super) fn each_string(json: &[u8], take: &mut dyn FnMut(&str, TextKind)) {
    // What values are for, by the key of each object and list that is open.
    let mut open: Vec<TextKind> = Vec::new();
    let mut kind = TextKind::Other;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => open.push(kind),
            b'}' | b']' => kind = open.pop().unwrap_or(TextKind::Other),
            b'"' => {
                let end = string_end(json, at);
                let text = string(&json[at - 1..end]).unwrap_or_default();
                let rest = &json[end..];
                let next = rest.iter().find(|byte| !byte.is_ascii_whitespace());
                if next == Some(&b':') {
                    take(&text, TextKind::Other);
                    kind = TextKind::of_key(&text);
                } else {
                    take(&text, kind);
                }
                at = end;
            }
            _ => {}
        }
    }
}

/// Where a string ends that begins before `at`, after its closing quote.
fn string_end(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at..]) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at = (at + 2).min(json.len());
    }
    json.len()
}
