//! The members of arguments that policies read, and how they use them.

use std::collections::BTreeMap;

use tapegate_core::lenient::folder::FolderPath;
use tapegate_core::lenient::key::fold_name;

use crate::compared_values::ComparedValues;
use crate::types::{CedarType, RecordType, TypeClash};

/// The members of an object that are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct AttributeTree {
    /// Whether it is read as a whole.
    pub(crate) whole: bool,
    /// Whether it is read at all, even if only to test for its presence.
    pub(crate) read: bool,
    /// The types it is used as.
    pub(crate) uses: Vec<CedarType>,
    /// The values that tests which stop compare it with, if there are any.
    pub(crate) wanted: Option<ComparedValues>,
    /// The folders it is tested for.
    pub(crate) folders: Vec<FolderPath>,
    /// Whether some policy tests it against a path pattern.
    pub(crate) path_pattern: bool,
    /// Its name, folded as lenient servers compare keys.
    pub(crate) folded: String,
    pub(crate) members: BTreeMap<String, AttributeTree>,
}

impl AttributeTree {
    pub(crate) fn note(&mut self, path: &[&str], want: Option<CedarType>) {
        self.read = true;
        match path {
            [] => self.whole = true,
            [name] => {
                let leaf = self.member(name);
                leaf.read = true;
                leaf.uses.extend(want);
            }
            [name, rest @ ..] => self.member(name).note(rest, want),
        }
    }

    fn member(&mut self, name: &str) -> &mut Self {
        let new = || Self { folded: fold_name(name), ..Self::default() };
        self.members.entry(name.to_owned()).or_insert_with(new)
    }

    /// The node at a path, if it is read.
    pub(crate) fn get(&self, path: &[String]) -> Option<&Self> {
        path.iter().try_fold(self, |tree, name| tree.members.get(name))
    }

    /// The node at a path, created if necessary.
    pub(crate) fn node_at(&mut self, path: &[String]) -> &mut Self {
        path.iter().fold(self, |tree, name| tree.member(name))
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.whole |= other.whole;
        self.read |= other.read;
        self.uses.extend(other.uses.iter().cloned());
        self.folders.extend(other.folders.iter().cloned());
        self.path_pattern |= other.path_pattern;
        for (name, tree) in &other.members {
            self.member(name).add(tree);
        }
    }

    /// Whether the value at a path, or anything below or above it, is read.
    pub(crate) fn touches(&self, path: &[String]) -> bool {
        match path {
            _ if self.whole => true,
            // A misfit of the arguments as a whole affects every policy that reads any of them.
            [] => self.read || !self.members.is_empty(),
            [name, rest @ ..] => {
                self.members.get(name).is_some_and(|tree| tree.is_leaf() || tree.touches(rest))
            }
        }
    }

    /// Whether everything in it is read.
    pub(crate) fn is_read_whole(&self) -> bool {
        self.whole || self.is_leaf()
    }

    fn is_leaf(&self) -> bool {
        self.members.is_empty()
    }

    /// The paths that are read but that a record does not have.
    pub(crate) fn missing_in(&self, record: &RecordType) -> Vec<Vec<String>> {
        let mut missing = Vec::new();
        for (name, tree) in &self.members {
            match record.members.get(name).map(|member| &member.kind) {
                None => missing.push(vec![name.clone()]),
                Some(CedarType::Record(inner)) => {
                    let below = tree.missing_in(inner).into_iter();
                    missing.extend(below.map(|path| [vec![name.clone()], path].concat()));
                }
                Some(_) => {}
            }
        }
        missing
    }

    /// The types implied by the uses; all members are optional.
    pub(crate) fn implied_types(&self) -> Result<RecordType, TypeClash> {
        let mut record = RecordType::default();
        for (name, tree) in &self.members {
            let kind = tree.kind().map_err(|clash| clash.nested_in(name))?;
            record.add(name.clone(), kind)?;
        }
        Ok(record)
    }

    fn kind(&self) -> Result<CedarType, TypeClash> {
        let uses = self.uses.iter().cloned();
        let members = (!self.is_leaf()).then(|| self.implied_types()).transpose()?;
        uses.chain(members.map(CedarType::Record)).try_fold(CedarType::Any, CedarType::unify)
    }
}
