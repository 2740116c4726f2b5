//! A policy that changes is loaded anew, when its files do and when somebody says so.
//!
//! What loads holds from the next message on, as a whole. What does not load changes nothing, and
//! that is said loudly: the old policy goes on.

use std::path::PathBuf;
use std::sync::Arc;

use tapegate_policy::warden::Reins;
use tapegate_store::activity::Event;
use tokio::sync::Notify;

use super::journal::{Journal, quoted};
use super::plan::Plan;
use super::rulebook::{self, Found, Rule};
use crate::logs::Level;
use crate::settings::Surroundings;
use crate::watching::Watch;

/// Who loads the policy anew.
pub(super) struct Reload<'a> {
    pub(super) plan: &'a Plan,
    pub(super) reins: Reins,
    pub(super) journal: Journal,
    /// Tells that somebody wants it.
    pub(super) hang_up: Arc<Notify>,
}

impl Reload<'_> {
    /// Loads the policy anew whenever one of its files changes, for ever.
    pub(super) async fn run(&self, mut watch: Watch) {
        loop {
            tokio::select! {
                () = watch.changed() => {}
                () = self.hang_up.notified() => {}
            }
            let Some(path) = self.config() else {
                self.journal.say(Level::Warn, "there is still no tapegate.yaml: observing only");
                continue;
            };
            let found = rulebook::from_disk(&path, self.plan.wanted, &self.plan.key);
            watch.also(found.files.clone());
            self.take(found);
        }
    }

    /// The policy's file; one that was not there at the start may have come since.
    fn config(&self) -> Option<PathBuf> {
        let found = || Surroundings::ours().ok()?.config(None).ok()?;
        self.plan.config.clone().or_else(found)
    }

    /// Lets a policy hold that was loaded anew, if there is nothing wrong with it.
    pub(super) fn take(&self, found: Found) {
        found.warnings.iter().for_each(|words| self.journal.say(Level::Warn, words));
        let Some(rule) = found.rule else {
            found.faults.iter().for_each(|words| self.journal.say(Level::Error, words));
            return self.refused(&found.faults);
        };
        self.reins.set(rule.regime.clone());
        self.journal.mask(rule.masking.clone(), rule.regime.profile);
        self.note(&rule, "reloaded");
    }

    /// Notes that a policy holds.
    pub(super) fn note(&self, rule: &Rule, word: &str) {
        let version = Some(rule.version().to_owned()).filter(|version| !version.is_empty());
        let what = match &version {
            Some(version) => format!("policy {version} {word}"),
            None => "there is no policy: everything is observed and sent on".to_owned(),
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
    }

    /// Notes that a policy was not taken.
    fn refused(&self, faults: &[String]) {
        let held = self.reins.get().policy.map(|policy| policy.version.clone());
        let words = match &held {
            Some(version) => format!("the new policy does not load; {version} goes on"),
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
