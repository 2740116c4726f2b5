//! Compares what a live server sends with what was recorded.
//!
//! Values are compared, not spellings. Values that every server issues itself are not compared:
//! ids, tokens, cursors, request states, and the timestamps of tasks.

use std::borrow::Cow;

use crate::json::JsonLocation;
use crate::json::diff::{self, DiffOptions, JsonDifference};
use crate::json::path::JsonPath;
use crate::tape::Mask;

use super::finding::{ListKind, RecordedChange, RecordedChanges};
use super::json_shape;

/// How many differences are listed for one message.
const LISTED_MAX: usize = 50;

/// Paths that are ignored in every answer.
const OF_ANSWERS: &[&str] = &[
    "jsonrpc",
    "id",
    "result.nextCursor",
    "result.requestState",
    "result.taskId",
    "result.task.taskId",
    "result.task.createdAt",
    "result.task.lastUpdatedAt",
    "result.tasks[*].taskId",
    "result.tasks[*].createdAt",
    "result.tasks[*].lastUpdatedAt",
    "result._meta['io.modelcontextprotocol/related-task'].taskId",
    "result._meta['io.modelcontextprotocol/subscriptionId']",
    "error.data.elicitations[*].elicitationId",
];
/// Paths that are also ignored in answers about tasks.
const OF_TASKS: &[&str] = &["result.createdAt", "result.lastUpdatedAt"];
/// Paths that are ignored in the server's notifications and requests.
const OF_OWN_ACCORD: &[&str] = &[
    "jsonrpc",
    "id",
    "params.progressToken",
    "params.requestId",
    "params.taskId",
    "params.elicitationId",
    "params._meta.progressToken",
    "params._meta['io.modelcontextprotocol/related-task'].taskId",
    "params._meta['io.modelcontextprotocol/subscriptionId']",
];
/// Paths that are also ignored in notifications about tasks.
const OF_TASK_NOTICES: &[&str] = &["params.createdAt", "params.lastUpdatedAt"];
/// The locations of a server's version.
const VERSIONS: &[&str] =
    &["result.serverInfo.version", "result._meta['io.modelcontextprotocol/serverInfo'].version"];

/// Compares recorded with live messages.
pub(super) struct AnswerComparer {
    /// The redaction that was applied to the tape.
    mask: Option<Box<dyn Mask>>,
    /// Whether only shapes are compared, not values.
    shape_only: bool,
    answers: Vec<JsonPath>,
    task_answers: Vec<JsonPath>,
    own_accord: Vec<JsonPath>,
    task_notices: Vec<JsonPath>,
    versions: Vec<JsonPath>,
}

/// The differences of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerDiff {
    /// The server's version, recorded and live.
    pub(super) version: Option<(Vec<u8>, Vec<u8>)>,
    /// The other differences.
    pub(super) changes: RecordedChanges,
}

impl AnswerComparer {
    /// A judge that skips the `ignored` paths.
    pub(super) fn new(ignored: &[JsonPath], shape_only: bool, mask: Option<Box<dyn Mask>>) -> Self {
        let with = |lists: &[&[&str]]| {
            let fixed =
                lists.iter().copied().flatten().filter_map(|text| JsonPath::read(text).ok());
            ignored.iter().cloned().chain(fixed).collect()
        };
        Self {
            mask,
            shape_only,
            answers: with(&[OF_ANSWERS]),
            task_answers: with(&[OF_ANSWERS, OF_TASKS]),
            own_accord: with(&[OF_OWN_ACCORD]),
            task_notices: with(&[OF_OWN_ACCORD, OF_TASK_NOTICES]),
            versions: VERSIONS.iter().filter_map(|text| JsonPath::read(text).ok()).collect(),
        }
    }

