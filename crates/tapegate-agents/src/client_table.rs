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
    /// Whether it leaves out an entry that says `"disabled": true` or `"enabled": false`. Others
    /// start such a server anyway.
    pub reads_switch: bool,
    /// How it takes its servers from elsewhere.
    pub overlay: OverlayStyle,
    /// What on its command line, or in a variable, gives it servers besides those of its configs.
    pub options: &'static [ServerOption],
    /// How it writes environment variables.
    pub variable_syntax: ReferenceSyntax,
    /// What it does with servers of one name in several of its configs.
    pub merging: ServerMerging,
    /// Where it keeps switches for servers, besides those in their entries.
    pub switches: SwitchStyle,
    /// Places with servers that no session can govern.
    pub other_sources: &'static [OtherSource],
    /// Where its configs may be.
    pub files: &'static [ConfigFile],
}

/// What a client does with servers of one name in several of its configs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerMerging {
    /// The one in the earlier file of its description counts.
    InOrder,
    /// The same, but those of the machine's config count before all others.
    MachineFirst,
    /// It starts all of them, or reads only one of the files.
    Separate,
}

/// Where a client keeps switches for servers, besides those in their entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwitchStyle {
    /// Nowhere that is known.
    None,
    /// Claude Code: lists of names for each project, and in its settings for `.mcp.json`.
    ClaudeLists,
    /// Gemini CLI: `mcp.allowed` and `mcp.excluded` of its settings.
    GeminiLists,
}

/// A place with servers that no session can govern.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherSource {
    /// Where the path starts.
    pub root: PathRoot,
    /// The path from there. A `*` in a component matches anything.
    pub path: &'static str,
    /// What is there.
    pub kind: SourceKind,
    /// Why its servers are not governed.
    pub note: &'static str,
}

/// What is at a place with other servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A folder with descriptions of plugins, extensions or agents, however deep.
    Folder,
    /// A JSON file with servers below these keys.
    File(&'static [&'static str]),
}

/// How a client takes its servers from elsewhere for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverlayStyle {
    /// It does not, or that is not established.
    None,
    /// `--mcp-config FILE --strict-mcp-config`, in place of all its files.
    ClaudeArguments,
    /// `-c mcp_servers.NAME.KEY=VALUE`, over its files.
    CodexArguments,
    /// `OPENCODE_CONFIG_CONTENT`, over its files.
    OpencodeVariable,
    /// `GEMINI_CLI_SYSTEM_SETTINGS_PATH`, over its files.
    GeminiVariable,
    /// `CLINE_MCP_SETTINGS_PATH`, in place of its file, in a session that does not run in its
    /// background process.
    ClineVariable,
    /// `--config FILE`, in place of its file.
    ContinueArgument,
}

/// What gives a client servers for one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerOption {
    /// A flag with the path of a config.
    Config(&'static str),
    /// A flag with the paths of configs, up to the next flag.
    Configs(&'static str),
    /// One of these flags, if its value contains this text.
    Flag(&'static [&'static str], &'static str),
    /// One of these flags, with which the configs of the project are read from a copy.
    ProjectCopy(&'static [&'static str]),
    /// A variable, if its value contains this text.
    Variable(&'static str, &'static str),
}

/// A place where a config may be.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigFile {
    /// Where the path starts.
    pub root: PathRoot,
    /// The path from there. A `*` in its last component matches anything.
    pub path: &'static str,
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
    /// The file named by a variable, or one below the folder that it names. Without the variable,
    /// there is none.
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

/// Plugins, extensions or agents in a folder.
const fn folder(root: PathRoot, path: &'static str) -> OtherSource {
    let note = "servers of a plugin, an extension or an agent have no entry in a config";
    OtherSource { root, path, kind: SourceKind::Folder, note }
}

/// The description of a container in which VS Code works.
const fn container(path: &'static str) -> OtherSource {
    let note = "these servers are started in the project's container";
    let kind = SourceKind::File(&["customizations", "vscode", "mcp", "servers"]);
    OtherSource { root: PathRoot::Project, path, kind, note }
}

