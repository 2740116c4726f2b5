//! An approval that was given for one call serves one call.

use super::*;

#[test]
fn an_approval_whose_mark_was_removed_stays_used_up() {
    let (_folder, approvals) = desk();
    let request = asked(&approvals);
    approvals.decide(&request.id, &by(ApprovalOutcome::Approved, "alice")).unwrap();
    assert!(approvals.use_approval(&request.id).unwrap());
    let unmark = || fs::remove_file(approvals.path().join(format!("{}.used", request.id))).unwrap();
    unmark();
    assert!(approvals.entry(&request.id).unwrap().used);
    assert!(approvals.find_earlier_approval(&request, NOW + 5).unwrap().is_none());
    assert!(!approvals.use_approval(&request.id).unwrap());
    // An edited decision does not count again either; the attempt to use it left a mark.
    unmark();
    let path = approvals.path().join(format!("{}.decision.json", request.id));
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"used\"", "\"once\"")).unwrap();
    assert!(approvals.find_earlier_approval(&request, NOW + 5).unwrap().is_none());
    assert_eq!(approvals.take_refused().len(), 1);
}
