//! Variables by which coding agents mark the shells they start.
//!
//! Only marks count. An editor with an agent also sets variables in the terminals that a person
//! uses (Cursor `CURSOR_TRACE_ID`, the VS Code extension of Claude Code `CLAUDE_CODE_SSE_PORT`),
//! and people configure agents by variables in their profiles (`CLAUDE_CODE_USE_BEDROCK`,
//! `CODEX_HOME`, `AIDER_MODEL`). These do not show who is typing.

use std::collections::BTreeMap;

use super::super::EnvVariable;

/// Variables that an agent sets for its shells, hooks or MCP servers; any value counts.
const MARKS: [(&str, &str); 38] = [
    ("AGENT", "a coding agent"),
    ("AI_AGENT", "a coding agent"),
    ("AMP_CURRENT_THREAD_ID", "Amp"),
    ("ANTIGRAVITY_AGENT", "Antigravity"),
    ("AUGMENT_AGENT", "Augment"),
    ("CLAUDECODE", "Claude Code"),
    ("CLAUDE_CODE", "Claude Code"),
    ("CLAUDE_CODE_ENTRYPOINT", "Claude Code"),
    ("CLAUDE_CODE_IS_COWORK", "Claude Code"),
    ("CLAUDE_CODE_MESSAGING_SOCKET", "Claude Code"),
    ("CLAUDE_CODE_MESSAGING_TOKEN", "Claude Code"),
    ("CLAUDE_CODE_SESSION_ID", "Claude Code"),
    ("CLAUDE_PROJECT_DIR", "Claude Code"),
    ("CLINE_ACTIVE", "Cline"),
    ("CODEX_CI", "Codex"),
    ("CODEX_INTERNAL_ORIGINATOR_OVERRIDE", "Codex"),
    ("CODEX_MANAGED_BY_BUN", "Codex"),
    ("CODEX_MANAGED_BY_NPM", "Codex"),
    ("CODEX_SANDBOX", "Codex"),
    ("CODEX_SANDBOX_NETWORK_DISABLED", "Codex"),
    ("CODEX_SHELL", "Codex"),
    ("CODEX_THREAD_ID", "Codex"),
    ("CONTINUE_PROJECT_DIR", "Continue"),
    ("CONTINUE_SESSION_ID", "Continue"),
    ("COPILOT_AGENT", "GitHub Copilot"),
    ("COPILOT_CLI", "GitHub Copilot"),
    ("CRUSH", "Crush"),
    ("CURSOR_AGENT", "Cursor"),
    ("GEMINI_CLI", "Gemini CLI"),
    ("GEMINI_SESSION_ID", "Gemini CLI"),
    ("GOOSE_TERMINAL", "Goose"),
    ("KIRO_AGENT", "Kiro"),
    ("OPENCODE", "opencode"),
    ("OPENCODE_CLIENT", "opencode"),
    ("QWEN_CODE", "Qwen Code"),
    ("REPL_AGENT", "Replit"),
    ("ROO_ACTIVE", "Roo Code"),
    ("TAPEGATE_ACTIVE", "tapegate"),
];

/// Variables that are marks with one value only; other values occur in a person's terminal.
const VALUES: [(&str, &str, &str); 2] = [
    ("CURSOR_EXTENSION_HOST_ROLE", "agent-exec", "Cursor"),
    ("REPLIT_MODE", "assistant", "Replit"),
];

/// A pager that an editor sets only for its agent, and the variable that identifies the editor's
/// terminals. Detects versions that have no mark of their own.
struct AgentPager {
    editor: (&'static str, Option<&'static str>),
    pager: (&'static str, &'static str),
    agent: &'static str,
}

const PAGERS: [AgentPager; 3] = [
    AgentPager {
        editor: ("CURSOR_TRACE_ID", None),
        pager: ("PAGER", "head -n 10000 | cat"),
        agent: "Cursor",
    },
    AgentPager {
        editor: ("TERM_PROGRAM", Some("vscode")),
        pager: ("GIT_PAGER", "cat"),
        agent: "GitHub Copilot",
    },
    AgentPager { editor: ("TERM_PROGRAM", Some("zed")), pager: ("PAGER", "cat"), agent: "Zed" },
];

