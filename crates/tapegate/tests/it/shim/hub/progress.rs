//! What a caller hears while its call waits at a hub.

use serde_json::Value;

use super::super::setup::rules;
use super::HubProcess;
use crate::support::{approvals_of, wait_until};

#[test]
fn progress_of_a_call_that_waits_at_a_hub_names_the_workflow() {
    let hub = HubProcess::start_deciding(&rules(&[("ask", "approve")]));
    let mut run = hub.shim(&["serve"]).start();
    run.send(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"ask\",\"_meta\":{\"progressToken\":\"mine\"}}}\n");
    wait_until("a request", || approvals_of(&hub.state()).pending(0).unwrap().len() == 1);
    let told: Value = serde_json::from_str(&run.line_with("notifications/progress")).unwrap();
    assert_eq!(told["params"]["progressToken"], "mine", "{told}");
    assert!(told["params"]["message"].as_str().unwrap().contains("`people`"), "{told}");
}
