//! The shape of a value: which types of values occur where, regardless of their content.
//!
//! The elements of an array share one shape, the union of theirs. An empty array shows nothing
//! about its elements, so it is compatible with any other.

use std::collections::BTreeMap;

use crate::json::path::JsonPath;
use crate::json::{Cursor, JsonFault, JsonKind, JsonLocation, LocationStep, write_str};

use super::finding::{RecordedChange, RecordedChanges};

/// Values nested deeper have no shape.
const DEPTH_MAX: usize = 64;
/// The names of the types, in the order of their bits.
const SORTS: [&str; 6] = ["object", "array", "string", "number", "boolean", "null"];

/// The shape of one value, or the union of several.
#[derive(Debug, Default, PartialEq, Eq)]
struct JsonShape {
    /// Which types occur, as bits.
    sorts: u8,
    members: BTreeMap<String, JsonShape>,
    elements: Option<Box<JsonShape>>,
}

/// The differences between the shapes of two texts.
pub(super) fn changes(
    recorded: &[u8],
    live: &[u8],
    ignored: &[JsonPath],
    listed_max: usize,
) -> Result<RecordedChanges, JsonFault> {
    let (recorded, live) = (JsonShape::of(recorded)?, JsonShape::of(live)?);
    let place = JsonLocation::default();
    let mut walk =
        ShapeWalk { ignored, listed_max, location: place, found: RecordedChanges::default() };
    walk.compare(&recorded, &live);
    Ok(walk.found)
}

impl JsonShape {
    fn of(text: &[u8]) -> Result<Self, JsonFault> {
        let mut shape = Self::default();
        shape.add(&mut Cursor::new(text)?, DEPTH_MAX)?;
        Ok(shape)
    }

    /// Adds the value at the cursor and moves over it.
    fn add(&mut self, cursor: &mut Cursor<'_>, depth: usize) -> Result<(), JsonFault> {
        let kind = cursor.kind()?;
        self.sorts |= 1 << kind_rank(kind);
        match kind {
            // Deeper values count as equal: hostile nesting must not exhaust the stack.
            JsonKind::Object if depth > 0 => {
                cursor.open()?;
                while let Some(key) = cursor.next_key()? {
                    let member = self.members.entry(key.decode().into_owned()).or_default();
                    member.add(cursor, depth - 1)?;
                }
            }
            JsonKind::Array if depth > 0 => {
                cursor.open()?;
                while cursor.next_item()? {
                    self.elements.get_or_insert_default().add(cursor, depth - 1)?;
                }
            }
            _ => drop(cursor.value()?),
        }
        Ok(())
    }

    /// Appends the shape as JSON: types by name, objects and arrays by their content.
    fn write(&self, out: &mut Vec<u8>) {
        match self.sorts {
            1 => {
                out.push(b'{');
                for (index, (key, member)) in self.members.iter().enumerate() {
                    out.extend((index > 0).then_some(b','));
                    write_str(out, key);
                    out.push(b':');
                    member.write(out);
                }
                out.push(b'}');
            }
            2 => {
                out.push(b'[');
                self.elements.iter().for_each(|elements| elements.write(out));
                out.push(b']');
            }
            _ => write_str(out, &self.names()),
        }
    }

    /// The names of the types that occur.
    fn names(&self) -> String {
        let names = SORTS.iter().enumerate().filter(|(bit, _)| self.sorts & 1 << bit != 0);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(" or ")
    }

    fn write_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }
}

struct ShapeWalk<'p> {
    ignored: &'p [JsonPath],
    listed_max: usize,
    location: JsonLocation,
    found: RecordedChanges,
}

