//! Requests that a server puts into a response that asks for input first.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{self, JsonFault, JsonKind};

use crate::inspect::MessageFault;

/// The methods of the requests in `inputRequests`; all of them if a request has several. A list of
/// requests is accepted too, as lenient clients do. Any other form is a fault: a client might find
/// requests in it that were not judged.
pub(super) fn methods(requests: Option<&[u8]>) -> Result<Vec<String>, MessageFault> {
    match requests {
        None | Some(b"null") => Ok(Vec::new()),
        Some(requests) => read(requests).ok().flatten().ok_or(MessageFault::InputRequests),
    }
}

fn read(requests: &[u8]) -> Result<Option<Vec<String>>, JsonFault> {
    let mut found = Vec::new();
    if !matches!(JsonKind::of(requests)?, JsonKind::Object | JsonKind::Array) {
        return Ok(None);
    }
    for request in json::children(requests) {
        let before = found.len();
        // A request without a method would be judged by no rule, but a client might still act on
        // it.
        if !add_methods(request?.1, &mut found)? || found.len() == before {
            return Ok(None);
        }
    }
    Ok(Some(found))
}

/// Adds the methods of one request; false if it is not a request.
fn add_methods(request: &[u8], found: &mut Vec<String>) -> Result<bool, JsonFault> {
    if JsonKind::of(request)? != JsonKind::Object {
        return Ok(false);
    }
    for member in json::members(request) {
        let (key, value) = member?;
        if lenient_key_match(key, &["method"]).is_some() {
            let Some(method) = json::string(value) else { return Ok(false) };
            found.push(method.into());
        }
    }
    Ok(true)
}
