//! The values that some server could find at a path.
//!
//! Servers fold the case of keys, parse JSON in strings, take a single value for a list of one and
//! a list of one for its value. This walk follows a path in all of these ways at once. Values
//! nested too deeply or with too many branches are reported as unclear.

use std::borrow::Cow;
use std::ops::ControlFlow;

use tapegate_core::frame;
use tapegate_core::json::path::{JsonPath, PathStep, StepSelector};
use tapegate_core::json::{self, JsonFault, JsonStr, write_str};
use tapegate_core::lenient::embedded::{EmbeddedJson, parse_embedded, pieces, unescaped};
use tapegate_core::lenient::key::{fold, fold_name, fold_text};
use tapegate_core::lenient::reading::ScanBudget;
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
    steps: Vec<PathStep>,
    /// The folded key of each step that has one.
    folded: Vec<String>,
}

/// Why a walk stopped early.
pub(super) enum WalkEnd {
    /// The caller has seen enough.
    Found,
    /// A value cannot be analysed.
    Unclear,
}

/// The state of a walk.
struct LenientWalk<'p, 's> {
    path: &'p LenientPath,
    /// Whether only keys are read leniently.
    keys_only: bool,
    budget: &'s ScanBudget,
    show: &'s mut dyn FnMut(&[u8]) -> bool,
}

#[derive(Clone, Copy)]
struct WalkPosition {
    /// The index of the next step.
    step: usize,
    depth: usize,
    /// How many strings were parsed on the way.
    nested: usize,
    /// Whether every key on the way was an exact match.
    exact: bool,
}

type WalkFlow = ControlFlow<WalkEnd>;

impl LenientPath {
    pub(super) fn new(path: &JsonPath) -> Self {
        let folded = path.steps.iter().map(|step| match &step.select {
            StepSelector::Key(key) => fold_name(key),
            _ => String::new(),
        });
        Self { folded: folded.collect(), steps: path.steps.clone() }
    }

    /// Visits every value that some server could find at the path, until `show` returns true.
    pub(super) fn walk(
        &self,
        arguments: &[u8],
        budget: &ScanBudget,
        show: &mut dyn FnMut(&[u8]) -> bool,
    ) -> WalkFlow {
        let walk = LenientWalk { path: self, keys_only: false, budget, show };
        walk.start(arguments)
    }

    /// Whether a reader that is lenient about keys finds a value under another key than a strict
    /// one.
    pub(super) fn has_lookalike(&self, arguments: &[u8], budget: &ScanBudget) -> bool {
        if !self.steps.iter().any(|step| matches!(step.select, StepSelector::Key(_))) {
            return false;
        }
        let walk = LenientWalk { path: self, keys_only: true, budget, show: &mut |_| true };
        walk.start(arguments).is_break()
    }
}

impl LenientWalk<'_, '_> {
    fn start(mut self, text: &[u8]) -> WalkFlow {
        let Ok(value) = json::check(text) else { return ControlFlow::Break(WalkEnd::Unclear) };
        self.visit_children(value, WalkPosition { step: 0, depth: 0, nested: 0, exact: true })
    }

    /// Handles a value at the path, or on the way to it.
    fn visit(&mut self, value: &[u8], at: WalkPosition) -> WalkFlow {
        if at.step < self.path.steps.len() {
            return self.visit_children(value, at);
        }
        let shown = !(self.keys_only && at.exact);
        match shown && (self.show)(value) {
            true => ControlFlow::Break(WalkEnd::Found),
            false => ControlFlow::Continue(()),
        }
    }

    /// Takes the next step from a value to its children.
    fn visit_children(&mut self, value: &[u8], mut at: WalkPosition) -> WalkFlow {
        at.depth += 1;
        if at.depth > DEPTH_MAX || !self.budget.spend(value.len()) {
            return ControlFlow::Break(WalkEnd::Unclear);
        }
        let step = &self.path.steps[at.step];
        let next = WalkPosition { step: at.step + 1, ..at };
        match value.first() {
            Some(b'{') => self.object(value, at).unwrap_or(ControlFlow::Break(WalkEnd::Unclear)),
            Some(b'[') => self.array(value, at).unwrap_or(ControlFlow::Break(WalkEnd::Unclear)),
            // `has_lookalike` asks only about keys; values in strings are covered by
            // `holds_nested`.
            _ if self.keys_only => ControlFlow::Continue(()),
            Some(b'"') => self.text(value, at),
            // A single value where a list is expected.
            _ if takes_single(&step.select) => self.visit(value, next),
            _ => ControlFlow::Continue(()),
        }
    }

