//! Each channel through the same ends of a call: approved, denied, timed out, cancelled, answered
//! twice, by two people at once, and with a hub or a shim that is killed in between. The calls are
//! those of the official SDK's client, to the reference server.

use std::io::Write;

use tapegate_store::approvals::ApprovalOutcome;

use super::channel_people::{
    ApiUsers, Buttons, ChannelPeople, ClientUser, Phone, Reactions, Terminal, request_id,
};
use super::desktop_session::DesktopSession;
use super::sdk_session::SdkSession;
use super::slack_fake::FakeSlack;
use super::{HubProcess, TOKEN, receiver, start_accepted_with};
use crate::http_peers::{WebServer, json as reply};
use crate::support::{approvals_of, wait_for, wait_until};

/// The tools whose calls come to each end.
const APPROVED: &str = "echo";
const DENIED: &str = "get-env";
const LATE: &str = "get-sum";
const CANCELLED: &str = "get-tiny-image";
const BOTH: &str = "get-resource-links";
const RESTARTED: &str = "get-annotated-message";
const ORPHANED: &str = "get-structured-content";

fn policy_for(people: &dyn ChannelPeople) -> String {
    let (channels, section) = match people.section().as_str() {
        "" => ("in_agent: [held-calls]", String::new()),
        section => ("channels: [c]", format!("channels:\n  c: {{ {section} }}\n")),
    };
    format!(
        "schema: 1\ngovernance:\n  defaults: {{ action: forward }}\n  rules:\n    \
         - {{ match: {LATE}, action: approve, approval: late }}\n    \
         - {{ match: '*', action: approve, approval: default }}\napproval:\n  \
         default: {{ {channels} }}\n  late: {{ {channels}, timeout: 5s }}\n{section}"
    )
}

fn outcome_of(hub: &HubProcess, tool: &str) -> Option<ApprovalOutcome> {
    Some(hub.ruling(&request_id(hub, tool))?.0)
}

fn through_every_end(people: &dyn ChannelPeople) {
    let environment = people.environment();
    let environment: Vec<(&str, &str)> =
        environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let hub = start_accepted_with(&policy_for(people), &environment);
    people.begin(&hub);
    let run = SdkSession::start(&hub, 1);
    decided(people, &hub, &run);
    not_decided(people, &hub, &run);
    at_once(people, &hub, &run);
    killed_shim(people, &hub);
    // A hub that is killed: the answer reaches the next one.
    run.call(7, RESTARTED);
    people.is_told(&run, RESTARTED);
    has_told(people, &hub, RESTARTED);
    let id = request_id(&hub, RESTARTED);
    let hub = hub.restart(&environment);
    assert!(run.answer(7)["error"]["code"].is_number());
    if !people.outlives_its_hub() {
        // The user is asked again, about the same request.
        let later = SdkSession::start(&hub, 2);
        later.call(8, RESTARTED);
        people.is_told(&later, RESTARTED);
        people.answers((&hub, &later), RESTARTED, true);
        assert!(later.answer(8)["result"].is_object());
        assert_eq!((run.sent(RESTARTED), later.sent(RESTARTED)), (0, 1));
        return;
    }
    people.is_told_again(RESTARTED);
    assert_ne!(people.answers((&hub, &run), RESTARTED, true), Some(false));
    wait_until("the decision", || hub.ruling(&id).is_some());
    assert_eq!(hub.ruling(&id).unwrap().0, ApprovalOutcome::Approved);
    // The caller is gone; the same call passes once.
    let later = SdkSession::start(&hub, 2);
    later.call(8, RESTARTED);
    assert!(later.answer(8)["result"].is_object());
    assert_eq!((run.sent(RESTARTED), later.sent(RESTARTED)), (0, 1));
}

/// Waits until the hub knows which message is about a call, if there is one.
fn has_told(people: &dyn ChannelPeople, hub: &HubProcess, tool: &str) {
    let id = request_id(hub, tool);
    if !people.section().is_empty() {
        hub.has_told("c", &id);
    }
}

