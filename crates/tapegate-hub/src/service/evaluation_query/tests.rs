//! The gate, the hub, `policy explain`, `policy test` and `policy backtest` agree on every message.

use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use tapegate_core::decision::LoggedDecision;
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, Verdict};
use tapegate_core::json::{member, string};
use tapegate_core::side::Lane;
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest};
use tapegate_policy::backtest::{BacktestConfig, TapeMessage};
use tapegate_policy::cases::{self, CaseExpectation, CaseInput, CaseOutcome, TestCase};
use tapegate_policy::decide::{DecisionOutcome, GateName};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::load::load;
use tapegate_policy::note::{Note, NoteKind, NoteSink};
use tapegate_policy::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_yaml::files::MemoryFiles;
use tapegate_yaml::node::Spot;

use super::*;

/// The result for a message: the outcome, the gate that stopped it and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
struct MessageOutcome {
    outcome: &'static str,
    gate: Option<String>,
    rule: Option<String>,
}

/// A message, and its parts if the hub can be asked about it.
#[derive(Debug, Clone)]
struct TestMessage {
    from: Side,
    carrier: TransportKind,
    text: String,
    parts: Option<(MessageType, String, String)>,
}

const RULES: &[&str] = &[
    "{id: ls, match: ls, action: forward}",
    "{id: rm, match: rm, action: deny}",
    "{id: ask, match: 'ask*', action: approve}",
    "{id: etc, match: 'file:///etc/*', action: deny}",
    "{id: data, match: 'file:///data/*', action: approve}",
    "{id: path, match: write, action: forward, arguments: {path: '/data/*'}}",
    "{id: force, action: deny, arguments: {force: true}}",
    "{id: cedar, match: cedar, action: policy, policy_id: p}",
    "{id: model, method: 'sampling/*', action: deny}",
    "{id: ask_user, method: elicitation/create, action: approve}",
    "{id: level, method: LOGGING/*, action: deny}",
    "{id: lists, method: tools/list, action: approve}",
    "{id: vendor, method: 'vendor/*', action: forward}",
    "{id: ping, method: ping, action: deny}",
    "{id: all, method: '*', action: deny, match: rm}",
];

const SOURCES: &[&str] = &[
    "",
    "sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: [hidden], resources: ['file:///secret/*']}}]",
    "sources: [{id: fs, kind: mcp, enabled: false}]",
    "sources: [{id: other, kind: mcp}]",
];

const CEDAR: &str = r#"
@id("agents") permit(principal, action, resource)
when { principal has client && principal.client == "claude" };
"#;

fn policy() -> impl Strategy<Value = Arc<Policy>> {
    let default = proptest::sample::select(&["forward", "deny", "approve"][..]);
    let rules = proptest::sample::subsequence(RULES, 0..=RULES.len()).prop_shuffle();
    let source = proptest::sample::select(SOURCES);
    let embedded = proptest::sample::select(&["log", "refuse"][..]);
    (default, rules, source, embedded).prop_map(|(default, rules, source, embedded)| {
        // Cedar must be used by a rule, or the policy does not load.
        let asks = "{match: no_such_tool, action: policy, policy_id: p}";
        let rules = [rules, vec![asks]].concat().join(", ");
        let text = format!(
            "schema: 1\n{source}\ngovernance:\n  embedded_messages: {embedded}\n  defaults: {{action: {default}}}\n  rules: [{rules}]\ncedar: {{policies: [p.cedar]}}\n"
        );
        let files = MemoryFiles::default().with_file("p.yaml", text).with_file("p.cedar", CEDAR);
        let loaded = load("p.yaml", &files);
        Arc::new(loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.findings)))
    })
}

const METHODS: &[&str] = &[
    "tools/call",
    "tools/call",
    "Tools/CALL ",
    "prompts/get",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "subscriptions/listen",
    "tools/list",
    "logging/setLevel",
    "Logging/SETLEVEL",
    "tasks/result",
    "ping",
    "initialize",
    "notifications/progress",
    "notifications/message",
    "notifications/tasks/status",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "admin/run",
    "vendor/event",
    "",
];

