//! How people are asked about calls that wait for them.

use tapegate_core::gate::{HoldEnd, Ticket};
use tapegate_core::json::{Cursor, Fault, Kind, write_str};
use tapegate_core::side::Lane;
use tapegate_core::signature::canonical;
use tapegate_core::time::At;

use crate::decide::Principal;
use crate::model::Workflow;
use crate::refuse::Subject;

/// Asks people. Their answers come to the relay by its own way, not by this one.
pub trait People: Send {
    /// A call waits for an answer.
    fn ask(&mut self, ticket: Ticket, asking: &Asking<'_>);

    /// A call waits no more, though nobody has answered.
    fn withdraw(&mut self, at: At, ticket: Ticket, how: HoldEnd);
}

/// A call that waits for an answer.
#[derive(Debug)]
pub struct Asking<'a> {
    /// When the call came.
    pub at: At,
    /// The conversation.
    pub lane: Lane,
    /// The server, by its name.
    pub source: &'a str,
    /// The method.
    pub method: &'a str,
    /// What is called, and how to refuse it.
    pub subject: &'a Subject,
    /// The raw JSON of the whole `params`.
    pub params: Option<&'a [u8]>,
    /// The raw id of the request.
    pub id: Option<&'a [u8]>,
    /// The whole message.
    pub message: &'a [u8],
    /// Who calls.
    pub principal: &'a Principal,
    /// The name of the workflow.
    pub workflow_name: &'a str,
    /// The workflow.
    pub workflow: &'a Workflow,
    /// Why a person is asked.
    pub reason: &'a str,
    /// The version of the policy.
    pub policy_version: &'a str,
    /// How long the call may wait.
    pub timeout_ms: u64,
}

impl Asking<'_> {
    /// What this call has in common with every other that asks for the same.
    pub fn call_hash(&self) -> String {
        call_hash(self.method, self.params)
    }
}

/// The blake3 hash of a method and its whole `params`, whatever their spelling. Only `_meta` is left
/// out: clients put ids of the single call there (progress tokens, tool use ids, times), so a call
/// that is repeated never has the same. Everything else that differs is another call.
pub fn call_hash(method: &str, params: Option<&[u8]>) -> String {
    let params = params.unwrap_or(b"{}");
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(method.len() as u64).to_le_bytes());
    hasher.update(method.as_bytes());
    hasher.update(&canonical(&without_meta(params).unwrap_or_else(|_| params.to_vec())));
    hasher.finalize().to_hex().to_string()
}

/// The object without its member `_meta`, or the text as it is if it is not an object.
fn without_meta(params: &[u8]) -> Result<Vec<u8>, Fault> {
    let mut cursor = Cursor::new(params)?;
    if cursor.open()? != Kind::Object {
        return Ok(params.to_vec());
    }
    let (mut out, mut first) = (b"{".to_vec(), true);
    while let Some(key) = cursor.key(&mut first)? {
        let (key, value) = (key.decode(), cursor.value()?);
        if key != "_meta" {
            out.extend((out.len() > 1).then_some(b','));
            write_str(&mut out, &key);
            out.push(b':');
            out.extend_from_slice(value);
        }
    }
    cursor.end()?;
    out.push(b'}');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(text: &str) -> String {
        call_hash("tools/call", Some(text.as_bytes()))
    }

    #[test]
    fn a_call_is_the_same_however_its_params_are_spelled() {
        let one = hash(r#"{"name":"rm","arguments":{"a":1,"b":"é"}}"#);
        assert_eq!(one, hash(r#"{ "arguments":{ "b":"\u00e9", "a":1.0 },"n\u0061me":"rm"}"#));
        assert_eq!(call_hash("m", None), call_hash("m", Some(b"{}")));
        assert_ne!(call_hash("m", None), call_hash("n", None));
    }

    #[test]
    fn whatever_differs_in_the_params_is_another_call_but_for_meta() {
        let one = hash(r#"{"name":"rm","arguments":{"a":1}}"#);
        for other in [
            r#"{"name":"rm","arguments":{"a":2}}"#,
            r#"{"name":"rmx","arguments":{"a":1}}"#,
            r#"{"name":"rm","arguments":{"a":1},"task":{"ttl":1}}"#,
            r#"{"name":"rm","arguments":{"a":1,"_meta":{}}}"#,
            r#"{"name":"rm","arguments":{"a":1},"inputResponses":{}}"#,
            r#"["rm"]"#,
            "not JSON",
        ] {
            assert_ne!(one, hash(other), "{other}");
        }
        let meta = r#"{"_meta":{"progressToken":7},"name":"rm","arguments":{"a":1}}"#;
        assert_eq!(one, hash(meta));
        let sampling = |text: &str| call_hash("sampling/createMessage", Some(text.as_bytes()));
        assert_ne!(
            sampling(r#"{"messages":[{"role":"user","content":{"type":"text","text":"a"}}]}"#),
            sampling(r#"{"messages":[{"role":"user","content":{"type":"text","text":"b"}}]}"#)
        );
    }
}
