//! A hub in the test's process, and clients for it.

use std::cell::RefCell;
use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tapegate_hub::api::{
    AgentSession, ApiProfile, GovernanceEvaluateRequest, MessageType, StreamDirection,
};
use tapegate_hub::client::HubClient;
use tapegate_hub::hub_lock::{HubLock, NamedTokenFiles, approver_token_file, token_file};
use tapegate_hub::hub_policy::{HubPolicyLoad, PolicyBundle};
use tapegate_hub::limits::HubLimits;
use tapegate_hub::service::{Hub, HubOptions, NoticeLevel};
use tapegate_hub::token::HubTokens;
use tapegate_policy::load;
use tapegate_wire::http::listener::HttpListener;
use tapegate_yaml::files::MemoryFiles;
use tapegate_yaml::finding::Severity;
use tempfile::TempDir;

/// The longest time a test may take.
pub(crate) const GUARD: Duration = Duration::from_secs(120);

/// A running hub.
pub(crate) struct HubFixture {
    pub(crate) hub: Rc<Hub>,
    /// A client with the shims' token.
    pub(crate) client: HubClient,
    /// A client with the approvers' token.
    pub(crate) approver: HubClient,
    pub(crate) address: String,
    pub(crate) token: String,
    approver_token: String,
    /// The messages for the user.
    pub(crate) told: Rc<RefCell<Vec<(NoticeLevel, String)>>>,
    folder: TempDir,
    _corner: HubLock,
}

impl HubFixture {
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Ends the hub, and returns its folder for another one.
    pub(crate) fn end(self) -> TempDir {
        self.hub.close();
        self.folder
    }
}

/// Runs a test against a hub whose policy comes from `load`.
pub(crate) fn with_hub<F: Future<Output = ()>>(
    load: impl Fn() -> HubPolicyLoad + 'static,
    test: impl FnOnce(Rc<HubFixture>) -> F,
) {
    with_limits(HubLimits::default(), load, test);
}

/// Like [`with_hub`], with other limits.
pub(crate) fn with_limits<F: Future<Output = ()>>(
    limits: HubLimits,
    load: impl Fn() -> HubPolicyLoad + 'static,
    test: impl FnOnce(Rc<HubFixture>) -> F,
) {
    session(async {
        let folder = tempfile::tempdir().unwrap();
        let (running, listener) = start(folder, ":0", limits, load).await;
        serve(&Rc::clone(&running.hub), &listener, test(Rc::new(running))).await;
    });
}

/// Serves a hub while a test runs.
pub(crate) async fn serve<T>(
    hub: &Rc<Hub>,
    listener: &HttpListener,
    test: impl Future<Output = T>,
) -> T {
    let work = async {
        hub.run_background().await;
        std::future::pending::<T>().await
    };
    tokio::select! {
        done = test => done,
        never = work => never,
        never = listener.serve(Rc::clone(hub)) => match never {},
    }
}

/// Runs a test that starts hubs by itself.
pub(crate) fn session(session: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let tasks = tokio::task::LocalSet::new();
    let session = tasks.run_until(session);
    runtime.block_on(async { tokio::time::timeout(GUARD, session).await.unwrap() });
}

