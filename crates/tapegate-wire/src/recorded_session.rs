//! The relay, the gate and the tape of one recording, kept in step.

use tapegate_core::frame::Frame;
use tapegate_core::gate::{Gate, HoldId, HoldOutcome, MessagePlace, PermitAllGate};
use tapegate_core::relay::{
    HELD_MAX, HoldsEndedCause, PermittedMessage, Relay, RelayAction, RelayEvent,
};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{NullRecorder, RecordError, Recorder};
use tapegate_core::time::Timestamp;
use tokio::sync::mpsc;
use tracing::debug;

use crate::clock::Clock;
use crate::message_trace;
use crate::stdio::EndCause;

/// Delivers decisions about held calls.
pub type HoldOutcomeReceiver = mpsc::Receiver<(HoldId, HoldOutcome)>;

/// What happens when the tape cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnTapeError {
    /// The session ends: nothing passes unrecorded.
    Stop,
    /// The session continues without a tape, and reports so once.
    Continue,
}

/// One recording: pending requests, the gate, and the tape.
pub struct RecordedSession {
    relay: Relay,
    /// `None` if everything may pass.
    gate: Option<Box<dyn Gate>>,
    hold_outcomes: Option<HoldOutcomeReceiver>,
    last_held: Option<HoldId>,
    /// Whether the last message was meant for us.
    consumed: bool,
    renamed: Vec<(HoldId, HoldId)>,
    recorder: Box<dyn Recorder>,
    clock: Clock,
    on_tape_error: OnTapeError,
    lost: Option<RecordError>,
    /// Called once when the session ends.
    on_end: Option<OnEnd>,
    sessions: u32,
    exchanges: u64,
}

/// Called with the cause when a session ends, before the server's exit is awaited.
pub type OnEnd = Box<dyn FnOnce(&EndCause)>;

/// A message to be sent: the received one, a replacement, or one of our own.
#[derive(Debug)]
pub struct OutgoingMessage<'e> {
    /// The lane it belongs to.
    pub lane: Lane,
    /// The side it is sent to.
    pub to: Side,
    /// The message, with the proof that it may be sent.
    pub message: PermittedMessage<'e>,
}

/// Splits messages into those for the client and those for the server.
pub(crate) fn split_by_side(
    outgoing_messages: Vec<OutgoingMessage<'_>>,
) -> (Vec<PermittedMessage<'_>>, Vec<PermittedMessage<'_>>) {
    let (mut to_client, mut to_server) = (Vec::new(), Vec::new());
    for OutgoingMessage { to, message, .. } in outgoing_messages {
        match to {
            Side::Client => to_client.push(message),
            Side::Server => to_server.push(message),
        }
    }
    (to_client, to_server)
}

/// What happens to a message. `F` is what is forwarded; `R` is the answer to a refused message.
#[derive(Debug)]
pub enum Disposition<F, R = ()> {
    /// Forwarded.
    Forward(F),
    /// Not forwarded.
    Refuse(R),
    /// Held for a decision.
    Hold(HoldId),
    /// Meant for us: it answers a question of our own.
    Consume,
}

impl RecordedSession {
    /// A session recorded with `recorder`.
    pub fn new(recorder: Box<dyn Recorder>, clock: Clock, on_tape_error: OnTapeError) -> Self {
        let (sessions, exchanges) = (0, 0);
        Self {
            relay: Relay::default(),
            gate: None,
            hold_outcomes: None,
            last_held: None,
            consumed: false,
            renamed: Vec::new(),
            recorder,
            clock,
            on_tape_error,
            lost: None,
            on_end: None,
            sessions,
            exchanges,
        }
    }

    /// A session recorded with `recorder`, in which only messages pass that `gate` permits.
    /// Decisions about held calls arrive on `hold_outcomes`.
    pub fn with_gate(
        recorder: Box<dyn Recorder>,
        gate: Box<dyn Gate>,
        hold_outcomes: HoldOutcomeReceiver,
        clock: Clock,
        on_tape_error: OnTapeError,
    ) -> Self {
        let (gate, hold_outcomes) = (Some(gate), Some(hold_outcomes));
        Self { gate, hold_outcomes, ..Self::new(recorder, clock, on_tape_error) }
    }

