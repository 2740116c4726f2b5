//! Batches with very many elements, and with elements that are not messages.

use tapegate_policy::inspect::TransportKind;
use tapegate_policy::model::Profile;

use crate::gate_harness::{GateHarness, call, policy, refused, shown};

const POLICY: &str = "schema: 1\ngovernance: {defaults: {action: forward}}\n";

fn http(profile: Profile) -> GateHarness {
    GateHarness::over(TransportKind::Http, Some(policy(POLICY)), profile)
}

#[test]
fn a_batch_of_too_many_elements_is_refused_with_one_line_in_the_log() {
    for element in ["{}", "1", &call("ls")] {
        let batch = |count: usize| format!("[{}]", vec![element; count].join(","));
        let mut harness = http(Profile::Production);
        let refusal = refused(harness.client(&batch(1001)));
        assert!(refusal.message.contains("more than 1000 elements"), "{refusal:?}");
        assert_eq!(harness.noted().len(), 1, "{element}");
    }
    let calls = format!("[{}]", vec![call("ls"); 1000].join(","));
    assert_eq!(shown(&http(Profile::Production).client(&calls)), "forward");
}

#[test]
fn elements_that_are_not_messages_are_one_line_with_their_number() {
    let batch = format!("[{},1,{{}},[]]", call("ls"));
    for (profile, verdict, word) in [
        (Profile::Production, "refuse -32600", "drop"),
        (Profile::Development, "forward", "WOULD_DROP"),
    ] {
        let mut harness = http(profile);
        assert_eq!(shown(&harness.client(&batch)), verdict);
        let notes = harness.memory.notes.lock().unwrap();
        let about: Vec<_> = notes.iter().filter(|note| note.decision().as_str() == word).collect();
        let [note] = about.as_slice() else { panic!("{notes:#?}") };
        assert!(
            note.event.policy_reason.as_deref().unwrap().ends_with("3 elements of the batch"),
            "{note:?}"
        );
    }
}

#[test]
fn a_refused_batch_is_answered_for_its_first_element_that_is_denied() {
    let denies = "schema: 1\ngovernance: {defaults: {action: deny}}\n";
    let denied = call("rm");
    for (batch, verdict) in [
        (format!("[7,{denied},{{}}]"), "refuse -32600"),
        (format!("[{denied},7]"), "refuse -32014"),
    ] {
        let mut harness =
            GateHarness::over(TransportKind::Http, Some(policy(denies)), Profile::Production);
        assert_eq!(shown(&harness.client(&batch)), verdict, "{batch}");
    }
}
