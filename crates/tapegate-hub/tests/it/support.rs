//! A hub inside the test, and somebody who talks to it.

use std::cell::RefCell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use tapegate_hub::api::{GovernanceEvaluateRequest, MessageType, Profile, StreamDirection};
use tapegate_hub::client::Client;
use tapegate_hub::corner::{Corner, token_file};
use tapegate_hub::governed::Loading;
use tapegate_hub::service::{Hub, Level, Options};
use tapegate_hub::token::Token;
use tapegate_wire::http::listen::Listener;
use tempfile::TempDir;

/// How long a test may take.
pub(crate) const GUARD: Duration = Duration::from_secs(30);

/// A hub that listens.
pub(crate) struct Running {
    pub(crate) hub: Rc<Hub>,
    pub(crate) client: Client,
    pub(crate) address: String,
    pub(crate) token: String,
    /// What a person was told.
    pub(crate) told: Rc<RefCell<Vec<(Level, String)>>>,
    folder: TempDir,
    _corner: Corner,
}

impl Running {
    pub(crate) fn state(&self) -> PathBuf {
        self.folder.path().to_owned()
    }
}

/// Runs a test against a hub that loads its policy by `load`.
pub(crate) fn with_hub<F: Future<Output = ()>>(
    load: impl Fn() -> Loading + 'static,
    test: impl FnOnce(Rc<Running>) -> F,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let session = async {
        let (running, listener) = start(load).await;
        let hub = Rc::clone(&running.hub);
        tokio::select! {
            () = test(Rc::new(running)) => {}
            () = hub.work() => {}
            never = listener.serve(Rc::clone(&hub)) => match never {},
        }
    };
    let tasks = tokio::task::LocalSet::new();
    let session = tasks.run_until(session);
    runtime.block_on(async { tokio::time::timeout(GUARD, session).await.unwrap() });
}

async fn start(load: impl Fn() -> Loading + 'static) -> (Running, Listener) {
    let folder = tempfile::tempdir().unwrap();
    let listener = Listener::bind(":0").await.unwrap();
    let address = listener.address().unwrap().to_string();
    let endpoint = format!("http://{address}");
    let token = Token::fresh().unwrap();
    let corner = Corner::claim(folder.path(), None).unwrap();
    corner.announce(&endpoint, &token).unwrap();
    let told: Rc<RefCell<Vec<(Level, String)>>> = Rc::default();
    let heard = Rc::clone(&told);
    let hub = Hub::new(Options {
        state_folder: folder.path().to_owned(),
        profile: None,
        token: token.clone(),
        load: Box::new(load),
        notice: Box::new(move |level, words| heard.borrow_mut().push((level, words.to_owned()))),
    });
    let client = client_of(folder.path(), &endpoint);
    let (hub, token) = (hub.unwrap(), token.reveal().to_owned());
    (Running { hub, client, address, token, told, folder, _corner: corner }, listener)
}

fn client_of(state: &Path, endpoint: &str) -> Client {
    Client::new(endpoint, &token_file(state)).unwrap()
}

/// A call of a tool.
pub(crate) fn call(name: &str) -> GovernanceEvaluateRequest {
    let params = format!(r#"{{"name":"{name}","arguments":{{}}}}"#);
    GovernanceEvaluateRequest {
        server_id: "fs".to_owned(),
        direction: StreamDirection::AgentToServer,
        method: "tools/call".to_owned(),
        id: None,
        params: Some(serde_json::value::RawValue::from_string(params).unwrap()),
        message_type: MessageType::Request,
        profile: Profile::Production,
        connection_id: None,
        request_id: None,
        principal: None,
        drift: None,
        held: false,
        traceparent: None,
        tape_session_id: None,
        tape_seq: None,
    }
}
