//! `tapegate agents list`

use std::io::Write;
use std::path::PathBuf;

use super::survey::{self, ServerStatus};
use crate::exit::Exit;
use crate::program_name;
use crate::screen;
use crate::settings::SearchContext;
use crate::terminal_output;
use crate::views::agents as view;
use crate::views::json_list::JsonList;
use crate::views::palette::Palette;

/// List the agents of this machine, their configs and the servers in them
///
/// A server is governed if it starts behind a shim: by `wrap` for a session, by `agents install`
/// for good, or by an entry that a person has written. It is bypassed if its agent is governed
/// for good and the server was added since.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate agents list
  tapegate agents list --format jsonl | jq -r 'select(.status != \"governed\") | .server'")]
pub(crate) struct ListArgs {
    /// The output format: json is one document, jsonl one object per line
    #[arg(long, value_enum, default_value = "text")]
    format: AgentsFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum AgentsFormat {
    Text,
    Json,
    Jsonl,
}

pub(super) fn run(args: &ListArgs, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let survey = survey::take(&search)?;
    survey.warnings.iter().for_each(|warning| terminal_output::warn(warning));
    let mut list = match args.format {
        AgentsFormat::Text => {
            let palette: Palette = terminal_output::palette_of_output();
            let home = search.first(&["HOME"]).map(PathBuf::from);
            let places = view::DisplayPlaces { folder: &search.folder, home: home.as_deref() };
            let text = view::text(&survey, &places, palette, screen::columns());
            out.write_all(text.as_bytes())?;
            out.flush()?;
            // Only with text: the other formats are for programs.
            suggest_next(&survey);
            return Ok(Exit::Ok);
        }
        AgentsFormat::Json => JsonList::document(out),
        AgentsFormat::Jsonl => JsonList::lines(out),
    };
    for object in view::json(&survey) {
        list.write_all(&object)?;
    }
    list.finish()?;
    Ok(Exit::Ok)
}

/// Names the command for the next step.
fn suggest_next(survey: &survey::AgentSurvey) {
    let with = |wanted: &dyn Fn(&ServerStatus) -> bool| {
        let has = |agent: &&survey::SurveyedAgent| agent.servers().any(|one| wanted(&one.status));
        survey.agents.iter().filter(has).map(|agent| agent.client.id).collect::<Vec<_>>()
    };
    let bypassed = with(&|status| *status == ServerStatus::Bypassed);
    let open = with(&|status| *status == ServerStatus::Ungoverned);
    // First, since the user believes that these are governed.
    if !bypassed.is_empty() {
        let command = program_name::command(format!("agents install {}", bypassed.join(" ")));
        terminal_output::suggest(&format!(
            "bypassed servers run around the gate; `{command}` takes them in"
        ));
    } else if let Some(first) = open.first() {
        let command = program_name::command(format!("agents install {first}"));
        terminal_output::suggest(&format!("`{command}` keeps an agent governed"));
    } else if survey.agents.is_empty() {
        let add = "claude mcp add files -- npx -y @modelcontextprotocol/server-filesystem .";
        terminal_output::suggest(&format!(
            "add a server to an agent, such as `{add}`, or run this in the folder of a project"
        ));
    }
}
