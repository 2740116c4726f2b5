//! Questions to the user of a client: whether a held call may be sent.
//!
//! A question has one fixed form, in which only the text and the choices differ. Its schema has one
//! required member without a default, because some clients accept a form without members, or with
//! defaults for all of them, without showing it to their user.

use crate::frame::request_text;
use crate::json::{self, JsonObject};

/// The method that asks.
const METHOD: &str = "elicitation/create";
/// The member of the form that holds the decision.
const DECISION: &str = "decision";
/// The choice that approves.
const APPROVE: &str = "approve";
/// The choice that denies.
const DENY: &str = "deny";
/// The key of our question among the input requests of a result.
pub const INPUT_KEY: &str = "tapegate-approval";

/// A question to the user of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserQuestion {
    id: Vec<u8>,
    params: Vec<u8>,
    may_approve: bool,
}

/// A question that is asked in the result of the call: the client makes the call again, with the
/// answer and `state`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputQuestion {
    question: UserQuestion,
    state: String,
}

/// What a user has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserChoice {
    /// The call may be sent.
    Approve,
    /// The call must not be sent.
    Deny,
}

impl UserQuestion {
    /// A question. `id` is a text that no peer can guess. Without `may_approve`, the user can only
    /// deny: the text does not show the whole call.
    pub fn new(id: &str, message: &str, may_approve: bool) -> Self {
        // Some clients preselect the first choice, and a key pressed too early must not approve.
        let choices = if may_approve { &[DENY, APPROVE][..] } else { &[DENY] };
        let decision = JsonObject::new()
            .text("type", "string")
            .text("title", "Decision")
            .text("description", "Whether the call may be sent")
            .raw("enum", json::array(choices.iter().map(|choice| json::quoted(choice))));
        let schema = JsonObject::new()
            .text("type", "object")
            .object("properties", JsonObject::new().object(DECISION, decision))
            .raw("required", json::array([json::quoted(DECISION)]));
        let params = JsonObject::new().text("message", message).object("requestedSchema", schema);
        Self { id: json::quoted(id), params: params.finish(), may_approve }
    }

    /// Its raw id.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// Whether the user may approve, because the text shows the whole call.
    pub fn may_approve(&self) -> bool {
        self.may_approve
    }

    /// The request `elicitation/create`, on one line.
    pub(crate) fn request(&self) -> Vec<u8> {
        request_text(&self.id, METHOD, Some(&self.params))
    }
}

impl InputQuestion {
    /// A question whose answer comes back with `state`.
    pub fn new(question: UserQuestion, state: String) -> Self {
        Self { question, state }
    }

    /// The result that asks the question, on one line.
    pub(crate) fn result(&self) -> Vec<u8> {
        let request = JsonObject::new().text("method", METHOD).raw("params", &self.question.params);
        JsonObject::new()
            .text("resultType", "input_required")
            .object("inputRequests", JsonObject::new().object(INPUT_KEY, request))
            .text("requestState", &self.state)
            .finish()
    }
}

impl UserChoice {
    /// The choice in an elicitation result; `None` if the user has made none.
    pub fn read(result: &[u8]) -> Option<Self> {
        let action = json::member(result, "action").and_then(json::string)?;
        match &*action {
            "decline" => Some(Self::Deny),
            // An accepted form counts only with the explicit choice in it.
            "accept" => {
                let content = json::member(result, "content")?;
                let choice = json::member(content, DECISION).and_then(json::string)?;
                match &*choice {
                    APPROVE => Some(Self::Approve),
                    DENY => Some(Self::Deny),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_one_message_whatever_its_text_is() {
        let text = "a\"},\"method\":\"tools/call\"\n\u{7}";
        let question = UserQuestion::new("q\"\n", text, true);
        let request = question.request();
        assert!(!request.contains(&b'\n'));
        assert!(json::check(&request).is_ok_and(|whole| whole.len() == request.len()));
        let params = json::member(&request, "params").unwrap();
        assert_eq!(json::member(params, "message").and_then(json::string).unwrap(), text);
        let input = InputQuestion::new(question, "s\"".to_owned()).result();
        assert!(json::check(&input).is_ok_and(|whole| whole.len() == input.len()));
        assert_eq!(json::member(&input, "requestState").and_then(json::string).unwrap(), "s\"");
    }

    #[test]
    fn only_an_explicit_choice_counts() {
        let read = |text: &str| UserChoice::read(text.as_bytes());
        let (approve, deny) = (Some(UserChoice::Approve), Some(UserChoice::Deny));
        for (text, choice) in [
            (r#"{"action":"accept","content":{"decision":"approve"}}"#, approve),
            (r#"{"action":"accept","content":{"decision":"deny"}}"#, deny),
            (r#"{"action":"decline"}"#, deny),
            (r#"{"action":"decline","content":{"decision":"approve"}}"#, deny),
            (r#"{"action":"accept"}"#, None),
            (r#"{"action":"accept","content":{}}"#, None),
            (r#"{"action":"accept","content":{"decision":true}}"#, None),
            (r#"{"action":"accept","content":{"decision":"Approve"}}"#, None),
            (r#"{"action":"cancel"}"#, None),
            (r#"{"action":"cancel","content":{"decision":"approve"}}"#, None),
            (r#"{"content":{"decision":"approve"}}"#, None),
            ("[]", None),
        ] {
            assert_eq!(read(text), choice, "{text}");
        }
    }
}
