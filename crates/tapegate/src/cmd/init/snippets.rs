//! Generates what to put into a client's config so that a server starts behind the gate.

use std::fmt::Write;
use std::path::PathBuf;

use tapegate_agents::shim_entry::header_variable;
use tapegate_core::json::quoted;

use super::clients::{ConfigScope, ConfiguredServer, EntryStyle, ServerTarget};

/// The paths that snippets refer to.
pub(super) struct SnippetPaths {
    pub(super) binary: PathBuf,
    /// Whether the plain command name resolves to this binary.
    pub(super) is_on_path: bool,
    /// The absolute path of the policy.
    pub(super) policy: PathBuf,
    /// Whether sessions of the project find the policy by themselves.
    pub(super) is_found: bool,
    /// Whether commands in this folder use this policy.
    pub(super) is_default: bool,
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
    // The shim then finds the policy by itself, in every project.
    if server.client.starts_in_project && paths.is_found {
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
    header_variable(&server.id, header)
}

/// A server's entry in the client's notation.
fn entry(server: &ConfiguredServer, argv: &[String], secrets: &[(String, String)]) -> String {
    let (program, args) = argv.split_first().map_or(("", argv), |(first, rest)| (&**first, rest));
    let name = json(&server.name);
    let (program, list) = (json(program), json_list(args));
    let more = settings(server, secrets);
    match server.client.style {
        EntryStyle::ClaudeCode | EntryStyle::Json => {
            json_entry(&name, &[("command", &program), ("args", &list)], &more)
        }
        EntryStyle::TypedJson => {
            let stdio = json("stdio");
            json_entry(&name, &[("type", &stdio), ("command", &program), ("args", &list)], &more)
        }
        EntryStyle::CopilotJson => {
            let (local, all) = (json("local"), json_list(&["*".to_owned()]));
            let members =
                [("type", &local), ("command", &program), ("args", &list), ("tools", &all)];
            json_entry(&name, &members, &more)
        }
        EntryStyle::OpencodeJson => {
            let (local, command) = (json("local"), json_list(argv));
            json_entry(&name, &[("type", &local), ("command", &command)], &more)
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
        let pair = |(variable, _): &(String, String)| {
            format!("{}{middle}{}", json(variable), json("VALUE"))
        };
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

/// An entry in the spaced form that people write, with `more` members at its end.
fn json_entry(name: &str, members: &[(&str, &String)], more: &str) -> String {
    let members = members.iter().map(|(key, value)| format!("{}: {value}", json(key)));
    format!("{name}: {{ {}{more} }}\n", members.collect::<Vec<_>>().join(", "))
}

fn json(text: &str) -> String {
    String::from_utf8(quoted(text)).unwrap_or_default()
}

fn json_list(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| json(text)).collect();
    format!("[{}]", texts.join(", "))
}

pub(super) fn quote_for_shell(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), |word| word.into_owned())
}

/// Indents every line of a text.
pub(super) fn indented(text: &str, by: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let _ = writeln!(out, "{:by$}{line}", "");
    }
    out
}
