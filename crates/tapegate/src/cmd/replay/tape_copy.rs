//! The new tape that a replay may write: the messages played and passed through, followed by the
//! rest of the old tape. The old tape is never modified.

use std::time::Duration;

use tapegate_core::player::Player;
use tapegate_core::relay::RelayEvent;
use tapegate_core::tape::{Dialect, EntryWriterOptions, Mask, Provenance, RecordError};
use tapegate_core::time::Timestamp;
use tapegate_policy::redact::mask_upstream;
use tapegate_store::new_tape::{NewTape, SharedTape};
use tapegate_store::tape_writer::OnExisting;
use tapegate_wire::clock::Clock;
use tapegate_wire::recorded_session::{OnTapeError, RecordedSession};

use super::plan::ReplayPlan;
use crate::exit::{Exit, Failure};
use crate::tape_loader::is_same_file;
use crate::terminal_output;

/// How often the new tape is synced.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// How many messages are buffered before they are written.
const COMMIT_EVERY: u64 = 256;

/// Opens the new tape, if one was requested.
pub(super) fn open(plan: &ReplayPlan, clock: Clock) -> anyhow::Result<Option<SharedTape>> {
    let Some(path) = &plan.args.record_to else { return Ok(None) };
    // With --force, opening it would truncate the tape that is played.
    if is_same_file(&plan.args.recording, path) {
        let message = "--record-to names the tape being played, which is never changed";
        return Err(Failure::new(Exit::Usage, message).hint("name another file").into());
    }
    if plan.args.report.iter().any(|report| report == path || is_same_file(report, path)) {
        let message = "--record-to and --report name the same file";
        return Err(Failure::new(Exit::Usage, message).hint("name another file").into());
    }
    let header = plan.tape.index.headers().first();
    let upstream = match (&plan.upstream, header) {
        (Some(upstream), _) => upstream.header_text(),
        (None, Some(header)) => header.upstream.to_string(),
        (None, None) => plan.args.recording.display().to_string(),
    };
    let tape = NewTape {
        path: path.clone(),
        entry_writer: EntryWriterOptions {
            dialect: Dialect::Thoughtjack,
            raw: false,
            shared: plan.args.http.is_some(),
        },
        flush_interval: FLUSH_INTERVAL,
        existing: if plan.args.force { OnExisting::Overwrite } else { OnExisting::Refuse },
        name: header.and_then(|header| header.name.as_deref()),
        tags: header
            .map(|header| header.tags.iter().map(AsRef::as_ref).collect())
            .unwrap_or_default(),
        upstream: &mask_upstream(&upstream),
        members: Vec::new(),
        mask: plan.redactor.clone().map(|redactor| Box::new(redactor) as Box<dyn Mask>),
    };
    let tape = tape.open(clock.now()).map_err(|error| {
        let failure = Failure::new(Exit::Io, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    })?;
    Ok(Some(SharedTape::new(tape)))
}

/// A recorded session that is written to the new tape.
pub(super) fn recorded_session(tape: &SharedTape, clock: Clock) -> RecordedSession {
    RecordedSession::new(Box::new(tape.clone()), clock, OnTapeError::Stop)
}

/// Adds the recorded messages that no client asked for, as a session of their own and as far as
/// they can be read, and ends the new tape.
pub(super) fn finish(
    player: &mut Player,
    session: &mut RecordedSession,
) -> Result<(), RecordError> {
    let (lane, now) = (session.open_session(), session.now());
    let (mut first_us, mut fed, mut done) = (None, 0u64, Ok(()));
    player.each_unused(&mut |slot, bytes| {
        let (from, at_us, resumed) = (slot.from, slot.at_us, slot.resumed);
        // Latencies stay as recorded; timestamps are those of the copy.
        let since = at_us.saturating_sub(*first_us.get_or_insert(at_us));
        let at = Timestamp {
            wall_us: now.wall_us.saturating_add_unsigned(since),
            mono_ns: now.mono_ns.saturating_add(since.saturating_mul(1000)),
        };
        let provenance = Provenance { ours: slot.ours, latency_us: slot.latency_us };
        let frame = &session.read(bytes);
        let event = RelayEvent::Played { lane, from, frame, resumed, provenance };
        session.feed(at, event, &mut |_| {});
        fed += 1;
        // Nothing is sent here, so entries may be written together; memory stays bounded.
        if fed.is_multiple_of(COMMIT_EVERY) && done.is_ok() {
            done = session.commit();
        }
    });
    done?;
    session.commit()?;
    session.close()
}

/// Prints what was written.
pub(super) fn report_written(tape: &SharedTape) {
    let tape = tape.0.borrow();
    let (client, server) = tape.messages();
    terminal_output::info(&format!(
        "wrote {} messages to {}",
        client + server,
        tape.path().display()
    ));
}
