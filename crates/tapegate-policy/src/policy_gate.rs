//! The gate of a live session: inspects, decides about and logs every message.
//!
//! A [`PolicyGate`] reads no clock, opens no file and asks no one itself: its effects go through
//! [`NoteSink`] and [`ApprovalChannel`]. Without a policy it only observes: it logs calls and malformed
//! messages, and everything passes byte for byte. The policy can be replaced at any time through
//! its [`PolicyHandle`]; a new one takes effect between two messages.

mod answered_calls;
mod calls;
mod form_notes;
mod gate_impl;
mod held_calls;
mod id_generator;
mod list_tracker;
mod orphan_notes;
mod policy_handle;
mod replies;
mod task_handle;

use std::borrow::Cow;
use std::fmt;

use tapegate_core::decision::LoggedDecision;
use tapegate_core::frame::{self, Envelope, Frame, MessageKind};
use tapegate_core::gate::{Gate, GateInput, Verdict};
use tapegate_core::json::JsonEdits;
use tapegate_core::side::Side;

use crate::approval_channel::ApprovalChannel;
use crate::decide::{DecisionOutcome, PolicyPrincipal};
use crate::hold_register::HoldRegister;
use crate::inspect::TransportKind;
use crate::judge::{Judgement, MessageArrival, PolicyJudge, SessionState};
use crate::model::Profile;
use crate::note::{Note, NoteSink};
use crate::refuse::RefusalSubject;
use crate::request_state::RequestStateKey;
use answered_calls::CarriedState;
use list_tracker::ListTracker;
use orphan_notes::OrphanCounts;

pub use id_generator::IdGenerator;
pub use policy_handle::{ActivePolicy, PolicyHandle};

/// Decides about every message of a session.
pub struct PolicyGate {
    settings: GateSettings,
    effects: GateEffects,
    policy_handle: PolicyHandle,
    active_policy: ActivePolicy,
    generation: u64,
    state: SessionState,
    lists: ListTracker,
    last_hold_id: u64,
    orphans: OrphanCounts,
    /// The answer that came with the call that is being judged.
    carried: Option<CarriedState>,
}

/// What the gate knows about its session.
#[derive(Debug, Clone, Default)]
pub struct GateSettings {
    /// The server's name in the policy.
    pub source: String,
    /// The caller, as far as it is known before the first call.
    pub principal: PolicyPrincipal,
    /// How the client's messages arrive.
    pub client: TransportKind,
    /// How the server's messages arrive.
    pub server: TransportKind,
    /// Whether the gate may ask the server for lists itself, to compare them with what is pinned.
    pub lists: bool,
    /// How long a response may take before its request is logged as an orphan; 0 for no limit.
    pub answer_timeout_ms: u64,
}

/// The side effects of the gate, and its sources of ids and time.
pub struct GateEffects {
    /// Receives the notes.
    pub notes: Box<dyn NoteSink>,
    /// Asks approvers.
    pub approval_channel: Box<dyn ApprovalChannel>,
    /// The calls that wait for approvers.
    pub holds: HoldRegister,
    /// Generates the ids by which a refusal is found in the log.
    pub ids: IdGenerator,
    /// Authenticates what clients carry between a question and its answer; without it, none do.
    pub states: Option<RequestStateKey>,
    /// A monotonic clock, in nanoseconds.
    pub clock: Box<dyn Fn() -> u64 + Send>,
}

/// A message whose judgement is being carried out.
struct GateContext<'a, 'c> {
    case: &'a GateInput<'c>,
    frame: &'a Frame<'a>,
    envelope: &'a Envelope<'a>,
    /// When judging began, if latency is measured.
    begun_ns: Option<u64>,
    /// Whether it is part of a batch, and so cannot wait.
    in_batch: bool,
}

impl PolicyGate {
    /// A gate that follows the policy of `policy_handle`.
    pub fn new(settings: GateSettings, effects: GateEffects, policy_handle: PolicyHandle) -> Self {
        let mut gate = Self {
            state: SessionState::new(settings.principal.clone()),
            settings,
            effects,
            active_policy: ActivePolicy::default(),
            generation: 0,
            policy_handle,
            lists: ListTracker::default(),
            last_hold_id: 0,
            orphans: OrphanCounts::default(),
            carried: None,
        };
        gate.refresh_policy();
        gate
    }

