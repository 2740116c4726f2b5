//! Servers that a client gets from its command line or a variable, besides those of its configs.
//!
//! They would run around the gate unnoticed, so a session governs them or is refused.

use std::path::PathBuf;

use crate::client_table::{McpClient, PathRoot, ServerOption};
use crate::detection;
use crate::discovery::DiscoveryContext;

/// What a command line adds to the configs of its client.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct CommandServers {
    /// Configs that it names.
    pub configs: Vec<PathBuf>,
    /// Folders that it names. They may be projects, with configs of their own.
    pub folders: Vec<PathBuf>,
    /// Flags and variables whose servers are in no config.
    pub others: Vec<String>,
    /// Variables that it sets, and that lead the client to other configs.
    pub assigned: Vec<String>,
    /// A flag with which the configs of the project are read from a copy.
    pub project_copy: Option<String>,
}

/// What the command line and the variables of a session add.
pub fn find(
    context: &DiscoveryContext<'_>,
    client: &McpClient,
    words: &[String],
) -> CommandServers {
    let all_words = words;
    let words = own_words(words);
    let mut found =
        CommandServers { assigned: assignments(client, all_words), ..CommandServers::default() };
    for option in client.options {
        match option {
            ServerOption::Config(flag) | ServerOption::Configs(flag) => {
                let is_list = matches!(option, ServerOption::Configs(_));
                for value in values(words, flag, is_list) {
                    let path = context.folder.join(value);
                    // A text with the servers themselves, or the name of something remote.
                    match path.is_file() {
                        true => found.configs.push(path),
                        false => found.others.push((*flag).to_owned()),
                    }
                }
            }
            ServerOption::Flag(flags, text) => {
                let is_given = |flag: &&&str| {
                    values(words, flag, false).iter().any(|value| value.contains(text))
                };
                found.others.extend(flags.iter().filter(is_given).map(|flag| (*flag).to_owned()));
            }
            ServerOption::ProjectCopy(flags) => {
                let given = flags.iter().find(|flag| is_given(words, flag));
                found.project_copy = given.map(|flag| (*flag).to_owned());
            }
            ServerOption::Variable(name, text) => {
                let value = (context.variable)(name).unwrap_or_default();
                if value.to_string_lossy().contains(text) {
                    found.others.push((*name).to_owned());
                }
            }
        }
    }
    found.others.dedup();
    // Also before the agent: `env --chdir=DIR codex`.
    found.folders = folders(context, all_words.get(1..).unwrap_or_default());
    found
}

/// Variables that are set on the command line, and lead the client to other configs: `env HOME=…`.
fn assignments(client: &McpClient, words: &[String]) -> Vec<String> {
    let program = detection::program_position(words).unwrap_or(0);
    let of_files = client.files.iter().filter_map(|file| match file.root {
        PathRoot::Variable(name, _) | PathRoot::File(name) => Some(name),
        _ => None,
    });
    let of_options = client.options.iter().filter_map(|option| match option {
        ServerOption::Variable(name, _) => Some(*name),
        _ => None,
    });
    let names: Vec<&str> =
        ["HOME", "XDG_CONFIG_HOME"].into_iter().chain(of_files).chain(of_options).collect();
    let assigned = words[..program].iter().filter_map(|word| word.split_once('='));
    let assigned = assigned.map(|(name, _)| name).filter(|name| names.contains(name));
    assigned.map(str::to_owned).collect()
}

/// The first flag that names configs or servers, or reads them from a copy.
pub fn first_option(client: &McpClient, words: &[String]) -> Option<String> {
    let words = own_words(words);
    let flags = client.options.iter().flat_map(|option| match option {
        ServerOption::Config(flag) | ServerOption::Configs(flag) => vec![(*flag, "")],
        ServerOption::Flag(flags, text) => flags.iter().map(|flag| (*flag, *text)).collect(),
        ServerOption::ProjectCopy(_) | ServerOption::Variable(..) => Vec::new(),
    });
    let is_used = |(flag, text): &(&str, &str)| match text.is_empty() {
        true => is_given(words, flag),
        false => values(words, flag, false).iter().any(|value| value.contains(text)),
    };
    flags.into_iter().find(is_used).map(|(flag, _)| flag.to_owned())
}

/// The arguments of the client, as far as they are options.
fn own_words(words: &[String]) -> &[String] {
    let program = detection::program_position(words).unwrap_or(0);
    let words = words.get(program + 1..).unwrap_or_default();
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    &words[..end]
}

fn is_given(words: &[String], flag: &str) -> bool {
    let with_value = format!("{flag}=");
    words.iter().any(|word| word == flag || word.starts_with(&with_value))
}

