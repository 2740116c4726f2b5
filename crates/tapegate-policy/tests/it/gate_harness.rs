//! A gate that records its notes and approval requests.

use std::sync::{Arc, Mutex};

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Approval, Gate, GateInput, HoldEnd, HoldId, Refusal, Topic, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest, UserAnswer};
use tapegate_policy::decide::PolicyPrincipal;
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::load::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::note::{Note, NoteSink};
use tapegate_policy::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_policy::request_state::RequestStateKey;
use tapegate_yaml::files::MemoryFiles;

/// The key of the states that clients carry.
pub(crate) const STATE_KEY: [u8; 32] = [7; 32];

/// A gate and everything it did.
pub(crate) struct GateHarness {
    pub(crate) gate: PolicyGate,
    pub(crate) policy_handle: PolicyHandle,
    pub(crate) memory: GateRecord,
}

/// What a gate did.
#[derive(Clone, Default)]
pub(crate) struct GateRecord {
    pub(crate) notes: Arc<Mutex<Vec<Note<'static>>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    pub(crate) failure: Option<String>,
}

impl NoteSink for GateRecord {
    fn note(&mut self, note: &Note<'_>) {
        self.notes.lock().unwrap().push(note.clone().into_owned());
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl ApprovalChannel for GateRecord {
    fn request_approval(&mut self, ticket: HoldId, asking: &ApprovalRequest<'_>) {
        let ApprovalRequest { subject, workflow_name, reason, principal, .. } = asking;
        let client = principal.client.as_deref().unwrap_or("nobody");
        let line = format!(
            "ask {} {} {} by {workflow_name} for {client}: {reason}",
            ticket.0, subject.word, subject.name
        );
        let mut asked = self.asked.lock().unwrap();
        asked.push(line);
        if let Some(mode) = asking.ask {
            asked.push(format!("the user may be asked by a {mode:?} about {}", asking.call_hash()));
        }
        if let Some(answer) = &asking.answer {
            asked.push(format!("{answer:?}"));
        }
    }

    fn answer_request(&mut self, _: Timestamp, ticket: HoldId, answer: &UserAnswer) {
        let line = format!("{} answered {} {:?}", answer.by(), ticket.0, answer.choice);
        self.asked.lock().unwrap().push(line);
    }

    fn withdraw_request(&mut self, _: Timestamp, ticket: HoldId, how: HoldEnd) {
        self.asked.lock().unwrap().push(format!("withdraw {} {how:?}", ticket.0));
    }
}

/// The policy in a text, with other files beside it.
#[track_caller]
pub(crate) fn policy_with(text: &str, files: &[(&str, &str)]) -> Policy {
    let mut held = MemoryFiles::default().with_file("tapegate.yaml", text);
    for (path, content) in files {
        held = held.with_file(path, *content);
    }
    let loaded = load("tapegate.yaml", &held);
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.findings))
}

/// The policy in a text.
#[track_caller]
pub(crate) fn policy(text: &str) -> Policy {
    policy_with(text, &[])
}

impl GateHarness {
    pub(crate) fn new(policy: Option<Policy>, profile: Profile) -> Self {
        Self::over(TransportKind::Lines, policy, profile)
    }

    pub(crate) fn over(carrier: TransportKind, policy: Option<Policy>, profile: Profile) -> Self {
        Self::with(GateRecord::default(), carrier, policy, profile)
    }

    pub(crate) fn with(
        memory: GateRecord,
        carrier: TransportKind,
        policy: Option<Policy>,
        profile: Profile,
    ) -> Self {
        Self::sharing(memory, carrier, policy.map(Arc::new), profile)
    }

    /// The same with a shared policy.
    pub(crate) fn sharing(
        memory: GateRecord,
        carrier: TransportKind,
        policy: Option<Arc<Policy>>,
        profile: Profile,
    ) -> Self {
        Self::set_up(memory, carrier, policy, profile, false)
    }

