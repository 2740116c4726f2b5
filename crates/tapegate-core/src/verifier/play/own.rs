//! Requests that are not on the tape, and the ids of all requests.

use std::io;

use crate::frame::{Frame, Kind};
use crate::json::{Cursor, Fault, member, write_str};
use crate::pending::IdKey;
use crate::side::Side;

use super::super::finding::NoteSort;
use super::super::tape::Tape;
use super::super::tools::Tools;
use super::{Kit, Play, Purpose, Waiting};

/// The protocol version of a synthetic `initialize`.
const INTRODUCED_VERSION: &str = "2025-06-18";

impl Play {
    /// Sends `initialize` for a session whose `initialize` is not on the tape.
    pub(super) fn introduce(&mut self, kit: &mut Kit<'_, '_>) {
        let able = [
            ("roots/list", "roots"),
            ("sampling/createMessage", "sampling"),
            ("elicitation/create", "elicitation"),
        ];
        let able = able.iter().filter(|(method, _)| self.questions.has(method));
        let able: Vec<String> = able.map(|(_, name)| format!("\"{name}\":{{}}")).collect();
        let params = format!(
            "{{\"protocolVersion\":\"{INTRODUCED_VERSION}\",\"capabilities\":{{{}}},\
             \"clientInfo\":{{\"name\":\"tapegate\",\"version\":\"{}\"}}}}",
            able.join(","),
            env!("CARGO_PKG_VERSION"),
        );
        kit.report.note(self.about(), NoteSort::Introduced);
        self.ask_own(kit, "initialize", params.as_bytes(), Purpose::Introduction);
    }

    pub(super) fn ask_for_tools(&mut self, kit: &mut Kit<'_, '_>, meta: Option<Vec<u8>>) {
        let purpose = Purpose::Tools(Tools::default(), meta.clone());
        self.ask(kit, "tools/list", None, meta.as_deref(), purpose);
    }

    /// Requests a page of a list that the tape has no request for.
    pub(super) fn ask(
        &mut self,
        kit: &mut Kit<'_, '_>,
        method: &str,
        cursor: Option<&[u8]>,
        meta: Option<&[u8]>,
        purpose: Purpose,
    ) {
        let mut params = Vec::new();
        for (key, value) in [("cursor", cursor), ("_meta", meta)] {
            let Some(value) = value else { continue };
            params.push(if params.is_empty() { b'{' } else { b',' });
            write_str(&mut params, key);
            params.push(b':');
            params.extend_from_slice(value);
        }
        if !params.is_empty() {
            params.push(b'}');
        }
        self.ask_own(kit, method, &params, purpose);
    }

    /// Sends a request that is not on the tape; without params if they are empty.
    fn ask_own(&mut self, kit: &mut Kit<'_, '_>, method: &str, params: &[u8], purpose: Purpose) {
        let id = self.new_id();
        let mut text = [b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_slice(), b",\"method\":"].concat();
        write_str(&mut text, method);
        if !params.is_empty() {
            text.extend_from_slice(b",\"params\":");
            text.extend_from_slice(params);
        }
        text.push(b'}');
        self.own += 1;
        self.wait(kit, &id, purpose, Some(kit.now_ns.saturating_add(kit.timeout_ns)));
        kit.say(&text);
    }

    pub(super) fn wait(
        &mut self,
        kit: &Kit<'_, '_>,
        id: &[u8],
        purpose: Purpose,
        deadline_ns: Option<u64>,
    ) -> IdKey {
        let key = IdKey::new(id);
        self.tickets += 1;
        let deadline = deadline_ns.map(|deadline_ns| (deadline_ns, self.tickets));
        if let Some(deadline) = deadline {
            self.deadlines.insert(deadline, key.clone());
        }
        let waiting = Waiting { purpose, deadline, sent_ns: kit.now_ns };
        self.waiting.insert(key.clone(), waiting);
        self.base_ns = kit.now_ns;
        key
    }

    /// Ignores the answer to a request from now on.
    pub(super) fn forget(&mut self, key: &IdKey) -> Option<Waiting> {
        let waiting = self.waiting.get_mut(key)?;
        let late = Waiting { purpose: Purpose::Late, deadline: None, sent_ns: waiting.sent_ns };
        let before = std::mem::replace(waiting, late);
        if let Some(deadline) = before.deadline {
            self.deadlines.remove(&deadline);
        }
        Some(before)
    }

    /// The recorded id, or another one if it is in use or belongs to a subscription.
    pub(super) fn free_id(&mut self, recorded: &[u8]) -> Vec<u8> {
        let key = IdKey::new(recorded);
        if !self.waiting.contains_key(&key) && !self.owners.live.contains_key(&(true, key)) {
            return recorded.to_vec();
        }
        self.new_id()
    }

    pub(super) fn new_id(&mut self) -> Vec<u8> {
        loop {
            self.ids += 1;
            let id = format!("\"tapegate-{}\"", self.ids).into_bytes();
            if !self.waiting.contains_key(&IdKey::new(&id)) {
                return id;
            }
        }
    }

    /// Whether an earlier request used the progress token, so that late progress could be confused.
    pub(super) fn is_token_used(&self, token: &[u8]) -> bool {
        self.owners.live.contains_key(&(false, IdKey::new(token)))
    }
}

/// Whether the client introduces itself on the tape, in the way of either era.
pub(super) fn is_introduced(tape: &mut Tape<'_>, slots: &[u32]) -> io::Result<bool> {
    /// Clients introduce themselves early.
    const REQUESTS_MAX: usize = 100;
    let asks = |slot: &u32| {
        let there = tape.index.slot(*slot);
        there.from == Side::Client && there.kind == Kind::Request
    };
    let early: Vec<u32> = slots.iter().copied().filter(asks).take(REQUESTS_MAX).collect();
    for slot in early {
        let text = tape.text(slot)?;
        let frame = Frame::read(&text);
        let Some(said) = frame.envelope() else { continue };
        let introduces = said.is_method("initialize") || said.is_method("server/discover");
        if introduces || said.protocol_version.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The `_meta` of params without the progress token, for a request of our own.
pub(super) fn own_meta(params: &[u8]) -> Option<Vec<u8>> {
    let meta = member(params, "_meta")?;
    without(meta, "progressToken").ok()
}

/// The object `text` without the member `name`.
fn without(text: &[u8], name: &str) -> Result<Vec<u8>, Fault> {
    let mut cursor = Cursor::new(text)?;
    let (mut out, mut first) = (vec![b'{'], true);
    cursor.open()?;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        if key.is(name) {
            continue;
        }
        out.extend((out.len() > 1).then_some(b','));
        out.extend([b"\"", key.raw, b"\":", value].concat());
    }
    out.push(b'}');
    Ok(out)
}
