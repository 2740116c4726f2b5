//! Compares what a live server sends with what was recorded.
//!
//! Values are compared, not spellings. Values that every server issues itself are not compared:
//! ids, tokens, cursors, request states, and the timestamps of tasks.

use std::borrow::Cow;

use crate::json::Place;
use crate::json::diff::{self, Difference, Terms};
use crate::json::path::Path;
use crate::tape::Mask;

use super::finding::{Change, Changes, List};
use super::shape;

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
pub(super) struct Judge {
    /// The redaction that was applied to the tape.
    mask: Option<Box<dyn Mask>>,
    /// Whether only shapes are compared, not values.
    shape_only: bool,
    answers: Vec<Path>,
    task_answers: Vec<Path>,
    own_accord: Vec<Path>,
    task_notices: Vec<Path>,
    versions: Vec<Path>,
}

/// The differences of an answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The server's version, recorded and live.
    pub(super) version: Option<(Vec<u8>, Vec<u8>)>,
    /// The other differences.
    pub(super) changes: Changes,
}

impl Judge {
    /// A judge that skips the `ignored` paths.
    pub(super) fn new(ignored: &[Path], shape_only: bool, mask: Option<Box<dyn Mask>>) -> Self {
        let with = |lists: &[&[&str]]| {
            let fixed = lists.iter().copied().flatten().filter_map(|text| Path::read(text).ok());
            ignored.iter().cloned().chain(fixed).collect()
        };
        Self {
            mask,
            shape_only,
            answers: with(&[OF_ANSWERS]),
            task_answers: with(&[OF_ANSWERS, OF_TASKS]),
            own_accord: with(&[OF_OWN_ACCORD]),
            task_notices: with(&[OF_OWN_ACCORD, OF_TASK_NOTICES]),
            versions: VERSIONS.iter().filter_map(|text| Path::read(text).ok()).collect(),
        }
    }

    /// A live message as the tape would have recorded it.
    pub(super) fn masked<'a>(&self, live: &'a [u8]) -> Cow<'a, [u8]> {
        self.mask.as_ref().map_or(Cow::Borrowed(live), |mask| mask.message(live).text)
    }

    /// The differences of the answer to a `method` request.
    pub(super) fn answer(&self, method: &str, recorded: &[u8], live: &[u8]) -> Verdict {
        let tasks = method.starts_with("tasks/");
        let ignored = if tasks { &self.task_answers } else { &self.answers };
        self.apart(self.changes(recorded, live, ignored))
    }

    /// The differences of a page of a list, apart from its items.
    pub(super) fn page(&self, list: List, recorded: &[u8], live: &[u8]) -> Verdict {
        let mut ignored = self.answers.clone();
        // Items are compared one by one, unless only their shape counts.
        if self.compares_items(list) {
            ignored.extend(Path::read(&format!("result.{}", list.member())));
        }
        self.apart(self.changes(recorded, live, &ignored))
    }

    /// Whether the items of a list are compared one by one. Tools are, even when only shapes are
    /// compared: their descriptions are shapes.
    pub(super) fn compares_items(&self, list: List) -> bool {
        !self.shape_only || list == List::Tools
    }

    /// Whether `place`, or a value that contains it, is not compared.
    pub(super) fn is_ignored(&self, place: &Place) -> bool {
        (1..=place.steps.len()).any(|depth| {
            let outer = Place { steps: place.steps[..depth].to_vec() };
            self.answers.iter().any(|path| outer.is_at(path))
        })
    }

    /// The differences of an item of a list that is at `place` in the message.
    pub(super) fn item(&self, place: Place, recorded: &[u8], live: &[u8]) -> Changes {
        let depth = place.steps.len();
        let mut changes = by_value(place, recorded, live, &self.answers);
        for change in &mut changes.listed {
            change.place.steps.drain(..depth);
        }
        changes
    }

    /// The differences of a notification or request from the server.
    pub(super) fn own_accord(&self, method: &str, recorded: &[u8], live: &[u8]) -> Changes {
        let tasks = method.starts_with("notifications/tasks/");
        let ignored = if tasks { &self.task_notices } else { &self.own_accord };
        self.changes(recorded, live, ignored)
    }

    fn changes(&self, recorded: &[u8], live: &[u8], ignored: &[Path]) -> Changes {
        if !self.shape_only {
            return by_value(Place::default(), recorded, live, ignored);
        }
        let changes = shape::changes(recorded, live, ignored, LISTED_MAX);
        changes.unwrap_or_else(|_| whole(recorded, live))
    }

    /// Separates the server's version from the other changes.
    fn apart(&self, mut changes: Changes) -> Verdict {
        let is_version = |change: &Change| {
            let both = change.recorded.is_some() && change.live.is_some();
            both && self.versions.iter().any(|path| change.place.is_at(path))
        };
        let at = changes.listed.iter().position(is_version);
        let version = at.and_then(|at| {
            let change = changes.listed.remove(at);
            change.recorded.zip(change.live)
        });
        Verdict { version, changes }
    }
}