    /// A gate that requests lists from the server itself.
    pub(crate) fn listing(carrier: TransportKind, policy: Policy, profile: Profile) -> Self {
        Self::set_up(GateRecord::default(), carrier, Some(Arc::new(policy)), profile, true)
    }

    fn set_up(
        memory: GateRecord,
        carrier: TransportKind,
        policy: Option<Arc<Policy>>,
        profile: Profile,
        lists: bool,
    ) -> Self {
        let active_policy = ActivePolicy { policy, profile, ..ActivePolicy::default() };
        let policy_handle = PolicyHandle::new(active_policy);
        let effects = GateEffects {
            notes: Box::new(memory.clone()),
            approval_channel: Box::new(memory.clone()),
            holds: HoldRegister::default(),
            ids: IdGenerator::new("c"),
            states: Some(RequestStateKey::new(STATE_KEY)),
            clock: Box::new(|| 0),
        };
        let settings = GateSettings {
            source: "fs".to_owned(),
            principal: PolicyPrincipal { name: "ann".to_owned(), ..PolicyPrincipal::default() },
            client: carrier,
            server: carrier,
            lists,
            answer_timeout_ms: 0,
        };
        let gate = PolicyGate::new(settings, effects, policy_handle.clone());
        Self { gate, policy_handle, memory }
    }

    pub(crate) fn judge(&mut self, from: Side, topic: Option<Topic>, bytes: &[u8]) -> Verdict {
        self.judge_approved(from, topic, bytes, None)
    }

    pub(crate) fn judge_approved(
        &mut self,
        from: Side,
        topic: Option<Topic>,
        bytes: &[u8],
        approved: Option<&Approval>,
    ) -> Verdict {
        let frame = Frame::read(bytes);
        let (at, lane) = (Timestamp::default(), Lane::ONLY);
        self.gate.judge(&GateInput {
            n: 1,
            at,
            lane,
            from,
            frame: &frame,
            terminated: true,
            topic,
            approved,
            listed: None,
        })
    }

    /// Judges a message from the client.
    pub(crate) fn client(&mut self, text: &str) -> Verdict {
        self.judge(Side::Client, None, text.as_bytes())
    }

    /// Judges a message from the server.
    pub(crate) fn server(&mut self, text: &str) -> Verdict {
        self.judge(Side::Server, None, text.as_bytes())
    }

    /// The notes since the last call, one text each: kind, decision and name.
    pub(crate) fn noted(&mut self) -> Vec<String> {
        let mut notes = self.memory.notes.lock().unwrap();
        let show = |note: Note| {
            let decision = note.decision().as_str();
            let name = note.event.tool.or(note.event.method).unwrap_or_default();
            format!("{} {decision} {name}", note.event.kind.as_str())
        };
        notes.drain(..).map(show).collect()
    }

    /// The approval requests since the last call.
    pub(crate) fn people(&mut self) -> Vec<String> {
        self.memory.asked.lock().unwrap().drain(..).collect()
    }
}

/// The refusal of a message.
#[track_caller]
pub(crate) fn refused(verdict: Verdict) -> Refusal {
    match verdict {
        Verdict::Refuse(refusal) => *refusal,
        other => panic!("{other:?}"),
    }
}

/// A verdict in one word, and the code of a refusal.
pub(crate) fn shown(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Forward => "forward".to_owned(),
        Verdict::Rewrite(text) => format!("rewrite {}", String::from_utf8_lossy(text)),
        Verdict::Refuse(refusal) => format!("refuse {}", refusal.code),
        Verdict::Hold(hold) => format!("hold {}", hold.hold_id.0),
        Verdict::ListFirst(first) => format!("list first {}", first.hold_id.0),
    }
}

/// A request.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// A call of a tool.
pub(crate) fn call(tool: &str) -> String {
    request("tools/call", &format!(r#"{{"name":"{tool}","arguments":{{}}}}"#))
}
