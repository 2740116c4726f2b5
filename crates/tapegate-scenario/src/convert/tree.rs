//! Recorded JSON as a node tree, or as raw JSON where a tree cannot hold it exactly.

use tapegate_core::json;

use crate::load::json::read_unplaced;
use crate::node::Node;

/// The depth limit of a tree. Deeper values become JSON on one line, because YAML loaders limit the
/// depth and people cannot read it.
const DEPTH_MAX: usize = 32;

/// Keys that a scenario loader interprets anywhere.
const DIRECTIVES: [&str; 5] = ["$include", "$file", "$generate", "$json", "override"];

/// Parses JSON to a tree. Invalid JSON becomes text; a tape that was read has none.
pub(super) fn read(text: &[u8]) -> Node {
    // The loader would run a directive, so an object with one stays raw JSON.
    read_unplaced(text, DEPTH_MAX, |key| DIRECTIVES.contains(&key))
        .unwrap_or_else(|_| Node::text(String::from_utf8_lossy(text)))
}

/// The members of a JSON object, in order; empty if it is not an object.
pub(super) fn members(text: &[u8]) -> Vec<(String, &[u8])> {
    // Messages were validated when the tape was read.
    let members = json::members(text).map_while(Result::ok);
    members.map(|(key, value)| (key.decode().into_owned(), value)).collect()
}

/// The elements of an array; empty if it is not an array.
pub(super) fn items(text: &[u8]) -> Vec<&[u8]> {
    tapegate_core::frame::array_items(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::NodeValue;

    #[test]
    fn a_tree_says_what_the_json_says() {
        for text in [
            r#"{"a":[1,1.0,-0,1e400,12345678901234567890123],"b":{"":null,"c":[true,false,"x"]}}"#,
            r#"["\u0000\t\r\n","é😀",{"k":{}},[]]"#,
        ] {
            assert_eq!(read(text.as_bytes()).to_json(), text.as_bytes());
        }
    }

    #[test]
    fn what_no_tree_holds_is_json() {
        let raw =
            |text: &str| matches!(read(text.as_bytes()).value, NodeValue::Raw(raw) if raw == text);
        assert!(raw(r#""\ud800""#));
        assert!(raw(r#"{"a":1,"a":2}"#));
        assert!(raw(r#"{"\udc00":1}"#));
        assert!(raw(r#"{"$file":"/etc/passwd"}"#));
        assert!(raw(r#"{"override":{}}"#));
        assert!(!raw(r##"{"$ref":"#/a","$schema":"s"}"##));
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(read(deep.as_bytes()).to_json(), deep.as_bytes());
    }
}
