//! The accepted annotations of a tool.
//!
//! A server may claim anything about its tools at any time. So hints are read from the definition
//! in the lock file, never from the wire, and the hints of a tool that is not pinned are unknown.

use tapegate_core::frame::lenient_key_match;
use tapegate_core::json::{JsonFault, JsonKind, members};

use super::lock::PinLock;
use crate::gated_requests::OfferKind;

/// A hint about a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// Whether it only reads.
    ReadOnly,
    /// Whether it may destroy something.
    Destructive,
    /// Whether repeating a call has no further effect.
    Idempotent,
    /// Whether it interacts with the outside world.
    OpenWorld,
}

/// The value of a hint, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HintValue {
    /// The value in the accepted definition, or MCP's default if that has none.
    Known(bool),
    /// The tool is not pinned, has drifted, or its definition is unclear.
    Unknown,
}

/// A rule's test of a hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HintTest {
    pub hint: Hint,
    /// The values that pass.
    pub wanted: Vec<HintValue>,
}

/// The values of all hints of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints([HintValue; 4]);

impl Hint {
    /// Every hint.
    pub const ALL: [Self; 4] =
        [Self::ReadOnly, Self::Destructive, Self::Idempotent, Self::OpenWorld];

    /// Its name in a definition.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnlyHint",
            Self::Destructive => "destructiveHint",
            Self::Idempotent => "idempotentHint",
            Self::OpenWorld => "openWorldHint",
        }
    }

    /// Its default in MCP.
    fn default(self) -> bool {
        matches!(self, Self::Destructive | Self::OpenWorld)
    }
}

impl Hints {
    /// No hint is known.
    pub const UNKNOWN: Self = Self([HintValue::Unknown; 4]);

    /// The hints of a tool in the lock. `drifted` says that the tool is known to differ from it.
    pub fn of(lock: &PinLock, server: &str, name: &str, drifted: bool) -> Self {
        match lock.pin_of(server, OfferKind::Tool, name) {
            Some(pin) if !drifted => Self::read(&pin.definition),
            _ => Self::UNKNOWN,
        }
    }

    /// The hints in a tool's definition.
    pub fn read(definition: &[u8]) -> Self {
        Self::try_read(definition).unwrap_or(Self::UNKNOWN)
    }

    fn try_read(definition: &[u8]) -> Result<Self, JsonFault> {
        let annotations = match values(definition, &["annotations"])?[0] {
            HintReading::Nothing => b"{}",
            HintReading::Once(annotations) if annotations.first() == Some(&b'{') => annotations,
            _ => return Ok(Self::UNKNOWN),
        };
        let readings = values(annotations, &Hint::ALL.map(Hint::name))?;
        let mut hints = Self::UNKNOWN;
        for (hint, readings) in Hint::ALL.into_iter().zip(&readings) {
            hints.0[hint as usize] = match readings {
                HintReading::Nothing => HintValue::Known(hint.default()),
                HintReading::Once(b"true") => HintValue::Known(true),
                HintReading::Once(b"false") => HintValue::Known(false),
                _ => HintValue::Unknown,
            };
        }
        // A read-only tool is not destructive, unless its definition says otherwise.
        let silent = matches!(readings[Hint::Destructive as usize], HintReading::Nothing);
        // MCP gives `destructiveHint` a meaning only for tools that are not read-only.
        if silent && hints.get(Hint::ReadOnly) != HintValue::Known(false) {
            hints.0[Hint::Destructive as usize] = match hints.get(Hint::ReadOnly) {
                HintValue::Known(_) => HintValue::Known(false),
                HintValue::Unknown => HintValue::Unknown,
            };
        }
        Ok(hints)
    }

    /// The value of a hint.
    pub fn get(&self, hint: Hint) -> HintValue {
        self.0[hint as usize]
    }
}

impl HintTest {
    /// Whether it certainly holds.
    pub fn must_hold(&self, hints: &Hints) -> bool {
        self.wanted.contains(&hints.get(self.hint))
    }

    /// Whether it may hold: an unknown value may be any.
    pub fn may_hold(&self, hints: &Hints) -> bool {
        self.must_hold(hints) || hints.get(self.hint) == HintValue::Unknown
    }
}

/// The value of an object's member, as lenient readers find it.
#[derive(Debug, Clone, Copy)]
enum HintReading<'a> {
    Nothing,
    Once(&'a [u8]),
    Unclear,
}

