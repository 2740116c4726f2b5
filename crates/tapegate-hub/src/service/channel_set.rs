//! The channels that the policy names: which run, what they are told, and what they answer.
//!
//! A channel is told of a request once, by whichever process opened it. Its answers pass the same
//! checks as any decision: it must come in time, from a permitted approver, and through a channel
//! of the request's workflow.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use serde::Serialize;
use tapegate_core::activity::{ActivityKind, EventLevel};
use tapegate_core::json::write_str;
use tapegate_policy::model::{ChannelSettings, LinkUse};
use tapegate_store::approvals::{
    ApprovalDecision, ApprovalError, ApprovalRecord, ChannelReceipts, is_id,
};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::JoinSet;

use super::response::ApiRefusal;
use super::{Hub, NoticeLevel};
use crate::api::{ChannelState, ChannelsAnswer, SettleRequest};
use crate::channels::{
    ChannelAnswer, ChannelEvent, ChannelOutcome, ChannelReport, ChannelRequest, ChannelWorker,
    DecisionChannel, DecisionLinks, InboundAnswer, InboundPost, open_channel,
};

/// The channels of a hub.
pub(super) struct ChannelSet {
    running: RefCell<BTreeMap<String, RunningChannel>>,
    /// Which channel was told of which request.
    told: RefCell<BTreeSet<(String, String)>>,
    /// Which channel has told people of which request.
    announced: RefCell<BTreeSet<(String, String)>>,
    starts: UnboundedSender<ChannelWorker>,
    reports: UnboundedSender<ChannelReport>,
    /// Taken by the task that runs the channels.
    incoming: RefCell<Option<ChannelQueues>>,
}

struct ChannelQueues {
    starts: UnboundedReceiver<ChannelWorker>,
    reports: UnboundedReceiver<ChannelReport>,
}

/// A channel that the policy defines.
struct RunningChannel {
    settings: ChannelSettings,
    /// The channel, and where its worker takes events from; without these it could not be opened.
    opened: Option<OpenedChannel>,
    fault: Option<String>,
}

/// A channel that has a worker.
struct OpenedChannel {
    channel: Rc<dyn DecisionChannel>,
    events: UnboundedSender<ChannelEvent>,
    /// What the worker has sent, as files that it writes.
    receipts: ChannelReceipts,
}

/// A channel in the answer of `/readyz`.
#[derive(Debug, Serialize)]
pub(super) struct ChannelHealth {
    name: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

impl Default for ChannelSet {
    fn default() -> Self {
        let (starts, new_workers) = mpsc::unbounded_channel();
        let (reports, news) = mpsc::unbounded_channel();
        let incoming = RefCell::new(Some(ChannelQueues { starts: new_workers, reports: news }));
        Self {
            running: RefCell::default(),
            told: RefCell::default(),
            announced: RefCell::default(),
            starts,
            reports,
            incoming,
        }
    }
}

impl ChannelSet {
    /// The state of every channel.
    pub(super) fn health(&self) -> Vec<ChannelHealth> {
        let running = self.running.borrow();
        let health = |(name, channel): (&String, &RunningChannel)| ChannelHealth {
            name: name.clone(),
            r#type: channel.settings.kind.as_str(),
            fault: channel.fault.clone(),
        };
        running.iter().map(health).collect()
    }

    /// The settings of a channel.
    pub(super) fn settings(&self, name: &str) -> Option<ChannelSettings> {
        self.running.borrow().get(name).map(|channel| channel.settings.clone())
    }

    fn send(&self, channel: &str, event: ChannelEvent) {
        let running = self.running.borrow();
        // A worker ends only when its channel is removed.
        let opened = running.get(channel).and_then(|channel| channel.opened.as_ref());
        opened.into_iter().for_each(|opened| drop(opened.events.send(event.clone())));
    }
}

impl Hub {
    /// Starts, replaces and stops channels so that they are those of the policy in force.
    pub(super) fn update_channels(&self) {
        let policy = self.active_policy().policy.clone();
        let wanted = policy.map(|policy| policy.channels.clone()).unwrap_or_default();
        let mut ended: Vec<String> = Vec::new();
        self.channels.running.borrow_mut().retain(|name, channel| {
            let stays = wanted.get(name) == Some(&channel.settings) && channel.opened.is_some();
            ended.extend((!stays).then(|| name.clone()));
            stays
        });
        // A channel that comes back is told again; its receipts prevent a second message.
        self.tasks.forget_stamps();
        self.channels.told.borrow_mut().retain(|(channel, _)| !ended.contains(channel));
        ended.iter().for_each(|name| self.tasks.approvals.note_channel_fault(name, None));
        for (name, settings) in wanted {
            if !self.channels.running.borrow().contains_key(&name) {
                self.start_channel(&name, settings);
            }
        }
    }