const PARAMS: &[&str] = &[
    "{}",
    "[]",
    "null",
    r#"{"name":"ls"}"#,
    r#"{"name":"rm"}"#,
    r#"{"name":"r\u006d","arguments":{}}"#,
    r#"{"name":"ask_me","arguments":{"a":1}}"#,
    r#"{"name":"hidden"}"#,
    r#"{"name":"cedar"}"#,
    r#"{"name":"cedar","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"claude"}}}"#,
    r#"{"name":"write","arguments":{"path":"/data/a"}}"#,
    r#"{"name":"write","arguments":{"path":"/etc/a","force":true}}"#,
    r#"{"name":"ls","name":"rm"}"#,
    r#"{"name":"ls","Name":"rm"}"#,
    r#"{"name":["ls"]}"#,
    r#"{"name":"ls\u0000"}"#,
    r#"{"name":"ls","arguments":{"t":"x\n{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"}}"#,
    r#"{"name":"ls","__proto__":{"arguments":{"path":"/etc/a"}}}"#,
    r#"{"name":"write","arguments":{"path":"/data/a","\u005f_proto__":{"force":true}}}"#,
    r#"{"name":"ls","arguments":{"content":"see tapegate.yaml"}}"#,
    r#"{"name":"ls","arguments":{"path":"tapegate.yaml"}}"#,
    r#"{"uri":"file:///etc/passwd"}"#,
    r#"{"uri":"file:///data/../etc/passwd"}"#,
    r#"{"uri":"file:///data/a"}"#,
    r#"{"uri":"x://y"}"#,
    r#"{"_meta":{}}"#,
    r#"{"ref":{"type":"ref/prompt","name":"ask"},"argument":{"name":"a","value":""}}"#,
    r#"{"ref":{"type":"ref/resource","uri":"file:///etc/{x}"},"argument":{}}"#,
    r#"{"notifications":{"resourceSubscriptions":["x://y","file:///etc/a","file:///data/a"]}}"#,
    r#"{"notifications":{"resourceSubscriptions":["x://y","x://z"]}}"#,
    r#"{"notifications":{"resourceSubscriptions":[7]}}"#,
];

/// Messages that the hub cannot be asked about.
const OTHERS: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"hidden"},{"name":"ls"}]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"Resources":[{"uri":"file:///secret/a"}]}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"roots/list"},"b":{"method":"sampling/createMessage"}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"elicitation/create"}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"inputRequests":{"a":{"method":"vendor/ask"},"b":{"method":"admin/run"}}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"t":"x\n{\"jsonrpc\":\"2.0\",\"method\":\"a\"}"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"__proto__":{"tools":[{"name":"rm"}]}}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","__proto__":{"method":"tools/call","params":{"name":"rm"}}}"#,
    r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"ls"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"ls"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"rm"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#,
    r#"{"id":1,"method":"ping"}"#,
    r#"{"jsonrpc":"2.0"}"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#,
    "{\"jsonrpc\":\"2.0\",\r\"id\":1,\"method\":\"ping\"}",
    "7",
    "[]",
    "nonsense",
    "",
];

fn one() -> impl Strategy<Value = (String, Option<(MessageType, String, String)>)> {
    let kind = prop_oneof![3 => Just(MessageType::Request), 1 => Just(MessageType::Notification)];
    let method = proptest::sample::select(METHODS);
    let params = proptest::sample::select(PARAMS);
    let made = (kind, method, params).prop_map(|(kind, method, params)| {
        let id = if kind == MessageType::Request { "\"id\":1," } else { "" };
        let text = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
        (text, Some((kind, method.to_owned(), params.to_owned())))
    });
    let other = proptest::sample::select(OTHERS).prop_map(|text| (text.to_owned(), None));
    prop_oneof![4 => made, 1 => other]
}

fn text() -> impl Strategy<Value = (String, Option<(MessageType, String, String)>)> {
    let batch = proptest::collection::vec(one(), 0..4).prop_map(|parts| {
        let texts: Vec<String> = parts.into_iter().map(|(text, _)| text).collect();
        (format!("[{}]", texts.join(", ")), None)
    });
    prop_oneof![5 => one(), 1 => batch]
}

fn message() -> impl Strategy<Value = TestMessage> {
    let from = proptest::sample::select(&[Side::Client, Side::Client, Side::Server][..]);
    let carrier = proptest::sample::select(&[TransportKind::Lines, TransportKind::Http][..]);
    (from, carrier, text()).prop_map(|(from, carrier, (text, parts))| TestMessage {
        from,
        carrier,
        text,
        parts,
    })
}

#[derive(Clone, Default)]
struct CollectedNotes(Arc<Mutex<Vec<Note<'static>>>>);

impl NoteSink for CollectedNotes {
    fn note(&mut self, note: &Note<'_>) {
        self.0.lock().unwrap().push(note.clone().into_owned());
    }
}

struct TestApprovals;

impl ApprovalChannel for TestApprovals {
    fn request_approval(&mut self, _: HoldId, _: &ApprovalRequest<'_>) {}

    fn withdraw_request(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}
}

fn principal() -> PolicyPrincipal {
    PolicyPrincipal { name: "ann".to_owned(), ..PolicyPrincipal::default() }
}

fn settings(message: &TestMessage) -> GateSettings {
    let (client, server) = (message.carrier, message.carrier);
    GateSettings {
        source: "fs".to_owned(),
        principal: principal(),
        client,
        server,
        ..GateSettings::default()
    }
}

fn word(outcome: &DecisionOutcome) -> &'static str {
    match outcome {
        DecisionOutcome::Forward => "forward",
        DecisionOutcome::Deny => "deny",
        DecisionOutcome::Hold { .. } => "hold",
    }
}

fn fate(fate: CaseOutcome) -> &'static str {
    match fate {
        CaseOutcome::Forward => "forward",
        CaseOutcome::Deny => "deny",
        CaseOutcome::Approve => "hold",
    }
}