fn values<'a>(object: &'a [u8], names: &[&str]) -> Result<Vec<HintReading<'a>>, JsonFault> {
    let mut found = vec![HintReading::Nothing; names.len()];
    if JsonKind::of(object)? != JsonKind::Object {
        return Ok(vec![HintReading::Unclear; names.len()]);
    }
    for member in members(object) {
        let (key, value) = member?;
        if let Some(index) = lenient_key_match(key, names) {
            let exact = key.is(names[index]);
            found[index] = match found[index] {
                // A second or misspelt member could mean either value, so the hint is unknown.
                HintReading::Nothing if exact => HintReading::Once(value),
                _ => HintReading::Unclear,
            };
        }
    }
    Ok(found)
}

impl std::fmt::Display for HintValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Known(value) => value.fmt(f),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

impl HintTest {
    /// A message for a tool that fails the test: "`readOnlyHint` is false, not true".
    pub(crate) fn mismatch_text(&self, value: HintValue) -> String {
        let wanted: Vec<String> = self.wanted.iter().map(HintValue::to_string).collect();
        format!("`{}` is {value}, not {}", self.hint.name(), wanted.join(" or "))
    }
}

impl std::fmt::Display for HintTest {
    /// The test for people: "`readOnlyHint` is true".
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let wanted: Vec<String> = self.wanted.iter().map(HintValue::to_string).collect();
        write!(f, "`{}` is {}", self.hint.name(), wanted.join(" or "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hints(annotations: &str) -> String {
        let definition = format!(r#"{{"name":"t"{annotations}}}"#);
        let hints = Hints::read(definition.as_bytes());
        Hint::ALL.map(|hint| hints.get(hint).to_string()).join(" ")
    }

    #[test]
    fn a_definition_says_what_mcp_says_unless_it_says_otherwise() {
        // readOnly, destructive, idempotent, openWorld
        for (annotations, known) in [
            ("", "false true false true"),
            (r#","annotations":{}"#, "false true false true"),
            (r#","annotations":{"title":"x"}"#, "false true false true"),
            (r#","annotations":{"readOnlyHint":true}"#, "true false false true"),
            (
                r#","annotations":{"readOnlyHint":true,"destructiveHint":true}"#,
                "true true false true",
            ),
            (
                r#","annotations":{"destructiveHint":false,"openWorldHint":false}"#,
                "false false false false",
            ),
            (r#","annotations":{"idempotentHint":true}"#, "false true true true"),
        ] {
            assert_eq!(hints(annotations), known, "{annotations}");
        }
    }

    #[test]
    fn what_is_unclear_is_not_known() {
        for (annotations, known) in [
            (r#","annotations":null"#, "unknown unknown unknown unknown"),
            (r#","annotations":[{"readOnlyHint":true}]"#, "unknown unknown unknown unknown"),
            (
                r#","annotations":{},"annotations":{"readOnlyHint":true}"#,
                "unknown unknown unknown unknown",
            ),
            (r#","annotations":{"readOnlyHint":"true"}"#, "unknown unknown false true"),
            (r#","annotations":{"readOnlyHint":1}"#, "unknown unknown false true"),
            (
                r#","annotations":{"readOnlyHint":false,"readOnlyHint":true}"#,
                "unknown unknown false true",
            ),
            (r#","annotations":{"ReadOnlyHint":true}"#, "unknown unknown false true"),
            (r#","annotations":{"read_only_hint":true}"#, "unknown unknown false true"),
        ] {
            assert_eq!(hints(annotations), known, "{annotations}");
        }
        assert_eq!(Hints::read(b"[]"), Hints::UNKNOWN);
        assert_eq!(Hints::read(b""), Hints::UNKNOWN);
    }

    #[test]
    fn nothing_is_known_of_a_tool_that_is_not_pinned_or_has_drifted() {
        let mut lock = PinLock::default();
        lock.learn("s", &[br#"{"tools":[{"name":"read","annotations":{"readOnlyHint":true}}]}"#]);
        let test = HintTest { hint: Hint::ReadOnly, wanted: vec![HintValue::Known(true)] };
        let known = Hints::of(&lock, "s", "read", false);
        assert!(test.must_hold(&known) && test.may_hold(&known));
        for (server, name, drifted) in
            [("s", "read", true), ("s", "other", false), ("t", "read", false)]
        {
            let hints = Hints::of(&lock, server, name, drifted);
            assert_eq!(hints, Hints::UNKNOWN);
            assert!(!test.must_hold(&hints) && test.may_hold(&hints));
        }
        let unknown = HintTest { hint: Hint::ReadOnly, wanted: vec![HintValue::Unknown] };
        assert!(unknown.must_hold(&Hints::UNKNOWN) && !unknown.may_hold(&known));
    }
}
