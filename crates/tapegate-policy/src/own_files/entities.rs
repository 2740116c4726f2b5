//! Entities of a knowledge graph, which may be named after any file.
//!
//! `create_entities` of the official memory server takes `{"entities":[{"name":…,"entityType":…,
//! "observations":[…]}]}`. Other tools take a path under the key `name`. So an entity must have exactly
//! these members: a tool that writes files finds neither its path nor its content here.

use tapegate_core::json::{self, JsonFault, JsonKind};

use super::strings::string_end;

/// The members of an entity: each once, and no others.
const MEMBERS: [(&str, JsonKind); 3] = [
    ("name", JsonKind::String),
    ("entityType", JsonKind::String),
    ("observations", JsonKind::Array),
];

/// The length of the entity at the start of a JSON text, if there is one.
pub(super) fn entity_bytes(json: &[u8]) -> Option<usize> {
    let end = object_end(json)?;
    is_entity(&json[..end]).unwrap_or(false).then_some(end)
}

fn is_entity(object: &[u8]) -> Result<bool, JsonFault> {
    let mut missing = MEMBERS.to_vec();
    for member in json::members(object) {
        let (key, value) = member?;
        let kind = JsonKind::of(value)?;
        let place = missing.iter().position(|(name, wanted)| key.is(name) && kind == *wanted);
        // Another member, or the same one twice: some other tool may read a path or content from
        // it.
        let Some(place) = place else { return Ok(false) };
        missing.swap_remove(place);
    }
    Ok(missing.is_empty())
}

/// The end of the object at the start of a JSON text.
fn object_end(json: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0_usize, 0_usize);
    while let Some(&byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => at = string_end(json, at),
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether the name of an entity is words or a file name, without a path to another folder.
pub(super) fn is_bare(name: &str) -> bool {
    name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '.' | '-' | '_' | ' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_has_its_members_and_no_others() {
        let entity = r#"{"observations":["a}\"",{"x":[1]}],"n\u0061me":"n","entityType":"t"}"#;
        assert_eq!(entity_bytes(format!("{entity},{{}}]").as_bytes()), Some(entity.len()));
        for other in [
            r#"{"name":"n","entityType":"t"}"#,
            r#"{"name":"n","entityType":"t","observations":[],"content":"c"}"#,
            r#"{"name":"n","name":"n","entityType":"t","observations":[]}"#,
            r#"{"Name":"n","entityType":"t","observations":[]}"#,
            r#"{"name":["n"],"entityType":"t","observations":[]}"#,
            r#"{"name":"n","entityType":"t","observations":"o"}"#,
            r#"{"name":"n","entityType":"t","observations":[]"#,
            "{}",
            "",
        ] {
            assert_eq!(entity_bytes(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_bare_name_has_no_path_in_it() {
        assert!(is_bare("tapegate.yaml") && is_bare("the policy of über_x-1"));
        for path in ["./tapegate.yaml", "a\\b", "~", "%2e", "$HOME", "a\0", "a:b", "\u{ff0f}"] {
            assert!(!is_bare(path), "{path}");
        }
    }
}
