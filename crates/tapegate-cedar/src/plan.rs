//! A faster evaluation for a caller and a resource that occur repeatedly.
//!
//! The scope of a policy does not depend on the arguments, so it is evaluated once. Only conditions
//! remain, those of all `forbid`s combined into one. If that one applies, or any policy fails, the
//! whole set is evaluated instead: a plan only ever finds that nothing forbids, and which policies
//! permit.

use std::collections::BTreeSet;
use std::sync::Arc;

use cedar_policy::pst::{
    ActionConstraint, BinaryOp, Clause, Effect, Expr, Literal, Policy, PrincipalConstraint,
    ResourceConstraint, StaticPolicy, Template, UnaryOp,
};
use cedar_policy::{Authorizer, Context, Decision, PolicyId, PolicySet, Request, Response};

use crate::request_entities::RequestEntities;

/// The policies reduced to those that apply to a scene.
#[derive(Debug)]
pub(crate) struct ShortenedPolicies {
    policies: PolicySet,
}

/// The result of a plan.
pub(crate) enum ShortcutResult {
    /// These permit, and nothing forbids; if empty, nothing permits.
    Permits(BTreeSet<String>),
    /// The whole set must be evaluated.
    Unsure,
}

impl ShortenedPolicies {
    /// Reduces the policies for a scene; `None` if that is not possible.
    pub(crate) fn new(policies: &PolicySet, request_entities: &RequestEntities) -> Option<Self> {
        let mut scopes = PolicySet::new();
        let mut all = Vec::new();
        for policy in policies.policies() {
            let pst = policy.to_pst().ok()?;
            let body = pst.body();
            let mut scope = body.clone().try_with_clauses([]).ok()?;
            // As permits without conditions, the policies whose scope applies are exactly those
            // that Cedar names as reasons.
            scope.effect = Effect::Permit;
            scopes.add(build_policy(scope)?).ok()?;
            all.push((policy.id().clone(), pst));
        }
        let response = authorize(&scopes, request_entities, Context::empty())?;
        let holds: BTreeSet<&PolicyId> = response.diagnostics().reason().collect();
        let mut short = PolicySet::new();
        let mut forbids = Vec::new();
        for (id, policy) in all.iter().filter(|(id, _)| holds.contains(id)) {
            let body = policy.body();
            match body.effect {
                Effect::Forbid => forbids.push(Arc::new(condition(body))),
                Effect::Permit => {
                    let id: &str = id.as_ref();
                    let clauses = body.clauses().clone();
                    short
                        .add(build_policy(policy_for_everything(id, Effect::Permit, clauses)?)?)
                        .ok()?;
                }
            }
        }
        if let Some(any) = any_of(&forbids) {
            // No policy can have this name: `@id` is never empty.
            short
                .add(build_policy(policy_for_everything(
                    "",
                    Effect::Forbid,
                    vec![Clause::When(any)],
                )?)?)
                .ok()?;
        }
        Some(Self { policies: short })
    }

    /// Evaluates the plan.
    pub(crate) fn evaluate(
        &self,
        request_entities: &RequestEntities,
        context: Context,
    ) -> ShortcutResult {
        let Some(response) = authorize(&self.policies, request_entities, context) else {
            return ShortcutResult::Unsure;
        };
        let diagnostics = response.diagnostics();
        let names = || diagnostics.reason().map(|id| AsRef::<str>::as_ref(id).to_owned()).collect();
        match response.decision() {
            // Errors first: a decision that ignores a failed policy means nothing here.
            _ if diagnostics.errors().next().is_some() => ShortcutResult::Unsure,
            Decision::Deny if diagnostics.reason().next().is_some() => ShortcutResult::Unsure,
            Decision::Deny => ShortcutResult::Permits(BTreeSet::new()),
            Decision::Allow => ShortcutResult::Permits(names()),
        }
    }
}

/// Evaluates policies for a scene.
pub(crate) fn authorize(
    policies: &PolicySet,
    request_entities: &RequestEntities,
    context: Context,
) -> Option<Response> {
    let (principal, resource) =
        (request_entities.principal.clone(), request_entities.resource.clone());
    let request =
        Request::new(principal, request_entities.action.clone(), resource, context, None).ok()?;
    Some(Authorizer::new().is_authorized(&request, policies, &request_entities.entities))
}

pub(crate) fn build_policy(body: Template) -> Option<cedar_policy::Policy> {
    let policy = Policy::Static(StaticPolicy::try_from(body).ok()?);
    cedar_policy::Policy::from_pst(policy).ok()
}

/// A policy with an unrestricted scope.
fn policy_for_everything(id: &str, effect: Effect, clauses: Vec<Clause>) -> Option<Template> {
    let id = cedar_policy::pst::PolicyID(id.into());
    let (principal, resource) = (PrincipalConstraint::Any, ResourceConstraint::Any);
    let body = Template::new(id, effect, principal, ActionConstraint::Any, resource);
    body.try_with_clauses(clauses).ok()
}

/// The clauses of a policy as one expression.
fn condition(body: &Template) -> Expr {
    let clauses = body.clauses().iter().map(|clause| match clause {
        Clause::When(expr) => Arc::clone(expr),
        Clause::Unless(expr) => {
            Arc::new(Expr::UnaryOp { op: UnaryOp::Not, expr: Arc::clone(expr) })
        }
    });
    let all =
        clauses.reduce(|left, right| Arc::new(Expr::BinaryOp { op: BinaryOp::And, left, right }));
    all.map_or(Expr::Literal(Literal::Bool(true)), |all| all.as_ref().clone())
}

/// The disjunction of the expressions, as a balanced tree.
fn any_of(all: &[Arc<Expr>]) -> Option<Arc<Expr>> {
    match all {
        [] => None,
        // Balanced, because Cedar evaluates expressions recursively and limits their depth.
        [one] => Some(Arc::clone(one)),
        _ => {
            let (left, right) = all.split_at(all.len() / 2);
            let (left, right) = (any_of(left)?, any_of(right)?);
            Some(Arc::new(Expr::BinaryOp { op: BinaryOp::Or, left, right }))
        }
    }
}
