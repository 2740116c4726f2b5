//! Reads without side effects: lists and `server/discover`.
//!
//! How often and when a client makes them is up to the client. One more or fewer than recorded is
//! worth a warning, but is not a divergence.

use std::io;

use super::tape::{LiveRequest, PlayerTape};
use super::tape_match::{TapeMatch, find_in_order};
use super::tape_run::TapeRun;
use super::{MatchMode, OnUnmatched, PlayerOptions};
use crate::json;
use crate::tape::index::NONE;

/// A match found when reads need not occur as recorded.
pub(super) struct LenientMatch {
    pub(super) tape_match: TapeMatch,
    /// The recorded reads before it that no client has made.
    pub(super) skipped: Vec<u32>,
}

/// Looks for a request that was not found by the strict rules, and marks it as used.
pub(super) fn find(
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
) -> io::Result<Option<LenientMatch>> {
    // A live server knows its current lists better than the tape.
    if options.strict_reads || options.on_unmatched == OnUnmatched::Passthrough {
        return Ok(None);
    }
    if tape.is_read(request.signature) {
        let tape_match = find_repeated_read(tape, run, request)?;
        return Ok(tape_match.map(|tape_match| LenientMatch { tape_match, skipped: Vec::new() }));
    }
    match options.mode {
        MatchMode::Sequential => find_after_skipped_reads(tape, options, run, request),
        MatchMode::ByRequest | MatchMode::Fuzzy { .. } => Ok(None),
    }
}

/// A read that is out of order, or made once more than recorded.
fn find_repeated_read(
    tape: &mut PlayerTape,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
) -> io::Result<Option<TapeMatch>> {
    let cursor = request.envelope.params.and_then(|params| json::member(params, "cursor"));
    let (mut unused, mut same_page, mut last) = (None, None, None);
    let mut request_number = tape.index.first_with_hash(request.signature).unwrap_or(NONE);
    while request_number != NONE {
        let own = run.session().is_none_or(|session| session == tape.session_of(request_number));
        if own && tape.is_same(request_number, request)? {
            // The same page comes first: another page would repeat or lose items.
            match run.is_used(request_number) {
                true if tape.has_cursor(request_number, cursor)? => {
                    same_page = Some(request_number)
                }
                true => last = Some(request_number),
                false => unused = unused.or(Some(request_number)),
            }
        }
        request_number = tape.index.next_with_hash(request_number);
    }
    if let Some(request_number) = unused {
        run.take_out_of_order(tape, request_number);
        return Ok(Some(TapeMatch::Early(request_number)));
    }
    Ok(same_page.or(last).map(TapeMatch::Again))
}

/// A request that is next in order if the reads before it are skipped.
fn find_after_skipped_reads(
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
) -> io::Result<Option<LenientMatch>> {
    let (place, mut skipped) = (run.checkpoint(), Vec::new());
    while let Some(request_number) = run.peek(tape) {
        if !tape.is_read(tape.index.request(request_number).signature) {
            break;
        }
        skipped.push(request_number);
        run.skip();
        let tape_match = find_in_order(tape, options, run, request, options.strict_params)?;
        if tape_match.request().is_some() {
            // Reads that were taken early or are mere probes are not missed.
            skipped.retain(|request_number| {
                !run.is_used(*request_number) && !tape.is_probe(*request_number)
            });
            return Ok(Some(LenientMatch { tape_match, skipped }));
        }
    }
    // The reads were skipped on trial only; the client may still make them.
    run.restore(place);
    Ok(None)
}