impl ShapeWalk<'_> {
    fn compare(&mut self, recorded: &JsonShape, live: &JsonShape) {
        if self.is_ignored() {
            return;
        }
        // Values of different types have no members to compare.
        if recorded.sorts != live.sorts {
            return self.note(Some(recorded.write_json()), Some(live.write_json()));
        }
        for (key, member) in &recorded.members {
            self.with_step(LocationStep::Key(key.clone()), |walk| match live.members.get(key) {
                Some(entry) => walk.compare(member, entry),
                None => walk.note_unpaired(Some(member), None),
            });
        }
        for (key, member) in &live.members {
            if !recorded.members.contains_key(key) {
                self.with_step(LocationStep::Key(key.clone()), |walk| {
                    walk.note_unpaired(None, Some(member))
                });
            }
        }
        // An empty array says nothing about its elements, so it differs from none.
        if let (Some(recorded), Some(live)) = (&recorded.elements, &live.elements) {
            self.with_step(LocationStep::Index(0), |walk| walk.compare(recorded, live));
        }
    }

    fn with_step(&mut self, hop: LocationStep, then: impl FnOnce(&mut Self)) {
        self.location.steps.push(hop);
        then(self);
        self.location.steps.pop();
    }

    fn note_unpaired(&mut self, recorded: Option<&JsonShape>, live: Option<&JsonShape>) {
        if !self.is_ignored() {
            self.note(recorded.map(JsonShape::write_json), live.map(JsonShape::write_json));
        }
    }

    fn is_ignored(&self) -> bool {
        self.ignored.iter().any(|path| self.location.is_at(path))
    }

    fn note(&mut self, recorded: Option<Vec<u8>>, live: Option<Vec<u8>>) {
        if self.found.listed.len() < self.listed_max {
            self.found.listed.push(RecordedChange {
                location: self.location.clone(),
                recorded,
                live,
            });
        } else {
            self.found.more += 1;
        }
    }
}

fn kind_rank(kind: JsonKind) -> u8 {
    match kind {
        JsonKind::Object => 0,
        JsonKind::Array => 1,
        JsonKind::String => 2,
        JsonKind::Number => 3,
        JsonKind::Bool => 4,
        JsonKind::Null => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(recorded: &str, live: &str) -> String {
        let ignored = [JsonPath::read("..ignored").unwrap()];
        let found = changes(recorded.as_bytes(), live.as_bytes(), &ignored, 3).unwrap();
        let text = |json: &Option<Vec<u8>>| match json {
            Some(json) => String::from_utf8(json.clone()).unwrap(),
            None => String::new(),
        };
        let line = |c: &RecordedChange| {
            format!("{}: {} > {}", c.location, text(&c.recorded), text(&c.live))
        };
        let mut lines: Vec<String> = found.listed.iter().map(line).collect();
        lines.extend((found.more > 0).then(|| format!("{} more", found.more)));
        lines.join("\n")
    }

    #[test]
    fn values_do_not_count() {
        for (recorded, live) in [
            (r#"{"a":1,"b":"x"}"#, r#"{"b":"","a":-2.5e9}"#),
            (r#"{"a":[1,2,3]}"#, r#"{"a":[4]}"#),
            (r#"{"a":[]}"#, r#"{"a":[{"b":1}]}"#),
            (r#"[{"a":1},{"b":2}]"#, r#"[{"a":1,"b":2}]"#),
            (r#"[1,"x",null]"#, r#"["y",null,2,2]"#),
            (r#"{"ignored":1}"#, r#"{"a":{"ignored":"x"}}"#.replace("a", "ignored").as_str()),
            ("true", "false"),
        ] {
            assert_eq!(shown(recorded, live), "", "{recorded} {live}");
        }
    }

    #[test]
    fn sorts_and_keys_do() {
        assert_eq!(shown(r#"{"a":1}"#, r#"{"a":"1"}"#), "a: \"number\" > \"string\"");
        assert_eq!(shown(r#"{"a":{"b":1}}"#, r#"{"a":{}}"#), "a.b: \"number\" > ");
        assert_eq!(shown("{}", r#"{"a":[{"x":null}]}"#), r#"a:  > [{"x":"null"}]"#);
        assert_eq!(shown("[1]", r#"[1,"x"]"#), r#"[0]: "number" > "string or number""#);
        assert_eq!(shown("[[1]]", "[[true]]"), r#"[0][0]: "number" > "boolean""#);
        let wide = r#"{"a":1,"b":1,"c":1,"d":1,"e":1}"#;
        assert!(shown(wide, "{}").ends_with("c: \"number\" > \n2 more"));
    }

    #[test]
    fn a_million_levels_need_no_stack() {
        let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert_eq!(shown(&deep, &deep), "");
    }
}
