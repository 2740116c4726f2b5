//! Lists the built-in scenarios.

use std::io::Write;

use tapegate_scenario::model::Scenario;

use super::args::ServeFormat;
use super::library;
use super::plan::ScenarioOrigin;
use crate::exit::Exit;
use crate::screen;
use crate::views::columns::{truncate_to, width};
use crate::views::json::{JsonWriter, quoted};
use crate::views::json_list::JsonList;

/// Prints the built-in scenarios.
pub(super) fn print(format: ServeFormat, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let out = &mut match format {
        ServeFormat::Json => JsonList::document(out),
        ServeFormat::Text | ServeFormat::Jsonl => JsonList::lines(out),
    };
    for name in library::names() {
        let Some(scenario) = ScenarioOrigin::Library(name.to_owned()).read(None).scenario else {
            continue;
        };
        match format {
            ServeFormat::Text => {
                let about = &scenario.about;
                let severity = about.severity.as_deref().unwrap_or("-");
                let title = about.name.as_deref().unwrap_or_default();
                let line = format!("{name:26} {severity:9} {title}");
                let tagged = format!("{line} ({})", about.tags.join(", "));
                let columns = screen::columns().unwrap_or(usize::MAX);
                // The tags are in the JSON, too; a line that wraps is harder to read.
                let line = if width(&tagged) > columns { &line } else { &tagged };
                writeln!(out, "{}", truncate_to(line, columns))?;
            }
            ServeFormat::Json | ServeFormat::Jsonl => {
                out.write_all(&tapegate_core::json::compact(&object(name, &scenario)))?;
                out.write_all(b"\n")?;
            }
        }
    }
    out.finish()?;
    Ok(Exit::Ok)
}

fn object(name: &str, scenario: &Scenario) -> Vec<u8> {
    let about = &scenario.about;
    JsonWriter::object(|json| {
        json.text("name", name);
        let texts = [
            ("title", &about.name),
            ("description", &about.description),
            ("safe", &about.safe),
            ("severity", &about.severity),
        ];
        for (key, text) in texts {
            text.iter().for_each(|text| json.text(key, text));
        }
        let tags: Vec<Vec<u8>> = about.tags.iter().map(|tag| quoted(tag)).collect();
        json.raw("tags", &[b"[".to_vec(), tags.join(&b','), b"]".to_vec()].concat());
        json.list("expect", &scenario.expect, |json, expectation| {
            json.text("id", &expectation.id);
            json.text("title", &expectation.title);
            json.text("severity", expectation.severity.as_str());
        });
    })
}
