//! Caches the features of requests, so that a search for the nearest one reads each of them once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasher;
use std::io;

use foldhash::fast::FixedState;

use super::fuzzy::Leaves;
use super::tape::{named, naming};
use crate::frame::Frame;
use crate::json::Str;
use crate::signature::Signer;

/// How many recorded requests are cached, and how many leaves in total.
const KEPT_MAX: usize = 1 << 18;
const LEAVES_MAX: usize = 1 << 20;

/// The features of a request.
pub(super) struct Likeness {
    /// A hash of its subject: the method, and the name or uri.
    pub(super) about: u64,
    /// All other leaves of its params.
    pub(super) leaves: Leaves,
}

/// The features of recorded requests, as far as they were needed and fit.
#[derive(Default)]
pub(super) struct Likenesses {
    known: HashMap<u32, Likeness, foldhash::fast::RandomState>,
    leaves: usize,
    /// The last one that did not fit.
    spare: Option<Likeness>,
}

impl Likeness {
    /// The features of the request `text`.
    pub(super) fn of(text: &[u8], signer: &Signer) -> Self {
        let frame = Frame::read(text);
        let said = frame.envelope();
        let method = said.and_then(|said| said.method);
        let meaning = |text: Option<Str<'_>>| text.map(|text| text.bytes().into_owned());
        let about = (meaning(method), meaning(said.and_then(named)));
        let without = said.and_then(naming);
        Self {
            about: FixedState::default().hash_one(about),
            leaves: Leaves::of(&signer.canonical(text), without),
        }
    }
}

impl Likenesses {
    /// The features of a recorded request, which is read if they are not cached.
    pub(super) fn find(
        &mut self,
        ask: u32,
        read: impl FnOnce() -> io::Result<Likeness>,
    ) -> io::Result<&Likeness> {
        let room = self.known.len() < KEPT_MAX && self.leaves < LEAVES_MAX;
        match self.known.entry(ask) {
            Entry::Occupied(known) => Ok(known.into_mut()),
            Entry::Vacant(free) => {
                let likeness = read()?;
                if !room {
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

    fn likeness(text: &str) -> Likeness {
        Likeness::of(text.as_bytes(), &Signer::default())
    }

    #[test]
    fn what_a_request_is_about_is_told_apart_from_its_leaves() {
        let one = likeness(r#"{"id":1,"method":"tools/call","params":{"name":"a","x":1,"y":2}}"#);
        let two = likeness(r#"{"id":2,"method":"tools\/call","params":{"y":3,"x":1,"name":"a"}}"#);
        assert_eq!(one.about, two.about);
        assert!((one.leaves.score(&two.leaves) - 0.5).abs() < 1e-9);
        for other in [
            r#"{"id":1,"method":"tools/call","params":{"name":"b","x":1}}"#,
            r#"{"id":1,"method":"prompts/get","params":{"name":"a","x":1}}"#,
            r#"{"id":1,"method":"tools/call","params":{"uri":"a","x":1}}"#,
        ] {
            assert_ne!(one.about, likeness(other).about, "{other}");
        }
    }

    #[test]
    fn each_request_is_read_once_as_long_as_there_is_room() {
        let mut all = Likenesses::default();
        let mut reads = 0;
        let mut look = |all: &mut Likenesses, ask: u32| {
            let text = format!(r#"{{"id":1,"method":"m{ask}","params":{{"a":1,"b":2}}}}"#);
            let read = || {
                reads += 1;
                Ok(likeness(&text))
            };
            let about = all.find(ask, read).unwrap().about;
            assert_eq!(about, likeness(&text).about);
            reads
        };
        assert_eq!((look(&mut all, 1), look(&mut all, 2), look(&mut all, 1)), (1, 2, 2));
        all.leaves = LEAVES_MAX;
        assert_eq!((look(&mut all, 3), look(&mut all, 3), look(&mut all, 2)), (3, 4, 4));
    }
}
