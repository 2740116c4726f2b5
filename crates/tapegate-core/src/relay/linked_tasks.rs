//! Tasks of ours that stand for a task of the server.
//!
//! In the extension of revision 2026-07-28 a client polls its task, and answers there what the server
//! asks. Once the server has made a task of a released call, the requests about ours pass to the server
//! with the id of the server's task, and its answers back with the id of ours.

use super::own_tasks::{OutcomeRequest, RelatedResult, TaskOutcome};
use super::task_requests::TaskMethod;
use super::{ActionSink, MessageOrigin, Relay};
use crate::frame::{Envelope, Frame};
use crate::gate::{TaskDialect, Verdict};
use crate::json::{self, JsonEdits};
use crate::side::{Lane, Side};
use crate::time::Timestamp;

const ASKS_FOR_INPUT: &str = "the MCP server asked for input, which the client has not offered";

impl Relay {
    /// Keeps the server's result of a call whose client uses the extension.
    pub(super) fn keep_extension_result(
        &mut self,
        at: Timestamp,
        (task_id, request): (&str, &OutcomeRequest),
        result: &[u8],
        emit: &mut ActionSink<'_, '_>,
    ) {
        let kind = json::member(result, "resultType").and_then(json::string).unwrap_or_default();
        let made = json::member(result, "taskId").and_then(json::string);
        if let (true, Some(server_task)) = (kind == "task", made) {
            // A second answer with this id is not for the client.
            self.own.mark_cancelled(request.id.clone());
            return self.tasks.link(at, task_id, &server_task);
        }
        let outcome = match RelatedResult::plain(result).filter(|_| kind != "input_required") {
            Some(result) => TaskOutcome::Result(result),
            None => TaskOutcome::refused(&super::gate_dispatch::refusal(
                super::CODE_GONE,
                ASKS_FOR_INPUT,
            )),
        };
        self.end_task(at, task_id, outcome, emit);
    }

    /// The verdict about a message that names a task of ours to the server, or one of the server's to
    /// the client: it is sent with the id that its receiver knows.
    pub(super) fn with_linked_id(
        &mut self,
        origin: MessageOrigin,
        frame: &Frame<'_>,
        verdict: Verdict,
    ) -> Verdict {
        if !self.tasks.has_links() {
            return verdict;
        }
        let text = match &verdict {
            Verdict::Forward => frame.bytes(),
            Verdict::Rewrite(text) => text,
            Verdict::Refuse(_) | Verdict::Hold(_) | Verdict::ListFirst(_) => return verdict,
        };
        let read = Frame::read(text);
        let renamed = read.envelope().and_then(|envelope| self.renamed(origin, text, envelope));
        renamed.map_or(verdict, Verdict::Rewrite)
    }

    fn renamed(
        &mut self,
        origin: MessageOrigin,
        text: &[u8],
        envelope: &Envelope<'_>,
    ) -> Option<Vec<u8>> {
        let MessageOrigin { at, lane, from, .. } = origin;
        let holder = match from {
            Side::Client => {
                TaskMethod::of(envelope)?;
                envelope.params?
            }
            Side::Server => envelope.result?,
        };
        let named = json::member(holder, "taskId")?;
        let known = self.tasks.linked_name(at, (lane.session, from), &json::string(named)?)?;
        let mut edits = JsonEdits::new(text);
        edits.replace(named, &json::quoted(&known));
        Some(edits.finish().into_owned())
    }

    /// How a task's client asks about it.
    pub(super) fn task_dialect(&mut self, at: Timestamp, lane: Lane, task_id: &str) -> TaskDialect {
        let task = self.tasks.find(at, lane.session, task_id);
        task.map_or(TaskDialect::Core, |task| task.handle.dialect)
    }
}
