//! The values that some server could find at a path.
//!
//! Servers fold the case of keys, parse JSON in strings, take a single value for a list of one and
//! a list of one for its value. This walk follows a path in all of these ways at once. Values
//! nested too deeply or with too many branches are reported as unclear.

use std::borrow::Cow;
use std::ops::ControlFlow;

use tapegate_core::frame;
use tapegate_core::json::path::{Path, Select, Step};
use tapegate_core::json::{self, Cursor, Fault, Str, write_str};
use tapegate_core::lenient::embedded::{Embedded, embedded, pieces, unescaped};
use tapegate_core::lenient::key::{fold, fold_name, fold_text};
use tapegate_core::lenient::reading::Budget;
use tapegate_core::lenient::spelling::percent_decode;

/// How deep values are followed.
const DEPTH_MAX: usize = 128;
/// How many levels of JSON inside strings are followed.
pub(super) const NESTED_MAX: usize = 4;
/// How often escapes are decoded in a text that may contain a key.
const DECODED_MAX: usize = 3;

/// A path, as lenient readers follow it.
#[derive(Debug)]
pub(super) struct LenientPath {
    steps: Vec<Step>,
    /// The folded key of each step that has one.
    folded: Vec<String>,
}

/// Why a walk stopped early.
pub(super) enum End {
    /// The caller has seen enough.
    Found,
    /// A value cannot be analysed.
    Unclear,
}

/// The state of a walk.
struct Walk<'p, 's> {
    path: &'p LenientPath,
    /// Whether only keys are read leniently.
    keys_only: bool,
    budget: &'s Budget,
    show: &'s mut dyn FnMut(&[u8]) -> bool,
}

/// The position of a walk.
#[derive(Clone, Copy)]
struct At {
    /// The index of the next step.
    step: usize,
    depth: usize,
    /// How many strings were parsed on the way.
    nested: usize,
    /// Whether every key on the way was an exact match.
    exact: bool,
}

type Flow = ControlFlow<End>;

impl LenientPath {
    pub(super) fn new(path: &Path) -> Self {
        let folded = path.steps.iter().map(|step| match &step.select {
            Select::Key(key) => fold_name(key),
            _ => String::new(),
        });
        Self { folded: folded.collect(), steps: path.steps.clone() }
    }

    /// Visits every value that some server could find at the path, until `show` returns true.
    pub(super) fn walk(
        &self,
        arguments: &[u8],
        budget: &Budget,
        show: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Flow {
        let walk = Walk { path: self, keys_only: false, budget, show };
        walk.start(arguments)
    }

    /// Whether a reader that is lenient about keys finds a value under another key than a strict
    /// one.
    pub(super) fn has_lookalike(&self, arguments: &[u8], budget: &Budget) -> bool {
        if !self.steps.iter().any(|step| matches!(step.select, Select::Key(_))) {
            return false;
        }
        let walk = Walk { path: self, keys_only: true, budget, show: &mut |_| true };
        walk.start(arguments).is_break()
    }
}

impl Walk<'_, '_> {
    fn start(mut self, text: &[u8]) -> Flow {
        let Ok(value) = json::check(text) else { return ControlFlow::Break(End::Unclear) };
        self.enter(value, At { step: 0, depth: 0, nested: 0, exact: true })
    }

    /// Handles a value at the path, or on the way to it.
    fn reach(&mut self, value: &[u8], at: At) -> Flow {
        if at.step < self.path.steps.len() {
            return self.enter(value, at);
        }
        let shown = !(self.keys_only && at.exact);
        match shown && (self.show)(value) {
            true => ControlFlow::Break(End::Found),
            false => ControlFlow::Continue(()),
        }
    }

    /// Takes the next step from a value to its children.
    fn enter(&mut self, value: &[u8], mut at: At) -> Flow {
        at.depth += 1;
        if at.depth > DEPTH_MAX || !self.budget.spend(value.len()) {
            return ControlFlow::Break(End::Unclear);
        }
        let step = &self.path.steps[at.step];
        let next = At { step: at.step + 1, ..at };
        match value.first() {
            Some(b'{') => self.object(value, at).unwrap_or(ControlFlow::Break(End::Unclear)),
            Some(b'[') => self.array(value, at).unwrap_or(ControlFlow::Break(End::Unclear)),
            _ if self.keys_only => ControlFlow::Continue(()),
            Some(b'"') => self.text(value, at),
            // A single value where a list is expected.
            _ if takes_single(&step.select) => self.reach(value, next),
            _ => ControlFlow::Continue(()),
        }
    }