/// The shim is killed while people are asked: nothing is sent, and people learn that it is over or
/// can still decide about the call, which is then sent once it is made again.
fn killed_shim(people: &dyn ChannelPeople, hub: &HubProcess) {
    let run = SdkSession::start(hub, 3);
    run.call(6, ORPHANED);
    people.is_told(&run, ORPHANED);
    has_told(people, hub, ORPHANED);
    run.kill_shim();
    run.answer(6);
    assert_eq!(run.sent(ORPHANED), 0);
    if !people.outlives_its_hub() {
        return;
    }
    let counts = people.answers((hub, &run), ORPHANED, true);
    let id = request_id(hub, ORPHANED);
    wait_until("the end of the request", || hub.ruling(&id).is_some());
    assert_eq!(
        counts.unwrap_or(true),
        outcome_of(hub, ORPHANED) == Some(ApprovalOutcome::Approved)
    );
    // The hub may not know yet that the caller is gone. Then the next caller has a request of its own.
    let later = SdkSession::start(hub, 4);
    later.call(9, ORPHANED);
    let next = wait_for("an answer or another request", || {
        let mut pending = approvals_of(&hub.state()).pending(0).unwrap().into_iter();
        let other = pending.find(|request| request.tool == ORPHANED && request.id != id);
        later.answered(9).map(|_| None).or(other.map(|request| Some(request.id)))
    });
    if let Some(next) = next {
        assert_eq!(later.sent(ORPHANED), 0);
        assert_eq!(
            hub.ask(&format!("POST /approvals/{next}/approve"), r#"{"by":"bob"}"#).status,
            200
        );
    }
    assert!(later.answer(9)["result"].is_object());
    assert_eq!((run.sent(ORPHANED), later.sent(ORPHANED)), (0, 1));
}

/// Approved, denied, and answered twice.
fn decided(people: &dyn ChannelPeople, hub: &HubProcess, run: &SdkSession) {
    for (id, tool, approve) in [(1, APPROVED, true), (2, DENIED, false)] {
        run.call(id, tool);
        people.is_told(run, tool);
        has_told(people, hub, tool);
        assert_ne!(people.answers((hub, run), tool, approve), Some(false));
        let got = run.answer(id);
        assert_eq!(got["result"].is_object(), approve, "{got}");
        people.is_concluded(hub, tool, if approve { "approved" } else { "denied" });
        // Too late, and the other way round.
        assert_ne!(people.answers((hub, run), tool, !approve), Some(true));
    }
    assert_eq!(outcome_of(hub, APPROVED), Some(ApprovalOutcome::Approved));
    assert_eq!(outcome_of(hub, DENIED), Some(ApprovalOutcome::Denied));
    assert_eq!((run.sent(APPROVED), run.sent(DENIED)), (1, 0));
}

/// Timed out, and cancelled.
fn not_decided(people: &dyn ChannelPeople, hub: &HubProcess, run: &SdkSession) {
    run.call(3, LATE);
    people.is_told(run, LATE);
    assert_eq!(run.answer(3)["error"]["code"], -32008);
    people.is_concluded(hub, LATE, "expired");
    assert_ne!(people.answers((hub, run), LATE, true), Some(true));
    run.call(4, CANCELLED);
    people.is_told(run, CANCELLED);
    has_told(people, hub, CANCELLED);
    run.cancel(4);
    people.is_concluded(hub, CANCELLED, "cancelled");
    assert_ne!(people.answers((hub, run), CANCELLED, true), Some(true));
    assert_eq!(outcome_of(hub, LATE), Some(ApprovalOutcome::Expired));
    assert_eq!(outcome_of(hub, CANCELLED), Some(ApprovalOutcome::Cancelled));
    assert_eq!((run.sent(LATE), run.sent(CANCELLED)), (0, 0));
}

/// Two people at once: one in the channel, one elsewhere.
fn at_once(people: &dyn ChannelPeople, hub: &HubProcess, run: &SdkSession) {
    run.call(5, BOTH);
    people.is_told(run, BOTH);
    let id = request_id(hub, BOTH);
    let path = format!("POST /approvals/{id}/approve");
    std::thread::scope(|scope| {
        scope.spawn(|| people.answers((hub, run), BOTH, false));
        scope.spawn(|| hub.ask(&path, r#"{"by":"bob"}"#));
    });
    let got = run.answer(5);
    let outcome = outcome_of(hub, BOTH).unwrap();
    let is_approved = outcome == ApprovalOutcome::Approved;
    assert_eq!(got["result"].is_object(), is_approved, "{got}");
    assert_eq!(run.sent(BOTH), usize::from(is_approved), "sent at most once");
}

#[test]
fn a_webhook_through_every_end() {
    through_every_end(&receiver("200 OK"));
}

#[test]
fn an_ntfy_push_through_every_end() {
    let server =
        WebServer::start(|_, stream| stream.write_all(&reply("", "{\"id\":\"n1\"}")).is_ok());
    through_every_end(&Phone(server));
}

#[test]
fn slack_reactions_through_every_end() {
    through_every_end(&Reactions(FakeSlack::start(TOKEN)));
}

#[test]
fn slack_buttons_through_every_end() {
    through_every_end(&Buttons(Reactions(FakeSlack::start(TOKEN))));
}

#[test]
fn a_desktop_notification_through_every_end() {
    through_every_end(&DesktopSession::start());
}

#[test]
fn the_api_through_every_end() {
    through_every_end(&ApiUsers);
}

#[test]
fn a_terminal_through_every_end() {
    through_every_end(&Terminal::default());
}

#[test]
fn an_elicitation_through_every_end() {
    through_every_end(&ClientUser);
}
