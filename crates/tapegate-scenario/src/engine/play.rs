//! What is done before an answer is given, or on entering a phase, one action after the other.
//!
//! A client with a session is asked by requests, whose answers are waited for. One without is asked by
//! a result that wants more input: the operation is suspended until the client comes back with it.

use std::rc::Rc;

use tapegate_core::frame::{Envelope, same_id};
use tapegate_core::json;

use super::Note;
use super::modern;
use super::request::{Asked, log_level};
use super::source::{Pick, Source};
use super::turn::{CODE_FAILED, CODE_INTERNAL, CODE_PARAMS, Turn};
use super::visit::{PLAYS_MAX, SUSPENDED_MAX};
use crate::form::{Form, Named};
use crate::model::{Action, Behavior, Item, LogLevel, OnCancel};

/// Something under way.
pub(super) struct Play {
    kept: Kept,
    /// What is done; nothing, if somebody else answers.
    source: Option<Source>,
    pick: Pick,
    /// The next action.
    step: usize,
    pub(super) wait: Wait,
}

/// What something under way waits for.
pub(super) enum Wait {
    /// A moment.
    Until(u64),
    /// An answer of the client, but not for ever.
    Reply {
        /// The id of what it was asked.
        id: Box<[u8]>,
        /// The name that its answer goes by.
        name: String,
        until: u64,
    },
    /// A program or another server, but not for ever.
    Handler { ticket: u64, until: u64 },
}

/// An operation that waits for its client to come back.
pub(super) struct Suspended {
    state: String,
    /// What the client was asked for.
    names: Vec<String>,
    /// Where it was asked.
    step: usize,
    play: Play,
}

/// A request that outlives its line.
struct Kept {
    id: Box<[u8]>,
    method: Box<str>,
    params: Box<[u8]>,
    modern: bool,
    token: Option<Box<[u8]>>,
    batch: Option<u32>,
    ticket: u64,
    phase: usize,
    item: Option<Rc<Item>>,
    called: Option<Box<str>>,
    uri: Vec<Named<String>>,
    call_count: u64,
    replies: Vec<Named<Vec<u8>>>,
    behavior: Option<Rc<Behavior>>,
}

impl Wait {
    /// When it is over at the latest.
    pub(super) fn until(&self) -> Option<u64> {
        match self {
            Self::Until(until) | Self::Reply { until, .. } | Self::Handler { until, .. } => {
                Some(*until)
            }
        }
    }
}

impl Kept {
    fn new(asked: &Asked<'_>) -> Self {
        Self {
            id: asked.id.into(),
            method: asked.method.into(),
            params: asked.params.into(),
            modern: asked.modern,
            token: asked.token.map(Into::into),
            batch: asked.batch,
            ticket: asked.ticket,
            phase: asked.phase,
            item: asked.item.cloned(),
            called: asked.called.map(Into::into),
            uri: asked.uri.to_vec(),
            call_count: asked.call_count,
            replies: asked.replies.to_vec(),
            behavior: asked.behavior.cloned(),
        }
    }

    fn asked(&self) -> Asked<'_> {
        Asked {
            id: &self.id,
            method: &self.method,
            params: &self.params,
            modern: self.modern,
            token: self.token.as_deref(),
            batch: self.batch,
            ticket: self.ticket,
            phase: self.phase,
            item: self.item.as_ref(),
            called: self.called.as_deref(),
            uri: &self.uri,
            call_count: self.call_count,
            replies: &self.replies,
            behavior: self.behavior.as_ref(),
        }
    }
}

/// What came of an action.
enum Done {
    /// The next one may follow.
    Yes,
    /// It waits.
    Waits(Wait),
    /// The client must come back with these.
    Suspends(Vec<String>),
}

impl Turn<'_, '_> {
    /// Begins what is done before an answer, or on entering a phase.
    pub(super) fn begin_play(&mut self, asked: &Asked<'_>, source: Source, pick: Pick) {
        let source = Some(source);
        let kept = Kept::new(asked);
        self.perform(Play { kept, source, pick, step: 0, wait: Wait::Until(0) });
    }

    /// Has somebody else answer.
    pub(super) fn await_handler(&mut self, asked: &Asked<'_>, ticket: u64, until: u64) {
        let wait = Wait::Handler { ticket, until };
        let kept = Kept::new(asked);
        self.keep(Play { kept, source: None, pick: Pick::default(), step: 0, wait });
    }

