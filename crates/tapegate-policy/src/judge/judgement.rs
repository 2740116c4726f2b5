//! The judgement of a policy on a message.

use std::borrow::Cow;
use std::ops::Deref;

use crate::decide::{Decision, DecisionOutcome, GateName};
use crate::filter::FilteredList;
use crate::gated_requests::OfferKind;
use crate::inspect::MessageFault;
use crate::model::Profile;
use crate::pins::DriftedItem;

/// The rank of a denial, the highest of all.
const DENIED: u8 = 4;

/// The judgement of a policy on a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement<'m> {
    /// The faults of its form. Production stops at these.
    pub faults: Vec<MessageFault>,
    /// Anomalies of its form that are only logged. Without a policy, all faults are anomalies.
    pub anomalies: Vec<MessageFault>,
    /// The decisions about everything it asks for.
    pub calls: JudgedCalls<'m>,
    /// The lists in it, and which of their items are hidden.
    pub lists: Vec<FilteredList>,
    /// The message without the hidden items, if there are any.
    pub filtered: Option<Vec<u8>>,
    /// Newly found definitions in its lists that differ from the accepted ones.
    pub drifted: Vec<DriftedItem>,
    /// For a batch, its elements in order.
    pub elements: Vec<Self>,
}

/// The calls of a message: nearly always one, which needs no allocation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum JudgedCalls<'m> {
    /// No decision was needed.
    #[default]
    None,
    /// One call.
    One(JudgedCall<'m>),
    /// Several calls.
    Many(Vec<JudgedCall<'m>>),
}

impl JudgedCalls<'_> {
    /// These calls and others.
    pub(super) fn merge(self, others: Self) -> Self {
        let listed = |calls| match calls {
            Self::None => Vec::new(),
            Self::One(call) => vec![call],
            Self::Many(calls) => calls,
        };
        match (self, others) {
            (calls, Self::None) | (Self::None, calls) => calls,
            (calls, others) => {
                Self::Many(listed(calls).into_iter().chain(listed(others)).collect())
            }
        }
    }
}

/// Something that a message asks for, and the decision about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall<'m> {
    /// The method, as rules name it.
    pub method: Cow<'m, str>,
    /// The kind of item asked for, if the server offers such items.
    pub offer: Option<OfferKind>,
    /// The name of the tool or prompt, or the URI; empty for a method that has none.
    pub name: Cow<'m, str>,
    /// The decision; `None` without a policy.
    pub decision: Option<Box<Decision>>,
    /// Whether it is denied only because it needs approval and its message cannot wait.
    pub cannot_wait: bool,
}