    /// A session that records nothing, for code that requires one.
    pub fn without_recording(clock: Clock) -> Self {
        Self::new(Box::new(NullRecorder), clock, OnTapeError::Stop)
    }

    /// The current time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Scans a message in as much detail as the gate needs.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Frame<'a> {
        // Only a gate reads the details, and they slow the scan of every message.
        match &self.gate {
            Some(gate) if gate.is_active() => Frame::read(bytes),
            _ => Frame::read_without_gate_details(bytes),
        }
    }

    /// Feeds an event and passes the messages to send to `send`. They may be sent after
    /// [`RecordedSession::commit`].
    pub fn feed<'e>(
        &mut self,
        at: Timestamp,
        event: RelayEvent<'e>,
        send: &mut dyn FnMut(OutgoingMessage<'e>),
    ) {
        // The only check per message when nothing is reported.
        let reported = tracing::enabled!(tracing::Level::DEBUG);
        if reported {
            message_trace::report_hold_event(&event);
        }
        // Without waiters, as on stdio, no one takes these; they must not pile up.
        self.renamed.retain(|(_, hold_id)| self.relay.is_held(*hold_id));
        let (recorder, lost) = (&mut self.recorder, self.lost.is_some());
        let (held, renamed) = (&mut self.last_held, &mut self.renamed);
        let consumed = &mut self.consumed;
        let mut emit = |action: RelayAction<'_, 'e>| match action {
            RelayAction::Record(entry) => {
                if reported {
                    message_trace::report_message(entry);
                }
                if !lost {
                    recorder.append(entry);
                }
            }
            RelayAction::Held { hold_id, .. } => {
                debug!(hold = hold_id.0, "call held");
                *held = Some(hold_id);
            }
            RelayAction::HeldAgain { was, hold_id } => renamed.push((was, hold_id)),
            RelayAction::Consumed => *consumed = true,
            RelayAction::Forward { lane, to, message } => {
                send(OutgoingMessage { lane, to, message })
            }
            RelayAction::Answer { lane, to, message } => {
                send(OutgoingMessage { lane, to, message })
            }
        };
        match &mut self.gate {
            None => self.relay.handle(at, event, &mut PermitAllGate, &mut emit),
            Some(gate) => self.relay.handle(at, event, &mut **gate, &mut emit),
        }
    }

    /// Commits what was fed to the tape, and the gate's notes. On error, nothing of it may be sent.
    pub fn commit(&mut self) -> Result<(), RecordError> {
        if self.lost.is_none()
            && let Err(error) = self.recorder.commit()
        {
            debug!(%error, on_tape_error = ?self.on_tape_error, "tape error");
            match self.on_tape_error {
                OnTapeError::Stop => return Err(error),
                OnTapeError::Continue => self.lost = Some(error),
            }
        }
        // The activity log is committed even if the tape is lost: `OnTapeError` is about the tape
        // alone.
        self.gate.as_mut().map_or(Ok(()), |gate| gate.commit())
    }

    /// Feeds and commits one event.
    pub fn feed_and_commit<'e>(
        &mut self,
        event: RelayEvent<'e>,
    ) -> Result<Vec<OutgoingMessage<'e>>, RecordError> {
        let mut outgoing = Vec::new();
        self.feed(self.now(), event, &mut |message| outgoing.push(message));
        self.commit()?;
        Ok(outgoing)
    }

    /// Answers, in place of a server that is gone, what the client in this lane waits for. Even if the
    /// tape is what failed, the client gets these answers.
    pub(crate) fn answer_for_server<'e>(
        &mut self,
        lane: Lane,
        reason: &'e str,
        error_type: Option<&'e str>,
    ) -> Vec<PermittedMessage<'e>> {
        let mut answers = Vec::new();
        let event =
            RelayEvent::SideGone { lane: Some(lane), side: Side::Server, reason, error_type };
        self.feed(self.now(), event, &mut |outgoing| answers.push(outgoing.message));
        self.commit().ok();
        answers
    }

    /// Answers held calls, because the service that asks people is gone.
    pub(crate) fn answer_held<'e>(
        &mut self,
        lane: Lane,
        reason: &'e str,
    ) -> Vec<PermittedMessage<'e>> {
        let mut answers = Vec::new();
        let (cause, lane) = (HoldsEndedCause::ServiceGone, Some(lane));
        let event = RelayEvent::HoldsEnded { lane, reason, cause, keeps_lists: true };
        self.feed(self.now(), event, &mut |outgoing| answers.push(outgoing.message));
        self.commit().ok();
        answers
    }

    /// Reports an ambiguous HTTP message to the gate, and returns whether it is refused. Refused
    /// messages are recorded. Without a gate, nothing is refused.
    pub(crate) fn check_ambiguous(
        &mut self,
        lane: Lane,
        from: Side,
        bytes: &[u8],
        reason: &str,
    ) -> Result<bool, RecordError> {
        let at = self.now();
        let Some(gate) = &mut self.gate else { return Ok(false) };
        let refused =
            gate.reject_ambiguous(MessagePlace { at, lane, from }, &Frame::read(bytes), reason);
        // A refused request without a body left nothing to put on the tape.
        if refused && !bytes.is_empty() && self.lost.is_none() {
            let recorder = &mut self.recorder;
            let mut emit = |action: RelayAction<'_, '_>| {
                if let RelayAction::Record(entry) = action {
                    recorder.append(entry);
                }
            };
            let event = RelayEvent::RecordOnly { lane, from, bytes, reason, delivered: false };
            // The gate has recorded it already.
            self.relay.handle(at, event, &mut PermitAllGate, &mut emit);
        }
        // The note is committed even if the message may pass: no message is sent before its log
        // line.
        self.commit()?;
        Ok(refused)
    }

    /// Has the gate record a request that was refused before a message was read.
    pub(crate) fn note_refusal(&mut self, lane: Lane, reason: &str) -> Result<(), RecordError> {
        let at = self.now();
        if let Some(gate) = &mut self.gate {
            let place = MessagePlace { at, lane, from: Side::Client };
            gate.note_unsent(place, &Frame::read(b""), reason);
        }
        self.commit()
    }

    /// Has the gate record an exchange without a message.
    pub(crate) fn note_plain_exchange(
        &mut self,
        lane: Lane,
        what: &str,
    ) -> Result<(), RecordError> {
        let at = self.now();
        if let Some(gate) = &mut self.gate {
            gate.note_plain_exchange(at, lane, what);
        }
        self.commit()
    }

    /// Whether the gate redacts secrets in server output.
    pub(crate) fn masks(&mut self) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.masks())
    }

    /// Has the gate redact server text that is not a message; `None` if it may be sent unchanged.
    pub(crate) fn mask_text(
        &mut self,
        lane: Lane,
        what: &str,
        text: &[u8],
    ) -> Result<Option<Vec<u8>>, RecordError> {
        let at = self.now();
        let masked = self.gate.as_mut().and_then(|gate| gate.mask_text(at, lane, what, text));
        self.commit()?;
        Ok(masked)
    }

    /// A new lane for a session.
    pub fn open_session(&mut self) -> Lane {
        self.sessions += 1;
        debug!(session = self.sessions, "session opened");
        Lane::session(self.sessions)
    }

    /// A new lane for one exchange of a session whose ids may clash.
    pub fn open_exchange(&mut self, session: Lane) -> Lane {
        self.exchanges += 1;
        Lane { session: session.session, exchange: self.exchanges }
    }

    /// How many requests of `asker` wait for an answer that is still wanted.
    pub fn unanswered_requests(&self, asker: Side) -> usize {
        self.relay.unanswered_requests(asker)
    }

    /// Whether there is a gate.
    pub fn is_governed(&self) -> bool {
        self.gate.is_some()
    }

    /// Whether the gate currently enforces its decisions instead of only observing.
    pub(crate) fn is_enforced(&mut self) -> bool {
        self.gate.as_mut().is_some_and(|gate| gate.is_enforcing())
    }

    /// How many calls are held for a decision.
    pub fn held_calls(&self) -> usize {
        self.relay.held_calls()
    }

    /// The id of the most recently held call; returned once.
    pub(crate) fn take_last_held(&mut self) -> Option<HoldId> {
        self.last_held.take()
    }

    /// Whether the last message was an answer to a question of our own; returned once.
    pub(crate) fn take_consumed(&mut self) -> bool {
        std::mem::take(&mut self.consumed)
    }

    /// The old and new id of a call that was held again; returned once.
    pub(crate) fn take_renamed_holds(&mut self) -> Vec<(HoldId, HoldId)> {
        std::mem::take(&mut self.renamed)
    }

    /// Whether a call is held under this id.
    pub(crate) fn is_held(&self, hold_id: HoldId) -> bool {
        self.relay.is_held(hold_id)
    }

    /// The source of decisions, for code that awaits them separately.
    pub(crate) fn take_hold_outcomes(&mut self) -> Option<HoldOutcomeReceiver> {
        self.hold_outcomes.take()
    }

    /// The next deadline of held calls.
    pub(crate) fn next_hold_deadline(&self) -> Option<std::time::Instant> {
        self.relay.next_due_ns().map(|due_ns| self.clock.instant_at(due_ns))
    }

    /// Whether so many calls are held that no client may be read from.
    pub fn is_full(&self) -> bool {
        self.relay.held_calls() >= HELD_MAX
    }

    /// Whether so many calls of a session are held that its client must wait.
    pub(crate) fn is_full_for(&self, lane: Lane) -> bool {
        self.relay.is_full_for(lane)
    }

    /// Waits for the next event about held calls; never returns if there can be none.
    pub async fn next_hold_event(&mut self) -> RelayEvent<'static> {
        let due = self.next_hold_deadline();
        tokio::select! {
            // A decision that arrived in time counts, even if the deadline passes in the same
            // moment.
            biased;
            (hold_id, outcome) = next_hold_outcome(&mut self.hold_outcomes) => {
                RelayEvent::HoldSettled { hold_id, outcome }
            }
            () = sleep_until_due(due) => RelayEvent::Tick,
        }
    }

    /// Sets the callback for the end of the session.
    pub fn set_end_callback(&mut self, on_end: OnEnd) {
        self.on_end = Some(on_end);
    }

    /// Completes the tape in its current state, because the session has begun to end and we may be
    /// killed before it has. Later entries are still recorded.
    pub(crate) fn checkpoint(&mut self) {
        let at = self.now();
        if self.lost.is_none() {
            // An error here recurs at the next commit or at the end, and is handled there.
            self.recorder.checkpoint(at).ok();
        }
    }

    /// Completes the recording: only the server's exit is still to come, which may take long.
    pub(crate) fn end_session(&mut self, cause: &EndCause) {
        self.checkpoint();
        if let Some(on_end) = self.on_end.take() {
            on_end(cause);
        }
    }

    /// Why the tape was lost, if the session continued without it.
    pub fn tape_error(&self) -> Option<&RecordError> {
        self.lost.as_ref()
    }

    /// Closes the tape in order.
    pub fn close(&mut self) -> Result<(), RecordError> {
        let at = self.now();
        self.recorder.close(at)
    }
}

/// Waits until `due`; never returns if there is no deadline.
pub(crate) async fn sleep_until_due(due: Option<std::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due.into()).await,
        None => std::future::pending().await,
    }
}

/// Waits for the next decision.
pub(crate) async fn next_hold_outcome(
    hold_outcomes: &mut Option<HoldOutcomeReceiver>,
) -> (HoldId, HoldOutcome) {
    if let Some(open) = hold_outcomes {
        if let Some(settled) = open.recv().await {
            return settled;
        }
        // The channel is closed; held calls end by their timeouts.
        *hold_outcomes = None;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests;
