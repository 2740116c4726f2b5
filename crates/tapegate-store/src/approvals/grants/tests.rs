//! Grants: what they cover, and how they end.

use proptest::prelude::*;
use tapegate_core::grant_pattern::ArgumentRange;

use super::*;
use crate::approvals::folder::tests::{NOW, asked, desk};
use crate::approvals::grant_text;

const HOUR: i64 = 3_600_000_000;

fn grant_for(request: &ApprovalRecord) -> ApprovalGrant {
    ApprovalGrant {
        id: String::new(),
        request_id: request.id.clone(),
        created_us: NOW,
        expires_us: NOW + HOUR,
        by: "ann".to_owned(),
        server_id: request.server_id.clone(),
        method: request.method.clone(),
        tool: request.tool.clone(),
        workflow: request.workflow.clone(),
        folder: request.folder.clone(),
        policy: request.policy.clone(),
        session: None,
        coverage: GrantCoverage::SameCall(request.call_hash.clone()),
        revoked: None,
    }
}

fn never(_: &[GrantPattern], _: &str) -> bool {
    false
}

#[test]
fn a_grant_covers_the_same_call_until_it_ends_and_nothing_else() {
    let (_folder, approvals) = desk();
    let request = ApprovalRecord { call_hash: "ff".to_owned(), ..asked(&approvals) };
    let grant = approvals.create_grant(grant_for(&request)).unwrap();
    let found = |call: &ApprovalRecord, at_us: i64| {
        approvals.find_grant(call, at_us, never).unwrap().map(|grant| grant.id)
    };
    assert_eq!(found(&request, NOW), Some(grant.id.clone()));
    assert_eq!(found(&request, NOW + HOUR - 1), Some(grant.id.clone()));
    assert_eq!((found(&request, NOW + HOUR), found(&request, NOW - 1)), (None, None));
    let other = |change: fn(&mut ApprovalRecord)| {
        let mut call = request.clone();
        change(&mut call);
        call
    };
    for call in [
        other(|call| call.call_hash.push('0')),
        other(|call| call.server_id.push('0')),
        other(|call| call.tool.push('0')),
        other(|call| call.method.push('0')),
        other(|call| call.workflow.push('0')),
        other(|call| call.folder.push('0')),
        other(|call| call.policy.push('0')),
        other(|call| call.approvers = vec!["bob".to_owned()]),
    ] {
        assert_eq!(found(&call, NOW), None, "{call:?}");
    }
    // Another caller of the project may use it, unless it is the giver of a workflow with a list.
    let shared = other(|call| call.principal = "other".to_owned());
    assert!(found(&shared, NOW).is_some());
    let own = ApprovalRecord {
        approvers: vec!["ann".to_owned()],
        principal: "ann".to_owned(),
        ..request.clone()
    };
    assert_eq!(found(&own, NOW), None);
}

#[test]
fn a_session_s_grant_is_for_that_session() {
    let (_folder, approvals) = desk();
    let request = ApprovalRecord {
        call_hash: "ff".to_owned(),
        connection_id: "c1".to_owned(),
        ..asked(&approvals)
    };
    let session = Some("c1".to_owned());
    approvals.create_grant(ApprovalGrant { session, ..grant_for(&request) }).unwrap();
    assert!(approvals.find_grant(&request, NOW, never).unwrap().is_some());
    let other = ApprovalRecord { connection_id: "c2".to_owned(), ..request };
    assert!(approvals.find_grant(&other, NOW, never).unwrap().is_none());
}

#[test]
fn of_several_revocations_one_counts_and_a_revoked_grant_stays_revoked() {
    let (_folder, approvals) = desk();
    let request = ApprovalRecord { call_hash: "ff".to_owned(), ..asked(&approvals) };
    let id = approvals.create_grant(grant_for(&request)).unwrap().id;
    let done = std::thread::scope(|scope| {
        let revoke = || approvals.revoke_grant(&id, "bob", NOW + 1).unwrap();
        let all: Vec<_> = (0..4).map(|_| scope.spawn(revoke)).collect();
        all.into_iter().filter(|_| true).map(|one| one.join().unwrap()).filter(|done| *done).count()
    });
    assert_eq!(done, 1);
    assert!(approvals.find_grant(&request, NOW + 2, never).unwrap().is_none());
    // Not even if the mark is removed.
    approvals.remove(&format!("{id}{REVOKED}"));
    assert_eq!(approvals.grants().unwrap()[0].state(NOW + 2), GrantState::Revoked);
    assert!(!approvals.revoke_grant(&id, "bob", NOW + 3).unwrap());
    assert!(matches!(
        approvals.revoke_grant("gr_none", "bob", NOW),
        Err(ApprovalError::Unknown { .. })
    ));
}

