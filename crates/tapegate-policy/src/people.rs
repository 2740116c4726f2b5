//! How people are asked about calls that wait for them.

use tapegate_core::gate::{HoldEnd, Ticket};
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
    /// The raw JSON of the arguments.
    pub arguments: Option<&'a [u8]>,
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
        call_hash(self.method, &self.subject.name, self.arguments)
    }
}

/// The blake3 hash of a method, a name and arguments, whatever the arguments' spelling.
pub fn call_hash(method: &str, name: &str, arguments: Option<&[u8]>) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [method, name] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(&canonical(arguments.unwrap_or(b"{}")));
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_same_however_its_arguments_are_spelled() {
        let hash = |text: &str| call_hash("tools/call", "rm", Some(text.as_bytes()));
        assert_eq!(hash(r#"{"a":1,"b":"é"}"#), hash(r#"{ "b":"\u00e9", "a":1.0 }"#));
        assert_ne!(hash(r#"{"a":1}"#), hash(r#"{"a":2}"#));
        assert_eq!(call_hash("m", "n", None), call_hash("m", "n", Some(b"{}")));
        assert_ne!(call_hash("m", "nx", None), call_hash("mn", "x", None));
    }
}
