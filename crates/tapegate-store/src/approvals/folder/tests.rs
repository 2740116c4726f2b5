//! The folder: first decisions win, and what is not ours is left alone.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use super::*;
use crate::approvals::new_id;

const NOW: i64 = 1_774_016_531_804_012;

fn desk() -> (TempDir, Approvals) {
    let folder = tempfile::tempdir().unwrap();
    let approvals = Approvals::open(&folder.path().join("approvals")).unwrap();
    (folder, approvals)
}

fn asked(approvals: &Approvals) -> Request {
    let request = Request {
        id: new_id().unwrap(),
        created_us: NOW,
        expires_us: NOW + 60_000_000,
        server_id: "files".to_owned(),
        tool: "rm".to_owned(),
        call_hash: "abc".to_owned(),
        principal: "agent".to_owned(),
        ..Request::default()
    };
    approvals.ask(&request).unwrap();
    request
}

fn by(ruling: Ruling, by: &str) -> Decided {
    Decided { ruling, by: by.to_owned(), at_us: NOW + 1, reason: None }
}

#[test]
fn the_first_decision_wins_and_the_second_is_told_of_it() {
    let (_folder, approvals) = desk();
    let id = asked(&approvals).id;
    assert_eq!(approvals.decision(&id).unwrap(), None);
    approvals.decide(&id, &by(Ruling::Denied, "alice")).unwrap();
    let error = approvals.decide(&id, &by(Ruling::Approved, "bob")).unwrap_err();
    assert_eq!(error.to_string(), format!("`{id}` was denied by alice already"));
    assert_eq!(approvals.decision(&id).unwrap(), Some(by(Ruling::Denied, "alice")));
    assert!(matches!(
        approvals.withdraw(&id, "shim", NOW),
        Err(ApprovalError::AlreadyDecided { .. })
    ));
}

#[test]
fn of_many_who_decide_at_once_exactly_one_has_decided() {
    let (folder, approvals) = desk();
    for _ in 0..50 {
        let id = asked(&approvals).id;
        let path = folder.path().join("approvals");
        let one = |name: &'static str| {
            let (id, path) = (id.clone(), path.clone());
            std::thread::spawn(move || {
                Approvals::open(&path).unwrap().decide(&id, &by(Ruling::Approved, name)).is_ok()
            })
        };
        let threads = ["a", "b", "c", "d"].map(one);
        let won: usize = threads.map(|thread| usize::from(thread.join().unwrap())).iter().sum();
        assert_eq!(won, 1);
    }
    assert_eq!(fs::read_dir(approvals.path()).unwrap().count(), 100, "no other file stays");
}

#[test]
fn what_is_too_late_unknown_or_no_name_is_refused() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    let late = Decided { at_us: request.expires_us, ..by(Ruling::Approved, "alice") };
    assert!(matches!(approvals.decide(&request.id, &late), Err(ApprovalError::Expired { .. })));
    for id in ["ap_unknown", "../x", "a\0b", "", ".", &"x".repeat(300)] {
        let decided = approvals.decide(id, &by(Ruling::Approved, "alice"));
        assert!(matches!(decided, Err(ApprovalError::Unknown { .. })), "{id:?}");
        assert!(approvals.consume(id).is_err() || id == "ap_unknown");
        let hostile = Request { id: id.to_owned(), ..request.clone() };
        assert!(approvals.ask(&hostile).is_err() || id == "ap_unknown");
    }
    let expired = Decided { at_us: request.expires_us, ..by(Ruling::Expired, "shim") };
    approvals.decide(&request.id, &expired).unwrap();
    assert!(matches!(approvals.ask(&request), Err(ApprovalError::Exists { .. })));
}

#[test]
fn only_those_who_are_named_decide_and_nobody_about_their_own() {
    let (_folder, approvals) = desk();
    let named = Request {
        id: new_id().unwrap(),
        approvers: vec!["alice".to_owned(), "agent".to_owned()],
        ..asked(&approvals)
    };
    approvals.ask(&named).unwrap();
    let error = approvals.decide(&named.id, &by(Ruling::Approved, "bob")).unwrap_err();
    let words = format!("`bob` may not decide about `{}`, only alice, agent", named.id);
    assert_eq!(error.to_string(), words);
    let own = approvals.decide(&named.id, &by(Ruling::Approved, "agent"));
    assert!(matches!(own, Err(ApprovalError::OwnRequest { .. })));
    approvals.decide(&named.id, &by(Ruling::Approved, "alice")).unwrap();
}

#[test]
fn an_approval_that_nobody_waited_for_lets_the_same_call_through_once() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    assert_eq!(approvals.pending_for(&request, NOW).unwrap().unwrap().id, request.id);
    assert!(approvals.approved_before(&request, NOW).unwrap().is_none());
    approvals.decide(&request.id, &by(Ruling::Approved, "alice")).unwrap();
    for other in [
        Request { call_hash: "abd".to_owned(), ..request.clone() },
        Request { server_id: "other".to_owned(), ..request.clone() },
        Request { principal: "other".to_owned(), ..request.clone() },
    ] {
        assert!(approvals.approved_before(&other, NOW).unwrap().is_none());
    }
    assert!(approvals.approved_before(&request, request.expires_us).unwrap().is_none());
    let (id, decided) = approvals.approved_before(&request, NOW + 5).unwrap().unwrap();
    assert_eq!((id, decided.by.as_str()), (request.id.clone(), "alice"));
    assert!(approvals.approved_before(&request, NOW + 5).unwrap().is_none());
    assert!(!approvals.consume(&request.id).unwrap());
    assert!(approvals.pending_for(&request, NOW).unwrap().is_none());
}

