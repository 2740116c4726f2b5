//! Compares the API description with the service: every route, every field, every status.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use serde_json::{Value, json};
use tapegate_hub::hub_policy::{HubPolicyLoad, PolicyBundle};
use tapegate_hub::service::{OPENAPI, ROUTES};
use tapegate_policy::model::CHANNEL_PROTOCOLS;

use crate::support::{HubFixture, policy, raw, request, with_hub};

const POLICY: &str = r#"
schema: 1
governance:
  defaults: { action: forward }
  rules:
    - { match: pay, action: approve, approval: default }
    - { match: rm, action: deny }
approval:
  default: { timeout: 10m, on_timeout: approve, channels: [hook], in_agent: [cc], escalate: { after: 5m, to: late } }
  late: {}
channels:
  # Its secret is missing, so it has a fault.
  hook: { type: webhook, url: "http://127.0.0.1:1/", secret_env: NO_SUCH_SECRET_OF_A_HOOK }
"#;

fn loaded() -> HubPolicyLoad {
    let loading = policy(POLICY);
    let config_path = Some("/p/tapegate.yaml".to_owned());
    HubPolicyLoad { texts: PolicyBundle { config_path, ..loading.texts }, ..loading }
}

/// The description, and which fields of answers have been seen so far.
struct ApiDescription {
    document: Value,
    seen: BTreeSet<String>,
}

impl ApiDescription {
    fn new() -> Self {
        Self { document: serde_json::from_str(OPENAPI).unwrap(), seen: BTreeSet::new() }
    }

    /// Sends a request, and checks the answer against the schema for its status.
    async fn ask(&mut self, hub: &HubFixture, method: &str, path: &str, body: Value) -> Value {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        let reply = raw(&hub.address, request(hub, method, path, &text)).await;
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().to_owned();
        let described = self.operation(method, path)["responses"][&status].clone();
        assert!(described.is_object(), "{method} {path} answers {status}: {reply}");
        let (media_type, content) =
            described["content"].as_object().unwrap().iter().next().unwrap();
        assert!(head.contains(&format!("content-type: {media_type}")), "{head}");
        if media_type != "application/json" {
            return Value::Null;
        }
        let value: Value = serde_json::from_str(body).unwrap();
        self.fits(&value, &content["schema"].clone(), path);
        value
    }

    fn operation(&self, method: &str, path: &str) -> Value {
        let path = path.split('?').next().unwrap();
        let found = ROUTES.iter().find(|(wanted, pattern, _)| {
            let (before, after) = pattern.split_once("{id}").unwrap_or((pattern, ""));
            let exact = !pattern.contains('{') && *pattern == path;
            let named = pattern.contains('{')
                && path
                    .strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after))
                    .is_some_and(|id| !id.is_empty() && !id.contains('/'));
            *wanted == method && (exact || named)
        });
        let (_, pattern, _) = found.unwrap();
        self.document["paths"][pattern][method.to_lowercase()].clone()
    }

    /// Checks that a value matches a schema field by field, with no extra fields.
    fn fits(&mut self, value: &Value, schema: &Value, place: &str) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().unwrap().to_owned();
            let schema = self.document["components"]["schemas"][&name].clone();
            for (key, inner) in value.as_object().unwrap() {
                let property = schema["properties"][key].clone();
                assert!(property.is_object(), "{place}: `{key}` is not in {name}");
                self.seen.insert(format!("{name}.{key}"));
                self.fits(inner, &property, &format!("{place}.{key}"));
            }
            for needed in schema["required"].as_array().unwrap() {
                let needed = needed.as_str().unwrap();
                assert!(value.get(needed).is_some(), "{place}: `{needed}` is missing");
            }
            return;
        }
        let types = match &schema["type"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(all) => all.iter().map(|it| it.as_str().unwrap().to_owned()).collect(),
            _ => return,
        };
        let is = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        assert!(types.iter().any(|wanted| wanted == is), "{place}: {value} is no {types:?}");
        if let Some(choices) = schema["enum"].as_array() {
            assert!(choices.contains(value), "{place}: {value}");
        }
        for inner in value.as_array().into_iter().flatten() {
            self.fits(inner, &schema["items"].clone(), place);
        }
    }

    /// The fields of a schema.
    fn fields(&self, name: &str) -> BTreeSet<String> {
        let properties = self.document["components"]["schemas"][name]["properties"].as_object();
        properties.unwrap().keys().map(|key| format!("{name}.{key}")).collect()
    }

    /// A request with every described field.
    fn full(&self, name: &str, value: Value) -> Value {
        let given = value.as_object().unwrap().keys().map(|key| format!("{name}.{key}"));
        assert_eq!(given.collect::<BTreeSet<_>>(), self.fields(name), "{name}");
        value
    }
}

