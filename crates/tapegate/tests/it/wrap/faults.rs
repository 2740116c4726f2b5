//! Configs and disks that are not as one would wish.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

use rustix::process::{Signal, kill_process};

use crate::tape_faults::SmallFileSystem;
use crate::wrap_machine::WrapMachine;

#[test]
fn a_link_stays_a_link_and_its_target_keeps_its_mode() {
    let machine = WrapMachine::new();
    let target = machine.write("home/dotfiles/claude.json", &machine.config(&["s"]));
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles/claude.json", machine.home(".claude.json")).unwrap();
    // A second way to the same file is not a second file.
    symlink(&target, machine.project(".mcp.json")).unwrap();
    let before = machine.files();
    let steps = ["start=~/.claude.json#mcpServers", "call", "cat=~/.claude.json", "close"];
    machine.start(&[], &steps).end().exits(0).said("s {").said("--server-id");
    assert_eq!(machine.files(), before);
    assert!(machine.home(".claude.json").symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::metadata(&target).unwrap().mode() & 0o7777, 0o640);
}

#[test]
fn a_config_that_is_removed_meanwhile_is_there_again() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let before = machine.files();
    let step = format!("remove={}", path.display());
    let text = "was removed or emptied, and is there again";
    machine.start(&[], &[&step]).end().exits(0).complained(text);
    assert_eq!(machine.files(), before);
    let step = format!("touch={}", path.display());
    machine.start(&[], &[&step]).end().exits(0).complained(text);
    assert_eq!(machine.files(), before);
}

#[test]
fn the_config_is_restored_without_its_backup_and_with_a_forged_one() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let before = machine.files();
    let backup = machine.home(".claude.json.tapegate-backup").display().to_string();
    let remove = format!("remove={backup}");
    machine.start(&[], &[&remove]).end().exits(0);
    assert_eq!(machine.files(), before);
    let both = format!("remove={}", path.display());
    machine.start(&[], &[&remove, &both]).end().exits(0).complained("is there again");
    assert_eq!(machine.files(), before);
    let forge = format!("replace={backup}|\"A\"|\"B\"");
    machine.start(&[], &[&forge]).end().exits(0);
    assert_eq!(machine.files(), before);
}

#[test]
fn unwrap_restores_what_a_killed_session_has_left_also_without_its_backup() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let backup = machine.home(".claude.json.tapegate-backup").display().to_string();
    let changes = [format!("remove={backup}"), format!("replace={backup}|\"A\"|\"B\"")];
    for (change, is_by_wrap) in changes.iter().zip([false, true]) {
        let mut session = machine.start(&[], &[change, "say=ready", "line"]);
        session.says("ready");
        for process in machine.processes() {
            kill_process(process, Signal::KILL).ok();
        }
        session.end();
        machine.ends_every_process();
        assert_ne!(machine.files(), before);
        match is_by_wrap {
            false => {
                let done = machine.command(&["unwrap"]).output().unwrap();
                assert!(done.status.success(), "{done:?}");
            }
            true => drop(machine.start(&[], &["call"]).end().exits(0)),
        }
        assert_eq!(machine.files(), before, "{change}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_config_is_set_aside() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let before = machine.files();
    let pipe = format!("pipe={}", path.display());
    machine.start(&[], &[&pipe]).end().exits(0).complained(".tapegate-changed");
    fs::remove_file(machine.home(".claude.json.tapegate-changed")).unwrap();
    assert_eq!(machine.files(), before);
}

#[test]
fn a_backup_that_is_a_link_is_not_followed() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let secret = machine.write("home/secret", "horse");
    symlink(secret, machine.home(".claude.json.tapegate-backup")).unwrap();
    let before = machine.files();
    let ended = machine.start(&[], &["say=started"]).end().exits(3);
    assert_eq!(ended.complained("its backup is not a regular file").output, "");
    assert_eq!(machine.files(), before);
}

#[test]
fn a_server_that_is_renamed_meanwhile_does_not_keep_its_shim() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s", "t"]);
    let original = fs::read_to_string(&path).unwrap();
    let step = format!("replace={}|\"s\": {{|\"renamed\": {{", path.display());
    machine.start(&[], &[&step]).end().exits(0).complained("what else has changed in it is kept");
    let now = fs::read_to_string(&path).unwrap();
    let (now, mut expected): (serde_json::Value, serde_json::Value) =
        (serde_json::from_str(&now).unwrap(), serde_json::from_str(&original).unwrap());
    let servers = expected["mcpServers"].as_object_mut().unwrap();
    let renamed = servers.remove("s").unwrap();
    servers.insert("renamed".to_owned(), renamed);
    assert_eq!(now, expected);
}