#[test]
fn a_call_that_was_denied_or_let_through_is_not_let_through_again() {
    let (_folder, approvals) = desk();
    let (denied, used) = (asked(&approvals), asked(&approvals));
    approvals.decide(&denied.id, &by(Ruling::Denied, "alice")).unwrap();
    approvals.decide(&used.id, &by(Ruling::Approved, "alice")).unwrap();
    assert!(approvals.consume(&used.id).unwrap());
    assert!(approvals.approved_before(&used, NOW + 5).unwrap().is_none());
    assert!(approvals.all().unwrap().entries.iter().any(|entry| entry.used));
}

#[test]
fn requests_are_listed_oldest_first_and_spoiled_files_are_named() {
    let (_folder, approvals) = desk();
    let (one, two) = (asked(&approvals), asked(&approvals));
    let old = Request { id: new_id().unwrap(), created_us: NOW - 9, ..one.clone() };
    approvals.ask(&old).unwrap();
    fs::write(approvals.path().join("ap_spoiled.request.json"), "{\"id\":").unwrap();
    let text = fs::read(approvals.path().join(format!("{}.request.json", one.id))).unwrap();
    fs::write(approvals.path().join("ap_copied.request.json"), text).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", approvals.path().join("ap_link.request.json"))
        .unwrap();
    fs::write(approvals.path().join("notes.txt"), "").unwrap();
    approvals.decide(&two.id, &by(Ruling::Denied, "alice")).unwrap();
    let listing = approvals.all().unwrap();
    assert_eq!((listing.entries.len(), listing.broken.len()), (3, 3));
    assert_eq!(listing.entries[0].request, old);
    let pending: Vec<String> =
        approvals.pending(NOW).unwrap().into_iter().map(|request| request.id).collect();
    assert_eq!(pending, [old.id, one.id]);
    assert!(approvals.pending(NOW + 60_000_000).unwrap().is_empty());
}

#[test]
fn what_expired_long_ago_is_cleaned_away_with_what_belongs_to_it() {
    let (_folder, approvals) = desk();
    let (old, decided) = (asked(&approvals), asked(&approvals));
    approvals.decide(&decided.id, &by(Ruling::Approved, "alice")).unwrap();
    approvals.consume(&decided.id).unwrap();
    let fresh = Request { id: new_id().unwrap(), expires_us: NOW + 900_000_000, ..old };
    approvals.ask(&fresh).unwrap();
    fs::write(approvals.path().join("ap_orphan.decision.json"), "{}").unwrap();
    fs::write(approvals.path().join(".tmp-1-1-x"), "{}").unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(approvals.clean(NOW + 60_000_000, day).unwrap(), 0);
    let removed = approvals.clean(NOW + 120_000_000, Duration::from_secs(30)).unwrap();
    assert_eq!(removed, 2);
    let left: Vec<String> = fs::read_dir(approvals.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".tmp-1-1-x")
        .collect();
    assert_eq!(left, [format!("{}.request.json", fresh.id)]);
}

#[test]
fn the_folder_and_what_lies_in_it_is_private() {
    let (folder, approvals) = desk();
    let id = asked(&approvals).id;
    approvals.decide(&id, &by(Ruling::Approved, "a")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(approvals.path()), 0o700);
    for entry in fs::read_dir(approvals.path()).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
    fs::set_permissions(approvals.path(), fs::Permissions::from_mode(0o777)).unwrap();
    Approvals::open(&folder.path().join("approvals")).unwrap();
    assert_eq!(mode(approvals.path()), 0o700);
}

#[test]
fn a_watcher_tells_of_what_is_asked_and_decided() {
    let (_folder, approvals) = desk();
    let watcher = approvals.watch();
    assert!(watcher.handle().is_some() && watcher.pause().is_none());
    let ready = |wait: Duration| {
        let handle = watcher.handle().unwrap();
        let timeout = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: 0 };
        poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&timeout)).unwrap() > 0
    };
    assert!(!ready(Duration::ZERO));
    let id = asked(&approvals).id;
    assert!(ready(Duration::from_secs(30)));
    watcher.drain();
    assert!(!ready(Duration::ZERO));
    approvals.decide(&id, &by(Ruling::Approved, "a")).unwrap();
    watcher.wait(Duration::from_secs(30)).unwrap();
    assert!(!ready(Duration::ZERO));
    let blind = Watcher::of_names(Path::new("/nowhere"));
    assert!(blind.handle().is_none() && blind.pause().is_some());
    blind.wait(Duration::ZERO).unwrap();
}
