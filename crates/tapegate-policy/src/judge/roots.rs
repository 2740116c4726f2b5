//! The roots that a client exposes to its server.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Calls, Judge, JudgedCall, Judging};
use crate::decide::names_own_file;

/// The request that roots are a response to.
const METHOD: &str = "roots/list";

impl Judge<'_> {
    /// The refusal of a response with a root in Tapegate's own folders; no calls if it has none.
    pub(super) fn answered_roots<'m>(&self, answer: Option<&[u8]>) -> Calls<'m> {
        let found = self.policy.and_then(|policy| policy.own_files.named_by_roots(answer));
        let Some(found) = found else { return Calls::None };
        Calls::One(JudgedCall {
            method: Cow::Borrowed(METHOD),
            offer: None,
            name: Cow::Borrowed(""),
            decision: Some(Arc::new(names_own_file(self.profile, &found))),
            cannot_wait: false,
        })
    }

    /// The same for the responses that a client's request carries.
    pub(super) fn brought_roots<'m>(&self, now: &Judging<'_, 'm>) -> Calls<'m> {
        // Plain params have only the usual members of a call, and no response among them.
        if now.envelope.plain {
            return Calls::None;
        }
        let params = now.envelope.params.filter(|params| may_bring_answers(params));
        self.answered_roots(params)
    }
}

/// A cheap check whether params may have `inputResponses`; few do.
fn may_bring_answers(params: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(params, text.as_bytes()).is_some();
    has("esponses") || has("ESPONSES") || has("\\u")
}
