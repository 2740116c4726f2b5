//! Evaluates policies for a call.
//!
//! No failure permits a call: a `forbid` that cannot be evaluated, or that reads an argument of the
//! wrong kind, counts as a refusal. A `permit` of that sort does not apply, though an approval that
//! it requires is still required. Arguments that servers may read in several ways are evaluated for
//! each reading: one reading is enough to deny, and all must pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use cedar_policy::{
    AuthorizationError, Decision, Effect, PolicyId, PolicySet, Response, RestrictedExpression,
};

use crate::build::approval_policy_target;
use crate::combine::ReadingCombinations;
use crate::request_entities::RequestEntities;
use crate::value::{CallArguments, MisfitArgument, arguments, record};
use crate::{CedarAnswer, CedarPolicies, CedarQuery, PolicyDetails};

/// The policies to evaluate, and what is known beforehand.
struct PolicyQuery<'a> {
    policies: &'a PolicySet,
    errors: Vec<String>,
    /// Policies that require approval, whatever the others decide.
    asking: BTreeSet<String>,
}

/// The decision of the policies for one reading of the arguments.
#[derive(Default)]
struct QueryResult {
    /// Those that permit.
    permits: BTreeSet<String>,
    /// Those that require approval.
    asking: BTreeSet<String>,
    /// Those that deny, and why.
    refusal: Option<(Vec<String>, String)>,
    errors: Vec<String>,
}

impl CedarPolicies {
    /// Evaluates the policies for a call.
    pub fn authorize(&self, question: &CedarQuery<'_>) -> CedarAnswer {
        let (action, kind) = self.dialect.action(question.method, question.name);
        let called = action == "tools/call";
        let types = self.types.of(called, question.server, question.name);
        let mut made =
            arguments(question.arguments, &self.reads.arguments, types, question.url_reader);
        // Before the check for misfits, because too many combinations become misfits themselves.
        let too_many = ReadingCombinations::limit(&mut made.alternatives);
        made.misfits.extend(too_many);
        if made.misfits.is_empty() {
            let policies = &self.policies;
            let (errors, asking) = (Vec::new(), BTreeSet::new());
            let query = PolicyQuery { policies, errors, asking };
            return self.hold(query, question, made, (action, kind));
        }
        self.authorize_with_misfits(question, made, (action, kind))
    }

    /// Evaluates a call with arguments of the wrong kind: permits that read them are left out,
    /// forbids that read them deny.
    fn authorize_with_misfits(
        &self,
        question: &CedarQuery<'_>,
        made: CallArguments,
        (action, kind): (&'static str, &'static str),
    ) -> CedarAnswer {
        let mut policies = self.policies.clone();
        let (mut errors, mut refusing) = (Vec::new(), BTreeSet::new());
        let mut people = BTreeSet::new();
        for (id, kept) in &self.details {
            let about = kept.selector.may_be_about(action, kind, question.server, question.name);
            // In Cedar a comparison of different types is false, not an error. So a `forbid` on
            // `mode == "all"` would pass `["all"]` if it were evaluated.
            let touched = made.misfits.iter().find(|misfit| kept.is_affected_by(misfit));
            let Some(misfit) = touched.filter(|_| about) else { continue };
            errors.push(format!("policy `{id}` was not evaluated: {}", misfit_text(misfit)));
            let forbids = kept.effect == Effect::Forbid;
            // A permit that cannot be left out might still permit the call, so that counts as a
            // refusal too.
            if forbids || policies.remove_static(PolicyId::new(id)).is_err() {
                refusing.insert(id.clone());
            }
            if kept.approval.is_some() {
                // The policy may apply to this call, so approval is required.
                people.insert(id.clone());
            }
        }
        if refusing.is_empty() {
            let query = PolicyQuery { policies: &policies, errors, asking: people };
            return self.hold(query, question, made, (action, kind));
        }
        let reason = format!("{}; that counts as a refusal", errors.join("; "));
        refusal_answer(reason, refusing.into_iter().collect(), errors)
    }

    fn hold(
        &self,
        query: PolicyQuery<'_>,
        question: &CedarQuery<'_>,
        made: CallArguments,
        (action, kind): (&'static str, &'static str),
    ) -> CedarAnswer {
        let lost = || "the call cannot be expressed in Cedar".to_owned();
        let Some(request_entities) = self.entities(question, &made, action, kind) else {
            return refusal_answer(lost(), Vec::new(), query.errors);
        };
        // As written first: most calls have no other reading and are decided here.
        let Some(held) = self.evaluate_reading(&query, &request_entities, question, &made, None)
        else {
            return refusal_answer(lost(), Vec::new(), query.errors);
        };
        let mut errors = [query.errors.clone(), held.errors].concat();
        if let Some((policies, reason)) = held.refusal {
            return refusal_answer(reason, policies, errors);
        }
        let (mut permits, mut asking) = (held.permits, held.asking);
        asking.extend(query.asking.iter().cloned());
        // Other readings can only take permits away, so they need not be evaluated.
        if permits.is_empty() {
            return self.permitting_answer(permits, &asking, errors);
        }
        for combination in ReadingCombinations::of(&made.alternatives) {
            let read = || format!(", as {}", combination.describe());
            let held = self.evaluate_reading(
                &query,
                &request_entities,
                question,
                &made,
                Some(combination.readings(&made)),
            );
            let Some(held) = held else { return refusal_answer(lost(), Vec::new(), errors) };
            let new = |error: &String| !errors.contains(error);
            let new: Vec<String> = held.errors.into_iter().filter(new).collect();
            errors.extend(new);
            if let Some((policies, reason)) = held.refusal {
                return refusal_answer(reason + &read(), policies, errors);
            }
            // The same policy must permit every reading; two policies that cover one reading each
            // do not add up.
            permits.retain(|id| held.permits.contains(id));
            // One reading is enough to require approval.
            asking.extend(held.asking);
            if permits.is_empty() {
                return refusal_answer(
                    format!("no policy permits it{}", read()),
                    Vec::new(),
                    errors,
                );
            }
        }
        self.permitting_answer(permits, &asking, errors)
    }

