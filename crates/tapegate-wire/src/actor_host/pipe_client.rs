//! A client on a pipe: its output is lines, which are recorded before they are written.

use std::time::Duration;

use tapegate_core::frame::{Frame, own_error};
use tapegate_core::relay::{CODE_GONE, RelayEvent};
use tapegate_core::side::{Lane, Side};
use tapegate_core::tape::{Provenance, RecordError, TOO_LARGE};
use tapegate_core::time::Timestamp;
use tokio::time::{Instant, sleep_until};

use super::client_end::{ClientEnd, OUT_BYTES_MAX};
use super::client_read_wait::ClientReadWait;
use super::notification::is_notification;
use super::outbox::LineOutbox;
use super::raw_piece::TapedBytes;
use crate::port::{ReceivedLine, StreamPort};
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

    /// Records what was sent of a line in pieces, and forgets it.
    fn record_raw_line(&mut self, at: Timestamp, terminated: bool) {
        let raw = self.raw.take().unwrap_or_default();
        let (bytes, lane, from) = (raw.bytes(), Lane::ONLY, Side::Server);
        if let Some(session) = self.session.as_mut().filter(|_| !bytes.is_empty()) {
            let frame = &session.read(bytes);
            let event = RelayEvent::Received { lane, from, frame, terminated };
            session.feed(at, event, &mut |_| ());
        }
    }

    fn has_writable(&self) -> bool {
        !self.out.writable().is_empty()
    }

    /// Answers with an error every request left unanswered because the tape has failed.
    fn fail_unanswered(&mut self, at: Timestamp, reason: &str) {
        // These lines are not on the tape and must not be sent. Their requests get errors instead.
        let unsent = self.out.take_held_back();
        let mut ids = Vec::new();
        let lines = unsent.split(|byte| *byte == b'\n');
        lines.for_each(|line| collect_answered_ids(&Frame::read(line), &mut ids));
        for id in ids {
            self.out.add(&[&own_error(&id, CODE_GONE, reason)]);
        }
        if let Some(session) = &mut self.session {
            let (lane, side) = (Some(Lane::ONLY), Side::Server);
            let event = RelayEvent::SideGone { lane, side, reason, error_type: None };
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
                self.progress().await;
            } else {
                return;
            }
        }
    }
}

impl ClientEnd for PipeClient<'_> {
    fn add_message(
        &mut self,
        at: Timestamp,
        _about: Option<&[u8]>,
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

    fn add_piece(&mut self, at: Timestamp, _about: Option<&[u8]>, bytes: &[u8], ends: bool) {
        self.out.add_raw(bytes, ends);
        self.raw.get_or_insert_default().add(bytes, self.taped_bytes_max);
        if ends {
            self.record_raw_line(at, true);
        }
    }

    fn disconnect(&mut self, _about: Option<&[u8]>, abrupt: bool) -> bool {
        if abrupt {
            self.out.clear();
        }
        true
    }

    fn record_received(&mut self, at: Timestamp, line: &ReceivedLine<'_>) {
        let Some(session) = &mut self.session else { return };
        let (lane, from) = (Lane::ONLY, Side::Client);
        let frame;
        let event = match line {
            ReceivedLine::Line(bytes, terminated) => {
                frame = session.read(bytes);
                RelayEvent::Received { lane, from, frame: &frame, terminated: *terminated }
            }
            // The actor answers, so the relay is not asked to.
            ReceivedLine::Oversize(message) => {
                let (bytes, reason, delivered) = (&message.head[..], TOO_LARGE, true);
                RelayEvent::RecordOnly { lane, from, bytes, reason, delivered }
            }
        };
        session.feed(at, event, &mut |_| ());
    }

    fn unread_bytes(&self) -> usize {
        self.out.unwritten_bytes()
    }

    fn has_room(&self) -> bool {
        let bytes_max = if self.raw.is_some() { RAW_BYTES_MAX } else { OUT_BYTES_MAX };
        self.out.unwritten_bytes() < bytes_max
    }

    fn blocks_input(&self) -> bool {
        self.raw.is_some() && self.out.unwritten_bytes() > 0
    }

    fn send(&mut self, urgent: bool) -> Result<(), RecordError> {
        // A burst of requests must not gather all answers in memory.
        let is_much = self.out.unwritten_bytes() >= WRITE_BYTES || self.raw.is_some();
        if !urgent && !is_much {
            return Ok(());
        }
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

    fn can_progress(&self) -> bool {
        self.has_writable()
    }

    async fn progress(&mut self) {
        match self.port.write(self.out.writable()).await {
            Ok(count) => self.out.mark_written(count),
            Err(_) => self.gone = true,
        }
    }

    fn next_check(&self) -> Option<Instant> {
        self.read_wait.next_check()
    }

    fn is_gone(&self) -> bool {
        self.gone
    }

    fn check_hangup(&mut self) {
        self.gone |= self.port.has_hung_up();
    }

    async fn finish(&mut self, at: Timestamp, cause: &EndCause, time: Duration) {
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

    fn close(&mut self) {
        self.session = None;
    }
}
