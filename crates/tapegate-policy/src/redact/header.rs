//! How a tape's header describes the rules and the key of its redaction, so that replay can repeat
//! it.

use tapegate_core::json::{Cursor, Fault, Kind};

use super::Redactor;
use super::members::Members;
use super::placeholder::{Key, json_string};
use super::rules::{RuleError, Rules};

/// The member of a tape's header that this module reads and writes.
pub(super) const MEMBER: &str = "redaction";

/// Why a tape's redaction cannot be repeated or extended.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The header is not in the form that this build writes.
    #[error("`redaction` in the tape's header {0}")]
    Malformed(&'static str),
    /// A rule in the header cannot be parsed.
    #[error("the tape's header has a rule that this build does not understand")]
    Rule(#[from] RuleError),
    /// The key is neither on the tape nor given.
    #[error(
        "the tape was redacted with a key of its owner (key id {id}), which is not on the tape"
    )]
    KeyMissing {
        /// The id of the key that is needed.
        id: String,
    },
    /// A different key was given.
    #[error("the tape was redacted with the key {wanted}, but the key {given} was given")]
    KeyDiffers {
        /// The id of the key that is needed.
        wanted: String,
        /// The id of the key that was given.
        given: String,
    },
}

/// The content of a header.
struct Said {
    passes: Vec<Vec<String>>,
    key: Option<String>,
    key_id: Option<String>,
}

impl Redactor {
    /// The text for [`extra`](tapegate_core::tape::Header::extra) of a header: the rules of each
    /// pass, and the key, or only its id if it is the user's own.
    pub fn header_extra(&self) -> Vec<u8> {
        let list = |rules: &Rules| {
            let texts = rules.texts().iter().map(|text| json_string(text));
            [b"[", texts.collect::<Vec<_>>().join(&b","[..]).as_slice(), b"]"].concat()
        };
        let mut out = b",\"redaction\":{\"rules\":".to_vec();
        for (index, rules) in self.passes.iter().enumerate() {
            out.extend_from_slice(match index {
                0 => b"",
                1 => b",\"then\":[",
                _ => b",",
            });
            out.extend_from_slice(&list(rules));
        }
        out.extend_from_slice(if self.passes.len() > 1 { b"]" } else { b"" });
        let key = match self.key.written() {
            Some(key) => format!(",\"key\":\"{key}\"}}"),
            None => format!(",\"key_id\":\"{}\"}}", self.key.id()),
        };
        out.extend_from_slice(key.as_bytes());
        out
    }

    /// The redactor that `extra` of a header describes, if there is one. `own` is the user's key,
    /// which is needed when the key is not on the tape.
    pub fn from_header(extra: &[u8], own: Option<&Key>) -> Result<Option<Self>, HeaderError> {
        let Some(said) = Said::find(extra)? else { return Ok(None) };
        let passes = said.passes.iter().map(Rules::parse).collect::<Result<_, _>>()?;
        let key = match (said.key, said.key_id, own) {
            (Some(key), ..) => Key::read(&key)
                .ok_or(HeaderError::Malformed("has a `key` that is not 64 hex digits"))?,
            (None, Some(id), Some(own)) if own.id() == id => own.clone(),
            (None, Some(wanted), Some(own)) => {
                return Err(HeaderError::KeyDiffers { wanted, given: own.id() });
            }
            (None, Some(id), None) => return Err(HeaderError::KeyMissing { id }),
            (None, None, _) => {
                return Err(HeaderError::Malformed("has neither `key` nor `key_id`"));
            }
        };
        Ok(Some(Self { passes, key }))
    }

    /// This redactor for a tape whose header has `extra`: rules that the tape does not have yet
    /// form another pass, and the tape's key is kept.
    pub fn joined(&self, extra: &[u8]) -> Result<Self, HeaderError> {
        let own = self.key.written().is_none().then_some(&self.key);
        let Some(mut both) = Self::from_header(extra, own)? else { return Ok(self.clone()) };
        if let Some(own) = own.filter(|own| **own != both.key) {
            return Err(HeaderError::KeyDiffers { wanted: both.key.id(), given: own.id() });
        }
        for rules in &self.passes {
            let new = rules.without(&both.passes);
            both.passes.extend((!new.is_empty()).then_some(new));
        }
        Ok(both)
    }
}

impl Said {
    /// Finds the member in `extra`, which is `,"key":value` text.
    fn find(extra: &[u8]) -> Result<Option<Self>, HeaderError> {
        let odd = |_| HeaderError::Malformed("is malformed");
        let members = Members::read(extra).map_err(odd)?;
        members.get(MEMBER).map(|value| Self::read(value).map_err(odd)).transpose()
    }