/// The mark of an agent, if there is one: the variable and the agent's name.
pub(super) fn find_marker(variables: impl Iterator<Item = EnvVariable>) -> Option<String> {
    let text = |word: std::ffi::OsString| word.to_string_lossy().into_owned();
    let known: BTreeMap<String, String> =
        variables.map(|(name, value)| (text(name), text(value))).collect();
    // An empty variable counts as unset, as everywhere else.
    let value = |name: &str| known.get(name).map(String::as_str).filter(|value| !value.is_empty());
    let marked = MARKS.iter().find(|(name, _)| value(name).is_some());
    let valued = VALUES.iter().find(|(name, wanted, _)| value(name) == Some(*wanted));
    let paged = PAGERS.iter().find(|one| {
        let is_editor = value(one.editor.0)
            .is_some_and(|value| one.editor.1.is_none_or(|wanted| value == wanted));
        is_editor && value(one.pager.0) == Some(one.pager.1)
    });
    let with_value = |name: &str, value: &str, agent: &str| {
        format!("{name} is `{value}`, as {agent} sets it in its shells")
    };
    // The value of a mark is not shown: it may be a secret.
    marked
        .map(|(name, agent)| format!("{name} is set, as {agent} sets it in its shells"))
        .or_else(|| valued.map(|(name, value, agent)| with_value(name, value, agent)))
        .or_else(|| paged.map(|one| with_value(one.pager.0, one.pager.1, one.agent)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(set: &[(&str, &str)]) -> Option<String> {
        find_marker(set.iter().map(|(name, value)| ((*name).into(), (*value).into())))
    }

    #[test]
    fn marks_of_agents_shells_are_found_and_named() {
        for (name, agent) in MARKS {
            let sign = marked(&[(name, "1")]);
            let message = format!("{name} is set, as {agent} sets it in its shells");
            assert_eq!(sign, Some(message));
            assert_eq!(marked(&[(name, "")]), None, "an empty variable is not set");
        }
        assert!(MARKS.is_sorted(), "the list can be read");
    }

    #[test]
    fn terminals_in_which_people_type_are_not_an_agent_s() {
        for set in [
            &[("CURSOR_TRACE_ID", "9f2")][..],
            &[("CURSOR_TRACE_ID", "9f2"), ("PAGER", "less"), ("TERM_PROGRAM", "vscode")],
            &[("CURSOR_EXTENSION_HOST_ROLE", "extension-host")],
            &[("CLAUDE_CODE_SSE_PORT", "41823"), ("TERM_PROGRAM", "vscode")],
            &[("TERM_PROGRAM", "vscode"), ("GIT_PAGER", "delta")],
            &[("TERM_PROGRAM", "zed"), ("ZED_TERM", "true")],
            &[("GIT_PAGER", "cat"), ("PAGER", "cat")],
            &[("REPL_ID", "x")],
            &[("CODEX_HOME", "/x"), ("CODEX_API_KEY", "x"), ("CLAUDE_CONFIG_DIR", "/x")],
            &[("CLAUDE_CODE_USE_BEDROCK", "1"), ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "1")],
            &[("AIDER_MODEL", "x"), ("CLINE_DATA_DIR", "/x"), ("CONTINUE_GLOBAL_DIR", "/x")],
            &[("COPILOT_MODEL", "x"), ("GOOSE_PROVIDER", "x"), ("GEMINI_API_KEY", "x")],
            &[("HOME", "/root"), ("AGENTS", "1")],
        ] {
            assert_eq!(marked(set), None, "{set:?}");
        }
    }

    #[test]
    fn editors_mark_the_shells_of_their_agents_by_values_and_pagers() {
        for set in [
            &[("CURSOR_EXTENSION_HOST_ROLE", "agent-exec")][..],
            &[("CURSOR_TRACE_ID", "9f2"), ("PAGER", "head -n 10000 | cat")],
            &[("TERM_PROGRAM", "vscode"), ("GIT_PAGER", "cat")],
            &[("TERM_PROGRAM", "zed"), ("PAGER", "cat")],
            &[("REPLIT_MODE", "assistant")],
        ] {
            let message = marked(set).expect("a mark");
            let (name, _) = set.last().expect("a variable");
            assert!(message.starts_with(&format!("{name} is `")), "{message}");
        }
    }
}
