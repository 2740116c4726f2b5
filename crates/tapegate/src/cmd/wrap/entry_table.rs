//! A table of what is governed in a session, and what is not.

use std::path::{Path, PathBuf};

use tapegate_agents::discovery::ServerScan;
use tapegate_agents::governance::{self, ServerTreatment};

use crate::settings::SearchContext;
use crate::views::short_path::shorten_path;
use crate::views::{columns, visible_text};

/// The widest column of a server's name.
const NAME_COLUMNS: usize = 30;
/// The widest column of a config.
const CONFIG_COLUMNS: usize = 48;

/// One line for each server, and for each entry that cannot be used.
pub(super) fn text(scan: &ServerScan, search: &SearchContext<'_>) -> String {
    let home = search.first(&["HOME"]).map(PathBuf::from);
    let place = |path: &Path| {
        let short = shorten_path(path, &search.folder, home.as_deref());
        visible_text::path(Path::new(&short)).to_string()
    };
    let mut rows: Vec<[String; 3]> = Vec::new();
    for server in &scan.servers {
        let mut state = match governance::treatment(server) {
            // Its client can switch it on at any time, without changing the entry.
            ServerTreatment::Governed if server.is_switched_off => {
                "disabled in the client's settings; governed if it is enabled there".to_owned()
            }
            ServerTreatment::Governed => "governed".to_owned(),
            // The agent does not start it, so nothing goes around the gate.
            ServerTreatment::Ungoverned(reason) if !reason.is_bypass() => {
                reason.as_str().to_owned()
            }
            ServerTreatment::Ungoverned(reason) => format!("NOT governed: {}", reason.as_str()),
        };
        if let Some(winner) = &server.overridden_by {
            state += &format!("; overridden by {}", place(winner));
        }
        rows.push([visible_text::inline(&server.id, NAME_COLUMNS), place(&server.config), state]);
    }
    // The agent may understand an entry that we do not, and start it past the gate.
    for (path, reason) in &scan.skipped {
        let reason = visible_text::inline(reason, 200);
        rows.push(["?".to_owned(), place(path), format!("NOT governed: {reason}")]);
    }
    let widest = |at: usize, most: usize| {
        rows.iter().map(|row| columns::width(&row[at])).max().unwrap_or(0).min(most)
    };
    let (names, configs) = (widest(0, NAME_COLUMNS), widest(1, CONFIG_COLUMNS));
    let line = |[name, config, state]: &[String; 3]| {
        format!("  {}  {}  {state}", columns::pad(name, names), columns::pad(config, configs))
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}