    /// Whether there is room for something that waits; if not, the request is refused.
    pub(super) fn has_room(&mut self, asked: &Asked<'_>) -> bool {
        let room = self.visit.plays.len() < PLAYS_MAX;
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

    /// Does one action after the other until one has to wait.
    fn perform(&mut self, mut play: Play) {
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
                Done::Suspends(names) => return self.suspend(play, first, names),
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
                    let mut params = b"{\"progressToken\":".to_vec();
                    params.extend_from_slice(token);
                    params.push(b',');
                    params.extend_from_slice(self.fill(&asked, form).get(1..).unwrap_or(b"}"));
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
            Action::Wait(0) => {}
            Action::Wait(wait_ns) => {
                return Done::Waits(Wait::Until(self.at.mono_ns.saturating_add(*wait_ns)));
            }
        }
        Done::Yes
    }

    fn fill(&self, asked: &Asked<'_>, form: &Form) -> Vec<u8> {
        let mut out = Vec::new();
        form.write(&self.context(asked), &mut out);
        out
    }

    /// Whether the client wants to hear of a level of the log.
    fn wants_to_hear(&self, asked: &Asked<'_>, level: &str) -> bool {
        let level = log_level(level).unwrap_or(usize::MAX);
        if asked.modern {
            let meta = json::member(asked.params, "_meta");
            let least = meta.and_then(|meta| json::member(meta, modern::LOG_LEVEL));
            let least = least.and_then(json::string);
            return least
                .is_some_and(|least| log_level(&least).is_some_and(|least| level >= least));
        }
        self.visit.level.is_none_or(|least| level >= least)
    }

