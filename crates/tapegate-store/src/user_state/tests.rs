//! Private folders and their keys.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_private_folder_and_its_key_are_for_the_user_alone_and_name_their_project() {
    let top = tempfile::tempdir().unwrap();
    let (user, state) = (top.path().join("user"), top.path().join("project/.tapegate"));
    let dir = PrivateDir::open(&user, &state).unwrap();
    assert_eq!(dir.path(), PrivateDir::path_of(&user, &state));
    let key = dir.key().unwrap();
    assert_ne!(key.bytes(), &[0; KEY_BYTES]);
    assert_eq!(mode(dir.path()), 0o700);
    assert_eq!(mode(dir.path().parent().unwrap()), 0o700);
    assert_eq!(mode(&dir.path().join("key")), 0o600);
    let project = fs::read_to_string(dir.path().join("project")).unwrap();
    assert!(project.ends_with("/project/.tapegate\n"), "{project}");
    assert_eq!(PrivateDir::open(&user, &state).unwrap().key().unwrap(), key);
    let mut names: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["key", "project"]);
    assert_eq!(format!("{key:?}"), "ProjectKey(…)");
}

#[test]
fn a_project_has_one_private_folder_by_whatever_path_it_is_reached() {
    let top = tempfile::tempdir().unwrap();
    let state = top.path().join("project/.tapegate");
    let before = PrivateDir::path_of(top.path(), &state);
    fs::create_dir_all(&state).unwrap();
    symlink(top.path().join("project"), top.path().join("link")).unwrap();
    assert_eq!(PrivateDir::path_of(top.path(), &state), before);
    assert_eq!(PrivateDir::path_of(top.path(), &top.path().join("link/.tapegate")), before);
    assert_ne!(PrivateDir::path_of(top.path(), &top.path().join("other/.tapegate")), before);
}

#[test]
fn links_and_open_modes_are_refused() {
    let top = tempfile::tempdir().unwrap();
    let state = top.path().join("state");
    let open = || PrivateDir::open(top.path(), &state).map_err(|error| error.to_string());
    let dir = open().unwrap();
    dir.key().unwrap();
    set_mode(dir.path(), 0o750);
    assert!(open().unwrap_err().contains("chmod 700"));
    set_mode(dir.path(), 0o700);
    let moved = top.path().join("moved");
    fs::rename(dir.path(), &moved).unwrap();
    symlink(&moved, dir.path()).unwrap();
    assert!(open().unwrap_err().contains("symbolic link"));
    fs::remove_file(dir.path()).unwrap();
    fs::rename(&moved, dir.path()).unwrap();
    assert!(open().is_ok());
}

#[test]
fn a_key_of_another_size_or_mode_or_behind_a_link_is_refused() {
    let top = tempfile::tempdir().unwrap();
    let dir = PrivateDir::open(top.path(), &top.path().join("state")).unwrap();
    let path = dir.path().join("key");
    let message = || dir.key().unwrap_err().to_string();
    for bytes in [0, 31, 33, 100_000] {
        fs::write(&path, vec![7; bytes]).unwrap();
        set_mode(&path, 0o600);
        assert!(message().contains("32 bytes"), "{bytes}");
    }
    fs::write(&path, [7; KEY_BYTES]).unwrap();
    assert_eq!(dir.key().unwrap(), ProjectKey::new([7; KEY_BYTES]));
    set_mode(&path, 0o640);
    assert!(message().contains("other users can read it"));
    set_mode(&path, 0o600);
    fs::rename(&path, top.path().join("elsewhere")).unwrap();
    symlink(top.path().join("elsewhere"), &path).unwrap();
    assert!(message().contains("symbolic link"));
}

#[test]
fn all_who_race_for_a_key_get_the_same_one() {
    let top = tempfile::tempdir().unwrap();
    let state = top.path().join("state");
    let keys: Vec<ProjectKey> = std::thread::scope(|scope| {
        let race = || PrivateDir::open(top.path(), &state).unwrap().key().unwrap();
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(race)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(keys.iter().all(|key| key == &keys[0]));
}

#[test]
fn keys_for_different_purposes_differ() {
    let key = ProjectKey::new([1; KEY_BYTES]);
    assert_eq!(key.derive("a"), key.derive("a"));
    assert_ne!(key.derive("a"), key.derive("b"));
    assert_ne!(key.derive("a"), ProjectKey::new([2; KEY_BYTES]).derive("a"));
}
