//! Copies are private, complete and found by their path.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn paths(path: &Path) -> PolicyPaths {
    PolicyPaths::of(path, None)
}

fn policy(path: &Path, text: &str) -> AcceptedPolicy {
    AcceptedPolicy {
        path: path.to_owned(),
        by_link: false,
        accepted_us: 7,
        how: Acceptance::FirstUse,
        by_person: false,
        texts: BTreeMap::from([("tapegate.yaml".to_owned(), text.to_owned())]),
    }
}

#[test]
fn what_was_accepted_is_read_back_listed_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p/tapegate.yaml");
    let all = AcceptedPolicies::new(&folder.path().join("state"));
    assert_eq!((all.get(&paths(&path)).unwrap(), all.list().unwrap()), (None, Vec::new()));
    for text in ["schema: 1\n\"é\u{1}", "another"] {
        all.store(&paths(&path), &policy(&path, text), |_| true).unwrap();
        assert_eq!(all.get(&paths(&path)).unwrap(), Some(policy(&path, text)));
    }
    assert_eq!(all.list().unwrap(), [policy(&path, "another")]);
    let copy = all.copy_paths(&paths(&path)).remove(0);
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&copy), mode(copy.parent().unwrap())), (0o600, 0o700));
    assert_eq!(fs::read_dir(copy.parent().unwrap()).unwrap().count(), 1);
    assert!(all.forget(&paths(&path)).unwrap() && !all.forget(&paths(&path)).unwrap());
    assert_eq!(all.get(&paths(&path)).unwrap(), None);
}

#[test]
fn a_link_in_the_place_of_a_policy_does_not_make_it_another_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tapegate.yaml");
    fs::write(folder.path().join("other.yaml"), "").unwrap();
    let before = paths(&path);
    symlink("other.yaml", &path).unwrap();
    assert_eq!(paths(&path), before);
    // A symbolic link in the path does not make it another policy.
    symlink(folder.path(), folder.path().join("way")).unwrap();
    assert!(paths(&folder.path().join("way/tapegate.yaml")).overlap(&before));
}

/// A state folder, and two folders for policies.
fn folders() -> (tempfile::TempDir, AcceptedPolicies) {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a", "b"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    let all = AcceptedPolicies::new(&folder.path().join("state"));
    (folder, all)
}

#[test]
fn a_folder_that_becomes_a_link_keeps_what_was_accepted() {
    let (folder, all) = folders();
    let at = |name: &str| folder.path().join(name).join("p.yaml");
    all.store(&paths(&at("a")), &policy(&at("a"), "deny"), |_| true).unwrap();
    fs::rename(folder.path().join("a"), folder.path().join("was")).unwrap();
    symlink("b", folder.path().join("a")).unwrap();
    // Found by the path as written. Nothing was accepted where it leads now, but that path is
    // known.
    assert_eq!(all.get(&paths(&at("a"))).unwrap(), Some(policy(&at("a"), "deny")));
    assert_eq!(all.get(&paths(&at("b"))).unwrap(), None);
    let leading = all.accepted_by_link(&paths(&at("b")), &all.known_paths()).unwrap();
    assert_eq!(leading, [policy(&at("a"), "deny")]);
}

#[test]
fn a_link_lends_what_was_accepted_of_it_to_no_other_file() {
    let (folder, all) = folders();
    let (link, path) = (folder.path().join("link"), folder.path().join("link/p.yaml"));
    symlink("a", &link).unwrap();
    all.store(&paths(&path), &policy(&path, "pass"), |_| true).unwrap();
    fs::remove_file(&link).unwrap();
    symlink("b", &link).unwrap();
    let there = paths(&folder.path().join("b/p.yaml"));
    assert_eq!(all.get(&there).unwrap(), None);
    assert_eq!(all.accepted_by_link(&there, &all.known_paths()).unwrap(), []);
}

