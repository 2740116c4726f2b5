//! The arguments of a call as people are shown them who decide about it.
//!
//! What the policy redacts anywhere is masked here too, and so is what the workflow names. When in
//! doubt nothing is shown.

use tapegate_core::frame::{Body, Frame};
use tapegate_core::json::member;
use tapegate_core::tape::Mask;

use crate::model::{Redaction, Workflow};
use crate::redact::{Key, Redactor, Rules};

/// What is shown where nothing can be.
const WITHHELD: &str = "\"[REDACTED]\"";

/// The arguments, given as JSON, with the secrets masked.
pub fn shown(redaction: &Redaction, workflow: &Workflow, key: &Key, arguments: &[u8]) -> String {
    masked(redaction, workflow, key, arguments).unwrap_or_else(|| WITHHELD.to_owned())
}

fn masked(
    redaction: &Redaction,
    workflow: &Workflow,
    key: &Key,
    arguments: &[u8],
) -> Option<String> {
    let own = redaction.rules.iter().flat_map(|rules| rules.texts().iter().cloned());
    let named = workflow.redact_fields.iter().map(|path| within(path));
    let rules = Rules::parse(own.chain(named)).ok()?;
    if rules.is_empty() {
        return String::from_utf8(arguments.to_vec()).ok();
    }
    let mut message =
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":"#.to_vec();
    message.extend_from_slice(arguments);
    message.extend_from_slice(b"}}");
    let masked = Redactor::new(rules, key.clone()).message(&message).text.into_owned();
    let frame = Frame::read(&masked);
    let Body::Message(said) = frame.body() else { return None };
    let arguments = member(said.params?, "arguments")?;
    String::from_utf8(arguments.to_vec()).ok()
}

/// A path into arguments as a path into a message.
fn within(path: &str) -> String {
    let path = path.strip_prefix('$').unwrap_or(path);
    let dot = if path.starts_with(['.', '[']) { "" } else { "." };
    format!("params.arguments{dot}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(fields: &[&str], rules: &[&str], arguments: &str) -> String {
        let redaction = Redaction {
            rules: (!rules.is_empty()).then(|| Rules::parse(rules).unwrap()),
            ..Redaction::default()
        };
        let redact_fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let workflow = Workflow { redact_fields, ..Workflow::default() };
        shown(&redaction, &workflow, &Key::from_secret(b"k"), arguments.as_bytes())
    }

    #[test]
    fn what_a_workflow_names_is_not_shown_also_inside_of_lists() {
        let text = r#"{"a":1, "user":{"email":"x@y"},"rows":[{"pin":7},{"pin":8}]}"#;
        assert_eq!(show(&[], &[], text), text);
        let shown = show(&["user.email", "$.rows[*].pin"], &[], text);
        assert!(shown.starts_with(r#"{"a":1, "user":{"email":"[REDACTED:"#), "{shown}");
        assert!(!shown.contains("x@y") && !shown.contains("\"pin\":7") && !shown.contains("8}"));
    }

    #[test]
    fn what_is_redacted_anywhere_is_redacted_here() {
        let text = r#"{"q":"ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#;
        assert!(!show(&[], &["secrets"], text).contains("ghp_0123"));
    }

    #[test]
    fn when_in_doubt_nothing_is_shown() {
        assert_eq!(show(&["a["], &[], "{}"), WITHHELD);
        assert_eq!(show(&["a"], &[], r#"{"a":"#), WITHHELD);
    }
}
