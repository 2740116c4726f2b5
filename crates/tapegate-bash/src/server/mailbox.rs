//! What threads have to say to clients, and which calls wait for an answer.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tapegate_core::actor::ActorSessionId;

use super::protocol::{self, RequestError};

/// Wakes the host of the server, from any thread.
#[derive(Clone)]
pub struct ServerWaker(Arc<dyn Fn() + Send + Sync>);

impl ServerWaker {
    /// Wakes by calling a function.
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }
}

impl fmt::Debug for ServerWaker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerWaker")
    }
}

/// A call of a client.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ToolCallKey {
    pub(super) session: ActorSessionId,
    /// The id, exactly as written.
    pub(super) id: Vec<u8>,
}

/// A message for a client.
#[derive(Debug)]
pub(super) struct ClientMail {
    /// The request that it belongs to, unless it is the answer to it.
    pub(super) about: Option<Vec<u8>>,
    pub(super) bytes: Vec<u8>,
}

/// A call that waits for its answer.
#[derive(Debug)]
struct OpenToolCall {
    progress_token: Option<Value>,
    last_progress: u64,
    is_modern: bool,
}

/// Messages for clients, and open calls.
#[derive(Debug)]
pub(super) struct Mailbox {
    contents: Mutex<MailboxContents>,
    waker: ServerWaker,
}

#[derive(Debug, Default)]
struct MailboxContents {
    mail: BTreeMap<ActorSessionId, Vec<ClientMail>>,
    calls: BTreeMap<ToolCallKey, OpenToolCall>,
}

impl Mailbox {
    pub(super) fn new(waker: ServerWaker) -> Self {
        Self { contents: Mutex::default(), waker }
    }

    fn contents(&self) -> MutexGuard<'_, MailboxContents> {
        self.contents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message.
    pub(super) fn send(&self, session: ActorSessionId, message: ClientMail) {
        self.contents().mail.entry(session).or_default().push(message);
        (self.waker.0)();
    }

    /// Registers a call; false if one with this id is open.
    pub(super) fn open_call(
        &self,
        key: &ToolCallKey,
        token: Option<Value>,
        is_modern: bool,
    ) -> bool {
        let mut contents = self.contents();
        if contents.calls.contains_key(key) {
            return false;
        }
        let call = OpenToolCall { progress_token: token, last_progress: 0, is_modern };
        contents.calls.insert(key.clone(), call);
        true
    }

    /// Forgets a call, which then gets no answer; returns whether it was open.
    pub(super) fn close_call(&self, key: &ToolCallKey) -> bool {
        let was_open = self.contents().calls.remove(key).is_some();
        // The host may wait for the last call of a client that has left.
        (self.waker.0)();
        was_open
    }

    /// Answers a call, unless it was cancelled.
    pub(super) fn answer(&self, key: &ToolCallKey, outcome: Result<Value, RequestError>) {
        let Some(call) = self.contents().calls.remove(key) else { return };
        let outcome = match call.is_modern {
            true => outcome.map(|result| protocol::modern_result("tools/call", result)),
            false => outcome,
        };
        let bytes = protocol::response(&key.id, outcome);
        self.send(key.session, ClientMail { about: None, bytes });
    }

    /// Reports progress of a call whose client has asked for it.
    pub(super) fn progress(&self, key: &ToolCallKey, seconds: u64, message: Option<&str>) {
        let mut contents = self.contents();
        let Some(call) = contents.calls.get_mut(key) else { return };
        let Some(token) = call.progress_token.clone() else { return };
        // The value must grow with each report.
        if seconds <= call.last_progress {
            return;
        }
        call.last_progress = seconds;
        // `send` takes the lock again.
        drop(contents);
        let mut params = json!({"progressToken": token, "progress": seconds});
        if let Some(message) = message {
            params["message"] = message.into();
        }
        let method = "notifications/progress";
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let bytes = message.to_string().into_bytes();
        self.send(key.session, ClientMail { about: Some(key.id.clone()), bytes });
    }

    /// The messages for a client, which are then no longer here.
    pub(super) fn take(&self, session: ActorSessionId) -> Vec<ClientMail> {
        self.contents().mail.remove(&session).unwrap_or_default()
    }

    pub(super) fn has_mail(&self, session: ActorSessionId) -> bool {
        self.contents().mail.contains_key(&session)
    }

    pub(super) fn has_calls(&self, session: ActorSessionId) -> bool {
        self.contents().calls.keys().any(|key| key.session == session)
    }

    /// The open calls of a client.
    pub(super) fn calls_of(&self, session: ActorSessionId) -> Vec<ToolCallKey> {
        let contents = self.contents();
        contents.calls.keys().filter(|key| key.session == session).cloned().collect()
    }

    /// Forgets a client.
    pub(super) fn forget(&self, session: ActorSessionId) {
        let mut contents = self.contents();
        contents.mail.remove(&session);
        contents.calls.retain(|key, _| key.session != session);
    }
}
