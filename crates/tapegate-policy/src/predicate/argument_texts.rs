//! The texts at a path of the arguments.

use std::ops::ControlFlow;

use tapegate_core::json::path::JsonPath;
use tapegate_core::json::string;
use tapegate_core::lenient::reading::ScanBudget;

use super::lenient::{LenientPath, WalkEnd};
use super::values::visit_values_at;

/// The maximum number of texts that are looked at.
const TEXTS_MAX: usize = 16;

/// A path whose texts are read.
#[derive(Debug)]
pub struct ArgumentTexts {
    path: JsonPath,
    lenient: LenientPath,
    path_text: String,
}

/// The texts that servers may find at a path.
#[derive(Debug, Default)]
pub(crate) struct FoundTexts {
    /// The texts, each with whether every server finds it.
    pub(crate) lines: Vec<(String, bool)>,
    /// Whether there is something else than a text, or too much.
    pub(crate) unclear: bool,
}

impl ArgumentTexts {
    /// The texts at a path; the error says why the path is not valid.
    pub fn parse(path_text: &str) -> Result<Self, String> {
        let path = JsonPath::read(path_text).map_err(|fault| {
            format!("not a valid path: {} at character {}", fault.what, fault.at + 1)
        })?;
        let lenient = LenientPath::new(&path);
        Ok(Self { path, lenient, path_text: path_text.to_owned() })
    }

    /// The path as written.
    pub fn path_text(&self) -> &str {
        &self.path_text
    }

    /// The texts that servers may find, strict and lenient ones.
    pub(crate) fn texts(&self, arguments: &[u8]) -> FoundTexts {
        let mut found = FoundTexts::default();
        let is_json = visit_values_at(arguments, &self.path, &mut |value| found.add(value, true));
        found.unclear |= !is_json;
        // With two values at one key, servers differ in which they take.
        if found.lines.len() > 1 {
            found.lines.iter_mut().for_each(|(_, exact)| *exact = false);
        }
        let budget = ScanBudget::new(arguments.len());
        let walked = self.lenient.walk(arguments, &budget, &mut |value| {
            found.add(value, false);
            false
        });
        found.unclear |= matches!(walked, ControlFlow::Break(WalkEnd::Unclear));
        found
    }

    /// The only text at the path; the error is whether there is none at all.
    pub(crate) fn only_text(&self, arguments: &[u8]) -> Result<String, bool> {
        let found = self.texts(arguments);
        match found.lines.as_slice() {
            [(text, true)] if !found.unclear => Ok(text.clone()),
            lines => Err(lines.is_empty() && !found.unclear),
        }
    }
}

impl FoundTexts {
    fn add(&mut self, value: &[u8], exact: bool) {
        if value == b"null" {
            return;
        }
        let Some(text) = string(value) else {
            self.unclear = true;
            return;
        };
        if self.lines.iter().any(|(line, _)| *line == *text) {
            return;
        }
        if self.lines.len() == TEXTS_MAX {
            self.unclear = true;
            return;
        }
        self.lines.push((text.into_owned(), exact));
    }
}
