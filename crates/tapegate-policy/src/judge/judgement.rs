//! What a policy makes of a message.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use crate::decide::{Decision, GateName, Outcome};
use crate::filter::Shown;
use crate::gated::Offer;
use crate::inspect::Fault;
use crate::model::Profile;
use crate::pins::Drifted;

/// How bad it is to be denied; everything else ranks below.
const DENIED: u8 = 4;

/// What a policy makes of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Judgement<'m> {
    /// What is wrong with its form. Production looks no further.
    pub faults: Vec<Fault>,
    /// What is odd about its form and only logged. Without a policy nothing stops a message.
    pub anomalies: Vec<Fault>,
    /// What was decided about each thing that it asks for.
    pub calls: Calls<'m>,
    /// The lists in it, and what of them is hidden.
    pub lists: Vec<Shown>,
    /// The message without what is hidden, if anything is.
    pub filtered: Option<Vec<u8>>,
    /// Definitions in its lists that are not what was accepted, and were not known to differ.
    pub drifted: Vec<Drifted>,
    /// Of a batch, its elements in order.
    pub elements: Vec<Self>,
}

/// What a message asks for: nearly always one thing, so that one takes no room of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Calls<'m> {
    /// Nothing that anything was decided about.
    #[default]
    None,
    /// One thing.
    One(JudgedCall<'m>),
    /// Several things.
    Many(Vec<JudgedCall<'m>>),
}

impl Calls<'_> {
    /// These and others.
    pub(super) fn and(self, others: Self) -> Self {
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

/// Something that a message asks for, and what was decided about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedCall<'m> {
    /// The method, as rules name it.
    pub method: Cow<'m, str>,
    /// What is asked for, if it is something that a server offers.
    pub offer: Option<Offer>,
    /// The name of the tool or prompt, or the URI; empty for a method that has none.
    pub name: Cow<'m, str>,
    /// What was decided; nothing if there is no policy. Shared, since the same is decided time and again.
    pub decision: Option<Arc<Decision>>,
    /// Whether it is denied only because it needs an approval that its message cannot wait for.
    pub cannot_wait: bool,
}

impl<'m> Judgement<'m> {
    /// The same, without borrowing from the message.
    pub fn into_owned(self) -> Judgement<'static> {
        let elements = self.elements.into_iter().map(Judgement::into_owned);
        Judgement {
            calls: match self.calls {
                Calls::None => Calls::None,
                Calls::One(call) => Calls::One(call.into_owned()),
                Calls::Many(calls) => {
                    Calls::Many(calls.into_iter().map(JudgedCall::into_owned).collect())
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

    /// What production does with the message: the worst of everything in it.
    pub fn strict(&self) -> Outcome {
        let deciding = self.deciding();
        if !deciding.faults.is_empty() {
            return Outcome::Deny;
        }
        let decision = deciding.worst_call().and_then(|call| call.decision.as_ref());
        decision.map_or(Outcome::Forward, |decision| decision.strict.clone())
    }

    /// What is done with the message under a profile.
    pub fn outcome(&self, profile: Profile) -> Outcome {
        match profile {
            Profile::Production => self.strict(),
            Profile::Development => Outcome::Forward,
        }
    }

    /// The gate that has decided.
    pub fn gate(&self) -> Option<GateName> {
        let deciding = self.deciding();
        if !deciding.faults.is_empty() {
            return Some(GateName::Framing);
        }
        deciding.worst_call()?.decision.as_ref().map(|decision| decision.gate)
    }

    /// The call that the outcome of the message comes from: the first of the worst.
    pub fn leading(&self) -> Option<&JudgedCall<'m>> {
        self.deciding().worst_call()
    }

    /// The judgement that decides: of a batch, that of the first of its worst elements.
    fn deciding(&self) -> &Self {
        let mut worst = self;
        for element in &self.elements {
            if element.rank() > worst.rank() {
                worst = element;
            }
        }
        worst
    }

    /// The first of the worst calls, elements of a batch aside.
    fn worst_call(&self) -> Option<&JudgedCall<'m>> {
        let mut worst: Option<&JudgedCall<'m>> = None;
        for call in self.calls.iter() {
            if worst.is_none_or(|worst| call.rank() > worst.rank()) {
                worst = Some(call);
            }
        }
        worst
    }

    /// How bad the outcome is, elements of a batch aside.
    fn rank(&self) -> u8 {
        match self.faults.is_empty() {
            false => DENIED,
            true => self.worst_call().map_or(0, JudgedCall::rank),
        }
    }

    /// Whether it is about something that is not a message, as only an element of a batch may be.
    pub(crate) fn is_stray(&self) -> bool {
        let is_stray = |fault: &Fault| matches!(fault, Fault::NotAnObject | Fault::Shapeless);
        self.faults.iter().chain(&self.anomalies).any(is_stray)
    }

    /// The same without what is said about its form, if it is about something that is not a message.
    pub(crate) fn without_form(&self) -> Option<Self> {
        let form = (Vec::new(), Vec::new());
        let quiet = || Self { faults: form.0, anomalies: form.1, ..self.clone() };
        self.is_stray().then(quiet)
    }

    /// What is wrong with it, or with the elements of a batch.
    pub fn faults(&self) -> impl Iterator<Item = Fault> {
        let within = self.elements.iter().flat_map(|element| &element.faults);
        self.faults.iter().chain(within).copied()
    }

    /// What is odd about it, or about the elements of a batch, and only logged.
    pub fn anomalies(&self) -> impl Iterator<Item = Fault> {
        let within = self.elements.iter().flat_map(|element| &element.anomalies);
        self.anomalies.iter().chain(within).copied()
    }

    /// Everything that it asks for, also in the elements of a batch.
    pub fn all_calls(&self) -> impl Iterator<Item = &JudgedCall<'m>> {
        let within = self.elements.iter().flat_map(|element| element.calls.iter());
        self.calls.iter().chain(within)
    }

    /// Every list in it, also in the elements of a batch.
    pub fn all_lists(&self) -> impl Iterator<Item = &Shown> {
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

    /// How bad the decision is for the call.
    fn rank(&self) -> u8 {
        match self.decision.as_ref().map(|decision| &decision.strict) {
            None => 1,
            Some(Outcome::Forward) => 2,
            Some(Outcome::Hold { .. }) => 3,
            Some(Outcome::Deny) => DENIED,
        }
    }
}

impl<'m> Deref for Calls<'m> {
    type Target = [JudgedCall<'m>];

    fn deref(&self) -> &Self::Target {
        match self {
            Self::None => &[],
            Self::One(call) => std::slice::from_ref(call),
            Self::Many(calls) => calls,
        }
    }
}

impl<'m> From<Vec<JudgedCall<'m>>> for Calls<'m> {
    fn from(mut calls: Vec<JudgedCall<'m>>) -> Self {
        match calls.len() {
            0 => Self::None,
            1 => calls.pop().map_or(Self::None, Self::One),
            _ => Self::Many(calls),
        }
    }
}
