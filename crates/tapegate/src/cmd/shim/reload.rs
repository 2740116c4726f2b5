//! Reloads the policy when its files change and on SIGHUP.
//!
//! A policy that is accepted, or that provably permits nothing more, takes effect with the next
//! message. One that does not load or is not accepted changes nothing, and a warning is printed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_policy::warden::Reins;
use tapegate_store::activity::Event;
use tapegate_wire::memory;
use tapegate_yaml::shape::near;
use tokio::sync::Notify;

use super::journal::{Journal, quoted};
use super::plan::Plan;
use super::rulebook::{Found, Rule};
use crate::called;
use crate::logs::Level;
use crate::settings::Surroundings;
use crate::trust::{Governing, Moment, PolicyNotice, Standing};
use crate::watching::Watch;

/// The event of a session without a policy; `tapegate log` counts these.
pub(crate) const NO_POLICY: &str = "no_policy";

/// Reloads the policy when its files change and on SIGHUP.
pub(super) struct Reload<'a> {
    plan: &'a Plan,
    pub(super) reins: Reins,
    journal: Journal,
    pub(super) hang_up: Arc<Notify>,
    /// The last notice about the policy file, so that each change is reported once.
    told: RefCell<Option<PolicyNotice>>,
}

impl<'a> Reload<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        reins: &Reins,
        journal: &Journal,
        hang_up: Arc<Notify>,
    ) -> Self {
        let (reins, journal) = (reins.clone(), journal.clone());
        Self { plan, reins, journal, hang_up, told: RefCell::default() }
    }
}

