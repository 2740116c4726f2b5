//! What is granted together with an approval: by `tapegate approvals` and by the API alike.

use std::time::Duration;

use serde_json::json;
use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel, GateName};
use tapegate_core::grant_pattern::{ArgumentRange, GrantPattern};
use tapegate_core::visible_text::inline;
use tapegate_policy::approval_channel::call_hash;
use tapegate_policy::decide::ApprovalScope;
use tapegate_policy::granted_calls::{GrantedCall, check_pattern};
use tapegate_store::activity;
use tapegate_store::approvals::{
    ApprovalError, ApprovalGrant, ApprovalRecord, ApprovalStore, GrantCoverage, UnmaskedParams,
};

use crate::api::GrantRequest;

/// No grant lasts longer.
pub const PERIOD_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longer names are cut where people read them.
const NAME_CHARS_MAX: usize = 40;

/// What is granted besides the call itself.
#[derive(Debug, Clone)]
pub struct GrantPlan {
    /// How long it counts.
    pub period: Duration,
    /// Whether it ends with the session of the caller.
    pub is_session: bool,
    /// The arguments that may differ.
    pub patterns: Vec<GrantPattern>,
}

/// Why a grant cannot be given.
#[derive(Debug, thiserror::Error)]
pub enum GrantRefusal {
    /// What is asked for makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The request cannot have such a grant.
    #[error("{0}")]
    Unfit(String),
    /// The params of the call could not be read.
    #[error(transparent)]
    Store(#[from] ApprovalError),
}

impl GrantPlan {
    /// The same call, until the session of its caller ends.
    pub fn for_session() -> Self {
        Self { period: PERIOD_MAX, is_session: true, patterns: Vec::new() }
    }

    /// Checks what was asked for.
    pub fn new(
        period: Option<Duration>,
        is_session: bool,
        patterns: Vec<GrantPattern>,
    ) -> Result<Self, GrantRefusal> {
        let invalid = |message: String| Err(GrantRefusal::Invalid(message));
        if period.is_some_and(|period| period.is_zero() || period > PERIOD_MAX) {
            return invalid("a grant lasts at most 24h, and longer than nothing".to_owned());
        }
        for (at, pattern) in patterns.iter().enumerate() {
            check_pattern(pattern).map_err(GrantRefusal::Invalid)?;
            if patterns[..at].iter().any(|one| one.argument == pattern.argument) {
                return invalid(format!("the argument `{}` has two patterns", pattern.argument));
            }
        }
        Ok(Self { period: period.unwrap_or(PERIOD_MAX), is_session, patterns })
    }

    /// The grant for calls like this one, which is not stored yet. To be made before the request is
    /// decided: the params that are compared are removed then.
    pub fn grant_for(
        &self,
        approvals: &ApprovalStore,
        request: &ApprovalRecord,
        by: &str,
        now_us: i64,
    ) -> Result<ApprovalGrant, GrantRefusal> {
        let unfit = |message: String| Err(GrantRefusal::Unfit(message));
        if request.needed_approvals() > 1 {
            return unfit(format!(
                "`{}` needs several approvers, and a grant is given by one",
                request.id
            ));
        }
        if self.is_session && request.connection_id.is_empty() {
            return unfit(format!("`{}` does not say to which session it belongs", request.id));
        }
        let coverage = match self.patterns.is_empty() {
            true => GrantCoverage::SameCall(request.call_hash.clone()),
            false => self.coverage(approvals, request)?,
        };
        let created_us = approvals.asker_now_us(request, now_us);
        let period_us = i64::try_from(self.period.as_micros()).unwrap_or(i64::MAX);
        Ok(ApprovalGrant {
            id: String::new(),
            request_id: request.id.clone(),
            created_us,
            expires_us: created_us.saturating_add(period_us),
            by: by.to_owned(),
            server_id: request.server_id.clone(),
            method: request.method.clone(),
            tool: request.tool.clone(),
            workflow: request.workflow.clone(),
            folder: request.folder.clone(),
            policy: request.policy.clone(),
            session: self.is_session.then(|| request.connection_id.clone()),
            coverage,
            revoked: None,
        })
    }

