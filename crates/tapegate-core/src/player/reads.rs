//! Reads without side effects: lists and `server/discover`.
//!
//! How often and when a client makes them is up to the client. One more or fewer than recorded is
//! worth a warning, but is not a divergence.

use std::io;

use super::find::{Found, in_order};
use super::run::Run;
use super::tape::{Asked, Tape};
use super::{Mode, OnUnmatched, Options};
use crate::json;
use crate::tape::index::NONE;

/// A match found when reads need not occur as recorded.
pub(super) struct Lenient {
    pub(super) found: Found,
    /// The recorded reads before it that no client has made.
    pub(super) skipped: Vec<u32>,
}

/// Looks for a request that was not found by the strict rules, and marks it as used.
pub(super) fn find(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
) -> io::Result<Option<Lenient>> {
    // A live server knows its current lists better than the tape.
    if options.strict_reads || options.on_unmatched == OnUnmatched::Passthrough {
        return Ok(None);
    }
    if tape.is_read(asked.signature) {
        let found = once_more(tape, run, asked)?;
        return Ok(found.map(|found| Lenient { found, skipped: Vec::new() }));
    }
    match options.mode {
        Mode::Sequential => behind_reads(tape, options, run, asked),
        Mode::ByRequest | Mode::Fuzzy { .. } => Ok(None),
    }
}

/// A read that is out of order, or made once more than recorded.
fn once_more(tape: &mut Tape, run: &mut Run, asked: &Asked<'_>) -> io::Result<Option<Found>> {
    let cursor = asked.said.params.and_then(|params| json::member(params, "cursor"));
    let (mut unused, mut same_page, mut last) = (None, None, None);
    let mut ask = tape.index.first_same(asked.signature).unwrap_or(NONE);
    while ask != NONE {
        let own = run.session().is_none_or(|session| session == tape.session_of(ask));
        if own && tape.is_same(ask, asked)? {
            match run.is_used(ask) {
                true if tape.has_cursor(ask, cursor)? => same_page = Some(ask),
                true => last = Some(ask),
                false => unused = unused.or(Some(ask)),
            }
        }
        ask = tape.index.next_same(ask);
    }
    if let Some(ask) = unused {
        run.take_ahead(tape, ask);
        return Ok(Some(Found::Early(ask)));
    }
    Ok(same_page.or(last).map(Found::Again))
}

/// A request that is next in order if the reads before it are skipped.
fn behind_reads(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
) -> io::Result<Option<Lenient>> {
    let (place, mut skipped) = (run.place(), Vec::new());
    while let Some(ask) = run.peek(tape) {
        if !tape.is_read(tape.index.ask(ask).signature) {
            break;
        }
        skipped.push(ask);
        run.skip();
        let found = in_order(tape, options, run, asked, options.strict_params)?;
        if found.ask().is_some() {
            skipped.retain(|ask| !run.is_used(*ask) && !tape.is_probe(*ask));
            return Ok(Some(Lenient { found, skipped }));
        }
    }
    run.go_back(place);
    Ok(None)
}
