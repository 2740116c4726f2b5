//! The MCP server: it turns messages of clients into commands, and their ends into answers.
//!
//! It is an actor, so the wire gives it messages and carries what it says, on pipes and over HTTP
//! alike. It serves every revision from 2024-11-05 to 2025-11-25 after `initialize`, and
//! 2026-07-28 with the metadata of each request. Nothing here waits: commands and everything else
//! that takes time run on threads, which leave their answers in the [`Mailbox`] and wake the host.

mod arguments;
mod caller;
mod execute;
mod mailbox;
mod output_text;
mod process_table;
mod process_tools;
mod protocol;
mod recording_tools;
mod tool_host;
mod tool_result;
mod tools;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tapegate_core::actor::{Actor, ActorAction, ActorEvent, ActorSessionId};
use tapegate_core::frame::{Envelope, Frame, FrameBody, MessageKind, each_element, is_long_batch};
use tapegate_core::json;
use tapegate_core::time::Timestamp;

use crate::config::BashConfig;
use caller::{CallerIdentity, CallerRequest};
pub use mailbox::ServerWaker;
use mailbox::{ClientMail, Mailbox, ToolCallKey};
use protocol::RequestError;
pub use tool_host::{ServerEnvironment, ServerSetup, ToolGovernance, ToolHost};

/// How long calls may go on after their client has closed its sending end.
const LEAVE_GRACE: Duration = Duration::from_millis(1000);

/// The MCP server of the bash tool.
pub struct BashServer {
    host: Arc<ToolHost>,
    mailbox: Arc<Mailbox>,
    sessions: BTreeMap<ActorSessionId, ClientSession>,
}

#[derive(Debug, Default)]
struct ClientSession {
    identity: CallerIdentity,
    /// Whether `initialize` was answered.
    is_initialized: bool,
    /// When calls are cancelled, because the client has left.
    leave_ns: Option<u64>,
}

impl BashServer {
    /// A server. `waker` is called, on any thread, when there is something to send.
    pub fn new(setup: ServerSetup, waker: ServerWaker) -> Self {
        let mailbox = Arc::new(Mailbox::new(waker));
        let host = Arc::new(ToolHost::new(setup, Arc::clone(&mailbox)));
        Self { host, mailbox, sessions: BTreeMap::new() }
    }

    /// What runs the tools; it lives longer than the server.
    pub fn tool_host(&self) -> Arc<ToolHost> {
        Arc::clone(&self.host)
    }

