//! The folder: the first decision wins, and files that are not authentic do not count.

mod used_approvals;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

use std::time::{Duration, SystemTime};

use super::*;
use crate::approvals::{AskOutcome, new_id};

const KEY: [u8; 32] = [7; 32];
pub(in super::super) const NOW: i64 = 1_774_016_531_804_012;

pub(in super::super) fn desk() -> (TempDir, ApprovalStore) {
    let folder = tempfile::tempdir().unwrap();
    let approvals = again(&folder);
    (folder, approvals)
}

pub(in super::super) fn again(folder: &TempDir) -> ApprovalStore {
    ApprovalStore::open(&folder.path().join("approvals"), &ProjectKey::new(KEY)).unwrap()
}

pub(in super::super) fn asked(approvals: &ApprovalStore) -> ApprovalRecord {
    let request = ApprovalRecord {
        id: new_id().unwrap(),
        created_us: NOW,
        expires_us: NOW + 60_000_000,
        server_id: "files".to_owned(),
        tool: "rm".to_owned(),
        call_hash: "abc".to_owned(),
        principal: "agent".to_owned(),
        ..ApprovalRecord::default()
    };
    approvals.publish_request(&request).unwrap();
    request
}

/// Makes a request this many seconds old by the clock of the file system.
pub(in super::super) fn set_age(approvals: &ApprovalStore, request: &ApprovalRecord, secs: u64) {
    let folder = approvals.existing_call(request).unwrap().unwrap();
    let entry = fs::File::options().write(true).open(folder.path_of(&request.id)).unwrap();
    entry.set_modified(SystemTime::now() - Duration::from_secs(secs)).unwrap();
}

fn by(ruling: ApprovalOutcome, by: &str) -> ApprovalDecision {
    ApprovalDecision { ruling, by: by.to_owned(), at_us: NOW + 1, reason: None }
}

#[test]
fn the_first_decision_wins_and_the_second_is_told_of_it() {
    let (_folder, approvals) = desk();
    let id = asked(&approvals).id;
    assert_eq!(approvals.decision(&id).unwrap(), None);
    approvals.decide(&id, &by(ApprovalOutcome::Denied, "alice")).unwrap();
    let error = approvals.decide(&id, &by(ApprovalOutcome::Approved, "bob")).unwrap_err();
    assert_eq!(error.to_string(), format!("`{id}` was already denied by alice"));
    assert_eq!(approvals.decision(&id).unwrap(), Some(by(ApprovalOutcome::Denied, "alice")));
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
                let approvals = ApprovalStore::open(&path, &ProjectKey::new(KEY)).unwrap();
                approvals.decide(&id, &by(ApprovalOutcome::Approved, name)).is_ok()
            })
        };
        let threads = ["a", "b", "c", "d"].map(one);
        let won: usize = threads.map(|thread| usize::from(thread.join().unwrap())).iter().sum();
        assert_eq!(won, 1);
    }
    assert_eq!(fs::read_dir(approvals.path()).unwrap().count(), 101, "no other file stays");
}

#[test]
fn what_is_too_late_unknown_or_no_name_is_refused() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    let late =
        ApprovalDecision { at_us: request.expires_us, ..by(ApprovalOutcome::Approved, "alice") };
    assert!(matches!(approvals.decide(&request.id, &late), Err(ApprovalError::Expired { .. })));
    for id in ["ap_unknown", "../x", "a\0b", "", ".", &"x".repeat(300)] {
        let decided = approvals.decide(id, &by(ApprovalOutcome::Approved, "alice"));
        assert!(matches!(decided, Err(ApprovalError::Unknown { .. })), "{id:?}");
        assert!(approvals.use_approval(id).is_err() || id == "ap_unknown");
        let hostile = ApprovalRecord { id: id.to_owned(), ..request.clone() };
        assert!(approvals.publish_request(&hostile).is_err() || id == "ap_unknown");
    }
    let expired =
        ApprovalDecision { at_us: request.expires_us, ..by(ApprovalOutcome::Expired, "shim") };
    approvals.decide(&request.id, &expired).unwrap();
    assert!(matches!(approvals.publish_request(&request), Err(ApprovalError::Exists { .. })));
}

