//! Checks parameter names in queries and forms, as the most lenient parser reads them.

use tapegate_core::lenient::spelling::percent_decode;

use super::{RequestRejection, printable_text};

/// The members of a JSON-RPC message.
const MEMBERS: [&str; 6] = ["jsonrpc", "method", "params", "id", "result", "error"];
/// How many layers of percent-encoding are decoded.
const ENCODED_MAX: usize = 3;

/// Refuses a query that overrides the method or contains a message.
pub(super) fn check_query(query: &str) -> Result<(), RequestRejection> {
    let decoded = decoded_wholly(query).to_lowercase();
    let names: Vec<&str> = names(&decoded).collect();
    let has = |wanted: &str| names.iter().any(|name| base_name(name) == wanted);
    let overrides = |name: &&str| {
        let plain = normalized_name(name);
        plain.starts_with("xhttpmethod")
            || plain == "httpmethodoverride"
            || (plain == "method" && base_name(name) != "method")
    };
    if names.iter().any(overrides) {
        return Err(RequestRejection::new(400, "the query must not override the method"));
    }
    let nested = |name: &&str| base_name(name) == "params" && *name != "params";
    let holds_message = decoded.contains("jsonrpc")
        || decoded.contains("\"method\"")
        || (has("method") && has("params"))
        || names.iter().any(nested);
    if holds_message {
        return Err(RequestRejection::new(
            400,
            "a message must be sent as the body of a POST, not in the query",
        ));
    }
    Ok(())
}

/// Refuses a query that repeats a parameter of the server's own URL in any spelling: parsers differ
/// in which of two they use.
pub fn check_own_query(own: Option<&str>, requested: Option<&str>) -> Result<(), RequestRejection> {
    let (Some(own), Some(requested)) = (own, requested) else { return Ok(()) };
    if own == requested {
        return Ok(());
    }
    let (own, decoded) = (decoded_wholly(own), decoded_wholly(requested));
    let fixed: Vec<String> = names(&own).map(normalized_name).collect();
    let mut again = names(requested).chain(names(&decoded)).filter(|name| !name.is_empty());
    match again.find(|name| fixed.contains(&normalized_name(&decoded_wholly(name)))) {
        None => Ok(()),
        Some(name) => {
            let name = printable_text(name.as_bytes());
            let reason = format!("the query must not name `{name}`: the server's URL sets it");
            Err(RequestRejection::new(400, reason))
        }
    }
}

/// Whether a body is an encoded login form: simple names only, none of which is a member of a
/// JSON-RPC message. Parsers that build objects from brackets or dots find none.
pub(super) fn is_login_form(body: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(body) else { return false };
    let decoded = decoded_wholly(text).to_lowercase();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let fits = |pair: &str| {
        let name = pair.split('=').next().unwrap_or_default();
        let is_empty = pair.is_empty();
        let plain = normalized_name(name);
        is_empty
            || (!plain.is_empty()
                && name.bytes().all(is_plain)
                && !MEMBERS.contains(&plain.as_str()))
    };
    text.bytes().all(is_form_byte) && text.split('&').all(fits) && !decoded.contains("jsonrpc")
}

/// Bytes of an encoded form. They do not suffice to write a JSON object or array.
fn is_form_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"%&+=-._~*".contains(&byte)
}

/// A path and query for the log, without the values of parameters.
pub(in crate::http) fn without_values(path: &str, query: Option<&str>) -> String {
    let path = printable_text(path.as_bytes());
    let Some(query) = query.filter(|query| !query.is_empty()) else { return path };
    let names: Vec<String> =
        names(query).map(|name| format!("{}=*", printable_text(name.as_bytes()))).collect();
    format!("{path}?{}", names.join("&"))
}

/// The parameter names of a query, split at either separator.
fn names(query: &str) -> impl Iterator<Item = &str> {
    query.split(['&', ';']).map(|pair| pair.split('=').next().unwrap_or_default())
}

/// The part of a name before its brackets or dots; leading brackets are skipped.
fn base_name(name: &str) -> &str {
    let name = name.trim().trim_start_matches('[');
    &name[..name.find(['[', ']', '.']).unwrap_or(name.len())]
}

/// A name without the characters that parsers drop, replace or cut off.
fn normalized_name(name: &str) -> String {
    let base = name.trim().trim_start_matches('[');
    let base = &base[..base.find(['[', ']']).unwrap_or(base.len())];
    let dropped = |c: &char| !c.is_whitespace() && !['_', '-', '.', '+', '\0'].contains(c);
    base.to_lowercase().replace('ſ', "s").chars().filter(dropped).collect()
}

/// Decodes up to [`ENCODED_MAX`] layers of percent-encoding.
fn decoded_wholly(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..ENCODED_MAX {
        let Some(decoded) = percent_decode(&text) else { break };
        text = decoded;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_of_a_login_holds_no_member_of_a_message_in_any_spelling() {
        for form in [
            "grant_type=authorization_code&code=a%2Fb&code_verifier=x&resource=http%3A%2F%2Fh",
            "grant_type=refresh_token&refresh_token=r&scope=a+b&client-id=1&x=+1",
            "token=abc&token_type_hint=access_token&",
            "",
        ] {
            assert!(is_login_form(form.as_bytes()), "{form}");
        }
        for form in [
            "jsonrpc=2.0&id=1&method=tools%2Fcall&params%5Bname%5D=evil",
            "method=tools%2Fcall",
            "grant_type=x&METHOD=y",
            "_method=y",
            "m%65thod=y",
            "m%2565thod=y",
            "method%00=y",
            "params[name]=evil",
            "x%5Bmethod%5D=y",
            "%5Bmethod%5D=y",
            "params.name=evil",
            "id=1",
            "+method=y",
            "=%7B%22jsonrpc%22%3A%222.0%22%7D",
            "x=%7B%22jsonrpc%22%3A%222.0%22%7D",
            "{}",
        ] {
            assert!(!is_login_form(form.as_bytes()), "{form}");
        }
    }

    #[test]
    fn parameters_of_the_servers_url_cannot_be_named_again() {
        let own = Some("read_only=true&project=a");
        for requested in [None, Some(""), Some("x=1"), own, Some("readonlyx=1&p=2")] {
            assert_eq!(check_own_query(own, requested), Ok(()), "{requested:?}");
        }
        for requested in [
            "read_only=false",
            "read_only",
            "x=1&project=b",
            "x=1;project=b",
            "x=1%26project=b",
            "READ_ONLY=false",
            "read.only=false",
            "read-only=false",
            "readOnly=false",
            "read%5Fonly=false",
            "read%255Fonly=false",
            "read_only[]=false",
            "read_only%5Ba%5D=false",
            "[read_only]=false",
            "+read_only=false",
            "%20read_only=false",
            "read_only%00=false",
        ] {
            assert_eq!(
                check_own_query(own, Some(requested)).unwrap_err().status,
                400,
                "{requested}"
            );
        }
        assert_eq!(check_own_query(None, Some("read_only=1")), Ok(()));
    }

    #[test]
    fn a_logged_query_keeps_no_values() {
        assert_eq!(without_values("/mcp", Some("key=s3cret&b")), "/mcp?key=*&b=*");
        assert_eq!(without_values("/token", None), "/token");
    }
}
