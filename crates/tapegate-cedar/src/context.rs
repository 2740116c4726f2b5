//! The context of a request: everything but the caller, the action and the resource.

use cedar_policy::{Context, RestrictedExpression};

use crate::combine::put;
use crate::polarity::{FOLDERS, POSSIBLE_FOLDERS, READINGS};
use crate::request_time::RequestTime;
use crate::value::{FolderFacts, record};
use crate::{CedarPolicies, CedarQuery};

impl CedarPolicies {
    pub(crate) fn context(
        &self,
        question: &CedarQuery<'_>,
        written: RestrictedExpression,
        readings: RestrictedExpression,
        folders: &[FolderFacts],
    ) -> Option<Context> {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let mut pairs = vec![("arguments".to_owned(), written)];
        if self.reads.readings {
            pairs.push((READINGS.to_owned(), readings));
        }
        if !self.reads.folders.is_empty() {
            pairs.push((FOLDERS.to_owned(), self.folders(folders, |facts| &facts.sure)?));
            let possible = self.folders(folders, |facts| &facts.possible)?;
            pairs.push((POSSIBLE_FOLDERS.to_owned(), possible));
        }
        if self.reads.ids {
            pairs.push(("policy_id".to_owned(), text(question.policy_id)));
            pairs.push(("source_id".to_owned(), text(question.server)));
        }
        if self.reads.time {
            let moment = RequestTime::new(question.wall_us);
            let time = [
                ("hour", moment.hour),
                ("day_of_week", moment.day_of_week),
                ("timestamp", moment.timestamp),
            ];
            let time =
                time.map(|(name, value)| (name.to_owned(), RestrictedExpression::new_long(value)));
            pairs.push(("time".to_owned(), RestrictedExpression::new_record(time).ok()?));
        }
        Context::from_pairs(pairs).ok()
    }

    /// The folders of every argument that a policy tests for folders; empty if it is missing.
    fn folders(
        &self,
        found: &[FolderFacts],
        of: impl Fn(&FolderFacts) -> &Vec<String>,
    ) -> Option<RestrictedExpression> {
        let mut members = Vec::new();
        for path in self.reads.folders.keys() {
            let facts = found.iter().filter(|facts| facts.path == *path);
            let texts = facts.flat_map(&of).cloned().map(RestrictedExpression::new_string);
            // Empty sets are put in too, so that a folder test needs no `has`.
            put(&mut members, path, RestrictedExpression::new_set(texts));
        }
        record(members)
    }
}
