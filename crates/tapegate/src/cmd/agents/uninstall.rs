//! `tapegate agents uninstall`

use std::io::Write;

use tapegate_agents::client_table::{CLIENTS, CUSTOM, McpClient};
use tapegate_agents::discovery::PlaceStep;
use tapegate_agents::installation::{entry_name, place_texts, read_place};
use tapegate_agents::rewrite::EntryRewrite;
use tapegate_agents::server_id::server_id;
use tapegate_store::installed_configs::{InstalledConfig, InstalledConfigs};

use super::edit::{EditedConfig, command_for, display_path, io_failure};
use super::selection::SelectionArgs;
use crate::cmd::wrap::config_locks::resolved;
use crate::cmd::wrap::stored_entries::EntryFolder;
use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::SearchContext;
use crate::terminal_output;

/// Put the configs of agents back as they were before `agents install`
///
/// A config without other changes is byte for byte as it was. Otherwise only the entries
/// that were installed are put back: servers that were added since, and all other changes, stay.
/// Configs of other projects are put back too.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = "\
Examples:
  tapegate agents uninstall cursor
  tapegate agents uninstall --all --dry-run
  tapegate agents uninstall codex --server files")]
pub(super) struct Args {
    #[command(flatten)]
    selection: SelectionArgs,
}

pub(super) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let search = SearchContext::current()?;
    let clients = args.selection.clients()?;
    let named: Vec<_> = args.selection.named_configs(&search)?;
    let named: Vec<_> = named.iter().map(|path| resolved(path)).collect();
    let records = InstalledConfigs::new(&search.user_state_dir()?);
    let entries = EntryFolder::new(&search)?;
    let is_meant = |record: &InstalledConfig| {
        let is_of_client = clients.iter().any(|client| client.id == record.client)
            || args.selection.is_all() && record.client == CUSTOM.id;
        is_of_client && (named.is_empty() || named.contains(&record.config))
    };
    let meant: Vec<InstalledConfig> =
        records.list().map_err(io_failure)?.into_iter().filter(is_meant).collect();
    let (mut exit, mut count) = (Exit::Ok, 0);
    for record in &meant {
        // Records outlive versions.
        let Some(client) = CLIENTS.iter().chain([&CUSTOM]).find(|one| one.id == record.client)
        else {
            let message = format!("this version does not know the agent `{}`", record.client);
            terminal_output::error(&message, Some("use the version that installed it"));
            exit = Exit::Invalid;
            continue;
        };
        match uninstall(args, (&search, &records, &entries), record, client, out) {
            Ok(done) => count += usize::from(done),
            Err(failure) => {
                terminal_output::error(&failure.message, failure.hint.as_deref());
                exit = failure.exit;
            }
        }
    }
    out.flush()?;
    if exit == Exit::Ok && count == 0 {
        return Err(nothing_to_uninstall(args, &meant).into());
    }
    Ok(exit)
}

/// Puts one config back; false if none of its entries is meant.
fn uninstall(
    args: &Args,
    (search, records, entries): (&SearchContext<'_>, &InstalledConfigs, &EntryFolder),
    record: &InstalledConfig,
    client: &'static McpClient,
    out: &mut dyn Write,
) -> Result<bool, Failure> {
    let place_of = |place: &Vec<String>| read_place(place).unwrap_or_default();
    let name_of = |place: &Vec<String>| entry_name(&place_of(place));
    let is_picked = |name: &str| {
        let id = server_id(name);
        args.selection.is_picked(&[name, &id])
    };
    if !record.entries.iter().any(|place| is_picked(&name_of(place))) && !record.entries.is_empty()
    {
        return Ok(false);
    }
    let path = display_path(search, &record.config);
    // The record would otherwise be reported at each run.
    if !record.config.exists() {
        if !args.selection.dry_run {
            entries.remove_unused(&record.config, "");
            records.remove(&record.config).map_err(io_failure)?;
        }
        let text = format!("{path} ({}): it is gone, so there is nothing to put back", client.name);
        return writeln!(out, "{text}").map(|()| true).map_err(io_failure);
    }
    let is_dry_run = args.selection.dry_run;
    let config = EditedConfig::open((records, entries), client, &record.config, is_dry_run)?;
    let back = config.without_us()?;
    let kept: Vec<EntryRewrite> = config
        .own_rewrites()
        .into_iter()
        .filter(|one| !is_picked(&entry_name(&one.place)))
        .collect();
    let text = config.with_entries(&back.text, &kept)?;
    if is_dry_run {
        return out.write_all(config.patch(&text).as_bytes()).map(|()| true).map_err(io_failure);
    }
    let places: Vec<Vec<PlaceStep>> = kept.iter().map(|one| one.place.clone()).collect();
    match kept.is_empty() {
        true => config.forget(&text)?,
        false => {
            let mut left_out = record.left_out.clone();
            let removed = record.entries.iter().filter(|place| is_picked(&name_of(place)));
            // Removed by name, so they count as not governed, not as bypassed.
            left_out.extend(removed.map(|place| place_texts(&place_of(place))));
            config.save(&back.text, &text, &places, left_out, &[])?;
        }
    }
    let outcome = match (back.text == record.original, kept.is_empty()) {
        (_, false) => "put back, except what you kept",
        (true, true) => "as it was",
        (false, true) => "put back; what others have changed since stays",
    };
    writeln!(out, "{path} ({}): {outcome}", client.name).map_err(io_failure)?;
    back.conflicts.iter().for_each(|name| {
        terminal_output::warn(&format!(
            "`{name}` had been changed by another program in a way that cannot be merged; check it"
        ));
    });
    Ok(true)
}

fn nothing_to_uninstall(args: &Args, meant: &[InstalledConfig]) -> Failure {
    if let Some(record) = meant.first() {
        let message = format!("no such server is installed in `{}`", record.config.display());
        let list = program_name::command("agents");
        return Failure::new(Exit::Usage, message).hint(format!("`{list}` shows those that are"));
    }
    let message = match args.selection.is_all() {
        true => "nothing is installed".to_owned(),
        false => format!("nothing is installed for {}", args.selection.names_text()),
    };
    let client = args.selection.clients().ok().and_then(|clients| clients.first().copied());
    let client = client.filter(|_| !args.selection.is_all());
    let install = client.map_or_else(
        || program_name::command("agents install --all"),
        |client| command_for("install", client),
    );
    Failure::new(Exit::Findings, message).hint(format!("`{install}` does that"))
}