#[test]
fn a_path_that_each_process_reads_otherwise_is_known_by_where_it_leads() {
    let (folder, all) = folders();
    let here = Path::new("/proc/self/cwd/p.yaml");
    let link = folder.path().join("link");
    symlink("/proc/self/cwd", &link).unwrap();
    for path in [here, &link.join("p.yaml"), Path::new("/dev/fd/0/p.yaml")] {
        let paths = paths(path);
        assert_eq!(paths.written, paths.real);
        assert!(!paths.real.starts_with("/proc/self"), "{path:?}");
    }
    all.store(&paths(here), &policy(here, "pass"), |_| true).unwrap();
    assert_eq!(all.list().unwrap().len(), 1);
}

#[test]
fn the_path_of_a_copy_is_found_in_its_first_bytes() {
    let (folder, all) = folders();
    let odd = folder.path().join("a\"\\\u{1}é/p.yaml");
    let own = PolicyPaths { written: odd.clone(), real: odd.clone() };
    all.store(&own, &policy(&odd, &"x".repeat(100_000)), |_| true).unwrap();
    assert_eq!(all.known_paths(), [KnownPath { path: odd, by_link: false }]);
}

#[test]
fn a_link_that_comes_to_lead_elsewhere_keeps_what_was_accepted() {
    let (folder, all) = folders();
    let (link, path) = (folder.path().join("link"), folder.path().join("link/p.yaml"));
    symlink("a", &link).unwrap();
    all.store(&paths(&path), &policy(&path, "deny"), |_| true).unwrap();
    fs::remove_file(&link).unwrap();
    symlink("b", &link).unwrap();
    // Even if another policy was accepted there.
    let there = folder.path().join("b/p.yaml");
    let elsewhere = PolicyPaths { written: there.clone(), real: there.clone() };
    all.store(&elsewhere, &policy(&there, "pass"), |_| false).unwrap();
    let found = all.get(&paths(&path)).unwrap().unwrap();
    assert_eq!(found.texts, policy(&path, "deny").texts);
    // From there, the policy accepted there is found.
    let found = all.get(&paths(&there)).unwrap().unwrap();
    assert_eq!(found.texts, policy(&there, "pass").texts);
}

#[test]
fn a_folder_that_becomes_a_link_to_another_accepted_one_is_ambiguous() {
    let (folder, all) = folders();
    let at = |name: &str| folder.path().join(name).join("p.yaml");
    all.store(&paths(&at("a")), &policy(&at("a"), "deny"), |_| true).unwrap();
    all.store(&paths(&at("b")), &policy(&at("b"), "pass"), |_| true).unwrap();
    fs::rename(folder.path().join("a"), folder.path().join("was")).unwrap();
    symlink("b", folder.path().join("a")).unwrap();
    // Ambiguous until a person accepts one policy for both.
    assert!(matches!(all.get(&paths(&at("b"))), Err(AcceptedError::Ambiguous { .. })));
    all.store(&paths(&at("b")), &policy(&at("b"), "pass"), |_| true).unwrap();
    for name in ["a", "b"] {
        let found = all.get(&paths(&at(name))).unwrap().unwrap();
        assert_eq!(found.texts, policy(&at(name), "pass").texts);
    }
}

#[test]
fn damaged_foreign_and_linked_copies_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tapegate.yaml");
    let all = AcceptedPolicies::new(&folder.path().join("state"));
    all.store(&paths(&path), &policy(&path, "deny all"), |_| true).unwrap();
    let copy = all.copy_paths(&paths(&path)).remove(0);
    let text = fs::read_to_string(&copy).unwrap();
    for bad in [text.replace("deny all", "pass all"), String::new(), text[..20].to_owned()] {
        fs::write(&copy, bad).unwrap();
        assert!(matches!(all.get(&paths(&path)), Err(AcceptedError::Damaged { .. })));
    }
    fs::write(&copy, &text).unwrap();
    assert!(all.get(&paths(&path)).unwrap().is_some());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(all.get(&paths(&path)).is_err());
    fs::remove_file(&copy).unwrap();
    fs::write(folder.path().join("elsewhere"), &text).unwrap();
    symlink(folder.path().join("elsewhere"), &copy).unwrap();
    assert!(all.get(&paths(&path)).is_err());
}
