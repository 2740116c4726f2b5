//! Caches the features of requests, so that a search for the nearest one reads each of them once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::io;

use foldhash::fast::FixedState;

use super::fuzzy::LeafHashes;
use super::tape::{request_subject, subject_key};
use crate::frame::Frame;
use crate::json::JsonStr;
use crate::signature::Signer;

/// How many recorded requests are cached, and how many leaves in total.
const KEPT_MAX: usize = 1 << 18;
const LEAVES_MAX: usize = 1 << 20;

/// The features of a request.
pub(super) struct RequestLikeness {
    /// A hash of its subject: the method, and the name or uri.
    pub(super) about: u64,
    /// All other leaves of its params.
    leaves: LeafHashes,
}

/// The features of recorded requests, as far as they were needed and fit.
#[derive(Default)]
pub(super) struct LikenessCache {
    known: HashMap<u32, RequestLikeness, foldhash::fast::RandomState>,
    leaves: usize,
    /// The last one that did not fit.
    spare: Option<RequestLikeness>,
}

impl RequestLikeness {
    /// The features of the request `text`.
    pub(super) fn of(text: &[u8], signer: &Signer) -> Self {
        let frame = Frame::read(text);
        let envelope = frame.envelope();
        let method = envelope.and_then(|envelope| envelope.method);
        let meaning = |text: Option<JsonStr<'_>>| text.map(|text| text.bytes().into_owned());
        let about = (meaning(method), meaning(envelope.and_then(request_subject)));
        let without = envelope.and_then(subject_key);
        Self {
            about: FixedState::default().hash_one(about),
            leaves: LeafHashes::of(&signer.canonical(text), without),
        }
    }

    /// How similar two requests are, from 0 to 1. Matching and every explanation use this one
    /// number, so that a threshold can be chosen by what is shown.
    pub(super) fn score(&self, other: &Self) -> f64 {
        // Another subject counts as one value that differs, so such a request is never equal.
        self.leaves.score(&other.leaves, usize::from(self.about != other.about))
    }
}

impl LikenessCache {
    /// The features of a recorded request, which is read if they are not cached.
    pub(super) fn find(
        &mut self,
        request_number: u32,
        read: impl FnOnce() -> io::Result<RequestLikeness>,
    ) -> io::Result<&RequestLikeness> {
        // Beyond the bounds each search reads the tape again: slower, but memory stays limited.
        let room = self.known.len() < KEPT_MAX && self.leaves < LEAVES_MAX;
        match self.known.entry(request_number) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let likeness = read()?;
                if !room {
                    // Kept in the cache only so that a reference can be returned.
                    return Ok(self.spare.insert(likeness));
                }
                self.leaves += likeness.leaves.len();
                Ok(free.insert(likeness))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn likeness(text: &str) -> RequestLikeness {
        RequestLikeness::of(text.as_bytes(), &Signer::default())
    }

    #[test]
    fn what_a_request_is_about_is_told_apart_from_its_leaves() {
        let one = likeness(r#"{"id":1,"method":"tools/call","params":{"name":"a","x":1,"y":2}}"#);
        let two = likeness(r#"{"id":2,"method":"tools\/call","params":{"y":3,"x":1,"name":"a"}}"#);
        assert_eq!(one.about, two.about);
        assert!((one.score(&two) - 0.5).abs() < 1e-9);
        for other in [
            r#"{"id":1,"method":"tools/call","params":{"name":"b","x":1}}"#,
            r#"{"id":1,"method":"prompts/get","params":{"name":"a","x":1}}"#,
            r#"{"id":1,"method":"tools/call","params":{"uri":"a","x":1}}"#,
        ] {
            assert_ne!(one.about, likeness(other).about, "{other}");
        }
    }

    #[test]
    fn a_request_with_another_subject_is_never_equal() {
        let call = |name: &str| {
            let params = format!(r#"{{"name":"{name}","x":1}}"#);
            likeness(&format!(r#"{{"id":1,"method":"tools/call","params":{params}}}"#))
        };
        assert!((call("a").score(&call("a")) - 1.0).abs() < 1e-9);
        assert!((call("a").score(&call("b")) - 0.5).abs() < 1e-9);
        // Not even if the names count as equal by their kind.
        assert!((call("run-1731664953488").score(&call("run-1731664953499")) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn each_request_is_read_once_as_long_as_there_is_room() {
        let mut all = LikenessCache::default();
        let mut reads = 0;
        let mut look = |all: &mut LikenessCache, request_number: u32| {
            let text =
                format!(r#"{{"id":1,"method":"m{request_number}","params":{{"a":1,"b":2}}}}"#);
            let read = || {
                reads += 1;
                Ok(likeness(&text))
            };
            let about = all.find(request_number, read).unwrap().about;
            assert_eq!(about, likeness(&text).about);
            reads
        };
        assert_eq!((look(&mut all, 1), look(&mut all, 2), look(&mut all, 1)), (1, 2, 2));
        all.leaves = LEAVES_MAX;
        assert_eq!((look(&mut all, 3), look(&mut all, 3), look(&mut all, 2)), (3, 4, 4));
    }
}
