//! The strings in a call's arguments, and what they are for.

use tapegate_core::json::string;

/// What a string is for, by the key that it stands under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    /// What is written to a file, or told to people. It may mention any name.
    Content,
    /// What is run.
    Command,
    /// A path, a pattern, or anything else.
    Other,
}

/// Keys of content, without case and separators.
const CONTENT: [&str; 27] = [
    "body",
    "codeedit",
    "comment",
    "commitmessage",
    "content",
    "contents",
    "description",
    "explanation",
    "filecontent",
    "filecontents",
    "filetext",
    "html",
    "inserttext",
    "instructions",
    "markdown",
    "message",
    "newcontent",
    "newstr",
    "newstring",
    "newtext",
    "note",
    "oldstr",
    "oldstring",
    "oldtext",
    "replacement",
    "summary",
    "title",
];
/// Keys of commands.
const COMMAND: [&str; 14] = [
    "args",
    "argv",
    "bash",
    "cmd",
    "cmds",
    "code",
    "command",
    "commandline",
    "commands",
    "exec",
    "program",
    "run",
    "script",
    "shell",
];

impl TextKind {
    fn of_key(key: &str) -> Self {
        let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        if CONTENT.contains(&plain.as_str()) {
            Self::Content
        } else if COMMAND.contains(&plain.as_str()) {
            Self::Command
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
