//! An actor host on its own thread, with clients over HTTP.

use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use tapegate_wire::actor_host::ActorHost;
use tapegate_wire::clock::Clock;
use tapegate_wire::http::bridge_in::{InboundBridge, ServerProvider};
use tapegate_wire::http::listener::HttpListener;
use tapegate_wire::http::{SharedSession, serve};
use tapegate_wire::link::LinkTarget;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::ShutdownTimeouts;

use crate::http_peers::{self, HttpMessage};
use crate::json_rpc_actor::JsonRpcActor;
use crate::scripted_actor::ActorLog;
use crate::stdio_actor_host::{MESSAGE_BYTES_MAX, options};
use crate::waiting::wait_until;

/// The headers of every POST.
const PLAIN: &[&str] =
    &["content-type: application/json", "accept: application/json, text/event-stream"];

/// An actor that clients reach over HTTP.
pub(crate) struct HttpActorHost {
    pub(crate) port: u16,
    pub(crate) log: ActorLog,
    thread: JoinHandle<String>,
}

impl HttpActorHost {
    pub(crate) fn open() -> Self {
        Self::open_with(None, RecordedSession::without_recording)
    }

    /// Opens with a passthrough server.
    pub(crate) fn open_before(behind: LinkTarget) -> Self {
        Self::open_with(Some(behind), RecordedSession::without_recording)
    }

    /// Opens with a recording.
    pub(crate) fn open_recorded(
        deck: impl FnOnce(Clock) -> RecordedSession + Send + 'static,
    ) -> Self {
        Self::open_with(None, deck)
    }

    fn open_with(
        behind: Option<LinkTarget>,
        deck: impl FnOnce(Clock) -> RecordedSession + Send + 'static,
    ) -> Self {
        let (told, port) = mpsc::channel();
        let log = ActorLog::default();
        let heard = log.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let clock = Clock::start();
                let listener = HttpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.address().unwrap().port()).unwrap();
                let stage = ActorHost::new(JsonRpcActor::new(&heard), clock, options(behind));
                let station = SharedSession::new(deck(clock), MESSAGE_BYTES_MAX);
                let (servers, patience) =
                    (ServerProvider::Stage(stage), ShutdownTimeouts::default());
                let bridge = InboundBridge::new(Rc::clone(&station), servers, patience);
                let cause = serve(listener, bridge, &station, Signals::never()).await;
                format!("{cause:?}")
            })
        });
        Self { port: port.recv().unwrap(), log, thread }
    }

    /// Posts a message with additional header lines, and reads the reply.
    pub(crate) fn post(&self, headers: &[&str], body: &str) -> HttpMessage {
        let headers = [PLAIN, headers].concat();
        http_peers::reply(&mut http_peers::send(self.port, "POST /mcp", &headers, body))
    }

    /// Posts a request with only a method, in a session, and reads the reply.
    pub(crate) fn ask(&self, session: &str, id: u32, method: &str) -> HttpMessage {
        let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}");
        self.post(&[session], &body)
    }

    /// Opens a session, and returns its session header line.
    pub(crate) fn session(&self) -> String {
        let opened = self.post(&[], r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#);
        let id = opened.header("mcp-session-id").unwrap_or_else(|| panic!("{opened:?}"));
        format!("mcp-session-id: {id}")
    }

    /// Waits until the actor has logged exactly this event.
    pub(crate) fn wait(&self, told: &str) {
        self.wait_until(told, |line| line == told);
    }

    /// Waits until the actor has logged an event that contains this.
    pub(crate) fn wait_for(&self, told: &str) {
        self.wait_until(told, |line| line.contains(told));
    }

    fn wait_until(&self, told: &str, is_it: impl Fn(&str) -> bool) {
        wait_until(told, || self.log.lock().unwrap().iter().any(|line| is_it(line)));
    }

    /// Waits for the end, and returns its cause and the actor's log.
    pub(crate) fn end(self) -> (String, Vec<String>) {
        let cause = self.thread.join().unwrap();
        let told = self.log.lock().unwrap().clone();
        (cause, told)
    }
}
