//! How a tape's header describes the rules and the key of its redaction, so that replay can repeat
//! it.

use tapegate_core::json::{self, JsonFault, JsonKind, JsonObject};

use super::Redactor;
use super::ordered_members::OrderedMembers;
use super::placeholder::RedactionKey;
use super::rules::{RedactionRules, RuleError};

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
struct HeaderMasking {
    passes: Vec<Vec<String>>,
    key: Option<String>,
    key_id: Option<String>,
}

impl Redactor {
    /// The text for [`extra`](tapegate_core::tape::TapeHeader::extra) of a header: the rules of each
    /// pass, and the key, or only its id if it is the user's own.
    pub fn header_extra(&self) -> Vec<u8> {
        let list = |rules: &RedactionRules| {
            json::array(rules.texts().iter().map(|text| json::quoted(text)))
        };
        let (first, then) = self.passes.split_at(1.min(self.passes.len()));
        let then = (!then.is_empty()).then(|| json::array(then.iter().map(list)));
        let redaction =
            JsonObject::new().raw_opt("rules", first.first().map(list)).raw_opt("then", then);
        let redaction = match self.key.hex_if_public() {
            Some(key) => redaction.text("key", &key),
            None => redaction.text("key_id", &self.key.id()),
        };
        JsonObject::new().object("redaction", redaction).into_members()
    }

    /// The redactor that `extra` of a header describes, if there is one. `own` is the user's key,
    /// which is needed when the key is not on the tape.
    pub fn from_header(
        extra: &[u8],
        own: Option<&RedactionKey>,
    ) -> Result<Option<Self>, HeaderError> {
        let Some(masking) = HeaderMasking::find(extra)? else { return Ok(None) };
        let passes = masking.passes.iter().map(RedactionRules::parse).collect::<Result<_, _>>()?;
        let key = match (masking.key, masking.key_id, own) {
            (Some(key), ..) => RedactionKey::read(&key)
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
    pub fn with_tape_rules(&self, extra: &[u8]) -> Result<Self, HeaderError> {
        let own = self.key.hex_if_public().is_none().then_some(&self.key);
        let Some(mut both) = Self::from_header(extra, own)? else { return Ok(self.clone()) };
        if let Some(own) = own.filter(|own| **own != both.key) {
            return Err(HeaderError::KeyDiffers { wanted: both.key.id(), given: own.id() });
        }
        for rules in &self.passes {
            // Applying a rule twice would mask nothing, but would grow the header with every run.
            let new = rules.without_known(&both.passes);
            both.passes.extend((!new.is_empty()).then_some(new));
        }
        Ok(both)
    }
}

impl HeaderMasking {
    /// Finds the member in `extra`, which is `,"key":value` text.
    fn find(extra: &[u8]) -> Result<Option<Self>, HeaderError> {
        let odd = |_| HeaderError::Malformed("is malformed");
        let members = OrderedMembers::read(extra).map_err(odd)?;
        members.get(MEMBER).map(|value| Self::read(value).map_err(odd)).transpose()
    }

    fn read(value: &[u8]) -> Result<Self, JsonFault> {
        let mut masking = Self { passes: vec![Vec::new()], key: None, key_id: None };
        for (key, value) in json::whole_object(value)? {
            if key.is("rules") {
                masking.passes[0] = texts(value)?;
            } else if key.is("then") {
                for rules in array(value)? {
                    masking.passes.push(texts(rules?)?);
                }
            } else if key.is("key") {
                masking.key = Some(text(value)?);
            } else if key.is("key_id") {
                masking.key_id = Some(text(value)?);
            }
        }
        Ok(masking)
    }
}

/// Reads an array of strings.
fn texts(value: &[u8]) -> Result<Vec<String>, JsonFault> {
    array(value)?.map(|element| text(element?)).collect()
}

fn text(value: &[u8]) -> Result<String, JsonFault> {
    let string = json::string(value).ok_or(JsonFault { at: 0, what: "not a string" })?;
    Ok(string.into_owned())
}

/// The elements of an array; a fault if it is anything else.
fn array(value: &[u8]) -> Result<impl Iterator<Item = Result<&[u8], JsonFault>>, JsonFault> {
    match JsonKind::of(value)? {
        JsonKind::Array => Ok(json::elements(value)),
        _ => Err(JsonFault { at: 0, what: "not an array" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [&str; 2] = ["secrets", "$.params['a\"b']"];

    fn redactor(key: RedactionKey) -> Redactor {
        Redactor::new(RedactionRules::parse(RULES).unwrap(), key)
    }

    #[test]
    fn a_header_gives_the_redactor_back() {
        let one = redactor(RedactionKey::for_tape([9; 32]));
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
        let own = RedactionKey::from_secret(b"mine");
        let extra = redactor(own.clone()).header_extra();
        let text = String::from_utf8(extra.clone()).unwrap();
        assert!(text.contains("\"key_id\"") && !text.contains("\"key\":"), "{text}");
        assert_eq!(Redactor::from_header(&extra, Some(&own)).unwrap().unwrap().key, own);
        let missing = Redactor::from_header(&extra, None).unwrap_err();
        assert!(matches!(missing, HeaderError::KeyMissing { id } if id == own.id()));
        let wrong = Redactor::from_header(&extra, Some(&RedactionKey::from_secret(b"not mine")));
        assert!(matches!(wrong, Err(HeaderError::KeyDiffers { .. })));
    }

    #[test]
    fn what_cannot_be_understood_is_said() {
        for (extra, message) in [
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
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn joining_keeps_the_tapes_key() {
        let before = redactor(RedactionKey::for_tape([9; 32]));
        let more =
            Redactor::new(RedactionRules::parse(["..x"]).unwrap(), RedactionKey::for_tape([1; 32]));
        let both = more.with_tape_rules(&before.header_extra()).unwrap();
        assert_eq!(both.key, before.key);
        assert_eq!(both.passes[0].texts(), RULES);
        assert_eq!(both.passes[1].texts(), ["..x"]);
        let again = Redactor::from_header(&both.header_extra(), None).unwrap().unwrap();
        assert_eq!(again.header_extra(), both.header_extra());
        assert_eq!(more.with_tape_rules(&both.header_extra()).unwrap().passes.len(), 2);
        let own = Redactor::new(
            RedactionRules::parse(["..x"]).unwrap(),
            RedactionKey::from_secret(b"mine"),
        );
        assert!(matches!(
            own.with_tape_rules(&before.header_extra()),
            Err(HeaderError::KeyDiffers { .. })
        ));
        assert!(matches!(
            more.with_tape_rules(&own.header_extra()),
            Err(HeaderError::KeyMissing { .. })
        ));
        assert_eq!(own.with_tape_rules(b"").unwrap().key, own.key);
    }
}