/// The values of a flag: `--flag VALUE`, `--flag=VALUE`, and `-fVALUE` for one letter.
fn values<'w>(words: &'w [String], flag: &str, is_list: bool) -> Vec<&'w str> {
    let is_letter = !flag.starts_with("--");
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let Some(rest) = word.strip_prefix(flag) else { continue };
        if let Some(value) = rest.strip_prefix('=') {
            found.push(value);
        } else if rest.is_empty() {
            let following = words[at + 1..].iter().map(String::as_str);
            match is_list {
                true => found.extend(following.take_while(|word| !word.starts_with('-'))),
                false => found.extend(following.take(1)),
            }
        } else if is_letter {
            found.push(rest);
        }
    }
    found
}

/// The folders among the words: `cursor DIR`, `codex -C DIR`, `--dir=DIR`.
fn folders(context: &DiscoveryContext<'_>, words: &[String]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for word in words {
        // `-CDIR` is a flag of one letter with its value.
        let glued = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        let glued = glued.and_then(|rest| rest.get(1..)).filter(|value| !value.is_empty());
        let given = word.split_once('=').map(|(_, value)| value);
        let values = [Some(word.as_str()), given, glued];
        for path in values.into_iter().flatten().map(|value| context.folder.join(value)) {
            let folder = path.is_dir().then(|| path.canonicalize().ok()).flatten();
            if let Some(folder) = folder.filter(|one| one != context.folder && !found.contains(one))
            {
                found.push(folder);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detection::by_id;

    fn found(client: &str, line: &str) -> CommandServers {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), "{}").unwrap();
        std::fs::create_dir(folder.path().join("dir")).unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let variable =
            |name: &str| (name == "OPENCODE_CONFIG_CONTENT").then(|| "{\"mcp\":{}}".into());
        let context = DiscoveryContext { folder: &folder, variable: &variable };
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let mut found = find(&context, by_id(client).unwrap(), &words);
        for path in found.configs.iter_mut().chain(&mut found.folders) {
            *path = path.strip_prefix(&folder).unwrap().to_owned();
        }
        found
    }

    #[test]
    fn configs_on_the_command_line_are_found() {
        for line in ["claude --mcp-config a.json -p x", "npx claude-code --mcp-config=a.json"] {
            let found = found("claude-code", line);
            assert_eq!(found.configs, [PathBuf::from("a.json")], "{line}");
            assert!(found.others.is_empty(), "{line}");
        }
        let inline = found("claude-code", "claude --mcp-config a.json {\"mcpServers\":{}} --x");
        assert_eq!(inline.configs, [PathBuf::from("a.json")]);
        assert_eq!(inline.others, ["--mcp-config"]);
        assert_eq!(found("claude-code", "claude -- --mcp-config x"), CommandServers::default());
        assert_eq!(found("continue", "cn --config a.json").configs, [PathBuf::from("a.json")]);
        assert_eq!(found("continue", "cn --config owner/name").others, ["--config"]);
    }

    #[test]
    fn servers_that_no_config_names_are_found() {
        for (client, line, expected) in [
            ("codex", "codex -c mcp_servers.a.command=x", "-c"),
            ("codex", "codex exec -cmcp_servers.a.command=x", "-c"),
            ("codex", "codex --config=mcp_servers={}", "--config"),
            ("claude-code", "claude --agents {\"a\":{\"mcpServers\":[]}}", "--agents"),
            ("claude-code", "claude --plugin-dir dir", "--plugin-dir"),
            ("goose", "goose session --with-extension x", "--with-extension"),
            ("opencode", "opencode run x", "OPENCODE_CONFIG_CONTENT"),
        ] {
            assert_eq!(found(client, line).others, [expected], "{line}");
        }
        for (client, line, expected) in [
            ("codex", "env A=1 CODEX_HOME=/x codex", "CODEX_HOME"),
            ("claude-code", "env HOME=/x claude", "HOME"),
        ] {
            assert_eq!(found(client, line).assigned, [expected], "{line}");
        }
        for (client, line) in
            [("codex", "codex -c model=x"), ("claude-code", "claude --agents {\"a\":{}} -p x")]
        {
            assert_eq!(found(client, line), CommandServers::default(), "{line}");
        }
        let copy = found("claude-code", "claude --worktree x").project_copy;
        assert_eq!(copy.as_deref(), Some("--worktree"));
    }

    #[test]
    fn folders_on_the_command_line_are_found() {
        for line in ["cursor dir", "cursor . dir dir", "cursor --folder=dir", "cursor -Cdir"] {
            assert_eq!(found("cursor", line).folders, [PathBuf::from("dir")], "{line}");
        }
        assert_eq!(found("codex", "env --chdir=dir codex").folders, [PathBuf::from("dir")]);
        assert_eq!(found("cursor", "cursor . none").folders, Vec::<PathBuf>::new());
    }
}
