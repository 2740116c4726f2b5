//! Shows agents, their configs and their servers, as text and as JSON.

use std::collections::BTreeMap;
use std::path::Path;

use tapegate_agents::discovery::ConfiguredServer;
use tapegate_agents::entry::ServerTarget;
use tapegate_core::json::compact;
use tapegate_policy::redact::mask_upstream;

use super::columns::{pad, truncate_to, width};
use super::json::JsonWriter;
use super::palette::Palette;
use super::short_path::shorten_path;
use super::{plural, visible_text};
use crate::cmd::agents::survey::{
    AgentSurvey, GovernedBy, ServerStatus, SurveyedAgent, SurveyedConfig, SurveyedServer,
};

/// Longer names of servers are truncated.
const NAME_COLUMNS_MAX: usize = 24;
/// The width of the longest status.
const STATUS_COLUMNS: usize = 19;
const INDENT: &str = "    ";

/// What displayed paths are relative to.
pub(crate) struct DisplayPlaces<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) home: Option<&'a Path>,
}

/// All agents with their configs and servers, no wider than `columns`.
pub(crate) fn text(
    survey: &AgentSurvey,
    places: &DisplayPlaces<'_>,
    palette: Palette,
    columns: Option<usize>,
) -> String {
    // Half, because widths are added to it.
    let columns = columns.unwrap_or(usize::MAX / 2);
    let path = |path: &Path| {
        visible_text::path(Path::new(&shorten_path(path, places.folder, places.home)))
    };
    let mut out = String::new();
    let names = survey.agents.iter().flat_map(SurveyedAgent::servers);
    let names = names.map(|one| width(&visible_text::inline(&one.server.name, NAME_COLUMNS_MAX)));
    let name_columns = names.max().unwrap_or(0).min(NAME_COLUMNS_MAX);
    for agent in &survey.agents {
        let id = palette.faint(&format!("({})", agent.client.id));
        out += &format!("{} {id}\n", palette.bold(agent.client.name));
        for config in &agent.configs {
            out += &format!("  {}{}\n", path(&config.path), scope(config));
            for server in &config.servers {
                out += &server_lines(server, name_columns, palette, columns);
            }
            for reason in &config.skipped {
                let reason = format!("not used: {}", visible_text::inline(reason, usize::MAX));
                out += &wrapped(&reason, INDENT, columns);
            }
        }
    }
    if survey.agents.is_empty() {
        out += "no agent here has an MCP server\n";
    }
    if !survey.without_servers.is_empty() {
        let names: Vec<&str> = survey.without_servers.iter().map(|client| client.name).collect();
        out += &wrapped(&format!("Without servers: {}", names.join(", ")), "", columns);
    }
    for record in &survey.elsewhere {
        let text = format!("Installed elsewhere: {} ({})", path(&record.config), record.client);
        out += &wrapped(&text, "", columns);
    }
    out + &totals(survey, columns)
}

/// The lines of one server.
fn server_lines(
    one: &SurveyedServer,
    name_columns: usize,
    palette: Palette,
    columns: usize,
) -> String {
    let name = pad(&visible_text::inline(&one.server.name, usize::MAX), name_columns);
    let (word, reason) = status_words(&one.status);
    let word = pad(word, STATUS_COLUMNS);
    let word = match &one.status {
        ServerStatus::Governed(_) => palette.green(&word),
        ServerStatus::Bypassed => palette.red(&palette.bold(&word)),
        ServerStatus::Ungovernable(_) => palette.red(&word),
        ServerStatus::Ungoverned => palette.bold(&word),
        ServerStatus::Disabled => palette.faint(&word),
    };
    let used = INDENT.len() + name_columns + 2 + STATUS_COLUMNS + 2;
    let target = visible_text::inline(&target(&one.server), usize::MAX);
    let target = truncate_to(&target, columns.saturating_sub(used));
    let line = format!("{INDENT}{name}  {word}  {target}");
    let mut out = format!("{}\n", line.trim_end());
    if let Some(reason) = reason {
        out += &wrapped(reason, &" ".repeat(INDENT.len() + name_columns + 2), columns);
    }
    out
}

/// The status in two words, and the reason for it.
fn status_words(status: &ServerStatus) -> (&'static str, Option<&str>) {
    match status {
        ServerStatus::Governed(GovernedBy::Wrap) => ("governed, session", None),
        ServerStatus::Governed(GovernedBy::Install) => ("governed", None),
        ServerStatus::Governed(GovernedBy::Hand) => ("governed, by hand", None),
        ServerStatus::Governed(GovernedBy::Itself) => ("governed, by itself", None),
        ServerStatus::Bypassed => ("BYPASSED", None),
        ServerStatus::Ungoverned => ("not governed", None),
        ServerStatus::Disabled => ("disabled", None),
        ServerStatus::Ungovernable(reason) => ("cannot be governed", Some(reason)),
    }
}