impl<'m> Judgement<'m> {
    /// The same, without borrowing from the message.
    pub fn into_owned(self) -> Judgement<'static> {
        let elements = self.elements.into_iter().map(Judgement::into_owned);
        Judgement {
            calls: match self.calls {
                JudgedCalls::None => JudgedCalls::None,
                JudgedCalls::One(call) => JudgedCalls::One(call.into_owned()),
                JudgedCalls::Many(calls) => {
                    JudgedCalls::Many(calls.into_iter().map(JudgedCall::into_owned).collect())
                }
            },
            elements: elements.collect(),
            faults: self.faults,
            anomalies: self.anomalies,
            lists: self.lists,
            filtered: self.filtered,
            drifted: self.drifted,
        }
    }

    /// What production does with the message: the strictest outcome in it.
    pub fn strict_outcome(&self) -> DecisionOutcome {
        let deciding = self.decisive();
        if !deciding.faults.is_empty() {
            return DecisionOutcome::Deny;
        }
        let decision = deciding.worst_call().and_then(|call| call.decision.as_ref());
        decision.map_or(DecisionOutcome::Forward, |decision| decision.strict.clone())
    }

    /// What is done with the message under a profile.
    pub fn outcome(&self, profile: Profile) -> DecisionOutcome {
        match profile {
            Profile::Production => self.strict_outcome(),
            Profile::Development => DecisionOutcome::Forward,
        }
    }

    /// The gate that decided.
    pub fn gate(&self) -> Option<GateName> {
        let deciding = self.decisive();
        if !deciding.faults.is_empty() {
            return Some(GateName::Framing);
        }
        deciding.worst_call()?.decision.as_ref().map(|decision| decision.gate)
    }

    /// The call that determines the outcome: the first with the strictest decision.
    pub fn leading_call(&self) -> Option<&JudgedCall<'m>> {
        self.decisive().worst_call()
    }

    /// The judgement that determines the outcome: for a batch, the first of its strictest elements.
    fn decisive(&self) -> &Self {
        let mut worst = self;
        for element in &self.elements {
            // Strictly greater, so that the first of equals leads: the answer to the sender names
            // it.
            if element.rank() > worst.rank() {
                worst = element;
            }
        }
        worst
    }

    /// The first call with the strictest decision, not counting elements of a batch.
    fn worst_call(&self) -> Option<&JudgedCall<'m>> {
        let mut worst: Option<&JudgedCall<'m>> = None;
        for call in self.calls.iter() {
            if worst.is_none_or(|worst| call.rank() > worst.rank()) {
                worst = Some(call);
            }
        }
        worst
    }

    /// How strict the outcome is, not counting elements of a batch.
    fn rank(&self) -> u8 {
        match self.faults.is_empty() {
            // A fault ranks like a denial, whatever was decided about the calls.
            false => DENIED,
            true => self.worst_call().map_or(0, JudgedCall::rank),
        }
    }

    /// Whether this is an element of a batch that is not a message.
    pub(crate) fn is_stray(&self) -> bool {
        let is_stray = |fault: &MessageFault| {
            matches!(fault, MessageFault::NotAnObject | MessageFault::Shapeless)
        };
        self.faults.iter().chain(&self.anomalies).any(is_stray)
    }

    /// The same without faults and anomalies, if this is an element that is not a message.
    pub(crate) fn without_form(&self) -> Option<Self> {
        let form = (Vec::new(), Vec::new());
        let quiet = || Self { faults: form.0, anomalies: form.1, ..self.clone() };
        self.is_stray().then(quiet)
    }

    /// Its faults, including those of the elements of a batch.
    pub fn faults(&self) -> impl Iterator<Item = MessageFault> {
        let within = self.elements.iter().flat_map(|element| &element.faults);
        self.faults.iter().chain(within).copied()
    }

    /// Its anomalies, including those of the elements of a batch.
    pub fn anomalies(&self) -> impl Iterator<Item = MessageFault> {
        let within = self.elements.iter().flat_map(|element| &element.anomalies);
        self.anomalies.iter().chain(within).copied()
    }

    /// Its calls, including those of the elements of a batch.
    pub fn all_calls(&self) -> impl Iterator<Item = &JudgedCall<'m>> {
        let within = self.elements.iter().flat_map(|element| element.calls.iter());
        self.calls.iter().chain(within)
    }

    /// Its lists, including those of the elements of a batch.
    pub fn all_lists(&self) -> impl Iterator<Item = &FilteredList> {
        let within = self.elements.iter().flat_map(|element| &element.lists);
        self.lists.iter().chain(within)
    }
}

impl JudgedCall<'_> {
    fn into_owned(self) -> JudgedCall<'static> {
        let method = Cow::Owned(self.method.into_owned());
        let name = Cow::Owned(self.name.into_owned());
        let Self { offer, decision, cannot_wait, .. } = self;
        JudgedCall { method, offer, name, decision, cannot_wait }
    }

    /// How strict the decision is.
    fn rank(&self) -> u8 {
        match self.decision.as_ref().map(|decision| &decision.strict) {
            // Without a policy a call still leads the message, so that it is logged.
            None => 1,
            Some(DecisionOutcome::Forward) => 2,
            Some(DecisionOutcome::Hold { .. }) => 3,
            Some(DecisionOutcome::Deny) => DENIED,
        }
    }
}

impl<'m> Deref for JudgedCalls<'m> {
    type Target = [JudgedCall<'m>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(call) => std::slice::from_ref(call),
            Self::Many(calls) => calls,
        }
    }
}

impl<'m> From<Vec<JudgedCall<'m>>> for JudgedCalls<'m> {
    fn from(mut calls: Vec<JudgedCall<'m>>) -> Self {
        match calls.len() {
            0 => Self::None,
            1 => calls.pop().map_or(Self::None, Self::One),
            _ => Self::Many(calls),
        }
    }
}
