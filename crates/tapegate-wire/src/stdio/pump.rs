//! One direction of a session: reads lines, has them recorded, and writes them.

use tapegate_core::frame::Frame;
use tapegate_core::lines::StreamLine;
use tapegate_core::relay::{LineQueue, PermittedMessage, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::time::Timestamp;

use super::AnswerSink;
use super::answered_ids::collect_answered_ids;
use crate::port::StreamPort;
use crate::recorded_session::RecordedSession;

/// How many of our own answers may be queued for a peer that does not read.
const OWED_MAX: usize = 256;

/// One direction of a session.
pub(super) struct Pump {
    from: Side,
    input: Option<StreamPort>,
    output: Option<StreamPort>,
    /// The bytes read, and the lines that may be written.
    queue: LineQueue,
    message_bytes_max: usize,
    /// Whether lines already read wait for fewer calls to be held.
    waits: bool,
}

/// What a pump has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PumpEvent {
    /// Read some bytes.
    Read,
    /// Wrote some bytes, and may have more to write.
    Wrote,
    /// Reached the end of its input.
    Ended,
    /// Found its output closed.
    Broken,
}

impl Pump {
    pub(super) fn new(
        from: Side,
        input: StreamPort,
        output: StreamPort,
        message_bytes_max: usize,
    ) -> Self {
        let queue = LineQueue::new(message_bytes_max);
        let (input, output) = (Some(input), Some(output));
        Self { from, input, output, queue, message_bytes_max, waits: false }
    }

    /// Whether there is something to write, or whether it may read: the pump `back` must be able to
    /// take answers, and no line may be waiting.
    pub(super) fn can_progress(&self, back: &Self) -> bool {
        match self.queue.is_empty() {
            true => self.input.is_some() && !self.waits && !back.has_large_backlog(),
            false => self.input.is_some() || self.output.is_some(),
        }
    }

    /// Whether so many of our own answers are queued for a peer that does not read that it must not
    /// be read from.
    pub(super) fn has_large_backlog(&self) -> bool {
        self.queue.len() >= OWED_MAX
    }

    /// Whether the input has ended, or we stopped reading it.
    pub(super) fn is_ended(&self) -> bool {
        self.input.is_none()
    }

    /// Whether all input has been written and no more follows.
    pub(super) fn is_finished(&self) -> bool {
        self.input.is_none() && (self.queue.is_empty() || self.output.is_none())
    }

    /// Writes queued bytes, or reads if there are none.
    pub(super) async fn step(&mut self) -> PumpEvent {
        if self.queue.is_empty() {
            return self.read().await;
        }
        let (Some(output), Some(cleared)) = (&self.output, self.queue.next_writable()) else {
            return PumpEvent::Broken;
        };
        let written = output.write(cleared).await;
        match written {
            Ok(count) => self.mark_written(count),
            Err(_) => PumpEvent::Broken,
        }
    }

    async fn read(&mut self) -> PumpEvent {
        let Some(input) = &self.input else { return std::future::pending().await };
        match input.read(self.queue.read_buffer()).await {
            Ok(count) if count > 0 => {
                self.queue.filled(count);
                PumpEvent::Read
            }
            // A hung-up terminal or socket reads as an error; treat it as end of input.
            Ok(_) | Err(_) => {
                self.input = None;
                PumpEvent::Ended
            }
        }
    }

    /// Evaluates and records every complete line, and queues what may pass. Our own answers to the
    /// sender go to `answer`. A client's lines wait while too many calls are held.
    pub(super) fn process_lines(
        &mut self,
        session: &mut RecordedSession,
        answer: &mut AnswerSink<'_>,
    ) {
        // One reading of the clock serves all lines of a read: they arrived together.
        let at = session.now();
        loop {
            // Checked before each line, because the line before may be held.
            self.waits = self.from == Side::Client && session.is_full();
            if self.waits {
                return;
            }
            let Some(cut) = self.queue.next_line() else { return };
            self.process_line(session, at, cut, None, answer);
        }
    }

    /// Records the waiting lines as not sent, and answers them with this reason.
    pub(super) fn refuse_waiting_lines(
        &mut self,
        session: &mut RecordedSession,
        reason: &str,
        answer: &mut AnswerSink<'_>,
    ) {
        let at = session.now();
        // Only whole lines: a partial line cannot be answered.
        while let Some(cut) = self.queue.next_line() {
            self.process_line(session, at, cut, Some(reason), answer);
        }
        self.waits = false;
    }

    /// Passes on the rest of the input that has no line end.
    pub(super) fn process_rest(
        &mut self,
        session: &mut RecordedSession,
        answer: &mut AnswerSink<'_>,
    ) {
        if let Some(cut) = self.queue.take_rest() {
            let at = session.now();
            self.process_line(session, at, cut, None, answer);
        }
    }

