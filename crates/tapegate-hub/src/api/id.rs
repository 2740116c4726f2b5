//! JSON-RPC message ids: a string, a number, or null.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a message. `1` and `"1"` differ, and so do `1` and `1.0`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum JsonRpcId {
    String(String),
    /// A number, spelled as it was sent: it may be a fraction, or exceed every integer type.
    Number(String),
    /// `null`, which cannot be used to match a response.
    Null,
}

impl JsonRpcId {
    /// Reads an id from JSON text; `None` if it is not an id.
    pub fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The id for people: a string without its quotes.
    pub fn plain(&self) -> String {
        match self {
            Self::String(text) => text.clone(),
            Self::Number(_) | Self::Null => self.to_json(),
        }
    }

    /// The id as JSON text.
    pub fn to_json(&self) -> String {
        match self {
            // Serializing a string cannot fail.
            Self::String(text) => serde_json::to_string(text).unwrap_or_default(),
            Self::Number(digits) => digits.clone(),
            Self::Null => "null".to_owned(),
        }
    }
}

impl Serialize for JsonRpcId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::String(text) => serializer.serialize_str(text),
            Self::Number(digits) => {
                let raw = RawValue::from_string(digits.clone());
                raw.map_err(serde::ser::Error::custom)?.serialize(serializer)
            }
            Self::Null => serializer.serialize_unit(),
        }
    }
}

impl<'de> Deserialize<'de> for JsonRpcId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'"') => serde_json::from_str(text).map(Self::String).map_err(D::Error::custom),
            Some(b'-' | b'0'..=b'9') => Ok(Self::Number(text.to_owned())),
            Some(b'n') => Ok(Self::Null),
            _ => Err(D::Error::custom("an id is a string, a number or null")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_their_spelling() {
        for text in ["1", "1.0", "-0", "1e400", "123456789012345678901234567890", "0.1", "\"1\""] {
            assert_eq!(JsonRpcId::from_json(text).unwrap().to_json(), text);
            let id: JsonRpcId = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&id).unwrap(), text);
        }
        assert_ne!(JsonRpcId::from_json("1"), JsonRpcId::from_json("1.0"));
        assert_eq!(JsonRpcId::from_json("null"), Some(JsonRpcId::Null));
        assert_eq!(JsonRpcId::from_json("\"\\u0041\""), Some(JsonRpcId::String("A".to_owned())));
    }

    #[test]
    fn what_is_no_id_is_refused() {
        for text in ["true", "[1]", "{}", "", "1 2", "\"\\ud800\""] {
            assert_eq!(JsonRpcId::from_json(text), None, "{text}");
        }
    }
}
