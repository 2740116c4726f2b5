//! Writes an event by copying the previous one and replacing what differs.
//!
//! An agent calls the same tool again and again, and the lines about these calls differ only in a
//! few values.

use std::ops::Range;

use super::chain::put_number;
use super::line::{MemberRanges, START, SecondCache, put_text};

/// The values that differ between similar events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventValues<'a> {
    /// Microseconds since 1970.
    pub wall_us: i64,
    /// The raw id of the message.
    pub message_id: Option<&'a str>,
    /// How long the decision took.
    pub latency_us: Option<u64>,
    /// Reported to the caller as `correlation_id`.
    pub request_id: Option<&'a str>,
    /// The number of the message on its tape.
    pub tape_seq: Option<u64>,
}

/// The text of an event, used as a template for similar ones.
#[derive(Debug, Default)]
pub(super) struct EventTemplate {
    text: Vec<u8>,
    places: MemberRanges,
}

impl EventTemplate {
    /// Takes the event that was written from `start` on as the new template.
    pub(super) fn capture(&mut self, all: &[u8], start: usize, places: MemberRanges) {
        let moved =
            |place: Option<Range<usize>>| place.map(|place| place.start - start..place.end - start);
        self.text.clear();
        self.text.extend_from_slice(&all[start..]);
        self.places = MemberRanges {
            after_moment: places.after_moment - start,
            message_id: moved(places.message_id),
            latency_us: moved(places.latency_us),
            request_id: moved(places.request_id),
            tape_seq: moved(places.tape_seq),
        };
    }

    /// Whether an event with these values has the same members as the template.
    pub(super) fn has_same_members(&self, differing: &EventValues<'_>) -> bool {
        let MemberRanges { message_id, latency_us, request_id, tape_seq, .. } = &self.places;
        message_id.is_some() == differing.message_id.is_some()
            && latency_us.is_some() == differing.latency_us.is_some()
            && request_id.is_some() == differing.request_id.is_some()
            && tape_seq.is_some() == differing.tape_seq.is_some()
            && !self.text.is_empty()
    }

    /// Appends an event that [`EventTemplate::has_same_members`].
    pub(super) fn write(
        &self,
        with: &EventValues<'_>,
        second: &mut SecondCache,
        out: &mut Vec<u8>,
    ) {
        out.reserve(self.text.len() + START.len());
        out.extend_from_slice(START);
        second.write(with.wall_us, out);
        out.push(b'"');
        let mut at = self.places.after_moment;
        let mut upto = |place: &Range<usize>, out: &mut Vec<u8>| {
            out.extend_from_slice(&self.text[at..place.start]);
            at = place.end;
        };
        let MemberRanges { message_id, latency_us, request_id, tape_seq, .. } = &self.places;
        if let (Some(place), Some(id)) = (message_id, with.message_id) {
            upto(place, out);
            put_text(out, id);
        }
        if let (Some(place), Some(number)) = (latency_us, with.latency_us) {
            upto(place, out);
            put_number(out, number);
        }
        if let (Some(place), Some(id)) = (request_id, with.request_id) {
            upto(place, out);
            put_text(out, id);
        }
        if let (Some(place), Some(number)) = (tape_seq, with.tape_seq) {
            upto(place, out);
            put_number(out, number);
        }
        out.extend_from_slice(&self.text[at..]);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::activity::{ActivityEvent, line};

    type Parts = (i64, Option<String>, Option<u64>, Option<String>, Option<u64>);

    fn parts() -> impl Strategy<Value = Parts> {
        let text = || proptest::option::of("[a-z\"\\\\ä\n]{0,6}");
        (
            -1_000_000_000_000_i64..4_000_000_000_000_000,
            text(),
            any::<Option<u64>>(),
            text(),
            any::<Option<u64>>(),
        )
    }

    fn event(parts: &Parts) -> ActivityEvent<'_> {
        let (wall_us, message_id, latency_us, request_id, tape_seq) = parts;
        ActivityEvent {
            wall_us: *wall_us,
            level: "info",
            kind: "decision",
            message_id: message_id.as_deref().map(Into::into),
            latency_us: *latency_us,
            request_id: request_id.as_deref().map(Into::into),
            tape_seq: *tape_seq,
            tool: Some("x".into()),
            extra: "\"a\":1".into(),
            ..ActivityEvent::default()
        }
    }

    proptest! {
        #[test]
        fn a_line_by_a_form_is_the_line_of_the_event(one in parts(), two in parts()) {
            let (mut text, mut form) = (b"before".to_vec(), EventTemplate::default());
            let start = text.len();
            let places = line::write_at(&event(&one), &mut SecondCache::default(), &mut text);
            form.capture(&text, start, places);
            let (wall_us, message_id, latency_us, request_id, tape_seq) = &two;
            let differing = EventValues {
                wall_us: *wall_us,
                message_id: message_id.as_deref(),
                latency_us: *latency_us,
                request_id: request_id.as_deref(),
                tape_seq: *tape_seq,
            };
            let presence = |of: &Parts| (of.1.is_some(), of.2.is_some(), of.3.is_some(), of.4.is_some());
            prop_assert_eq!(form.has_same_members(&differing), presence(&one) == presence(&two));
            if form.has_same_members(&differing) {
                let (mut like, mut whole) = (Vec::new(), Vec::new());
                form.write(&differing, &mut SecondCache::default(), &mut like);
                line::write(&event(&two), &mut whole);
                prop_assert_eq!(like, whole);
            }
        }
    }
}
