//! What people who decide about a call are shown of its arguments: everything but the secrets.

use tapegate_core::json::member;
use tapegate_core::tape::Mask;

use crate::model::{Redaction, Workflow};
use crate::redact::{Key, Redactor, Rules};

/// The arguments in the raw `params` of a call, as JSON, with what the policy redacts and the fields
/// that the workflow names masked. A call without arguments has none.
pub fn arguments(
    redaction: &Redaction,
    workflow: &Workflow,
    key: &Key,
    params: &[u8],
) -> Option<String> {
    let known = redaction.rules.iter().flat_map(Rules::texts).cloned();
    let fields = workflow.redact_fields.iter().flat_map(|field| of_field(field));
    let rules: Vec<String> = known.chain(fields).collect();
    let message = [b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":", params, b"}"];
    let message = message.concat();
    let masked = match Rules::parse(&rules) {
        Ok(rules) if rules.is_empty() => message,
        Ok(rules) => Redactor::new(rules, key.clone()).message(&message).text.into_owned(),
        // A field that is no path was named to be hidden; what it is about is not known, so all is.
        Err(_) => return Some("\"[REDACTED]\"".to_owned()),
    };
    let arguments = member(member(&masked, "params")?, "arguments")?;
    Some(String::from_utf8_lossy(arguments).into_owned())
}

/// The rules that mask a field: it is named from the arguments, or from the parameters.
fn of_field(field: &str) -> Vec<String> {
    if field.starts_with("..") {
        return vec![field.to_owned()];
    }
    let from_params = field.starts_with("arguments").then(|| format!("params.{field}"));
    from_params.into_iter().chain([format!("params.arguments.{field}")]).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn shown(rules: &[&str], fields: &[&str], params: &str) -> Option<String> {
        let rules = Rules::parse(rules).expect("rules");
        let rules = (!rules.is_empty()).then_some(rules);
        let workflow = Workflow {
            timeout: Duration::from_secs(1),
            blocking_timeout: Duration::from_secs(1),
            forward_on_timeout: false,
            redact_fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            approvers: Vec::new(),
        };
        let redaction = Redaction { rules, on_wire: false };
        arguments(&redaction, &workflow, &Key::on_tape([7; 32]), params.as_bytes())
    }

    #[test]
    fn arguments_are_shown_as_they_are_if_nothing_is_to_be_hidden() {
        assert_eq!(
            shown(&[], &[], r#"{"name":"x","arguments":{"a": 1.0}}"#).as_deref(),
            Some(r#"{"a": 1.0}"#)
        );
        assert_eq!(shown(&[], &[], r#"{"uri":"x"}"#), None);
    }

    #[test]
    fn what_the_policy_or_the_workflow_hides_is_not_shown() {
        let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
        let params = format!(
            r#"{{"name":"x","arguments":{{"t":"{token}","deep":{{"pin":98765,"list":[{{"pin":5}}]}},"y":"seen"}}}}"#
        );
        let text = shown(&["secrets"], &["deep.pin"], &params).expect("arguments");
        assert!(
            !text.contains(token) && !text.contains("98765") && text.contains("seen"),
            "{text}"
        );
        let text = shown(&[], &["arguments.deep"], &params).expect("arguments");
        assert!(!text.contains("98765") && text.contains("seen"), "{text}");
        let text = shown(&[], &["deep.list[*].pin"], &params).expect("arguments");
        assert!(text.contains("98765") && !text.contains(":5"), "{text}");
    }

    #[test]
    fn a_field_that_makes_no_sense_hides_everything() {
        let text = shown(&[], &["a[[b"], r#"{"arguments":{"secret":1}}"#).expect("arguments");
        assert!(!text.contains("secret"), "{text}");
    }
}
