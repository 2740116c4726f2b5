//! A gate that records its notes and approval requests.

use std::sync::{Arc, Mutex};

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Approval, Case, Gate, HoldEnd, Refusal, Ticket, Topic, Verdict};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::At;
use tapegate_policy::decide::Principal;
use tapegate_policy::inspect::Carrier;
use tapegate_policy::load::load;
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::note::{Note, Notes};
use tapegate_policy::people::{Asking, People};
use tapegate_policy::warden::{Hands, Ids, Regime, Reins, Settings, Warden};
use tapegate_yaml::files::Held;

/// A gate and everything it did.
pub(crate) struct Rig {
    pub(crate) warden: Warden,
    pub(crate) reins: Reins,
    pub(crate) memory: Memory,
}

/// What a gate did.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) notes: Arc<Mutex<Vec<Note<'static>>>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
    pub(crate) trouble: Option<String>,
}

impl Notes for Memory {
    fn note(&mut self, note: &Note<'_>) {
        self.notes.lock().unwrap().push(note.clone().into_owned());
    }

    fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }
}

impl People for Memory {
    fn ask(&mut self, ticket: Ticket, asking: &Asking<'_>) {
        let Asking { subject, workflow_name, reason, principal, .. } = asking;
        let client = principal.client.as_deref().unwrap_or("nobody");
        let line = format!(
            "ask {} {} {} by {workflow_name} for {client}: {reason}",
            ticket.0, subject.word, subject.name
        );
        self.asked.lock().unwrap().push(line);
    }

    fn withdraw(&mut self, _: At, ticket: Ticket, how: HoldEnd) {
        self.asked.lock().unwrap().push(format!("withdraw {} {how:?}", ticket.0));
    }
}

/// The policy in a text, with other files beside it.
#[track_caller]
pub(crate) fn policy_with(text: &str, files: &[(&str, &str)]) -> Policy {
    let mut held = Held::default().with("tapegate.yaml", text);
    for (path, content) in files {
        held = held.with(path, *content);
    }
    let loaded = load("tapegate.yaml", &held);
    loaded.policy.unwrap_or_else(|| panic!("{:#?}", loaded.findings))
}

/// The policy in a text.
#[track_caller]
pub(crate) fn policy(text: &str) -> Policy {
    policy_with(text, &[])
}

impl Rig {
    pub(crate) fn new(policy: Option<Policy>, profile: Profile) -> Self {
        Self::over(Carrier::Lines, policy, profile)
    }

    pub(crate) fn over(carrier: Carrier, policy: Option<Policy>, profile: Profile) -> Self {
        Self::with(Memory::default(), carrier, policy, profile)
    }

    pub(crate) fn with(
        memory: Memory,
        carrier: Carrier,
        policy: Option<Policy>,
        profile: Profile,
    ) -> Self {
        Self::sharing(memory, carrier, policy.map(Arc::new), profile)
    }

    /// The same with a shared policy.
    pub(crate) fn sharing(
        memory: Memory,
        carrier: Carrier,
        policy: Option<Arc<Policy>>,
        profile: Profile,
    ) -> Self {
        Self::set_up(memory, carrier, policy, profile, false)
    }

    /// A gate that requests lists from the server itself.
    pub(crate) fn listing(carrier: Carrier, policy: Policy, profile: Profile) -> Self {
        Self::set_up(Memory::default(), carrier, Some(Arc::new(policy)), profile, true)
    }

    fn set_up(
        memory: Memory,
        carrier: Carrier,
        policy: Option<Arc<Policy>>,
        profile: Profile,
        lists: bool,
    ) -> Self {
        let regime = Regime { policy, profile, ..Regime::default() };
        let reins = Reins::new(regime);
        let hands = Hands {
            notes: Box::new(memory.clone()),
            people: Box::new(memory.clone()),
            ids: Ids::new("c"),
            clock: Box::new(|| 0),
        };
        let settings = Settings {
            source: "fs".to_owned(),
            principal: Principal { name: "ann".to_owned(), ..Principal::default() },
            client: carrier,
            server: carrier,
            lists,
            answer_timeout_ms: 0,
        };
        let warden = Warden::new(settings, hands, reins.clone());
        Self { warden, reins, memory }
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
        let (at, lane) = (At::default(), Lane::ONLY);
        self.warden.judge(&Case {
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
            let name = note.name.or(note.method).unwrap_or_default();
            format!("{} {} {name}", note.kind.name(), note.decision.word())
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
        Verdict::Hold(hold) => format!("hold {}", hold.ticket.0),
        Verdict::ListFirst(first) => format!("list first {}", first.ticket.0),
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
