//! Runs the actions that precede an answer, or that follow entering a phase, one after another.
//!
//! A client with a session is asked by requests, and the actions wait for its replies. A
//! sessionless client is asked by a result that requires input: the operation is suspended until
//! the client retries with it.

use tapegate_core::actor::Act;
use tapegate_core::frame::{Envelope, same_id};

use super::kept::Kept;
use super::modern;
use super::request::Asked;
use super::source::{Pick, Source};
use super::suspend::Wanted;
use super::turn::{CODE_FAILED, CODE_INTERNAL, Turn};
use crate::model::{Action, LogLevel, OnCancel};

/// A list of actions being run.
pub(super) struct Play {
    pub(super) kept: Kept,
    /// Where the actions come from; `None` if a handler answers.
    source: Option<Source>,
    pick: Pick,
    /// The index of the next action.
    pub(super) step: usize,
    pub(super) wait: Wait,
}

/// What a running list of actions waits for.
pub(super) enum Wait {
    /// A point in time.
    Until(u64),
    /// A reply from the client, until a deadline.
    Reply {
        /// The id of the request sent to the client.
        id: Box<[u8]>,
        /// The name under which templates find the reply.
        name: String,
        until: u64,
    },
    /// A handler, until a deadline.
    Handler { ticket: u64, until: u64 },
}

impl Wait {
    /// The time at which the wait ends at the latest.
    pub(super) fn until(&self) -> Option<u64> {
        match self {
            Self::Until(until) | Self::Reply { until, .. } | Self::Handler { until, .. } => {
                Some(*until)
            }
        }
    }
}

/// The outcome of one action.
pub(super) enum Done {
    /// The next action may follow.
    Yes,
    /// It has to wait.
    Waits(Wait),
    /// The client must retry with this input.
    Suspends(Wanted),
    /// The request was refused.
    Refused,
}

impl Turn<'_, '_> {
    /// Starts the actions before an answer, or those on entering a phase.
    pub(super) fn begin_play(&mut self, asked: &Asked<'_>, source: Source, pick: Pick) {
        let mut kept = Kept::new(asked);
        if asked.modern {
            kept.take_responses(source.actions(pick));
        }
        let source = Some(source);
        self.perform(Play { kept, source, pick, step: 0, wait: Wait::Until(0) });
    }

    /// Waits for a handler to answer.
    pub(super) fn await_handler(&mut self, asked: &Asked<'_>, ticket: u64, until: u64) {
        let wait = Wait::Handler { ticket, until };
        let kept = Kept::new(asked);
        self.keep(Play { kept, source: None, pick: Pick::default(), step: 0, wait });
    }

    /// Whether another operation may wait; if not, the request is refused.
    pub(super) fn has_room(&mut self, asked: &Asked<'_>) -> bool {
        let room = self.visit.has_room(asked.params.len());
        if !room && !asked.id.is_empty() {
            self.error(asked, CODE_INTERNAL, "too many requests are under way", None);
        }
        room
    }

    fn keep(&mut self, play: Play) {
        if self.has_room(&play.kept.asked()) {
            self.visit.plays.push(play);
        }
    }

    /// Runs actions until one has to wait.
    pub(super) fn perform(&mut self, mut play: Play) {
        let source = play.source.clone();
        let actions = source.as_ref().map_or(&[][..], |source| source.actions(play.pick));
        while let Some(action) = actions.get(play.step) {
            let first = play.step;
            play.step += 1;
            match self.carry_out(action, &actions[play.step..], &play.kept) {
                Done::Yes => {}
                Done::Waits(wait) => {
                    play.wait = wait;
                    return self.keep(play);
                }
                Done::Suspends(wanted) => return self.suspend(play, first, wanted),
                Done::Refused => return,
            }
        }
        if let Some(reply) = source.as_ref().and_then(|source| source.reply(play.pick)) {
            self.conclude(&play.kept.asked(), reply);
        }
    }