    fn start_channel(&self, name: &str, settings: ChannelSettings) {
        let opened = match &self.options.undecided {
            // An agent that starts a hub must not get links that decide.
            Some(_) => Err("off, since this hub does not accept approvals".to_owned()),
            None => open_channel(&settings).and_then(|channel| {
                let receipts = || self.tasks.approvals.channel_receipts(name);
                let both = receipts().and_then(|own| Ok((own, receipts()?)));
                Ok((channel, both.map_err(|error| error.to_string())?))
            }),
        };
        let mut running = RunningChannel { settings, opened: None, fault: None };
        match opened {
            Ok((channel, (own, receipts))) => {
                let (events, queue) = mpsc::unbounded_channel();
                self.finish_earlier(&running.settings, name, &receipts, &events);
                let reports = self.channels.reports.clone();
                let worker = ChannelWorker::new(name, Rc::clone(&channel), own, queue, reports);
                // Fails only if the hub is ending.
                self.channels.starts.send(worker).ok();
                // An earlier hub may have left one.
                self.tasks.approvals.note_channel_fault(name, None);
                running.opened = Some(OpenedChannel { channel, events, receipts });
            }
            Err(reason) => {
                self.report_channel(EventLevel::Error, &format!("channel `{name}`: {reason}"));
                self.tasks.approvals.note_channel_fault(name, Some(&reason));
                running.fault = Some(reason);
            }
        }
        self.channels.running.borrow_mut().insert(name.to_owned(), running);
    }

    /// Continues with the messages of an earlier hub, and has those updated whose requests have ended
    /// since.
    fn finish_earlier(
        &self,
        settings: &ChannelSettings,
        name: &str,
        receipts: &ChannelReceipts,
        events: &UnboundedSender<ChannelEvent>,
    ) {
        for id in receipts.ids() {
            match self.tasks.approvals.entry(&id) {
                Ok(entry) => {
                    let request = Rc::new(self.channel_request(&entry.request, name, settings));
                    events.send(ChannelEvent::Opened(Rc::clone(&request))).ok();
                    match entry.decided {
                        Some(decided) => {
                            events.send(ChannelEvent::Ended(request, outcome(&decided))).ok();
                        }
                        // It may have expired, which the next look at the folder finds.
                        None => drop(self.channels.told.borrow_mut().insert((name.to_owned(), id))),
                    }
                }
                // Its request was removed, so nothing can be told about it.
                Err(ApprovalError::Unknown { .. }) => receipts.remove(&id),
                Err(_) => {}
            }
        }
    }

    /// The channels of a request: those of its workflow, and of the second one if it has gone there.
    pub(super) fn channels_of(&self, request: &ApprovalRecord, asker_now_us: i64) -> Vec<String> {
        let Some(policy) = self.active_policy().policy.clone() else { return Vec::new() };
        let second = request.escalated_to(asker_now_us);
        let workflows = [Some(request.workflow.as_str()), second].into_iter().flatten();
        let mut names: Vec<String> = Vec::new();
        for name in
            workflows.filter_map(|name| policy.workflows.get(name)).flat_map(|it| &it.channels)
        {
            names.extend((!names.contains(name)).then(|| name.clone()));
        }
        names
    }

    /// Tells the channels of a request that waits.
    pub(super) fn announce_request(&self, request: &ApprovalRecord, asker_now_us: i64) {
        for name in &self.channels_of(request, asker_now_us) {
            let Some(settings) = self.channels.settings(name) else { continue };
            let key = (name.clone(), request.id.clone());
            if self.channels.told.borrow_mut().insert(key) {
                let request = Rc::new(self.channel_request(request, name, &settings));
                self.channels.send(name, ChannelEvent::Opened(request));
            }
        }
    }

