//! A client on a pipe: its output is lines, which are recorded before they are written.

use std::time::Duration;

use tapegate_core::frame::{Frame, error_reply};
use tapegate_core::relay::{CODE_GONE, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Provenance, RecordError, TOO_LARGE};
use tapegate_core::time::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::client_end::OUT_BYTES_MAX;
use super::client_input::ClientLine;
use super::client_read_wait::ClientReadWait;
use super::notification::is_notification;
use super::outbox::LineOutbox;
use super::raw_piece::TapedBytes;
use crate::port::StreamPort;
use crate::recorded_session::RecordedSession;
use crate::stdio::{EndCause, collect_answered_ids};

/// How much of an incomplete line may be queued. Such lines are produced as they are read.
const RAW_BYTES_MAX: usize = 64 * 1024;
/// How many bytes are gathered before a write, while there is more input.
const WRITE_BYTES: usize = 64 * 1024;

/// A client on a pipe.
pub(super) struct PipeClient<'d> {
    port: StreamPort,
    out: LineOutbox,
    read_wait: ClientReadWait,
    /// The recording, if there is one.
    session: Option<&'d mut RecordedSession>,
    /// How much of a line that is sent in pieces is recorded.
    taped_bytes_max: usize,
    /// The line that is being sent in pieces.
    raw: Option<TapedBytes>,
    /// Whether the client has stopped reading.
    gone: bool,
}

impl<'d> PipeClient<'d> {
    pub(super) fn new(
        port: StreamPort,
        session: Option<&'d mut RecordedSession>,
        message_bytes_max: usize,
    ) -> Self {
        Self {
            port,
            out: LineOutbox::default(),
            read_wait: ClientReadWait::default(),
            taped_bytes_max: if session.is_some() { message_bytes_max } else { 0 },
            session,
            raw: None,
            gone: false,
        }
    }

    pub(super) fn add_message(
        &mut self,
        at: Timestamp,
        parts: &[&[u8]],
        provenance: Option<Provenance>,
    ) {
        // The client sees both as one line; the tape shows where the first was cut.
        self.record_raw_line(at, false);
        let bytes = self.out.add(parts);
        let notifies = is_notification(bytes);
        if let Some(session) = &mut self.session {
            let (lane, from, terminated, resumed) = (Lane::ONLY, Side::Server, true, false);
            let frame = &session.read(bytes);
            let event = match provenance {
                Some(provenance) => RelayEvent::Played { lane, from, frame, resumed, provenance },
                None => RelayEvent::Received { lane, from, frame, terminated },
            };
            session.feed(at, event, &mut |_| ());
        }
        self.out.mark_notification(notifies);
    }

    pub(super) fn add_piece(&mut self, at: Timestamp, bytes: &[u8], ends: bool) {
        self.out.add_raw(bytes, ends);
        self.raw.get_or_insert_default().add(bytes, self.taped_bytes_max);
        if ends {
            self.record_raw_line(at, true);
        }
    }

    /// Records what was sent of a line in pieces, and forgets it.
    fn record_raw_line(&mut self, at: Timestamp, terminated: bool) {
        let raw = self.raw.take().unwrap_or_default();
        let (bytes, lane, from) = (raw.bytes(), Lane::ONLY, Side::Server);
        if let Some(session) = self.session.as_mut().filter(|_| !bytes.is_empty()) {
            let frame = &session.read(bytes);
            session.feed(at, RelayEvent::Received { lane, from, frame, terminated }, &mut |_| ());
        }
    }

    /// Records a message of the client.
    pub(super) fn record_received(&mut self, at: Timestamp, line: &ClientLine<'_>) {
        let Some(session) = &mut self.session else { return };
        let (lane, from) = (Lane::ONLY, Side::Client);
        let frame;
        let event = match line {
            ClientLine::Message(bytes, terminated) => {
                frame = session.read(bytes);
                RelayEvent::Received { lane, from, frame: &frame, terminated: *terminated }
            }
            // The actor answers, so the relay is not asked to.
            ClientLine::Oversize(message) => RelayEvent::Marked {
                lane,
                from,
                bytes: &message.head,
                reason: TOO_LARGE,
                delivered: true,
            },
        };
        session.feed(at, event, &mut |_| ());
    }

