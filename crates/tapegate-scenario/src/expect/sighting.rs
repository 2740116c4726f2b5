//! What a message of the client looks like: all that is said of it must fit.

use tapegate_core::frame::Envelope;
use tapegate_core::json::path::{Child, Path};
use tapegate_core::json::{Cursor, Fault, Kind, member};

use super::test::{Test, each_text};
use crate::pattern::Glob;

/// Values that lie deeper are not looked for by paths; texts are found at any depth.
const DEPTH_MAX: usize = 128;
/// Requests that use nothing of a server, besides those for lists.
const LOOKS: [&str; 5] =
    ["initialize", "server/discover", "subscriptions/listen", "ping", "logging/setLevel"];

/// What a message of the client looks like.
#[derive(Debug, Clone, Default)]
pub struct Sighting {
    /// Its method, one of these, with wildcards.
    pub(super) methods: Vec<Glob>,
    /// The tool, prompt or resource that it is about, one of these, with wildcards.
    pub(super) names: Vec<Glob>,
    /// The phase it came in, one of these, with wildcards.
    pub(super) phases: Vec<Glob>,
    /// The method of the server's request that it answers, one of these, with wildcards.
    pub(super) replies: Vec<Glob>,
    /// What its arguments have, by paths into them.
    pub(super) args: Vec<(Path, Test)>,
    /// What the message has, by paths into it.
    pub(super) places: Vec<(Path, Test)>,
    /// What one of its texts must be.
    pub(super) texts: Vec<Test>,
}

/// A message of the client, as it is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'a> {
    /// All of it: an object, or bytes that are no message.
    pub(super) bytes: &'a [u8],
    /// What it says about itself, if it is one.
    pub(super) envelope: Option<&'a Envelope<'a>>,
    /// The phase it came in.
    pub(super) phase: &'a str,
    /// The method of the request that it answers.
    pub(super) answers: Option<&'a str>,
}

impl Message<'_> {
    /// Whether it only shakes hands, asks what there is, or tells something: nothing is used by it.
    pub(super) fn looks_around(&self) -> bool {
        let Some(method) = self.envelope.and_then(|it| it.method) else { return false };
        let method = method.decode();
        LOOKS.contains(&&*method)
            || method.ends_with("/list")
            || method.starts_with("notifications/")
    }
}

impl Sighting {
    /// Whether it is said in which phases messages are meant.
    pub(super) fn has_phases(&self) -> bool {
        !self.phases.is_empty()
    }

    /// Whether messages of this phase may be meant.
    pub(super) fn is_in(&self, phase: &str) -> bool {
        any(&self.phases, phase)
    }

    /// Whether it is about answers to the server's own questions.
    pub(super) fn has_replies(&self) -> bool {
        !self.replies.is_empty()
    }

    /// Whether it is about answers to questions of this method.
    pub(super) fn answers(&self, method: &str) -> bool {
        self.has_replies() && any(&self.replies, method)
    }

    /// Whether this is such a message.
    pub(super) fn is(&self, message: &Message<'_>) -> bool {
        let Message { bytes, envelope, phase, answers } = message;
        if !self.is_in(phase) || !self.fits_envelope(*envelope) {
            return false;
        }
        if !self.replies.is_empty() && !answers.is_some_and(|method| any(&self.replies, method)) {
            return false;
        }
        let arguments = envelope.and_then(|it| it.params).and_then(|it| member(it, "arguments"));
        let at = |json: Option<&[u8]>, (path, test): &(Path, Test)| found(json, path, test);
        self.args.iter().all(|one| at(arguments, one))
            && self.places.iter().all(|one| at(envelope.map(|_| *bytes), one))
            && self.texts.iter().all(|test| self.fits_text(test, bytes, envelope.is_some()))
    }

    fn fits_envelope(&self, envelope: Option<&Envelope<'_>>) -> bool {
        let method = envelope.and_then(|it| it.method).map(|method| method.decode());
        let name = envelope.and_then(|it| it.name.or(it.uri)).map(|name| name.decode());
        let fits = |globs: &[Glob], text: Option<&str>| {
            globs.is_empty() || text.is_some_and(|text| any(globs, text))
        };
        fits(&self.methods, method.as_deref()) && fits(&self.names, name.as_deref())
    }

    fn fits_text(&self, test: &Test, bytes: &[u8], json: bool) -> bool {
        match json {
            true => each_text(bytes, &mut |text| test.holds_for(text)),
            false => test.holds_for(&String::from_utf8_lossy(bytes)),
        }
    }
}

/// Whether one of the patterns fits; without any, everything does.
fn any(globs: &[Glob], text: &str) -> bool {
    globs.is_empty() || globs.iter().any(|glob| glob.fits(text))
}

/// Whether a value that `path` leads to passes. Without one, its absence is what is tested.
fn found(json: Option<&[u8]>, path: &Path, test: &Test) -> bool {
    let (mut some, mut passed) = (false, false);
    let mut take = |value: &[u8]| {
        some = true;
        passed |= test.holds(Some(value));
    };
    if let Some(json) = json {
        // The message was valid when it was read.
        let mut cursor = Cursor::new(json);
        if let Ok(cursor) = &mut cursor {
            walk(cursor, path, &[0], DEPTH_MAX, &mut take).ok();
        }
    }
    if some { passed } else { test.holds(None) }
}

/// Goes through a value and gives `take` what the path leads to. `open` are the steps of the path
/// that may come next.
fn walk(
    cursor: &mut Cursor<'_>,
    path: &Path,
    open: &[usize],
    depth: usize,
    take: &mut dyn FnMut(&[u8]),
) -> Result<(), Fault> {
    let kind = cursor.kind()?;
    if depth == 0 || open.is_empty() || !matches!(kind, Kind::Object | Kind::Array) {
        return cursor.value().map(drop);
    }
    cursor.open()?;
    let (mut first, mut index) = (true, 0);
    loop {
        let key;
        let child = match kind {
            Kind::Object => {
                let Some(found) = cursor.key(&mut first)? else { return Ok(()) };
                key = found.decode();
                Child::Key(&key)
            }
            _ => {
                if !cursor.element(&mut first)? {
                    return Ok(());
                }
                index += 1;
                Child::Index(index - 1)
            }
        };
        let (next, reached) = step(path, open, child);
        if reached {
            let value = cursor.clone().value()?;
            take(value);
        }
        walk(cursor, path, &next, depth - 1, take)?;
    }
}

/// Where the path stands in a child, and whether it ends there.
fn step(path: &Path, open: &[usize], child: Child<'_>) -> (Vec<usize>, bool) {
    let (mut next, mut reached) = (Vec::new(), false);
    for &at in open {
        let step = &path.steps[at];
        if step.anywhere {
            next.push(at);
        }
        if step.select.takes(child) {
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
