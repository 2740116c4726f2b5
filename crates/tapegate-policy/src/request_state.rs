//! The state that a client carries between a call that was answered with a question and the same
//! call with the answer.
//!
//! It names the approval request and the call, and is authenticated, so that a client can neither
//! make one up nor use it for another call. A request is decided once and its approval used once,
//! so a state that is sent again changes nothing.

use tapegate_core::json::{self, JsonFault};

/// How every state of ours begins. No other state is touched.
const PREFIX: &str = "tapegate1.";
/// The members of params that come with an answer.
const STATE: &str = "requestState";
const ANSWERS: &str = "inputResponses";

/// Makes and checks states.
#[derive(Clone)]
pub struct RequestStateKey([u8; 32]);

/// What an authentic state says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CarriedCall {
    /// The approval request.
    pub approval_id: String,
    /// The hash of the call that the question was about.
    pub call_hash: String,
    /// Whether the question offered to approve.
    pub may_approve: bool,
    /// When it expires, in microseconds since 1970.
    pub expires_us: i64,
}

/// A call with an answer, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnsweredCall {
    /// The message without our state and the answers.
    pub(crate) text: Vec<u8>,
    /// What the state says, if it is authentic and has not expired.
    pub(crate) state: Option<CarriedCall>,
    /// The answer to our question.
    pub(crate) answer: Option<Vec<u8>>,
}

impl RequestStateKey {
    /// A key for states.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The text of a state.
    pub fn seal(&self, state: &CarriedCall) -> String {
        let CarriedCall { approval_id, call_hash, may_approve, expires_us } = state;
        let text =
            format!("{PREFIX}{approval_id}.{expires_us}.{}.{call_hash}", u8::from(*may_approve));
        let code = self.code(&text);
        format!("{text}.{}", code.to_hex())
    }

    /// What an authentic state says that has not expired.
    pub fn open(&self, text: &str, now_us: i64) -> Option<CarriedCall> {
        let (signed, code) = text.rsplit_once('.')?;
        // Hashes are compared in constant time.
        let is_ours = blake3::Hash::from_hex(code).is_ok_and(|code| code == self.code(signed));
        let mut parts = signed.strip_prefix(PREFIX).filter(|_| is_ours)?.split('.');
        let mut next = || parts.next();
        let (approval_id, expires_us) = (next()?.to_owned(), next()?.parse().ok()?);
        let (may_approve, call_hash) = (next()? == "1", next()?.to_owned());
        let state = CarriedCall { approval_id, call_hash, may_approve, expires_us };
        (now_us < expires_us).then_some(state)
    }

    /// Takes a call apart that carries a state of ours; `None` if it carries none.
    pub(crate) fn take_apart(&self, message: &[u8], now_us: i64) -> Option<AnsweredCall> {
        // The usual case, which must cost next to nothing.
        memchr::memmem::find(message, PREFIX.as_bytes())?;
        let params = json::member(message, "params")?;
        let state = json::member(params, STATE).and_then(json::string)?;
        if !state.starts_with(PREFIX) {
            return None;
        }
        let answer = json::member(params, ANSWERS)
            .and_then(|answers| json::member(answers, tapegate_core::gate::INPUT_KEY));
        // Answers to other questions are left out too: the server has not asked any.
        let stripped = without(params, &[STATE, ANSWERS]).ok()?;
        let text = replaced(message, "params", &stripped).ok()?;
        let state = self.open(&state, now_us);
        Some(AnsweredCall { text, state, answer: answer.map(<[u8]>::to_vec) })
    }

    fn code(&self, text: &str) -> blake3::Hash {
        blake3::keyed_hash(&self.0, text.as_bytes())
    }
}

impl std::fmt::Debug for RequestStateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RequestStateKey(…)")
    }
}

/// Whether params carry a state or answers of a question of the server.
pub(crate) fn carries_answers(params: &[u8]) -> bool {
    json::member(params, STATE).is_some() || json::member(params, ANSWERS).is_some()
}

/// An object without some of its members.
fn without(object: &[u8], names: &[&str]) -> Result<Vec<u8>, JsonFault> {
    rebuilt(object, |key, value| (!names.contains(&key)).then_some(value))
}

/// An object with another value for a member.
fn replaced(object: &[u8], name: &str, value: &[u8]) -> Result<Vec<u8>, JsonFault> {
    rebuilt(object, |key, old| Some(if key == name { value } else { old }))
}

fn rebuilt<'v>(
    object: &'v [u8],
    mut kept: impl FnMut(&str, &'v [u8]) -> Option<&'v [u8]>,
) -> Result<Vec<u8>, JsonFault> {
    let mut out = b"{".to_vec();
    for (key, value) in json::whole_object(object.trim_ascii())? {
        let key = key.decode();
        if let Some(value) = kept(&key, value) {
            out.extend((out.len() > 1).then_some(b','));
            json::write_str(&mut out, &key);
            out.push(b':');
            out.extend_from_slice(value);
        }
    }
    out.push(b'}');
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> CarriedCall {
        CarriedCall {
            approval_id: "ap_0123456789abcdef".to_owned(),
            call_hash: "ab".repeat(32),
            may_approve: true,
            expires_us: 100,
        }
    }

    #[test]
    fn a_state_is_believed_only_as_it_was_sealed_and_in_time() {
        let key = RequestStateKey::new([1; 32]);
        let text = key.seal(&state());
        assert_eq!(key.open(&text, 99), Some(state()));
        assert_eq!(key.open(&text, 100), None);
        assert_eq!(RequestStateKey::new([2; 32]).open(&text, 99), None);
        for at in 0..text.len() {
            let mut edited = text.clone().into_bytes();
            edited[at] = if edited[at] == b'0' { b'1' } else { b'0' };
            assert_eq!(key.open(&String::from_utf8(edited).unwrap(), 99), None, "{at}");
            assert_eq!(key.open(&text[..at], 99), None, "{at}");
        }
    }

    #[test]
    fn our_part_of_a_call_never_reaches_the_server() {
        let key = RequestStateKey::new([1; 32]);
        let sealed = key.seal(&state());
        let message = format!(
            r#"{{"jsonrpc":"2.0", "id":3,"method":"tools/call","params":{{"name":"rm","inputResponses":{{"tapegate-approval":{{"action":"decline"}},"other":1}},"arguments":{{"a": 1}},"requestState":"{sealed}"}}}}"#
        );
        let call = key.take_apart(message.as_bytes(), 0).unwrap();
        assert_eq!(
            String::from_utf8(call.text).unwrap(),
            r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"rm","arguments":{"a": 1}}}"#
        );
        assert_eq!(call.answer.as_deref(), Some(&br#"{"action":"decline"}"#[..]));
        assert_eq!(call.state, Some(state()));
        let forged = message.replace(&sealed, "tapegate1.forged");
        let call = key.take_apart(forged.as_bytes(), 0).unwrap();
        assert!(call.state.is_none() && !String::from_utf8(call.text).unwrap().contains("forged"));
        for other in [message.replace(&sealed, "of the server"), "tapegate1.".to_owned()] {
            assert_eq!(key.take_apart(other.as_bytes(), 0), None);
        }
    }
}
