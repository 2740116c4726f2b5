//! The known clients, as a flat list: where their configs are, and how they describe a server.
//!
//! Each client is one small description. If a client moves its file, a second line is added and the
//! first stays, because machines keep old files.

/// A program that starts MCP servers.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::cmd::init) struct Client {
    /// Its name, for display.
    pub(in crate::cmd::init) name: &'static str,
    /// How a server is added to its config.
    pub(in crate::cmd::init) style: Style,
    /// Whether it starts all servers in the project's folder, including those of the user's config.
    pub(in crate::cmd::init) starts_in_project: bool,
    /// The variable for the project's folder in a project config, if there is one.
    pub(in crate::cmd::init) project_variable: Option<&'static str>,
    pub(super) files: &'static [ConfigFile],
}

/// A place where a config may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConfigFile {
    pub(super) root: Root,
    /// The path from there. A `*` in its last component matches anything.
    pub(super) path: &'static str,
    pub(super) format: Format,
    /// The keys that lead to the servers.
    pub(super) keys: Keys,
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Root {
    /// The project's folder, and its parents in the same repository.
    Project,
    Home,
    /// `$XDG_CONFIG_HOME`, or `~/.config`.
    Config,
    /// The folder named by a variable, or one in the home folder.
    Variable(&'static str, &'static str),
    /// The file named by a variable.
    File(&'static str),
    /// The root of the file system.
    System,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON, with or without comments and trailing commas.
    Json,
    Toml,
    Yaml,
}

/// How servers are found in a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    /// Under these keys, as a map or a list of servers.
    Path(&'static [&'static str]),
    /// The servers of this project: `projects`, the project's path, `mcpServers`.
    ClaudeProject,
}

/// How a server is added to a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cmd::init) enum Style {
    /// With the client's own command, where that loses nothing.
    ClaudeCode,
    /// `"name": { "command", "args" }`
    Json,
    /// The same, with `"type": "stdio"`.
    TypedJson,
    /// The same, with `"type": "local"` and `"tools"`.
    CopilotJson,
    /// `"name": { "type": "local", "command": [ … ] }`
    OpencodeJson,
    /// `[mcp_servers.name]`
    Toml,
    /// A list, with `name`.
    ListYaml,
    /// A map, with `cmd`.
    GooseYaml,
}

const SERVERS: Keys = Keys::Path(&["mcpServers"]);

const fn json(root: Root, path: &'static str, keys: Keys) -> ConfigFile {
    ConfigFile { root, path, format: Format::Json, keys }
}

const fn toml(root: Root, path: &'static str) -> ConfigFile {
    ConfigFile { root, path, format: Format::Toml, keys: Keys::Path(&["mcp_servers"]) }
}

const fn yaml(root: Root, path: &'static str, keys: Keys) -> ConfigFile {
    ConfigFile { root, path, format: Format::Yaml, keys }
}

/// A program that runs in a terminal, and so in the project.
const fn cli(name: &'static str, style: Style, files: &'static [ConfigFile]) -> Client {
    Client { name, style, starts_in_project: true, project_variable: None, files }
}

/// A program with a GUI, for which the folder of its servers is not known.
const fn app(name: &'static str, style: Style, files: &'static [ConfigFile]) -> Client {
    Client { name, style, starts_in_project: false, project_variable: None, files }
}

/// An editor that has a variable for the project's folder.
const fn editor(name: &'static str, style: Style, files: &'static [ConfigFile]) -> Client {
    let project_variable = Some("${workspaceFolder}");
    Client { name, style, starts_in_project: false, project_variable, files }
}

use Root::{Config, File, Home, Project, System, Variable};

