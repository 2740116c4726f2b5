//! Matches a live request to the tape.

use std::io;

use super::fuzzy;
use super::likeness::Likeness;
use super::run::Run;
use super::tape::{Asked, Tape};
use super::{Mode, OnExhausted, Options, Reason};
use crate::json;
use crate::tape::index::NONE;

/// How many requests with other cursors are passed over to find one with the same cursor.
const CURSORS_MAX: usize = 64;

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Found {
    /// A request that asks for exactly the same thing.
    Same(u32),
    /// A request that asks for exactly the same thing, but is not the next one in order.
    Early(u32),
    /// A read made more often than recorded; this one was its last answer.
    Again(u32),
    /// A request for the same subject with other params.
    Differing(u32),
    /// A request that is similar enough.
    Near {
        ask: u32,
        score: f64,
        /// The leaves that differ, for people to read.
        paths: Vec<String>,
        /// How many others are equally similar.
        ties: u32,
    },
    /// Nothing.
    Nothing {
        reason: Reason,
        /// The request that was expected instead.
        expected: Option<u32>,
    },
}

impl Found {
    pub(super) fn ask(&self) -> Option<u32> {
        match self {
            Self::Same(ask)
            | Self::Early(ask)
            | Self::Again(ask)
            | Self::Differing(ask)
            | Self::Near { ask, .. } => Some(*ask),
            Self::Nothing { .. } => None,
        }
    }
}

/// Looks for a request and, if it is found, marks it as used. In sequential mode, `exact` rules out
/// other params.
pub(super) fn find(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
    exact: bool,
) -> io::Result<Found> {
    match options.mode {
        Mode::Sequential => in_order(tape, options, run, asked, exact),
        Mode::ByRequest => by_request(tape, options, run, asked),
        Mode::Fuzzy { threshold } => {
            let found = by_request(tape, options, run, asked)?;
            match found.ask() {
                Some(_) => Ok(found),
                None => by_likeness(tape, options, run, asked, threshold),
            }
        }
    }
}

pub(super) fn in_order(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
    exact: bool,
) -> io::Result<Found> {
    if tape.is_of_tasks(asked.signature) || has_listed(tape, run, asked) {
        return by_request(tape, options, run, asked);
    }
    let mut next = run.peek(tape);
    if next.is_none() {
        match options.on_exhausted {
            OnExhausted::Cycle if run.has_begun() => run.rewind(),
            OnExhausted::Last => return last_like(tape, run, asked),
            _ => {}
        }
        next = run.peek(tape);
    }
    // Skipped requests stay available, since another client may make them.
    let mut before = None;
    while let Some(ask) = next {
        let needless = is_optional(tape, run, ask) && !tape.is_like(ask, asked)?;
        if !needless && !tape.was_malformed(ask, asked)? {
            break;
        }
        before.get_or_insert_with(|| run.place());
        run.skip();
        next = run.peek(tape);
    }
    let found = match next {
        Some(ask) => at_its_place(tape, run, asked, ask, exact)?,
        None => Found::Nothing { reason: Reason::TapeEnded, expected: None },
    };
    if let (Found::Nothing { .. }, Some(place)) = (&found, before) {
        run.go_back(place);
    }
    Ok(found)
}

/// Whether a request may be skipped. A client that continues after the end of the tape does not
/// initialize its session again.
fn is_optional(tape: &Tape, run: &Run, ask: u32) -> bool {
    let is_read = || tape.is_read(tape.index.ask(ask).signature);
    tape.is_probe(ask) || run.has_cycled() && (tape.is_initialize(ask) || is_read())
}

/// Takes the next request in order, or one that may be made before it.
fn at_its_place(
    tape: &mut Tape,
    run: &mut Run,
    asked: &Asked<'_>,
    ask: u32,
    exact: bool,
) -> io::Result<Found> {
    let found = if tape.is_same(ask, asked)? {
        Found::Same(ask)
    } else if let Some(ahead) = first_same(tape, asked, run.side_by_side(tape))? {
        run.take_ahead(tape, ahead);
        return Ok(Found::Same(ahead));
    } else if let Some(ahead) = first_same(tape, asked, run.row(tape, asked.signature))? {
        run.take_ahead(tape, ahead);
        // The order of lists does not matter, so it is not reported.
        let list = tape.relists.is_list(asked.signature);
        return Ok(if list { Found::Same(ahead) } else { Found::Early(ahead) });
    } else if !exact && tape.is_like(ask, asked)? && !is_recorded(tape, asked)? {
        Found::Differing(ask)
    } else {
        let differs = exact && tape.is_like(ask, asked)? && !is_recorded(tape, asked)?;
        let reason = if differs { Reason::OtherParams } else { Reason::OutOfOrder };
        return Ok(Found::Nothing { reason, expected: Some(ask) });
    };
    run.advance(tape, ask);
    Ok(found)
}

/// Whether a list is requested again.
fn has_listed(tape: &Tape, run: &Run, asked: &Asked<'_>) -> bool {
    let first = run.session().and_then(|session| tape.relists.first(session, asked.signature));
    first.is_some_and(|first| run.is_used(first))
}

/// Whether the tape has exactly this request anywhere. Then its own answer is on the tape too, and
/// that of another call would be wrong.
fn is_recorded(tape: &mut Tape, asked: &Asked<'_>) -> io::Result<bool> {
    let mut ask = tape.index.first_same(asked.signature).unwrap_or(NONE);
    while ask != NONE {
        if tape.is_same(ask, asked)? {
            return Ok(true);
        }
        ask = tape.index.next_same(ask);
    }
    Ok(false)
}

