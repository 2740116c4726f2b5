//! What distinguishes the kinds of items: their words, their keys and their tables.

use super::{Table, language};
use crate::model::ItemKind;

/// The properties of a kind of item.
pub(crate) struct ItemKindInfo {
    pub(crate) noun: &'static str,
    /// The key of its definition in an item.
    pub(crate) key: &'static str,
    /// The key of its lists in a scenario.
    pub(crate) list: &'static str,
    /// The method that lists it.
    pub(crate) list_method: &'static str,
    /// The member of a list result that holds the items.
    pub(crate) member: &'static str,
    /// The key of a definition that identifies the item.
    pub(crate) name_key: &'static str,
    /// The table of the item.
    pub(crate) item: &'static Table,
    /// The table of its definition.
    pub(crate) definition: &'static Table,
    pub(crate) tables: &'static ResponseTables,
}

/// The tables for the answers of one kind of item.
pub(crate) struct ResponseTables {
    pub(crate) response: &'static Table,
    /// One answer, of a sequence or alone.
    pub(crate) answer: &'static Table,
    pub(crate) branch: &'static Table,
    /// The default of a branch.
    pub(crate) default: &'static Table,
}

/// In the order of [`ItemKind`].
static KINDS: [ItemKindInfo; 4] = [
    ItemKindInfo {
        noun: "tool",
        key: "tool",
        list: "tools",
        list_method: "tools/list",
        member: "tools",
        name_key: "name",
        item: &language::TOOL_ITEM,
        definition: &language::TOOL,
        tables: &language::TOOL_TABLES,
    },
    ItemKindInfo {
        noun: "resource",
        key: "resource",
        list: "resources",
        list_method: "resources/list",
        member: "resources",
        name_key: "uri",
        item: &language::RESOURCE_ITEM,
        definition: &language::RESOURCE,
        tables: &language::RESOURCE_TABLES,
    },
    ItemKindInfo {
        noun: "resource template",
        key: "template",
        list: "resource_templates",
        list_method: "resources/templates/list",
        member: "resourceTemplates",
        name_key: "uriTemplate",
        item: &language::TEMPLATE_ITEM,
        definition: &language::TEMPLATE,
        tables: &language::RESOURCE_TABLES,
    },
    ItemKindInfo {
        noun: "prompt",
        key: "prompt",
        list: "prompts",
        list_method: "prompts/list",
        member: "prompts",
        name_key: "name",
        item: &language::PROMPT_ITEM,
        definition: &language::PROMPT,
        tables: &language::PROMPT_TABLES,
    },
];

impl ItemKind {
    /// All kinds, in the order in which scenarios list them.
    pub(crate) const ALL: [Self; 4] = [Self::Tool, Self::Resource, Self::Template, Self::Prompt];

    /// Its properties.
    pub(crate) fn info(self) -> &'static ItemKindInfo {
        &KINDS[self as usize]
    }

    /// The kind that a method lists.
    pub(crate) fn of_list_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.info().list_method == method)
    }
}