#[test]
fn only_those_who_are_named_decide_and_nobody_about_their_own() {
    let (_folder, approvals) = desk();
    let named = ApprovalRecord {
        id: new_id().unwrap(),
        approvers: vec!["alice".to_owned(), "agent".to_owned()],
        ..asked(&approvals)
    };
    approvals.publish_request(&named).unwrap();
    let error = approvals.decide(&named.id, &by(ApprovalOutcome::Approved, "bob")).unwrap_err();
    let message = format!("`bob` may not decide about `{}`, only alice, agent", named.id);
    assert_eq!(error.to_string(), message);
    let own = approvals.decide(&named.id, &by(ApprovalOutcome::Approved, "agent")).unwrap_err();
    let words = "was requested by `agent`, who may not approve their own call; alice may";
    assert_eq!(own.to_string(), format!("`{}` {words}", named.id));
    approvals.decide(&named.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
}

#[test]
fn whoever_is_the_only_approver_of_their_own_call_is_told_the_way_out() {
    let (_folder, approvals) = desk();
    let own = ApprovalRecord {
        id: new_id().unwrap(),
        approvers: vec!["agent".to_owned()],
        ..asked(&approvals)
    };
    approvals.publish_request(&own).unwrap();
    let error = approvals.decide(&own.id, &by(ApprovalOutcome::Approved, "agent")).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("no other approver") && message.contains("principal: { name:"),
        "{message}"
    );
}

#[test]
fn an_approval_that_nobody_waited_for_lets_the_same_call_through_once() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    assert_eq!(approvals.find_pending(&request, NOW).unwrap().unwrap().id, request.id);
    assert!(approvals.find_earlier_approval(&request, NOW).unwrap().is_none());
    approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    for other in [
        ApprovalRecord { call_hash: "abd".to_owned(), ..request.clone() },
        ApprovalRecord { server_id: "other".to_owned(), ..request.clone() },
        ApprovalRecord { principal: "other".to_owned(), ..request.clone() },
        ApprovalRecord { folder: "/other".to_owned(), ..request.clone() },
        ApprovalRecord { policy: "/other/tapegate.yaml".to_owned(), ..request.clone() },
    ] {
        assert!(approvals.find_earlier_approval(&other, NOW).unwrap().is_none());
    }
    assert!(approvals.find_earlier_approval(&request, request.expires_us).unwrap().is_none());
    let (id, decided) = approvals.find_earlier_approval(&request, NOW + 5).unwrap().unwrap();
    assert_eq!((id, decided.by.as_str()), (request.id.clone(), "alice"));
    assert!(approvals.find_earlier_approval(&request, NOW + 5).unwrap().is_none());
    assert!(!approvals.use_approval(&request.id).unwrap());
    assert!(approvals.find_pending(&request, NOW).unwrap().is_none());
}