/// The gate's verdict and its notes.
fn gate(
    policy: &Arc<Policy>,
    profile: Profile,
    message: &TestMessage,
) -> (Verdict, Vec<Note<'static>>) {
    let kept = CollectedNotes::default();
    let effects = GateEffects {
        notes: Box::new(kept.clone()),
        approval_channel: Box::new(TestApprovals),
        holds: HoldRegister::default(),
        ids: IdGenerator::default(),
        states: None,
        clock: Box::new(|| 0),
    };
    let active_policy =
        ActivePolicy { policy: Some(Arc::clone(policy)), profile, ..ActivePolicy::default() };
    let mut policy_gate =
        PolicyGate::new(settings(message), effects, PolicyHandle::new(active_policy));
    let frame = Frame::read(message.text.as_bytes());
    let verdict = policy_gate.judge(&GateInput {
        at: Timestamp::default(),
        n: 1,
        lane: Lane::ONLY,
        from: message.from,
        frame: &frame,
        terminated: true,
        topic: None,
        approved: None,
        listed: None,
    });
    let notes = std::mem::take(&mut *kept.0.lock().unwrap());
    (verdict, notes)
}

/// The result according to the verdict and the notes.
fn came(verdict: &Verdict, notes: &[Note<'_>]) -> MessageOutcome {
    let (outcome, gate) = match verdict {
        Verdict::Forward | Verdict::Rewrite(_) => ("forward", None),
        Verdict::Hold(_) => ("hold", Some("approval".to_owned())),
        Verdict::Refuse(refusal) => {
            let gate = member(refusal.data.as_bytes(), "gate").and_then(string);
            ("deny", gate.map(|gate| gate.into_owned()))
        }
        Verdict::ListFirst(_) => panic!("nothing is pinned"),
    };
    let stopped = |note: &&Note<'_>| match outcome {
        "deny" => note.decision() == LoggedDecision::Deny,
        _ => matches!(note.kind, NoteKind::HoldOpened { .. }),
    };
    // A malformed message is refused before any rule is evaluated.
    let rule = notes.iter().find(stopped).filter(|_| gate.as_deref() != Some("framing"));
    let rule = rule.and_then(|note| note.event.rule.as_deref()).map(str::to_owned);
    MessageOutcome { outcome, gate, rule }
}

/// The result according to a judgement.
fn judged(judgement: &Judgement<'_>, profile: Profile) -> MessageOutcome {
    let outcome = word(&judgement.outcome(profile));
    let gate = judgement.gate().filter(|_| outcome != "forward");
    let faulty = gate == Some(GateName::Framing);
    let leading = judgement.leading_call().filter(|_| outcome != "forward" && !faulty);
    let rule = leading.and_then(|call| call.decision.as_ref()?.rule.as_deref());
    let gate = gate.map(|gate| gate.as_str().to_owned());
    MessageOutcome { outcome, gate, rule: rule.map(str::to_owned) }
}

/// All decisions in the notes and in the judgement: method, name, word, gate and rule.
fn decisions(notes: &[Note<'_>], judgement: &Judgement<'_>) -> [Vec<String>; 2] {
    let line = |method: &str, name: &str, word: &str, gate: &str, rule: Option<&str>| {
        format!("{method} {name} {word} {gate} {}", rule.unwrap_or("-"))
    };
    let decided = |note: &&Note<'_>| {
        matches!(
            note.kind,
            NoteKind::Decision | NoteKind::ServerRequest | NoteKind::HoldOpened { .. }
        )
    };
    let noted = notes.iter().filter(decided).map(|note| {
        let (method, name) = (note.event.method.as_deref(), note.event.tool.as_deref());
        let gate = note.event.gate.map_or("-", |gate| gate.as_str());
        let (method, name) = (method.unwrap_or_default(), name.unwrap_or_default());
        line(method, name, note.decision().as_str(), gate, note.event.rule.as_deref())
    });
    let told = judgement.all_calls().filter_map(|call| {
        let decision = call.decision.as_ref()?;
        let (gate, rule) = (decision.gate.as_str(), decision.rule.as_deref());
        Some(line(&call.method, &call.name, decision.logged().as_str(), gate, rule))
    });
    let (mut noted, mut told): (Vec<_>, Vec<_>) = (noted.collect(), told.collect());
    noted.sort();
    told.sort();
    [noted, told]
}