    /// Tells the channels that were told of a request how it has ended.
    pub(super) fn conclude_request(&self, request: &ApprovalRecord, decided: &ApprovalDecision) {
        let mut told = self.channels.told.borrow_mut();
        let channels: Vec<String> = told
            .iter()
            .filter(|(_, id)| *id == request.id)
            .map(|(channel, _)| channel.clone())
            .collect();
        for name in channels {
            let key = (name.clone(), request.id.clone());
            told.remove(&key);
            self.channels.announced.borrow_mut().remove(&key);
            let Some(settings) = self.channels.settings(&name) else { continue };
            let request = Rc::new(self.channel_request(request, &name, &settings));
            self.channels.send(&name, ChannelEvent::Ended(request, outcome(decided)));
        }
    }

    /// How the channels of a request's workflow stand to it.
    pub(super) fn channel_states(&self, id: &str) -> Result<ChannelsAnswer, ApiRefusal> {
        // The request may be newer than the last look at the folder.
        self.sweep();
        let request = self.tasks.approvals.request(id)?;
        let names = self.channels_of(&request, self.asker_now_us(&request));
        let running = self.channels.running.borrow();
        let announced = self.channels.announced.borrow();
        let state = |name: &String| {
            let channel = running.get(name)?;
            let is_told = announced.contains(&(name.clone(), id.to_owned()));
            let state = match (is_told, &channel.fault) {
                (true, _) => "told",
                (false, Some(_)) => "failed",
                (false, None) => "waiting",
            };
            Some(ChannelState {
                name: name.clone(),
                kind: channel.settings.kind.as_str().to_owned(),
                state: state.to_owned(),
                fault: channel.fault.clone().filter(|_| !is_told),
            })
        };
        let policy = self.active_policy().policy.clone();
        let workflow = policy.as_ref().and_then(|policy| policy.workflows.get(&request.workflow));
        let in_agent = workflow.into_iter().flat_map(|workflow| &workflow.in_agent);
        Ok(ChannelsAnswer {
            channels: names.iter().filter_map(state).collect(),
            known: workflow.is_some(),
            in_agent: in_agent.map(|glob| glob.text().to_owned()).collect(),
            answered_by: self.answered_by(id),
        })
    }

    /// What a request that a channel's server has sent says, if it is one, and about a message that
    /// this hub has sent.
    pub(super) fn receive_from_channel(
        &self,
        name: &str,
        post: &InboundPost<'_>,
    ) -> Result<ChannelAnswer, String> {
        let running = self.channels.running.borrow();
        let channel = running.get(name);
        // The same text for all: only Slack needs to know which channels exist.
        let none = || "there is no such channel, or it takes no requests".to_owned();
        let channel =
            channel.and_then(|channel| Some((&channel.settings, channel.opened.as_ref()?)));
        let (settings, opened) = channel.ok_or_else(none)?;
        let received = opened.channel.receive(post).map_err(|refusal| refusal.0)?;
        let InboundAnswer { answer, receipt } = received;
        if !is_id(&answer.id) {
            return Err("it names no request".to_owned());
        }
        if opened.receipts.read(&answer.id).as_deref() != Some(receipt.as_str()) {
            return Err(
                "the message is not one that this hub has sent, or its call is over".to_owned()
            );
        }
        let request = self.tasks.approvals.request(&answer.id);
        let request = request.map_err(|_| "its call is gone".to_owned())?;
        let shown = self.channel_request(&request, name, settings);
        if answer.approve && !opened.channel.shows_all(&shown) {
            return Err("the message does not show all of the call".to_owned());
        }
        Ok(answer)
    }

    fn channel_request(
        &self,
        request: &ApprovalRecord,
        name: &str,
        settings: &ChannelSettings,
    ) -> ChannelRequest {
        let own = || format!("http://{}", self.options.address);
        let base = match settings.protocol().links {
            LinkUse::Never => None,
            LinkUse::IfConfigured => settings.links.clone(),
            LinkUse::Always => Some(settings.links.clone().unwrap_or_else(own)),
        };
        let links = base.map(|base| {
            let link = |approve| self.decision_link(&base, request, name, approve);
            DecisionLinks { approve: link(true), deny: link(false) }
        });
        ChannelRequest::new(request, links)
    }

