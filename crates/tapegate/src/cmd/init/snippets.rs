//! Generates what to put into a client's config so that a server starts behind the gate.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use tapegate_core::json::write_str;

use super::clients::{ConfigScope, ConfiguredServer, EntryStyle, ServerTarget};

/// The paths that snippets refer to.
pub(super) struct SnippetPaths {
    pub(super) binary: PathBuf,
    /// Whether the plain command name resolves to this binary.
    pub(super) is_on_path: bool,
    /// The absolute path of the policy.
    pub(super) policy: PathBuf,
}

/// The change to make in one config for one server.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Snippet {
    /// Where it goes, in a few words.
    pub(super) heading: String,
    /// Commands to run, or text for the config.
    pub(super) text: String,
    /// What the user must keep or fill in by hand.
    pub(super) notes: Vec<String>,
}

/// The snippet for a server; `None` if it is disabled or already behind the gate.
pub(super) fn snippet(server: &ConfiguredServer, paths: &SnippetPaths) -> Option<Snippet> {
    if server.entry.is_disabled || server.entry.is_governed {
        return None;
    }
    let ConfiguredServer { client, scope, name, .. } = server;
    let argv = shim(server, paths);
    let secrets = secrets(server);
    // The command cannot carry the entry's other settings, and would show secrets to other users.
    let is_plain = server.entry.variables.is_empty()
        && server.entry.settings.is_empty()
        && server.entry.others.is_empty()
        && server.entry.removed.is_empty()
        && secrets.is_empty();
    // Claude Code removes an entry under any name, but refuses to add one under most of them.
    let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    let by_command = client.style == EntryStyle::ClaudeCode
        && is_plain
        && is_name
        && matches!(scope, ConfigScope::User | ConfigScope::Local | ConfigScope::Project);
    let notes = notes(server, &secrets);
    if by_command {
        let (scope, quoted) = (scope.as_str(), quote_for_shell(name));
        let line: Vec<String> = argv.iter().map(|word| quote_for_shell(word)).collect();
        let text = format!(
            "claude mcp remove --scope {scope} {quoted}\n\
             claude mcp add --scope {scope} {quoted} -- {}\n",
            line.join(" ")
        );
        return Some(Snippet { heading: "run".to_owned(), text, notes });
    }
    let text = entry(server, &argv, &secrets);
    Some(Snippet { heading: format!("in the place of `{name}`"), text, notes })
}

/// Notes on what the user must keep, fill in or remove by hand.
fn notes(server: &ConfiguredServer, secrets: &[(String, String)]) -> Vec<String> {
    let entry = &server.entry;
    let mut notes = Vec::new();
    let is_token = |header: &str| header.eq_ignore_ascii_case("Authorization");
    let mut names: Vec<&str> = secrets.iter().map(|(_, header)| header.as_str()).collect();
    if let Some(bearer) = &entry.bearer {
        names.retain(|name| !is_token(name));
        let variable = variable(server, "Authorization");
        notes.push(format!("set {variable} to `Bearer ` followed by the value of `{bearer}`"));
    }
    if !names.is_empty() {
        notes.push(format!(
            "put the header values of the old entry into the variables: {}",
            names.join(", ")
        ));
    }
    if !entry.variables.is_empty() {
        notes.push("keep the environment variables of the old entry".to_owned());
    }
    if !entry.others.is_empty() {
        notes.push(format!("keep the rest of the old entry: {}", entry.others.join(", ")));
    }
    if !entry.removed.is_empty() {
        let names = entry.removed.join(", ");
        notes.push(format!("remove the settings that only apply to a URL: {names}"));
    }
    let signs_in = |name: &String| name.to_ascii_lowercase().contains("auth") || name == "scopes";
    if entry.removed.iter().any(signs_in) && !secrets.iter().any(|(_, name)| is_token(name)) {
        notes.push(
            "the shim does not sign in; give it a token with --header-env Authorization=VARIABLE"
                .to_owned(),
        );
    }
    notes
}

/// The command line of the shim.
fn shim(server: &ConfiguredServer, paths: &SnippetPaths) -> Vec<String> {
    // A project config is shared, so it must not contain a path that exists only on this machine.
    let is_shared = server.scope == ConfigScope::Project && paths.is_on_path;
    let binary = if is_shared { "tapegate".to_owned() } else { paths.binary.display().to_string() };
    // Always: agents do not show that a server runs without a policy.
    let mut argv = vec![binary, "shim".to_owned(), "--require-policy".to_owned()];
    if let Some(policy) = policy_for(server, paths) {
        argv.extend(["--config".to_owned(), policy]);
    }
    argv.extend(["--server-id".to_owned(), server.id.clone()]);
    match &server.entry.target {
        ServerTarget::Command(command) => {
            argv.push("--".to_owned());
            argv.extend(command.iter().cloned());
        }
        ServerTarget::Url(url, headers) => {
            argv.extend(["--upstream-http".to_owned(), url.clone()]);
            for header in headers {
                let variable = variable(server, header);
                argv.extend(["--header-env".to_owned(), format!("{header}={variable}")]);
            }
        }
    }
    argv
}

