//! A gate without approvers that logs nothing, for targets that try messages on it.

use std::sync::Arc;

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest};
use tapegate_policy::inspect::TransportKind;
use tapegate_policy::load::load;
use tapegate_policy::model::Policy;
use tapegate_policy::note::{Note, NoteSink};
use tapegate_policy::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_yaml::files::MemoryFiles;

struct NullEffects;

impl NoteSink for NullEffects {
    fn note(&mut self, _: &Note<'_>) {}
}

impl ApprovalChannel for NullEffects {
    fn request_approval(&mut self, _: HoldId, _: &ApprovalRequest<'_>) {}

    fn withdraw_request(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}
}

/// Loads a policy from its text.
pub fn policy(text: &str) -> Arc<Policy> {
    let loaded = load("p.yaml", &MemoryFiles::default().with_file("p.yaml", text));
    Arc::new(loaded.policy.expect("the policy loads"))
}

/// A new gate that enforces a policy.
pub fn policy_gate(policy: &Arc<Policy>, transport: TransportKind) -> PolicyGate {
    let effects = GateEffects {
        notes: Box::new(NullEffects),
        approval_channel: Box::new(NullEffects),
        holds: HoldRegister::default(),
        ids: IdGenerator::default(),
        clock: Box::new(|| 0),
    };
    let settings = GateSettings {
        source: "fs".to_owned(),
        client: transport,
        server: transport,
        ..GateSettings::default()
    };
    let policy = Some(Arc::clone(policy));
    let active_policy = ActivePolicy { policy, ..ActivePolicy::default() };
    PolicyGate::new(settings, effects, PolicyHandle::new(active_policy))
}

/// The gate's verdict on a message.
pub fn judge(gate: &mut PolicyGate, from: Side, bytes: &[u8]) -> Verdict {
    let frame = Frame::read(bytes);
    gate.judge(&GateInput {
        at: Timestamp::default(),
        n: 1,
        lane: Lane::ONLY,
        from,
        frame: &frame,
        terminated: true,
        topic: None,
        listed: None,
        approved: None,
    })
}