    fn carry_out(&mut self, action: &Action, next: &[Action], kept: &Kept) -> Done {
        let asked = kept.asked();
        match action {
            Action::Notify { method, params } => {
                let params = params.as_ref().map(|params| self.fill(&asked, params));
                self.notify(&asked, method, params.as_deref());
            }
            Action::Ask { .. } if asked.modern => return self.want(action, next, &asked),
            Action::Ask { method, id, params, name, timeout_ns } => {
                let params = params.as_ref().map(|params| self.fill(&asked, params));
                let id = self.ask_client(&asked, method, id.as_deref(), params.as_deref());
                if !asked.id.is_empty() && !self.visit.has_left {
                    let name = name.as_ref().unwrap_or(method).clone();
                    let until = self.at.mono_ns.saturating_add(*timeout_ns);
                    return Done::Waits(Wait::Reply { id, name, until });
                }
            }
            Action::Progress(form) => {
                if let Some(token) = asked.token {
                    let form = self.fill(&asked, form);
                    let mut params = Vec::with_capacity(form.len() + token.len() + 24);
                    modern::write_member(&form, "progressToken", token, &mut params);
                    self.notify(&asked, "notifications/progress", Some(&params));
                }
            }
            Action::Message { level, params } => {
                if self.wants_to_hear(&asked, level) {
                    let params = self.fill(&asked, params);
                    self.notify(&asked, "notifications/message", Some(&params));
                }
            }
            Action::Log(template) => {
                let words = template.fill(&self.context(&asked));
                self.log(LogLevel::Info, &words);
            }
            Action::EndStream if self.visit.streams && !asked.modern && !asked.id.is_empty() => {
                (self.act)(Act::Part(asked.id));
            }
            Action::EndStream | Action::Wait(0) => {}
            Action::Wait(wait_ns) => {
                return Done::Waits(Wait::Until(self.at.mono_ns.saturating_add(*wait_ns)));
            }
        }
        Done::Yes
    }

    /// Handles a reply from the client.
    pub(super) fn replied(&mut self, said: &Envelope<'_>) {
        let Some(id) = said.id else { return };
        let waits =
            |play: &Play| matches!(&play.wait, Wait::Reply { id: asked, .. } if same_id(asked, id));
        let Some(place) = self.visit.plays.iter().position(waits) else {
            return self
                .log(LogLevel::Debug, "the client sent an answer that no request waits for");
        };
        let mut play = self.visit.plays.remove(place);
        let reply = match (said.result, said.error) {
            (Some(result), _) => result.to_vec(),
            (None, error) => [b"{\"error\":", error.unwrap_or(b"null"), b"}"].concat(),
        };
        if let Wait::Reply { name, .. } = &play.wait {
            play.kept.replies.push((name.clone(), reply));
        }
        self.perform(play);
    }

    /// Resumes operations whose wait is over.
    pub(super) fn play_on(&mut self) {
        let now = self.at.mono_ns;
        let is_over = |play: &mut Play| play.wait.until().is_some_and(|until| until <= now);
        let mut over: Vec<Play> = self.visit.plays.extract_if(.., is_over).collect();
        over.sort_by_key(|play| play.wait.until());
        over.into_iter().for_each(|play| self.wait_no_longer(play));
    }

    /// Resumes without replies, because the client has closed its side.
    pub(super) fn give_up_on_replies(&mut self) {
        let waits = |play: &mut Play| matches!(play.wait, Wait::Reply { .. });
        let over: Vec<Play> = self.visit.plays.extract_if(.., waits).collect();
        over.into_iter().for_each(|play| self.wait_no_longer(play));
    }

    fn wait_no_longer(&mut self, play: Play) {
        match &play.wait {
            Wait::Until(_) => self.perform(play),
            Wait::Reply { name, .. } => {
                self.log(LogLevel::Warn, &format!("the client did not answer `{name}` in time"));
                self.perform(play);
            }
            Wait::Handler { .. } => {
                let asked = play.kept.asked();
                self.error(&asked, CODE_FAILED, "the handler did not answer in time", None);
            }
        }
    }

    /// Handles the result of a handler.
    pub(super) fn handled(&mut self, done: u64, outcome: Result<&[u8], &str>) {
        let waits =
            |play: &Play| matches!(play.wait, Wait::Handler { ticket, .. } if ticket == done);
        if let Some(place) = self.visit.plays.iter().position(waits) {
            let play = self.visit.plays.remove(place);
            self.pass_on(&play.kept.asked(), outcome);
        }
    }

    /// Handles a cancellation by the client.
    pub(super) fn cancelled(&mut self, id: &[u8]) {
        self.visit.listens.retain(|listen| !same_id(&listen.id, id));
        let place = self.visit.plays.iter().position(|play| same_id(&play.kept.id, id));
        if let Some(held) = self.visit.forget(id) {
            held.batch.into_iter().for_each(|batch| self.gather(batch, &[]));
            return;
        }
        let Some(place) = place else {
            if !self.visit.is_stubborn(id) {
                self.visit.courier.cancel(id);
            }
            return;
        };
        let behavior = self.visit.plays[place].kept.behavior.as_ref();
        if behavior.is_none_or(|behavior| behavior.on_cancel == OnCancel::Stop) {
            let play = self.visit.plays.remove(place);
            self.silence(&play.kept.asked());
        }
    }
}