    /// Switches to the newest policy, if there is a newer one.
    fn refresh_policy(&mut self) {
        let Some((generation, active_policy)) = self.policy_handle.newer_than(self.generation)
        else {
            return;
        };
        self.generation = generation;
        // Definitions seen so far were compared with the old lock.
        if let Some(policy) = &active_policy.policy {
            self.state.watch.compare_with_lock(&policy.pins.lock, &self.settings.source);
        }
        // Lists that were compared with the old lock are requested again before the next call.
        self.lists.update_pins(active_policy.policy.as_deref(), &self.settings.source);
        self.active_policy = active_policy;
    }

    fn is_strict(&self) -> bool {
        self.active_policy.profile == Profile::Production
    }

    /// Judges a message, a batch included.
    fn judge_message<'m>(&mut self, case: &GateInput<'m>) -> Judgement<'m> {
        let judge = PolicyJudge {
            policy: self.active_policy.policy.as_deref(),
            profile: self.active_policy.profile,
            source: &self.settings.source,
            explains: false,
        };
        judge.judge(case.frame, self.settings.arrival(case), &mut self.state)
    }

    /// Carries out the judgement of one message.
    fn message(
        &mut self,
        case: &GateInput<'_>,
        frame: &Frame<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
        in_batch: bool,
    ) -> Verdict {
        // Applied before anomalies are logged, because their notes say whether the message was
        // sent.
        let verdict = self.apply_judgement(case, frame, judgement, begun_ns, in_batch);
        if !judgement.anomalies.is_empty() {
            let sent = matches!(verdict, Verdict::Forward | Verdict::Rewrite(_));
            self.note_malformed(
                case,
                frame,
                &judgement.anomalies,
                (LoggedDecision::Warn, sent),
                begun_ns,
            );
        }
        verdict
    }

    fn apply_judgement(
        &mut self,
        case: &GateInput<'_>,
        frame: &Frame<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
        in_batch: bool,
    ) -> Verdict {
        if let Some(&fault) = judgement.faults.first() {
            let refused = self.note_faults(case, frame, &judgement.faults, begun_ns);
            if self.is_strict() {
                return Verdict::Refuse(Box::new(refused.malformed_message(fault)));
            }
        }
        let Some(envelope) = frame.envelope() else { return Verdict::Forward };
        let now = GateContext { case, frame, envelope, begun_ns, in_batch };
        match self.apply_request(&now, judgement) {
            Verdict::Forward => self.apply_server_message(&now, judgement),
            stopped => stopped,
        }
    }

    /// Carries out the judgements of a batch: if one element is refused, all are.
    fn apply_batch(
        &mut self,
        case: &GateInput<'_>,
        judgement: &Judgement<'_>,
        begun_ns: Option<u64>,
    ) -> Verdict {
        // Known before the loop, so that the notes of elements before the refused one do not claim
        // that they were sent.
        let refused = self.is_strict() && judgement.strict_outcome() == DecisionOutcome::Deny;
        let (mut first_refusal, mut strays) = (None, None);
        let mut edits = JsonEdits::new(case.frame.bytes());
        let frames = frame::each_element(case.frame.bytes());
        for (frame, judgement) in frames.zip(&judgement.elements) {
            let (frame, quiet) = (&frame, judgement.without_form());
            if judgement.is_stray() {
                let is_first = first_refusal.is_none();
                strays.get_or_insert_with(|| (frame.clone(), judgement, is_first, 0)).3 += 1;
                // All strays share one log line. In a batch that is sent, each must still be
                // redacted.
                if refused {
                    continue;
                }
            }
            let judgement = quiet.as_ref().unwrap_or(judgement);
            if refused && judgement.strict_outcome() != DecisionOutcome::Deny {
                let reason = "it was not sent, because its batch was refused";
                // Answers and housekeeping in a refused batch have no log line, as when they pass.
                if !judgement.calls.is_empty() {
                    self.note_unsent(case.place(), frame, reason);
                }
                continue;
            }
            match self.message(case, frame, judgement, begun_ns, true) {
                Verdict::Forward => {}
                Verdict::Rewrite(text) => edits.replace(frame.bytes(), &text),
                Verdict::Refuse(refusal) => drop(first_refusal.get_or_insert(refusal)),
                // The judge denies calls in a batch that would have to wait, so none is ever held.
                Verdict::Hold(_) | Verdict::ListFirst(_) => {
                    let refusal = self.subject("method", "batch").cannot_be_held();
                    first_refusal.get_or_insert_with(|| Box::new(refusal));
                }
            }
        }
        if let Some((frame, judgement, is_first, count)) = strays {
            let sent = !refused && first_refusal.is_none();
            let subject = self.note_strays(case, &frame, judgement, (count, sent), begun_ns);
            // The answer is about the first element that is refused, as the judge has it.
            if let Some(&fault) = judgement.faults.first().filter(|_| refused && is_first) {
                first_refusal = Some(Box::new(subject.malformed_message(fault)));
            }
        }
        match (first_refusal, edits.finish()) {
            // To the relay a batch is one message: it is sent as a whole or not at all.
            (Some(refusal), _) => Verdict::Refuse(refusal),
            (None, Cow::Owned(text)) => Verdict::Rewrite(text),
            (None, Cow::Borrowed(_)) => Verdict::Forward,
        }
    }

    fn subject(&mut self, word: &'static str, name: &str) -> RefusalSubject {
        RefusalSubject {
            word,
            name: name.to_owned(),
            correlation_id: self.effects.ids.next().to_owned(),
        }
    }

    /// The microseconds since `begun_ns`, rounded up.
    fn latency_us(&self, begun_ns: Option<u64>) -> Option<u64> {
        begun_ns.map(|begun_ns| (self.effects.clock)().saturating_sub(begun_ns).div_ceil(1000))
    }
}

