//! Tells which client a command starts.

use crate::client_table::{CLIENTS, McpClient};

/// Programs that run what follows them, for the same user with the same configs.
const RUNNERS: [&str; 12] =
    ["npx", "bunx", "bun", "pnpm", "pnpx", "yarn", "node", "uvx", "uv", "env", "nohup", "time"];
/// Words of runners that name nothing.
const RUNNER_WORDS: [&str; 5] = ["run", "exec", "dlx", "x", "tool"];

/// The client with this id, such as `claude-code`.
pub fn by_id(id: &str) -> Option<&'static McpClient> {
    CLIENTS.iter().find(|client| client.id == id)
}

/// The client that a command line starts, as far as its words tell.
pub fn by_command(words: &[String]) -> Option<&'static McpClient> {
    position_and_client(words).map(|(_, client)| client)
}

/// Which word of a command line starts a client; arguments for it follow.
pub fn program_position(words: &[String]) -> Option<usize> {
    position_and_client(words).map(|(at, _)| at)
}

fn position_and_client(words: &[String]) -> Option<(usize, &'static McpClient)> {
    for (at, word) in words.iter().enumerate() {
        // Claude is the name of an app and of a terminal program.
        if word.contains(".app") && word.contains("Claude") {
            return by_id("claude-desktop").map(|client| (at, client));
        }
        let name = program_name(word);
        let is_started = |client: &&McpClient| client.commands.contains(&name);
        if let Some(client) = CLIENTS.iter().find(is_started) {
            return Some((at, client));
        }
        // Only what may come before the program: otherwise a file named `claude` would be taken for
        // it.
        let is_passed = word.starts_with('-')
            || word.contains('=')
            || RUNNERS.contains(&name)
            || RUNNER_WORDS.contains(&name);
        if !is_passed {
            return None;
        }
    }
    None
}

/// The name of a program or package, without its folder, scope, version and extension.
fn program_name(word: &str) -> &str {
    let last = word.rsplit('/').next().unwrap_or(word);
    // A version follows the name of a package; a scope is before it.
    let name = last.split('@').next().filter(|name| !name.is_empty()).unwrap_or(last);
    let known = [".js", ".mjs", ".cjs", ".AppImage"];
    known.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn client(line: &str) -> Option<&'static str> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        by_command(&words).map(|client| client.id)
    }

    #[test]
    fn a_client_is_known_by_what_starts_it() {
        for (line, expected) in [
            ("claude", Some("claude-code")),
            ("claude-code -p x", Some("claude-code")),
            ("/usr/local/bin/claude --model x", Some("claude-code")),
            ("npx -y @anthropic-ai/claude-code@2.1.0", Some("claude-code")),
            ("open /Applications/Claude.app", None),
            ("/Applications/Claude.app/Contents/MacOS/Claude", Some("claude-desktop")),
            ("cursor .", Some("cursor")),
            ("code --wait .", Some("vscode")),
            ("code-insiders", Some("vscode")),
            ("codium .", Some("vscodium")),
            ("windsurf", Some("windsurf")),
            ("zed .", Some("zed")),
            ("env A=1 codex exec x", Some("codex")),
            ("node /opt/gemini-cli/gemini.js", Some("gemini")),
            ("opencode run x", Some("opencode")),
            ("cn -p x", Some("continue")),
            ("my-agent claude", None),
            // With configs of another user, or of a sandbox.
            ("sudo claude", None),
            ("flatpak run claude", None),
            ("bash -c claude", None),
            ("", None),
        ] {
            assert_eq!(client(line), expected, "{line}");
        }
        let words = ["npx", "-y", "@openai/codex", "exec"].map(str::to_owned);
        assert_eq!(program_position(&words), Some(2));
        assert_eq!(program_position(&words[3..]), None);
    }

    #[test]
    fn no_two_clients_share_an_id_or_a_command() {
        let ids: BTreeSet<&str> = CLIENTS.iter().map(|client| client.id).collect();
        assert_eq!(ids.len(), CLIENTS.len());
        let commands: Vec<&str> =
            CLIENTS.iter().flat_map(|client| client.commands).copied().collect();
        assert_eq!(commands.iter().collect::<BTreeSet<_>>().len(), commands.len());
        assert_eq!(by_id("gemini").map(|client| client.name), Some("Gemini CLI"));
    }
}