#[test]
fn a_server_with_a_url_that_is_renamed_meanwhile_does_not_keep_its_shim() {
    let machine = WrapMachine::new();
    let text = "{ \"mcpServers\": {\n  \"s\": { \"type\": \"http\", \"url\": \"http://127.0.0.1:1/mcp\",\n    \
                \"headers\": { \"Authorization\": \"Bearer horse\" } }\n} }\n";
    let path = machine.write("home/.claude.json", text);
    let step = format!("replace={}|\"s\": {{|\"renamed\": {{", path.display());
    let ended = machine.start(&[], &[&step]).end().exits(0);
    ended.complained("what else has changed in it is kept");
    assert_eq!(fs::read_to_string(&path).unwrap(), text.replace("\"s\"", "\"renamed\""));
}

#[test]
fn a_config_that_grows_and_is_written_anew_keeps_what_was_added() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let original: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let step = format!("grow={}|new", path.display());
    let ended = machine.start(&[], &[&step]).end().exits(0);
    ended.complained("what else has changed in it is kept");
    let mut config: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let servers = config["mcpServers"].as_object_mut().unwrap();
    assert_eq!(servers.remove("new").unwrap()["command"], "added");
    assert_eq!(config, original);
    assert_eq!(machine.files().len(), 1);
}

#[test]
fn a_config_that_can_no_longer_be_parsed_is_restored_and_what_was_there_is_kept() {
    let machine = WrapMachine::new();
    let path = machine.claude(&["s"]);
    let original = fs::read_to_string(&path).unwrap();
    let step = format!("replace={}|\"mcpServers\": {{|\"mcpServers\": [", path.display());
    machine.start(&[], &[&step]).end().exits(0).complained("could no longer be parsed");
    assert_eq!(fs::read_to_string(&path).unwrap(), original);
    let aside = machine.home(".claude.json.tapegate-changed");
    assert!(fs::read_to_string(aside).unwrap().contains("\"mcpServers\": ["));
}

#[test]
fn a_full_disk_at_the_start_is_an_error_and_the_config_stays_as_it_was() {
    let machine = WrapMachine::new();
    let disk = SmallFileSystem::new("64k");
    let path = disk.path().join("mcp.json");
    fs::write(&path, machine.config(&["s"])).unwrap();
    let original = fs::read(&path).unwrap();
    fill(&disk);
    let named = path.display().to_string();
    let flags = ["--agent-type", "custom", "--config-path", &named];
    let ended = machine.start(&flags, &["say=started"]).end().exits(3);
    assert_eq!(ended.complained("No space left on device").output, "");
    assert_eq!(fs::read(&path).unwrap(), original);
    let names: Vec<_> =
        fs::read_dir(disk.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    machine.leaves_no_process();
}

#[test]
fn a_full_disk_at_the_end_is_an_error_and_unwrap_restores_once_there_is_room() {
    let machine = WrapMachine::new();
    let disk = SmallFileSystem::new("64k");
    let path = disk.path().join("mcp.json");
    fs::write(&path, machine.config(&["s"])).unwrap();
    let original = fs::read(&path).unwrap();
    let named = path.display().to_string();
    let flags = ["--agent-type", "custom", "--config-path", &named];
    let mut session = machine.start(&flags, &["say=ready", "line"]);
    session.says("ready");
    let filler = fill(&disk);
    drop(session.input.take());
    let ended = session.end().exits(3).complained("cannot restore");
    ended.complained(&format!("unwrap --config-path {named}"));
    assert_ne!(fs::read(&path).unwrap(), original);
    fs::remove_file(filler).unwrap();
    let done = machine.command(&["unwrap", "--config-path", &named]).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(fs::read(&path).unwrap(), original);
}

/// Fills a disk to its last byte, and returns the file that does.
fn fill(disk: &SmallFileSystem) -> std::path::PathBuf {
    use std::io::Write;
    let path = disk.path().join("filler");
    let mut file = fs::File::create(&path).unwrap();
    while file.write_all(&[0; 1024]).is_ok() {}
    path
}
