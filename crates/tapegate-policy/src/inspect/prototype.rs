//! Members named `__proto__`.
//!
//! `JSON.parse` creates an ordinary member for such a key. But code that then copies the object by
//! assignment, as zod and thus the official TypeScript SDKs do, sets the prototype of the copy: the
//! members of the value then appear as members of the object around it. To such a reader, a call
//! without `arguments` has some, and a result without `tools` lists some.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;
use memchr::memmem::Finder;
use tapegate_core::frame::fold;
use tapegate_core::json::{JsonFault, JsonStr, JsonToken, tokens};

/// The start of such a key, unless letters of it are escaped.
static START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"__"));

/// The escapes that may hide letters of the key.
static ESCAPES: LazyLock<Option<Searcher>> =
    LazyLock::new(|| Searcher::new(["\\u005", "\\u006", "\\u007", "\\u004"]));

/// Whether an object in a JSON text has a member `__proto__` at any depth; `escaped` says whether
/// the text may contain a backslash. For nearly every text one search is enough.
pub(super) fn contains_prototype_key(text: &[u8], escaped: bool) -> bool {
    // `__typename` and `__type` are common in GraphQL data, so the next letter is checked as well.
    let begins = |at: usize| matches!(text.get(at + 3), Some(b'p' | b'P' | b'\\'));
    let may_be = START.find_iter(text).any(begins)
        || escaped && ESCAPES.as_ref().is_none_or(|escapes| escapes.find(text).is_some());
    // Strings may mention the name, so only a walk over the keys decides.
    may_be && any_key(text).unwrap_or(true)
}

/// Whether some reader takes a key for `__proto__`, ignoring escapes, case, NULs and unpaired
/// surrogates.
fn is_prototype(key: JsonStr<'_>) -> bool {
    *fold(key) == *b"__proto__"
}

fn any_key(text: &[u8]) -> Result<bool, JsonFault> {
    for token in tokens(text)? {
        if let JsonToken::Key(key) = token?
            && is_prototype(key)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_found(text: &str) -> bool {
        contains_prototype_key(text.as_bytes(), text.contains('\\'))
    }

    #[test]
    fn a_member_is_found_wherever_it_stands_and_however_it_is_written() {
        for key in [
            "__proto__",
            r"\u005f_proto__",
            r"_\u005F\u0070roto__",
            r"__pr\u006fto__",
            r"__proto_\u005f",
            "__PROTO__",
            r"__\u0050roto__",
            r"__pr\u004fto__",
            r"__proto__\u0000x",
            r"__pro\ud800to__",
        ] {
            for text in [
                format!(r#"{{"{key}":{{}}}}"#),
                format!(r#"{{"a":"__","{key}" : null}}"#),
                format!(r#"{{"a":[[],1,{{"b":{{"c":[{{"d":"x","{key}":1}}]}}}}]}}"#),
                format!(r#"[{{}},{{"{key}":[]}}]"#),
            ] {
                assert!(is_found(&text), "{text}");
            }
        }
    }

    #[test]
    fn a_text_that_says_so_is_no_member_and_others_are_other_names() {
        for text in [
            r#"{"a":"__proto__"}"#,
            r#"{"a":["__proto__","x.__proto__ = y"]}"#,
            r#"{"a":"{\"__proto__\":{}}"}"#,
            r#"{"a":"\u005f_proto__","b":"\\u005f"}"#,
            r#"{"proto":1,"_proto_":1,"__proto":1,"proto__":1,"a__proto__":1,"__proto__b":1}"#,
            r#"{"constructor":{"prototype":{"a":1}},"prototype":1,"__typename":"x"}"#,
            "{}",
            "[]",
            "1",
        ] {
            assert!(!is_found(text), "{text}");
        }
    }
}