    fn read(value: &[u8]) -> Result<Self, Fault> {
        let mut said = Self { passes: vec![Vec::new()], key: None, key_id: None };
        let mut cursor = Cursor::new(value)?;
        let mut first = true;
        if cursor.open()? != Kind::Object {
            return Err(Fault { at: 0, what: "not an object" });
        }
        while let Some(key) = cursor.key(&mut first)? {
            if key.is("rules") {
                said.passes[0] = texts(&mut cursor)?;
            } else if key.is("then") {
                cursor.open()?;
                let mut first = true;
                while cursor.element(&mut first)? {
                    said.passes.push(texts(&mut cursor)?);
                }
            } else if key.is("key") {
                said.key = Some(cursor.string()?.decode().into_owned());
            } else if key.is("key_id") {
                said.key_id = Some(cursor.string()?.decode().into_owned());
            } else {
                cursor.value()?;
            }
        }
        Ok(said)
    }
}

/// Reads an array of strings.
fn texts(cursor: &mut Cursor<'_>) -> Result<Vec<String>, Fault> {
    let mut texts = Vec::new();
    if cursor.open()? != Kind::Array {
        return Err(Fault { at: cursor.position(), what: "not an array" });
    }
    let mut first = true;
    while cursor.element(&mut first)? {
        texts.push(cursor.string()?.decode().into_owned());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [&str; 2] = ["secrets", "$.params['a\"b']"];

    fn redactor(key: Key) -> Redactor {
        Redactor::new(Rules::parse(RULES).unwrap(), key)
    }

    #[test]
    fn a_header_gives_the_redactor_back() {
        let one = redactor(Key::on_tape([9; 32]));
        let extra = [b",\"x\":1", one.header_extra().as_slice(), b",\"y\":2"].concat();
        let other = Redactor::from_header(&extra, None).unwrap().unwrap();
        assert_eq!(
            (other.passes.len(), other.passes[0].texts()),
            (1, &RULES.map(str::to_owned)[..])
        );
        assert_eq!(other.key, one.key);
        assert!(Redactor::from_header(b",\"x\":1", None).unwrap().is_none());
        assert!(Redactor::from_header(b"", None).unwrap().is_none());
    }

    #[test]
    fn a_users_key_stays_off_the_tape_and_is_asked_for() {
        let own = Key::from_secret(b"mine");
        let extra = redactor(own.clone()).header_extra();
        let text = String::from_utf8(extra.clone()).unwrap();
        assert!(text.contains("\"key_id\"") && !text.contains("\"key\":"), "{text}");
        assert_eq!(Redactor::from_header(&extra, Some(&own)).unwrap().unwrap().key, own);
        let missing = Redactor::from_header(&extra, None).unwrap_err();
        assert!(matches!(missing, HeaderError::KeyMissing { id } if id == own.id()));
        let wrong = Redactor::from_header(&extra, Some(&Key::from_secret(b"not mine")));
        assert!(matches!(wrong, Err(HeaderError::KeyDiffers { .. })));
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        for (extra, words) in [
            (",\"redaction\":7", "`redaction` in the tape's header is malformed"),
            (
                ",\"redaction\":{\"rules\":[]}",
                "`redaction` in the tape's header has neither `key` nor `key_id`",
            ),
            (
                ",\"redaction\":{\"rules\":[],\"key\":\"ab\"}",
                "`redaction` in the tape's header has a `key` that is not 64 hex digits",
            ),
            (
                ",\"redaction\":{\"rules\":[\"nope\"],\"key\":\"ab\"}",
                "the tape's header has a rule that this build does not understand",
            ),
        ] {
            let error = Redactor::from_header(extra.as_bytes(), None).unwrap_err();
            assert_eq!(error.to_string(), words);
        }
    }

    #[test]
    fn joining_keeps_the_tapes_key() {
        let before = redactor(Key::on_tape([9; 32]));
        let more = Redactor::new(Rules::parse(["..x"]).unwrap(), Key::on_tape([1; 32]));
        let both = more.joined(&before.header_extra()).unwrap();
        assert_eq!(both.key, before.key);
        assert_eq!(both.passes[0].texts(), RULES);
        assert_eq!(both.passes[1].texts(), ["..x"]);
        let again = Redactor::from_header(&both.header_extra(), None).unwrap().unwrap();
        assert_eq!(again.header_extra(), both.header_extra());
        assert_eq!(more.joined(&both.header_extra()).unwrap().passes.len(), 2);
        let own = Redactor::new(Rules::parse(["..x"]).unwrap(), Key::from_secret(b"mine"));
        assert!(matches!(own.joined(&before.header_extra()), Err(HeaderError::KeyDiffers { .. })));
        assert!(matches!(more.joined(&own.header_extra()), Err(HeaderError::KeyMissing { .. })));
        assert_eq!(own.joined(b"").unwrap().key, own.key);
    }
}
