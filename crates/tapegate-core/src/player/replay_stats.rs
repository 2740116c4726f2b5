//! Counts what happens in a replay, and reports it.

use std::io;

use super::client_replies::ChangedReply;
use super::likeness::RequestLikeness;
use super::report::{
    DifferingRequest, Divergence, DivergenceReason, ExtraRead, NearMatch, ReplayNotice,
    ReplaySummary, UnusedRequest,
};
use super::tape::{LiveRequest, PlayerTape, request_subject};
use super::tape_run::BitSet;
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
pub(super) struct ReplayStats {
    notice: Box<dyn FnMut(ReplayNotice<'_>)>,
    counts: ReplaySummary,
    /// The total size of the divergences and changed answers that are kept.
    kept_bytes: usize,
    /// The recorded requests that were made at least once.
    used_requests: BitSet,
}

impl ReplayStats {
    pub(super) fn new(notice: Box<dyn FnMut(ReplayNotice<'_>)>) -> Self {
        Self {
            notice,
            counts: ReplaySummary::default(),
            kept_bytes: 0,
            used_requests: BitSet::default(),
        }
    }

    pub(super) fn debug(&mut self, message: String) {
        (self.notice)(ReplayNotice::Debug(message));
    }

    pub(super) fn warn(&mut self, message: String) {
        (self.notice)(ReplayNotice::Warn(message));
    }

    /// A request was answered from the tape.
    pub(super) fn count_matched(&mut self, request_number: u32) {
        self.counts.matched += 1;
        self.mark_used(request_number);
    }

    /// A recorded request was made, whether or not the tape has its answer.
    pub(super) fn mark_used(&mut self, request_number: u32) {
        self.used_requests.set(request_number);
    }

    /// A request that was matched to the tape has no answer there after all.
    pub(super) fn count_unmatched(&mut self) {
        self.counts.matched = self.counts.matched.saturating_sub(1);
    }

    /// Reports which recorded request a live one was matched to.
    pub(super) fn report_match(
        &mut self,
        number: u32,
        live_request: &LiveRequest<'_>,
        how: &'static str,
    ) {
        (self.notice)(ReplayNotice::Matched { number, request: live_request.text, how });
    }

    /// A request was answered from the tape although it differs slightly.
    pub(super) fn differs(
        &mut self,
        tape: &mut PlayerTape,
        request_number: u32,
        live_request: &LiveRequest<'_>,
    ) -> io::Result<()> {
        self.counts.differing += 1;
        let number = tape.entry_of(request_number).number;
        let recorded = tape.request(request_number)?;
        (self.notice)(ReplayNotice::Differs { number, recorded, request: live_request.text });
        if self.counts.differing_first.len() < KEPT_MAX {
            let (recorded, request) = (recorded.to_vec(), live_request.text.to_vec());
            self.counts.differing_first.push(DifferingRequest { number, recorded, request });
        }
        Ok(())
    }

    /// A request was answered from the tape although it is not the next one there.
    pub(super) fn report_early(&mut self, number: u32, live_request: &LiveRequest<'_>) {
        let what = subject(live_request.envelope);
        self.warn(format!("{what} is out of order; answered as #{number}"));
        self.report_extra_read(number, live_request, false);
    }

    /// A read was made more often than recorded.
    pub(super) fn report_repeated_read(&mut self, number: u32, live_request: &LiveRequest<'_>) {
        let what = subject(live_request.envelope);
        self.warn(format!(
            "{what} is requested more often than recorded; answered as #{number} again"
        ));
        self.report_extra_read(number, live_request, true);
    }

    fn report_extra_read(&mut self, number: u32, live_request: &LiveRequest<'_>, again: bool) {
        self.counts.extra_reads += 1;
        if self.counts.extra_reads_first.len() < KEPT_MAX {
            let request = live_request.text.to_vec();
            self.counts.extra_reads_first.push(ExtraRead { number, request, again });
        }
    }

    /// The client answered the server differently than recorded.
    pub(super) fn report_changed_reply(&mut self, reply: ChangedReply) {
        (self.notice)(ReplayNotice::Replied(&reply));
        self.counts.changed_replies += 1;
        self.counts.failed_replies += u64::from(reply.fails);
        let bytes = reply.recorded.len() + reply.live.len();
        let kept = self.counts.changed_replies_first.len();
        // The first is always kept, so that a report is never empty.
        if kept == 0 || kept < KEPT_MAX && self.kept_bytes + bytes <= KEPT_BYTES_MAX {
            self.kept_bytes += bytes;
            self.counts.changed_replies_first.push(reply);
        }
    }

    /// A recorded read was skipped.
    pub(super) fn skipped(&mut self, tape: &mut PlayerTape, request_number: u32) -> io::Result<()> {
        let number = tape.entry_of(request_number).number;
        let frame = Frame::read(tape.request(request_number)?);
        let what = frame.envelope().map(subject).unwrap_or_default();
        self.warn(format!("{what} of #{number} was not requested; skipped"));
        Ok(())
    }

    /// A request was answered from the tape because a recorded one is similar enough.
    pub(super) fn report_near_match(
        &mut self,
        number: u32,
        score: f64,
        paths: &[String],
        ties: u32,
    ) {
        let paths = paths.join(", ");
        self.debug(format!("matched request {number} with score {score:.2}; differing: {paths}"));
        if ties > 0 {
            let come = if ties == 1 { "request matches" } else { "requests match" };
            self.debug(format!("{ties} other {come} equally well; the first is used"));
        }
    }

    /// A request was answered without the tape, as any server would answer it.
    pub(super) fn count_default_answer(&mut self) {
        self.counts.courtesies += 1;
    }

    /// A request is not on the tape. Returns the number of the nearest recorded one.
    pub(super) fn report_divergence(
        &mut self,
        tape: &mut PlayerTape,
        (session, tape_session, passed_on): (u32, Option<u32>, bool),
        live_request: &LiveRequest<'_>,
        (reason, expected): (DivergenceReason, Option<u32>),
    ) -> io::Result<Option<u32>> {
        let (next, nearest) = nearest(tape, live_request, expected)?;
        // The next request explains a divergence only where the order matters.
        let next = next.filter(|_| {
            matches!(reason, DivergenceReason::OutOfOrder | DivergenceReason::OtherParams)
        });
        let number = nearest.first().or(next.as_ref()).map(|near| near.number);
        let divergence = Divergence {
            session,
            tape_session,
            method: live_request
                .envelope
                .method
                .map(|method| method.decode().into_owned())
                .unwrap_or_default(),
            name: request_subject(live_request.envelope).map(|name| name.decode().into_owned()),
            request: live_request.text.to_vec(),
            reason,
            next,
            nearest,
            passed_on,
        };
        (self.notice)(ReplayNotice::Diverged(&divergence));
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
    pub(super) fn report_passthrough_failure(&mut self, (requests, reason): (u64, String)) {
        self.counts.server_failed += requests;
        self.counts.server_failure.get_or_insert(reason);
    }

    /// Whether no client has made this request. A ping is never looked up on the tape.
    pub(super) fn is_unused(&self, tape: &PlayerTape, request_number: u32) -> bool {
        !self.used_requests.contains(request_number) && !tape.is_ping(request_number)
    }

    /// The outcome of the replay, and whether the tape could be read for it. If not, unused
    /// requests are counted but not named.
    pub(super) fn summary(&self, tape: &mut PlayerTape) -> (ReplaySummary, io::Result<()>) {
        let mut summary = self.counts.clone();
        let mut read = Ok(());
        let (mut calls_made, mut calls_left) = (false, false);
        for request_number in 0..tape.request_count() {
            let is_call = !tape.is_setup(request_number);
            if !self.is_unused(tape, request_number) {
                calls_made |= is_call && self.used_requests.contains(request_number);
                continue;
            }
            calls_left |= is_call;
            summary.unused += 1;
            // After an error the rest is still counted, because the index needs no bodies.
            if summary.unused_first.len() < KEPT_MAX && read.is_ok() {
                match unused_request(tape, request_number) {
                    Ok(unused) => summary.unused_first.push(unused),
                    Err(error) => read = Err(error),
                }
            }
        }
        summary.only_setup = calls_left && !calls_made;
        (summary, read)
    }
}

fn unused_request(tape: &mut PlayerTape, request_number: u32) -> io::Result<UnusedRequest> {
    let number = tape.entry_of(request_number).number;
    let frame = Frame::read(tape.request(request_number)?);
    let envelope = frame.envelope();
    let method = envelope.and_then(|envelope| envelope.method);
    Ok(UnusedRequest {
        number,
        method: method.map(|method| method.decode().into_owned()).unwrap_or_default(),
        name: envelope.and_then(request_subject).map(|name| name.decode().into_owned()),
    })
}

/// The expected request, and the nearest recorded requests, nearest first.
fn nearest(
    tape: &mut PlayerTape,
    live_request: &LiveRequest<'_>,
    expected: Option<u32>,
) -> io::Result<(Option<NearMatch>, Vec<NearMatch>)> {
    let mut candidates: Vec<u32> = expected.into_iter().collect();
    let mut request_number = tape.index.first_with_subject(live_request.signature).unwrap_or(NONE);
    while request_number != NONE && candidates.len() < LOOKED_MAX {
        candidates.push(request_number);
        request_number = tape.index.next_with_subject(request_number);
    }
    if candidates.is_empty() {
        // No recorded request has this subject; another one of the same method may help.
        candidates.extend(0..tape.request_count().min(LOOKED_MAX as u32));
    }
    let wanted = RequestLikeness::of(live_request.text, &tape.signer);
    let mut next = None;
    let mut nearest: Vec<(u32, bool, NearMatch)> = Vec::new();
    let mut looked_bytes = 0;
    for (index, request_number) in candidates.into_iter().enumerate() {
        if nearest.iter().any(|(other, ..)| *other == request_number) {
            continue;
        }
        // Large requests cost time to compare, and the client waits for its error.
        if looked_bytes > LOOKED_BYTES_MAX {
            break;
        }
        let number = tape.entry_of(request_number).number;
        let request = tape.request(request_number)?.to_vec();
        looked_bytes += request.len();
        let frame = Frame::read(&request);
        let method = frame.envelope().and_then(|envelope| envelope.method);
        let same_method = method.map(|text| text.bytes())
            == live_request.envelope.method.map(|text| text.bytes());
        let recorded = RequestLikeness::of(&request, &tape.signer);
        let score = if same_method { wanted.score(&recorded) } else { 0.0 };
        let near =
            NearMatch { number, request, score, session: tape.session_of(request_number) + 1 };
        if index == 0 && expected.is_some() {
            next = Some(near.clone());
        }
        if same_method {
            nearest.push((request_number, recorded.about == wanted.about, near));
            // No mode answers a call with that of another tool, however equal the rest is. Among
            // equally near ones, the expected request stays first.
            nearest.sort_by(|(_, one_like, one), (_, two_like, two)| {
                two_like.cmp(one_like).then(two.score.total_cmp(&one.score))
            });
            nearest.truncate(NEAREST_MAX);
        }
    }
    Ok((next, nearest.into_iter().map(|(.., near)| near).collect()))
}

/// A short description of what a request asks for.
fn subject(envelope: &Envelope<'_>) -> String {
    let method = envelope.method.map(|method| method.decode()).unwrap_or_default();
    let name =
        request_subject(envelope).map(|name| format!(" {}", name.decode())).unwrap_or_default();
    format!("{method}{name}")
}
