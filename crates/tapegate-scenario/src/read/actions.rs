//! Reads the actions that a server takes on its own.

use super::ScenarioReader;
use crate::model::ScenarioAction;
use crate::node::{Node, NodeValue};
use crate::shape::{TableFields, language};
use crate::template::Template;

/// The default timeout of a request to the client.
const TIMEOUT_NS: u64 = 30_000_000_000;

impl ScenarioReader<'_> {
    /// Reads a list of actions.
    pub(super) fn actions(&mut self, node: &Node) -> Vec<ScenarioAction> {
        let list = node.as_list().unwrap_or_default();
        self.each(list, Self::action).into_iter().flatten().collect()
    }

    fn action(&mut self, node: &Node) -> Option<ScenarioAction> {
        let entries = node.as_map()?;
        let at = TableFields::new(node, &language::ACTION);
        let [(key, inner)] = entries else {
            self.findings.error(node.spot, "an action must have exactly one key");
            return None;
        };
        let entry = at.table.entry(&key.name)?;
        self.with_step(&key.name, |reader| match entry.name {
            "send_notification" => {
                let at = TableFields::new(inner, &language::SEND_NOTIFICATION);
                let method = inner.as_text().or_else(|| at.text("method"))?.to_owned();
                let params = at.get("params").map(|params| reader.form(params));
                Some(ScenarioAction::Notify { method, params })
            }
            "send_request" => reader.read_ask(inner),
            "progress" => Some(ScenarioAction::Progress(reader.form(inner))),
            "log_message" => {
                let level = inner.get("level")?.as_text()?.to_owned();
                Some(ScenarioAction::Message { level, params: reader.form(inner) })
            }
            "log" => {
                let interpolate = reader.interpolate(inner);
                Some(ScenarioAction::Log(Template::read(inner, interpolate, reader.findings)))
            }
            "wait" => Some(ScenarioAction::Wait(at.duration_ns("wait")?)),
            "end_stream" => {
                (inner.value == NodeValue::Bool(true)).then_some(ScenarioAction::EndStream)
            }
            _ => None,
        })
    }

    fn read_ask(&mut self, node: &Node) -> Option<ScenarioAction> {
        let at = TableFields::new(node, &language::SEND_REQUEST);
        let method = node.as_text().or_else(|| at.text("method"))?.to_owned();
        let id = at.get("id").map(|id| String::from_utf8_lossy(&id.to_json()).into_owned());
        let params = at.get("params").map(|params| self.form(params));
        let name = at.text("as").map(str::to_owned);
        let timeout_ns = at.duration_ns("timeout").unwrap_or(TIMEOUT_NS);
        Some(ScenarioAction::Ask { method, id, params, name, timeout_ns })
    }
}