/// The policy's path, if the client starts servers outside the project folder.
fn policy_for(server: &ConfiguredServer, paths: &SnippetPaths) -> Option<String> {
    if server.client.starts_in_project {
        return None;
    }
    match (server.scope, server.client.project_variable) {
        (ConfigScope::Project, Some(variable)) => {
            let name = paths.policy.file_name().unwrap_or_default().to_string_lossy();
            Some(format!("{variable}/{name}"))
        }
        _ => Some(paths.policy.display().to_string()),
    }
}

/// The variables that hold header values, with their headers. On a command line, other users of the
/// machine could read the values.
fn secrets(server: &ConfiguredServer) -> Vec<(String, String)> {
    let ServerTarget::Url(_, headers) = &server.entry.target else { return Vec::new() };
    headers.iter().map(|header| (variable(server, header), header.clone())).collect()
}

/// The name of the variable for a header of a server.
fn variable(server: &ConfiguredServer, header: &str) -> String {
    let name = format!("{}_{header}", server.id).to_ascii_uppercase();
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// A server's entry in the client's notation.
fn entry(server: &ConfiguredServer, argv: &[String], secrets: &[(String, String)]) -> String {
    let (program, args) = argv.split_first().map_or(("", argv), |(first, rest)| (&**first, rest));
    let name = json(&server.name);
    let (program, list) = (json(program), json_list(args));
    let more = settings(server, secrets);
    match server.client.style {
        EntryStyle::ClaudeCode | EntryStyle::Json => {
            format!("{name}: {{ \"command\": {program}, \"args\": {list}{more} }}\n")
        }
        EntryStyle::TypedJson => format!(
            "{name}: {{ \"type\": \"stdio\", \"command\": {program}, \"args\": {list}{more} }}\n"
        ),
        EntryStyle::CopilotJson => format!(
            "{name}: {{ \"type\": \"local\", \"command\": {program}, \"args\": {list}, \"tools\": [\"*\"]{more} }}\n"
        ),
        EntryStyle::OpencodeJson => {
            format!("{name}: {{ \"type\": \"local\", \"command\": {}{more} }}\n", json_list(argv))
        }
        // JSON strings are valid in TOML and YAML.
        EntryStyle::Toml => {
            format!("[mcp_servers.{name}]\ncommand = {program}\nargs = {list}\n{more}")
        }
        EntryStyle::ListYaml => {
            format!("- name: {name}\n  command: {program}\n  args: {list}\n{more}")
        }
        EntryStyle::GooseYaml => {
            let is_timed = server.entry.settings.iter().any(|(name, _)| name == "timeout");
            let timeout = if is_timed { "" } else { "  timeout: 300\n" };
            format!(
                "{name}:\n  enabled: true\n  type: stdio\n  name: {name}\n  cmd: {program}\n  args: {list}\n{timeout}{more}"
            )
        }
    }
}

/// The settings kept from the old entry and the variables it needs, in the client's notation.
fn settings(server: &ConfiguredServer, secrets: &[(String, String)]) -> String {
    let style = server.client.style;
    let pairs = |middle: &str| {
        let pair =
            |(variable, _): &(String, String)| format!("{}{middle}\"VALUE\"", json(variable));
        secrets.iter().map(pair).collect::<Vec<_>>().join(", ")
    };
    let (key, variables) = match style {
        EntryStyle::Toml => ("env", pairs(" = ")),
        EntryStyle::GooseYaml => ("envs", pairs(": ")),
        EntryStyle::OpencodeJson => ("environment", pairs(": ")),
        _ => ("env", pairs(": ")),
    };
    let mut all = server.entry.settings.clone();
    if !variables.is_empty() {
        all.push((key.to_owned(), format!("{{ {variables} }}")));
    }
    let one = |(name, value): &(String, String)| match style {
        EntryStyle::Toml => format!("{name} = {value}\n"),
        EntryStyle::ListYaml | EntryStyle::GooseYaml => format!("  {name}: {value}\n"),
        _ => format!(", {}: {value}", json(name)),
    };
    all.iter().map(one).collect()
}

fn json(text: &str) -> String {
    let mut out = Vec::new();
    write_str(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

fn json_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| json(text)).collect();
    format!("[{}]", texts.join(", "))
}

pub(super) fn quote_for_shell(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

/// A path for display, relative to the current folder or with the home folder as `~`.
pub(super) fn shorten_path(path: &Path, folder: &Path, home: Option<&Path>) -> String {
    let in_home = home.and_then(|home| path.strip_prefix(home).ok());
    match (in_home, path.strip_prefix(folder).ok()) {
        // Use whichever form is shorter.
        (Some(short), Some(long)) if short.as_os_str().len() > long.as_os_str().len() => {
            long.display().to_string()
        }
        (Some(inside), _) => format!("~/{}", inside.display()),
        (None, Some(inside)) => inside.display().to_string(),
        (None, None) => path.display().to_string(),
    }
}

/// Indents every line of a text.
pub(super) fn indented(text: &str, by: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{:by$}{line}", "");
    }
    out
}
