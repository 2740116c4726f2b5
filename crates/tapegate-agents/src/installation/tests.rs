//! Tests of configs that are installed, changed by others, installed again and uninstalled.

use super::*;
use crate::client_table::CLIENTS;
use crate::discovery::{DiscoveryContext, find_in_configs};
use crate::shim_entry::shim_command;

const NOTATION: ConfigNotation =
    ConfigNotation { format: ConfigFormat::Json, style: EntryStyle::Json };

/// A config with all its servers behind shims, and what is kept about it.
fn install(folder: &Path, text: &str) -> (String, InstalledEntries) {
    let path = folder.join("mcp.json");
    std::fs::write(&path, text).unwrap();
    let client = CLIENTS.iter().find(|client| client.id == "cursor").unwrap();
    let context = DiscoveryContext { folder, variable: &|_| None };
    let scan = find_in_configs(&context, client, std::slice::from_ref(&path));
    let words = ["/t/tapegate", "shim", "--require-policy"].map(str::to_owned);
    let rewrites: Vec<EntryRewrite> = scan
        .servers
        .iter()
        .filter_map(|one| {
            let shim = shim_command(one, &words).ok()?;
            Some(EntryRewrite { place: one.place.clone(), style: client.style, shim })
        })
        .collect();
    let edited = rewrite(text, NOTATION.format, &rewrites).unwrap();
    let places = rewrites.into_iter().map(|one| one.place).collect();
    (edited, InstalledEntries { original: text.to_owned(), places })
}

const TEXT: &str = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"},\n    \"w\": {\"url\": \"https://x/mcp\", \"headers\": {\"Authorization\": \"Bearer ${env:T}\"}, \"type\": \"http\"},\n  },\n}\n";

#[test]
fn what_was_installed_is_undone_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (edited, installed) = install(folder.path(), TEXT);
    assert_eq!(installed.places.len(), 2);
    assert!(edited.contains(r#""env": {"W_AUTHORIZATION": "Bearer ${env:T}"}"#), "{edited}");
    assert!(edited.contains(r#""--header-env", "Authorization=W_AUTHORIZATION""#), "{edited}");
    let back = installed.undo(Path::new("x"), &edited, NOTATION).unwrap();
    assert_eq!((back.text.as_str(), back.is_merged), (TEXT, false));
}

#[test]
fn what_others_changed_since_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (edited, installed) = install(folder.path(), TEXT);
    let added = edited.replace("  },\n}\n", "    \"new\": {\"command\": \"n\"},\n  },\n}\n");
    let back = installed.undo(Path::new("x"), &added, NOTATION).unwrap();
    let expected = TEXT.replace("  },\n}\n", "    \"new\": {\"command\": \"n\"},\n  },\n}\n");
    assert_eq!((back.text, back.conflicts), (expected, Vec::new()));
    // An entry that is not ours any more, and one that was behind a shim before.
    let own = r#"{"mcpServers":{"a":{"command":"y"},"h":{"command":"tapegate","args":["shim","--","h"]}}}"#;
    assert_eq!(installed.undo(Path::new("x"), own, NOTATION).unwrap().text, own);
    let half = installed.undo(Path::new("x"), "{\"half", NOTATION).unwrap_err();
    assert!(half.to_string().starts_with("`x` cannot be parsed, so its entries"), "{half}");
}

#[test]
fn an_entry_that_was_not_picked_is_not_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (edited, mut installed) = install(folder.path(), TEXT);
    installed.places.truncate(1);
    let back = installed.undo(Path::new("x"), &edited, NOTATION).unwrap();
    assert!(back.text.contains(r#""a": {"command": "x"}"#), "{}", back.text);
    assert!(back.text.contains("W_AUTHORIZATION"), "{}", back.text);
}

#[test]
fn an_entry_that_cannot_be_edited_does_not_hinder_the_others() {
    let text = "a: {cmd: x, args: &l [1]}\ns: {cmd: y, args: *l}\nt: {cmd: z}\n";
    let one = |name: &str| EntryRewrite {
        place: vec![PlaceStep::Key(name.to_owned())],
        style: EntryStyle::GooseYaml,
        shim: crate::rewrite::ShimCommand::Before(vec!["tapegate".to_owned(), "--".to_owned()]),
    };
    let (good, bad) = editable(text, ConfigFormat::Yaml, vec![one("a"), one("t")]);
    assert_eq!((good, bad), (vec![one("t")], vec![(one("a"), RewriteError::Collateral)]));
}

#[test]
fn a_config_that_changes_under_us_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.json");
    std::fs::write(&path, "{}").unwrap();
    let lock = ConfigLock::acquire(&path).unwrap();
    write(&lock, "{}", "{\"a\":1}").unwrap();
    let error = write(&lock, "{}", "{}").unwrap_err();
    assert!(error.to_string().contains("changed it meanwhile"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}");
}