impl Reload<'_> {
    /// Loads the policy whenever one of its files changes, and never returns.
    pub(super) async fn run(&self, watch: &mut Watch) {
        loop {
            let changed = tokio::select! {
                changed = watch.changed() => Some(changed),
                () = self.hang_up.notified() => None,
            };
            match self.config() {
                Some(path) => self.load(&path, watch, changed),
                None => {
                    let words = "there is still no tapegate.yaml: observing only";
                    self.journal.say(Level::Warn, words);
                }
            }
        }
    }

    /// Checks once more when the session is over, so that a change just before its end is logged
    /// too.
    pub(super) fn finish(&self, watch: &mut Watch) {
        let changed = watch.changed_by_now();
        if let Some(path) = self.config().filter(|_| !changed.is_empty()) {
            self.load(&path, watch, Some(changed));
        }
    }

    /// Loads the policy because these files have changed, or on request if `changed` is `None`.
    fn load(&self, path: &Path, watch: &mut Watch, changed: Option<BTreeSet<PathBuf>>) {
        let plan = self.plan;
        let governing = plan.trust.load(path, plan.wanted, &plan.key, Moment::Reload);
        watch.also(governing.found.files.clone());
        // The accepted copies are watched too, but other processes write them.
        let is_written = |path: &PathBuf| governing.texts.contains_key(&*path.to_string_lossy());
        let is_same = governing.standing == Standing::Accepted
            && changed.as_ref().is_some_and(|changed| changed.iter().any(is_written));
        let is_taken = self.take_governing(path, governing, changed.is_none());
        if is_same && !is_taken {
            self.note_rewritten(path);
        }
    }

    /// Logs that the policy files were written but have the accepted content: they may have had
    /// other content in between, too briefly to be noticed.
    fn note_rewritten(&self, path: &Path) {
        let words = format!("`{}` was written again, with the accepted content", path.display());
        self.journal.keep(Event {
            wall_us: self.plan.clock.now().wall_us,
            level: "info",
            kind: "policy",
            policy_reason: Some(words.into()),
            policy_version: self.reins.get().policy.map(|policy| policy.version.clone().into()),
            extra: "\"event\":\"rewritten\"".into(),
            ..Event::default()
        });
    }

    /// The path of the policy file, which may have been created since the start.
    fn config(&self) -> Option<PathBuf> {
        let found = || {
            let around = Surroundings::ours().ok()?;
            self.plan.trust.locate(&around, None).ok()?
        };
        self.plan.config.clone().or_else(found)
    }

    /// Puts a policy loaded from files in force unless it already is; returns whether it did.
    fn take_governing(&self, path: &Path, governing: Governing, asked: bool) -> bool {
        let notice = PolicyNotice::of(path, &governing);
        let in_force = self.reins.get().policy.map(|policy| policy.version.clone());
        let found = governing.found;
        let same =
            found.rule.as_ref().is_some_and(|rule| in_force.as_deref() == Some(rule.version()));
        let is_taken = found.rule.is_none() || asked || !same;
        if is_taken {
            self.take(found);
        }
        match notice {
            Some(notice) if self.told.borrow().as_ref() != Some(&notice) => {
                self.note_acceptance(&notice);
            }
            Some(_) => {}
            None => drop(self.told.take()),
        }
        is_taken
    }

    /// Logs how the policy file relates to the policy in force.
    pub(super) fn note_acceptance(&self, notice: &PolicyNotice) {
        self.told.replace(Some(notice.clone()));
        let version = self.reins.get().policy.map(|policy| policy.version.clone());
        self.journal.keep(Event {
            wall_us: self.plan.clock.now().wall_us,
            level: if notice.is_warning() { "warn" } else { "info" },
            kind: "policy",
            policy_reason: Some(notice.message().into()),
            policy_version: version.map(Into::into),
            extra: format!(
                "\"event\":{},\"policy_hash\":{}",
                quoted(notice.event()),
                quoted(&notice.hash)
            )
            .into(),
            ..Event::default()
        });
    }

    /// Puts a policy in force, if it has loaded.
    pub(super) fn take(&self, found: Found) {
        found.warnings.iter().for_each(|words| self.journal.say(Level::Warn, words));
        let Some(rule) = found.rule else {
            found.faults.iter().for_each(|words| self.journal.say(Level::Error, words));
            return self.refused(&found.faults);
        };
        self.reins.set(rule.regime.clone());
        self.journal.mask(rule.masking.clone(), rule.regime.profile);
        self.note(&rule, "reloaded");
        if rule.asks_cedar() {
            memory::release_code();
        }
    }

    /// Logs that a policy is in force.
    pub(super) fn note(&self, rule: &Rule, word: &str) {
        let version = Some(rule.version().to_owned()).filter(|version| !version.is_empty());
        let (what, word) = match &version {
            Some(version) => (format!("policy {version} {word}"), word),
            None => (
                format!(
                    "no policy: observing only, calls are recorded and forwarded; `{}` writes a \
                     policy, --require-policy refuses to start without one",
                    called::command("init")
                ),
                NO_POLICY,
            ),
        };
        self.journal.keep(Event {
            wall_us: self.plan.clock.now().wall_us,
            level: if word == "loaded" { "info" } else { "warn" },
            kind: "policy",
            policy_reason: Some(format!("{what}; profile {}", rule.regime.profile.name()).into()),
            policy_version: version.map(Into::into),
            extra: format!("\"event\":{}", quoted(word)).into(),
            ..Event::default()
        });
        self.warn_of_unknown_source(rule);
    }

    /// Warns of a server that the policy does not name: everything it offers is hidden and refused,
    /// which looks like a server without tools.
    fn warn_of_unknown_source(&self, rule: &Rule) {
        let Some(policy) = &rule.regime.policy else { return };
        let id = &self.plan.server_id;
        if policy.source(id).is_some() {
            return;
        }
        let meant = near(id, policy.sources.iter().map(|source| source.id.as_str()));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let words = format!(
            "server `{id}` is not in the `sources` of the policy, so all it offers is hidden and \
             refused{meant} (--server-id names the server; a source `*` stands for all others)"
        );
        self.journal.keep(Event {
            wall_us: self.plan.clock.now().wall_us,
            level: "warn",
            kind: "policy",
            policy_reason: Some(words.into()),
            policy_version: Some(rule.version().to_owned().into()),
            extra: "\"event\":\"unknown_source\"".into(),
            ..Event::default()
        });
    }

    /// Logs that a policy was rejected.
    fn refused(&self, faults: &[String]) {
        let held = self.reins.get().policy.map(|policy| policy.version.clone());
        let words = match &held {
            Some(version) => format!("the new policy does not load; {version} stays in force"),
            None => "the new policy does not load; everything is still observed".to_owned(),
        };
        let faults: Vec<String> = faults.iter().take(20).map(|fault| quoted(fault)).collect();
        self.journal.keep(Event {
            wall_us: self.plan.clock.now().wall_us,
            level: "error",
            kind: "policy",
            policy_reason: Some(words.into()),
            policy_version: held.map(Into::into),
            extra: format!("\"event\":\"refused\",\"faults\":[{}]", faults.join(",")).into(),
            ..Event::default()
        });
    }
}