fn call(name: &str) -> Value {
    json!({
        "server_id": "fs", "direction": "agent_to_server", "method": "tools/call", "id": 1.5,
        "params": {"name": name, "arguments": {"a": 1}}, "message_type": "request",
        "profile": "production"
    })
}

#[test]
fn every_route_is_described_and_nothing_else_is() {
    let held = ApiDescription::new();
    let described: BTreeSet<(String, String)> = held.document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, operations)| {
            let methods = operations.as_object().unwrap().keys();
            methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
        })
        .collect();
    let served = ROUTES.iter().map(|(method, path, _)| ((*method).to_owned(), (*path).to_owned()));
    assert_eq!(described, served.collect());
}

#[test]
fn every_answer_is_as_it_is_described_and_every_field_that_is_described_is_answered() {
    with_hub(loaded, |hub| async move {
        let mut held = ApiDescription::new();
        evaluate(&mut held, &hub).await;
        tasks(&mut held, &hub).await;
        shims(&mut held, &hub).await;
        let answered = [
            "GovernanceEvaluateResponse",
            "DenyError",
            "HeartbeatResponse",
            "Snapshot",
            "TaskAnswer",
            "ApprovalsAnswer",
            "ApprovalItem",
            "ApprovalAnswer",
            "GrantsAnswer",
            "GrantItem",
            "ChannelsAnswer",
            "ChannelState",
            "EventsAnswer",
            "ShutdownResponse",
            "Health",
            "Readiness",
            "ErrorAnswer",
            "ErrorBody",
        ];
        let wanted: BTreeSet<String> = answered.iter().flat_map(|name| held.fields(name)).collect();
        let missing: Vec<_> = wanted.difference(&held.seen).collect();
        // Two need development, and two a broken disk and a broken policy; see below.
        let others =
            ["GovernanceEvaluateResponse.auto_approved", "GovernanceEvaluateResponse.would"];
        assert_eq!(missing[..2], others);
        assert_eq!(missing[2..], ["Readiness.log_fault", "Readiness.policy_faults"]);
    });
}

#[test]
fn what_is_only_said_sometimes_is_described_too() {
    let broken = Rc::new(Cell::new(false));
    let breaks = Rc::clone(&broken);
    let load = move || match breaks.get() {
        false => policy(&format!("{POLICY}profile: development\n")),
        true => policy("schema: 0"),
    };
    with_hub(load, |hub| async move {
        let mut held = ApiDescription::new();
        let mut asked = call("pay");
        asked["profile"] = json!("development");
        let answer = held.ask(&hub, "POST", "/governance/evaluate", asked).await;
        assert_eq!(answer["would"], "WOULD_REQUIRE_APPROVAL");
        assert_eq!(answer["auto_approved"], true);
        broken.set(true);
        hub.hub.reload();
        let ready = held.ask(&hub, "GET", "/readyz", Value::Null).await;
        assert!(ready["policy_faults"][0].is_string() && ready["status"] == "ready");
        // A folder in place of the log makes every write fail.
        let log = hub.state().join("activity.jsonl");
        std::fs::remove_file(&log).unwrap();
        std::fs::create_dir(&log).unwrap();
        let answer = held.ask(&hub, "POST", "/governance/evaluate", call("ls")).await;
        assert_eq!(answer["error"]["code"], -32013, "{answer}");
        let ready = held.ask(&hub, "GET", "/readyz", Value::Null).await;
        assert!(ready["log_fault"].is_string() && ready["status"] == "not_ready");
    });
}

