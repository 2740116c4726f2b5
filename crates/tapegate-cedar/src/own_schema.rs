//! A schema written by the user, in place of the generated one.

use cedar_policy::{Schema, SchemaFragment};
use serde_json::Value;

use crate::CedarText;
use crate::check::place;
use crate::dialect::CedarDialect;
use crate::types::{CedarType, RecordMember, RecordType};

/// How deeply types are followed.
const DEPTH_MAX: usize = 24;

/// A parsed schema.
pub(crate) struct OwnSchema {
    pub(crate) schema: Schema,
    /// The type of the arguments of tool calls.
    pub(crate) arguments: RecordType,
}

/// Parses a schema, in Cedar's syntax or as JSON, and adapts the dialect to it.
pub(crate) fn read(
    text: &CedarText,
    dialect: &mut CedarDialect,
) -> Result<OwnSchema, (Option<usize>, String)> {
    let fragment = if text.text.trim_start().starts_with('{') {
        SchemaFragment::from_json_str(&text.text).map_err(|error| (None, error.to_string()))?
    } else {
        let read = SchemaFragment::from_cedarschema_str(&text.text);
        read.map(|(fragment, _)| fragment).map_err(|error| (place(&error), error.to_string()))?
    };
    let json = fragment.to_json_string().map_err(|error| (None, error.to_string()))?;
    let json: Value = serde_json::from_str(&json).map_err(|error| (None, error.to_string()))?;
    let schema = Schema::from_schema_fragments([fragment])
        .map_err(|error| (place(&error), error.to_string()))?;
    let space = json.get(dialect.namespace).ok_or_else(|| (None, no_namespace(dialect)))?;
    let action = &space["actions"]["tools/call"];
    if action.is_null() {
        return Err((None, "the schema has no action `tools/call`".to_owned()));
    }
    // The schema overrides what the policies suggest: it defines which actions and types exist.
    dialect.two_actions = space["actions"].get("resources/read").is_none();
    let kinds = &space["entityTypes"];
    dialect.tool = if kinds.get("Tool").is_some() { "Tool" } else { "ToolCall" };
    let resolver = TypeResolver { commons: &space["commonTypes"] };
    let context = resolver.kind(&action["appliesTo"]["context"], DEPTH_MAX);
    let shape = resolver.kind(&kinds[dialect.tool]["shape"], DEPTH_MAX);
    let mut found = [context, shape].into_iter().filter_map(|kind| match kind {
        CedarType::Record(mut record) => match record.members.remove("arguments")?.kind {
            CedarType::Record(record) => Some(record),
            _ => None,
        },
        _ => None,
    });
    Ok(OwnSchema { schema, arguments: found.next().unwrap_or_default() })
}

fn no_namespace(dialect: &CedarDialect) -> String {
    match dialect.namespace {
        "" => {
            "the policies use no namespace, and the schema declares nothing outside one".to_owned()
        }
        name => format!("the policies use the namespace `{name}`, which the schema does not have"),
    }
}

struct TypeResolver<'a> {
    commons: &'a Value,
}

impl TypeResolver<'_> {
    /// Converts a type of the schema; `Any` if JSON has no such type.
    fn kind(&self, value: &Value, depth: usize) -> CedarType {
        let (Some(depth), Some(name)) = (depth.checked_sub(1), value["type"].as_str()) else {
            return CedarType::Any;
        };
        match name {
            "Record" => CedarType::Record(self.record(value, depth)),
            "Set" => CedarType::Set(Box::new(self.kind(&value["element"], depth))),
            "EntityOrCommon" | "Extension" => {
                self.resolve_named(value["name"].as_str().unwrap_or_default(), depth)
            }
            name => self.resolve_named(name, depth),
        }
    }

    fn resolve_named(&self, name: &str, depth: usize) -> CedarType {
        match name.rsplit("::").next().unwrap_or(name) {
            "String" => CedarType::String,
            "Long" => CedarType::Long,
            "Bool" | "Boolean" => CedarType::Bool,
            "decimal" => CedarType::Decimal,
            common => {
                self.commons.get(common).map_or(CedarType::Any, |kind| self.kind(kind, depth))
            }
        }
    }

    fn record(&self, value: &Value, depth: usize) -> RecordType {
        let mut record = RecordType::default();
        for (name, member) in value["attributes"].as_object().into_iter().flatten() {
            let required = member["required"].as_bool().unwrap_or(true);
            let kind = self.kind(member, depth);
            record.members.insert(name.clone(), RecordMember { kind, required });
        }
        record
    }
}
