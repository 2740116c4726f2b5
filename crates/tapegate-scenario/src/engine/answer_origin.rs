//! Selecting a response's answer, and keeping it while its actions run.

use std::rc::Rc;

use super::phase_progress::PhaseProgress;
use super::prepared_scenario::PreparedScenario;
use crate::model::{
    AnswerSource, ItemResponse, ResponseHandler, ScenarioAction, ScenarioItem, ScenarioReply,
};
use crate::template::TemplateContext;

/// Where an answer comes from. It keeps the old scenario alive across a reload.
#[derive(Clone)]
pub(super) enum AnswerOrigin {
    Item(Rc<ScenarioItem>),
    /// A response to a method.
    Method(Rc<PreparedScenario>, usize),
    /// The entry actions of a phase.
    Phase(Rc<PreparedScenario>, usize),
}

/// Which answer of a response was selected.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplyChoice {
    branch: Option<usize>,
    position: usize,
}

/// The answer a response gives to a request.
pub(super) enum ReplyLookup<'a> {
    /// None was configured.
    Empty,
    Reply(&'a ScenarioReply, ReplyChoice),
    /// The sequence has no more answers.
    Exhausted,
    /// The answer of a handler.
    Handler(&'a Rc<ResponseHandler>),
}

impl AnswerOrigin {
    fn response(&self) -> Option<&ItemResponse> {
        match self {
            Self::Item(item) => Some(&item.response),
            Self::Method(script, index) => Some(&script.scenario.methods.get(*index)?.1),
            Self::Phase(..) => None,
        }
    }

    /// The reply that was selected.
    pub(super) fn reply(&self, pick: ReplyChoice) -> Option<&ScenarioReply> {
        let response = self.response()?;
        match answer(response, pick.branch)? {
            AnswerSource::Reply(reply) => Some(reply),
            AnswerSource::Sequence(sequence) => sequence.replies.get(pick.position),
            AnswerSource::Empty | AnswerSource::Handler(_) => None,
        }
    }

    /// The actions before the answer, or on entering the phase.
    pub(super) fn actions(&self, pick: ReplyChoice) -> &[ScenarioAction] {
        match self {
            Self::Phase(script, index) => {
                script.scenario.phases.get(*index).map_or(&[], |phase| &phase.on_enter)
            }
            _ => self.reply(pick).map_or(&[], |reply| &reply.before),
        }
    }
}

fn answer(response: &ItemResponse, branch: Option<usize>) -> Option<&AnswerSource> {
    match branch {
        Some(branch) => response.branches.get(branch).map(|branch| &branch.answer),
        None => Some(&response.otherwise),
    }
}

/// Selects the answer to a request: the first matching branch, and the next one of a sequence.
pub(super) fn pick<'a>(
    response: &'a ItemResponse,
    context: &TemplateContext<'_>,
    progress: &mut PhaseProgress,
) -> ReplyLookup<'a> {
    let fits = |when: &Option<crate::request_matcher::RequestMatcher>| {
        when.as_ref().is_none_or(|when| when.matches(context))
    };
    let branch = response.branches.iter().position(|branch| fits(&branch.when));
    match answer(response, branch) {
        None | Some(AnswerSource::Empty) => ReplyLookup::Empty,
        Some(AnswerSource::Reply(reply)) => {
            ReplyLookup::Reply(reply, ReplyChoice { branch, position: 0 })
        }
        Some(AnswerSource::Handler(handler)) => ReplyLookup::Handler(handler),
        Some(AnswerSource::Sequence(sequence)) => {
            let place = progress.next_index(sequence);
            match place.and_then(|position| Some((position, sequence.replies.get(position)?))) {
                Some((position, reply)) => {
                    ReplyLookup::Reply(reply, ReplyChoice { branch, position })
                }
                None => ReplyLookup::Exhausted,
            }
        }
    }
}
