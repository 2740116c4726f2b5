//! Requests for human approval.

use tapegate_core::gate::{HoldEnd, HoldId, UserChoice};
use tapegate_core::json::{self, Cursor, JsonFault, JsonKind, member, write_str};
use tapegate_core::side::Lane;
use tapegate_core::signature::canonical;
use tapegate_core::time::Timestamp;

use crate::decide::{ApprovalScope, PolicyPrincipal};
use crate::judge::AskMode;
use crate::model::Workflow;
use crate::refuse::RefusalSubject;

/// Asks approvers. Their answers reach the relay by a separate path, not through this trait.
pub trait ApprovalChannel: Send {
    /// A call waits for approval.
    fn request_approval(&mut self, hold_id: HoldId, request: &ApprovalRequest<'_>);

    /// A call no longer waits, although no approver has answered.
    fn withdraw_request(&mut self, at: Timestamp, hold_id: HoldId, how: HoldEnd);

    /// The user of the client was asked about a call that waits, and has answered.
    fn answer_request(&mut self, _at: Timestamp, _hold_id: HoldId, _answer: &UserAnswer) {}
}

/// The answer of a client's user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserAnswer {
    /// The decision; `None` if the user has made none.
    pub choice: Option<UserChoice>,
    pub client: String,
}

impl UserAnswer {
    /// Who has decided, as the log names them.
    pub fn by(&self) -> String {
        format!("user of {}", self.client)
    }
}

/// An answer that came with the call that it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedAnswer {
    /// The request that it answers.
    pub approval_id: String,
    pub answer: UserAnswer,
}

/// A call that waits for approval.
#[derive(Debug)]
pub struct ApprovalRequest<'a> {
    /// When the call arrived.
    pub at: Timestamp,
    /// Its session and HTTP exchange.
    pub lane: Lane,
    /// The name of the server.
    pub source: &'a str,
    pub method: &'a str,
    /// What is called; builds the refusal if it is rejected.
    pub subject: &'a RefusalSubject,
    /// The raw JSON of the whole `params`.
    pub params: Option<&'a [u8]>,
    /// The raw id of the request.
    pub id: Option<&'a [u8]>,
    /// The whole message.
    pub message: &'a [u8],
    /// The caller.
    pub principal: &'a PolicyPrincipal,
    pub workflow_name: &'a str,
    pub workflow: &'a Workflow,
    /// Why approval is needed.
    pub reason: &'a str,
    /// How the definition differs from the accepted one, if that is the reason.
    pub drift: Option<&'a str>,
    pub policy_version: &'a str,
    /// How long the call may wait.
    pub timeout_ms: u64,
    /// How the client's user may be asked, if at all.
    pub ask: Option<AskMode>,
    /// The answer of the client's user that came with the call.
    pub answer: Option<CarriedAnswer>,
}

impl ApprovalRequest<'_> {
    /// What the approval is for.
    pub fn scope(&self) -> ApprovalScope<'_> {
        ApprovalScope { workflow: self.workflow_name, drift: self.drift }
    }

    /// The hash shared by all calls that need the same approval.
    pub fn call_hash(&self) -> String {
        call_hash(self.method, self.params, self.scope())
    }
}

/// Members of `_meta` that clients set to a new value for each call, turn or session.
const CALL_IDS: [&str; 16] = [
    "agent_id",
    "baggage",
    "callId",
    "claudecode/toolUseId",
    "conversation_id",
    "itemId",
    "progressToken",
    "sessionID",
    "sessionId",
    "threadId",
    "tool_call_id",
    "traceparent",
    "tracestate",
    "turnId",
    "windowId",
    "x-codex-turn-metadata",
];

/// Whether a member of `_meta` only identifies a single call or its origin, so that it differs even
/// when a call is repeated.
pub fn is_call_id(key: &str) -> bool {
    CALL_IDS.contains(&key)
}

/// Whether params contain more than the name and the arguments of a call. In `_meta`, ids of the
/// single call and the client's data about itself do not count.
pub fn has_more_than_arguments(params: &[u8]) -> bool {
    let is_usual_meta = |key: &str, _: &[u8]| {
        is_call_id(key)
            || key.starts_with("io.modelcontextprotocol/client")
            || key == "io.modelcontextprotocol/protocolVersion"
    };
    let is_usual = |key: &str, value: &[u8]| match key {
        "name" | "arguments" => true,
        // Anything else in `_meta` may change what a server does, so it is shown.
        "_meta" => has_only(value, &is_usual_meta).unwrap_or(false),
        _ => false,
    };
    member(params, "arguments").is_none() || !has_only(params, &is_usual).unwrap_or(false)
}

/// Whether a text is an object whose members are all `usual`.
fn has_only(object: &[u8], usual: &dyn Fn(&str, &[u8]) -> bool) -> Result<bool, JsonFault> {
    let mut only = JsonKind::of(object)? == JsonKind::Object;
    for member in json::members(object) {
        let (key, value) = member?;
        only &= usual(&key.decode(), value);
    }
    Ok(only)
}