async fn evaluate(held: &mut ApiDescription, hub: &HubFixture) {
    let path = "/governance/evaluate";
    let principal = held.full(
        "Principal",
        json!({"name": "n", "namespace": "ns", "service_account": "sa", "roles": ["r"], "client": "c"}),
    );
    let full = json!({
        "server_id": "fs", "direction": "agent_to_server", "method": "tools/call", "id": "x",
        "params": {"name": "rm"}, "message_type": "request", "profile": "production",
        "connection_id": "c", "request_id": "r", "principal": principal, "drift": "d",
        "held": true, "approval_id": "ap_x", "workflow": "default", "traceparent": "t", "tape_session_id": "s",
        "tape_seq": 1, "folder": "/srv/project"
    });
    let full = held.full("GovernanceEvaluateRequest", full);
    assert_eq!(held.ask(hub, "POST", path, full).await["decision"], "deny");
    assert_eq!(held.ask(hub, "POST", path, call("rm")).await["error"]["code"], -32014);
    assert_eq!(held.ask(hub, "POST", path, call("ls")).await["decision"], "forward");
    held.ask(hub, "POST", path, json!({})).await;
}

/// Approves a request, and grants that the same call passes again; the grant is then revoked.
async fn approve_with_grant(held: &mut ApiDescription, hub: &HubFixture, id: &str) {
    let grant = json!({"for_s": 60, "session": false, "under": {}, "matching": {}});
    let grant = held.full("GrantRequest", grant);
    let who = held.full("SettleRequest", json!({"by": "ann", "reason": "fine", "grant": grant}));
    let path = format!("/approvals/{id}/approve");
    let wrong = json!({"by": "ann", "grant": {"for_s": 0}});
    assert_eq!(held.ask(hub, "POST", &path, wrong).await["error"]["code"], "bad_request");
    let unfit = json!({"by": "ann", "grant": {"for_s": 9, "under": {"path": "/srv"}}});
    assert_eq!(held.ask(hub, "POST", &path, unfit).await["error"]["code"], "conflict");
    let approved = held.ask(hub, "POST", &path, who).await;
    assert_eq!(approved["status"], "approved", "{approved}");
    let channels = held.ask(hub, "GET", &format!("/approvals/{id}/channels"), Value::Null).await;
    assert_eq!((&channels["answered_by"], &channels["known"]), (&json!("api"), &json!(true)));
    let shown = held.ask(hub, "GET", &format!("/approvals/{id}"), Value::Null).await;
    assert_eq!((&shown["task"]["status"], &shown["used"]), (&json!("approved"), &json!(false)));
    held.ask(hub, "GET", "/approvals/nobody", Value::Null).await;
    let grants = held.ask(hub, "GET", "/approvals/grants", Value::Null).await;
    assert_eq!(
        (&grants["grants"][0]["id"], &grants["grants"][0]["state"]),
        (&approved["grant_id"], &json!("active"))
    );
    let path = format!("/approvals/grants/{}/revoke", approved["grant_id"].as_str().unwrap());
    let by = json!({"by": "bob"});
    assert_eq!(held.ask(hub, "POST", &path, by.clone()).await["state"], "revoked");
    assert_eq!(held.ask(hub, "POST", &path, by.clone()).await["error"]["code"], "conflict");
    held.ask(hub, "POST", &path, json!({"by": " "})).await;
    held.ask(hub, "POST", "/approvals/grants/gr_x/revoke", by).await;
}