#[test]
fn a_call_that_was_denied_or_let_through_is_not_let_through_again() {
    let (_folder, approvals) = desk();
    let (denied, used) = (asked(&approvals), asked(&approvals));
    approvals.decide(&denied.id, &by(ApprovalOutcome::Denied, "alice")).unwrap();
    approvals.decide(&used.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    assert!(approvals.use_approval(&used.id).unwrap());
    assert!(approvals.find_earlier_approval(&used, NOW + 5).unwrap().is_none());
    assert!(approvals.entries().unwrap().iter().any(|entry| entry.used));
}

#[test]
fn requests_are_listed_oldest_first_and_spoiled_files_are_named() {
    let (_folder, approvals) = desk();
    let (one, two) = (asked(&approvals), asked(&approvals));
    let old = ApprovalRecord { id: new_id().unwrap(), created_us: NOW - 9, ..one.clone() };
    approvals.publish_request(&old).unwrap();
    fs::write(approvals.path().join("ap_spoiled.request.json"), "{\"id\":").unwrap();
    let text = fs::read(approvals.path().join(format!("{}.request.json", one.id))).unwrap();
    fs::write(approvals.path().join("ap_copied.request.json"), text).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", approvals.path().join("ap_link.request.json"))
        .unwrap();
    fs::write(approvals.path().join("notes.txt"), "").unwrap();
    approvals.decide(&two.id, &by(ApprovalOutcome::Denied, "alice")).unwrap();
    let listing = approvals.entries().unwrap();
    let mut refused: Vec<String> =
        approvals.take_refused().into_iter().map(|file| file.name).collect();
    refused.sort();
    let names = ["ap_copied", "ap_link", "ap_spoiled"].map(|id| format!("{id}.request.json"));
    assert_eq!((listing.len(), &refused[..]), (3, &names[..]));
    assert!(approvals.entries().is_ok() && approvals.take_refused().is_empty(), "told once");
    assert_eq!(listing[0].request, old);
    let pending: Vec<String> =
        approvals.pending(NOW).unwrap().into_iter().map(|request| request.id).collect();
    assert_eq!(pending, [old.id.clone(), one.id.clone()]);
    // The clock of the reader does not matter.
    assert_eq!(approvals.pending(NOW + 3_600_000_000).unwrap().len(), 2);
    for request in [&old, &one] {
        set_age(&approvals, request, 61);
    }
    assert!(approvals.pending(NOW).unwrap().is_empty());
}

#[test]
fn what_expired_long_ago_is_cleaned_away_with_what_belongs_to_it() {
    let (_folder, approvals) = desk();
    let (old, decided) = (asked(&approvals), asked(&approvals));
    approvals.decide(&decided.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    approvals.use_approval(&decided.id).unwrap();
    // The age of a file comes from the file system, so the test's clock is far in the future.
    let later = 10_000_000_000_000_000;
    let fresh = ApprovalRecord { id: new_id().unwrap(), expires_us: later, ..old.clone() };
    approvals.publish_request(&fresh).unwrap();
    fs::write(approvals.path().join("ap_orphan.decision.json"), "{}").unwrap();
    fs::write(approvals.path().join(".tmp-1-1-x"), "{}").unwrap();
    let day = Duration::from_secs(86_400);
    assert_eq!(approvals.remove_expired(NOW + 60_000_000, day).unwrap(), 0);
    assert_eq!(approvals.remove_expired(later, Duration::from_secs(30)).unwrap(), 2);
    let left: Vec<String> = fs::read_dir(approvals.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "calls" && name != "clock")
        .collect();
    assert_eq!(left, [format!("{}.request.json", fresh.id)]);
    assert_eq!(approvals.find_pending(&old, NOW).unwrap().unwrap().id, fresh.id);
    let calls = fs::read_dir(approvals.path().join("calls")).unwrap();
    let indexed: usize =
        calls.map(|call| fs::read_dir(call.unwrap().path()).unwrap().count()).sum();
    assert_eq!(indexed, 1);
    let now_us = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let now_us = now_us.as_micros() as i64;
    assert_eq!(approvals.remove_expired_hourly(now_us, Duration::ZERO).unwrap(), 0);
    fs::write(approvals.path().join("refused-x"), "{}").unwrap();
    approvals.remove_expired_hourly(now_us + 5_000_000, Duration::ZERO).unwrap();
    assert!(approvals.path().join("refused-x").exists(), "not again within the hour");
    approvals.remove_expired_hourly(now_us + 3_700_000_000, Duration::ZERO).unwrap();
    assert!(!approvals.path().join("refused-x").exists());
}

#[test]
fn the_folder_and_what_lies_in_it_is_private() {
    let (folder, approvals) = desk();
    let id = asked(&approvals).id;
    approvals.decide(&id, &by(ApprovalOutcome::Approved, "a")).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(approvals.path()), 0o700);
    for entry in fs::read_dir(approvals.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 });
    }
    fs::set_permissions(approvals.path(), fs::Permissions::from_mode(0o777)).unwrap();
    again(&folder);
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
    approvals.decide(&id, &by(ApprovalOutcome::Approved, "a")).unwrap();
    watcher.wait(Duration::from_secs(30)).unwrap();
    assert!(!ready(Duration::ZERO));
    let blind = FolderWatcher::for_names(Path::new("/nowhere"));
    assert!(blind.handle().is_none() && blind.pause().is_some());
    blind.wait(Duration::ZERO).unwrap();
}

/// Checks that a file about `request` is set aside for this reason and reported once.
#[track_caller]
fn refuses(approvals: &ApprovalStore, request: &ApprovalRecord, reason: &str) {
    let result = approvals.decision(&request.id);
    assert!(
        matches!(result, Ok(None) | Err(ApprovalError::Unknown { .. })),
        "it counts: {result:?}"
    );
    let refused = approvals.take_refused();
    assert_eq!(refused.len(), 1, "{reason}");
    assert!(refused[0].reason.contains(reason), "{} is not {reason}", refused[0].reason);
    assert!(refused[0].kept.exists());
    assert_eq!(refused[0].id, request.id);
    assert!(approvals.take_refused().is_empty(), "told once");
}