#[test]
fn a_grant_that_was_edited_or_copied_is_set_aside() {
    let (_folder, approvals) = desk();
    let request = ApprovalRecord { call_hash: "ff".to_owned(), ..asked(&approvals) };
    let grant = approvals.create_grant(grant_for(&request)).unwrap();
    let path = approvals.path().join(format!("{}{GRANT}", grant.id));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(approvals.path().join(format!("gr_other{GRANT}")), &text).unwrap();
    assert_eq!(approvals.grants().unwrap(), [grant]);
    std::fs::write(&path, text.replace("\"ff\"", "\"ee\"")).unwrap();
    assert_eq!(approvals.grants().unwrap(), []);
    assert_eq!(approvals.take_refused().len(), 2);
}

#[test]
fn grants_that_ended_long_ago_are_removed() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    let id = approvals.create_grant(grant_for(&request)).unwrap().id;
    approvals.revoke_grant(&id, "bob", NOW).unwrap();
    approvals.remove_old_grants(NOW + HOUR).unwrap();
    assert_eq!(approvals.grants().unwrap().len(), 1);
    approvals.remove_old_grants(NOW + HOUR + 1).unwrap();
    assert!(approvals.grants().unwrap().is_empty());
    assert!(!approvals.names().unwrap().iter().any(|name| name.ends_with(REVOKED)));
}

/// What can happen to a grant.
#[derive(Debug, Clone, Copy)]
enum GrantStep {
    Pass(i64),
    Revoke,
    Use,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_grant_that_has_ended_never_lets_a_call_pass_again(
        steps in prop::collection::vec(
            prop_oneof![
                (0..HOUR / 2).prop_map(GrantStep::Pass),
                Just(GrantStep::Revoke),
                Just(GrantStep::Use),
            ],
            1..12,
        ),
    ) {
        let (_folder, approvals) = desk();
        let request = ApprovalRecord { call_hash: "ff".to_owned(), ..asked(&approvals) };
        let id = approvals.create_grant(grant_for(&request)).unwrap().id;
        let (mut now_us, mut state) = (NOW, GrantState::Active);
        for step in steps {
            match step {
                GrantStep::Pass(us) => now_us += us,
                GrantStep::Revoke => {
                    let done = approvals.revoke_grant(&id, "bob", now_us).unwrap();
                    prop_assert_eq!(done, state == GrantState::Active && now_us < NOW + HOUR);
                    if done {
                        state = GrantState::Revoked;
                    }
                }
                GrantStep::Use => {
                    let found = approvals.find_grant(&request, now_us, never).unwrap();
                    prop_assert_eq!(found.is_some(), state == GrantState::Active && now_us < NOW + HOUR);
                }
            }
        }
    }

    #[test]
    fn a_grant_reads_back_as_it_was(
        texts in prop::array::uniform6(".{0,12}"),
        session in prop::option::of(".{0,8}"),
        pattern in prop::option::of((".{0,8}", ".{0,8}", any::<bool>())),
        revoked in prop::option::of((".{0,8}", any::<i64>())),
    ) {
        let [by, server_id, tool, folder, hash, workflow] = texts;
        let coverage = match pattern {
            None => GrantCoverage::SameCall(hash),
            Some((argument, text, is_folder)) => {
                let range = if is_folder { ArgumentRange::Under(text) } else { ArgumentRange::Matching(text) };
                GrantCoverage::Patterns { hash, patterns: vec![GrantPattern { argument, range }] }
            }
        };
        let grant = ApprovalGrant {
            by, server_id, tool, folder, workflow, session, coverage, revoked,
            ..grant_for(&ApprovalRecord::default())
        };
        let mut text = grant_text::write(&grant);
        text.push(b'}');
        prop_assert_eq!(grant_text::read(&text), Some(grant));
        for cut in 0..text.len() {
            prop_assert!(grant_text::read(&text[..cut]).is_none());
        }
    }
}
