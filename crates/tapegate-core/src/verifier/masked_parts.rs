//! Whether secrets in a recorded message are masked, so that it cannot be sent as it was.

use memchr::memmem;

use crate::frame::Envelope;
use crate::json::member;

const OPEN: &[u8] = b"[REDACTED:";
const DIGITS: usize = 12;
const KIND_BYTES_MAX: usize = 40;

/// Which part of a message is masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskedPart {
    Nothing,
    /// Only `_meta`, which does not affect what is asked for.
    Aside,
    /// What is asked for.
    Asked,
}

impl MaskedPart {
    /// Which part of a message from the client is masked.
    pub(super) fn of(envelope: &Envelope<'_>) -> Self {
        // A message has only one of these.
        let body = envelope.params.or(envelope.result).or(envelope.error).unwrap_or_default();
        let all = count(body);
        let aside = if all > 0 { member(body, "_meta").map_or(0, count) } else { 0 };
        match (all, aside) {
            (0, _) => Self::Nothing,
            // Every client introduces itself by its own name.
            _ if all == aside || envelope.is_method("initialize") => Self::Aside,
            _ => Self::Asked,
        }
    }
}

/// The number of placeholders in `text`: `[REDACTED:<kind>:<12 hex digits>]`.
fn count(text: &[u8]) -> usize {
    memmem::find_iter(text, OPEN).filter(|at| is_placeholder(&text[at + OPEN.len()..])).count()
}

/// Whether `text` continues a placeholder after its prefix.
fn is_placeholder(text: &[u8]) -> bool {
    // Bounded, because a hostile tape may repeat the prefix many times before a distant colon.
    let Some(colon) = memchr::memchr(b':', &text[..text.len().min(KIND_BYTES_MAX + 1)]) else {
        return false;
    };
    let kind = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let digits = text.get(colon + 1..colon + 1 + DIGITS).unwrap_or_default();
    colon > 0
        && text[..colon].iter().all(kind)
        && digits.len() == DIGITS
        && digits.iter().all(u8::is_ascii_hexdigit)
        && text.get(colon + 1 + DIGITS) == Some(&b']')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Frame;

    fn of(text: &str) -> MaskedPart {
        let text = text.replace("SECRET", "[REDACTED:github:0123456789ab]");
        MaskedPart::of(Frame::read(text.as_bytes()).envelope().unwrap())
    }

    #[test]
    fn masked_params_are_seen_and_masked_meta_does_not_matter() {
        let call =
            |params: &str| of(&format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#));
        assert_eq!(call(r#"{"arguments":{"a":"x SECRET y"}}"#), MaskedPart::Asked);
        assert_eq!(call(r#"{"arguments":{"SECRET":1},"_meta":{"a":"SECRET"}}"#), MaskedPart::Asked);
        assert_eq!(call(r#"{"arguments":{},"_meta":{"a":"SECRET"}}"#), MaskedPart::Aside);
        assert_eq!(call(r#"{"arguments":{}}"#), MaskedPart::Nothing);
        assert_eq!(
            of(r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"SECRET"}}}"#),
            MaskedPart::Aside
        );
        assert_eq!(of(r#"{"id":1,"result":{"text":"SECRET"}}"#), MaskedPart::Asked);
    }

    #[test]
    fn what_only_looks_like_a_placeholder_is_none() {
        for text in [
            "[REDACTED:]",
            "[REDACTED:path:0123]",
            "[REDACTED:a b:0123456789ab]",
            "[REDACTED:path:0123456789abc]",
        ] {
            assert_eq!(
                of(&format!(r#"{{"id":1,"params":"{text}"}}"#)),
                MaskedPart::Nothing,
                "{text}"
            );
        }
    }
}