    fn object(&mut self, value: &[u8], at: At) -> Result<Flow, Fault> {
        let step = &self.path.steps[at.step];
        let next = At { step: at.step + 1, ..at };
        let mut cursor = Cursor::new(value)?;
        let mut first = true;
        cursor.open()?;
        while let Some(key) = cursor.key(&mut first)? {
            let child = cursor.value()?;
            let taken = match &step.select {
                Select::All => Some(true),
                Select::Index(index) => {
                    (!self.keys_only && key.is(&index.to_string())).then_some(true)
                }
                Select::Key(name) if key.is(name) => Some(true),
                Select::Key(_) => self.path.is_like(at.step, key).then_some(false),
            };
            if let Some(exact) = taken {
                let flow = self.reach(child, At { exact: at.exact && exact, ..next });
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            // JavaScript readers merge the members of `__proto__` into this object.
            let is_merged = is_prototype(key);
            if step.anywhere || is_merged {
                let flow = self.enter_any(child, At { exact: at.exact && !is_merged, ..at });
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        // A single object where a list of objects is expected.
        let last = next.step == self.path.steps.len();
        if !self.keys_only && takes_single(&step.select) && !(last && step.select == Select::All) {
            return Ok(self.reach(value, next));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn array(&mut self, value: &[u8], at: At) -> Result<Flow, Fault> {
        let step = &self.path.steps[at.step];
        let next = At { step: at.step + 1, ..at };
        let mut cursor = Cursor::new(value)?;
        let (mut first, mut count) = (true, 0);
        cursor.open()?;
        while cursor.element(&mut first)? {
            let child = cursor.value()?;
            let taken = match &step.select {
                Select::All => true,
                Select::Index(index) => *index == count,
                // Arguments may be positional.
                Select::Key(_) => !self.keys_only && at.depth == 1,
            };
            count += 1;
            // A list where a single value is expected.
            let through = matches!(step.select, Select::Key(_)) && !self.keys_only;
            let mut flow = ControlFlow::Continue(());
            if taken {
                flow = self.reach(child, next);
            }
            if flow.is_continue() && (through || step.anywhere) {
                flow = self.enter_any(child, at);
            }
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the same step from a child.
    fn enter_any(&mut self, child: &[u8], at: At) -> Flow {
        match child.first() {
            Some(b'{' | b'[' | b'"') => self.enter(child, at),
            _ => ControlFlow::Continue(()),
        }
    }

    /// A string where a list or an object is expected: JSON, one value, or several separated by
    /// commas.
    fn text(&mut self, value: &[u8], at: At) -> Flow {
        let step = &self.path.steps[at.step];
        let next = At { step: at.step + 1, ..at };
        let Some(text) = json::string(value) else { return ControlFlow::Break(End::Unclear) };
        match embedded(&text) {
            Embedded::Json(_) if at.nested == NESTED_MAX => {
                return ControlFlow::Break(End::Unclear);
            }
            Embedded::Json(inner) => {
                // The outermost value, once parsed, is still the outermost.
                let depth = if at.depth == 1 { 0 } else { at.depth };
                self.enter(&inner, At { nested: at.nested + 1, depth, ..at })?;
            }
            // YAML, a query string or the like: unclear if it may contain the key.
            Embedded::Unclear if self.path.may_be_in(at.step, &text) => {
                return ControlFlow::Break(End::Unclear);
            }
            Embedded::Nothing if !step.anywhere && self.path.may_be_in(at.step, &text) => {
                if matches!(step.select, Select::Key(_)) {
                    return ControlFlow::Break(End::Unclear);
                }
            }
            _ => {}
        }
        if takes_single(&step.select) {
            self.reach(value, next)?;
            for piece in pieces(&text) {
                let mut raw = Vec::new();
                write_str(&mut raw, piece);
                self.reach(&raw, next)?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl LenientPath {
    /// Whether a text of unknown format may contain what a step leads to.
    fn may_be_in(&self, step: usize, text: &str) -> bool {
        let key = self.folded[step].as_str();
        if key.is_empty() {
            return true;
        }
        let mut text = Cow::Borrowed(text);
        for _ in 0..DECODED_MAX {
            if fold_text(&text).contains(key) {
                return true;
            }
            let plain = unescaped(&text).unwrap_or_else(|| text.to_string());
            let decoded = percent_decode(&plain).unwrap_or(plain);
            if decoded == text {
                return false;
            }
            text = Cow::Owned(decoded);
        }
        fold_text(&text).contains(key)
    }

    /// Whether a lenient reader takes a key for that of a step.
    fn is_like(&self, step: usize, key: Str<'_>) -> bool {
        let wanted = self.folded[step].as_bytes();
        if wanted.is_empty() {
            return false;
        }
        if !key.escaped && key.raw.is_ascii() {
            let bare = key.raw.trim_ascii();
            let bare = bare.strip_suffix(b"[]").unwrap_or(bare);
            let letters = bare.iter().filter(|byte| counts(**byte));
            return letters.map(u8::to_ascii_lowercase).eq(wanted.iter().copied());
        }
        fold(key).as_bytes() == wanted
    }
}

/// Whether a step to the elements of a list may be skipped for a single value.
fn takes_single(select: &Select) -> bool {
    matches!(select, Select::All | Select::Index(0))
}

/// Whether JavaScript readers merge the value of a key into the object around it.
fn is_prototype(key: Str<'_>) -> bool {
    *frame::fold(key) == *b"__proto__"
}

fn counts(byte: u8) -> bool {
    !matches!(byte, b'_' | b'-')
}