/// Whom a config applies to, if it is the same for all of its servers.
fn scope(config: &SurveyedConfig) -> String {
    let mut scopes: Vec<&str> =
        config.servers.iter().map(|one| one.server.scope.as_str()).collect();
    // Servers come in the order of the config, so equal scopes are neighbours.
    scopes.dedup();
    match scopes.is_empty() {
        true => String::new(),
        false => format!(" ({})", scopes.join(", ")),
    }
}

/// What a server runs, behind its shim if it has one. Secrets are masked.
fn target(server: &ConfiguredServer) -> String {
    let line = |words: &[String]| {
        shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
    };
    // Commands and URLs may contain tokens, and this is often pasted into reports.
    mask_upstream(&match &server.entry.target {
        ServerTarget::Url(url, _) => url.clone(),
        ServerTarget::Command(argv) if server.entry.is_governed => {
            let after = |flag: &str| argv.iter().position(|word| word == flag);
            let url = after("--upstream-http").and_then(|at| argv.get(at + 1));
            match (after("--"), url) {
                (_, Some(url)) => url.clone(),
                (Some(at), None) => line(&argv[at + 1..]),
                (None, None) => line(argv),
            }
        }
        ServerTarget::Command(argv) => line(argv),
    })
}

/// How many servers have each status.
fn totals(survey: &AgentSurvey, columns: usize) -> String {
    let mut counts: BTreeMap<usize, (&str, usize)> = BTreeMap::new();
    let servers: Vec<&SurveyedServer> =
        survey.agents.iter().flat_map(SurveyedAgent::servers).collect();
    for one in &servers {
        let (at, word) = match one.status {
            ServerStatus::Governed(_) => (0, "governed"),
            ServerStatus::Bypassed => (1, "bypassed"),
            ServerStatus::Ungoverned => (2, "not governed"),
            ServerStatus::Ungovernable(_) => (3, "cannot be governed"),
            ServerStatus::Disabled => (4, "disabled"),
        };
        counts.entry(at).or_insert((word, 0)).1 += 1;
    }
    if servers.is_empty() {
        return String::new();
    }
    let parts: Vec<String> =
        counts.into_values().map(|(word, count)| format!("{count} {word}")).collect();
    let text = format!("{}: {}", plural(servers.len() as u64, "server"), parts.join(", "));
    format!("\n{}", wrapped(&text, "", columns))
}

/// Text in lines of this width, each indented.
fn wrapped(text: &str, indent: &str, columns: usize) -> String {
    // In a very narrow terminal, wrapping by the terminal is better than one word a line.
    let room = columns.saturating_sub(indent.len()).max(20);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines
            .last_mut()
            .filter(|line| line.is_empty() || width(line) + 1 + width(word) <= room);
        match line {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines.into_iter().map(|line| format!("{indent}{line}\n")).collect()
}

/// An object for each server, and for what else there is to know.
pub(crate) fn json(survey: &AgentSurvey) -> Vec<Vec<u8>> {
    let mut objects = Vec::new();
    for agent in &survey.agents {
        for config in &agent.configs {
            for one in &config.servers {
                objects.push(server_object(agent, config, one));
            }
            for reason in &config.skipped {
                objects.push(object(agent.client.id, "unused", |json| {
                    json.text("config", &config.path.display().to_string());
                    json.text("reason", reason);
                }));
            }
        }
    }
    let without = survey.without_servers.iter();
    objects.extend(without.map(|client| object(client.id, "no_servers", |_| {})));
    objects.extend(survey.elsewhere.iter().map(|record| {
        object(&record.client, "installed_elsewhere", |json| {
            json.text("config", &record.config.display().to_string());
        })
    }));
    objects
}

fn server_object(agent: &SurveyedAgent, config: &SurveyedConfig, one: &SurveyedServer) -> Vec<u8> {
    let (status, by) = match &one.status {
        ServerStatus::Governed(GovernedBy::Wrap) => ("governed", Some("wrap")),
        ServerStatus::Governed(GovernedBy::Install) => ("governed", Some("install")),
        ServerStatus::Governed(GovernedBy::Hand) => ("governed", Some("hand")),
        ServerStatus::Governed(GovernedBy::Itself) => ("governed", Some("itself")),
        ServerStatus::Bypassed => ("bypassed", None),
        ServerStatus::Ungoverned => ("ungoverned", None),
        ServerStatus::Disabled => ("disabled", None),
        ServerStatus::Ungovernable(_) => ("ungovernable", None),
    };
    object(agent.client.id, status, |json| {
        by.into_iter().for_each(|by| json.text("by", by));
        if let ServerStatus::Ungovernable(reason) = &one.status {
            json.text("reason", reason);
        }
        json.text("server", &one.server.name);
        json.text("id", &one.server.id);
        json.text("scope", one.server.scope.as_str());
        json.text("config", &config.path.display().to_string());
        json.text("target", &target(&one.server));
    })
}

fn object(agent: &str, status: &str, then: impl FnOnce(&mut JsonWriter)) -> Vec<u8> {
    let written = JsonWriter::object(|json| {
        json.text("agent", agent);
        json.text("status", status);
        then(json);
    });
    let mut line = compact(&written).into_owned();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