/// Every client that is looked for, in display order.
pub(super) const CLIENTS: &[Client] = &[
    cli(
        "Claude Code",
        Style::ClaudeCode,
        &[
            json(Project, ".mcp.json", SERVERS),
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", Keys::ClaudeProject),
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", SERVERS),
            json(System, "/etc/claude-code/managed-mcp.json", SERVERS),
            json(System, "/Library/Application Support/ClaudeCode/managed-mcp.json", SERVERS),
        ],
    ),
    app(
        "Claude Desktop",
        Style::Json,
        &[
            json(Config, "Claude/claude_desktop_config.json", SERVERS),
            json(Home, "Library/Application Support/Claude/claude_desktop_config.json", SERVERS),
        ],
    ),
    editor(
        "Cursor",
        Style::Json,
        &[json(Project, ".cursor/mcp.json", SERVERS), json(Home, ".cursor/mcp.json", SERVERS)],
    ),
    editor("VS Code", Style::TypedJson, VS_CODE),
    app(
        "Windsurf",
        Style::Json,
        &[
            json(Home, ".codeium/windsurf/mcp_config.json", SERVERS),
            json(Home, ".codeium/mcp_config.json", SERVERS),
        ],
    ),
    cli(
        "Devin",
        Style::Json,
        &[
            json(Project, ".devin/config.json", SERVERS),
            json(Project, ".devin/config.local.json", SERVERS),
            json(Config, "devin/config.json", SERVERS),
        ],
    ),
    app(
        "Zed",
        Style::Json,
        &[
            json(Project, ".zed/settings.json", Keys::Path(&["context_servers"])),
            json(Config, "zed/settings.json", Keys::Path(&["context_servers"])),
        ],
    ),
    cli(
        "Codex",
        Style::Toml,
        &[
            toml(Project, ".codex/config.toml"),
            toml(Variable("CODEX_HOME", ".codex"), "config.toml"),
            toml(Variable("CODEX_HOME", ".codex"), "*.config.toml"),
            toml(System, "/etc/codex/config.toml"),
        ],
    ),
    cli(
        "Gemini CLI",
        Style::Json,
        &[
            json(Project, ".gemini/settings.json", SERVERS),
            json(Home, ".gemini/settings.json", SERVERS),
            json(System, "/etc/gemini-cli/settings.json", SERVERS),
            json(System, "/Library/Application Support/GeminiCli/settings.json", SERVERS),
        ],
    ),
    cli("opencode", Style::OpencodeJson, OPENCODE),
    app("Cline", Style::Json, CLINE),
    app("Roo Code", Style::Json, ROO),
    cli(
        "Continue",
        Style::ListYaml,
        &[
            yaml(Project, ".continue/mcpServers/*.yaml", SERVERS),
            yaml(Project, ".continue/mcpServers/*.yml", SERVERS),
            json(Project, ".continue/mcpServers/*.json", SERVERS),
            yaml(Home, ".continue/config.yaml", SERVERS),
            yaml(Home, ".continue/mcpServers/*.yaml", SERVERS),
            json(Home, ".continue/mcpServers/*.json", SERVERS),
        ],
    ),
    cli(
        "Goose",
        Style::GooseYaml,
        &[yaml(Config, "goose/config.yaml", Keys::Path(&["extensions"]))],
    ),
    app(
        "Junie",
        Style::Json,
        &[
            json(Project, ".junie/mcp/mcp.json", SERVERS),
            json(Home, ".junie/mcp/mcp.json", SERVERS),
        ],
    ),
    cli(
        "Amazon Q",
        Style::Json,
        &[
            json(Project, ".amazonq/mcp.json", SERVERS),
            json(Project, ".amazonq/cli-agents/*.json", SERVERS),
            json(Home, ".aws/amazonq/mcp.json", SERVERS),
            json(Home, ".aws/amazonq/cli-agents/*.json", SERVERS),
        ],
    ),
    app(
        "Kiro",
        Style::Json,
        &[
            json(Project, ".kiro/settings/mcp.json", SERVERS),
            json(Home, ".kiro/settings/mcp.json", SERVERS),
            json(Home, ".kiro/agents/*.json", SERVERS),
        ],
    ),
    app(
        "LM Studio",
        Style::Json,
        &[
            json(Home, ".lmstudio/mcp.json", SERVERS),
            json(Home, ".cache/lm-studio/mcp.json", SERVERS),
        ],
    ),
    cli("Copilot CLI", Style::CopilotJson, &[json(Home, ".copilot/mcp-config.json", SERVERS)]),
    app("Antigravity", Style::Json, &[json(Home, ".gemini/antigravity/mcp_config.json", SERVERS)]),
    cli("Amp", Style::Json, &[json(Config, "amp/settings.json", Keys::Path(&["amp.mcpServers"]))]),
    cli(
        "Crush",
        Style::TypedJson,
        &[
            json(Project, "crush.json", Keys::Path(&["mcp"])),
            json(Project, ".crush.json", Keys::Path(&["mcp"])),
            json(Config, "crush/crush.json", Keys::Path(&["mcp"])),
        ],
    ),
    cli(
        "Qwen Code",
        Style::Json,
        &[
            json(Project, ".qwen/settings.json", SERVERS),
            json(Home, ".qwen/settings.json", SERVERS),
        ],
    ),
    cli("Factory", Style::TypedJson, &[json(Home, ".factory/mcp.json", SERVERS)]),
    cli("Kimi", Style::Json, &[json(Home, ".kimi/mcp.json", SERVERS)]),
    app("Qoder", Style::Json, &[json(Home, ".qoder/mcp.json", SERVERS)]),
    app(
        "Trae",
        Style::Json,
        &[
            json(Config, "Trae/User/mcp.json", SERVERS),
            json(Home, "Library/Application Support/Trae/User/mcp.json", SERVERS),
        ],
    ),
    cli("Vibe", Style::Toml, &[toml(Home, ".vibe/config.toml")]),
];

