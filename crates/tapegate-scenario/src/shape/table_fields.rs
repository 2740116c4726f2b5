//! Reads the values of a map by the keys of its table.
//!
//! The tables have reported every key and value that they do not accept. Such a value is treated as
//! missing here, and is not reported again.

use tapegate_core::json::Number;
use tapegate_yaml::choice::WordChoice;

use super::Table;
use crate::amount;
use crate::node::{Node, NodeKey, NodeValue};

/// A map and the table of its keys.
#[derive(Clone, Copy)]
pub(crate) struct TableFields<'n> {
    pub(crate) node: &'n Node,
    pub(crate) table: &'static Table,
}

impl<'n> TableFields<'n> {
    pub(crate) fn new(node: &'n Node, table: &'static Table) -> Self {
        Self { node, table }
    }

    /// The value of a key, in any of its spellings.
    pub(crate) fn get(&self, name: &str) -> Option<&'n Node> {
        let entry = self.table.entry(name);
        debug_assert!(entry.is_some(), "{} has no {name}", self.table.name);
        let is_it = |key: &NodeKey| entry.is_some_and(|entry| entry.has_name(&key.name));
        self.node.as_map()?.iter().find(|(key, _)| is_it(key)).map(|(_, node)| node)
    }

    /// The map under a key.
    pub(crate) fn map(&self, name: &str, table: &'static Table) -> Option<TableFields<'n>> {
        let node = self.get(name).filter(|node| node.as_map().is_some())?;
        Some(TableFields::new(node, table))
    }

    /// The elements of the list under a key; empty if there is no list.
    pub(crate) fn list(&self, name: &str) -> &'n [Node] {
        self.get(name).and_then(Node::as_list).unwrap_or_default()
    }

    /// The texts of the list under a key.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(Node::as_text).map(str::to_owned).collect()
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'n str> {
        self.get(name)?.as_text()
    }

    pub(crate) fn choice<T: WordChoice>(&self, name: &str) -> Option<T> {
        T::from_word(self.text(name)?)
    }

    pub(crate) fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)?.value {
            NodeValue::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    pub(crate) fn whole_number(&self, name: &str) -> Option<u64> {
        match &self.get(name)?.value {
            NodeValue::Number(text) => Number::read(text.as_bytes()).as_u64(),
            _ => None,
        }
    }

    /// A number of bytes, or of anything else.
    pub(crate) fn amount(&self, name: &str) -> Option<usize> {
        amount::bytes(self.get(name)?).ok()?.try_into().ok()
    }

    pub(crate) fn duration_ns(&self, name: &str) -> Option<u64> {
        amount::duration_ns(self.get(name)?).ok()
    }
}
