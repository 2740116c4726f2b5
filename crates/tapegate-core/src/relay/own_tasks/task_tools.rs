//! Which tools the server can run as tasks, as it lists them.

use std::collections::BTreeSet;

use crate::frame::Envelope;
use crate::json;

/// How many tools are remembered. If there are more, nothing is known.
const TOOLS_MAX: usize = 1024;
/// Longer names are not remembered.
const NAME_BYTES_MAX: usize = 256;

/// The tools that can run as tasks. A server may refuse others that are called so, even after it has
/// run them.
#[derive(Debug, Default)]
pub(in crate::relay) struct TaskTools {
    names: BTreeSet<String>,
    /// Whether a list was read to its end.
    is_complete: bool,
    has_overflowed: bool,
}

impl TaskTools {
    /// Reads a page of the server's tools.
    pub(in crate::relay) fn learn(&mut self, answer: &Envelope<'_>) {
        let Some(result) = answer.result else { return };
        let Some(tools) = json::member(result, "tools") else { return };
        for tool in json::elements(tools).map_while(Result::ok) {
            let Some(name) = json::member(tool, "name").and_then(json::string) else { continue };
            let execution = json::member(tool, "execution");
            let support = execution.and_then(|execution| json::member(execution, "taskSupport"));
            let support = support.and_then(json::string);
            if !matches!(support.as_deref(), Some("optional" | "required")) {
                self.names.remove(&*name);
            } else if self.names.len() < TOOLS_MAX && name.len() <= NAME_BYTES_MAX {
                self.names.insert(name.into_owned());
            } else {
                self.has_overflowed = true;
            }
        }
        self.is_complete |= json::member(result, "nextCursor").is_none();
    }

    /// Whether the server has listed its tools, and this one does not run as a task.
    pub(in crate::relay) fn excludes(&self, name: &str) -> bool {
        self.is_complete && !self.has_overflowed && !self.names.contains(name)
    }
}

/// Params without `task`.
pub(in crate::relay) fn without_task(params: &[u8]) -> Option<Vec<u8>> {
    json::map_members(params, |key, value| Ok((!key.is("task")).then_some(value.into()))).ok()
}
