//! The known clients, as a flat list: where their configs are, and how they describe a server.
//!
//! Each client is one small description. If a client moves its file, a second line is added and the
//! first stays, because machines keep old files.

use crate::tree::ConfigFormat;

/// A program that starts MCP servers.
#[derive(Debug, PartialEq, Eq)]
pub struct McpClient {
    /// Its name, for display.
    pub name: &'static str,
    /// Its name on command lines.
    pub id: &'static str,
    /// The programs and packages that start it.
    pub commands: &'static [&'static str],
    /// How a server is added to its config.
    pub style: EntryStyle,
    /// Whether it starts all servers in the project's folder, including those of the user's config.
    pub starts_in_project: bool,
    /// The variable for the project's folder in a project config, if there is one.
    pub project_variable: Option<&'static str>,
    /// Where its configs may be.
    pub files: &'static [ConfigFile],
}

/// A place where a config may be.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where the path starts.
    pub root: PathRoot,
    /// The path from there. A `*` in its last component matches anything.
    pub path: &'static str,
    /// The format.
    pub format: ConfigFormat,
    /// The keys that lead to the servers.
    pub keys: ServerKeys,
}

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRoot {
    /// The project's folder, and its parents in the same repository.
    Project,
    /// The home folder.
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

/// How servers are found in a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKeys {
    /// Under these keys, as a map or a list of servers.
    Path(&'static [&'static str]),
    /// The servers of this project: `projects`, the project's path, `mcpServers`.
    ClaudeProject,
}

/// How a server is added to a config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryStyle {
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

const SERVERS: ServerKeys = ServerKeys::Path(&["mcpServers"]);

const fn json(root: PathRoot, path: &'static str, keys: ServerKeys) -> ConfigFile {
    ConfigFile { root, path, format: ConfigFormat::Json, keys }
}

const fn toml(root: PathRoot, path: &'static str) -> ConfigFile {
    ConfigFile { root, path, format: ConfigFormat::Toml, keys: ServerKeys::Path(&["mcp_servers"]) }
}

const fn yaml(root: PathRoot, path: &'static str, keys: ServerKeys) -> ConfigFile {
    ConfigFile { root, path, format: ConfigFormat::Yaml, keys }
}

