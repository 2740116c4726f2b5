//! Copies are private, whole and known by their path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn policy(path: &Path, text: &str) -> AcceptedPolicy {
    AcceptedPolicy {
        path: policy_path(path),
        accepted_us: 7,
        how: Acceptance::FirstUse,
        texts: BTreeMap::from([("tapegate.yaml".to_owned(), text.to_owned())]),
    }
}

#[test]
fn what_was_accepted_is_read_back_listed_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p/tapegate.yaml");
    let all = AcceptedPolicies::new(&folder.path().join("state"));
    assert_eq!((all.get(&path).unwrap(), all.list().unwrap()), (None, Vec::new()));
    for text in ["schema: 1\n\"é\u{1}", "another"] {
        all.put(&policy(&path, text)).unwrap();
        assert_eq!(all.get(&path).unwrap(), Some(policy(&path, text)));
    }
    assert_eq!(all.list().unwrap(), [policy(&path, "another")]);
    let copy = all.copy_path(&path);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&copy), mode(copy.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs::read_dir(copy.parent().unwrap()).unwrap().count(), 1);
    assert!(all.forget(&path).unwrap() && !all.forget(&path).unwrap());
    assert_eq!(all.get(&path).unwrap(), None);
}

#[test]
fn a_link_in_the_place_of_a_policy_does_not_make_it_another_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tapegate.yaml");
    fs::write(folder.path().join("other.yaml"), "").unwrap();
    let before = policy_path(&path);
    symlink("other.yaml", &path).unwrap();
    assert_eq!(policy_path(&path), before);
    // A link on the way there does not make another one either.
    symlink(folder.path(), folder.path().join("way")).unwrap();
    assert_eq!(policy_path(&folder.path().join("way/tapegate.yaml")), before);
}

#[test]
fn damaged_foreign_and_linked_copies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tapegate.yaml");
    let all = AcceptedPolicies::new(&folder.path().join("state"));
    all.put(&policy(&path, "deny all")).unwrap();
    let copy = all.copy_path(&path);
    let text = fs::read_to_string(&copy).unwrap();
    for bad in [text.replace("deny all", "pass all"), String::new(), text[..20].to_owned()] {
        fs::write(&copy, bad).unwrap();
        assert!(matches!(all.get(&path), Err(AcceptedError::Damaged { .. })));
    }
    fs::write(&copy, &text).unwrap();
    assert!(all.get(&path).unwrap().is_some());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(all.get(&path).is_err());
    fs::remove_file(&copy).unwrap();
    fs::write(folder.path().join("elsewhere"), &text).unwrap();
    symlink(folder.path().join("elsewhere"), &copy).unwrap();
    assert!(all.get(&path).is_err());
}
