//! Tests of configs that are rewritten, changed by others and put back.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;
use crate::client_table::EntryStyle;
use crate::discovery::PlaceStep;
use crate::rewrite::ShimCommand;

const TEXT: &str =
    "{\n  // mine\n  \"mcpServers\": {\"s\": {\"command\": \"x\", \"args\": [\"1\"],},},\n}\n";

fn rewrites() -> [EntryRewrite; 1] {
    let words = ["/t/tapegate", "shim", "--server-id", "s", "--"].map(str::to_owned);
    [EntryRewrite {
        place: ["mcpServers", "s"].map(|key| PlaceStep::Key(key.to_owned())).to_vec(),
        style: EntryStyle::Json,
        shim: ShimCommand::Before(words.to_vec()),
    }]
}

fn config() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mcp.json");
    fs::write(&path, TEXT).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    (folder, path)
}

fn guard(path: &Path) -> ConfigGuard {
    let lock = ConfigLock::acquire(path).unwrap();
    ConfigGuard::rewrite(lock, ConfigFormat::Json, &rewrites()).unwrap()
}

/// Asserts that the config is as it was and nothing is beside it.
#[track_caller]
fn check_restored(folder: &Path, path: &Path) {
    assert_eq!(fs::read_to_string(path).unwrap(), TEXT);
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o7777, 0o640);
    let names: Vec<_> = fs::read_dir(folder).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn a_config_is_rewritten_and_put_back() {
    let (folder, path) = config();
    let mut guard = guard(&path);
    assert!(fs::read_to_string(&path).unwrap().contains("/t/tapegate"));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o640);
    assert_eq!(fs::read_to_string(backup_of(&path)).unwrap(), TEXT);
    assert_eq!(guard.restore().unwrap(), Some(RestoreOutcome::Exactly));
    assert_eq!(guard.restore().unwrap(), None);
    drop(guard);
    check_restored(folder.path(), &path);
}

#[test]
fn a_guard_that_is_dropped_puts_the_config_back() {
    let (folder, path) = config();
    drop(guard(&path));
    check_restored(folder.path(), &path);
}

#[test]
fn ec_stdio_005_a_config_is_locked_while_it_is_rewritten() {
    let (folder, path) = config();
    let held = guard(&path);
    assert!(matches!(ConfigLock::acquire(&path), Err(ConfigLockError::Taken { .. })));
    // An editor that saves by renaming does not take the lock away.
    fs::write(folder.path().join("new"), "{}").unwrap();
    fs::rename(folder.path().join("new"), &path).unwrap();
    assert!(matches!(ConfigLock::acquire(&path), Err(ConfigLockError::Taken { .. })));
    let error = ConfigLock::acquire(&path).unwrap_err().to_string();
    assert!(error.contains(&format!("(process {})", std::process::id())), "{error}");
    drop(held);
    drop(ConfigLock::acquire(&path).unwrap());
}

#[test]
fn ec_stdio_044_what_a_killed_process_left_is_put_right_by_the_next() {
    let (folder, path) = config();
    guard(&path).keep();
    // As after kill -9: the lock file is there, but no process holds the lock.
    fs::write(with_suffix(&path, ".tapegate-lock"), "").unwrap();
    assert!(has_backup(&path));
    let lock = ConfigLock::acquire(&path).unwrap();
    assert_eq!(restore(&lock, ConfigFormat::Json).unwrap(), Some(RestoreOutcome::Exactly));
    drop(lock);
    check_restored(folder.path(), &path);
}

#[test]
fn a_process_killed_before_it_wrote_the_config_left_nothing_to_do() {
    let (folder, path) = config();
    fs::write(backup_of(&path), TEXT).unwrap();
    let lock = ConfigLock::acquire(&path).unwrap();
    assert_eq!(restore(&lock, ConfigFormat::Json).unwrap(), Some(RestoreOutcome::Exactly));
    drop(lock);
    check_restored(folder.path(), &path);
}

