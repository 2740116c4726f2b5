//! Claiming a state folder, and where the tokens are kept.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

/// A state folder in a project, and the user's state folder.
fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (state, user_state) = (folder.path().join("deep/state"), folder.path().join("user"));
    (folder, state, user_state)
}

fn naming(shims: Option<&Path>, approvers: Option<&Path>) -> NamedTokenFiles {
    let [shims, approvers] = [shims, approvers].map(|path| path.map(Path::to_owned));
    NamedTokenFiles { shims, approvers }
}

#[test]
fn a_folder_has_one_hub_which_can_be_found_until_it_ends() {
    let (_folder, state, user_state) = places();
    let first = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    let early =
        HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap_err().to_string();
    assert_eq!(early, format!("another hub is running for `{}`", state.display()));
    let tokens = HubTokens::generate().unwrap();
    first.publish_endpoint("http://127.0.0.1:1", &tokens).unwrap();
    let late =
        HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap_err().to_string();
    assert!(late.ends_with(", at http://127.0.0.1:1"), "{late}");
    let file = token_file(&user_state, &state);
    assert_eq!(read_small(&file).unwrap(), tokens.shims.reveal());
    let approvers = approver_token_file(&user_state, &state);
    assert_eq!(read_small(&approvers).unwrap(), tokens.approvers.reveal());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&state.join("hub")), mode(file.parent().unwrap())), (0o700, 0o700));
    for path in [&file, &approvers, &endpoint_file(&state)] {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
    drop(first);
    assert!(!file.exists() && !approvers.exists() && !endpoint_file(&state).exists());
    HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
}

#[test]
fn no_file_in_the_state_folder_holds_the_token() {
    let (_folder, state, user_state) = places();
    let hub_lock = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    let tokens = HubTokens::generate().unwrap();
    hub_lock.publish_endpoint("http://127.0.0.1:1", &tokens).unwrap();
    for entry in fs::read_dir(state.join("hub")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for token in [&tokens.shims, &tokens.approvers] {
            assert!(!text.contains(token.reveal()), "{text}");
        }
    }
}

#[test]
fn a_token_that_an_earlier_version_left_in_the_project_is_removed_and_that_is_said() {
    let (folder, state, user_state) = places();
    fs::create_dir_all(state.join("hub")).unwrap();
    let old = old_token_file(&state);
    fs::write(&old, "old").unwrap();
    let hub_lock = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    let message = hub_lock.old_token_notice().unwrap();
    assert!(message.starts_with(&format!("removed `{}`", old.display())), "{message}");
    assert!(!old.exists());
    drop(hub_lock);
    assert_eq!(
        HubLock::acquire(&state, &user_state, NamedTokenFiles::default())
            .unwrap()
            .old_token_notice(),
        None
    );
    // A file that cannot be removed is still reported.
    fs::create_dir(&old).unwrap();
    let hub_lock = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    assert!(hub_lock.old_token_notice().unwrap().contains("cannot remove"));
    drop(hub_lock);
    fs::remove_dir(&old).unwrap();
    // A symbolic link is removed, its target is not.
    let victim = folder.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, &old).unwrap();
    HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    assert!(!old.is_symlink() && victim.exists());
    // A user who names this very file gets it.
    let hub_lock = HubLock::acquire(&state, &user_state, naming(Some(&old), None)).unwrap();
    hub_lock.publish_endpoint("http://127.0.0.1:1", &HubTokens::generate().unwrap()).unwrap();
    assert!(old.exists() && hub_lock.old_token_notice().is_none());
}

#[test]
fn links_are_neither_written_through_nor_read() {
    let (folder, state, user_state) = places();
    let victim = folder.path().join("victim");
    fs::create_dir_all(state.join("hub")).unwrap();
    fs::write(&victim, "precious").unwrap();
    PrivateDir::open(&user_state, &state).unwrap();
    let file = token_file(&user_state, &state);
    symlink(&victim, &file).unwrap();
    assert!(read_small(&file).is_err());
    let hub_lock = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap();
    hub_lock.publish_endpoint("http://127.0.0.1:1", &HubTokens::generate().unwrap()).unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    assert!(!fs::symlink_metadata(&file).unwrap().is_symlink());
    drop(hub_lock);
    symlink(&victim, state.join("hub/lock.new")).unwrap();
    fs::rename(state.join("hub/lock.new"), state.join("hub/lock")).unwrap();
    assert!(matches!(
        HubLock::acquire(&state, &user_state, NamedTokenFiles::default()),
        Err(ClaimError::Io { .. })
    ));
}

#[test]
fn pipes_and_devices_are_not_read_for_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for path in [fifo.as_path(), Path::new("/dev/zero"), folder.path()] {
        let error = read_small(path).unwrap_err().to_string();
        assert_eq!(error, "it is not a regular file", "{}", path.display());
    }
}

#[test]
fn a_private_folder_that_others_can_enter_is_refused() {
    let (_folder, state, user_state) = places();
    drop(HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap());
    let private = token_file(&user_state, &state).parent().unwrap().to_owned();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o755)).unwrap();
    let error = HubLock::acquire(&state, &user_state, NamedTokenFiles::default()).unwrap_err();
    assert!(matches!(&error, ClaimError::Private(_)), "{error}");
}

#[test]
fn the_two_tokens_have_two_files() {
    let (folder, state, user_state) = places();
    let (one, link) = (folder.path().join("one"), folder.path().join("link"));
    symlink(folder.path(), &link).unwrap();
    let usual = (token_file(&user_state, &state), approver_token_file(&user_state, &state));
    PrivateDir::open(&user_state, &state).unwrap();
    for named in [
        naming(Some(&one), Some(&one)),
        naming(Some(&one), Some(&link.join("one"))),
        naming(Some(&usual.1), None),
        naming(None, Some(&usual.0)),
    ] {
        let error = HubLock::acquire(&state, &user_state, named).unwrap_err();
        assert!(matches!(&error, ClaimError::OneFile(_)), "{error}");
    }
    let named = naming(Some(&one), Some(&link.join("other")));
    assert!(HubLock::acquire(&state, &user_state, named).is_ok());
}