    /// Runs the channels. Never returns.
    pub(super) async fn run_channels(&self) {
        let Some(queues) = self.channels.incoming.borrow_mut().take() else {
            return std::future::pending().await;
        };
        let ChannelQueues { mut starts, mut reports } = queues;
        let mut workers = JoinSet::new();
        loop {
            tokio::select! {
                // Neither ends, since their senders are fields of `self`.
                Some(worker) = starts.recv() => drop(workers.spawn_local(worker.run())),
                Some(report) = reports.recv() => self.take_channel_report(report),
                Some(_) = workers.join_next(), if !workers.is_empty() => {}
            }
        }
    }

    fn take_channel_report(&self, report: ChannelReport) {
        let set_fault = |channel: &str, fault: Option<String>| {
            let mut running = self.channels.running.borrow_mut();
            running.get_mut(channel).into_iter().for_each(|channel| channel.fault = fault.clone());
            self.tasks.approvals.note_channel_fault(channel, fault.as_deref());
        };
        match report {
            ChannelReport::Failed { channel, message } => {
                let text = format!("channel `{channel}` does not work: {message}");
                set_fault(&channel, Some(message));
                self.report_channel(EventLevel::Error, &text);
            }
            ChannelReport::Recovered { channel } => {
                set_fault(&channel, None);
                self.report_channel(EventLevel::Info, &format!("channel `{channel}` works again"));
            }
            ChannelReport::Announced { channel, id } => {
                let message = format!("told people of {id} through the channel `{channel}`");
                self.log(EventLevel::Info, ActivityKind::Hub, &message);
                self.channels.announced.borrow_mut().insert((channel, id));
            }
            ChannelReport::Answer { channel, answer } => {
                let who = SettleRequest { by: answer.by.clone(), ..SettleRequest::default() };
                let settled = self.settle_through(&answer.id, answer.approve, who, &channel);
                settled
                    .inspect_err(|refusal| self.report_uncounted(&channel, &answer, refusal))
                    .ok();
            }
        }
    }

    /// Reports that an answer does not count.
    pub(super) fn report_uncounted(
        &self,
        channel: &str,
        answer: &ChannelAnswer,
        refusal: &ApiRefusal,
    ) {
        let (by, id, reason) = (answer.by.escape_debug(), &answer.id, refusal.message());
        let text = format!(
            "channel `{channel}`: the answer of `{by}` about {id} does not count: {reason}"
        );
        self.report_channel(EventLevel::Warn, &text);
    }

    /// Removes what people at a terminal are told of channels: without a hub there are none.
    pub(super) fn forget_faults(&self) {
        let running = self.channels.running.borrow();
        running.keys().for_each(|name| self.tasks.approvals.note_channel_fault(name, None));
    }

    /// Reports on standard error and in the log.
    fn report_channel(&self, level: EventLevel, message: &str) {
        let care = match level {
            EventLevel::Error => NoticeLevel::Error,
            EventLevel::Warn => NoticeLevel::Warn,
            _ => NoticeLevel::Info,
        };
        (self.options.notice)(care, message);
        self.log(level, ActivityKind::Hub, message);
    }
}

/// How a request ended, for people.
fn outcome(decided: &ApprovalDecision) -> ChannelOutcome {
    let is_person = matches!(decided.ruling.as_str(), "approved" | "denied");
    let plain = |text: &str| tapegate_core::visible_text::inline(text, 200);
    ChannelOutcome {
        word: decided.ruling.as_str(),
        by: is_person.then(|| plain(&decided.by)),
        reason: decided.reason.as_deref().map(plain),
    }
}

/// The member of a log line that names the channel of a decision.
pub(super) fn channel_member(channel: &str) -> String {
    let mut member = b"\"channel\":".to_vec();
    write_str(&mut member, channel);
    String::from_utf8_lossy(&member).into_owned()
}