#[test]
fn links_stay_links() {
    let (folder, path) = config();
    let link = folder.path().join("link.json");
    symlink("mcp.json", &link).unwrap();
    drop(guard(&link));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    fs::remove_file(&link).unwrap();
    check_restored(folder.path(), &path);
}

#[test]
fn what_others_did_meanwhile_is_kept() {
    let (_folder, path) = config();
    let mut held = guard(&path);
    let added = fs::read_to_string(&path)
        .unwrap()
        .replace(",},\n}", ", \"new\": {\"command\": \"n\"}},\n}");
    fs::write(&path, &added).unwrap();
    assert_eq!(held.restore().unwrap(), Some(RestoreOutcome::Merged(Vec::new())));
    let expected = TEXT.replace(",},\n}", ", \"new\": {\"command\": \"n\"}},\n}");
    assert_eq!(fs::read_to_string(&path).unwrap(), expected);
    drop(held);
    // Removed, or left in a state that cannot be parsed.
    fs::write(&path, TEXT).unwrap();
    let mut held = guard(&path);
    fs::remove_file(&path).unwrap();
    assert_eq!(held.restore().unwrap(), Some(RestoreOutcome::Recreated));
    drop(held);
    let mut held = guard(&path);
    fs::write(&path, "{\"half").unwrap();
    let Some(RestoreOutcome::Replaced(aside)) = held.restore().unwrap() else { panic!() };
    assert_eq!(fs::read_to_string(&aside).unwrap(), "{\"half");
    assert_eq!(fs::read_to_string(&path).unwrap(), TEXT);
}

#[test]
fn ec_stdio_007_a_config_that_cannot_be_written_stays_as_it_was() {
    let (folder, path) = config();
    let lock = ConfigLock::acquire(&path).unwrap();
    let missing =
        [EntryRewrite { place: vec![PlaceStep::Key("none".to_owned())], ..rewrites()[0].clone() }];
    let error = ConfigGuard::rewrite(lock, ConfigFormat::Json, &missing).unwrap_err();
    assert!(error.to_string().ends_with("mcp.json`: none: there is no such entry"), "{error}");
    check_restored(folder.path(), &path);
}

/// The words of a session's shim for a server with a URL.
fn url_shim(id: &str, url: &str) -> ShimCommand {
    let words =
        ["/t/tapegate", "shim", "--governance-endpoint", "http://127.0.0.1:9", "--server-id", id];
    let words = words.into_iter().chain(["--upstream-http", url]).map(str::to_owned);
    ShimCommand::Instead(words.collect())
}

fn url_rewrite(place: &[&str], shim: ShimCommand) -> EntryRewrite {
    let place = place.iter().map(|key| PlaceStep::Key((*key).to_owned())).collect();
    EntryRewrite { place, style: EntryStyle::Json, shim }
}

#[test]
fn a_server_with_a_url_that_is_renamed_does_not_keep_its_shim() {
    let url = "https://example.com/mcp";
    let texts = [
        (
            ConfigFormat::Json,
            "mcpServers",
            "\"s\": ",
            "\"new\": ",
            "\"new\": ",
            format!(
                "{{\n  \"mcpServers\": {{\n    // mine\n    \"other\": {{\"url\": \"{url}\"}},\n    \
             \"s\": {{\"url\": \"{url}\", \"timeout\": 5}}\n  }}\n}}\n"
            ),
        ),
        (
            ConfigFormat::Toml,
            "mcp_servers",
            "mcp_servers.s]",
            "mcp_servers.new]",
            "mcp_servers.s]",
            format!(
                "# mine\n[mcp_servers.other]\nurl = \"{url}\"\n\n[mcp_servers.s]\nurl = \"{url}\"\n"
            ),
        ),
    ];
    for (format, key, old, new, expected, text) in texts {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        fs::write(&path, &text).unwrap();
        let rewrites = ["other", "s"].map(|name| url_rewrite(&[key, name], url_shim(name, url)));
        let lock = ConfigLock::acquire(&path).unwrap();
        let mut guard = ConfigGuard::rewrite(lock, format, &rewrites).unwrap();
        let rewritten = fs::read_to_string(&path).unwrap();
        assert!(rewritten.contains(old), "{rewritten}");
        fs::write(&path, rewritten.replace(old, new)).unwrap();
        assert!(guard.restore().unwrap().is_some());
        // The table of TOML has its name in it, and so comes back under its old name.
        assert_eq!(fs::read_to_string(&path).unwrap(), text.replace(old, expected));
    }
}