    /// A live message as the tape would have recorded it.
    pub(super) fn masked<'a>(&self, live: &'a [u8]) -> Cow<'a, [u8]> {
        self.mask.as_ref().map_or(Cow::Borrowed(live), |mask| mask.message(live).text)
    }

    /// The differences of the answer to a `method` request.
    pub(super) fn compare_answer(&self, method: &str, recorded: &[u8], live: &[u8]) -> AnswerDiff {
        let tasks = method.starts_with("tasks/");
        let ignored = if tasks { &self.task_answers } else { &self.answers };
        self.split_version(self.compare_values(recorded, live, ignored))
    }

    /// The differences of a page of a list, apart from its items.
    pub(super) fn page(&self, list: ListKind, recorded: &[u8], live: &[u8]) -> AnswerDiff {
        let mut ignored = self.answers.clone();
        // Items are compared one by one, unless only their shape counts.
        if self.compares_items(list) {
            ignored.extend(JsonPath::read(&format!("result.{}", list.member())));
        }
        self.split_version(self.compare_values(recorded, live, &ignored))
    }

    /// Whether the items of a list are compared one by one. Tools are, even when only shapes are
    /// compared: their descriptions are shapes.
    pub(super) fn compares_items(&self, list: ListKind) -> bool {
        !self.shape_only || list == ListKind::Tools
    }

    /// Whether `place`, or a value that contains it, is not compared.
    // A path to an object covers everything inside it, so outer places are checked too.
    pub(super) fn is_ignored(&self, location: &JsonLocation) -> bool {
        (1..=location.steps.len()).any(|depth| {
            let outer = JsonLocation { steps: location.steps[..depth].to_vec() };
            self.answers.iter().any(|path| outer.is_at(path))
        })
    }

    /// The differences of an item of a list that is at `place` in the message.
    pub(super) fn item(
        &self,
        location: JsonLocation,
        recorded: &[u8],
        live: &[u8],
    ) -> RecordedChanges {
        let depth = location.steps.len();
        // The place is needed for `--ignore`, but the report names the item and not its position.
        let mut changes = compare_by_value(location, recorded, live, &self.answers);
        for change in &mut changes.listed {
            change.location.steps.drain(..depth);
        }
        changes
    }

    /// The differences of a notification or request from the server.
    pub(super) fn compare_unsolicited(
        &self,
        method: &str,
        recorded: &[u8],
        live: &[u8],
    ) -> RecordedChanges {
        let tasks = method.starts_with("notifications/tasks/");
        let ignored = if tasks { &self.task_notices } else { &self.own_accord };
        self.compare_values(recorded, live, ignored)
    }

    fn compare_values(
        &self,
        recorded: &[u8],
        live: &[u8],
        ignored: &[JsonPath],
    ) -> RecordedChanges {
        if !self.shape_only {
            return compare_by_value(JsonLocation::default(), recorded, live, ignored);
        }
        let changes = json_shape::changes(recorded, live, ignored, LISTED_MAX);
        changes.unwrap_or_else(|_| differ_as_whole(recorded, live))
    }

    /// Separates the server's version from the other changes.
    fn split_version(&self, mut changes: RecordedChanges) -> AnswerDiff {
        let is_version = |change: &RecordedChange| {
            // A version that appears or disappears is a change of the server, not of its version.
            let both = change.recorded.is_some() && change.live.is_some();
            both && self.versions.iter().any(|path| change.location.is_at(path))
        };
        let at = changes.listed.iter().position(is_version);
        let version = at.and_then(|at| {
            let change = changes.listed.remove(at);
            change.recorded.zip(change.live)
        });
        AnswerDiff { version, changes }
    }
}

