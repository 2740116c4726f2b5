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

use crate::build::asks_for;
use crate::combine::Combinations;
use crate::plan::{self, Short};
use crate::scene::Scene;
use crate::value::{Arguments, Misfit, arguments, record};
use crate::{Answer, Cedar, Kept, Question};

/// The policies to evaluate, and what is known beforehand.
struct Asked<'a> {
    policies: &'a PolicySet,
    /// Whether no policy was left out.
    whole: bool,
    errors: Vec<String>,
    /// Policies that require approval, whatever the others decide.
    asking: BTreeSet<String>,
}

/// The decision of the policies for one reading of the arguments.
#[derive(Default)]
struct Held {
    /// Those that permit.
    permits: BTreeSet<String>,
    /// Those that require approval.
    asking: BTreeSet<String>,
    /// Those that deny, and why.
    refusal: Option<(Vec<String>, String)>,
    errors: Vec<String>,
}

impl Cedar {
    /// Evaluates the policies for a call.
    pub fn ask(&self, question: &Question<'_>) -> Answer {
        let (action, kind) = self.dialect.action(question.method, question.name);
        let called = action == "tools/call";
        let types = self.types.of(called, question.server, question.name);
        let mut made =
            arguments(question.arguments, &self.reads.arguments, types, question.url_reader);
        let too_many = Combinations::limit(&mut made.alternatives);
        made.misfits.extend(too_many);
        if made.misfits.is_empty() {
            let policies = &self.policies;
            let (errors, asking) = (Vec::new(), BTreeSet::new());
            let asked = Asked { policies, whole: true, errors, asking };
            return self.hold(asked, question, made, (action, kind));
        }
        self.ask_around(question, made, (action, kind))
    }

    /// Evaluates a call with arguments of the wrong kind: permits that read them are left out,
    /// forbids that read them deny.
    fn ask_around(
        &self,
        question: &Question<'_>,
        made: Arguments,
        (action, kind): (&'static str, &'static str),
    ) -> Answer {
        let mut policies = self.policies.clone();
        let (mut errors, mut refusing) = (Vec::new(), BTreeSet::new());
        let (mut whole, mut people) = (true, BTreeSet::new());
        for (id, kept) in &self.kept {
            let about = kept.selector.may_be_about(action, kind, question.server, question.name);
            let touched = made.misfits.iter().find(|misfit| kept.minds(misfit));
            let Some(misfit) = touched.filter(|_| about) else { continue };
            errors.push(format!("policy `{id}` was not evaluated: {}", say(misfit)));
            let forbids = kept.effect == Effect::Forbid;
            if forbids || policies.remove_static(PolicyId::new(id)).is_err() {
                refusing.insert(id.clone());
            }
            whole = false;
            if kept.approval.is_some() {
                // The policy may apply to this call, so approval is required.
                people.insert(id.clone());
            }
        }
        if refusing.is_empty() {
            let asked = Asked { policies: &policies, whole, errors, asking: people };
            return self.hold(asked, question, made, (action, kind));
        }
        let reason = format!("{}; that counts as a refusal", errors.join("; "));
        refused(reason, refusing.into_iter().collect(), errors)
    }

    fn hold(
        &self,
        asked: Asked<'_>,
        question: &Question<'_>,
        made: Arguments,
        (action, kind): (&'static str, &'static str),
    ) -> Answer {
        let lost = || "the call cannot be expressed in Cedar".to_owned();
        let Some(scene) = self.scene(question, &made, action, kind) else {
            return refused(lost(), Vec::new(), asked.errors);
        };
        let Some(held) = self.held(&asked, &scene, question, &made, None) else {
            return refused(lost(), Vec::new(), asked.errors);
        };
        let mut errors = [asked.errors.clone(), held.errors].concat();
        if let Some((policies, reason)) = held.refusal {
            return refused(reason, policies, errors);
        }
        let (mut permits, mut asking) = (held.permits, held.asking);
        asking.extend(asked.asking.iter().cloned());
        if permits.is_empty() {
            return self.answer(permits, &asking, errors);
        }
        for combination in Combinations::of(&made.alternatives) {
            let read = || format!(", as {}", combination.words());
            let held =
                self.held(&asked, &scene, question, &made, Some(combination.readings(&made)));
            let Some(held) = held else { return refused(lost(), Vec::new(), errors) };
            let new = |error: &String| !errors.contains(error);
            let new: Vec<String> = held.errors.into_iter().filter(new).collect();
            errors.extend(new);
            if let Some((policies, reason)) = held.refusal {
                return refused(reason + &read(), policies, errors);
            }
            permits.retain(|id| held.permits.contains(id));
            asking.extend(held.asking);
            if permits.is_empty() {
                return refused(format!("no policy permits it{}", read()), Vec::new(), errors);
            }
        }
        self.answer(permits, &asking, errors)
    }

