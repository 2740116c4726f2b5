//! Requests that are not on the tape, and the ids of all requests.

use std::borrow::Cow;
use std::io;

use crate::frame::{Frame, MessageKind, request_text};
use crate::json::{JsonObject, JsonStr, map_members, member};
use crate::pending::{IdKey, new_own_id};
use crate::side::Side;

use super::super::finding::VerifyNoteKind;
use super::super::tape::VerifierTape;
use super::super::tool_hints::ToolHints;
use super::{AwaitedAnswer, RequestPurpose, VerifyContext, VerifySession};

/// The protocol version of a synthetic `initialize`.
const INTRODUCED_VERSION: &str = "2025-06-18";

impl VerifySession {
    /// Sends `initialize` for a session whose `initialize` is not on the tape.
    pub(super) fn send_initialize(&mut self, context: &mut VerifyContext<'_, '_>) {
        let able = [
            ("roots/list", "roots"),
            ("sampling/createMessage", "sampling"),
            ("elicitation/create", "elicitation"),
        ];
        // Only what the tape needs: a server may use every capability that is declared.
        let able = able.iter().filter(|(method, _)| self.questions.has_method(method));
        let able = able.fold(JsonObject::new(), |able, (_, name)| able.raw(name, "{}"));
        let info = JsonObject::new().text("name", "tapegate");
        let params = JsonObject::new()
            .text("protocolVersion", INTRODUCED_VERSION)
            .object("capabilities", able)
            .object("clientInfo", info.text("version", env!("CARGO_PKG_VERSION")));
        context.report.note(self.session_subject(), VerifyNoteKind::Introduced);
        self.send_own_request(
            context,
            "initialize",
            Some(&params.finish()),
            RequestPurpose::Introduction,
        );
    }

    pub(super) fn request_tools(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        meta: Option<Vec<u8>>,
    ) {
        let purpose = RequestPurpose::Tools(ToolHints::default(), meta.clone());
        self.request_page(context, "tools/list", None, meta.as_deref(), purpose);
    }

    /// Requests a page of a list that the tape has no request for.
    pub(super) fn request_page(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        method: &str,
        cursor: Option<&[u8]>,
        meta: Option<&[u8]>,
        purpose: RequestPurpose,
    ) {
        let params = JsonObject::new().raw_opt("cursor", cursor).raw_opt("_meta", meta).finish();
        let params = (cursor.is_some() || meta.is_some()).then_some(&*params);
        self.send_own_request(context, method, params, purpose);
    }

    /// Sends a request that is not on the tape.
    fn send_own_request(
        &mut self,
        context: &mut VerifyContext<'_, '_>,
        method: &str,
        params: Option<&[u8]>,
        purpose: RequestPurpose,
    ) {
        let id = self.new_id();
        let text = request_text(&id, method, params);
        self.own += 1;
        // Before it is sent, as every request (invariant 5).
        self.wait(context, &id, purpose, Some(context.now_ns.saturating_add(context.timeout_ns)));
        context.send_line(&text);
    }

    pub(super) fn wait(
        &mut self,
        context: &VerifyContext<'_, '_>,
        id: &[u8],
        purpose: RequestPurpose,
        deadline_ns: Option<u64>,
    ) -> IdKey {
        let key = IdKey::new(id);
        self.request_count += 1;
        let deadline = deadline_ns.map(|deadline_ns| (deadline_ns, self.request_count));
        if let Some(deadline) = deadline {
            self.deadlines.insert(deadline, key.clone());
        }
        let waiting = AwaitedAnswer { purpose, deadline, sent_ns: context.now_ns };
        self.waiting.insert(key.clone(), waiting);
        self.base_ns = context.now_ns;
        key
    }

    /// Ignores the answer to a request from now on.
    pub(super) fn forget_request(&mut self, key: &IdKey) -> Option<AwaitedAnswer> {
        let waiting = self.waiting.get_mut(key)?;
        // The id stays taken: a late answer must neither be reported nor meet a new request.
        let late = AwaitedAnswer {
            purpose: RequestPurpose::Late,
            deadline: None,
            sent_ns: waiting.sent_ns,
        };
        let before = std::mem::replace(waiting, late);
        if let Some(deadline) = before.deadline {
            self.deadlines.remove(&deadline);
        }
        Some(before)
    }

    /// The recorded id, or another one if it is in use or belongs to a subscription.
    pub(super) fn unused_id(&mut self, recorded: &[u8]) -> Vec<u8> {
        let key = IdKey::new(recorded);
        // Notifications name a subscription by its id, even long after its request.
        if !self.waiting.contains_key(&key) && !self.owners.live.contains_key(&(true, key)) {
            return recorded.to_vec();
        }
        self.new_id()
    }

    pub(super) fn new_id(&mut self) -> Vec<u8> {
        new_own_id(&mut self.ids, |id| self.waiting.contains_key(id))
    }

    /// Whether an earlier request used the progress token, so that late progress could be confused.
    pub(super) fn is_token_used(&self, token: &[u8]) -> bool {
        self.owners.live.contains_key(&(false, IdKey::new(token)))
    }
}

/// Whether the client introduces itself on the tape, in the way of either era.
pub(super) fn has_initialize(
    tape: &mut VerifierTape<'_>,
    entry_numbers: &[u32],
) -> io::Result<bool> {
    /// Clients introduce themselves early.
    const REQUESTS_MAX: usize = 100;
    let request_numbers = |entry_number: &u32| {
        let entry = tape.index.entry(*entry_number);
        entry.from == Side::Client && entry.kind == MessageKind::Request
    };
    let early: Vec<u32> =
        entry_numbers.iter().copied().filter(request_numbers).take(REQUESTS_MAX).collect();
    for entry_number in early {
        let text = tape.text(entry_number)?;
        let frame = Frame::read(&text);
        let Some(envelope) = frame.envelope() else { continue };
        let introduces = envelope.is_method("initialize") || envelope.is_method("server/discover");
        if introduces || envelope.protocol_version.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The `_meta` of params without the progress token, for a request of our own.
pub(super) fn own_meta(params: &[u8]) -> Option<Vec<u8>> {
    let meta = member(params, "_meta").filter(|meta| meta.starts_with(b"{"))?;
    let kept =
        |key: JsonStr<'_>, value| Ok((!key.is("progressToken")).then_some(Cow::Borrowed(value)));
    map_members(meta, kept).ok()
}
