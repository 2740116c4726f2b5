//! Requests that a server puts into a response that asks for input first.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{self, Cursor, JsonFault, JsonKind};

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
    let mut cursor = Cursor::new(requests)?;
    let mut found = Vec::new();
    let mut first = true;
    if !matches!(cursor.kind()?, JsonKind::Object | JsonKind::Array) {
        return Ok(None);
    }
    let is_map = cursor.open()? == JsonKind::Object;
    loop {
        let goes_on = match is_map {
            true => cursor.key(&mut first)?.is_some(),
            false => cursor.next_element(&mut first)?,
        };
        if !goes_on {
            return Ok(Some(found));
        }
        let before = found.len();
        // A request without a method would be judged by no rule, but a client might still act on
        // it.
        if !add_methods(cursor.value()?, &mut found)? || found.len() == before {
            return Ok(None);
        }
    }
}

/// Adds the methods of one request; false if it is not a request.
fn add_methods(request: &[u8], found: &mut Vec<String>) -> Result<bool, JsonFault> {
    let mut cursor = Cursor::new(request)?;
    if cursor.kind()? != JsonKind::Object {
        return Ok(false);
    }
    let mut first = true;
    cursor.open()?;
    while let Some(key) = cursor.key(&mut first)? {
        let value = cursor.value()?;
        if lenient_key_match(key, &["method"]).is_some() {
            let Some(method) = json::string(value) else { return Ok(false) };
            found.push(method.into());
        }
    }
    Ok(true)
}