/// A config of other agents that the agent host of VS Code reads, too.
const fn agent_host(root: PathRoot, path: &'static str) -> OtherSource {
    let note = "the agent host of VS Code starts these servers from another agent's config";
    OtherSource { root, path, kind: SourceKind::File(&["mcpServers"]), note }
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
    let base = app(name, (id, commands), style, files);
    McpClient { starts_in_project: true, ..base }
}

/// A program with a GUI, for which the folder of its servers is not known.
const fn app(
    name: &'static str,
    (id, commands): ClientCommands,
    style: EntryStyle,
    files: &'static [ConfigFile],
) -> McpClient {
    McpClient {
        name,
        id,
        commands,
        style,
        starts_in_project: false,
        project_variable: None,
        reads_switch: true,
        overlay: OverlayStyle::None,
        options: &[],
        variable_syntax: ReferenceSyntax::None,
        merging: ServerMerging::InOrder,
        switches: SwitchStyle::None,
        other_sources: &[],
        files,
    }
}

/// An editor that has a variable for the project's folder.
const fn editor(
    name: &'static str,
    (id, commands): ClientCommands,
    style: EntryStyle,
    files: &'static [ConfigFile],
) -> McpClient {
    let base = app(name, (id, commands), style, files);
    McpClient { project_variable: Some("${workspaceFolder}"), ..base }
}

impl McpClient {
    /// The same client, which starts a server whatever its entry says about being disabled.
    const fn ignoring_switch(self) -> Self {
        Self { reads_switch: false, ..self }
    }

    /// The same client, with a way to take its servers from elsewhere.
    const fn with_overlay(self, overlay: OverlayStyle) -> Self {
        Self { overlay, ..self }
    }

    /// The same client, with options that give it servers.
    const fn with_options(self, options: &'static [ServerOption]) -> Self {
        Self { options, ..self }
    }

    /// The same client, with references to environment variables in its configs.
    const fn with_variables(self, variable_syntax: ReferenceSyntax) -> Self {
        Self { variable_syntax, ..self }
    }

    /// The same client, which merges its configs in this way.
    const fn merging(self, merging: ServerMerging) -> Self {
        Self { merging, ..self }
    }

    /// The same client, with switches for servers besides those in their entries.
    const fn with_switches(self, switches: SwitchStyle) -> Self {
        Self { switches, ..self }
    }

    /// The same client, with places of servers that no session can govern.
    const fn with_other_sources(self, other_sources: &'static [OtherSource]) -> Self {
        Self { other_sources, ..self }
    }
}

use PathRoot::{Config, File, Home, Project, System, Variable};

/// A client that is not on the list, whose configs the user names.
pub static CUSTOM: McpClient = app("custom", ("custom", &[]), EntryStyle::Json, &[]);

/// The keys under which such a client may have its servers.
pub const CUSTOM_KEYS: [ServerKeys; 6] = [
    SERVERS,
    ServerKeys::Path(&["servers"]),
    ServerKeys::Path(&["mcp", "servers"]),
    ServerKeys::Path(&["context_servers"]),
    ServerKeys::Path(&["mcp_servers"]),
    ServerKeys::Path(&["mcp"]),
];

/// How a client writes an environment variable in its config, which it replaces with the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceSyntax {
    /// It does not, as far as is known.
    None,
    /// `${NAME}`, or `${NAME:-default}`.
    Dollar,
    /// The same, or `$NAME`.
    DollarOrBare,
    /// `${env:NAME}`.
    DollarEnv,
    /// `{env:NAME}`.
    Brace,
}