impl GateSettings {
    fn arrival(&self, case: &GateInput<'_>) -> MessageArrival {
        let carrier = match case.from {
            Side::Client => self.client,
            Side::Server => self.server,
        };
        let (session, wall_us) = (case.lane.session, case.at.wall_us);
        MessageArrival { from: case.from, carrier, session, wall_us }
    }
}

impl GateEffects {
    /// Adds the policy, the profile and, if it has none, a correlation id to a note, and logs it.
    fn note<'n>(&'n mut self, active_policy: &'n ActivePolicy, note: &mut Note<'n>) {
        let Self { notes, ids, holds, .. } = self;
        let hold_id = note.kind.hold_id();
        note.event.approval_id = hold_id.and_then(|id| holds.approval_id(id)).map(Cow::Owned);
        (note.event.kind, note.event.level) = (note.kind.event(), note.level());
        note.event.policy_version =
            active_policy.policy.as_ref().map(|policy| Cow::Borrowed(&*policy.version));
        note.event.profile = Some(active_policy.profile);
        note.event.request_id.get_or_insert_with(|| Cow::Borrowed(ids.next()));
        notes.note(note);
    }
}

impl GateContext<'_, '_> {
    /// An empty note about the message.
    fn note<'n>(&self) -> Note<'n> {
        let mut note = case_note(self.case);
        note.event.tape_seq = self.number(self.case.from == Side::Client);
        note
    }

    /// Its number on the tape. Refused messages of a server and elements of a batch have none.
    fn number(&self, kept: bool) -> Option<u64> {
        let says = matches!(self.envelope.kind(), MessageKind::Request | MessageKind::Notification);
        (kept && says && !self.in_batch).then_some(self.case.n)
    }
}

fn case_note<'n>(case: &GateInput<'_>) -> Note<'n> {
    Note::new(case.at, case.lane, case.from)
}

impl fmt::Debug for PolicyGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, effects, .. } = self;
        let holds = &effects.holds;
        f.debug_struct("PolicyGate").field("settings", settings).field("holds", holds).finish()
    }
}
