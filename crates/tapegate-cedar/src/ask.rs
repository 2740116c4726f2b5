//! Holding policies against a call.
//!
//! Nothing that goes wrong opens the gate: a `forbid` that cannot be evaluated, or that reads an
//! argument that is not what it should be, counts as a refusal, and a `permit` of that sort does
//! not hold.

use std::collections::BTreeSet;
use std::sync::Arc;

use cedar_policy::{
    AuthorizationError, Context, Decision, Effect, PolicyId, PolicySet, Response,
    RestrictedExpression,
};

use crate::moment::Moment;
use crate::plan::{self, Short};
use crate::scene::Scene;
use crate::value::{Arguments, Misfit, arguments};
use crate::{Answer, Cedar, Question};

impl Cedar {
    /// What the policies say of a call.
    pub fn ask(&self, question: &Question<'_>) -> Answer {
        let (action, kind) = self.dialect.action(question.method, question.name);
        let called = action == "tools/call";
        let types = self.types.of(called, question.server, question.name);
        let made = arguments(question.arguments, &self.reads.arguments, types);
        if made.misfits.is_empty() {
            return self.hold(&self.policies, question, made, (action, kind), Vec::new());
        }
        self.ask_around(question, made, (action, kind))
    }

    /// Some arguments are not what they should be: policies that read them are left out of it, or
    /// refuse.
    fn ask_around(
        &self,
        question: &Question<'_>,
        made: Arguments,
        (action, kind): (&'static str, &'static str),
    ) -> Answer {
        let mut policies = self.policies.clone();
        let (mut errors, mut refusing) = (Vec::new(), BTreeSet::new());
        for (id, kept) in &self.kept {
            let about = kept.selector.may_be_about(action, kind, question.server, question.name);
            let touched =
                made.misfits.iter().find(|misfit| kept.reads.arguments.touches(&misfit.path));
            let Some(misfit) = touched.filter(|_| about) else { continue };
            errors.push(format!("policy `{id}` was not asked: {}", say(misfit)));
            let forbids = kept.effect == Effect::Forbid;
            if forbids || policies.remove_static(PolicyId::new(id)).is_err() {
                refusing.insert(id.clone());
            }
        }
        if refusing.is_empty() {
            return self.hold(&policies, question, made, (action, kind), errors);
        }
        let reason = format!("{}; that counts as a refusal", errors.join("; "));
        Answer {
            permit: false,
            policies: refusing.into_iter().collect(),
            approval: None,
            errors,
            reason,
        }
    }

    fn hold(
        &self,
        policies: &PolicySet,
        question: &Question<'_>,
        made: Arguments,
        (action, kind): (&'static str, &'static str),
        errors: Vec<String>,
    ) -> Answer {
        let Some((scene, context)) = self.put(question, made, action, kind) else {
            return refused("the call cannot be put to Cedar".to_owned(), Vec::new(), errors);
        };
        // The short way knows nothing of policies that were left out.
        let whole = policies.num_of_policies() == self.kept.len();
        if let Some(plan) = scene.plan(&self.policies).filter(|_| whole)
            && let Short::Permits(deciding) = plan.ask(&scene, context.clone())
        {
            return self.answer(deciding, errors);
        }
        match plan::ask(policies, &scene, context) {
            Some(response) => self.judge(&response, errors),
            None => refused("the call cannot be put to Cedar".to_owned(), Vec::new(), errors),
        }
    }

    /// Nothing forbids, and these permit.
    fn answer(&self, deciding: BTreeSet<String>, errors: Vec<String>) -> Answer {
        if deciding.is_empty() {
            return refused("no policy permits it".to_owned(), Vec::new(), errors);
        }
        let asks = |id: &String| self.kept.get(id).and_then(|kept| kept.approval.clone());
        Answer {
            permit: true,
            approval: deciding.iter().find_map(asks),
            reason: format!("permitted by {}", list(&deciding)),
            policies: deciding.into_iter().collect(),
            errors,
        }
    }

    /// What a response of Cedar comes to.
    fn judge(&self, response: &Response, mut errors: Vec<String>) -> Answer {
        let mut failed = BTreeSet::new();
        for AuthorizationError::PolicyEvaluationError(error) in response.diagnostics().errors() {
            let id: &str = error.policy_id().as_ref();
            errors.push(format!("policy `{id}`: {}", error.inner()));
            if self.kept.get(id).is_none_or(|kept| kept.effect == Effect::Forbid) {
                failed.insert(id.to_owned());
            }
        }
        let deciding: BTreeSet<String> =
            response.diagnostics().reason().map(|id| AsRef::<str>::as_ref(id).to_owned()).collect();
        if response.decision() == Decision::Deny && !deciding.is_empty() {
            let reason = format!("forbidden by {}", list(&deciding));
            return refused(reason, deciding.into_iter().collect(), errors);
        }
        if !failed.is_empty() {
            let reason = format!(
                "{} forbids but could not be evaluated, which counts as a refusal: {}",
                list(&failed),
                errors.join("; ")
            );
            return refused(reason, failed.into_iter().collect(), errors);
        }
        self.answer(deciding, errors)
    }

    /// The scene and the context of a question.
    fn put(
        &self,
        question: &Question<'_>,
        made: Arguments,
        action: &str,
        kind: &str,
    ) -> Option<(Arc<Scene>, Context)> {
        let arguments = RestrictedExpression::new_record(made.members).ok()?;
        let scene = if self.reads.by_resource && action == "tools/call" {
            let again = Some(arguments.clone());
            Arc::new(Scene::new(&self.names, question, action, kind, again)?)
        } else {
            self.scenes.get(&self.names, question, action, kind)?
        };
        Some((scene, self.context(question, arguments)?))
    }

    fn context(&self, question: &Question<'_>, arguments: RestrictedExpression) -> Option<Context> {
        let text = |text: &str| RestrictedExpression::new_string(text.to_owned());
        let mut pairs = vec![("arguments".to_owned(), arguments)];
        if self.reads.ids {
            pairs.push(("policy_id".to_owned(), text(question.policy_id)));
            pairs.push(("source_id".to_owned(), text(question.server)));
        }
        if self.reads.time {
            let moment = Moment::new(question.wall_us);
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
}

fn list(ids: &BTreeSet<String>) -> String {
    ids.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ")
}

fn refused(reason: String, policies: Vec<String>, errors: Vec<String>) -> Answer {
    Answer { permit: false, policies, approval: None, errors, reason }
}

fn say(misfit: &Misfit) -> String {
    match &misfit.path[..] {
        [] => format!("the arguments are not as they should be, {}", misfit.why),
        path => format!("the argument `{}` is not as it should be, {}", path.join("."), misfit.why),
    }
}