/// Every client that is looked for, in display order. Of servers with one name, the one in the
/// earlier file counts, unless the client merges its configs in another way.
pub const CLIENTS: &[McpClient] = &[
    cli(
        "Claude Code",
        ("claude-code", &["claude", "claude-code"]),
        EntryStyle::ClaudeCode,
        &[
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", ServerKeys::ClaudeProject),
            json(Project, ".mcp.json", SERVERS),
            json(Variable("CLAUDE_CONFIG_DIR", ""), ".claude.json", SERVERS),
            json(System, "/etc/claude-code/managed-mcp.json", SERVERS),
            json(System, "/Library/Application Support/ClaudeCode/managed-mcp.json", SERVERS),
        ],
    )
    .with_overlay(OverlayStyle::ClaudeArguments)
    .with_options(&[
        ServerOption::Configs("--mcp-config"),
        ServerOption::Flag(&["--agents"], "mcpServers"),
        ServerOption::Flag(&["--plugin-dir", "--plugin-url"], ""),
        ServerOption::ProjectCopy(&["--worktree", "-w"]),
    ])
    .with_variables(ReferenceSyntax::Dollar)
    .merging(ServerMerging::MachineFirst)
    .with_switches(SwitchStyle::ClaudeLists)
    .with_other_sources(&[
        folder(Variable("CLAUDE_CONFIG_DIR", ".claude"), "plugins"),
        folder(Variable("CLAUDE_CONFIG_DIR", ".claude"), "agents"),
        folder(Project, ".claude/agents"),
    ])
    .ignoring_switch(),
    app(
        "Claude Desktop",
        ("claude-desktop", &["claude-desktop"]),
        EntryStyle::Json,
        &[
            json(Config, "Claude/claude_desktop_config.json", SERVERS),
            json(Home, "Library/Application Support/Claude/claude_desktop_config.json", SERVERS),
        ],
    )
    .with_other_sources(&[
        folder(Config, "Claude/Claude Extensions"),
        folder(Home, "Library/Application Support/Claude/Claude Extensions"),
    ])
    .ignoring_switch(),
    editor(
        "Cursor",
        ("cursor", &["cursor", "cursor-agent"]),
        EntryStyle::Json,
        &[json(Project, ".cursor/mcp.json", SERVERS), json(Home, ".cursor/mcp.json", SERVERS)],
    )
    .with_variables(ReferenceSyntax::DollarEnv)
    .with_other_sources(&[folder(Home, ".cursor/plugins")])
    .ignoring_switch(),
    editor("VS Code", ("vscode", &["code", "code-insiders"]), EntryStyle::TypedJson, VS_CODE)
        .with_variables(ReferenceSyntax::DollarEnv)
        .merging(ServerMerging::Separate)
        .with_other_sources(&[
            container(".devcontainer/devcontainer.json"),
            container(".devcontainer/*/devcontainer.json"),
            container(".devcontainer.json"),
            agent_host(Project, ".mcp.json"),
            agent_host(Home, ".copilot/mcp-config.json"),
        ])
        .ignoring_switch(),
    editor("VSCodium", ("vscodium", &["codium", "vscodium"]), EntryStyle::TypedJson, VS_CODIUM)
        .with_variables(ReferenceSyntax::DollarEnv)
        .merging(ServerMerging::Separate)
        .with_other_sources(&[
            container(".devcontainer/devcontainer.json"),
            container(".devcontainer/*/devcontainer.json"),
            container(".devcontainer.json"),
        ])
        .ignoring_switch(),
    app(
        "Windsurf",
        ("windsurf", &["windsurf"]),
        EntryStyle::Json,
        &[
            json(Home, ".codeium/windsurf/mcp_config.json", SERVERS),
            json(Home, ".codeium/mcp_config.json", SERVERS),
        ],
    )
    .with_variables(ReferenceSyntax::DollarEnv)
    // The second is that of the plugin for other editors.
    .merging(ServerMerging::Separate),
    cli(
        "Devin",
        ("devin", &["devin"]),
        EntryStyle::Json,
        &[
            json(Project, ".devin/config.local.json", SERVERS),
            json(Project, ".devin/config.json", SERVERS),
            json(Config, "devin/config.json", SERVERS),
        ],
    )
    .with_variables(ReferenceSyntax::DollarEnv),
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
    )
    .with_overlay(OverlayStyle::CodexArguments)
    .with_options(&[ServerOption::Flag(&["-c", "--config"], "mcp_servers")]),
    cli(
        "Gemini CLI",
        ("gemini", &["gemini", "gemini-cli"]),
        EntryStyle::Json,
        &[
            // In place of the machine's config, which counts first.
            json(File("GEMINI_CLI_SYSTEM_SETTINGS_PATH"), "", SERVERS),
            json(Project, ".gemini/settings.json", SERVERS),
            json(Variable("GEMINI_CLI_HOME", ""), ".gemini/settings.json", SERVERS),
            json(System, "/etc/gemini-cli/settings.json", SERVERS),
            json(System, "/Library/Application Support/GeminiCli/settings.json", SERVERS),
        ],
    )
    .with_overlay(OverlayStyle::GeminiVariable)
    .with_options(&[ServerOption::ProjectCopy(&["--worktree", "-w"])])
    .with_variables(ReferenceSyntax::DollarOrBare)
    .merging(ServerMerging::MachineFirst)
    .with_switches(SwitchStyle::GeminiLists)
    .with_other_sources(&[
        folder(Variable("GEMINI_CLI_HOME", ""), ".gemini/extensions"),
        folder(Project, ".gemini/extensions"),
    ])
    .ignoring_switch(),
    cli("opencode", ("opencode", &["opencode", "opencode-ai"]), EntryStyle::OpencodeJson, OPENCODE)
        .with_overlay(OverlayStyle::OpencodeVariable)
        .with_options(&[ServerOption::Variable("OPENCODE_CONFIG_CONTENT", "mcp")])
        .with_variables(ReferenceSyntax::Brace)
        .merging(ServerMerging::MachineFirst),
    app("Cline", ("cline", &["cline"]), EntryStyle::Json, CLINE)
        .with_overlay(OverlayStyle::ClineVariable)
        .with_options(&[ServerOption::Flag(&["--config", "--data-dir"], "")])
        .merging(ServerMerging::Separate),
    app("Roo Code", ("roo-code", &[]), EntryStyle::Json, ROO)
        .with_variables(ReferenceSyntax::DollarEnv),
    cli(
        "Continue",
        ("continue", &["cn", "continue"]),
        EntryStyle::ListYaml,
        &[
            yaml(Project, ".continue/mcpServers/*.yaml", SERVERS),
            yaml(Project, ".continue/mcpServers/*.yml", SERVERS),
            json(Project, ".continue/mcpServers/*.json", SERVERS),
            yaml(Variable("CONTINUE_GLOBAL_DIR", ".continue"), "config.yaml", SERVERS),
            yaml(Variable("CONTINUE_GLOBAL_DIR", ".continue"), "mcpServers/*.yaml", SERVERS),
            yaml(Variable("CONTINUE_GLOBAL_DIR", ".continue"), "mcpServers/*.yml", SERVERS),
            json(Variable("CONTINUE_GLOBAL_DIR", ".continue"), "mcpServers/*.json", SERVERS),
        ],
    )
    .with_overlay(OverlayStyle::ContinueArgument)
    .with_options(&[
        ServerOption::Config("--config"),
        ServerOption::Flag(&["--mcp", "--agent"], ""),
    ])
    .merging(ServerMerging::Separate),
    cli(
        "Goose",
        ("goose", &["goose"]),
        EntryStyle::GooseYaml,
        &[yaml(Config, "goose/config.yaml", ServerKeys::Path(&["extensions"]))],
    )
    .with_options(&[ServerOption::Flag(
        &["--with-extension", "--with-remote-extension", "--with-streamable-http-extension"],
        "",
    )]),
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
    )
    .merging(ServerMerging::Separate)
    .ignoring_switch(),
    cli(
        "Copilot CLI",
        ("copilot", &["copilot"]),
        EntryStyle::CopilotJson,
        &[json(Home, ".copilot/mcp-config.json", SERVERS)],
    )
    .with_options(&[ServerOption::Flag(&["--additional-mcp-config"], "")]),
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
    )
    .with_options(&[ServerOption::Flag(&["--mcp-config"], "")]),
    cli(
        "Crush",
        ("crush", &["crush"]),
        EntryStyle::TypedJson,
        &[
            json(Project, ".crush.json", ServerKeys::Path(&["mcp"])),
            json(Project, "crush.json", ServerKeys::Path(&["mcp"])),
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
    )
    .with_variables(ReferenceSyntax::DollarOrBare),
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

const VS_CODE_SERVERS: ServerKeys = ServerKeys::Path(&["servers"]);

const VS_CODE: &[ConfigFile] = &[
    json(Project, ".vscode/mcp.json", VS_CODE_SERVERS),
    json(Config, "Code/User/mcp.json", VS_CODE_SERVERS),
    json(Config, "Code/User/profiles/*/mcp.json", VS_CODE_SERVERS),
    json(Config, "Code/User/settings.json", ServerKeys::Path(&["mcp", "servers"])),
    json(Config, "Code - Insiders/User/mcp.json", VS_CODE_SERVERS),
    json(Config, "Code - Insiders/User/profiles/*/mcp.json", VS_CODE_SERVERS),
    json(Home, ".vscode-server/data/User/mcp.json", VS_CODE_SERVERS),
    json(Home, ".vscode-server-insiders/data/User/mcp.json", VS_CODE_SERVERS),
    json(Home, "Library/Application Support/Code/User/mcp.json", VS_CODE_SERVERS),
    json(Home, "Library/Application Support/Code/User/profiles/*/mcp.json", VS_CODE_SERVERS),
    json(
        Home,
        "Library/Application Support/Code/User/settings.json",
        ServerKeys::Path(&["mcp", "servers"]),
    ),
    json(Home, "Library/Application Support/Code - Insiders/User/mcp.json", VS_CODE_SERVERS),
    json(
        Home,
        "Library/Application Support/Code - Insiders/User/profiles/*/mcp.json",
        VS_CODE_SERVERS,
    ),
];

const VS_CODIUM: &[ConfigFile] = &[
    json(Project, ".vscode/mcp.json", VS_CODE_SERVERS),
    json(Config, "VSCodium/User/mcp.json", VS_CODE_SERVERS),
    json(Config, "VSCodium/User/profiles/*/mcp.json", VS_CODE_SERVERS),
    json(Home, ".vscodium-server/data/User/mcp.json", VS_CODE_SERVERS),
    json(Home, "Library/Application Support/VSCodium/User/mcp.json", VS_CODE_SERVERS),
    json(Home, "Library/Application Support/VSCodium/User/profiles/*/mcp.json", VS_CODE_SERVERS),
];

const OPENCODE: &[ConfigFile] = &[
    json(Project, ".opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Project, ".opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(Project, "opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Project, "opencode.json", ServerKeys::Path(&["mcp"])),
    json(File("OPENCODE_CONFIG"), "", ServerKeys::Path(&["mcp"])),
    json(Config, "opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Config, "opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(Config, "opencode/config.json", ServerKeys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.jsonc", ServerKeys::Path(&["mcp"])),
    json(Home, ".opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    // Read besides those of the home folder, which are found twice without the variable.
    json(
        Variable("OPENCODE_CONFIG_DIR", ".opencode"),
        "opencode.jsonc",
        ServerKeys::Path(&["mcp"]),
    ),
    json(Variable("OPENCODE_CONFIG_DIR", ".opencode"), "opencode.json", ServerKeys::Path(&["mcp"])),
    json(System, "/etc/opencode/opencode.json", ServerKeys::Path(&["mcp"])),
    json(System, "/Library/Application Support/opencode/opencode.json", ServerKeys::Path(&["mcp"])),
];

const CLINE: &[ConfigFile] = &[
    json(File("CLINE_MCP_SETTINGS_PATH"), "", SERVERS),
    // The folder above the one of `CLINE_DATA_DIR`, whose place in the home folder is the same.
    json(File("CLINE_DIR"), "data/settings/cline_mcp_settings.json", SERVERS),
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
    json(
        Home,
        "Library/Application Support/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        SERVERS,
    ),
];
