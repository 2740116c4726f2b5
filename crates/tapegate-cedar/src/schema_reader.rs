//! Converts the JSON Schema of a tool's arguments to Cedar types.
//!
//! Anything without a counterpart is left out with the reason, never guessed: a policy that reads
//! it gets an error when it is loaded.

use std::cell::Cell;

use serde_json::{Map, Value};

use crate::types::{CedarType, RecordMember, RecordType};

/// How deeply schemas are followed, references included.
const DEPTH_MAX: usize = 24;
/// How many subschemas are visited, because references may branch without end.
const VISITS_MAX: u32 = 20_000;

/// The record that an `inputSchema` describes; `None` if it leaves the members open.
pub(crate) fn arguments(input_schema: &str) -> Option<RecordType> {
    let root = serde_json::from_str::<Value>(input_schema).ok()?;
    let shape = SchemaReader { root: &root, visits: Cell::new(0) };
    let Ok((CedarType::Record(record), _)) = shape.kind(&root, DEPTH_MAX) else { return None };
    let closed = root.get("additionalProperties") == Some(&Value::Bool(false));
    let says = closed || !record.members.is_empty() || !record.left_out.is_empty();
    says.then_some(record)
}

struct SchemaReader<'a> {
    root: &'a Value,
    visits: Cell<u32>,
}

impl SchemaReader<'_> {
    /// The type of a schema and whether it allows `null`; on failure, why it has none.
    fn kind(&self, schema: &Value, depth: usize) -> Result<(CedarType, bool), String> {
        self.visits.set(self.visits.get() + 1);
        let depth = depth.checked_sub(1).filter(|_| self.visits.get() <= VISITS_MAX);
        let depth = depth.ok_or("its schema is nested too deeply")?;
        let Value::Object(schema) = schema else {
            return Err("its schema allows any value".to_owned());
        };
        if let Some(target) = schema.get("$ref") {
            return self.kind(self.target(target)?, depth);
        }
        match schema.get("type") {
            Some(Value::String(name)) => Ok((self.named_type(name, schema, depth)?, false)),
            Some(Value::Array(names)) => self.union_type(names, schema, depth),
            _ => self.untyped_schema(schema, depth),
        }
    }

    fn target(&self, reference: &Value) -> Result<&Value, String> {
        let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
        let target = pointer.and_then(|pointer| self.root.pointer(pointer));
        target.ok_or_else(|| format!("its schema refers to {reference}, which does not exist"))
    }

    fn named_type(
        &self,
        name: &str,
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Result<CedarType, String> {
        match name {
            "string" => Ok(CedarType::String),
            "integer" => Ok(CedarType::Long),
            "number" => Ok(CedarType::Decimal),
            "boolean" => Ok(CedarType::Bool),
            "array" => self.array(schema, depth),
            "object" => Ok(CedarType::Record(self.object(schema, depth))),
            other => Err(format!("its schema type `{other}` has no Cedar equivalent")),
        }
    }

    fn union_type(
        &self,
        names: &[Value],
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Result<(CedarType, bool), String> {
        let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
        let nullable = names.contains(&"null");
        names.retain(|name| *name != "null");
        if names.contains(&"number") {
            names.retain(|name| *name != "integer");
        }
        match names[..] {
            [name] => Ok((self.named_type(name, schema, depth)?, nullable)),
            [] => Err("its schema allows nothing but null".to_owned()),
            _ => Err(format!("its schema allows any of {}", names.join(", "))),
        }
    }

    /// The type of a schema without `type`, from its other keywords.
    fn untyped_schema(
        &self,
        schema: &Map<String, Value>,
        depth: usize,
    ) -> Result<(CedarType, bool), String> {
        if schema.contains_key("properties") {
            return Ok((CedarType::Record(self.object(schema, depth)), false));
        }
        if let Some(Value::Array(values)) = schema.get("enum") {
            return of_values(values);
        }
        if let Some(value) = schema.get("const") {
            return of_values(std::slice::from_ref(value));
        }
        for word in ["anyOf", "oneOf", "allOf"] {
            if let Some(Value::Array(branches)) = schema.get(word) {
                return self.branches(word, branches, depth);
            }
        }
        Err("its schema names no type".to_owned())
    }

    fn branches(
        &self,
        word: &str,
        branches: &[Value],
        depth: usize,
    ) -> Result<(CedarType, bool), String> {
        let is_null = |branch: &&Value| branch.get("type").is_some_and(|kind| kind == "null");
        let mut nullable = branches.iter().any(|branch| is_null(&branch));
        let mut found: Option<CedarType> = None;
        for branch in branches.iter().filter(|branch| !is_null(branch)) {
            let (kind, null) = self.kind(branch, depth)?;
            nullable |= null;
            match &found {
                Some(known) if *known != kind => {
                    let (one, two) = (known.name(), kind.name());
                    return Err(format!("its schema has {word} with {one} and {two}"));
                }
                _ => found = Some(kind),
            }
        }
        found.map(|kind| (kind, nullable)).ok_or_else(|| format!("its {word} allows nothing"))
    }

    fn array(&self, schema: &Map<String, Value>, depth: usize) -> Result<CedarType, String> {
        let Some(items) = schema.get("items") else {
            return Err("its schema does not define the array's items".to_owned());
        };
        let (of, _) = self.kind(items, depth)?;
        Ok(CedarType::Set(Box::new(of)))
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> RecordType {
        let mut record = RecordType::default();
        let required: Vec<&str> = match schema.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let Some(Value::Object(properties)) = schema.get("properties") else { return record };
        for (name, property) in properties {
            match self.kind(property, depth) {
                Ok((kind, nullable)) => {
                    // A null member is not passed to Cedar.
                    let required = required.contains(&name.as_str()) && !nullable;
                    record.members.insert(name.clone(), RecordMember { kind, required });
                }
                Err(reason) => drop(record.left_out.insert(name.clone(), reason)),
            }
        }
        record
    }
}

/// The type that all values of an `enum` have.
fn of_values(values: &[Value]) -> Result<(CedarType, bool), String> {
    let nullable = values.iter().any(Value::is_null);
    let mut kinds = values.iter().filter(|value| !value.is_null()).map(|value| match value {
        Value::String(_) => Some(CedarType::String),
        Value::Bool(_) => Some(CedarType::Bool),
        Value::Number(number) if number.is_i64() => Some(CedarType::Long),
        _ => None,
    });
    let first = kinds.next().flatten();
    match first {
        Some(kind) if kinds.all(|other| other.as_ref() == Some(&kind)) => Ok((kind, nullable)),
        _ => Err("its schema lists values of several types".to_owned()),
    }
}
