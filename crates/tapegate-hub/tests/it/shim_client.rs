//! Shims that join a hub: readiness, snapshots, heartbeats, pushes and failures.

use tapegate_hub::api::{GovernanceDecision, HeartbeatRequest, HubPush};
use tapegate_hub::client::{ClientError, HubClient};
use tapegate_hub::hub_lock::token_file;
use tapegate_hub::hub_policy::HubPolicyLoad;

use crate::support::{call, with_hub};

fn nothing() -> HubPolicyLoad {
    HubPolicyLoad::default()
}

fn beat(state: Option<&str>) -> HeartbeatRequest {
    HeartbeatRequest {
        server_id: "fs".to_owned(),
        connection_id: Some("c1".to_owned()),
        state: state.map(str::to_owned),
        ..HeartbeatRequest::default()
    }
}

#[test]
fn a_shim_waits_joins_beats_and_is_told_of_the_end() {
    with_hub(nothing, |running| async move {
        let client = &running.client;
        client.wait_until_ready().await.unwrap();
        let snapshot = client.snapshot().await.unwrap();
        assert_eq!((snapshot.version.as_str(), snapshot.config), ("", None));
        assert_eq!(snapshot.state_folder.as_deref(), running.state().to_str());
        assert!(snapshot.lease_ms >= 10_000);
        assert!(!client.heartbeat(&beat(None)).await.unwrap().shutdown);
        let mut pushes = client.pushes("c1").await.unwrap();
        assert_eq!(pushes.next().await.unwrap(), HubPush::Policy { version: String::new() });
        let ended = running.approver.shutdown().await.unwrap();
        assert_eq!((ended.shutdown, ended.active_servers), (true, 1));
        assert_eq!(pushes.next().await.unwrap(), HubPush::Shutdown);
        assert!(client.heartbeat(&beat(None)).await.unwrap().shutdown);
        assert!(client.evaluate(&call("x")).await.unwrap().shutdown);
        running.hub.stop_requested().await;
        let alive = beat(None);
        tokio::select! {
            biased;
            () = running.hub.wait_until_no_shims() => panic!("the shim is still there"),
            heard = client.heartbeat(&alive) => assert!(heard.unwrap().shutdown),
        }
        // A shim that closes its stream while the hub shuts down is gone.
        drop(pushes);
        running.hub.wait_until_no_shims().await;
    });
}

#[test]
fn a_shim_that_says_that_it_has_stopped_is_not_waited_for() {
    with_hub(nothing, |running| async move {
        running.client.heartbeat(&beat(None)).await.unwrap();
        running.client.heartbeat(&beat(Some("stopped"))).await.unwrap();
        running.hub.stop();
        running.hub.wait_until_no_shims().await;
    });
}

#[test]
fn without_a_policy_calls_are_forwarded_and_it_is_said_why() {
    with_hub(nothing, |running| async move {
        let answer = running.client.evaluate(&call("x")).await.unwrap();
        assert_eq!(answer.decision, GovernanceDecision::Forward);
        assert_eq!(answer.reason.as_deref(), Some("there is no policy"));
        let log = std::fs::read_to_string(running.state().join("activity.jsonl")).unwrap();
        assert!(log.contains(r#""tool":"x","governance_decision":"forward""#), "{log}");
    });
}

#[test]
fn what_goes_wrong_is_told_apart() {
    with_hub(nothing, |running| async move {
        let state = running.state();
        let token = token_file(&state, &state);
        std::fs::write(&token, "wrong").unwrap();
        let error = running.client.snapshot().await.unwrap_err();
        assert!(matches!(error, ClientError::Unproven(_)) && error.is_gone(), "{error}");
        std::fs::write(&token, &running.token).unwrap();
        running.client.snapshot().await.unwrap();
        let error = running.client.cancel("a/b").await.unwrap_err();
        assert!(matches!(error, ClientError::Name(_)), "{error}");
        // A port without a listener.
        let gone = HubClient::new("http://127.0.0.1:1", &token).unwrap();
        assert!(gone.snapshot().await.unwrap_err().is_gone());
        // A listener that accepts and never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let hung = format!("http://{}", silent.local_addr().unwrap());
        let hung = HubClient::new(&hung, &token).unwrap();
        let error = hung.evaluate(&call("x")).await.unwrap_err();
        assert!(matches!(error, ClientError::TimedOut(_)), "{error}");
        for endpoint in ["https://127.0.0.1:1", "127.0.0.1", "", "http://u:p@127.0.0.1:1"] {
            assert!(matches!(HubClient::new(endpoint, &token), Err(ClientError::Endpoint(_))));
        }
    });
}
