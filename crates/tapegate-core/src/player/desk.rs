//! Counts what happens in a replay, and reports it.

use std::io;

use super::fuzzy::Leaves;
use super::replies::ChangedReply;
use super::report::{Differing, Divergence, ExtraRead, Near, Notice, Reason, Summary, Unused};
use super::run::Bits;
use super::tape::{Asked, Tape, named};
use crate::frame::{Envelope, Frame};
use crate::tape::index::NONE;

/// How many divergences, differing and unused requests are kept in full, of each kind.
const KEPT_MAX: usize = 1000;
/// The maximum total size of the divergences kept, since requests may be large.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// How many recorded requests are compared to find the nearest ones, and their maximum total size.
const LOOKED_MAX: usize = 500;
const LOOKED_BYTES_MAX: usize = 4 << 20;
/// How many of the nearest ones are reported.
const NEAREST_MAX: usize = 3;

/// Counts what happens in a replay, and reports it.
pub(super) struct Desk {
    notice: Box<dyn FnMut(Notice<'_>)>,
    counts: Summary,
    /// The total size of the divergences and changed answers that are kept.
    kept_bytes: usize,
    /// The recorded requests that were made at least once.
    asked: Bits,
}

impl Desk {
    pub(super) fn new(notice: Box<dyn FnMut(Notice<'_>)>) -> Self {
        Self { notice, counts: Summary::default(), kept_bytes: 0, asked: Bits::default() }
    }

    pub(super) fn debug(&mut self, words: String) {
        (self.notice)(Notice::Debug(words));
    }

    pub(super) fn warn(&mut self, words: String) {
        (self.notice)(Notice::Warn(words));
    }

    /// A request was answered from the tape.
    pub(super) fn matched(&mut self, ask: u32) {
        self.counts.matched += 1;
        self.asked.set(ask);
    }

    /// A request that was matched to the tape has no answer there after all.
    pub(super) fn unmatched(&mut self) {
        self.counts.matched = self.counts.matched.saturating_sub(1);
    }

    /// Reports which recorded request a live one was matched to.
    pub(super) fn found(&mut self, number: u32, asked: &Asked<'_>, how: &'static str) {
        (self.notice)(Notice::Matched { number, asked: asked.text, how });
    }

    /// A request was answered from the tape although it differs slightly.
    pub(super) fn differs(
        &mut self,
        tape: &mut Tape,
        ask: u32,
        asked: &Asked<'_>,
    ) -> io::Result<()> {
        self.counts.differing += 1;
        let number = tape.slot_of(ask).number;
        let recorded = tape.request(ask)?;
        (self.notice)(Notice::Differs { number, recorded, asked: asked.text });
        if self.counts.differing_first.len() < KEPT_MAX {
            let (recorded, asked) = (recorded.to_vec(), asked.text.to_vec());
            self.counts.differing_first.push(Differing { number, recorded, asked });
        }
        Ok(())
    }

    /// A request was answered from the tape although it is not the next one there.
    pub(super) fn early(&mut self, number: u32, asked: &Asked<'_>) {
        let what = subject(asked.said);
        self.warn(format!("{what} is out of order; answered as #{number}"));
        self.extra(number, asked, false);
    }

    /// A read was made more often than recorded.
    pub(super) fn again(&mut self, number: u32, asked: &Asked<'_>) {
        let what = subject(asked.said);
        self.warn(format!("{what} is made more often than recorded; answered as #{number} again"));
        self.extra(number, asked, true);
    }

    fn extra(&mut self, number: u32, asked: &Asked<'_>, again: bool) {
        self.counts.extra_reads += 1;
        if self.counts.extra_reads_first.len() < KEPT_MAX {
            let asked = asked.text.to_vec();
            self.counts.extra_reads_first.push(ExtraRead { number, asked, again });
        }
    }

    /// The client answered the server differently than recorded.
    pub(super) fn reply_changed(&mut self, reply: ChangedReply) {
        (self.notice)(Notice::Replied(&reply));
        self.counts.changed_replies += 1;
        self.counts.failed_replies += u64::from(reply.fails);
        let bytes = reply.recorded.len() + reply.live.len();
        let kept = self.counts.changed_replies_first.len();
        if kept == 0 || kept < KEPT_MAX && self.kept_bytes + bytes <= KEPT_BYTES_MAX {
            self.kept_bytes += bytes;
            self.counts.changed_replies_first.push(reply);
        }
    }

    /// A recorded read was skipped.
    pub(super) fn skipped(&mut self, tape: &mut Tape, ask: u32) -> io::Result<()> {
        let number = tape.slot_of(ask).number;
        let frame = Frame::read(tape.request(ask)?);
        let what = frame.envelope().map(subject).unwrap_or_default();
        self.warn(format!("{what} of #{number} was not requested; skipped"));
        Ok(())
    }

    /// A request was answered from the tape because a recorded one is similar enough.
    pub(super) fn near(&mut self, number: u32, score: f64, paths: &[String], ties: u32) {
        let paths = paths.join(", ");
        self.debug(format!("matched request {number} with score {score:.2}; differing: {paths}"));
        if ties > 0 {
            let come = if ties == 1 { "request matches" } else { "requests match" };
            self.debug(format!("{ties} other {come} equally well; the first is used"));
        }
    }

    /// A request was answered without the tape, as any server would answer it.
    pub(super) fn courtesy(&mut self) {
        self.counts.courtesies += 1;
    }

    /// A request is not on the tape. Returns the number of the nearest recorded one.
    pub(super) fn diverged(
        &mut self,
        tape: &mut Tape,
        (session, tape_session, passed_on): (u32, Option<u32>, bool),
        asked: &Asked<'_>,
        (reason, expected): (Reason, Option<u32>),
    ) -> io::Result<Option<u32>> {
        let (next, nearest) = nearest(tape, asked, expected)?;
        let next = next.filter(|_| matches!(reason, Reason::OutOfOrder | Reason::OtherParams));
        let number = nearest.first().or(next.as_ref()).map(|near| near.number);
        let divergence = Divergence {
            session,
            tape_session,
            method: asked
                .said
                .method
                .map(|method| method.decode().into_owned())
                .unwrap_or_default(),
            name: named(asked.said).map(|name| name.decode().into_owned()),
            request: asked.text.to_vec(),
            reason,
            next,
            nearest,
            passed_on,
        };
        (self.notice)(Notice::Diverged(&divergence));
        if passed_on {
            self.counts.passed_on += 1;
        }
        self.counts.unmatched += 1;
        let near = divergence.nearest.iter().chain(&divergence.next).map(|near| near.request.len());
        let bytes = divergence.request.len() + near.sum::<usize>();
        let first = self.counts.divergences.is_empty();
        let room =
            self.counts.divergences.len() < KEPT_MAX && self.kept_bytes + bytes <= KEPT_BYTES_MAX;
        if first || room {
            self.kept_bytes += bytes;
            self.counts.divergences.push(divergence);
        }
        Ok(number)
    }

    /// The server behind the tape failed to answer requests that were passed on.
    pub(super) fn server_failed(&mut self, (requests, why): (u64, String)) {
        self.counts.server_failed += requests;
        self.counts.server_failure.get_or_insert(why);
    }

    /// Whether no client has made this request. A ping is never looked up on the tape.
    pub(super) fn is_unused(&self, tape: &Tape, ask: u32) -> bool {
        !self.asked.has(ask) && !tape.is_ping(ask)
    }

    /// The outcome of the replay, and whether the tape could be read for it. If not, unused
    /// requests are counted but not named.
    pub(super) fn summary(&self, tape: &mut Tape) -> (Summary, io::Result<()>) {
        let mut summary = self.counts.clone();
        let mut read = Ok(());
        let (mut calls_made, mut calls_left) = (false, false);
        for ask in 0..tape.asks() {
            let is_call = !tape.is_setup(ask);
            if !self.is_unused(tape, ask) {
                calls_made |= is_call && self.asked.has(ask);
                continue;
            }
            calls_left |= is_call;
            summary.unused += 1;
            if summary.unused_first.len() < KEPT_MAX && read.is_ok() {
                match unused(tape, ask) {
                    Ok(unused) => summary.unused_first.push(unused),
                    Err(error) => read = Err(error),
                }
            }
        }
        summary.only_setup = calls_left && !calls_made;
        (summary, read)
    }
}

fn unused(tape: &mut Tape, ask: u32) -> io::Result<Unused> {
    let number = tape.slot_of(ask).number;
    let frame = Frame::read(tape.request(ask)?);
    let said = frame.envelope();
    let method = said.and_then(|said| said.method);
    Ok(Unused {
        number,
        method: method.map(|method| method.decode().into_owned()).unwrap_or_default(),
        name: said.and_then(named).map(|name| name.decode().into_owned()),
    })
}

/// The expected request, and the nearest recorded requests, nearest first.
fn nearest(
    tape: &mut Tape,
    asked: &Asked<'_>,
    expected: Option<u32>,
) -> io::Result<(Option<Near>, Vec<Near>)> {
    let mut candidates: Vec<u32> = expected.into_iter().collect();
    let mut ask = tape.index.first_like(asked.signature).unwrap_or(NONE);
    while ask != NONE && candidates.len() < LOOKED_MAX {
        candidates.push(ask);
        ask = tape.index.next_like(ask);
    }
    if candidates.is_empty() {
        // No recorded request has this subject; another one of the same method may help.
        candidates.extend(0..tape.asks().min(LOOKED_MAX as u32));
    }
    let leaves = Leaves::of(&tape.signer.canonical(asked.text), None);
    let mut next = None;
    let mut nearest: Vec<(u32, Near)> = Vec::new();
    let mut looked_bytes = 0;
    for (place, ask) in candidates.into_iter().enumerate() {
        if nearest.iter().any(|(other, _)| *other == ask) {
            continue;
        }
        if looked_bytes > LOOKED_BYTES_MAX {
            break;
        }
        let number = tape.slot_of(ask).number;
        let request = tape.request(ask)?.to_vec();
        looked_bytes += request.len();
        let frame = Frame::read(&request);
        let method = frame.envelope().and_then(|said| said.method);
        let same_method =
            method.map(|text| text.bytes()) == asked.said.method.map(|text| text.bytes());
        let score = match same_method {
            true => leaves.score(&Leaves::of(&tape.signer.canonical(&request), None)),
            false => 0.0,
        };
        let near = Near { number, request, score, session: tape.session_of(ask) + 1 };
        if place == 0 && expected.is_some() {
            next = Some(near.clone());
        }
        if same_method {
            nearest.push((ask, near));
            // Among equally near ones, the expected request stays first.
            nearest.sort_by(|one, two| two.1.score.total_cmp(&one.1.score));
            nearest.truncate(NEAREST_MAX);
        }
    }
    Ok((next, nearest.into_iter().map(|(_, near)| near).collect()))
}

/// A short description of what a request asks for.
fn subject(said: &Envelope<'_>) -> String {
    let method = said.method.map(|method| method.decode()).unwrap_or_default();
    let name = named(said).map(|name| format!(" {}", name.decode())).unwrap_or_default();
    format!("{method}{name}")
}