async fn tasks(held: &mut ApiDescription, hub: &HubFixture) {
    let id = held.ask(hub, "POST", "/governance/evaluate", call("pay")).await;
    assert_eq!(id["forward_on_timeout"], true);
    let id = id["task_id"].as_str().unwrap().to_owned();
    let at = |end: &str| format!("/governance/task/{id}{end}");
    held.ask(hub, "GET", "/approvals", Value::Null).await;
    let channels = format!("/approvals/{id}/channels");
    let told = held.ask(hub, "GET", &channels, Value::Null).await;
    assert_eq!(told["channels"][0]["state"], "failed");
    held.ask(hub, "GET", "/approvals/nobody/channels", Value::Null).await;
    let refused = held.ask(hub, "POST", "/approvals/links/ap_x.approve.hook.0", Value::Null).await;
    assert_eq!(refused["error"]["code"], "forbidden");
    held.ask(hub, "GET", &at(""), Value::Null).await;
    held.ask(hub, "GET", &at("?wait_ms=x"), Value::Null).await;
    held.ask(hub, "POST", &at("/revalidate"), call("pay")).await;
    let who = json!({"by": "ann", "reason": "fine"});
    let path = format!("/approvals/{id}/approve");
    approve_with_grant(held, hub, &id).await;
    held.ask(hub, "GET", &at(""), Value::Null).await;
    assert_eq!(held.ask(hub, "POST", &path, who.clone()).await["error"]["code"], "conflict");
    let valid = held.ask(hub, "POST", &at("/revalidate"), call("pay")).await;
    assert_eq!(valid["decision"], "forward");
    let next = held.ask(hub, "POST", "/governance/evaluate", call("pay")).await;
    let next = next["task_id"].as_str().unwrap();
    let path = format!("/governance/task/{next}/answer");
    let other = held.full("AnswerRequest", json!({"approve": true, "client": "other"}));
    assert_eq!(held.ask(hub, "POST", &path, other).await["error"]["code"], "forbidden");
    let user = json!({"approve": false, "client": "cc"});
    assert_eq!(held.ask(hub, "POST", &path, user.clone()).await["decided_by"], "user of cc");
    assert_eq!(held.ask(hub, "POST", &path, user).await["error"]["code"], "conflict");
    held.ask(hub, "POST", &path, json!({})).await;
    held.ask(
        hub,
        "POST",
        "/governance/task/nobody/answer",
        json!({"approve": true, "client": "cc"}),
    )
    .await;
    let next = held.ask(hub, "POST", "/governance/evaluate", call("pay")).await;
    let next = next["task_id"].as_str().unwrap();
    held.ask(hub, "POST", &format!("/approvals/{next}/deny"), who).await;
    held.ask(hub, "POST", &format!("/governance/task/{next}/cancel"), Value::Null).await;
    held.ask(hub, "GET", "/governance/task/nobody", Value::Null).await;
}

async fn shims(held: &mut ApiDescription, hub: &HubFixture) {
    let messages = held.full(
        "MessageCount",
        json!({"direction": "agent_to_server", "method": "ping", "count": 1}),
    );
    let framing = held.full("FramingCount", json!({"error_type": "malformed_json", "count": 1}));
    let decisions = held
        .full("DecisionCount", json!({"decision": "deny", "profile": "production", "count": 1}));
    let counters = held.full(
        "Counters",
        json!({"messages": [messages], "framing_errors": [framing], "decisions": [decisions]}),
    );
    let beat = held.full(
        "HeartbeatRequest",
        json!({"server_id": "fs", "connection_id": "c", "pid": 1, "state": "running",
               "policy_version": "v", "counters": counters}),
    );
    held.ask(hub, "POST", "/governance/heartbeat", beat).await;
    let line = held.full("EventLine", event());
    let events = held
        .full("EventsRequest", json!({"batch": "b", "shipped_from": "log_x", "events": [line]}));
    held.ask(hub, "POST", "/governance/events", events).await;
    for path in ["/governance/snapshot", "/metrics", "/openapi.json", "/healthz", "/readyz"] {
        held.ask(hub, "GET", path, Value::Null).await;
    }
    held.ask(hub, "POST", "/governance/shutdown", Value::Null).await;
    held.ask(hub, "GET", "/readyz", Value::Null).await;
    hub.hub.close();
    held.ask(hub, "GET", "/governance/stream?connection_id=c", Value::Null).await;
}

fn event() -> Value {
    json!({
        "timestamp": "2026-01-01T00:00:00Z", "level": "info", "kind": "decision",
        "component": "shim", "server_id": "fs", "direction": "agent_to_server", "method": "m",
        "tool": "t", "message_id": "1", "governance_decision": "forward", "gate": "governance",
        "rule": "r", "policies": ["p"], "policy_reason": "why", "policy_version": "v",
        "profile": "production", "forwarded": true, "auto_approved": false, "latency_us": 1,
        "principal": "n", "approval_id": "a", "decided_by": "b", "connection_id": "c",
        "request_id": "r", "tape_session_id": "s", "tape_seq": 1, "traceparent": "t",
        "shipped_seq": 1,
        "extra": {"x": 1}
    })
}

#[test]
fn the_types_of_channels_are_those_of_the_policy_language() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    let channels = &document["components"]["schemas"]["Readiness"]["properties"]["channels"];
    let words: Vec<&str> = CHANNEL_PROTOCOLS.iter().map(|protocol| protocol.word).collect();
    assert_eq!(channels["items"]["properties"]["type"]["enum"], json!(words));
}
