//! `wrap --overlay`: what the agent is started with, so that no config is touched.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use tapegate_agents::client_table::OverlayStyle;
use tapegate_agents::detection;
use tapegate_agents::discovery::{ConfiguredServer, ServerScan};
use tapegate_agents::governance::{self, ServerTreatment};
use tapegate_agents::overlay::{
    self, OverlaySession, OverlaySource, SessionOverlay, other_sources,
};
use tapegate_agents::rewrite::EntryRewrite;

use super::agent_choice::{self, AgentChoice};
use super::shim_options::ShimOptions;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;

/// What a session of this agent needs, with its file in `folder`.
pub(super) fn plan(
    (agent, command): (&AgentChoice, &[OsString]),
    scan: &ServerScan,
    shim: &ShimOptions,
    search: &SearchContext<'_>,
    folder: &Path,
) -> Result<SessionOverlay, Failure> {
    let texts = texts(scan)?;
    let sources: Vec<OverlaySource<'_>> =
        texts.iter().map(|(path, text)| source(path, text, scan, shim)).collect();
    let words: Vec<String> =
        command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let session = OverlaySession {
        folder,
        words: &words,
        is_set: &|name| search.first(&[name]).is_some(),
        other_sources: &other_sources::find(&agent_choice::context(search), agent.client),
    };
    overlay::plan(agent.client, &sources, &session).map_err(|refusal| {
        Failure::new(Exit::Invalid, &refusal).hint("without --overlay, its configs are rewritten")
    })
}

/// Checks that the agent will read a file in this folder.
pub(super) fn check_folder(agent: &AgentChoice, folder: &Path) -> Result<(), Failure> {
    if agent.client.overlay != OverlayStyle::GeminiVariable
        || other_sources::is_secure_folder(folder)
    {
        return Ok(());
    }
    let message = format!(
        "{} ignores settings in `{}`, because other users can write to one of the folders above it",
        agent.client.name,
        folder.display()
    );
    Err(Failure::new(Exit::Io, message).hint("set TAPEGATE_HOME to a folder in your home folder"))
}

/// The configs with servers, each once.
fn texts(scan: &ServerScan) -> Result<Vec<(&Path, String)>, Failure> {
    let mut texts: Vec<(&Path, String)> = Vec::new();
    for server in &scan.servers {
        if !texts.iter().any(|(known, _)| *known == server.config) {
            let text = fs::read_to_string(&server.config).map_err(|error| {
                let message = format!("cannot read `{}`: {error}", server.config.display());
                Failure::new(Exit::Io, message)
            })?;
            texts.push((&server.config, text));
        }
    }
    Ok(texts)
}

fn source<'a>(
    path: &'a Path,
    text: &'a str,
    scan: &'a ServerScan,
    shim: &ShimOptions,
) -> OverlaySource<'a> {
    let servers: Vec<&ConfiguredServer> =
        scan.servers.iter().filter(|server| server.config == path).collect();
    let rewrite = |server: &&ConfiguredServer| {
        if governance::treatment(server) != ServerTreatment::Governed {
            return None;
        }
        let (place, style) = (server.place.clone(), governance::style(server));
        Some(EntryRewrite { place, style, shim: shim.command(server).ok()? })
    };
    let rewrites = servers.iter().filter_map(rewrite).collect();
    let format =
        servers.first().map_or(tapegate_agents::tree::ConfigFormat::Json, |one| one.format);
    OverlaySource { path, text, format, servers, rewrites }
}

/// The command line of the agent with the arguments of the overlay.
pub(super) fn command_line(command: &[OsString], overlay: &SessionOverlay) -> Vec<OsString> {
    let words: Vec<String> =
        command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut command = command.to_vec();
    if let Some(program) = detection::program_position(&words) {
        let after = program + 1;
        command.splice(after..after, overlay.arguments.iter().map(OsString::from));
    }
    command
}
