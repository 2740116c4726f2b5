//! Detects that a command was started by a coding agent: by variables that agents set for their
//! shells, and by our parent processes. Agents that set none (Aider, Continue) are detected only by
//! the latter, and so only on Linux.

mod agent_variables;

use super::EnvVariable;

/// Programs that are agents or start one, by process name.
const PROGRAMS: [&str; 17] = [
    "aider",
    "amp",
    "auggie",
    "claude",
    "cline",
    "cn",
    "codex",
    "copilot",
    "crush",
    "cursor-agent",
    "droid",
    "gemini",
    "goose",
    "kimi",
    "kiro-cli",
    "opencode",
    "qwen",
];

/// How many parent processes are checked.
const DEPTH_MAX: usize = 64;

/// The evidence that an agent has started us, if any.
pub(super) fn find_agent_sign(variables: impl Iterator<Item = EnvVariable>) -> Option<String> {
    agent_variables::find_marker(variables).or_else(find_agent_ancestor)
}

/// The nearest parent process that is an agent, or runs servers or commands for one. Linux only: other systems
/// have no `/proc`.
fn find_agent_ancestor() -> Option<String> {
    let mut pid = std::process::id();
    for _ in 0..DEPTH_MAX {
        pid = parent(pid)?;
        if pid <= 1 {
            return None;
        }
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line);
        if let Some(name) = agent_of(&line.split('\0').collect::<Vec<_>>()) {
            return Some(format!("process {pid} above this one is `{name}`"));
        }
    }
    None
}

fn parent(pid: u32) -> Option<u32> {
    // Not `stat`, in which a program's name may contain spaces and parentheses.
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok()
}

/// The command of ours that works for an agent, if the words after a program's name name one.
/// Global flags may stand before it.
fn agent_command<'a>(words: &[&'a str]) -> Option<&'a str> {
    let mut words = words.iter().take_while(|word| **word != "--");
    while let Some(word) = words.next() {
        match *word {
            "--log-format" | "--log-level" => drop(words.next()),
            word if word.starts_with('-') => {}
            word => return Some(word).filter(|word| ["shim", "bash"].contains(word)),
        }
    }
    None
}

/// The agent that a command line starts, if any.
fn agent_of(argv: &[&str]) -> Option<String> {
    let base = |word: &str| word.rsplit('/').next().unwrap_or_default().to_owned();
    let stem = |word: &str| {
        let base = base(word);
        let ends = [".js", ".mjs", ".cjs", ".py"];
        let end = ends.iter().find_map(|end| base.strip_suffix(end)).map(str::to_owned);
        end.unwrap_or(base)
    };
    let program = base(argv.first()?);
    if PROGRAMS.contains(&program.as_str()) {
        return Some(program);
    }
    // A process below a shim is a server or its child, whichever agent started it.
    if program == tapegate_bash::runner::NAME {
        return Some("tapegate bash".to_owned());
    }
    if program.starts_with("tapegate") || ["thoughtgate", "cuff"].contains(&program.as_str()) {
        return agent_command(&argv[1..]).map(|command| format!("{program} {command}"));
    }
    // Agents in a script language: the script is the first word that is not an option.
    let interpreters = ["node", "bun", "deno", "python", "sh", "bash", "dash", "zsh"];
    if interpreters.iter().any(|name| program.starts_with(name)) {
        let script = argv[1..].iter().find(|word| !word.starts_with('-') && !word.is_empty())?;
        let stem = stem(script);
        return PROGRAMS.contains(&stem.as_str()).then_some(stem);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_of_agents_are_known_by_their_program_or_script() {
        for (line, agent) in [
            ("claude", Some("claude")),
            ("/home/u/.local/bin/claude --resume", Some("claude")),
            ("node /usr/lib/node_modules/.bin/gemini -p x", Some("gemini")),
            ("node --no-warnings /x/bin/codex.js", Some("codex")),
            ("python3 /usr/bin/aider", Some("aider")),
            ("/usr/bin/tapegate shim -- npx x", Some("tapegate shim")),
            ("tapegate -q --log-format json shim -- npx x", Some("tapegate shim")),
            ("tapegate --log-level debug shim -- npx x", Some("tapegate shim")),
            ("/opt/thoughtgate shim -- npx x", Some("thoughtgate shim")),
            ("/usr/bin/tapegate bash --policy p.yml", Some("tapegate bash")),
            ("cuff -q bash", Some("cuff bash")),
            ("tapegate-runner", Some("tapegate bash")),
            ("cuff record list", None),
            ("tapegate log --follow -- shim", None),
            ("tapegate approvals approve --all", None),
            ("vim claude.md", None),
            ("node server.js claude", None),
            ("/bin/sh /usr/local/bin/claude -p x", Some("claude")),
            ("bash -c true", None),
            ("", None),
        ] {
            let argv: Vec<&str> = line.split(' ').collect();
            assert_eq!(agent_of(&argv).as_deref(), agent, "{line}");
        }
    }
}
