//! Assigns requests to conversations, each with its own run through the tape.

use std::io;

use super::super::live_session::LiveSession;
use super::super::repeatable_reads::{self, LenientMatch};
use super::super::tape::LiveRequest;
use super::super::tape_match::{self, TapeMatch};
use super::super::tape_run::{RunScope, TapeRun};
use super::super::{DivergenceReason, OnExhausted, PlayContext};
use super::PlayerTurn;

/// How many conversations a shared session may have at once.
const RUNS_MAX: usize = 4096;

impl PlayerTurn<'_, '_> {
    /// Matches a request to the tape, for the conversation that it belongs to. Reads without side
    /// effects may be made more or less often than recorded.
    pub(super) fn find(&mut self, request: &LiveRequest<'_>) -> io::Result<TapeMatch> {
        let tape_match = self.find_recorded(request)?;
        if tape_match.request().is_some() {
            return Ok(tape_match);
        }
        let PlayContext { tape, options } = &mut self.context;
        let runs = match &mut self.shared_run {
            Some(run) => std::slice::from_mut(&mut **run),
            None => &mut self.live.runs[..],
        };
        for run in runs {
            if let Some(LenientMatch { tape_match, skipped }) =
                repeatable_reads::find(tape, options, run, request)?
            {
                self.live.run = run.number;
                for request_number in skipped {
                    self.stats.skipped(tape, request_number)?;
                }
                return Ok(tape_match);
            }
        }
        Ok(tape_match)
    }

    fn find_recorded(&mut self, request: &LiveRequest<'_>) -> io::Result<TapeMatch> {
        let PlayContext { tape, options } = &mut self.context;
        // Shared by all clients, so there is no conversation to choose.
        if let Some(run) = &mut self.shared_run {
            return tape_match::find(tape, options, run, request, options.strict_params);
        }
        if self.live.shared {
            return self.find_sessionless(request);
        }
        if self.live.runs.is_empty() {
            let run = open_run(&self.context, self.live, self.played, request);
            self.live.run = run.number;
            self.live.runs.push(run);
        }
        let PlayContext { tape, options } = &mut self.context;
        tape_match::find(tape, options, &mut self.live.runs[0], request, options.strict_params)
    }

    /// Sessionless clients cannot be told apart, but their requests can: one belongs to a
    /// conversation that has reached exactly this point, or begins a new one.
    fn find_sessionless(&mut self, request: &LiveRequest<'_>) -> io::Result<TapeMatch> {
        let mut nothing =
            TapeMatch::Nothing { reason: DivergenceReason::NotRecorded, expected: None };
        let begins = self.starts_session(request)?;
        // Exact matches of all conversations come first: a loose one could take another's request.
        for exact in [true, false] {
            let PlayContext { tape, options } = &mut self.context;
            for run in &mut self.live.runs {
                let exact = exact || options.strict_params;
                match tape_match::find(tape, options, run, request, exact)? {
                    missing @ TapeMatch::Nothing { .. } => nothing = missing,
                    tape_match => {
                        self.live.run = run.number;
                        self.drop_finished_runs();
                        return Ok(tape_match);
                    }
                }
            }
            if begins && self.live.runs.len() < RUNS_MAX {
                let mut run = open_run(&self.context, self.live, self.played, request);
                let PlayContext { tape, options } = &mut self.context;
                let tape_match =
                    tape_match::find(tape, options, &mut run, request, options.strict_params)?;
                self.live.run = run.number;
                self.live.runs.push(run);
                return Ok(tape_match);
            }
        }
        Ok(nothing)
    }

    /// Drops conversations that have ended; the last one is kept for comparison.
    fn drop_finished_runs(&mut self) {
        let PlayContext { tape, options } = &self.context;
        // With other settings, a finished conversation still answers repeated requests.
        if options.on_exhausted == OnExhausted::Error && self.live.runs.len() > 1 {
            self.live.runs.retain_mut(|run| !run.is_finished(tape));
        }
    }

    /// Whether a recorded session begins with this request.
    fn starts_session(&mut self, request: &LiveRequest<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        for session in tape.index.sessions().to_vec() {
            for request_number in session {
                if tape.is_same(request_number, request)? {
                    return Ok(true);
                }
                if !tape.was_malformed_request(request_number, request)? {
                    break;
                }
            }
        }
        // The first request opens a conversation even if it fits none, so that the difference can
        // be reported.
        Ok(self.live.runs.is_empty())
    }
}

/// A run through the recorded session that fits the first request best: one that begins with the
/// same subject, then the one played least, then the first.
fn open_run(
    context: &PlayContext<'_>,
    live: &mut LiveSession,
    played: &mut [u32],
    request: &LiveRequest<'_>,
) -> TapeRun {
    let index = &context.tape.index;
    let begins = |session: usize| {
        let request_numbers = &index.sessions()[session];
        !request_numbers.is_empty()
            && index.request(request_numbers.start).signature.like == request.signature.like
    };
    let is_empty = |session: usize| index.sessions()[session].is_empty();
    let best = (0..played.len())
        .min_by_key(|session| (is_empty(*session), !begins(*session), played[*session]));
    if let Some(session) = best {
        played[session] += 1;
    }
    live.runs_made += 1;
    TapeRun::new(live.runs_made, RunScope::Session(best.unwrap_or(0) as u32))
}