#[test]
fn a_decision_that_was_forged_edited_copied_or_mistyped_does_not_count_and_is_reported_once() {
    let (folder, approvals) = desk();
    let decision =
        |request: &ApprovalRecord| approvals.path().join(format!("{}{DECISION}", request.id));
    // Written by hand, in an earlier format.
    let request = asked(&approvals);
    fs::write(decision(&request), r#"{"ruling":"approved","by":"alice","at_us":1}"#).unwrap();
    refuses(&approvals, &request, "it is not a decision");
    let whole = format!(
        r#"{{"id":"{}","request":"{}","ruling":"approved","by":"alice","at_us":{NOW},"grant":"once","nonce":"x","mac":"{}"}}"#,
        request.id,
        request.digest(),
        "0".repeat(64)
    );
    fs::write(decision(&request), format!("{whole}\n")).unwrap();
    refuses(&approvals, &request, "authentication code is wrong");
    // Sealed with the key of another project.
    let stranger =
        ApprovalStore::open(&folder.path().join("other"), &ProjectKey::new([8; 32])).unwrap();
    stranger.publish_request(&request).unwrap();
    stranger.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    fs::copy(stranger.path().join(format!("{}{DECISION}", request.id)), decision(&request))
        .unwrap();
    refuses(&approvals, &request, "authentication code is wrong");
    // Copied from another request, and copied with its text changed.
    let other = asked(&approvals);
    approvals.decide(&other.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    fs::copy(decision(&other), decision(&request)).unwrap();
    refuses(&approvals, &request, "authentication code is wrong");
    let denied = asked(&approvals);
    approvals.decide(&denied.id, &by(ApprovalOutcome::Denied, "alice")).unwrap();
    let text = fs::read_to_string(decision(&denied)).unwrap();
    fs::write(decision(&denied), text.replace("denied", "approved")).unwrap();
    refuses(&approvals, &denied, "authentication code is wrong");
    for (wrong, reason) in [("", "not a decision"), ("[]", "not a decision"), ("null", "not a")] {
        fs::write(decision(&request), wrong).unwrap();
        refuses(&approvals, &request, reason);
    }
    std::os::unix::fs::symlink(decision(&other), decision(&request)).unwrap();
    refuses(&approvals, &request, "not a regular file");
    fs::create_dir(decision(&request)).unwrap();
    refuses(&approvals, &request, "not a regular file");
    // A genuine decision still counts.
    approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    assert!(approvals.decision(&request.id).unwrap().is_some());
}

#[test]
fn an_authentic_decision_of_somebody_who_may_not_or_for_another_call_does_not_count() {
    let (_folder, approvals) = desk();
    let named = ApprovalRecord {
        id: new_id().unwrap(),
        approvers: vec!["alice".to_owned(), "agent".to_owned()],
        ..asked(&approvals)
    };
    approvals.publish_request(&named).unwrap();
    let write = |request: &ApprovalRecord, decided: &ApprovalDecision| {
        let (decided, digest) = (decided.clone(), request.digest());
        let file = DecisionFile { decided, request: digest, used: false };
        let unfinished = text::decision_text(&request.id, "n", &file);
        let file = approvals.sealer.seal(DECISION_KIND, &request.id, unfinished);
        fs::write(approvals.path().join(format!("{}{DECISION}", request.id)), file).unwrap();
    };
    write(&named, &by(ApprovalOutcome::Approved, "bob"));
    refuses(&approvals, &named, "not on the list");
    write(&named, &by(ApprovalOutcome::Approved, "agent"));
    refuses(&approvals, &named, "is the caller");
    let other = ApprovalRecord { call_hash: "other".to_owned(), ..named.clone() };
    write(&other, &by(ApprovalOutcome::Approved, "alice"));
    refuses(&approvals, &named, "for another call");
    // The approver's clock may be off.
    for shift_us in [-3_600_000_000, 3_600_000_000] {
        write(
            &named,
            &ApprovalDecision { at_us: NOW + shift_us, ..by(ApprovalOutcome::Approved, "alice") },
        );
        assert!(approvals.decision(&named.id).unwrap().is_some(), "{shift_us}");
        assert_eq!(approvals.take_refused(), []);
    }
}

#[test]
fn an_edited_request_is_not_shown_and_cannot_be_decided() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    let path = approvals.path().join(format!("{}{REQUEST}", request.id));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"rm\"", "\"ls\"")).unwrap();
    assert!(approvals.pending(NOW).unwrap().is_empty());
    assert!(approvals.take_refused()[0].reason.contains("authentication code is wrong"));
    let decided = approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice"));
    assert!(matches!(decided, Err(ApprovalError::Unknown { .. })));
    // The waiting process still has the request as it asked for it.
    assert_eq!(approvals.decision_for(&request).unwrap(), None);
}