#[test]
fn a_renamed_server_with_a_url_that_was_also_changed_is_named() {
    let url = "https://example.com/mcp";
    let text =
        format!("{{\"mcpServers\":{{\"s\":{{\"url\":\"{url}\"}},\"t\":{{\"command\":\"x\"}}}}}}");
    let (_folder, path) = config();
    fs::write(&path, &text).unwrap();
    let lock = ConfigLock::acquire(&path).unwrap();
    let rewrites = [url_rewrite(&["mcpServers", "s"], url_shim("s", url))];
    let mut guard = ConfigGuard::rewrite(lock, ConfigFormat::Json, &rewrites).unwrap();
    let now = fs::read_to_string(&path).unwrap();
    let now = now.replace("\"s\":{", "\"new\":{\"timeout\":1,");
    fs::write(&path, now).unwrap();
    let outcome = guard.restore().unwrap();
    assert_eq!(outcome, Some(RestoreOutcome::Merged(vec!["new".to_owned()])));
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("\"s\"", "\"new\""));
}

#[test]
fn a_panic_puts_the_config_back_on_its_way() {
    let (folder, path) = config();
    let rewritten = path.clone();
    let done = std::thread::spawn(move || {
        let guard = guard(&rewritten);
        assert!(fs::read_to_string(guard.config()).unwrap().contains("/t/tapegate"));
        panic!("in the middle of a session");
    });
    let panic = done.join().unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"in the middle of a session"));
    check_restored(folder.path(), &path);
}

#[test]
fn a_read_only_config_is_not_replaced_but_still_restored() {
    let (folder, path) = config();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let lock = ConfigLock::acquire(&path).unwrap();
    let error = ConfigGuard::rewrite(lock, ConfigFormat::Json, &rewrites()).unwrap_err();
    assert!(matches!(error, GuardError::ReadOnly { .. }), "{error}");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    check_restored(folder.path(), &path);
    // Its user may have protected it against the agent.
    let guard = guard(&path);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    drop(guard);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    check_restored(folder.path(), &path);
}

#[test]
fn a_session_of_thoughtgate_keeps_its_lock_and_what_it_has_left_is_put_back() {
    let (folder, path) = config();
    let lock_path = with_suffix(&path, ".thoughtgate-lock");
    let seed = fs::File::create(&lock_path).unwrap();
    rustix::fs::flock(&seed, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let error = ConfigLock::acquire(&path).unwrap_err();
    assert!(matches!(error, ConfigLockError::Taken { .. }), "{error}");
    drop(seed);
    fs::write(with_suffix(&path, ".thoughtgate-backup"), TEXT).unwrap();
    let text = r#"{"mcpServers":{"s":{"command":"/t/thoughtgate","args":
        ["shim","--server-id","s","--","x","1"],"env":{"THOUGHTGATE_SERVER_ID":"s"}}}}"#;
    fs::write(&path, text).unwrap();
    let lock = ConfigLock::acquire(&path).unwrap();
    assert_eq!(restore(&lock, ConfigFormat::Json).unwrap(), Some(RestoreOutcome::Exactly));
    drop(lock);
    fs::remove_file(lock_path).unwrap();
    check_restored(folder.path(), &path);
}
