//! Matches a live request to the tape.

use std::io;

use super::fuzzy;
use super::likeness::RequestLikeness;
use super::tape::{LiveRequest, PlayerTape};
use super::tape_run::TapeRun;
use super::{DivergenceReason, MatchMode, OnExhausted, PlayerOptions};
use crate::json;
use crate::tape::index::NONE;

/// How many requests with other cursors are passed over to find one with the same cursor.
const CURSORS_MAX: usize = 64;

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum TapeMatch {
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
    Nothing {
        reason: DivergenceReason,
        /// The request that was expected instead.
        expected: Option<u32>,
    },
}

impl TapeMatch {
    pub(super) fn request(&self) -> Option<u32> {
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
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
    exact: bool,
) -> io::Result<TapeMatch> {
    match options.mode {
        MatchMode::Sequential => find_in_order(tape, options, run, request, exact),
        MatchMode::ByRequest => find_by_request(tape, options, run, request),
        MatchMode::Fuzzy { threshold } => {
            let tape_match = find_by_request(tape, options, run, request)?;
            match tape_match.request() {
                Some(_) => Ok(tape_match),
                None => find_by_likeness(tape, options, run, request, threshold),
            }
        }
    }
}

pub(super) fn find_in_order(
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
    exact: bool,
) -> io::Result<TapeMatch> {
    if tape.is_task_request(request.signature) || is_repeated_list(tape, run, request) {
        return find_by_request(tape, options, run, request);
    }
    let mut next = run.peek(tape);
    if next.is_none() {
        match options.on_exhausted {
            OnExhausted::Cycle if run.has_begun() => run.rewind(),
            OnExhausted::Last => return find_last_like(tape, run, request),
            _ => {}
        }
        next = run.peek(tape);
    }
    // Skipped requests stay available, since another client may make them.
    let mut before = None;
    while let Some(request_number) = next {
        // A request that the live client makes now is not skipped.
        let needless = is_optional(tape, run, request_number)
            && !tape.has_same_subject(request_number, request)?;
        if !needless && !tape.was_malformed_request(request_number, request)? {
            break;
        }
        // Copied only if something is skipped, which is rare.
        before.get_or_insert_with(|| run.checkpoint());
        run.skip();
        next = run.peek(tape);
    }
    let tape_match = match next {
        Some(request_number) => take_next_or_earlier(tape, run, request, request_number, exact)?,
        None => TapeMatch::Nothing { reason: DivergenceReason::TapeEnded, expected: None },
    };
    // A failed search must not use up the requests it passed.
    if let (TapeMatch::Nothing { .. }, Some(place)) = (&tape_match, before) {
        run.restore(place);
    }
    Ok(tape_match)
}

/// Whether a request may be skipped. A client that continues after the end of the tape does not
/// initialize its session again.
fn is_optional(tape: &PlayerTape, run: &TapeRun, request_number: u32) -> bool {
    let is_read = || tape.is_read(tape.index.request(request_number).signature);
    tape.is_probe(request_number)
        || run.has_cycled() && (tape.is_initialize(request_number) || is_read())
}

/// Takes the next request in order, or one that may be made before it.
fn take_next_or_earlier(
    tape: &mut PlayerTape,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
    request_number: u32,
    exact: bool,
) -> io::Result<TapeMatch> {
    let tape_match = if tape.is_same(request_number, request)? {
        TapeMatch::Same(request_number)
    } else if let Some(ahead) = find_first_same(tape, request, run.concurrent_requests(tape))? {
        // The recorded client made these before it had all answers, so their order means nothing.
        run.take_out_of_order(tape, ahead);
        return Ok(TapeMatch::Same(ahead));
    } else if let Some(ahead) = find_first_same(tape, request, run.row(tape, request.signature))? {
        run.take_out_of_order(tape, ahead);
        // The order of lists does not matter, so it is not reported.
        let list = tape.relists.is_list(request.signature);
        return Ok(if list { TapeMatch::Same(ahead) } else { TapeMatch::Early(ahead) });
    } else if !exact
        && tape.has_same_subject(request_number, request)?
        && !is_recorded(tape, request)?
    {
        TapeMatch::Differing(request_number)
    } else {
        let differs = exact
            && tape.has_same_subject(request_number, request)?
            && !is_recorded(tape, request)?;
        let reason =
            if differs { DivergenceReason::OtherParams } else { DivergenceReason::OutOfOrder };
        return Ok(TapeMatch::Nothing { reason, expected: Some(request_number) });
    };
    run.advance(tape, request_number);
    Ok(tape_match)
}

/// Whether a list is requested again.
fn is_repeated_list(tape: &PlayerTape, run: &TapeRun, request: &LiveRequest<'_>) -> bool {
    let first = run.session().and_then(|session| tape.relists.first(session, request.signature));
    first.is_some_and(|first| run.is_used(first))
}

/// Whether the tape has exactly this request anywhere. Then its own answer is on the tape too, and
/// that of another call would be wrong.
fn is_recorded(tape: &mut PlayerTape, request: &LiveRequest<'_>) -> io::Result<bool> {
    let mut request_number = tape.index.first_with_hash(request.signature).unwrap_or(NONE);
    while request_number != NONE {
        if tape.is_same(request_number, request)? {
            return Ok(true);
        }
        request_number = tape.index.next_with_hash(request_number);
    }
    Ok(false)
}

/// The first of these requests that is the same.
fn find_first_same(
    tape: &mut PlayerTape,
    request: &LiveRequest<'_>,
    among: Vec<u32>,
) -> io::Result<Option<u32>> {
    for request_number in among {
        if tape.is_same(request_number, request)? {
            return Ok(Some(request_number));
        }
    }
    Ok(None)
}

/// The last played request for the same subject, after the end of the tape.
fn find_last_like(
    tape: &mut PlayerTape,
    run: &TapeRun,
    request: &LiveRequest<'_>,
) -> io::Result<TapeMatch> {
    let (mut same, mut like) = (None, None);
    let mut request_number = tape.index.first_with_subject(request.signature).unwrap_or(NONE);
    while request_number != NONE {
        if run.is_used(request_number) && tape.has_same_subject(request_number, request)? {
            like = Some(request_number);
            same = if tape.is_same(request_number, request)? { Some(request_number) } else { same };
        }
        request_number = tape.index.next_with_subject(request_number);
    }
    let nothing = TapeMatch::Nothing { reason: DivergenceReason::TapeEnded, expected: None };
    Ok(same.map(TapeMatch::Same).or(like.map(TapeMatch::Differing)).unwrap_or(nothing))
}

fn find_by_request(
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
) -> io::Result<TapeMatch> {
    let Some(head) = tape.index.first_with_hash(request.signature) else {
        return Ok(TapeMatch::Nothing { reason: DivergenceReason::NotRecorded, expected: None });
    };
    if let Some(request_number) = find_unused(tape, run, head, request)? {
        run.take_request(tape, head, request_number);
        return Ok(TapeMatch::Same(request_number));
    }
    match (options.on_exhausted, run.last(tape, head)) {
        (OnExhausted::Last, Some(request_number)) => Ok(TapeMatch::Same(request_number)),
        (OnExhausted::Cycle, Some(_)) => {
            // Only this request starts over. The position in the tape does not matter here.
            run.mark_unused(tape, head);
            let again = find_unused(tape, run, head, request)?;
            again.iter().for_each(|request_number| run.take_request(tape, head, *request_number));
            let nothing =
                TapeMatch::Nothing { reason: DivergenceReason::Exhausted, expected: None };
            Ok(again.map_or(nothing, TapeMatch::Same))
        }
        (_, Some(request_number)) => Ok(TapeMatch::Nothing {
            reason: DivergenceReason::Exhausted,
            expected: Some(request_number),
        }),
        // The hashes collided; the request itself differs.
        (_, None) => {
            Ok(TapeMatch::Nothing { reason: DivergenceReason::NotRecorded, expected: None })
        }
    }
}

/// The first unused request that is the same, from the run's own session if possible.
fn find_unused(
    tape: &mut PlayerTape,
    run: &mut TapeRun,
    head: u32,
    request: &LiveRequest<'_>,
) -> io::Result<Option<u32>> {
    // On a tape of one session, a second pass would find nothing new.
    let several = tape.index.sessions().len() > 1 && run.session().is_some();
    let passes: &[bool] = if several { &[true, false] } else { &[false] };
    for &own in passes {
        let (mut request_number, mut first, mut looked) =
            (run.first_unused(tape, head, own), None, 0);
        while request_number != NONE && looked < CURSORS_MAX {
            let foreign = own && Some(tape.session_of(request_number)) != run.session();
            if !foreign && !run.is_used(request_number) && tape.is_same(request_number, request)? {
                // A single candidate needs no comparison of cursors.
                let no_choice =
                    first.is_none() && tape.index.next_with_hash(request_number) == NONE;
                if no_choice || has_same_cursor(tape, request_number, request)? {
                    return Ok(Some(request_number));
                }
                first.get_or_insert(request_number);
                looked += 1;
            }
            request_number = tape.index.next_with_hash(request_number);
        }
        if first.is_some() {
            return Ok(first);
        }
    }
    Ok(None)
}

/// Whether a recorded request has the same `cursor`, or the live request has none.
fn has_same_cursor(
    tape: &mut PlayerTape,
    request_number: u32,
    request: &LiveRequest<'_>,
) -> io::Result<bool> {
    let cursor = request.envelope.params.and_then(|params| json::member(params, "cursor"));
    Ok(cursor.is_none() || tape.has_cursor(request_number, cursor)?)
}

fn find_by_likeness(
    tape: &mut PlayerTape,
    options: &PlayerOptions,
    run: &mut TapeRun,
    request: &LiveRequest<'_>,
    threshold: f64,
) -> io::Result<TapeMatch> {
    let wanted = RequestLikeness::of(request.text, &tape.signer);
    let reuse = options.on_exhausted != OnExhausted::Error;
    let mut best: Option<(f64, bool, u32)> = None;
    let (mut ties, mut used_up) = (0, None);
    let mut request_number = tape.index.first_with_subject(request.signature).unwrap_or(NONE);
    while request_number != NONE {
        let recorded = tape.likeness(request_number)?;
        if recorded.about == wanted.about {
            let score = wanted.score(recorded);
            let fresh = !run.is_used(request_number);
            if fresh || reuse {
                let rank = (score, fresh, request_number);
                match best {
                    // An unused request wins over a used one with the same score.
                    Some((score, unused, _)) if (score, unused) > (rank.0, fresh) => {}
                    Some((score, unused, _)) if (score, unused) == (rank.0, fresh) => ties += 1,
                    _ => (best, ties) = (Some(rank), 0),
                }
            } else if score >= threshold {
                used_up = Some(request_number);
            }
        }
        request_number = tape.index.next_with_subject(request_number);
    }
    match best.filter(|(score, ..)| *score >= threshold) {
        // So far subjects were only compared by hash.
        Some((score, _, ask)) if tape.has_same_subject(ask, request)? => {
            // Later searches by hash must see that it is used.
            let head = tape.index.first_with_hash(tape.index.request(ask).signature).unwrap_or(ask);
            run.take_request(tape, head, ask);
            let paths =
                fuzzy::differing(&tape.signer.canonical(request.text), &tape.canonical(ask)?);
            Ok(TapeMatch::Near { ask, score, paths, ties })
        }
        _ => {
            let reason = match used_up {
                Some(_) => DivergenceReason::Exhausted,
                None => DivergenceReason::NotRecorded,
            };
            Ok(TapeMatch::Nothing { reason, expected: used_up })
        }
    }
}