/// The first of these requests that is the same.
fn first_same(tape: &mut Tape, asked: &Asked<'_>, among: Vec<u32>) -> io::Result<Option<u32>> {
    for ask in among {
        if tape.is_same(ask, asked)? {
            return Ok(Some(ask));
        }
    }
    Ok(None)
}

/// The last played request for the same subject, after the end of the tape.
fn last_like(tape: &mut Tape, run: &Run, asked: &Asked<'_>) -> io::Result<Found> {
    let (mut same, mut like) = (None, None);
    let mut ask = tape.index.first_like(asked.signature).unwrap_or(NONE);
    while ask != NONE {
        if run.is_used(ask) && tape.is_like(ask, asked)? {
            like = Some(ask);
            same = if tape.is_same(ask, asked)? { Some(ask) } else { same };
        }
        ask = tape.index.next_like(ask);
    }
    let nothing = Found::Nothing { reason: Reason::TapeEnded, expected: None };
    Ok(same.map(Found::Same).or(like.map(Found::Differing)).unwrap_or(nothing))
}

fn by_request(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
) -> io::Result<Found> {
    let Some(head) = tape.index.first_same(asked.signature) else {
        return Ok(Found::Nothing { reason: Reason::NotRecorded, expected: None });
    };
    if let Some(ask) = unused(tape, run, head, asked)? {
        run.take(tape, head, ask);
        return Ok(Found::Same(ask));
    }
    match (options.on_exhausted, run.last(tape, head)) {
        (OnExhausted::Last, Some(ask)) => Ok(Found::Same(ask)),
        (OnExhausted::Cycle, Some(_)) => {
            run.renew(tape, head);
            let again = unused(tape, run, head, asked)?;
            again.iter().for_each(|ask| run.take(tape, head, *ask));
            let nothing = Found::Nothing { reason: Reason::Exhausted, expected: None };
            Ok(again.map_or(nothing, Found::Same))
        }
        (_, Some(ask)) => Ok(Found::Nothing { reason: Reason::Exhausted, expected: Some(ask) }),
        // The hashes collided; the request itself differs.
        (_, None) => Ok(Found::Nothing { reason: Reason::NotRecorded, expected: None }),
    }
}

/// The first unused request that is the same, from the run's own session if possible.
fn unused(tape: &mut Tape, run: &mut Run, head: u32, asked: &Asked<'_>) -> io::Result<Option<u32>> {
    let several = tape.index.sessions().len() > 1 && run.session().is_some();
    let passes: &[bool] = if several { &[true, false] } else { &[false] };
    for &own in passes {
        let (mut ask, mut first, mut looked) = (run.first_unused(tape, head, own), None, 0);
        while ask != NONE && looked < CURSORS_MAX {
            let foreign = own && Some(tape.session_of(ask)) != run.session();
            if !foreign && !run.is_used(ask) && tape.is_same(ask, asked)? {
                let no_choice = first.is_none() && tape.index.next_same(ask) == NONE;
                if no_choice || has_same_cursor(tape, ask, asked)? {
                    return Ok(Some(ask));
                }
                first.get_or_insert(ask);
                looked += 1;
            }
            ask = tape.index.next_same(ask);
        }
        if first.is_some() {
            return Ok(first);
        }
    }
    Ok(None)
}

/// Whether a recorded request has the same `cursor`, or the live request has none.
fn has_same_cursor(tape: &mut Tape, ask: u32, asked: &Asked<'_>) -> io::Result<bool> {
    let cursor = asked.said.params.and_then(|params| json::member(params, "cursor"));
    Ok(cursor.is_none() || tape.has_cursor(ask, cursor)?)
}

fn by_likeness(
    tape: &mut Tape,
    options: &Options,
    run: &mut Run,
    asked: &Asked<'_>,
    threshold: f64,
) -> io::Result<Found> {
    let wanted = Likeness::of(asked.text, &tape.signer);
    let reuse = options.on_exhausted != OnExhausted::Error;
    let mut best: Option<(f64, bool, u32)> = None;
    let (mut ties, mut any) = (0, None);
    let mut ask = tape.index.first_like(asked.signature).unwrap_or(NONE);
    while ask != NONE {
        let recorded = tape.likeness(ask)?;
        if recorded.about == wanted.about {
            any = Some(ask);
            let fresh = !run.is_used(ask);
            if fresh || reuse {
                let rank = (wanted.leaves.score(&recorded.leaves), fresh, ask);
                match best {
                    Some((score, unused, _)) if (score, unused) > (rank.0, fresh) => {}
                    Some((score, unused, _)) if (score, unused) == (rank.0, fresh) => ties += 1,
                    _ => (best, ties) = (Some(rank), 0),
                }
            }
        }
        ask = tape.index.next_like(ask);
    }
    match best.filter(|(score, ..)| *score >= threshold) {
        // So far subjects were only compared by hash.
        Some((score, _, ask)) if tape.is_like(ask, asked)? => {
            let head = tape.index.first_same(tape.index.ask(ask).signature).unwrap_or(ask);
            run.take(tape, head, ask);
            let paths = fuzzy::differing(&tape.signer.canonical(asked.text), &tape.canonical(ask)?);
            Ok(Found::Near { ask, score, paths, ties })
        }
        _ => {
            let exhausted = best.is_none() && any.is_some();
            let reason = if exhausted { Reason::Exhausted } else { Reason::NotRecorded };
            Ok(Found::Nothing { reason, expected: any.filter(|_| exhausted) })
        }
    }
}