fn compare_by_value(
    root: JsonLocation,
    recorded: &[u8],
    live: &[u8],
    ignored: &[JsonPath],
) -> RecordedChanges {
    let terms = DiffOptions { root, ignored, listed_max: LISTED_MAX };
    let Ok(found) = diff::diff(recorded, live, &terms) else {
        return differ_as_whole(recorded, live);
    };
    let owned = |found: &JsonDifference<'_>| {
        let (recorded, live) = match found.change {
            diff::ValueChange::Added(new) => (None, Some(new)),
            diff::ValueChange::Removed(old) => (Some(old), None),
            diff::ValueChange::Value { old, new } | diff::ValueChange::Kind { old, new } => {
                (Some(old), Some(new))
            }
        };
        RecordedChange {
            location: found.location.clone(),
            recorded: recorded.map(<[u8]>::to_vec),
            live: live.map(<[u8]>::to_vec),
        }
    };
    RecordedChanges { listed: found.listed.iter().map(owned).collect(), more: found.more }
}

/// Texts that cannot be parsed differ as a whole.
fn differ_as_whole(recorded: &[u8], live: &[u8]) -> RecordedChanges {
    let (recorded, live) = (Some(recorded.to_vec()), Some(live.to_vec()));
    RecordedChanges {
        listed: vec![RecordedChange { location: JsonLocation::default(), recorded, live }],
        more: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::LocationStep;

    fn places(changes: &RecordedChanges) -> Vec<String> {
        changes.listed.iter().map(|change| change.location.to_string()).collect()
    }

    fn judge(ignored: &[&str]) -> AnswerComparer {
        let ignored: Vec<_> = ignored.iter().map(|path| JsonPath::read(path).unwrap()).collect();
        AnswerComparer::new(&ignored, false, None)
    }

    #[test]
    fn every_fixed_path_can_be_read() {
        for list in [OF_ANSWERS, OF_TASKS, OF_OWN_ACCORD, OF_TASK_NOTICES, VERSIONS] {
            assert!(list.iter().all(|path| JsonPath::read(path).is_ok()));
        }
    }

    #[test]
    fn what_is_minted_is_not_compared() {
        let recorded = br#"{"jsonrpc":"2.0","id":1,"result":{"requestState":"a","task":{"taskId":"t","status":"working","createdAt":"x"}}}"#;
        let live = br#"{"id":"1","result":{"task":{"createdAt":"y","taskId":"u","status":"failed"},"requestState":"b"}}"#;
        let verdict = judge(&[]).compare_answer("tools/call", recorded, live);
        assert_eq!(places(&verdict.changes), ["result.task.status"]);
        let verdict = judge(&["result.task"]).compare_answer("tools/call", recorded, live);
        assert!(verdict.changes.is_empty());
    }

    #[test]
    fn moments_count_where_they_are_not_those_of_tasks() {
        let (recorded, live) = (br#"{"result":{"createdAt":1}}"#, br#"{"result":{"createdAt":2}}"#);
        assert!(judge(&[]).compare_answer("tasks/get", recorded, live).changes.is_empty());
        assert!(!judge(&[]).compare_answer("files/stat", recorded, live).changes.is_empty());
    }

    #[test]
    fn a_servers_version_is_told_apart() {
        let recorded =
            br#"{"result":{"serverInfo":{"name":"s","version":"1"},"instructions":"x"}}"#;
        let live = br#"{"result":{"serverInfo":{"name":"s","version":"2"},"instructions":"y"}}"#;
        let verdict = judge(&[]).compare_answer("initialize", recorded, live);
        assert_eq!(verdict.version, Some((b"\"1\"".to_vec(), b"\"2\"".to_vec())));
        assert_eq!(places(&verdict.changes), ["result.instructions"]);
    }

    #[test]
    fn places_in_an_item_start_at_the_item() {
        let place = JsonLocation {
            steps: vec![
                LocationStep::Key("result".into()),
                LocationStep::Key("tools".into()),
                LocationStep::Index(3),
            ],
        };
        let (recorded, live) = (br#"{"a":{"b":1},"c":1}"#, br#"{"a":{"b":2},"c":2}"#);
        let changes = judge(&["result.tools[*].c"]).item(place, recorded, live);
        assert_eq!(places(&changes), ["a.b"]);
    }
}