/// The id of a client and the programs that start it.
type ClientCommands = (&'static str, &'static [&'static str]);

/// A program that runs in a terminal, and so in the project.
const fn cli(
    name: &'static str,
    (id, commands): ClientCommands,
    style: EntryStyle,
    files: &'static [ConfigFile],
) -> McpClient {
    McpClient { name, id, commands, style, starts_in_project: true, project_variable: None, files }
}

/// A program with a GUI, for which the folder of its servers is not known.
const fn app(
    name: &'static str,
    (id, commands): ClientCommands,
    style: EntryStyle,
    files: &'static [ConfigFile],
) -> McpClient {
    McpClient { name, id, commands, style, starts_in_project: false, project_variable: None, files }
}

/// An editor that has a variable for the project's folder.
const fn editor(
    name: &'static str,
    (id, commands): ClientCommands,
    style: EntryStyle,
    files: &'static [ConfigFile],
) -> McpClient {
    let project_variable = Some("${workspaceFolder}");
    McpClient { name, id, commands, style, starts_in_project: false, project_variable, files }
}

use PathRoot::{Config, File, Home, Project, System, Variable};

/// Every client that is looked for, in display order.
pub const CLIENTS: &[McpClient] = &[
    cli(
        "Claude Code",
        ("claude-code", &["claude", "claude-code"]),
        EntryStyle::ClaudeCode,
        &[
            json(Project, ".mcp.json", SERVERS),
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", ServerKeys::ClaudeProject),
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", SERVERS),
            json(System, "/etc/claude-code/managed-mcp.json", SERVERS),
            json(System, "/Library/Application Support/ClaudeCode/managed-mcp.json", SERVERS),
        ],
    ),
    app(
        "Claude Desktop",
        ("claude-desktop", &["claude-desktop"]),
        EntryStyle::Json,
        &[
            json(Config, "Claude/claude_desktop_config.json", SERVERS),
            json(Home, "Library/Application Support/Claude/claude_desktop_config.json", SERVERS),
        ],
    ),
    editor(
        "Cursor",
        ("cursor", &["cursor", "cursor-agent"]),
        EntryStyle::Json,
        &[json(Project, ".cursor/mcp.json", SERVERS), json(Home, ".cursor/mcp.json", SERVERS)],
    ),
    editor(
        "VS Code",
        ("vscode", &["code", "code-insiders", "codium"]),
        EntryStyle::TypedJson,
        VS_CODE,
    ),
    app(
        "Windsurf",
        ("windsurf", &["windsurf"]),
        EntryStyle::Json,
        &[
            json(Home, ".codeium/windsurf/mcp_config.json", SERVERS),
            json(Home, ".codeium/mcp_config.json", SERVERS),
        ],
    ),
    cli(
        "Devin",
        ("devin", &["devin"]),
        EntryStyle::Json,
        &[
            json(Project, ".devin/config.json", SERVERS),
            json(Project, ".devin/config.local.json", SERVERS),
            json(Config, "devin/config.json", SERVERS),
        ],
    ),
    app(
        "Zed",
        ("zed", &["zed", "zeditor", "zedit"]),
        EntryStyle::Json,
        &[
            json(Project, ".zed/settings.json", ServerKeys::Path(&["context_servers"])),
            json(Config, "zed/settings.json", ServerKeys::Path(&["context_servers"])),
        ],
    ),
    cli(
        "Codex",
        ("codex", &["codex"]),
        EntryStyle::Toml,
        &[
            toml(Project, ".codex/config.toml"),
            toml(Variable("CODEX_HOME", ".codex"), "config.toml"),
            toml(Variable("CODEX_HOME", ".codex"), "*.config.toml"),
            toml(System, "/etc/codex/config.toml"),
        ],
    ),
    cli(
        "Gemini CLI",
        ("gemini", &["gemini", "gemini-cli"]),
        EntryStyle::Json,
        &[
            json(Project, ".gemini/settings.json", SERVERS),
            json(Home, ".gemini/settings.json", SERVERS),
            json(System, "/etc/gemini-cli/settings.json", SERVERS),
            json(System, "/Library/Application Support/GeminiCli/settings.json", SERVERS),
        ],
    ),
    cli("opencode", ("opencode", &["opencode", "opencode-ai"]), EntryStyle::OpencodeJson, OPENCODE),
    app("Cline", ("cline", &["cline"]), EntryStyle::Json, CLINE),
    app("Roo Code", ("roo-code", &[]), EntryStyle::Json, ROO),
    cli(
        "Continue",
        ("continue", &["cn", "continue"]),
        EntryStyle::ListYaml,
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
        ("goose", &["goose"]),
        EntryStyle::GooseYaml,
        &[yaml(Config, "goose/config.yaml", ServerKeys::Path(&["extensions"]))],
    ),
    app(
        "Junie",
        ("junie", &["junie"]),
        EntryStyle::Json,
        &[
            json(Project, ".junie/mcp/mcp.json", SERVERS),
            json(Home, ".junie/mcp/mcp.json", SERVERS),
        ],
    ),
    cli(
        "Amazon Q",
        ("amazon-q", &["q", "qchat"]),
        EntryStyle::Json,
        &[
            json(Project, ".amazonq/mcp.json", SERVERS),
            json(Project, ".amazonq/cli-agents/*.json", SERVERS),
            json(Home, ".aws/amazonq/mcp.json", SERVERS),
            json(Home, ".aws/amazonq/cli-agents/*.json", SERVERS),
        ],
    ),
    app(
        "Kiro",
        ("kiro", &["kiro", "kiro-cli"]),
        EntryStyle::Json,
        &[
            json(Project, ".kiro/settings/mcp.json", SERVERS),
            json(Home, ".kiro/settings/mcp.json", SERVERS),
            json(Home, ".kiro/agents/*.json", SERVERS),
        ],
    ),
    app(
        "LM Studio",
        ("lm-studio", &["lm-studio", "lmstudio"]),
        EntryStyle::Json,
        &[
            json(Home, ".lmstudio/mcp.json", SERVERS),
            json(Home, ".cache/lm-studio/mcp.json", SERVERS),
        ],
    ),
    cli(
        "Copilot CLI",
        ("copilot", &["copilot"]),
        EntryStyle::CopilotJson,
        &[json(Home, ".copilot/mcp-config.json", SERVERS)],
    ),
    app(
        "Antigravity",
        ("antigravity", &["antigravity"]),
        EntryStyle::Json,
        &[json(Home, ".gemini/antigravity/mcp_config.json", SERVERS)],
    ),
    cli(
        "Amp",
        ("amp", &["amp"]),
        EntryStyle::Json,
        &[json(Config, "amp/settings.json", ServerKeys::Path(&["amp.mcpServers"]))],
    ),
    cli(
        "Crush",
        ("crush", &["crush"]),
        EntryStyle::TypedJson,
        &[
            json(Project, "crush.json", ServerKeys::Path(&["mcp"])),
            json(Project, ".crush.json", ServerKeys::Path(&["mcp"])),
            json(Config, "crush/crush.json", ServerKeys::Path(&["mcp"])),
        ],
    ),
    cli(
        "Qwen Code",
        ("qwen", &["qwen", "qwen-code"]),
        EntryStyle::Json,
        &[
            json(Project, ".qwen/settings.json", SERVERS),
            json(Home, ".qwen/settings.json", SERVERS),
        ],
    ),
    cli(
        "Factory",
        ("factory", &["droid"]),
        EntryStyle::TypedJson,
        &[json(Home, ".factory/mcp.json", SERVERS)],
    ),
    cli("Kimi", ("kimi", &["kimi"]), EntryStyle::Json, &[json(Home, ".kimi/mcp.json", SERVERS)]),
    app(
        "Qoder",
        ("qoder", &["qoder", "qodercli"]),
        EntryStyle::Json,
        &[json(Home, ".qoder/mcp.json", SERVERS)],
    ),
    app(
        "Trae",
        ("trae", &["trae"]),
        EntryStyle::Json,
        &[
            json(Config, "Trae/User/mcp.json", SERVERS),
            json(Home, "Library/Application Support/Trae/User/mcp.json", SERVERS),
        ],
    ),
    cli("Vibe", ("vibe", &["vibe"]), EntryStyle::Toml, &[toml(Home, ".vibe/config.toml")]),
];

const VS_CODE: &[ConfigFile] = &[
    json(Project, ".vscode/mcp.json", ServerKeys::Path(&["servers"])),
    json(Config, "Code/User/mcp.json", ServerKeys::Path(&["servers"])),
    json(Config, "Code/User/profiles/*/mcp.json", ServerKeys::Path(&["servers"])),
    json(Config, "Code/User/settings.json", ServerKeys::Path(&["mcp", "servers"])),
    json(Config, "Code - Insiders/User/mcp.json", ServerKeys::Path(&["servers"])),
    json(Home, ".vscode-server/data/User/mcp.json", ServerKeys::Path(&["servers"])),
    json(Home, "Library/Application Support/Code/User/mcp.json", ServerKeys::Path(&["servers"])),
    json(
        Home,
        "Library/Application Support/Code - Insiders/User/mcp.json",
        ServerKeys::Path(&["servers"]),
    ),
];

const OPENCODE: &[ConfigFile] = &[
    json(Project, "opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Project, "opencode.json", ServerKeys::Path(&["mcp"])),
    json(Project, ".opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Project, ".opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(File("OPENCODE_CONFIG"), "", ServerKeys::Path(&["mcp"])),
    json(Config, "opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Config, "opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(System, "/etc/opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(System, "/Library/Application Support/opencode/opencode.json", ServerKeys::Path(&["mcp"])),
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
