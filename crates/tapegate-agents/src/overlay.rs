//! What a session needs so that its agent takes its servers from us, and no file of the user's is
//! touched: arguments, variables and private files.
//!
//! Only for agents that document such a way. Planning is pure: it reads texts that the caller has
//! read, and writes nothing. Where a server would be lost, started without the user's consent, or
//! run around the gate, there is no overlay, and the reason is named.

mod json_text;
pub mod other_sources;

use std::path::Path;

use crate::client_table::{McpClient, OverlayStyle};
use crate::command_line;
use crate::detection;
use crate::discovery::{ConfigScope, ConfiguredServer};
use crate::edit::{quote, write_list};
use crate::entry::{ServerEntry, ServerTarget};
use crate::rewrite::{EntryRewrite, RewriteError, find, rewrite};
use crate::tree::{ConfigFormat, ConfigNode};
use json_text::json_text;

/// The longest text that is passed in a variable; the kernel takes 128 KiB.
const VARIABLE_BYTES_MAX: usize = 100_000;

/// Which process of Cline runs a session and starts its servers.
const CLINE_BACKEND: &str = "CLINE_SESSION_BACKEND_MODE";

/// A config of the agent.
#[derive(Debug)]
pub struct OverlaySource<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    pub format: ConfigFormat,
    /// The servers in it.
    pub servers: Vec<&'a ConfiguredServer>,
    /// Those that are put behind shims.
    pub rewrites: Vec<EntryRewrite>,
}

/// What a session of an agent is started with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionOverlay {
    /// Words for the command line, right after the program.
    pub arguments: Vec<String>,
    /// Variables to set.
    pub environment: Vec<(String, String)>,
    /// A file for the private folder of the session: its name and its text.
    pub file: Option<(&'static str, String)>,
}

/// What an overlay depends on, besides the configs.
pub struct OverlaySession<'a> {
    /// The folder for private files.
    pub folder: &'a Path,
    /// The command line of the agent.
    pub words: &'a [String],
    /// Whether a variable is set.
    pub is_set: &'a dyn Fn(&str) -> bool,
    /// Other places with servers, such as plugins, from [`other_sources::find`].
    pub other_sources: &'a [std::path::PathBuf],
}

/// Why a session cannot have an overlay.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OverlayRefusal {
    /// The agent reads its own files only.
    #[error("{0} has no way to take its servers from elsewhere")]
    Unsupported(&'static str),
    /// The agent starts servers of a project only with the user's consent.
    #[error(
        "`{server}` is a server of the project, which {client} starts only once you have \
         approved it; an overlay would skip that"
    )]
    Consent {
        server: String,
        /// The agent.
        client: &'static str,
    },
    /// The entry cannot be expressed.
    #[error("`{server}` cannot be in an overlay of {client}: {reason}")]
    Entry {
        server: String,
        /// The agent.
        client: &'static str,
        /// Why not.
        reason: &'static str,
    },
    /// The variable is in use.
    #[error("the variable `{0}` is set, which the overlay would replace")]
    Variable(&'static str),
    /// The user has given the argument.
    #[error("the agent's command line has `{0}`, which the overlay would replace")]
    Argument(String),
    /// The arguments have no place.
    #[error("the command does not name a program of {0} to which arguments could be added")]
    Program(&'static str),
    /// The agent would read its own configs.
    #[error("the agent's command `{0}` takes servers only from its configs")]
    Command(String),
    /// Servers of other places would be lost, or would run around the gate.
    #[error("`{0}` may define servers that an overlay cannot include")]
    OtherSource(String),
    /// The text does not fit.
    #[error("the entries are too long for a variable")]
    TooLong,
    /// A config cannot be rewritten.
    #[error("`{path}`: {source}")]
    Rewrite {
        /// The config.
        path: String,
        source: RewriteError,
    },
}

/// A server as the overlay has it.
struct OverlayEntry<'a> {
    server: &'a ConfiguredServer,
    /// Its entry, behind a shim unless it is left alone.
    node: ConfigNode,
    is_rewritten: bool,
}

