//! The new tape that a replay may write: the messages played and passed through, followed by the
//! rest of the old tape. The old tape is never modified.

use std::time::Duration;

use tapegate_core::player::Player;
use tapegate_core::relay::Event;
use tapegate_core::tape::{Dialect, Provenance, RecordError, ScribeOptions};
use tapegate_core::time::At;
use tapegate_store::writer::Existing;
use tapegate_wire::clock::Clock;
use tapegate_wire::deck::{Deck, OnTapeError};

use super::plan::Plan;
use crate::exit::{Exit, Failure};
use crate::loading::is_same_file;
use crate::talk;
use crate::taping::{NewTape, SharedTape};

/// How often the new tape is synced.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// How many messages are buffered before they are written.
const COMMIT_EVERY: u64 = 256;

/// Opens the new tape, if one was requested.
pub(super) fn open(plan: &Plan, clock: Clock) -> anyhow::Result<Option<SharedTape>> {
    let Some(path) = &plan.args.record_to else { return Ok(None) };
    if is_same_file(&plan.args.recording, path) {
        let words = "--record-to names the tape being played, which is never changed";
        return Err(Failure::new(Exit::Usage, words).hint("name another file").into());
    }
    if plan.args.report.iter().any(|report| report == path || is_same_file(report, path)) {
        let words = "--record-to and --report name the same file";
        return Err(Failure::new(Exit::Usage, words).hint("name another file").into());
    }
    let header = plan.tape.index.headers().first();
    let upstream = match (&plan.upstream, header) {
        (Some(upstream), _) => upstream.words(),
        (None, Some(header)) => header.upstream.to_string(),
        (None, None) => plan.args.recording.display().to_string(),
    };
    let tape = NewTape {
        path: path.clone(),
        scribe: ScribeOptions {
            dialect: Dialect::Thoughtjack,
            raw: false,
            shared: plan.args.http.is_some(),
        },
        flush_interval: FLUSH_INTERVAL,
        existing: if plan.args.force { Existing::Overwrite } else { Existing::Refuse },
        name: header.and_then(|header| header.name.as_deref()),
        tags: header
            .map(|header| header.tags.iter().map(AsRef::as_ref).collect())
            .unwrap_or_default(),
        upstream: &upstream,
        members: Vec::new(),
        redactor: plan.redactor.clone(),
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
pub(super) fn deck(tape: &SharedTape, clock: Clock) -> Deck {
    Deck::new(Box::new(tape.clone()), clock, OnTapeError::Stop)
}

/// Adds the recorded messages that no client asked for, as a session of their own and as far as
/// they can be read, and ends the new tape.
pub(super) fn finish(player: &mut Player, deck: &mut Deck) -> Result<(), RecordError> {
    let (lane, now) = (deck.open_session(), deck.now());
    let (mut first_us, mut fed, mut done) = (None, 0u64, Ok(()));
    player.each_unused(&mut |slot, bytes| {
        let (from, at_us, resumed) = (slot.from, slot.at_us, slot.resumed);
        // Latencies stay as recorded; timestamps are those of the copy.
        let since = at_us.saturating_sub(*first_us.get_or_insert(at_us));
        let at = At {
            wall_us: now.wall_us.saturating_add_unsigned(since),
            mono_ns: now.mono_ns.saturating_add(since.saturating_mul(1000)),
        };
        let provenance = Provenance { ours: slot.ours, latency_us: slot.latency_us };
        let event = Event::Played { lane, from, bytes, resumed, provenance };
        deck.feed(at, event, &mut |_| {});
        fed += 1;
        if fed.is_multiple_of(COMMIT_EVERY) && done.is_ok() {
            done = deck.commit();
        }
    });
    done?;
    deck.commit()?;
    deck.close()
}

/// Prints what was written.
pub(super) fn say(tape: &SharedTape) {
    let tape = tape.0.borrow();
    let (client, server) = tape.messages();
    talk::say(&format!("wrote {} messages to {}", client + server, tape.path().display()));
}