const VS_CODE: &[ConfigFile] = &[
    json(Project, ".vscode/mcp.json", Keys::Path(&["servers"])),
    json(Config, "Code/User/mcp.json", Keys::Path(&["servers"])),
    json(Config, "Code/User/profiles/*/mcp.json", Keys::Path(&["servers"])),
    json(Config, "Code/User/settings.json", Keys::Path(&["mcp", "servers"])),
    json(Config, "Code - Insiders/User/mcp.json", Keys::Path(&["servers"])),
    json(Home, ".vscode-server/data/User/mcp.json", Keys::Path(&["servers"])),
    json(Home, "Library/Application Support/Code/User/mcp.json", Keys::Path(&["servers"])),
    json(
        Home,
        "Library/Application Support/Code - Insiders/User/mcp.json",
        Keys::Path(&["servers"]),
    ),
];

const OPENCODE: &[ConfigFile] = &[
    json(Project, "opencode.jsonc", Keys::Path(&["mcp"])),
    json(Project, "opencode.json", Keys::Path(&["mcp"])),
    json(Project, ".opencode/opencode.jsonc", Keys::Path(&["mcp"])),
    json(Project, ".opencode/opencode.json", Keys::Path(&["mcp"])),
    json(File("OPENCODE_CONFIG"), "", Keys::Path(&["mcp"])),
    json(Config, "opencode/opencode.jsonc", Keys::Path(&["mcp"])),
    json(Config, "opencode/opencode.json", Keys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.jsonc", Keys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.json", Keys::Path(&["mcp"])),
    json(System, "/etc/opencode/opencode.json", Keys::Path(&["mcp"])),
    json(System, "/Library/Application Support/opencode/opencode.json", Keys::Path(&["mcp"])),
];

const CLINE: &[ConfigFile] = &[
    json(File("CLINE_MCP_SETTINGS_PATH"), "", SERVERS),
    json(Variable("CLINE_DATA_DIR", ".cline/data"), "settings/cline_mcp_settings.json", SERVERS),
    json(Home, ".cline/mcp.json", SERVERS),
    json(
        Config,
        "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        SERVERS,
    ),
    json(
        Home,
        "Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        SERVERS,
    ),
];

const ROO: &[ConfigFile] = &[
    json(Project, ".roo/mcp.json", SERVERS),
    json(
        Config,
        "Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        SERVERS,
    ),
];
