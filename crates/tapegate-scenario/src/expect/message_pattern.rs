//! The description of a client message; all its parts must match.

use tapegate_core::frame::Envelope;
use tapegate_core::json::path::{ChildPosition, JsonPath};
use tapegate_core::json::{Cursor, JsonFault, JsonKind, member};

use super::expectation_test::{ExpectationTest, each_text};
use crate::pattern::SimpleGlob;

/// Paths do not reach values nested deeper than this; texts are found at any depth.
const DEPTH_MAX: usize = 128;
/// Requests that use nothing of a server, besides those for lists.
const LOOKS: [&str; 5] =
    ["initialize", "server/discover", "subscriptions/listen", "ping", "logging/setLevel"];

/// The description of a client message.
#[derive(Debug, Clone, Default)]
pub struct MessagePattern {
    /// Globs for its method.
    pub(super) methods: Vec<SimpleGlob>,
    /// Globs for the tool, prompt or resource that it names.
    pub(super) names: Vec<SimpleGlob>,
    /// Globs for the phase in which it came.
    pub(super) phases: Vec<SimpleGlob>,
    /// Globs for the method of the server's request that it answers.
    pub(super) replies: Vec<SimpleGlob>,
    /// Tests of its arguments, by path.
    pub(super) args: Vec<(JsonPath, ExpectationTest)>,
    /// Tests of the message, by path.
    pub(super) places: Vec<(JsonPath, ExpectationTest)>,
    /// Tests of which each must hold for some text in it.
    pub(super) texts: Vec<ExpectationTest>,
}

/// A client message, as it is examined.
#[derive(Debug, Clone, Copy)]
pub(super) struct ClientMessage<'a> {
    /// All of it: an object, or bytes that are not a message.
    pub(super) bytes: &'a [u8],
    /// The envelope, if it is a message.
    pub(super) envelope: Option<&'a Envelope<'a>>,
    /// The phase in which it came.
    pub(super) phase: &'a str,
    /// The method of the request that it answers.
    pub(super) answers: Option<&'a str>,
}

impl ClientMessage<'_> {
    /// Whether it is a handshake, a list request or a notification, which use nothing of the
    /// server.
    pub(super) fn is_housekeeping(&self) -> bool {
        let Some(method) = self.envelope.and_then(|it| it.method) else { return false };
        let method = method.decode();
        LOOKS.contains(&&*method)
            || method.ends_with("/list")
            || method.starts_with("notifications/")
    }
}

impl MessagePattern {
    /// Whether it is limited to some phases.
    pub(super) fn has_phases(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Whether it covers messages of this phase.
    pub(super) fn is_in(&self, phase: &str) -> bool {
        any_matches(&self.phases, phase)
    }

    /// Whether it describes replies to the server's requests.
    pub(super) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Whether it describes replies to requests of this method.
    pub(super) fn answers(&self, method: &str) -> bool {
        self.has_replies() && any_matches(&self.replies, method)
    }

    /// Whether the message matches.
    pub(super) fn matches(&self, message: &ClientMessage<'_>) -> bool {
        let ClientMessage { bytes, envelope, phase, answers } = message;
        if !self.is_in(phase) || !self.fits_envelope(*envelope) {
            return false;
        }
        if !self.replies.is_empty()
            && !answers.is_some_and(|method| any_matches(&self.replies, method))
        {
            return false;
        }
        let arguments = envelope.and_then(|it| it.params).and_then(|it| member(it, "arguments"));
        let at = |json: Option<&[u8]>, (path, test): &(JsonPath, ExpectationTest)| {
            matches_at(json, path, test)
        };
        self.args.iter().all(|one| at(arguments, one))
            && self.places.iter().all(|one| at(envelope.map(|_| *bytes), one))
            && self.texts.iter().all(|test| self.fits_text(test, bytes, envelope.is_some()))
    }

    fn fits_envelope(&self, envelope: Option<&Envelope<'_>>) -> bool {
        let method = envelope.and_then(|it| it.method).map(|method| method.decode());
        let name = envelope.and_then(|it| it.name.or(it.uri)).map(|name| name.decode());
        let fits = |globs: &[SimpleGlob], text: Option<&str>| {
            globs.is_empty() || text.is_some_and(|text| any_matches(globs, text))
        };
        fits(&self.methods, method.as_deref()) && fits(&self.names, name.as_deref())
    }

    fn fits_text(&self, test: &ExpectationTest, bytes: &[u8], json: bool) -> bool {
        match json {
            true => each_text(bytes, &mut |text| test.holds_for(text)),
            false => test.holds_for(&String::from_utf8_lossy(bytes)),
        }
    }
}

/// Whether one of the globs matches; without any, everything does.
fn any_matches(globs: &[SimpleGlob], text: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.matches(text))
}

/// Whether some value at `path` passes. If there is none, its absence is tested.
fn matches_at(json: Option<&[u8]>, path: &JsonPath, test: &ExpectationTest) -> bool {
    let (mut some, mut passed) = (false, false);
    let mut take = |value: &[u8]| {
        some = true;
        passed |= test.matches(Some(value));
    };
    if let Some(json) = json {
        // The message was validated when it was read.
        let mut cursor = Cursor::new(json);
        if let Ok(cursor) = &mut cursor {
            walk(cursor, path, &[0], DEPTH_MAX, &mut take).ok();
        }
    }
    // One value that passes is enough, as with lists in other tests.
    if some { passed } else { test.matches(None) }
}

/// Walks a value and passes everything that the path selects to `take`. `open` holds the steps of
/// the path that may come next.
fn walk(
    cursor: &mut Cursor<'_>,
    path: &JsonPath,
    open: &[usize],
    depth: usize,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), JsonFault> {
    let kind = cursor.kind()?;
    // The value is read in any case, so that the cursor is behind it.
    if depth == 0 || open.is_empty() || !matches!(kind, JsonKind::Object | JsonKind::Array) {
        return cursor.value().map(drop);
    }
    cursor.open()?;
    let mut index = 0;
    loop {
        let key;
        let child = match kind {
            JsonKind::Object => {
                let Some(found) = cursor.next_key()? else { return Ok(()) };
                key = found.decode();
                ChildPosition::Key(&key)
            }
            _ => {
                if !cursor.next_item()? {
                    return Ok(());
                }
                index += 1;
                ChildPosition::Index(index - 1)
            }
        };
        let (next, reached) = step(path, open, child);
        if reached {
            // With a copy, because the path may also lead into this value.
            let value = cursor.clone().value()?;
            take(value);
        }
        walk(cursor, path, &next, depth - 1, take)?;
    }
}

/// The open steps of the path in a child, and whether the path ends there.
fn step(path: &JsonPath, open: &[usize], child: ChildPosition<'_>) -> (Vec<usize>, bool) {
    let (mut next, mut reached) = (Vec::new(), false);
    for &at in open {
        let step = &path.steps[at];
        // `..name` may match here and deeper.
        if step.anywhere {
            next.push(at);
        }
        if step.select.matches(child) {
            match at + 1 == path.steps.len() {
                true => reached = true,
                false => next.push(at + 1),
            }
        }
    }
    next.sort_unstable();
    next.dedup();
    (next, reached)
}
