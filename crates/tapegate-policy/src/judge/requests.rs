//! The requests that a server puts into an answer, before it gives the answer itself.

use tapegate_core::frame::careless;
use tapegate_core::json::{self, Cursor, Fault, Kind};

/// The methods of the requests in an `inputRequests`; of one that has several, each.
pub(super) fn methods(requests: &[u8]) -> Result<Vec<String>, Fault> {
    let mut cursor = Cursor::new(requests)?;
    let mut found = Vec::new();
    if cursor.kind()? != Kind::Object {
        return Ok(found);
    }
    let mut first = true;
    cursor.open()?;
    while cursor.key(&mut first)?.is_some() {
        let mut request = Cursor::new(cursor.value()?)?;
        if request.kind()? != Kind::Object {
            continue;
        }
        let mut first = true;
        request.open()?;
        while let Some(key) = request.key(&mut first)? {
            let value = request.value()?;
            let method = careless(key, &["method"]).and_then(|_| json::string(value));
            found.extend(method.map(String::from));
        }
    }
    Ok(found)
}
