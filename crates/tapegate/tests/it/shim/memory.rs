//! What a shim keeps in memory between calls.

use super::setup::{answer, call};
use crate::support::shim;

const CEDAR: &str = "\
schema: 1
governance: { defaults: { action: policy, policy_id: p } }
cedar: { inline: 'permit (principal, action, resource);' }
";

/// Regression test: the memory used by a burst of calls was never released, 16 MB in all; only that
/// used by loading was.
#[test]
fn a_shim_with_cedar_gives_back_what_traffic_has_brought_into_memory() {
    let mut run = shim(CEDAR, &["serve"]).start();
    run.send(call(0, "a").as_bytes());
    answer(&run, 0);
    let loaded = run.status_kb("RssFile:");
    run.until("what loading needs is given back", |run| run.status_kb("RssFile:") < loaded * 3 / 4);
    // The pages may be released between a burst and the measurement; then another burst follows.
    let idle = run.status_kb("RssFile:");
    let (mut busy, mut round) = (idle, 0);
    while busy <= idle * 5 / 4 {
        assert!(round < 1_000, "calls bring nothing into memory: {idle} KB, {busy} KB");
        let ids = round * 20 + 1..round * 20 + 21;
        let calls: String = ids.clone().map(|id| call(id, "a")).collect();
        run.send(calls.as_bytes());
        ids.for_each(|id| drop(answer(&run, id)));
        busy = run.status_kb("RssFile:");
        round += 1;
    }
    run.until("what traffic needs is given back", |run| run.status_kb("RssFile:") < busy * 9 / 10);
    run.end_of_input().exits(0);
}