    fn object(&mut self, value: &[u8], at: WalkPosition) -> Result<WalkFlow, JsonFault> {
        let step = &self.path.steps[at.step];
        let next = WalkPosition { step: at.step + 1, ..at };
        for member in json::members(value) {
            let (key, child) = member?;
            let taken = match &step.select {
                StepSelector::All => Some(true),
                StepSelector::Index(index) => {
                    (!self.keys_only && key.is(&index.to_string())).then_some(true)
                }
                StepSelector::Key(name) if key.is(name) => Some(true),
                // Go accepts `Force` for `force`; other readers also ignore `_` and `-`.
                StepSelector::Key(_) => self.path.key_may_match(at.step, key).then_some(false),
            };
            if let Some(exact) = taken {
                let flow = self.visit(child, WalkPosition { exact: at.exact && exact, ..next });
                if flow.is_break() {
                    return Ok(flow);
                }
            }
            // JavaScript readers merge the members of `__proto__` into this object.
            let is_merged = is_prototype(key);
            if step.anywhere || is_merged {
                let flow =
                    self.visit_child(child, WalkPosition { exact: at.exact && !is_merged, ..at });
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        // A single object where a list of objects is expected.
        let last = next.step == self.path.steps.len();
        if !self.keys_only
            && takes_single(&step.select)
            && !(last && step.select == StepSelector::All)
        {
            return Ok(self.visit(value, next));
        }
        Ok(ControlFlow::Continue(()))
    }

    fn array(&mut self, value: &[u8], at: WalkPosition) -> Result<WalkFlow, JsonFault> {
        let step = &self.path.steps[at.step];
        let next = WalkPosition { step: at.step + 1, ..at };
        for (count, child) in json::elements(value).enumerate() {
            let child = child?;
            let taken = match &step.select {
                StepSelector::All => true,
                StepSelector::Index(index) => *index == count,
                // Arguments may be positional.
                StepSelector::Key(_) => !self.keys_only && at.depth == 1,
            };
            // A list where a single value is expected.
            let through = matches!(step.select, StepSelector::Key(_)) && !self.keys_only;
            let mut flow = ControlFlow::Continue(());
            if taken {
                flow = self.visit(child, next);
            }
            if flow.is_continue() && (through || step.anywhere) {
                flow = self.visit_child(child, at);
            }
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the same step from a child.
    fn visit_child(&mut self, child: &[u8], at: WalkPosition) -> WalkFlow {
        match child.first() {
            Some(b'{' | b'[' | b'"') => self.visit_children(child, at),
            _ => ControlFlow::Continue(()),
        }
    }

    /// A string where a list or an object is expected: JSON, one value, or several separated by
    /// commas.
    fn text(&mut self, value: &[u8], at: WalkPosition) -> WalkFlow {
        let step = &self.path.steps[at.step];
        let next = WalkPosition { step: at.step + 1, ..at };
        let Some(text) = json::string(value) else { return ControlFlow::Break(WalkEnd::Unclear) };
        match parse_embedded(&text) {
            EmbeddedJson::Json(_) if at.nested == NESTED_MAX => {
                return ControlFlow::Break(WalkEnd::Unclear);
            }
            EmbeddedJson::Json(inner) => {
                // The outermost value, once parsed, is still the outermost.
                let depth = if at.depth == 1 { 0 } else { at.depth };
                self.visit_children(&inner, WalkPosition { nested: at.nested + 1, depth, ..at })?;
            }
            // YAML, a query string or the like: unclear if it may contain the key.
            EmbeddedJson::Unclear if self.path.may_be_in(at.step, &text) => {
                return ControlFlow::Break(WalkEnd::Unclear);
            }
            EmbeddedJson::Nothing if !step.anywhere && self.path.may_be_in(at.step, &text) => {
                if matches!(step.select, StepSelector::Key(_)) {
                    return ControlFlow::Break(WalkEnd::Unclear);
                }
            }
            _ => {}
        }
        if takes_single(&step.select) {
            self.visit(value, next)?;
            for piece in pieces(&text) {
                let mut raw = Vec::new();
                write_str(&mut raw, piece);
                self.visit(&raw, next)?;
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
    fn key_may_match(&self, step: usize, key: JsonStr<'_>) -> bool {
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
fn takes_single(select: &StepSelector) -> bool {
    matches!(select, StepSelector::All | StepSelector::Index(0))
}

/// Whether JavaScript readers merge the value of a key into the object around it.
fn is_prototype(key: JsonStr<'_>) -> bool {
    *frame::fold(key) == *b"__proto__"
}

fn counts(byte: u8) -> bool {
    !matches!(byte, b'_' | b'-')
}