    pub(super) fn stop_recording(&mut self) {
        self.session = None;
    }

    pub(super) fn unwritten_bytes(&self) -> usize {
        self.out.unwritten_bytes()
    }

    pub(super) fn has_room(&self) -> bool {
        let bytes_max = if self.is_mid_line() { RAW_BYTES_MAX } else { OUT_BYTES_MAX };
        self.out.unwritten_bytes() < bytes_max
    }

    /// Whether a line was begun but not ended.
    pub(super) fn is_mid_line(&self) -> bool {
        self.raw.is_some()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    pub(super) fn check_hangup(&mut self) {
        self.gone |= self.port.has_hung_up();
    }

    /// Discards everything that was not written.
    pub(super) fn discard_unwritten(&mut self) {
        self.out.clear();
    }

    /// Whether output should be written even though there is more input, so that a burst of requests
    /// does not gather all answers in memory.
    pub(super) fn should_write(&self) -> bool {
        self.out.unwritten_bytes() >= WRITE_BYTES || self.is_mid_line()
    }

    /// Commits the recorded output, and writes it as far as possible without waiting.
    pub(super) fn send(&mut self) -> Result<(), RecordError> {
        if let Some(session) = &mut self.session {
            // On an error nothing is released, so nothing is sent that is not recorded (invariant
            // 4).
            session.commit()?;
        }
        self.out.release();
        // Lines of different kinds must be read apart (see `outbox`), so a held line may end the
        // loop.
        while !self.gone
            && self.read_wait.release_if_read(&mut self.out, &self.port)
            && self.has_writable()
        {
            match self.port.write_now(self.out.writable()) {
                Ok(0) => return Ok(()),
                Ok(count) => self.out.mark_written(count),
                Err(_) => self.gone = true,
            }
        }
        Ok(())
    }

    pub(super) fn has_writable(&self) -> bool {
        !self.out.writable().is_empty()
    }

    /// Writes once the client reads.
    pub(super) async fn write(&mut self) {
        match self.port.write(self.out.writable()).await {
            Ok(count) => self.out.mark_written(count),
            Err(_) => self.gone = true,
        }
    }

    pub(super) fn next_check(&self) -> Option<Instant> {
        self.read_wait.next_check()
    }

    /// Ends the recording of a line in pieces, and writes the rest of the output.
    pub(super) async fn finish(&mut self, at: Timestamp, cause: &EndCause, time: Duration) {
        // First, so that the tape is complete before anything is waited for.
        self.record_raw_line(at, false);
        if let Some(session) = &mut self.session {
            // If the tape has failed, the session has ended already.
            session.commit().ok();
        }
        if let EndCause::Tape(_) = cause {
            self.fail_unanswered(at, &cause.client_message());
        }
        // Give up on a client that does not read.
        tokio::time::timeout(time, self.write_all()).await.ok();
    }

    /// Answers with an error every request left unanswered because the tape has failed.
    fn fail_unanswered(&mut self, at: Timestamp, reason: &str) {
        // These lines are not on the tape and must not be sent. Their requests get errors instead.
        let unsent = self.out.take_held_back();
        let mut ids = Vec::new();
        let lines = unsent.split(|byte| *byte == b'\n');
        lines.for_each(|line| collect_answered_ids(&Frame::read(line), &mut ids));
        for id in ids {
            self.out.add(&[&error_reply(&id, CODE_GONE, reason, "{\"by\":\"tapegate\"}")]);
        }
        if let Some(session) = &mut self.session {
            let (lane, side) = (Some(Lane::ONLY), Side::Server);
            let event = RelayEvent::Gone { lane, side, reason, error_type: None };
            let out = &mut self.out;
            session.feed(at, event, &mut |outgoing| {
                if outgoing.to == Side::Client {
                    out.add(&[outgoing.message.bytes()]);
                }
            });
        }
        self.out.release();
    }

    /// Writes all remaining output.
    async fn write_all(&mut self) {
        self.read_wait.expedite();
        while !self.gone {
            if !self.read_wait.release_if_read(&mut self.out, &self.port) {
                sleep_until(self.next_check().unwrap_or_else(Instant::now)).await;
            } else if self.has_writable() {
                self.write().await;
            } else {
                return;
            }
        }
    }
}
