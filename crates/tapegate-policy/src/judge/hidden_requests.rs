//! Requests of a server outside of request messages: in a task that a notification or a result
//! describes, and in an error that asks the user to open a page first.

use tapegate_core::frame::{Envelope, lenient_key_match};

use super::input_requests;
use crate::filter;
use crate::inspect::MessageFault;

/// How many levels of nested tasks are searched.
const DEPTH_MAX: usize = 4;
// The order matters: `search` tells these places apart by their index.
const PLACES: &[&str] = &["inputRequests", "elicitations", "task", "tasks"];

/// The methods of the requests inside a server's message that is not itself a request; a fault if
/// they are malformed.
pub(super) fn methods(envelope: &Envelope<'_>) -> Result<Vec<String>, MessageFault> {
    let mut found = match (envelope.result, envelope.input_requests) {
        (Some(_), requests) => input_requests::methods(requests)?,
        _ => Vec::new(),
    };
    // `notifications/tasks/status` and the like describe a task that may ask for input.
    if let (Some(_), Some(params)) = (envelope.method, envelope.params) {
        search(params, DEPTH_MAX, &mut found)?;
    }
    if let Some(tasks) = envelope.tasks {
        search(tasks, DEPTH_MAX, &mut found)?;
    }
    if let Some(error) = envelope.error {
        // A `URLElicitationRequiredError` lists in `data` the pages that the user should open.
        for (_, data) in members(error, &["data"]) {
            search(data, DEPTH_MAX, &mut found)?;
        }
    }
    Ok(found)
}

/// The members of an object that some reader takes for one of these names, with the index of the
/// name.
fn members<'a>(object: &'a [u8], names: &[&str]) -> Vec<(usize, &'a [u8])> {
    let all = filter::members(object).into_iter();
    all.filter_map(|member| Some((lenient_key_match(member.key, names)?, member.value))).collect()
}

fn search(value: &[u8], depth: usize, found: &mut Vec<String>) -> Result<(), MessageFault> {
    if depth == 0 {
        // The protocol nests tasks once. Deeper ones can only be meant to be overlooked.
        return match value.first() {
            Some(b'{' | b'[') => Err(MessageFault::InputRequests),
            _ => Ok(()),
        };
    }
    if value.starts_with(b"[") {
        let items = tapegate_core::frame::array_items(value);
        return items.into_iter().try_for_each(|item| search(item, depth - 1, found));
    }
    for (place, value) in members(value, PLACES) {
        match place {
            0 => found.extend(input_requests::methods(Some(value))?),
            // The elements have no method of their own; rules about `elicitation/create` are meant
            // for them.
            1 if is_non_empty(value) => found.push("elicitation/create".to_owned()),
            1 => {}
            _ => search(value, depth - 1, found)?,
        }
    }
    Ok(())
}

fn is_non_empty(value: &[u8]) -> bool {
    !matches!(value, b"null" | b"[]" | b"{}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use tapegate_core::frame::Frame;

    fn found(text: &str) -> Vec<String> {
        methods(Frame::read(text.as_bytes()).envelope().expect("a message")).expect("readable")
    }

    #[test]
    fn requests_are_found_wherever_a_server_puts_them() {
        let asks = r#"{"a":{"method":"sampling/createMessage"}}"#;
        for text in [
            format!(r#"{{"method":"notifications/tasks","params":{{"inputRequests":{asks}}}}}"#),
            format!(
                r#"{{"method":"notifications/tasks/status","params":{{"InputRequests":{asks}}}}}"#
            ),
            format!(r#"{{"method":"x","params":{{"task":{{"inputRequests":{asks}}}}}}}"#),
            format!(r#"{{"id":1,"result":{{"task":{{"inputRequests":{asks}}}}}}}"#),
            format!(r#"{{"id":1,"result":{{"tasks":[{{"input_requests":{asks}}}]}}}}"#),
            format!(r#"{{"id":1,"error":{{"code":1,"data":{{"inputRequests":{asks}}}}}}}"#),
        ] {
            assert_eq!(found(&text), ["sampling/createMessage"], "{text}");
        }
        let url = r#"{"id":1,"error":{"code":-32042,"data":{"elicitations":[{"mode":"url"}]}}}"#;
        assert_eq!(found(url), ["elicitation/create"]);
        for text in [
            r#"{"id":1,"result":{"content":[{"inputRequests":{}}]}}"#,
            r#"{"id":1,"error":{"code":-32042,"data":{"elicitations":[]}}}"#,
            r#"{"method":"notifications/progress","params":{"progress":1}}"#,
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn tasks_that_are_nested_too_deeply_are_a_fault() {
        let nested = |levels: usize, inner: &str| {
            let task = format!("{}{inner}{}", r#"{"task":"#.repeat(levels), "}".repeat(levels));
            format!(r#"{{"method":"x","params":{task}}}"#)
        };
        let methods_in =
            |text: &str| methods(Frame::read(text.as_bytes()).envelope().expect("a message"));
        assert_eq!(methods_in(&nested(4, "{}")), Err(MessageFault::InputRequests));
        assert_eq!(methods_in(&nested(9, "{}")), Err(MessageFault::InputRequests));
        assert_eq!(methods_in(&nested(3, "{}")), Ok(Vec::new()));
        assert_eq!(methods_in(&nested(4, "1")), Ok(Vec::new()));
    }
}