    /// Evaluates the policies for one reading of the arguments; `None` means as they are written.
    fn held(
        &self,
        asked: &Asked<'_>,
        scene: &Scene,
        question: &Question<'_>,
        made: &Arguments,
        readings: Option<Option<RestrictedExpression>>,
    ) -> Option<Held> {
        let written = record(made.members.clone())?;
        let readings = match readings {
            Some(readings) => readings?,
            None => written.clone(),
        };
        let context = self.context(question, written, readings, &made.folders)?;
        // The plan includes policies that were left out here.
        if let Some(plan) = scene.plan(&self.policies).filter(|_| asked.whole)
            && let Short::Permits(deciding) = plan.ask(scene, context.clone())
        {
            return Some(Held::of(deciding));
        }
        Some(self.judge(&plan::ask(asked.policies, scene, context)?))
    }

    /// The answer if nothing forbids the call.
    fn answer(
        &self,
        permits: BTreeSet<String>,
        asking: &BTreeSet<String>,
        errors: Vec<String>,
    ) -> Answer {
        if permits.is_empty() {
            return refused("no policy permits it".to_owned(), Vec::new(), errors);
        }
        let asks = |id: &String| self.kept.get(id).and_then(|kept| kept.approval.clone());
        let mut policies = permits;
        let reason = format!("permitted by {}", list(&policies));
        let approval = policies.union(asking).find_map(asks);
        policies.extend(asking.iter().cloned());
        Answer { permit: true, approval, reason, policies: policies.into_iter().collect(), errors }
    }

    /// Interprets a response of Cedar.
    fn judge(&self, response: &Response) -> Held {
        let (mut errors, mut failed, mut asking) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            let id: &str = error.policy_id().as_ref();
            if let Some(own) = asks_for(id) {
                asking.insert(own.to_owned());
                continue;
            }
            errors.push(format!("policy `{id}`: {}", error.inner()));
            if self.kept.get(id).is_none_or(|kept| kept.effect == Effect::Forbid) {
                failed.insert(id.to_owned());
            }
        }
        let deciding: BTreeSet<String> =
            response.diagnostics().reason().map(|id| AsRef::<str>::as_ref(id).to_owned()).collect();
        let mut held = Held::default();
        if response.decision() == Decision::Deny && !deciding.is_empty() {
            let reason = format!("forbidden by {}", list(&deciding));
            held.refusal = Some((deciding.into_iter().collect(), reason));
        } else if !failed.is_empty() {
            let reason = format!(
                "{} forbids but could not be evaluated, which counts as a refusal: {}",
                list(&failed),
                errors.join("; ")
            );
            held.refusal = Some((failed.into_iter().collect(), reason));
        } else {
            held = Held::of(deciding);
        }
        held.asking.extend(asking);
        Held { errors, ..held }
    }

    fn scene(
        &self,
        question: &Question<'_>,
        made: &Arguments,
        action: &str,
        kind: &str,
    ) -> Option<Arc<Scene>> {
        if self.reads.by_resource && action == "tools/call" {
            let again = Some(record(made.members.clone())?);
            return Some(Arc::new(Scene::new(&self.names, question, action, kind, again)?));
        }
        self.scenes.get(&self.names, question, action, kind)
    }
}

impl Held {
    /// The result if these policies apply and none forbids.
    fn of(deciding: BTreeSet<String>) -> Self {
        let mut held = Self::default();
        for id in deciding {
            match asks_for(&id) {
                Some(own) => drop(held.asking.insert(own.to_owned())),
                None => drop(held.permits.insert(id)),
            }
        }
        held
    }
}

impl Kept {
    /// Whether the policy is affected by an argument of the wrong kind.
    fn minds(&self, misfit: &Misfit) -> bool {
        let arguments = &self.reads.arguments;
        match misfit.climbs {
            true => arguments.get(&misfit.path).is_some_and(|tree| tree.path_pattern),
            false => arguments.touches(&misfit.path),
        }
    }
}

fn list(ids: &BTreeSet<String>) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn refused(reason: String, policies: Vec<String>, errors: Vec<String>) -> Answer {
    Answer { permit: false, policies, approval: None, errors, reason }
}

fn say(misfit: &Misfit) -> String {
    match &misfit.path[..] {
        [] => format!("the arguments are invalid: {}", misfit.why),
        path => format!("the argument `{}` is invalid: {}", path.join("."), misfit.why),
    }
}
