//! Assigns requests to conversations, each with its own run through the tape.

use std::io;

use super::super::find::{self, Found};
use super::super::live::Live;
use super::super::reads::{self, Lenient};
use super::super::run::{Part, Run};
use super::super::tape::Asked;
use super::super::{Context, OnExhausted, Reason};
use super::Turn;

/// How many conversations a shared session may have at once.
const RUNS_MAX: usize = 4096;

impl Turn<'_, '_> {
    /// Matches a request to the tape, for the conversation that it belongs to. Reads without side
    /// effects may be made more or less often than recorded.
    pub(super) fn find(&mut self, asked: &Asked<'_>) -> io::Result<Found> {
        let found = self.find_recorded(asked)?;
        if found.ask().is_some() {
            return Ok(found);
        }
        let Context { tape, options } = &mut self.context;
        let runs = match &mut self.shared_run {
            Some(run) => std::slice::from_mut(&mut **run),
            None => &mut self.live.runs[..],
        };
        for run in runs {
            if let Some(Lenient { found, skipped }) = reads::find(tape, options, run, asked)? {
                self.live.run = run.number;
                for ask in skipped {
                    self.desk.skipped(tape, ask)?;
                }
                return Ok(found);
            }
        }
        Ok(found)
    }

    fn find_recorded(&mut self, asked: &Asked<'_>) -> io::Result<Found> {
        let Context { tape, options } = &mut self.context;
        if let Some(run) = &mut self.shared_run {
            return find::find(tape, options, run, asked, options.strict_params);
        }
        if self.live.shared {
            return self.find_for_one_of_many(asked);
        }
        if self.live.runs.is_empty() {
            let run = open_run(&self.context, self.live, self.played, asked);
            self.live.run = run.number;
            self.live.runs.push(run);
        }
        let Context { tape, options } = &mut self.context;
        find::find(tape, options, &mut self.live.runs[0], asked, options.strict_params)
    }

    /// Sessionless clients cannot be told apart, but their requests can: one belongs to a
    /// conversation that has reached exactly this point, or begins a new one.
    fn find_for_one_of_many(&mut self, asked: &Asked<'_>) -> io::Result<Found> {
        let mut nothing = Found::Nothing { reason: Reason::NotRecorded, expected: None };
        let begins = self.begins(asked)?;
        for exact in [true, false] {
            let Context { tape, options } = &mut self.context;
            for run in &mut self.live.runs {
                let exact = exact || options.strict_params;
                match find::find(tape, options, run, asked, exact)? {
                    missing @ Found::Nothing { .. } => nothing = missing,
                    found => {
                        self.live.run = run.number;
                        self.forget_finished();
                        return Ok(found);
                    }
                }
            }
            if begins && self.live.runs.len() < RUNS_MAX {
                let mut run = open_run(&self.context, self.live, self.played, asked);
                let Context { tape, options } = &mut self.context;
                let found = find::find(tape, options, &mut run, asked, options.strict_params)?;
                self.live.run = run.number;
                self.live.runs.push(run);
                return Ok(found);
            }
        }
        Ok(nothing)
    }

    /// Drops conversations that have ended; the last one is kept for comparison.
    fn forget_finished(&mut self) {
        let Context { tape, options } = &self.context;
        if options.on_exhausted == OnExhausted::Error && self.live.runs.len() > 1 {
            self.live.runs.retain_mut(|run| !run.is_finished(tape));
        }
    }

    /// Whether a recorded session begins with this request.
    fn begins(&mut self, asked: &Asked<'_>) -> io::Result<bool> {
        let tape = &mut self.context.tape;
        for session in tape.index.sessions().to_vec() {
            for ask in session {
                if tape.is_same(ask, asked)? {
                    return Ok(true);
                }
                if !tape.was_malformed(ask, asked)? {
                    break;
                }
            }
        }
        Ok(self.live.runs.is_empty())
    }
}

/// A run through the recorded session that fits the first request best: one that begins with the
/// same subject, then the one played least, then the first.
fn open_run(context: &Context<'_>, live: &mut Live, played: &mut [u32], asked: &Asked<'_>) -> Run {
    let index = &context.tape.index;
    let begins = |session: usize| {
        let asks = &index.sessions()[session];
        !asks.is_empty() && index.ask(asks.start).signature.like == asked.signature.like
    };
    let is_empty = |session: usize| index.sessions()[session].is_empty();
    let best = (0..played.len())
        .min_by_key(|session| (is_empty(*session), !begins(*session), played[*session]));
    if let Some(session) = best {
        played[session] += 1;
    }
    live.runs_made += 1;
    Run::new(live.runs_made, Part::Session(best.unwrap_or(0) as u32))
}
