//! A policy that no person has accepted gets no secrets and sends nothing.

use std::fs;
use std::io::Read;
use std::net::TcpListener;

use super::{GUARD, HubFolder, RunningHub, log};
use crate::support::{tapegate, wait_for};

const SECRET: &str = "sk-made-up-5d1f";

/// A receiver of telemetry.
struct TelemetryReceiver(TcpListener);

impl TelemetryReceiver {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn policy(&self, header: &str) -> String {
        let port = self.0.local_addr().unwrap().port();
        format!(
            "schema: 1\n\
             governance: {{ defaults: {{ action: forward }} }}\n\
             telemetry:\n  enabled: true\n  batch: {{ scheduled_delay_ms: 100 }}\n  \
             otlp: {{ endpoint: \"http://127.0.0.1:{port}\", headers: {{ x-tenant: \"{header}\" }} }}\n"
        )
    }

    /// The head of the next request.
    fn head(&self) -> String {
        let (mut stream, _) = wait_for("telemetry", || self.0.accept().ok());
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        let mut head = Vec::new();
        let mut piece = [0; 512];
        while !head.windows(4).any(|window| window == b"\r\n\r\n") {
            let count = stream.read(&mut piece).unwrap();
            assert!(count > 0);
            head.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&head).into_owned()
    }

    fn was_reached(&self) -> bool {
        self.0.accept().is_ok()
    }
}

#[test]
fn variables_of_telemetry_are_read_only_once_a_person_has_accepted_the_policy() {
    let (place, collector) = (HubFolder::new(), TelemetryReceiver::new());
    let policy = collector.policy("${HUB_SECRET}").replace("forward", "\"${HUB_ACTION}\"");
    fs::write(place.policy(), policy).unwrap();
    let start = || {
        let mut command = place.command(&[]);
        command.env("HUB_SECRET", SECRET).env("HUB_ACTION", "deny");
        RunningHub::start(command)
    };
    // The other variables are expanded and it starts: without a terminal, first use is trusted.
    for _ in 0..2 {
        let mut hub = start();
        hub.says("telemetry is off, since no person has accepted the policy");
        assert_eq!(hub.evaluate("ls")["decision"], "deny");
        let request = format!("GET /governance/snapshot HTTP/1.1\r\n{}\r\n", hub.headers());
        let snapshot = hub.send(request);
        assert_eq!(snapshot.status, 200);
        assert!(!snapshot.body.contains(SECRET), "{}", snapshot.body);
        hub.signal(rustix::process::Signal::TERM);
        hub.end();
        assert!(!collector.was_reached());
    }
    place.accept_with(&[("HUB_SECRET", SECRET), ("HUB_ACTION", "deny")]);
    let hub = start();
    assert!(collector.head().contains(SECRET));
    drop(hub);
}

#[test]
fn a_shim_follows_a_hub_whose_policy_has_telemetry_that_is_off() {
    let (place, collector) = (HubFolder::new(), TelemetryReceiver::new());
    fs::write(place.policy(), collector.policy("${HUB_SECRET}")).unwrap();
    let mut command = place.command(&[]);
    command.env("HUB_SECRET", SECRET);
    let _hub = RunningHub::start(command);
    let mut shim = tapegate();
    shim.args(["shim", "--", "cat"]).current_dir(place.folder.path());
    shim.env_remove("TAPEGATE_HOME").env_remove("TAPEGATE_CONFIG").env("HUB_SECRET", SECRET);
    shim.env("XDG_STATE_HOME", place.folder.path());
    let done = shim.stdin(std::process::Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(0), "{said}");
}

#[test]
fn no_telemetry_is_sent_for_a_policy_that_was_only_found() {
    let (place, collector) = (HubFolder::new(), TelemetryReceiver::new());
    fs::write(place.policy(), collector.policy("blue")).unwrap();
    let mut hub = place.start();
    hub.says("telemetry is off");
    assert_eq!(hub.evaluate("ls")["decision"], "forward");
    // At its end it would export what is left.
    hub.signal(rustix::process::Signal::TERM);
    hub.end();
    assert!(!collector.was_reached());
    let hub = place.start();
    place.accept();
    assert!(collector.head().contains("blue"), "it is sent as soon as it is accepted");
    drop(hub);
    assert!(!log(&place.state()).contains(SECRET));
}

#[test]
fn faults_of_a_changed_policy_do_not_tell_what_variables_hold() {
    let (place, collector) = (HubFolder::new(), TelemetryReceiver::new());
    fs::create_dir(place.state()).unwrap();
    fs::write(place.policy(), collector.policy("${HUB_SECRET}")).unwrap();
    place.accept_with(&[("HUB_SECRET", SECRET)]);
    let changed =
        collector.policy("x") + "  sampling: { success_sample_rate: \"${HUB_SECRET}\" }\n";
    fs::write(place.policy(), changed).unwrap();
    let refused = place.command(&[]).env("HUB_SECRET", SECRET).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("success_sample_rate") && !said.contains(SECRET), "{said}");
}

#[test]
fn faults_of_a_policy_on_first_use_do_not_tell_what_variables_hold() {
    let place = HubFolder::new();
    fs::create_dir(place.state()).unwrap();
    let policy =
        "schema: 1\ngovernance: { defaults: { action: \"${HUB_SECRET}\" } }\nnonsense: 1\n";
    fs::write(place.policy(), policy).unwrap();
    let refused = place.command(&[]).env("HUB_SECRET", SECRET).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("governance.defaults.action: the value of a variable is not valid"),
        "{said}"
    );
    assert!(said.contains("nonsense") && !said.contains(SECRET), "{said}");
}