    /// Applies new settings, and tells clients that the tools may have changed.
    pub fn reload(&mut self, config: BashConfig) {
        // Editors often save a file without a change.
        if !self.host.reload(config) {
            return;
        }
        let notice = br#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        for (session, _) in self.sessions.iter().filter(|(_, client)| client.is_initialized) {
            let message = ClientMail { about: None, bytes: notice.to_vec() };
            self.mailbox.send(*session, message);
        }
    }

    fn receive(&mut self, session: ActorSessionId, line: &[u8]) {
        let frame = Frame::read(line);
        match frame.body() {
            FrameBody::Message(envelope) => self.receive_message(session, envelope, frame.text()),
            FrameBody::Batch if is_long_batch(line) => {
                // One error instead of thousands: each element would be answered on its own.
                self.answer(session, b"null", Err(RequestError::invalid("the batch is too long")));
            }
            // Only one revision has batches; answering each message alone suits all of them.
            FrameBody::Batch => {
                for frame in each_element(line) {
                    match frame.envelope() {
                        Some(envelope) => self.receive_message(session, envelope, frame.text()),
                        None => self.answer(
                            session,
                            b"null",
                            Err(RequestError::invalid("not a message")),
                        ),
                    }
                }
            }
            // An empty line between messages is harmless.
            FrameBody::Garbage(_) if line.trim_ascii().is_empty() => {}
            FrameBody::Garbage(_) => {
                self.answer(session, b"null", Err(RequestError::parse("not a JSON object")));
            }
        }
    }

    fn receive_message(&mut self, session: ActorSessionId, envelope: &Envelope<'_>, text: &[u8]) {
        match envelope.kind() {
            MessageKind::Request => {
                let id = envelope.id.unwrap_or(b"null").to_vec();
                let outcome = self.serve_request(session, &id, envelope);
                if let Some(outcome) = outcome {
                    self.answer(session, &id, outcome);
                }
            }
            MessageKind::Notification => self.receive_notification(session, envelope),
            // Nothing was asked of the client, so nothing is expected from it.
            MessageKind::Response | MessageKind::Error => {}
            MessageKind::Other => {
                // An id is taken even from an invalid message, so that its sender does not wait for
                // an answer.
                let id = json::member(text, "id").unwrap_or(b"null").to_vec();
                self.answer(session, &id, Err(RequestError::invalid("not a JSON-RPC message")));
            }
        }
    }

    /// Answers a request; `None` if the answer comes later.
    fn serve_request(
        &mut self,
        session: ActorSessionId,
        id: &[u8],
        envelope: &Envelope<'_>,
    ) -> Option<Result<Value, RequestError>> {
        let method =
            envelope.method.as_ref().map(|it| it.decode().into_owned()).unwrap_or_default();
        let params = match envelope.params.map(serde_json::from_slice::<Value>) {
            None => json!({}),
            Some(Ok(params)) => params,
            Some(Err(error)) => {
                return Some(Err(RequestError::params(&format!(
                    "the params cannot be read: {error}"
                ))));
            }
        };
        // The version of the request decides, not the session: in 2026-07-28 there is none.
        let is_modern = envelope.protocol_version.is_some();
        let outcome = match is_modern {
            true => {
                protocol::check_modern(&params).and_then(|()| self.serve_modern(&method, &params))
            }
            false => self.serve_legacy(session, &method, &params),
        };
        match outcome {
            Ok(Some(result)) if is_modern => Some(Ok(protocol::modern_result(&method, result))),
            Ok(Some(result)) => Some(Ok(result)),
            Ok(None) => self.call_tool(session, id, &params, is_modern).err().map(Err),
            Err(error) => Some(Err(error)),
        }
    }

    /// The result of a request of 2026-07-28; `None` for a call.
    fn serve_modern(&mut self, method: &str, _: &Value) -> Result<Option<Value>, RequestError> {
        match method {
            "server/discover" => Ok(Some(protocol::discover_result())),
            "tools/list" => Ok(Some(self.host.tool_list())),
            "tools/call" => Ok(None),
            _ => Err(RequestError::method(method)),
        }
    }

    /// The result of a request of a session; `None` for a call.
    fn serve_legacy(
        &mut self,
        session: ActorSessionId,
        method: &str,
        params: &Value,
    ) -> Result<Option<Value>, RequestError> {
        match method {
            "initialize" => {
                let client = self.sessions.entry(session).or_default();
                client.identity.note_client_info(params.get("clientInfo"));
                client.is_initialized = true;
                Ok(Some(protocol::initialize_result(params)?))
            }
            "ping" => Ok(Some(json!({}))),
            "tools/list" => Ok(Some(self.host.tool_list())),
            "tools/call" => Ok(None),
            _ => Err(RequestError::method(method)),
        }
    }

    fn call_tool(
        &mut self,
        session: ActorSessionId,
        id: &[u8],
        params: &Value,
        is_modern: bool,
    ) -> Result<(), RequestError> {
        let client = self.sessions.entry(session).or_default();
        let caller = CallerRequest::new(&client.identity, id, params, self.host.environment());
        let key = ToolCallKey { session, id: id.to_vec() };
        // Opened before the command starts, which may end before this function does.
        if !self.mailbox.open_call(&key, caller.progress_token.clone(), is_modern) {
            return Err(RequestError::invalid("a call with this id is still running"));
        }
        let called = self.host.call(&key, &caller, params);
        // The error is the answer.
        if called.is_err() {
            self.mailbox.close_call(&key);
        }
        called
    }

    fn receive_notification(&mut self, session: ActorSessionId, envelope: &Envelope<'_>) {
        // Every other notification of a client needs no reaction.
        if envelope.is_method("notifications/cancelled")
            && let Some(id) = envelope.request_id
        {
            self.host.cancel(&ToolCallKey { session, id: id.to_vec() });
        }
    }

    fn answer(&self, session: ActorSessionId, id: &[u8], outcome: Result<Value, RequestError>) {
        let bytes = protocol::response(id, outcome);
        self.mailbox.send(session, ClientMail { about: None, bytes });
    }

    /// Sends what waits in the mailbox.
    fn send_mail(&self, session: ActorSessionId, act: &mut dyn FnMut(ActorAction<'_>)) {
        for message in self.mailbox.take(session) {
            let parts: &[&[u8]] = &[&message.bytes];
            match &message.about {
                Some(about) => act(ActorAction::Tell { about, parts }),
                None => act(ActorAction::Say(parts)),
            }
        }
    }

    fn end_overdue_calls(&mut self, session: ActorSessionId, now_ns: u64) {
        let leave_ns = self.sessions.get(&session).and_then(|client| client.leave_ns);
        if leave_ns.is_some_and(|leave_ns| now_ns >= leave_ns) {
            self.host.end_session(session);
        }
    }
}

impl Actor for BashServer {
    fn handle(
        &mut self,
        at: Timestamp,
        session: ActorSessionId,
        event: ActorEvent<'_>,
        act: &mut dyn FnMut(ActorAction<'_>),
    ) {
        match event {
            ActorEvent::Taken { shared, .. } => {
                self.sessions.insert(session, ClientSession::default());
                if shared {
                    self.host.processes.note_shared(session);
                }
            }
            ActorEvent::Said(line) => self.receive(session, line),
            ActorEvent::TooLarge { message, bytes_max } => {
                let reason = format!("the message is longer than {bytes_max} bytes");
                if let Some(id) = protocol::id_of_oversize(&message) {
                    self.answer(session, &id, Err(RequestError::invalid(&reason)));
                }
            }
            // Scripts close their end right after the request; quick commands should still be
            // answered.
            ActorEvent::Left => {
                let leave_ns = at.mono_ns + LEAVE_GRACE.as_nanos() as u64;
                self.sessions.entry(session).or_default().leave_ns = Some(leave_ns);
            }
            // Nothing can be sent any more, so the mail is dropped with the session.
            ActorEvent::Empty => {
                self.host.end_session(session);
                self.host.processes.forget_session(session);
                self.sessions.remove(&session);
                self.mailbox.forget(session);
                return;
            }
            ActorEvent::Due => self.end_overdue_calls(session, at.mono_ns),
            ActorEvent::Behind(_) | ActorEvent::BehindGone { .. } | ActorEvent::Done { .. } => {}
        }
        self.send_mail(session, act);
    }

    fn next_wakeup(&self, session: ActorSessionId) -> Option<u64> {
        if self.mailbox.has_mail(session) {
            // Mail may have arrived between the wake-up and this question.
            return Some(0);
        }
        let leave_ns = self.sessions.get(&session)?.leave_ns?;
        self.mailbox.has_calls(session).then_some(leave_ns)
    }

    fn is_busy(&self, session: ActorSessionId) -> bool {
        self.mailbox.has_calls(session) || self.mailbox.has_mail(session)
    }
}
