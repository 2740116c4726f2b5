//! The roots that a client exposes to its server.

use super::{JudgedCall, JudgedCalls, JudgedMessage, PolicyJudge};
use crate::decide::refuse_own_file;
use std::borrow::Cow;

/// The request that roots are a response to.
const METHOD: &str = "roots/list";

impl PolicyJudge<'_> {
    /// The refusal of a response with a root in Tapegate's own folders; no calls if it has none.
    pub(super) fn judge_roots_answer<'m>(&self, answer: Option<&[u8]>) -> JudgedCalls<'m> {
        let found = self.policy.and_then(|policy| policy.own_files.named_by_roots(answer));
        let Some(found) = found else { return JudgedCalls::None };
        JudgedCalls::One(JudgedCall {
            method: Cow::Borrowed(METHOD),
            offer: None,
            name: Cow::Borrowed(""),
            decision: Some(Box::new(refuse_own_file(self.profile, &found))),
            cannot_wait: false,
        })
    }

    /// The same for the responses that a client's request carries.
    pub(super) fn judge_carried_roots<'m>(&self, now: &JudgedMessage<'_, 'm>) -> JudgedCalls<'m> {
        // Plain params have only the usual members of a call, and no response among them.
        if now.envelope.plain {
            return JudgedCalls::None;
        }
        let params = now.envelope.params.filter(|params| may_carry_answers(params));
        self.judge_roots_answer(params)
    }
}

/// A cheap check whether params may have `inputResponses`; few do.
fn may_carry_answers(params: &[u8]) -> bool {
    let has = |text: &str| memchr::memmem::find(params, text.as_bytes()).is_some();
    // Mixed case is covered elsewhere: a call with a lookalike of the key is refused, and the
    // params of other methods are searched for our files as a whole.
    has("esponses") || has("ESPONSES") || has("\\u")
}