/// What a session of this agent needs. Sources come in the order of [`crate::discovery`]: where two
/// have a server of the same name, the first counts.
pub fn plan(
    client: &'static McpClient,
    sources: &[OverlaySource<'_>],
    session: &OverlaySession<'_>,
) -> Result<SessionOverlay, OverlayRefusal> {
    if client.overlay == OverlayStyle::None {
        return Err(OverlayRefusal::Unsupported(client.name));
    }
    if let Some(path) = session.other_sources.first() {
        return Err(OverlayRefusal::OtherSource(path.display().to_string()));
    }
    check_command(client, session)?;
    // A server in a file that the agent does not read now must not be started by us.
    let sources: Vec<&OverlaySource<'_>> =
        sources.iter().filter(|source| is_read(client, source, session)).collect();
    let mut entries: Vec<OverlayEntry<'_>> = Vec::new();
    for source in &sources {
        for entry in entries_of(source)? {
            // The first counts, as it does for the agents.
            if !entries.iter().any(|known| known.server.name == entry.server.name) {
                entries.push(entry);
            }
        }
    }
    check_consent(client, &entries)?;
    match client.overlay {
        OverlayStyle::None => Err(OverlayRefusal::Unsupported(client.name)),
        OverlayStyle::ClaudeArguments => Ok(claude(&entries, session.folder)),
        OverlayStyle::CodexArguments => codex(client, &entries),
        OverlayStyle::OpencodeVariable => opencode(&entries),
        OverlayStyle::GeminiVariable => Ok(gemini(&entries, session.folder)),
        OverlayStyle::ClineVariable | OverlayStyle::ContinueArgument => {
            whole_config(client, &sources, session.folder)
        }
    }
}

/// Whether the agent reads a config in this session.
fn is_read(client: &McpClient, source: &OverlaySource<'_>, session: &OverlaySession<'_>) -> bool {
    let name = source.path.file_name().unwrap_or_default().to_string_lossy();
    match client.overlay {
        // A profile is read if it is chosen.
        OverlayStyle::CodexArguments => name.strip_suffix(".config.toml").is_none_or(|profile| {
            let is_chosen = |word: &String| {
                let given =
                    ["--profile=", "-p=", "-p"].iter().find_map(|flag| word.strip_prefix(flag));
                given.unwrap_or(word) == profile || word == profile
            };
            session.words.iter().any(is_chosen)
        }),
        // The terminal program reads one file, the extension of an editor another one.
        OverlayStyle::ClineVariable => !source.path.to_string_lossy().contains("globalStorage"),
        OverlayStyle::ContinueArgument => name == "config.yaml",
        _ => true,
    }
}

/// Subcommands of Claude Code that ignore `--mcp-config`, and read or start the servers of its
/// configs, or work with sessions in the background.
const CLAUDE_COMMANDS: [&str; 6] = ["mcp", "doctor", "agents", "attach", "respawn", "import"];

/// Refuses what the user has set already, and commands that do not take the overlay.
fn check_command(client: &McpClient, session: &OverlaySession<'_>) -> Result<(), OverlayRefusal> {
    let variable = match client.overlay {
        OverlayStyle::OpencodeVariable => Some("OPENCODE_CONFIG_CONTENT"),
        OverlayStyle::GeminiVariable => Some("GEMINI_CLI_SYSTEM_SETTINGS_PATH"),
        OverlayStyle::ClineVariable => Some(CLINE_BACKEND),
        _ => None,
    };
    if let Some(variable) = variable.filter(|variable| (session.is_set)(variable)) {
        return Err(OverlayRefusal::Variable(variable));
    }
    if let Some(argument) = command_line::first_option(client, session.words) {
        return Err(OverlayRefusal::Argument(argument));
    }
    let takes_arguments = matches!(
        client.overlay,
        OverlayStyle::ClaudeArguments
            | OverlayStyle::CodexArguments
            | OverlayStyle::ContinueArgument
    );
    if takes_arguments && detection::program_position(session.words).is_none() {
        return Err(OverlayRefusal::Program(client.name));
    }
    let is_command = |word: &&String| CLAUDE_COMMANDS.contains(&word.as_str());
    if client.overlay == OverlayStyle::ClaudeArguments
        && let Some(word) = session.words.iter().find(is_command)
    {
        return Err(OverlayRefusal::Command(word.clone()));
    }
    Ok(())
}

/// The entries of a config, behind their shims.
fn entries_of<'a>(source: &OverlaySource<'a>) -> Result<Vec<OverlayEntry<'a>>, OverlayRefusal> {
    let failed = |reason| OverlayRefusal::Rewrite {
        path: source.path.display().to_string(),
        source: reason,
    };
    let edited = rewrite(source.text, source.format, &source.rewrites).map_err(failed)?;
    let tree = ConfigNode::read(&edited, source.format)
        .map_err(|reason| failed(RewriteError::Invalid(reason)))?;
    let entry = |server: &&'a ConfiguredServer| {
        let node = find(&tree, &server.place)?.clone();
        let is_rewritten = source.rewrites.iter().any(|one| one.place == server.place);
        Some(OverlayEntry { server, node, is_rewritten })
    };
    Ok(source.servers.iter().filter_map(entry).collect())
}

/// Refuses servers that the agent would not start without asking.
fn check_consent(
    client: &'static McpClient,
    entries: &[OverlayEntry<'_>],
) -> Result<(), OverlayRefusal> {
    let asks = matches!(
        client.overlay,
        OverlayStyle::ClaudeArguments | OverlayStyle::CodexArguments | OverlayStyle::GeminiVariable
    );
    let is_asked_for = |entry: &&OverlayEntry<'_>| {
        asks && entry.server.scope == ConfigScope::Project && !entry.server.entry.is_disabled
    };
    match entries.iter().find(is_asked_for) {
        Some(entry) => {
            Err(OverlayRefusal::Consent { server: entry.server.name.clone(), client: client.name })
        }
        None => Ok(()),
    }
}

