//! Notifications on a desktop: what is shown, and whose button counts.

use std::fs;

use serde_json::Value;
use tapegate_store::approvals::ApprovalOutcome;

use super::super::super::setup::{answer, call, call_with};
use super::desktop_session::DesktopSession;
use super::{HubProcess, policy, start_accepted_with, text};

const BUTTONS: &str = "  c: { type: desktop, approver: ann, approve_button: true }\n";

fn hub_on(session: &DesktopSession, workflow: &str, channel: &str) -> HubProcess {
    let address = session.address();
    start_accepted_with(&policy(workflow, channel), &[("DBUS_SESSION_BUS_ADDRESS", &address)])
}

#[test]
fn without_the_key_a_notification_has_no_button_that_approves() {
    let session = DesktopSession::start();
    let hub = hub_on(&session, "channels: [c]", "  c: { type: desktop }\n");
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call_with(1, "ask", r#"{"path":"/a"}"#).as_bytes());
    session.shows("Approve s ask?", 1);
    session.displays(1);
    session.press("Approve", "Approve s ask?");
    session.press("Deny", "Approve s ask?");
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    let shown = session.shown();
    assert!(shown.contains("Approve: tapegate approvals approve ap_"), "{shown}");
}

#[test]
fn the_same_signal_from_another_program_decides_nothing() {
    let session = DesktopSession::start();
    let hub = hub_on(&session, "channels: [c]", BUTTONS);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    session.displays(1);
    session.forge_press("approve");
    // Signals arrive in order, so an approval that counted would have come before this.
    session.press("Deny", "Approve s ask?");
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    session.displays(0);
}

#[test]
fn a_notification_is_shown_again_by_another_daemon_and_another_bus() {
    let mut session = DesktopSession::start();
    let hub = hub_on(&session, "channels: [c]", BUTTONS);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    session.shows("Approve s ask?", 1);
    session.stop_daemon();
    hub.says("channel `c` does not work: no notification daemon");
    let health = hub.channels();
    assert!(text(&health[0]["fault"]).contains("no notification daemon"), "{health}");
    session.start_daemon();
    hub.says("channel `c` works again");
    session.shows("Approve s ask?", 2);
    session.stop_bus();
    hub.says("cannot connect to the session bus");
    session.stop_daemon();
    session.start_bus();
    session.start_daemon();
    session.shows("Approve s ask?", 3);
    session.displays(1);
    session.press("Approve", "Approve s ask?");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}

#[test]
fn a_desktop_that_is_not_there_is_reported_before_it_is_needed() {
    let mut session = DesktopSession::without_bus();
    let hub = hub_on(&session, "channels: [c]", BUTTONS);
    hub.says("channel `c` does not work: cannot connect to the session bus");
    assert!(text(&hub.channels()[0]["fault"]).contains("session bus"));
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    hub.pending(1);
    session.start_bus();
    session.start_daemon();
    hub.says("channel `c` works again");
    session.displays(1);
    assert_eq!(hub.channels()[0]["fault"], Value::Null);
    session.press("Approve", "Approve s ask?");
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
}

#[test]
fn a_notification_that_was_closed_decides_nothing() {
    let session = DesktopSession::start();
    let hub = hub_on(&session, "channels: [c]", BUTTONS);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    run.send(call(1, "ask").as_bytes());
    session.displays(1);
    session.close_all();
    session.displays(0);
    let id = hub.pending(1).remove(0);
    let path = format!("POST /approvals/{id}/approve");
    assert_eq!(hub.ask(&path, r#"{"by":"bob"}"#).status, 200);
    assert_eq!(answer(&run, 1)["result"]["for"], 1);
    assert_eq!(hub.ruling(&id), Some((ApprovalOutcome::Approved, "bob".to_owned())));
}

#[test]
fn texts_of_a_call_are_shown_and_not_interpreted() {
    let session = DesktopSession::start();
    let hub = hub_on(&session, "channels: [c]", BUTTONS);
    let mut run = hub.shim(&["log=log", "serve"]).start();
    let hostile = r#"{"a":"<b>bold</b> <img src='x'/> &amp; \u001b[2J \u202e","z":"%s %n #Approve (Approve s ask?)"}"#;
    run.send(call_with(1, "ask", hostile).as_bytes());
    session.displays(1);
    let shown = session.shown();
    assert!(
        shown.contains("&lt;b&gt;bold&lt;/b&gt; &lt;img") && shown.contains("&amp;amp;"),
        "{shown}"
    );
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    session.press("Deny", "Approve s ask?");
    assert_eq!(answer(&run, 1)["error"]["code"], -32007);
    let log = fs::read_to_string(hub.state().join("activity.jsonl")).unwrap();
    assert!(log.contains("\"decided_by\":\"ann\""), "{log}");
}