    /// Whether lines already read wait for fewer calls to be held.
    pub(super) fn has_waiting_lines(&self) -> bool {
        self.waits
    }

    /// Feeds a line; with a reason `against`, it is not forwarded.
    fn process_line(
        &mut self,
        session: &mut RecordedSession,
        at: Timestamp,
        cut: StreamLine,
        against: Option<&str>,
        answer: &mut AnswerSink<'_>,
    ) {
        let (lane, from) = (Lane::ONLY, self.from);
        let (range, terminated) = match cut {
            StreamLine::Line(range) => (range, true),
            StreamLine::Unterminated(range) => (range, false),
            StreamLine::Oversize(message) => {
                let event =
                    RelayEvent::TooLarge { lane, from, message, bytes_max: self.message_bytes_max };
                session.feed(at, event, &mut |outgoing| match outgoing.to == from {
                    true => answer(outgoing.message),
                    false => self.queue.push(outgoing.message),
                });
                return;
            }
        };
        let (lines, mut due) = self.queue.split();
        let bytes = lines.bytes(range);
        let frame;
        let event = match against {
            None => {
                frame = session.read(bytes);
                RelayEvent::Received { lane, from, frame: &frame, terminated }
            }
            Some(reason) => RelayEvent::RefuseUnjudged { lane, from, bytes, reason },
        };
        // An answer for the sender goes to the other pump: this one writes towards the receiver.
        session.feed(at, event, &mut |outgoing| match outgoing.to == from {
            true => answer(outgoing.message),
            false => due.push(outgoing.message),
        });
    }

    /// Queues a message that was not read by this pump.
    pub(super) fn enqueue(&mut self, message: PermittedMessage<'_>) {
        self.queue.push(message);
    }

    /// Writes queued bytes as far as possible without waiting.
    pub(super) fn write_now(&mut self) -> PumpEvent {
        while let (Some(output), Some(cleared)) = (&self.output, self.queue.next_writable()) {
            match output.write_now(cleared) {
                Ok(0) => break,
                Ok(count) => drop(self.mark_written(count)),
                Err(_) => return PumpEvent::Broken,
            }
        }
        self.queue.release();
        PumpEvent::Wrote
    }

    /// Writes everything that is queued.
    pub(super) async fn write_all(&mut self) {
        while !self.queue.is_empty() && self.output.is_some() {
            if self.step().await == PumpEvent::Broken {
                return;
            }
        }
    }

    fn mark_written(&mut self, count: usize) -> PumpEvent {
        self.queue.advance(count);
        PumpEvent::Wrote
    }

    /// Whether bytes wait to be written.
    pub(super) fn has_unwritten(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether the output is still open.
    pub(super) fn has_reader(&self) -> bool {
        self.output.is_some()
    }

    /// Whether there is something to write, or input that can be read at once.
    pub(super) fn has_more(&self) -> bool {
        let readable = || self.input.as_ref().is_some_and(StreamPort::is_readable);
        self.output.is_some() && (!self.queue.is_empty() || readable())
    }

    /// Whether the reader of the output has hung up.
    pub(super) fn has_lost_reader(&self) -> bool {
        self.output.as_ref().is_some_and(StreamPort::has_hung_up)
    }

    /// Whether the writer of the input has closed it, though it may not be read to its end.
    pub(super) fn has_lost_writer(&self) -> bool {
        self.input.as_ref().is_some_and(StreamPort::has_ended)
    }

    /// Stops reading; queued bytes are still written.
    pub(super) fn stop_reading(&mut self) {
        self.input = None;
    }

    /// Closes both ends at once.
    pub(super) fn close(&mut self) {
        self.input = None;
        self.output = None;
        // Nothing can be written any longer, and a queue that is not empty counts as unfinished
        // work.
        self.queue.clear(|_| {});
    }

    /// Closes the output if nothing is left to write.
    pub(super) fn close_if_done(&mut self) {
        if self.input.is_none() && self.queue.is_empty() {
            self.output = None;
        }
    }

    /// Discards queued lines that could not be recorded; returns the ids of answers among them.
    pub(super) fn drop_unsent(&mut self) -> Vec<Vec<u8>> {
        let mut ids = Vec::new();
        // One queued range may hold several lines, because adjacent lines are merged.
        self.queue.clear(|bytes| {
            let lines = bytes.split(|byte| *byte == b'\n');
            lines.for_each(|line| collect_answered_ids(&Frame::read(line), &mut ids));
        });
        ids
    }
}