/// `{"mcpServers": {…}}`, or the same under another key.
fn servers_text<'e>(key: &str, entries: impl Iterator<Item = &'e OverlayEntry<'e>>) -> String {
    let one = |entry: &OverlayEntry<'_>| {
        format!("{}: {}", quote(&entry.server.name), json_text(&entry.node))
    };
    let entries: Vec<String> = entries.map(one).collect();
    format!("{{{}: {{{}}}}}", quote(key), entries.join(", "))
}

/// A file in place of all of Claude Code's own: with every server, also those left alone.
fn claude(entries: &[OverlayEntry<'_>], folder: &Path) -> SessionOverlay {
    let path = folder.join("mcp.json").display().to_string();
    // `--mcp-config` takes all words up to the next flag.
    let arguments = ["--mcp-config", &path, "--strict-mcp-config"].map(str::to_owned).to_vec();
    let file = Some(("mcp.json", servers_text("mcpServers", entries.iter())));
    SessionOverlay { arguments, file, ..SessionOverlay::default() }
}

/// The command and the arguments of each entry; the rest stays with the user's config.
fn codex(
    client: &'static McpClient,
    entries: &[OverlayEntry<'_>],
) -> Result<SessionOverlay, OverlayRefusal> {
    let mut arguments = Vec::new();
    for entry in entries.iter().filter(|entry| entry.is_rewritten) {
        let name = &entry.server.name;
        let refuse = |reason| {
            let server = name.clone();
            Err(OverlayRefusal::Entry { server, client: client.name, reason })
        };
        if matches!(entry.server.entry.target, ServerTarget::Url(..)) {
            return refuse("its URL cannot be replaced by a command");
        }
        // The key of `-c` is split at its dots.
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !name.chars().all(is_plain) {
            return refuse("its name cannot be written on a command line");
        }
        let Ok(ServerTarget::Command(argv)) =
            ServerEntry::read(&entry.node).map(|entry| entry.target)
        else {
            return refuse("its entry is written in an unusual way");
        };
        let Some((program, args)) = argv.split_first() else { continue };
        for (key, value) in [("command", quote(program)), ("args", write_list(args))] {
            arguments.extend(["-c".to_owned(), format!("mcp_servers.{name}.{key}={value}")]);
        }
    }
    Ok(SessionOverlay { arguments, ..SessionOverlay::default() })
}

/// The entries in a variable, which opencode merges over its files.
fn opencode(entries: &[OverlayEntry<'_>]) -> Result<SessionOverlay, OverlayRefusal> {
    let text = servers_text("mcp", entries.iter().filter(|entry| entry.is_rewritten));
    if text.len() > VARIABLE_BYTES_MAX {
        return Err(OverlayRefusal::TooLong);
    }
    let environment = vec![("OPENCODE_CONFIG_CONTENT".to_owned(), text)];
    Ok(SessionOverlay { environment, ..SessionOverlay::default() })
}

/// The settings of the system, which win over those of the user.
fn gemini(entries: &[OverlayEntry<'_>], folder: &Path) -> SessionOverlay {
    let path = folder.join("settings.json").display().to_string();
    let rewritten = entries.iter().filter(|entry| entry.is_rewritten);
    SessionOverlay {
        environment: vec![("GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(), path)],
        file: Some(("settings.json", servers_text("mcpServers", rewritten))),
        ..SessionOverlay::default()
    }
}

/// The whole config with its entries behind shims, which the agent reads in place of its own.
fn whole_config(
    client: &'static McpClient,
    sources: &[&OverlaySource<'_>],
    folder: &Path,
) -> Result<SessionOverlay, OverlayRefusal> {
    let [source, others @ ..] = sources else { return Ok(SessionOverlay::default()) };
    // It reads one file, and which of several is not documented.
    if let Some(other) = others.iter().find(|other| !other.servers.is_empty()) {
        return Err(OverlayRefusal::OtherSource(other.path.display().to_string()));
    }
    let text = rewrite(source.text, source.format, &source.rewrites).map_err(|reason| {
        OverlayRefusal::Rewrite { path: source.path.display().to_string(), source: reason }
    })?;
    let is_yaml = client.overlay == OverlayStyle::ContinueArgument;
    let name = if is_yaml { "config.yaml" } else { "cline_mcp_settings.json" };
    let path = folder.join(name).display().to_string();
    let mut overlay = SessionOverlay { file: Some((name, text)), ..SessionOverlay::default() };
    match is_yaml {
        true => overlay.arguments.extend(["--config".to_owned(), path]),
        // Its background process, which may run already, has variables of its own.
        false => overlay.environment.extend([
            ("CLINE_MCP_SETTINGS_PATH".to_owned(), path),
            (CLINE_BACKEND.to_owned(), "local".to_owned()),
        ]),
    }
    Ok(overlay)
}

#[cfg(test)]
mod tests;