fn by_value(root: Place, recorded: &[u8], live: &[u8], ignored: &[Path]) -> Changes {
    let terms = Terms { root, ignored, listed_max: LISTED_MAX };
    let Ok(found) = diff::diff(recorded, live, &terms) else { return whole(recorded, live) };
    let owned = |found: &Difference<'_>| {
        let (recorded, live) = match found.change {
            diff::Change::Added(new) => (None, Some(new)),
            diff::Change::Removed(old) => (Some(old), None),
            diff::Change::Value { old, new } | diff::Change::Kind { old, new } => {
                (Some(old), Some(new))
            }
        };
        Change {
            place: found.place.clone(),
            recorded: recorded.map(<[u8]>::to_vec),
            live: live.map(<[u8]>::to_vec),
        }
    };
    Changes { listed: found.listed.iter().map(owned).collect(), more: found.more }
}

/// Texts that cannot be parsed differ as a whole.
fn whole(recorded: &[u8], live: &[u8]) -> Changes {
    let (recorded, live) = (Some(recorded.to_vec()), Some(live.to_vec()));
    Changes { listed: vec![Change { place: Place::default(), recorded, live }], more: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Hop;

    fn places(changes: &Changes) -> Vec<String> {
        changes.listed.iter().map(|change| change.place.to_string()).collect()
    }

    fn judge(ignored: &[&str]) -> Judge {
        let ignored: Vec<_> = ignored.iter().map(|path| Path::read(path).unwrap()).collect();
        Judge::new(&ignored, false, None)
    }

    #[test]
    fn every_fixed_path_can_be_read() {
        for list in [OF_ANSWERS, OF_TASKS, OF_OWN_ACCORD, OF_TASK_NOTICES, VERSIONS] {
            assert!(list.iter().all(|path| Path::read(path).is_ok()));
        }
    }

    #[test]
    fn what_is_minted_is_not_compared() {
        let recorded = br#"{"jsonrpc":"2.0","id":1,"result":{"requestState":"a","task":{"taskId":"t","status":"working","createdAt":"x"}}}"#;
        let live = br#"{"id":"1","result":{"task":{"createdAt":"y","taskId":"u","status":"failed"},"requestState":"b"}}"#;
        let verdict = judge(&[]).answer("tools/call", recorded, live);
        assert_eq!(places(&verdict.changes), ["result.task.status"]);
        let verdict = judge(&["result.task"]).answer("tools/call", recorded, live);
        assert!(verdict.changes.is_empty());
    }

    #[test]
    fn moments_count_where_they_are_not_those_of_tasks() {
        let (recorded, live) = (br#"{"result":{"createdAt":1}}"#, br#"{"result":{"createdAt":2}}"#);
        assert!(judge(&[]).answer("tasks/get", recorded, live).changes.is_empty());
        assert!(!judge(&[]).answer("files/stat", recorded, live).changes.is_empty());
    }

    #[test]
    fn a_servers_version_is_told_apart() {
        let recorded =
            br#"{"result":{"serverInfo":{"name":"s","version":"1"},"instructions":"x"}}"#;
        let live = br#"{"result":{"serverInfo":{"name":"s","version":"2"},"instructions":"y"}}"#;
        let verdict = judge(&[]).answer("initialize", recorded, live);
        assert_eq!(verdict.version, Some((b"\"1\"".to_vec(), b"\"2\"".to_vec())));
        assert_eq!(places(&verdict.changes), ["result.instructions"]);
    }

    #[test]
    fn places_in_an_item_start_at_the_item() {
        let place = Place {
            steps: vec![Hop::Key("result".into()), Hop::Key("tools".into()), Hop::Index(3)],
        };
        let (recorded, live) = (br#"{"a":{"b":1},"c":1}"#, br#"{"a":{"b":2},"c":2}"#);
        let changes = judge(&["result.tools[*].c"]).item(place, recorded, live);
        assert_eq!(places(&changes), ["a.b"]);
    }
}
