//! Selecting a response's answer, and keeping it while its actions run.

use std::rc::Rc;

use super::progress::Progress;
use super::script::Script;
use crate::form::Context;
use crate::model::{Action, Answer, Handler, Item, Reply, Response};

/// Where an answer comes from. It keeps the old scenario alive across a reload.
#[derive(Clone)]
pub(super) enum Source {
    /// An item.
    Item(Rc<Item>),
    /// A response to a method.
    Method(Rc<Script>, usize),
    /// The entry actions of a phase.
    Phase(Rc<Script>, usize),
}

/// Which answer of a response was selected.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pick {
    branch: Option<usize>,
    place: usize,
}

/// The answer a response gives to a request.
pub(super) enum Picked<'a> {
    /// None was configured.
    Empty,
    /// A reply.
    Reply(&'a Reply, Pick),
    /// The sequence has no more answers.
    Exhausted,
    /// The answer of a handler.
    Handler(&'a Rc<Handler>),
}

impl Source {
    fn response(&self) -> Option<&Response> {
        match self {
            Self::Item(item) => Some(&item.response),
            Self::Method(script, index) => Some(&script.scenario.methods.get(*index)?.1),
            Self::Phase(..) => None,
        }
    }

    /// The reply that was selected.
    pub(super) fn reply(&self, pick: Pick) -> Option<&Reply> {
        let response = self.response()?;
        match answer(response, pick.branch)? {
            Answer::Reply(reply) => Some(reply),
            Answer::Sequence(sequence) => sequence.replies.get(pick.place),
            Answer::Empty | Answer::Handler(_) => None,
        }
    }

    /// The actions before the answer, or on entering the phase.
    pub(super) fn actions(&self, pick: Pick) -> &[Action] {
        match self {
            Self::Phase(script, index) => {
                script.scenario.phases.get(*index).map_or(&[], |phase| &phase.on_enter)
            }
            _ => self.reply(pick).map_or(&[], |reply| &reply.before),
        }
    }
}

fn answer(response: &Response, branch: Option<usize>) -> Option<&Answer> {
    match branch {
        Some(branch) => response.branches.get(branch).map(|branch| &branch.answer),
        None => Some(&response.otherwise),
    }
}

/// Selects the answer to a request: the first matching branch, and the next one of a sequence.
pub(super) fn pick<'a>(
    response: &'a Response,
    context: &Context<'_>,
    progress: &mut Progress,
) -> Picked<'a> {
    let fits =
        |when: &Option<crate::when::When>| when.as_ref().is_none_or(|when| when.fits(context));
    let branch = response.branches.iter().position(|branch| fits(&branch.when));
    match answer(response, branch) {
        None | Some(Answer::Empty) => Picked::Empty,
        Some(Answer::Reply(reply)) => Picked::Reply(reply, Pick { branch, place: 0 }),
        Some(Answer::Handler(handler)) => Picked::Handler(handler),
        Some(Answer::Sequence(sequence)) => {
            let place = progress.next_place(sequence);
            match place.and_then(|place| Some((place, sequence.replies.get(place)?))) {
                Some((place, reply)) => Picked::Reply(reply, Pick { branch, place }),
                None => Picked::Exhausted,
            }
        }
    }
}
