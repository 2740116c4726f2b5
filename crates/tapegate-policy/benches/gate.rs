//! What a decision and a judgement cost without any I/O.
//!
//! `cargo bench -p tapegate-policy --bench gate` prints nanoseconds, the best of many rounds,
//! because the machines this runs on are shared. For comparisons between builds, not for promises.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
#![expect(clippy::unwrap_used, reason = "a bench that cannot go on panics")]

use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, GateInput, HoldEnd, HoldId, Topic};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;
use tapegate_policy::approval_channel::{ApprovalChannel, ApprovalRequest};
use tapegate_policy::decide::{CallFacts, PolicyCall, PolicyPrincipal, decide};
use tapegate_policy::hold_register::HoldRegister;
use tapegate_policy::inspect::{TransportKind, inspect};
use tapegate_policy::load::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::note::{Note, NoteSink};
use tapegate_policy::policy_gate::{
    ActivePolicy, GateEffects, GateSettings, IdGenerator, PolicyGate, PolicyHandle,
};
use tapegate_yaml::files::MemoryFiles;

const CALL: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello there"}}}"#;
const ANSWER: &str =
    r#"{"jsonrpc":"2.0","id":12345,"result":{"content":[{"type":"text","text":"hello there"}]}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":12345,"method":"ping"}"#;

const HEAD: &str = "schema: 1
sources: [{id: fs, kind: mcp, expose: {mode: blocklist, tools: ['hidden*']}}]
cedar: {inline: 'permit(principal, action, resource);'}
governance:
  defaults: {action: deny}
  rules:
";

/// Logs nothing and asks no approver.
struct NullEffects;

impl NoteSink for NullEffects {
    fn note(&mut self, note: &Note<'_>) {
        black_box(note);
    }
}

impl ApprovalChannel for NullEffects {
    fn request_approval(&mut self, _: HoldId, _: &ApprovalRequest<'_>) {}

    fn withdraw_request(&mut self, _: Timestamp, _: HoldId, _: HoldEnd) {}
}

fn policy(rules: usize, act: &str) -> Policy {
    let mut text = HEAD.to_owned();
    for number in 0..rules {
        writeln!(text, "    - {{match: 'tool_{number}_*', action: deny}}").unwrap();
    }
    writeln!(text, "    - {{match: 'ec*', {act}}}").unwrap();
    let loaded = load("p.yaml", &MemoryFiles::default().with_file("p.yaml", text));
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.findings))
}

fn main() {
    let principal = PolicyPrincipal { name: "ann".to_owned(), ..PolicyPrincipal::default() };
    for (name, rules, act) in [
        ("forward, 1st rule", 0, "action: forward"),
        ("forward, 20th rule", 19, "action: forward"),
        ("forward, 500th rule", 499, "action: forward"),
        ("forward, by an argument", 0, "action: forward, arguments: {text: 'hello*'}"),
        ("cedar permits", 0, "action: policy, policy_id: p"),
    ] {
        let policy = policy(rules, act);
        let call = PolicyCall {
            source: "fs",
            method: "tools/call",
            name: "echo",
            arguments: Some(br#"{"text":"hello there"}"#),
        };
        let facts = CallFacts { wall_us: 0, principal: Some(&principal), drift: None };
        measure(&format!("decide {name}"), || {
            black_box(decide(black_box(&policy), Profile::Production, black_box(&call), &facts));
        });
    }
    let text = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"text":"{}"}}}}"#,
        "lorem ipsum ".repeat(800)
    );
    let big = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{}"}}}}}}"#,
        "lorem ipsum ".repeat(87_000)
    );
    let items: Vec<String> = (0..50)
        .map(|n| format!(r#"{{"name":"tool_{n}","description":"Does {n}.","inputSchema":{{"type":"object"}}}}"#))
        .collect();
    let list = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{}]}}}}"#, items.join(","));
    let policy = Arc::new(policy(0, "action: forward"));
    for (name, from, message) in [
        ("ping", Side::Client, PING),
        ("call", Side::Client, CALL),
        ("call of 1 MB", Side::Client, big.as_str()),
        ("answer", Side::Server, ANSWER),
        ("answer of 9.6 KB", Side::Server, text.as_str()),
        ("list of 50 tools", Side::Server, list.as_str()),
    ] {
        let frame = Frame::read(message.as_bytes());
        measure(&format!("scan {name}"), || {
            black_box(Frame::read(black_box(message.as_bytes())));
        });
        measure(&format!("inspect {name}"), || {
            black_box(inspect(black_box(&frame), from, TransportKind::Lines));
        });
        let mut gate = gate(&policy);
        let (at, lane, topic) = (Timestamp::default(), Lane::ONLY, Some(Topic::Call));
        let case = GateInput {
            n: 1,
            at,
            lane,
            from,
            frame: &frame,
            terminated: true,
            topic,
            approved: None,
            listed: None,
        };
        measure(&format!("judge {name}"), || {
            black_box(gate.judge(black_box(&case)));
        });
    }
}

fn gate(policy: &Arc<Policy>) -> PolicyGate {
    let policy = Some(Arc::clone(policy));
    let policy_handle = PolicyHandle::new(ActivePolicy { policy, ..ActivePolicy::default() });
    let hands = GateEffects {
        notes: Box::new(NullEffects),
        approval_channel: Box::new(NullEffects),
        holds: HoldRegister::default(),
        ids: IdGenerator::new("0123456789abcdef"),
        states: None,
        clock: Box::new(|| 0),
    };
    PolicyGate::new(
        GateSettings { source: "fs".to_owned(), ..GateSettings::default() },
        hands,
        policy_handle,
    )
}

/// Prints what a call of `work` costs: the best of many rounds.
fn measure(name: &str, mut work: impl FnMut()) {
    let mut best = f64::MAX;
    for _ in 0..40 {
        let begun = Instant::now();
        let mut count = 0;
        while begun.elapsed().as_micros() < 2000 {
            work();
            count += 1;
        }
        best = best.min(begun.elapsed().as_nanos() as f64 / f64::from(count));
    }
    println!("{name:<32} {best:>12.0} ns");
}
