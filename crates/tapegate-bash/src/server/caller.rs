//! Who calls: the agent, the conversation and the call, from where clients put them.
//!
//! Metadata of the request comes before the environment, because environments are inherited.

use serde_json::Value;

use super::tool_host::ServerEnvironment;
use crate::recording::entry::AgentContext;

/// The longest text that is taken from a client's metadata.
const TEXT_BYTES_MAX: usize = 500;
const CLIENT_INFO_KEY: &str = "io.modelcontextprotocol/clientInfo";

/// What a client said of itself when it connected.
#[derive(Debug, Clone, Default)]
pub(super) struct CallerIdentity {
    name: Option<String>,
}

/// Who calls, and how.
#[derive(Debug, Clone)]
pub(super) struct CallerRequest {
    pub(super) context: AgentContext,
    /// The token for reports of progress, if the caller wants them.
    pub(super) progress_token: Option<Value>,
}

impl CallerIdentity {
    /// Takes the name from the client's information.
    pub(super) fn note_client_info(&mut self, info: Option<&Value>) {
        self.name = info.and_then(|info| text(info, "name"));
    }
}

impl CallerRequest {
    pub(super) fn new(
        identity: &CallerIdentity,
        id: &[u8],
        params: &Value,
        environment: &ServerEnvironment,
    ) -> Self {
        let empty = Value::Null;
        let meta = params.get("_meta").unwrap_or(&empty);
        // The document's key comes first, then those that clients use on their own.
        let first = |names: &[&str]| names.iter().find_map(|name| text(meta, name));
        let client = meta.get(CLIENT_INFO_KEY).and_then(|info| text(info, "name"));
        let conversation = first(&["conversation_id", "threadId", "sessionID"]);
        let call = first(&["tool_call_id", "claudecode/toolUseId", "callId"]);
        let id = String::from_utf8_lossy(id);
        let context = AgentContext {
            agent_id: first(&["agent_id"]).or(client).or_else(|| identity.name.clone()),
            conversation_id: conversation.or_else(|| environment.conversation_id.clone()),
            tool_call_id: call.or_else(|| Some(format!("rpc:{}", id.trim_matches('"')))),
            trace_id: first(&["traceparent"]).map(|parent| trace_id(&parent)),
        };
        let token = meta.get("progressToken");
        // The protocol permits nothing else, and the token is sent back.
        let token = token.filter(|token| token.is_string() || token.is_number());
        Self { context, progress_token: token.cloned() }
    }
}

/// The trace in a `traceparent`: `00-TRACE-SPAN-FLAGS`.
fn trace_id(parent: &str) -> String {
    let trace = parent.split('-').nth(1).filter(|trace| trace.len() == 32);
    trace.unwrap_or(parent).to_owned()
}

fn text(value: &Value, name: &str) -> Option<String> {
    let text = value.get(name)?.as_str()?.trim();
    // Longer texts are dropped, not cut: half an id could be that of another conversation.
    let fits = !text.is_empty() && text.len() <= TEXT_BYTES_MAX;
    fits.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn caller(meta: Value, conversation: Option<&str>) -> AgentContext {
        let mut identity = CallerIdentity::default();
        identity.note_client_info(Some(&json!({"name": "from-initialize"})));
        let conversation_id = conversation.map(str::to_owned);
        let environment = ServerEnvironment { conversation_id, ..ServerEnvironment::default() };
        CallerRequest::new(&identity, b"\"7\"", &json!({"_meta": meta}), &environment).context
    }

    #[test]
    fn metadata_comes_before_the_handshake_and_the_environment() {
        let context = caller(json!({}), Some("env"));
        assert_eq!(context.agent_id.as_deref(), Some("from-initialize"));
        assert_eq!(context.conversation_id.as_deref(), Some("env"));
        assert_eq!(context.tool_call_id.as_deref(), Some("rpc:7"));
        let meta = json!({
            "agent_id": "a", "conversation_id": "c", "tool_call_id": "t",
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        });
        let context = caller(meta, Some("env"));
        assert_eq!(context.agent_id.as_deref(), Some("a"));
        assert_eq!(context.conversation_id.as_deref(), Some("c"));
        assert_eq!(context.tool_call_id.as_deref(), Some("t"));
        assert_eq!(context.trace_id.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
    }

    #[test]
    fn each_client_has_its_own_place_for_these() {
        let conversation = |meta| caller(meta, None).conversation_id;
        assert_eq!(conversation(json!({"threadId": "codex"})).as_deref(), Some("codex"));
        assert_eq!(conversation(json!({"sessionID": "opencode"})).as_deref(), Some("opencode"));
        assert_eq!(conversation(json!({"threadId": 7})), None);
        let call = |meta| caller(meta, None).tool_call_id;
        assert_eq!(call(json!({"claudecode/toolUseId": "toolu_x"})).as_deref(), Some("toolu_x"));
        let modern = caller(json!({CLIENT_INFO_KEY: {"name": "modern"}}), None);
        assert_eq!(modern.agent_id.as_deref(), Some("modern"));
    }
}
