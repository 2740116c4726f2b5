//! The schema that policies are checked against: callers, resources, actions and context.

use serde_json::{Value, json};

use crate::dialect::CedarDialect;
use crate::polarity::FOLDERS;
use crate::types::RecordType;

/// The actions, and the types of their resources.
pub(crate) const ACTIONS: [(&str, &[&str]); 6] = [
    ("tools/call", &["Tool"]),
    ("resources/read", &["Resource"]),
    ("resources/subscribe", &["Resource"]),
    ("prompts/get", &["Prompt"]),
    ("completion/complete", &["Prompt", "Resource"]),
    ("mcp/method", &["McpMethod"]),
];

/// The schema in a dialect, as JSON. `tool` is the type of the arguments of tool calls, `other`
/// that of all other calls, `folders` the arguments whose folders are known.
pub(crate) fn schema(
    dialect: &CedarDialect,
    tool: &RecordType,
    other: &RecordType,
    folders: &RecordType,
) -> Value {
    let actions = ACTIONS
        .iter()
        .filter(|(name, _)| !dialect.two_actions || matches!(*name, "tools/call" | "mcp/method"))
        .map(|(name, kinds)| {
            let called = *name == "tools/call";
            let kinds = if called { vec![dialect.tool] } else { kinds.to_vec() };
            let arguments = if called { tool } else { other };
            ((*name).to_owned(), action(&kinds, arguments, folders))
        });
    let mut actions: serde_json::Map<String, Value> = actions.collect();
    if dialect.namespace == "ThoughtGate" {
        // Older files have policies for these actions, which never occur.
        for name in ["Forward", "Approve"] {
            actions.insert(name.to_owned(), action(&[dialect.tool, "McpMethod"], tool, folders));
        }
    }
    let name = dialect.namespace;
    json!({ name: { "entityTypes": entities(dialect, tool), "actions": actions } })
}

fn action(kinds: &[&str], arguments: &RecordType, folders: &RecordType) -> Value {
    let context = json!({
        "type": "Record",
        "attributes": {
            "policy_id": { "type": "String" },
            "source_id": { "type": "String" },
            "time": record(&[("hour", "Long"), ("day_of_week", "Long"), ("timestamp", "Long")]),
            "arguments": arguments.to_schema(),
            FOLDERS: folders.to_schema(),
        },
    });
    json!({ "appliesTo": { "principalTypes": ["App"], "resourceTypes": kinds, "context": context } })
}

fn entities(dialect: &CedarDialect, tool: &RecordType) -> Value {
    let text = "String";
    let mut app = record(&[("name", text), ("namespace", text), ("service_account", text)]);
    app["attributes"]["client"] = json!({ "type": "String", "required": false });
    let called = record(&[("name", text), ("server", text), ("method", text)]);
    let mut tool_shape = called.clone();
    tool_shape["attributes"]["arguments"] = tool.to_schema();
    let mut resource = called.clone();
    resource["attributes"]["uri"] = json!({ "type": "String" });
    let on_server = |shape: Value| json!({ "memberOfTypes": ["Server"], "shape": shape });
    let mut entities = json!({
        "App": { "memberOfTypes": ["Role"], "shape": app },
        "Role": { "shape": record(&[("name", text)]) },
        "Server": { "shape": record(&[("name", text)]) },
        "Resource": on_server(resource),
        "Prompt": on_server(called.clone()),
        "McpMethod": on_server(called),
    });
    entities[dialect.tool] = on_server(tool_shape);
    if dialect.namespace == "ThoughtGate" {
        let grant = [("task_id", text), ("approved_by", text), ("approved_at", "Long")];
        entities["ApprovalGrant"] = json!({ "shape": record(&grant) });
    }
    entities
}

fn record(members: &[(&str, &str)]) -> Value {
    let members = members.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind })));
    json!({ "type": "Record", "attributes": Value::Object(members.collect()) })
}