/// The blake3 hash of a method, its whole `params` regardless of spelling, and the scope of the
/// approval. Only the ids in `_meta` that identify a single call are left out; any other difference
/// makes a different call.
pub fn call_hash(method: &str, params: Option<&[u8]>, scope: ApprovalScope<'_>) -> String {
    let params = params.unwrap_or(b"{}");
    let mut hasher = blake3::Hasher::new();
    for text in [method, scope.workflow, scope.drift.unwrap_or_default()] {
        // Lengths keep the parts apart, so no two scopes can have the same hash.
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    // Canonical, so that a repeated call finds its approval however its client spells it.
    hasher.update(&canonical(&without_ids(params).unwrap_or_else(|_| params.to_vec())));
    hasher.finalize().to_hex().to_string()
}

/// The params without call ids in `_meta`, and without `_meta` if nothing else is in it.
fn without_ids(params: &[u8]) -> Result<Vec<u8>, JsonFault> {
    members(params, &mut |key, value| {
        if key != "_meta" {
            return Some(value.to_vec());
        }
        let without_ids =
            members(value, &mut |key, value| (!is_call_id(key)).then(|| value.to_vec()));
        Some(without_ids.unwrap_or_else(|_| value.to_vec())).filter(|meta| meta != b"{}")
    })
}

/// Maps a member to its new value, or `None` to drop it.
type MemberFilter<'a> = dyn FnMut(&str, &[u8]) -> Option<Vec<u8>> + 'a;

/// Rewrites an object by applying `kept` to each member; any other text is copied.
fn members(object: &[u8], kept: &mut MemberFilter<'_>) -> Result<Vec<u8>, JsonFault> {
    let mut cursor = Cursor::new(object)?;
    if cursor.kind()? != JsonKind::Object {
        return Ok(object.to_vec());
    }
    cursor.open()?;
    let mut out = b"{".to_vec();
    while let Some(key) = cursor.next_key()? {
        let key = key.decode();
        if let Some(value) = kept(&key, cursor.value()?) {
            out.extend((out.len() > 1).then_some(b','));
            write_str(&mut out, &key);
            out.push(b':');
            out.extend_from_slice(&value);
        }
    }
    cursor.expect_end()?;
    out.push(b'}');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCOPE: ApprovalScope<'_> = ApprovalScope { workflow: "default", drift: None };

    fn hash(text: &str) -> String {
        call_hash("tools/call", Some(text.as_bytes()), SCOPE)
    }

    #[test]
    fn a_call_is_the_same_however_its_params_are_spelled() {
        let one = hash(r#"{"name":"rm","arguments":{"a":1,"b":"é"}}"#);
        assert_eq!(one, hash(r#"{ "arguments":{ "b":"\u00e9", "a":1.0 },"n\u0061me":"rm"}"#));
        assert_eq!(call_hash("m", None, SCOPE), call_hash("m", Some(b"{}"), SCOPE));
        assert_ne!(call_hash("m", None, SCOPE), call_hash("n", None, SCOPE));
        let seniors = ApprovalScope { workflow: "seniors", ..SCOPE };
        assert_ne!(call_hash("m", None, SCOPE), call_hash("m", None, seniors));
        let drifted = ApprovalScope { drift: Some("changed"), ..SCOPE };
        assert_ne!(call_hash("m", None, SCOPE), call_hash("m", None, drifted));
    }

    #[test]
    fn whatever_differs_in_the_params_is_another_call_but_for_ids_of_the_single_call() {
        let one = hash(r#"{"name":"rm","arguments":{"a":1}}"#);
        for other in [
            r#"{"name":"rm","arguments":{"a":2}}"#,
            r#"{"name":"rmx","arguments":{"a":1}}"#,
            r#"{"name":"rm","arguments":{"a":1},"task":{"ttl":1}}"#,
            r#"{"name":"rm","arguments":{"a":1,"_meta":{}}}"#,
            r#"{"name":"rm","arguments":{"a":1},"inputResponses":{}}"#,
            r#"{"name":"rm","arguments":{"a":1},"_meta":{"target":"production"}}"#,
            r#"{"name":"rm","arguments":{"a":1},"_meta":"production"}"#,
            r#"["rm"]"#,
            "not JSON",
        ] {
            assert_ne!(one, hash(other), "{other}");
        }
        let of_codex = r#"{"callId":"c","x-codex-turn-metadata":{"turn_id":"t"},"threadId":"t","sessionId":"s","windowId":"w:0","itemId":"fc_1","progressToken":1}"#;
        let of_claude = r#"{"claudecode/toolUseId":"t","traceparent":"x"}"#;
        for meta in [r#"{"progressToken":7}"#, of_claude, of_codex, "{}"] {
            let meta = format!(r#"{{"_meta":{meta},"name":"rm","arguments":{{"a":1}}}}"#);
            assert_eq!(one, hash(&meta));
        }
        let sampling =
            |text: &str| call_hash("sampling/createMessage", Some(text.as_bytes()), SCOPE);
        assert_ne!(
            sampling(r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#),
            sampling(r#"{"messages":[{"role":"user","content":{"type":"text","text":"b"}}]}"#)
        );
    }
}