/// Starts a listening hub that does not serve yet.
pub(crate) async fn start(
    folder: TempDir,
    address: &str,
    limits: HubLimits,
    load: impl Fn() -> HubPolicyLoad + 'static,
) -> (HubFixture, HttpListener) {
    let listener = HttpListener::bind(address).await.unwrap();
    let listener = listener.with_limits(limits.connections_max, limits.head_patience);
    let address = listener.address().unwrap();
    let endpoint = format!("http://{address}");
    let tokens = HubTokens::generate().unwrap();
    let state = folder.path();
    let hub_lock = HubLock::acquire(state, state, NamedTokenFiles::default()).unwrap();
    hub_lock.publish_endpoint(&endpoint, &tokens).unwrap();
    let told: Rc<RefCell<Vec<(NoticeLevel, String)>>> = Rc::default();
    let heard = Rc::clone(&told);
    let hub = Hub::new(HubOptions {
        state_folder: state.to_owned(),
        user_state: state.to_owned(),
        profile: None,
        address,
        tokens: tokens.clone(),
        own_files: vec![hub_lock.token_path().to_string_lossy().into_owned()],
        undecided: None,
        load: Box::new(load),
        notice: Box::new(move |level, message| {
            heard.borrow_mut().push((level, message.to_owned()))
        }),
        limits,
        session: Some(AgentSession { id: "s".into(), agent: "claude-code".into() }),
    });
    let running = HubFixture {
        hub: hub.unwrap(),
        client: HubClient::new(&endpoint, &token_file(state, state)).unwrap(),
        approver: HubClient::new(&endpoint, &approver_token_file(state, state)).unwrap(),
        address: address.to_string(),
        token: tokens.shims.reveal().to_owned(),
        approver_token: tokens.approvers.reveal().to_owned(),
        told,
        _corner: hub_lock,
        folder,
    };
    (running, listener)
}

/// A tool call.
pub(crate) fn call(name: &str) -> GovernanceEvaluateRequest {
    let params = format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
    GovernanceEvaluateRequest {
        server_id: "fs".to_owned(),
        direction: StreamDirection::AgentToServer,
        method: "tools/call".to_owned(),
        id: None,
        params: Some(serde_json::value::RawValue::from_string(params).unwrap()),
        message_type: MessageType::Request,
        profile: ApiProfile::Production,
        connection_id: None,
        request_id: None,
        principal: None,
        drift: None,
        held: false,
        approval_id: None,
        workflow: None,
        traceparent: None,
        tape_session_id: None,
        tape_seq: None,
        folder: None,
    }
}

/// A policy loaded from this text.
pub(crate) fn policy(text: &str) -> HubPolicyLoad {
    let files = MemoryFiles::default().with_file("tapegate.yaml", text);
    let loaded = load::load("tapegate.yaml", &files);
    let errors = loaded.findings.iter().filter(|finding| finding.severity == Severity::Error);
    let faults = errors.map(|finding| finding.message.clone()).collect();
    let config = Some(text.to_owned());
    let profile = loaded.policy.as_ref().map(|policy| policy.profile.unwrap_or_default());
    HubPolicyLoad {
        policy: loaded.policy.map(Arc::new),
        profile,
        faults,
        texts: PolicyBundle { config, ..PolicyBundle::default() },
        ..HubPolicyLoad::default()
    }
}

/// Sends raw bytes to the hub and returns the whole reply.
pub(crate) async fn raw(address: &str, request: impl AsRef<[u8]>) -> String {
    let (address, request) = (address.to_owned(), request.as_ref().to_vec());
    let asked = move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(GUARD)).unwrap();
        // The hub may refuse before it has read everything.
        stream.write_all(&request).ok();
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).ok();
        String::from_utf8_lossy(&reply).into_owned()
    };
    tokio::task::spawn_blocking(asked).await.unwrap()
}

/// Waits until a condition holds; the time limit of the test is its limit too.
pub(crate) async fn wait_until(mut holds: impl AsyncFnMut() -> bool) {
    while !holds().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the hub is answering this many requests.
pub(crate) async fn wait_until_active(running: &HubFixture, count: usize) {
    // The scrape is one of them.
    let expected = format!("thoughtgate_active_requests {}\n", count + 1);
    let scrape = request(running, "GET", "/metrics", "");
    wait_until(async || raw(&running.address, &scrape).await.contains(&expected)).await;
}

/// A request with the approvers' token, as bytes.
pub(crate) fn request(running: &HubFixture, method: &str, path: &str, body: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        running.address,
        running.approver_token,
        body.len()
    )
}
