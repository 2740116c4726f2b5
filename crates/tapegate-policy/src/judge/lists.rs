//! Compares lists in responses with the accepted definitions and filters them.

use tapegate_core::frame::Frame;

use super::visibility::VisibleLists;
use super::{JudgedMessage, Judgement, PolicyJudge, SessionState};
use crate::filter::{filter, lists, next_cursor};
use crate::model::OnDrift;
use crate::pins::ListReader;

impl PolicyJudge<'_> {
    /// Compares the lists of a response with the accepted definitions and removes hidden items.
    pub(super) fn list(
        &self,
        frame: &Frame<'_>,
        now: &JudgedMessage<'_, '_>,
        judgement: &mut Judgement<'_>,
        state: &mut SessionState,
    ) {
        let (Some(policy), Some(result)) = (self.policy, now.envelope.result) else { return };
        // The scan of the frame has found every key that some reader takes for a list.
        if !now.envelope.lists {
            return;
        }
        let lock = &policy.pins.lock;
        if policy.pins.on_drift != OnDrift::Ignore {
            let last = next_cursor(result).is_none();
            let reader = ListReader { session: now.arrival.session, own: None };
            let found = lists(result);
            // Before filtering, which hides items that turn out to have drifted in this very list.
            judgement.drifted = state.watch.learn(lock, self.source, &found, reader, last);
        }
        let view = VisibleLists {
            source: policy.source(self.source),
            watch: &state.watch,
            // Under `approve` and `warn` a drifted item can still be called, so the client must see
            // it.
            lock: Some(lock).filter(|_| policy.pins.on_drift == OnDrift::Deny),
            server: self.source,
        };
        let filtered = filter(frame.bytes(), result, &view);
        (judgement.lists, judgement.filtered) = (filtered.lists, filtered.text);
    }
}