    fn coverage(
        &self,
        approvals: &ApprovalStore,
        request: &ApprovalRecord,
    ) -> Result<GrantCoverage, GrantRefusal> {
        let unfit = |message: String| Err(GrantRefusal::Unfit(message));
        let id = &request.id;
        let shown = request.params.clone().unwrap_or_default();
        let params = match approvals.unmasked(request)? {
            UnmaskedParams::Params(params) => params,
            _ if !shown.contains("[REDACTED") => shown.into_bytes(),
            _ => {
                return unfit(format!(
                    "the whole of `{id}` was not kept, so no pattern can be granted"
                ));
            }
        };
        let scope = ApprovalScope { workflow: &request.workflow, drift: None };
        // Also proves that these are the params of the call that waits.
        if call_hash(&request.method, Some(&params), scope) != request.call_hash {
            return unfit(format!(
                "`{id}` waits because the definition of its tool has changed; such a call can only be \
                 approved by itself"
            ));
        }
        let call = GrantedCall { method: &request.method, params: &params, scope };
        match call.hash_without(&self.patterns) {
            Some(hash) if call.has_values_of(&self.patterns) => {
                Ok(GrantCoverage::Patterns { hash, patterns: self.patterns.clone() })
            }
            _ => unfit(format!("the patterns do not cover `{id}` itself")),
        }
    }
}

impl TryFrom<&GrantRequest> for GrantPlan {
    type Error = GrantRefusal;

    fn try_from(request: &GrantRequest) -> Result<Self, GrantRefusal> {
        let GrantRequest { for_s, session, under, matching } = request;
        if for_s.is_none() && !session {
            let message = "a grant needs `for_s` or `session`".to_owned();
            return Err(GrantRefusal::Invalid(message));
        }
        let pattern = |(argument, range): (&String, ArgumentRange)| GrantPattern {
            argument: argument.clone(),
            range,
        };
        let under = under.iter().map(|(name, folder)| (name, ArgumentRange::Under(folder.clone())));
        let matching =
            matching.iter().map(|(name, glob)| (name, ArgumentRange::Matching(glob.clone())));
        let patterns = under.chain(matching).map(pattern).collect();
        Self::new(for_s.map(Duration::from_secs), *session, patterns)
    }
}

/// Which calls a grant covers, in one line for people.
pub fn covers(grant: &ApprovalGrant) -> String {
    let name = |text: &str| inline(text, NAME_CHARS_MAX);
    let what = match &grant.coverage {
        // A hash would say nothing to a person.
        GrantCoverage::SameCall(_) => "the same call".to_owned(),
        GrantCoverage::Patterns { patterns, .. } => {
            let texts = patterns.iter().map(|pattern| {
                let (word, text) = pattern.range.parts();
                format!("{} {word} {}", name(&pattern.argument), inline(text, 200))
            });
            format!("calls that differ only in {}", texts.collect::<Vec<_>>().join(" and "))
        }
    };
    let session = if grant.session.is_some() { " in the same session" } else { "" };
    format!("{} {}: {what}{session}", name(&grant.server_id), name(&grant.tool))
}

/// The event for a grant that was given or revoked, or whose time is over.
pub fn grant_event<'a>(
    grant: &'a ApprovalGrant,
    by: &str,
    word: &str,
    wall_us: i64,
) -> ActivityEvent<'a> {
    let message = format!("{word} by {by}: {}", covers(grant));
    ActivityEvent {
        wall_us,
        level: EventLevel::Warn,
        kind: ActivityKind::Approval,
        server_id: grant.server_id.as_str().into(),
        method: Some(grant.method.as_str().into()),
        tool: Some(grant.tool.as_str().into()),
        gate: Some(GateName::Approval),
        policy_reason: Some(message.into()),
        approval_id: Some(grant.id.as_str().into()),
        extra: activity::extra(&json!({ "event": word, "request": grant.request_id, "by": by })),
        ..ActivityEvent::default()
    }
}
