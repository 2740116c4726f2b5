//! The types of each tool's arguments, for checking policies and for evaluating them.

use std::collections::{BTreeMap, BTreeSet};

use crate::ToolDefinition;
use crate::attribute_reads::AttributeReads;
use crate::schema_reader;
use crate::selector::ToolSelector;
use crate::types::{RecordType, TypeClash};
use crate::value::MemberTypes;

#[derive(Debug, Default)]
pub(crate) struct ArgumentTypes {
    /// Those of known tools, by server, then by name.
    tools: BTreeMap<String, BTreeMap<String, RecordType>>,
    /// The names of known tools that do not declare their arguments.
    silent: BTreeSet<String>,
    /// Those of other tools.
    unknown: ImpliedTypes,
    /// Those of everything but tools.
    other: ImpliedTypes,
    /// Those of all tools, if a schema came with the policies.
    fixed: Option<RecordType>,
}

/// Types implied by how policies use arguments: for each name and each server that some policy
/// names, and for all others.
#[derive(Debug, Default)]
struct ImpliedTypes {
    names: BTreeMap<String, usize>,
    servers: BTreeMap<String, usize>,
    /// By name, then by server; index 0 is for those that no policy names.
    cells: Vec<RecordType>,
}

impl ArgumentTypes {
    /// The types of the known tools only.
    pub(crate) fn new(tools: &[ToolDefinition]) -> Self {
        let mut types = Self::default();
        for tool in tools {
            let tools = types.tools.entry(tool.server.clone()).or_default();
            match schema_reader::arguments(&tool.input_schema) {
                Some(record) => drop(tools.insert(tool.name.clone(), record)),
                None => drop(types.silent.insert(tool.name.clone())),
            }
        }
        types
    }

    /// Sets the types of all tools, whatever their definitions say.
    pub(crate) fn set_for_all(&mut self, record: RecordType) {
        self.fixed = Some(record);
    }

    /// Adds the types implied by policies, for calls without a known definition.
    pub(crate) fn add_implied(
        &mut self,
        policies: &[(&AttributeReads, &ToolSelector)],
    ) -> Result<(), TypeClash> {
        self.unknown = ImpliedTypes::of(policies, ToolSelector::includes_tools)?;
        self.other = ImpliedTypes::of(policies, ToolSelector::includes_non_tools)?;
        Ok(())
    }

    /// The types of the arguments of a call.
    pub(crate) fn of(&self, tool: bool, server: &str, name: &str) -> MemberTypes<'_> {
        if !tool {
            return MemberTypes { declared: None, implied: self.other.of_name(server, name) };
        }
        let known = self.tools.get(server).and_then(|tools| tools.get(name));
        // A tool may receive and accept arguments that its definition does not declare.
        let implied = self.unknown.of_name(server, name);
        MemberTypes { declared: self.fixed.as_ref().or(known), implied }
    }

    /// The arguments that the tools a policy can apply to have in common; `None` if none is known.
    pub(crate) fn common(&self, selector: &ToolSelector) -> Option<RecordType> {
        let mut chosen =
            self.tools().filter(|(server, name, _)| selector.includes_tool(server, name));
        let first = chosen.next()?;
        let named = |(server, name, record): (&str, &str, _)| (tool_text(server, name), record);
        Some(RecordType::common(std::iter::once(first).chain(chosen).map(named)))
    }

    /// The tools that a policy names but that are unknown, although others are known.
    pub(crate) fn unknown_tools<'a>(&self, selector: &'a ToolSelector) -> Vec<&'a str> {
        let servers: BTreeSet<&str> = self.tools.keys().map(String::as_str).collect();
        let elsewhere = match &selector.servers {
            Some(own) => !own.iter().any(|server| servers.contains(server.as_str())),
            None => servers.is_empty(),
        };
        if elsewhere || !selector.includes_tools() {
            return Vec::new();
        }
        let known = |name: &String| {
            self.silent.contains(name) || self.tools().any(|(_, tool, _)| tool == name)
        };
        let names = selector.names.iter().flatten();
        names.filter(|name| !known(name)).map(String::as_str).collect()
    }

    fn tools(&self) -> impl Iterator<Item = (&str, &str, &RecordType)> {
        self.tools.iter().flat_map(|(server, tools)| {
            tools.iter().map(move |(name, record)| (server.as_str(), name.as_str(), record))
        })
    }
}

impl ImpliedTypes {
    fn of(
        policies: &[(&AttributeReads, &ToolSelector)],
        concerns: impl Fn(&ToolSelector) -> bool,
    ) -> Result<Self, TypeClash> {
        let policies: Vec<_> = policies.iter().filter(|(_, selector)| concerns(selector)).collect();
        let numbered = |of: fn(&ToolSelector) -> &Option<BTreeSet<String>>| {
            let all: BTreeSet<&String> =
                policies.iter().flat_map(|(_, selector)| of(selector).iter().flatten()).collect();
            all.into_iter().zip(1..).map(|(name, number)| (name.clone(), number)).collect()
        };
        let names: BTreeMap<String, usize> = numbered(|selector| &selector.names);
        let servers: BTreeMap<String, usize> = numbered(|selector| &selector.servers);
        let mut cells = Vec::new();
        // Policies that name a tool or a server imply types for its calls only, so every
        // combination has its own types. Otherwise two tools with an argument `limit` would clash.
        for name in std::iter::once(None).chain(names.keys().map(Some)) {
            for server in std::iter::once(None).chain(servers.keys().map(Some)) {
                let mut union = AttributeReads::default();
                let about = |own: &Option<BTreeSet<String>>, here: Option<&String>| {
                    own.as_ref().is_none_or(|own| here.is_some_and(|here| own.contains(here)))
                };
                for (reads, selector) in &policies {
                    if about(&selector.names, name) && about(&selector.servers, server) {
                        union.add(reads);
                    }
                }
                cells.push(union.arguments.implied_types()?);
            }
        }
        Ok(Self { names, servers, cells })
    }

    fn of_name(&self, server: &str, name: &str) -> Option<&RecordType> {
        let row = self.names.get(name).copied().unwrap_or_default();
        let column = self.servers.get(server).copied().unwrap_or_default();
        self.cells.get(row * (self.servers.len() + 1) + column)
    }
}

/// A tool's name for messages.
fn tool_text(server: &str, name: &str) -> String {
    format!("`{name}` of `{server}`")
}
