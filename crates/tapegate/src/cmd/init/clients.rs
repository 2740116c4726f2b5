//! The servers that the configs of clients in a project name.

use std::fs;
use std::path::Path;

use tapegate_core::frame::array_items;
use tapegate_core::json::{self, Cursor, member, string};

use crate::settings::id_from;

/// Configs, and the member that holds the servers.
const CONFIGS: [(&str, &str); 3] = [
    (".mcp.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".vscode/mcp.json", "servers"),
];

/// A server that a config names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its name, as a policy has it.
    pub(super) id: String,
    /// Where it was found.
    pub(super) config: &'static str,
    /// How it is started; empty if it is reached by HTTP.
    pub(super) command: Vec<String>,
}

/// The servers of a project, each once, in the order of their names.
pub(super) fn find(folder: &Path) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    for (config, servers) in CONFIGS {
        // A config that is not there, or is none, names no servers.
        let Ok(text) = fs::read_to_string(folder.join(config)) else { continue };
        let text = plain(&text);
        if let Err(fault) = json::check(text.as_bytes()) {
            crate::talk::warn(&format!("`{config}` is no JSON, and left out: {fault}"));
            continue;
        }
        for (name, server) in members(text.as_bytes(), servers).unwrap_or_default() {
            let Some(id) = id_from(&name) else { continue };
            if found.iter().all(|known| known.id != id) {
                found.push(Found { id, config, command: command(server) });
            }
        }
    }
    found.sort_by(|one, two| one.id.cmp(&two.id));
    found
}

/// The members of the object under a key, in their order.
fn members<'a>(text: &'a [u8], key: &str) -> Option<Vec<(String, &'a [u8])>> {
    let mut cursor = Cursor::new(member(text, key)?).ok()?;
    cursor.open().ok().filter(|kind| *kind == json::Kind::Object)?;
    let (mut first, mut found) = (true, Vec::new());
    while let Some(key) = cursor.key(&mut first).ok()? {
        found.push((key.decode().into_owned(), cursor.value().ok()?));
    }
    Some(found)
}

/// How a server is started; what a config has secrets in, the environment, is not looked at.
fn command(server: &[u8]) -> Vec<String> {
    let Some(program) = member(server, "command").and_then(string) else { return Vec::new() };
    let words = member(server, "args").filter(|words| words.starts_with(b"["));
    let words = words.map(array_items).unwrap_or_default();
    let words = words.into_iter().filter_map(string);
    std::iter::once(program).chain(words).map(String::from).collect()
}

/// JSON as editors have it, without comments and the commas before closing brackets.
fn plain(text: &str) -> String {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = match first {
            '"' => quoted(rest),
            '/' if rest.starts_with("//") => {
                rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            '/' if rest.starts_with("/*") => {
                rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
                continue;
            }
            ']' | '}' => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
                1
            }
            other => other.len_utf8(),
        };
        out.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    out
}

/// The length of the string that a text begins with.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_stray_commas_are_left_out_and_strings_are_not() {
        let text = "{ // one, \"two\"\n \"a//b\": [1, 2,], /* \" */ \"c,}\": \"d\\\"//\", }";
        let value: serde_json::Value = serde_json::from_str(&plain(text)).unwrap();
        assert_eq!(value, serde_json::json!({ "a//b": [1, 2], "c,}": "d\"//" }));
    }

    #[test]
    fn servers_of_all_configs_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".vscode")).unwrap();
        let one = r#"{"mcpServers":{"my files":{"command":"npx","args":["-y","files"],"env":{"T":"x"}},"web":{"url":"http://localhost"}}}"#;
        let two =
            "{\n // VS Code\n \"servers\": { \"web\": {}, \"db\": { \"command\": \"db\" } } }";
        fs::write(folder.path().join(".mcp.json"), one).unwrap();
        fs::write(folder.path().join(".vscode/mcp.json"), two).unwrap();
        let found = find(folder.path());
        let ids: Vec<_> = found.iter().map(|one| (one.id.as_str(), one.config)).collect();
        assert_eq!(
            ids,
            [("db", ".vscode/mcp.json"), ("my-files", ".mcp.json"), ("web", ".mcp.json")]
        );
        assert_eq!(found[1].command, ["npx", "-y", "files"]);
        assert!(found[2].command.is_empty());
    }
}
