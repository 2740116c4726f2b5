//! The other readings of a value, and the folders it is in.

use cedar_policy::RestrictedExpression;
use tapegate_core::json::{self, Cursor, JsonFault, JsonKind};
use tapegate_core::lenient::folder::has_parent_step;

use super::{AlternativeReadings, FolderFacts, MisfitArgument, ValueBuilder, exact_text, number};
use crate::attribute_tree::AttributeTree;
use crate::compared_values::{ComparedValues, is_plain};
use crate::types::CedarType;

impl ValueBuilder {
    pub(super) fn alternatives(&mut self, readings: Vec<(String, RestrictedExpression)>) {
        if !readings.is_empty() {
            self.made.alternatives.push(AlternativeReadings { path: self.path.clone(), readings });
        }
    }

    /// A null may be read as false, as zero or as an empty text.
    pub(super) fn null(&mut self, tree: Option<&AttributeTree>, kind: &CedarType) {
        let Some(wanted) = tree.and_then(|tree| tree.wanted.as_ref()) else { return };
        let value = match kind {
            CedarType::Bool => RestrictedExpression::new_bool(false),
            CedarType::Long => RestrictedExpression::new_long(0),
            CedarType::Decimal => RestrictedExpression::new_decimal("0.0"),
            CedarType::String if wanted.takes_empty() => {
                RestrictedExpression::new_string(String::new())
            }
            _ => return,
        };
        self.alternatives(vec![("nothing".to_owned(), value)]);
    }

    /// Examines a text that policies read.
    pub(super) fn text(&mut self, text: &str, tree: Option<&AttributeTree>) {
        if self.plain_only && !is_plain(text) {
            self.add_misfit("it contains text that can be read in several ways");
        }
        let Some(tree) = tree else { return };
        // A `like "/data/*"` matches `/data/../etc`, so a permit with it must not see such a path.
        if tree.path_pattern && has_parent_step(text) {
            let reason = "it leaves the folder that it starts with".to_owned();
            self.made.misfits.push(MisfitArgument {
                path: self.path.clone(),
                reason,
                climbs: true,
            });
        }
        if !tree.folders.is_empty() {
            self.folders(&[text.to_owned()], tree);
        }
        if let Some(readings) = self.readings(text, tree.wanted.as_ref()) {
            let value = |text: String| (text.clone(), RestrictedExpression::new_string(text));
            self.alternatives(readings.into_iter().map(value).collect());
        }
    }

    /// Examines the elements of a list that policies read.
    pub(super) fn elements(
        &mut self,
        raw: &[u8],
        elements: &[RestrictedExpression],
        tree: &AttributeTree,
        of: &CedarType,
    ) -> Result<(), JsonFault> {
        if tree.folders.is_empty() && tree.wanted.is_none() {
            return Ok(());
        }
        let mut texts = Vec::new();
        // All readings of all elements, and each element in its first other reading.
        // Evaluating every combination of readings of a list is too much work. One set with all
        // readings serves tests that look for an element, one with the first ones serves tests of
        // all elements.
        let (mut every, mut first_readings) = (elements.to_vec(), Vec::new());
        let mut differs = false;
        for value in json::elements(raw) {
            let value = value?;
            let kind = JsonKind::of(value)?;
            let mut others = Vec::new();
            let mut own = None;
            match kind {
                JsonKind::String => {
                    let text = Cursor::new(value)?.string()?;
                    let Some(text) = exact_text(text) else { continue };
                    let read = self.readings(&text, tree.wanted.as_ref()).unwrap_or_default();
                    others.extend(read.into_iter().map(RestrictedExpression::new_string));
                    own = Some(RestrictedExpression::new_string(text.clone()));
                    texts.push(text);
                }
                JsonKind::Number if tree.wanted.is_some() => {
                    others.extend(number::readings(value, of).into_iter().map(|(_, value)| value));
                    own = number::number(value, of);
                }
                _ => {}
            }
            if kind != JsonKind::String && kind != JsonKind::Null && !tree.folders.is_empty() {
                self.add_misfit("it contains a value that is not a path");
            }
            differs |= !others.is_empty();
            first_readings.extend(others.first().cloned().or(own));
            every.extend(others);
        }
        if !tree.folders.is_empty() {
            self.folders(&texts, tree);
        }
        if differs {
            let sets = [every, first_readings].map(RestrictedExpression::new_set);
            self.alternatives(sets.map(|set| ("other texts".to_owned(), set)).into());
        }
        Ok(())
    }

    /// The readings of a text that make a difference to tests that stop.
    fn readings(&mut self, text: &str, wanted: Option<&ComparedValues>) -> Option<Vec<String>> {
        let wanted = wanted?;
        let found = wanted.readings(text, self.url_reader);
        if found.is_err() {
            self.add_misfit("it can be read in too many ways");
        }
        found.ok()
    }

    /// The folders that contain all paths for certain, and those that may contain one of them.
    fn folders(&mut self, paths: &[String], tree: &AttributeTree) {
        let mut facts =
            FolderFacts { path: self.path.clone(), sure: Vec::new(), possible: Vec::new() };
        for folder in &tree.folders {
            // An empty list is in no folder: `all` alone would put it into every one.
            if !paths.is_empty() && paths.iter().all(|path| folder.holds(path)) {
                facts.sure.push(folder.text().to_owned());
            }
            if paths.iter().any(|path| folder.may_hold(path)) {
                facts.possible.push(folder.text().to_owned());
            }
        }
        self.made.folders.push(facts);
    }
}