/// The hub's answer, if it can be asked.
fn hub(policy: &Policy, profile: Profile, message: &TestMessage) -> Option<MessageOutcome> {
    let (message_type, method, params) = message.parts.clone()?;
    let request = GovernanceEvaluateRequest {
        server_id: "fs".to_owned(),
        direction: match message.from {
            Side::Client => StreamDirection::AgentToServer,
            Side::Server => StreamDirection::ServerToAgent,
        },
        method,
        id: None,
        params: crate::api::raw(params.as_bytes()),
        message_type,
        profile: crate::api::ApiProfile::Production,
        connection_id: None,
        request_id: None,
        principal: None,
        drift: None,
        held: false,
        approval_id: None,
        workflow: None,
        traceparent: None,
        tape_session_id: None,
        tape_seq: None,
        folder: None,
    };
    let principal = principal();
    let question = EvaluationQuery {
        policy: Some(policy),
        profile,
        wall_us: 0,
        principal: &principal,
        request: &request,
    };
    let forward = MessageOutcome { outcome: "forward", gate: None, rule: None };
    let strict = profile == Profile::Production;
    Some(match question.judge().answer {
        EvaluationAnswer::Faulty(_) if strict => {
            MessageOutcome { outcome: "deny", gate: Some("framing".to_owned()), rule: None }
        }
        EvaluationAnswer::Decided(decided)
            if decided.decision.outcome != DecisionOutcome::Forward =>
        {
            MessageOutcome {
                outcome: word(&decided.decision.outcome),
                gate: Some(decided.decision.gate.as_str().to_owned()),
                rule: decided.decision.rule.as_deref().map(str::to_owned),
            }
        }
        _ => forward,
    })
}

/// The result of `policy test`, if a test can express the message.
fn tested(policy: &Policy, profile: Profile, message: &TestMessage) -> Option<MessageOutcome> {
    if message.from != Side::Client || message.carrier != TransportKind::Lines {
        return None;
    }
    let expect = CaseExpectation {
        case_outcome: CaseOutcome::Forward,
        gate: None,
        rule: None,
        workflow: None,
        policy: None,
    };
    let case = TestCase {
        name: String::new(),
        spot: Spot::default(),
        server: "fs".to_owned(),
        input: CaseInput::Message(message.text.clone().into_bytes()),
        principal: principal(),
        wall_us: Some(0),
        profile,
        expect,
    };
    let ran = cases::run(&case, policy, 0);
    let told = judged(&ran.judgement, profile);
    assert_eq!(told.outcome, fate(ran.case_outcome));
    Some(told)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_gate_the_hub_explain_test_and_backtest_agree(
        policy in policy(),
        messages in proptest::collection::vec(message(), 4),
        profile in proptest::sample::select(&[Profile::Production, Profile::Development][..]),
    ) {
        for message in &messages {
            let (verdict, notes) = gate(&policy, profile, message);
            let by_gate = came(&verdict, &notes);

            let judge = PolicyJudge { policy: Some(&policy), profile, source: "fs", explains: true };
            let TestMessage { from, carrier, .. } = *message;
            let arrival = MessageArrival { from, carrier, session: 0, wall_us: 0 };
            let frame = Frame::read(message.text.as_bytes());
            let mut state = SessionState::new(principal());
            let judgement = judge.judge(&frame, arrival, &mut state);
            prop_assert_eq!(&judged(&judgement, profile), &by_gate, "explain: {:?}", message);
            if judgement.elements.is_empty() || by_gate.outcome == "forward" {
                let [noted, told] = decisions(&notes, &judgement);
                prop_assert_eq!(noted, told, "{:?}", message);
            }

            let active_policy = ActivePolicy { policy: Some(Arc::clone(&policy)), profile, ..ActivePolicy::default() };
            let terms = BacktestConfig { active_policy, settings: settings(message) };
            let bytes = message.text.as_bytes();
            let tape_message = TapeMessage { wall_us: 0, from, session: None, bytes, terminated: true };
            let heard = terms.trial().judge(&tape_message);
            prop_assert_eq!(fate(heard.case_outcome), by_gate.outcome, "backtest: {:?}", message);
            prop_assert_eq!(decisions(&heard.notes, &judgement)[0].clone(), decisions(&notes, &judgement)[0].clone());

            if let Some(by_test) = tested(&policy, profile, message) {
                prop_assert_eq!(&by_test, &by_gate, "test: {:?}", message);
            }
            if let Some(by_hub) = hub(&policy, profile, message) {
                prop_assert_eq!(&by_hub, &by_gate, "hub: {:?}", message);
            }
        }
    }
}