#[test]
fn repeats_of_a_call_are_one_request_that_lasts_as_long_as_the_last_and_counts_its_callers() {
    let (_folder, approvals) = desk();
    let first = ApprovalRecord { id: new_id().unwrap(), ..asked(&desk().1) };
    assert!(matches!(approvals.publish_request_once(&first, None).unwrap(), AskOutcome::New(_)));
    assert_eq!(approvals.remove_waiter(&first.id, NOW + 7).unwrap(), 0);
    let later = NOW + 30_000_000;
    let again = ApprovalRecord {
        id: new_id().unwrap(),
        created_us: later,
        expires_us: later + 60_000_000,
        ..first.clone()
    };
    let AskOutcome::Joined(joined) = approvals.publish_request_once(&again, None).unwrap() else {
        panic!("not joined")
    };
    assert_eq!((&joined.id, joined.call_count, joined.waiting), (&first.id, 2, 1));
    assert_eq!((joined.expires_us, joined.left_us), (again.expires_us, Some(NOW + 7)));
    assert_eq!(approvals.pending(NOW).unwrap(), [joined]);
    // A decision about the original request also counts for the joined one.
    approvals.decide(&first.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    assert!(approvals.decision_for(&first).unwrap().is_some());
    for other in [
        ApprovalRecord { call_hash: "abd".to_owned(), ..again.clone() },
        ApprovalRecord { approvers: vec!["carol".to_owned()], ..again.clone() },
        ApprovalRecord { workflow: "other".to_owned(), ..again.clone() },
        again,
    ] {
        let other = ApprovalRecord { id: new_id().unwrap(), ..other };
        assert!(matches!(
            approvals.publish_request_once(&other, None).unwrap(),
            AskOutcome::New(_)
        ));
    }
}

#[test]
fn a_late_approval_counts_only_if_its_approver_may_still_approve() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    let stricter = ApprovalRecord { approvers: vec!["carol".to_owned()], ..request.clone() };
    assert!(approvals.find_earlier_approval(&stricter, NOW).unwrap().is_none());
    assert!(approvals.find_earlier_approval(&request, NOW).unwrap().is_some());
}

#[test]
fn conversations_that_both_wait_are_two_requests_and_one_does_not_take_the_other_s_approval() {
    let (_folder, approvals) = desk();
    let call = |connection: &str| ApprovalRecord {
        id: new_id().unwrap(),
        connection_id: connection.to_owned(),
        pid: std::process::id(),
        ..asked(&desk().1)
    };
    let one = approvals.publish_request_once(&call("one"), None).unwrap().into_request();
    let AskOutcome::New(two) = approvals.publish_request_once(&call("two"), None).unwrap() else {
        panic!("joined")
    };
    approvals.decide(&one.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    assert!(approvals.find_earlier_approval(&two, NOW + 2).unwrap().is_none());
    // The caller has given up: any caller that repeats the call may now use the approval.
    approvals.remove_waiter(&one.id, NOW + 3).unwrap();
    assert_eq!(approvals.find_earlier_approval(&two, NOW + 4).unwrap().unwrap().0, one.id);
    // The process is gone: another connection takes over its request.
    let dead = ApprovalRecord { pid: i32::MAX as u32, ..call("dead") };
    let dead = ApprovalRecord { call_hash: "other".to_owned(), ..dead };
    approvals.publish_request_once(&dead, None).unwrap();
    let new = ApprovalRecord { call_hash: "other".to_owned(), ..call("new") };
    let AskOutcome::Joined(joined) = approvals.publish_request_once(&new, None).unwrap() else {
        panic!("not joined")
    };
    let names = (joined.id.as_str(), joined.connection_id.as_str());
    assert_eq!((names, joined.call_count, joined.waiting), ((dead.id.as_str(), "new"), 2, 1));
}

#[test]
fn a_call_is_found_without_reading_the_requests_about_other_calls() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    for number in 0..50 {
        fs::write(approvals.path().join(format!("ap_other{number}{REQUEST}")), "{").unwrap();
    }
    assert!(approvals.find_earlier_approval(&request, NOW).unwrap().is_some());
    assert!(approvals.find_pending(&request, NOW).unwrap().is_none());
    assert_eq!(approvals.take_refused(), [], "none of them was looked at");
}