    /// Sends a request to the client; returns its id.
    fn ask_client(
        &mut self,
        asked: &Asked<'_>,
        method: &str,
        id: Option<&str>,
        params: Option<&[u8]>,
    ) -> Box<[u8]> {
        self.visit.asked += 1;
        let id = id.map_or_else(|| self.visit.asked.to_string(), str::to_owned);
        let mut line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":").into_bytes();
        write_call(&mut line, method, params);
        self.note(Note::Asked { method });
        self.tell(asked, &line);
        id.into_bytes().into()
    }

    /// Sends a notification, to whom it concerns.
    pub(super) fn notify(&mut self, asked: &Asked<'_>, method: &str, params: Option<&[u8]>) {
        if let Some(change) = super::listen::Change::of(method, params) {
            self.tell_listeners(&change, method, params);
            if self.visit.is_modern && self.visit.version.is_none() {
                return;
            }
        }
        let mut line = b"{\"jsonrpc\":\"2.0\",\"method\":".to_vec();
        write_call(&mut line, method, params);
        self.tell(asked, &line);
    }

    fn tell(&mut self, asked: &Asked<'_>, line: &[u8]) {
        match asked.id {
            b"" => self.visit.courier.say(&[line], self.act),
            id => self.visit.courier.tell(id, &[line], self.act),
        }
    }

    /// The client has answered something.
    pub(super) fn replied(&mut self, said: &Envelope<'_>) {
        let Some(id) = said.id else { return };
        let waits =
            |play: &Play| matches!(&play.wait, Wait::Reply { id: asked, .. } if same_id(asked, id));
        let Some(place) = self.visit.plays.iter().position(waits) else {
            return self.log(LogLevel::Debug, "the client has answered what nobody waits for");
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

    /// Goes on with what has waited long enough.
    pub(super) fn play_on(&mut self) {
        let now = self.at.mono_ns;
        let is_over = |play: &mut Play| play.wait.until().is_some_and(|until| until <= now);
        let over: Vec<Play> = self.visit.plays.extract_if(.., is_over).collect();
        over.into_iter().for_each(|play| self.wait_no_longer(play));
    }

    /// Goes on without the answers of a client that says no more.
    pub(super) fn give_up_on_replies(&mut self) {
        let waits = |play: &mut Play| matches!(play.wait, Wait::Reply { .. });
        let over: Vec<Play> = self.visit.plays.extract_if(.., waits).collect();
        over.into_iter().for_each(|play| self.wait_no_longer(play));
    }

    fn wait_no_longer(&mut self, play: Play) {
        match &play.wait {
            Wait::Until(_) => self.perform(play),
            Wait::Reply { name, .. } => {
                self.log(LogLevel::Warn, &format!("the client has not answered `{name}` in time"));
                self.perform(play);
            }
            Wait::Handler { .. } => {
                let asked = play.kept.asked();
                self.error(&asked, CODE_FAILED, "the handler has not answered in time", None);
            }
        }
    }

    /// Somebody else has answered, or not.
    pub(super) fn handled(&mut self, done: u64, outcome: Result<&[u8], &str>) {
        let waits =
            |play: &Play| matches!(play.wait, Wait::Handler { ticket, .. } if ticket == done);
        if let Some(place) = self.visit.plays.iter().position(waits) {
            let play = self.visit.plays.remove(place);
            self.pass_on(&play.kept.asked(), outcome);
        }
    }

    /// The client no longer wants to know.
    pub(super) fn cancelled(&mut self, id: &[u8]) {
        self.visit.listens.retain(|listen| !same_id(&listen.id, id));
        let place = self.visit.plays.iter().position(|play| same_id(&play.kept.id, id));
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

    /// Wants what the client has to come back with: this, and what is asked right after it without
    /// a need to know the answer.
    fn want(&mut self, action: &Action, next: &[Action], asked: &Asked<'_>) -> Done {
        let mut requests = b"{".to_vec();
        let mut names = Vec::new();
        for (place, action) in std::iter::once(action).chain(next).enumerate() {
            let Action::Ask { method, params, name, .. } = action else { break };
            let needs = params.as_ref().is_some_and(Form::needs_replies);
            if place > 0 && needs {
                break;
            }
            let name = name.as_ref().unwrap_or(method);
            if asked.replies.iter().any(|(known, _)| known == name) || names.contains(name) {
                continue;
            }
            if !names.is_empty() {
                requests.push(b',');
            }
            json::write_str(&mut requests, name);
            requests.extend_from_slice(b":{\"method\":");
            let params = params.as_ref().map(|params| self.fill(asked, params));
            write_call(&mut requests, method, params.as_deref());
            self.note(Note::Asked { method });
            names.push(name.clone());
        }
        requests.push(b'}');
        match names.is_empty() {
            true => Done::Yes,
            false => {
                self.visit.scratch = requests;
                Done::Suspends(names)
            }
        }
    }

    fn suspend(&mut self, mut play: Play, step: usize, names: Vec<String>) {
        let requests = std::mem::take(&mut self.visit.scratch);
        let context = self.context(&play.kept.asked());
        let state = format!("{:016x}{:016x}", context.roll(), context.roll());
        let mut result = b"{\"resultType\":\"input_required\",\"inputRequests\":".to_vec();
        result.extend_from_slice(&requests);
        result.extend_from_slice(format!(",\"requestState\":\"{state}\"}}").as_bytes());
        self.result(&play.kept.asked(), &result);
        play.kept.ticket = 0;
        if self.visit.suspended.len() >= SUSPENDED_MAX {
            self.visit.suspended.pop_front();
        }
        self.visit.suspended.push_back(Suspended { state, names, step, play });
    }

    /// Goes on with an operation whose client has come back; false if the request is none of these.
    pub(super) fn resume(&mut self, asked: &Asked<'_>) -> bool {
        let Some(state) = json::member(asked.params, "requestState").and_then(json::string) else {
            return false;
        };
        let is_it = |one: &Suspended| one.state == state && *one.play.kept.method == *asked.method;
        let place = self.visit.suspended.iter().position(is_it);
        let Some(mut one) = place.and_then(|place| self.visit.suspended.remove(place)) else {
            self.error(asked, CODE_PARAMS, "the requestState is not known", None);
            return true;
        };
        let responses = json::member(asked.params, "inputResponses").unwrap_or(b"{}");
        let kept = &mut one.play.kept;
        for name in one.names {
            if let Some(response) = json::member(responses, &name) {
                kept.replies.push((name, response.to_vec()));
            }
        }
        kept.id = asked.id.into();
        kept.params = asked.params.into();
        kept.token = asked.token.map(Into::into);
        one.play.step = one.step;
        self.perform(one.play);
        true
    }
}

/// Appends a method and its params, and the end of the object.
pub(super) fn write_call(out: &mut Vec<u8>, method: &str, params: Option<&[u8]>) {
    json::write_str(out, method);
    if let Some(params) = params {
        out.extend_from_slice(b",\"params\":");
        out.extend_from_slice(params);
    }
    out.push(b'}');
}