    /// Evaluates the policies for one reading of the arguments; `None` means as they are written.
    fn evaluate_reading(
        &self,
        query: &PolicyQuery<'_>,
        request_entities: &RequestEntities,
        question: &CedarQuery<'_>,
        made: &CallArguments,
        readings: Option<Option<RestrictedExpression>>,
    ) -> Option<QueryResult> {
        let written = record(made.members.clone())?;
        let readings = match readings {
            Some(readings) => readings?,
            None => written.clone(),
        };
        let context = self.context(question, written, readings, &made.folders)?;
        Some(self.judge(&request_entities.authorize(query.policies, context)?))
    }

    /// The answer if nothing forbids the call.
    fn permitting_answer(
        &self,
        permits: BTreeSet<String>,
        asking: &BTreeSet<String>,
        errors: Vec<String>,
    ) -> CedarAnswer {
        if permits.is_empty() {
            return refusal_answer("no policy permits it".to_owned(), Vec::new(), errors);
        }
        let asks = |id: &String| self.details.get(id).and_then(|kept| kept.approval.clone());
        let mut policies = permits;
        let reason = format!("permitted by {}", list(&policies));
        // Sorted by id, so the first by id sets the workflow, as documented.
        let approval = policies.union(asking).find_map(asks);
        policies.extend(asking.iter().cloned());
        CedarAnswer {
            permit: true,
            approval,
            reason,
            policies: policies.into_iter().collect(),
            errors,
        }
    }

    /// Interprets a response of Cedar.
    fn judge(&self, response: &Response) -> QueryResult {
        let (mut errors, mut failed, mut asking) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            let id: &str = error.policy_id().as_ref();
            // A copy that cannot be evaluated may have applied, so its approval is required.
            if let Some(own) = approval_policy_target(id) {
                asking.insert(own.to_owned());
                continue;
            }
            errors.push(format!("policy `{id}`: {}", error.inner()));
            // Cedar skips a policy that fails. For a permit that is safe, for a forbid it is not.
            if self.details.get(id).is_none_or(|kept| kept.effect == Effect::Forbid) {
                failed.insert(id.to_owned());
            }
        }
        let deciding: BTreeSet<String> =
            response.diagnostics().reason().map(|id| AsRef::<str>::as_ref(id).to_owned()).collect();
        let mut held = QueryResult::default();
        if response.decision() == Decision::Deny && !deciding.is_empty() {
            let reason = format!("forbidden by {}", list(&deciding));
            held.refusal = Some((deciding.into_iter().collect(), reason));
        // A forbid that applied gives the better reason, so this comes second.
        } else if !failed.is_empty() {
            let reason = format!(
                "{} forbids but could not be evaluated, which counts as a refusal: {}",
                list(&failed),
                errors.join("; ")
            );
            held.refusal = Some((failed.into_iter().collect(), reason));
        } else {
            held = QueryResult::of(deciding);
        }
        held.asking.extend(asking);
        QueryResult { errors, ..held }
    }

    fn entities(
        &self,
        question: &CedarQuery<'_>,
        made: &CallArguments,
        action: &str,
        kind: &str,
    ) -> Option<Arc<RequestEntities>> {
        // The arguments are part of the resource then, so the entities differ from call to call.
        if self.reads.by_resource && action == "tools/call" {
            let arguments = Some(record(made.members.clone())?);
            return RequestEntities::new(&self.names, question, action, kind, arguments)
                .map(Arc::new);
        }
        self.entities_cache.get(&self.names, question, action, kind)
    }
}

impl QueryResult {
    /// The result if these policies apply and none forbids.
    fn of(deciding: BTreeSet<String>) -> Self {
        let mut held = Self::default();
        for id in deciding {
            match approval_policy_target(&id) {
                Some(own) => drop(held.asking.insert(own.to_owned())),
                None => drop(held.permits.insert(id)),
            }
        }
        held
    }
}

impl PolicyDetails {
    /// Whether the policy is affected by an argument of the wrong kind.
    fn is_affected_by(&self, misfit: &MisfitArgument) -> bool {
        let arguments = &self.reads.arguments;
        match misfit.climbs {
            // A path with `..` is wrong only for `like` with a `/`. Other tests compare it as
            // usual.
            true => arguments.get(&misfit.path).is_some_and(|tree| tree.path_pattern),
            false => arguments.touches(&misfit.path),
        }
    }
}

fn list(ids: &BTreeSet<String>) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn refusal_answer(reason: String, policies: Vec<String>, errors: Vec<String>) -> CedarAnswer {
    CedarAnswer { permit: false, policies, approval: None, errors, reason }
}

fn misfit_text(misfit: &MisfitArgument) -> String {
    match &misfit.path[..] {
        [] => format!("the arguments are invalid: {}", misfit.reason),
        path => format!("the argument `{}` is invalid: {}", path.join("."), misfit.reason),
    }
}
