//! What approvers see of a call: the whole `params` except the secrets.

use tapegate_core::json::member;
use tapegate_core::tape::Mask;

use crate::model::{RedactionSettings, Workflow};
use crate::redact::{RedactionKey, RedactionRules, Redactor};

/// The raw `params` of a call as JSON, with what the policy redacts and the workflow's
/// `redact_fields` masked.
pub fn params(
    redaction: &RedactionSettings,
    workflow: &Workflow,
    key: &RedactionKey,
    params: &[u8],
) -> String {
    let known = redaction.rules.iter().flat_map(RedactionRules::texts).cloned();
    let fields = workflow.redact_fields.iter().flat_map(|field| of_field(field));
    let rules: Vec<String> = known.chain(fields).collect();
    // Rules are paths into whole messages, so the params are put into one.
    let message = [b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\",\"params\":", params, b"}"];
    let message = message.concat();
    let hidden = || "\"[REDACTED]\"".to_owned();
    let shown = |masked: &[u8]| {
        let params = member(masked, "params");
        params.map_or_else(hidden, |params| String::from_utf8_lossy(params).into_owned())
    };
    match RedactionRules::parse(&rules) {
        Ok(rules) if rules.is_empty() => shown(&message),
        Ok(rules) => {
            let redactor = Redactor::new(rules, key.clone());
            let params = shown(&redactor.message(&message).text);
            // In messages, names and keys are not masked; approvers need not see secrets there
            // either.
            redactor.text(&params).into_owned()
        }
        // A field that is not a valid path was meant to be hidden. Since it is unknown which, hide
        // all.
        Err(_) => hidden(),
    }
}

/// The rules that mask a field, which may be relative to the arguments or to the params.
fn of_field(field: &str) -> Vec<String> {
    if field.starts_with("..") {
        return vec![field.to_owned()];
    }
    let from_params = field.starts_with("arguments").then(|| format!("params.{field}"));
    from_params.into_iter().chain([format!("params.arguments.{field}")]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rules: &[&str], fields: &[&str], text: &str) -> String {
        let rules = RedactionRules::parse(rules).expect("rules");
        let rules = (!rules.is_empty()).then_some(rules);
        let redact_fields = fields.iter().map(|field| (*field).to_owned()).collect();
        let workflow = Workflow { redact_fields, ..Workflow::default() };
        let redaction = RedactionSettings { rules, on_wire: false };
        params(&redaction, &workflow, &RedactionKey::for_tape([7; 32]), text.as_bytes())
    }

    #[test]
    fn the_whole_params_are_shown_as_they_are_if_nothing_is_to_be_hidden() {
        for text in [
            r#"{"name":"x","arguments":{"a": 1.0},"task":{"ttl":60}}"#,
            r#"{"uri":"x"}"#,
            r#"{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}]}"#,
        ] {
            assert_eq!(shown(&[], &[], text), text);
        }
    }

    #[test]
    fn what_the_policy_or_the_workflow_hides_is_not_shown() {
        let token = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
        let params = format!(
            r#"{{"name":"x","arguments":{{"t":"{token}","deep":{{"pin":98765,"list":[{{"pin":5}}]}},"y":"seen"}}}}"#
        );
        let text = shown(&["secrets"], &["deep.pin"], &params);
        assert!(
            !text.contains(token) && !text.contains("98765") && text.contains("seen"),
            "{text}"
        );
        let text = shown(&[], &["arguments.deep"], &params);
        assert!(!text.contains("98765") && text.contains("seen"), "{text}");
        let text = shown(&[], &["deep.list[*].pin"], &params);
        assert!(text.contains("98765") && !text.contains(":5"), "{text}");
    }

    #[test]
    fn a_field_that_makes_no_sense_hides_everything() {
        let text = shown(&[], &["a[[b"], r#"{"arguments":{"secret":1}}"#);
        assert!(!text.contains("secret"), "{text}");
    }
}
