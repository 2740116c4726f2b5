//! Reloads the policy when its files change and on SIGHUP.
//!
//! A policy that is accepted, or that provably permits nothing more, takes effect with the next
//! message. One that does not load or is not accepted changes nothing, and a warning is printed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventLevel};
use tapegate_policy::policy_gate::PolicyHandle;
use tapegate_wire::memory;
use tapegate_yaml::shape::nearest_name;
use tokio::sync::Notify;

use super::journal::{ShimJournal, quoted};
use super::plan::ShimPlan;
use super::shim_policy::{ShimPolicy, ShimPolicyLoad};
use crate::file_watch::FileWatch;
use crate::logs::VerbosityLevel;
use crate::program_name;
use crate::settings::SearchContext;
use crate::trust::{LoadTrigger, PolicyNotice, TrustStatus, TrustedPolicy};

/// The event of a session without a policy; `tapegate log` counts these.
pub(crate) const NO_POLICY: &str = "no_policy";

/// Reloads the policy when its files change and on SIGHUP.
pub(super) struct PolicyReloader<'a> {
    plan: &'a ShimPlan,
    pub(super) policy_handle: PolicyHandle,
    journal: ShimJournal,
    pub(super) hang_up: Arc<Notify>,
    /// The last notice about the policy file, so that each change is reported once.
    reported: RefCell<Option<PolicyNotice>>,
}

impl<'a> PolicyReloader<'a> {
    pub(super) fn new(
        plan: &'a ShimPlan,
        policy_handle: &PolicyHandle,
        journal: &ShimJournal,
        hang_up: Arc<Notify>,
    ) -> Self {
        let (policy_handle, journal) = (policy_handle.clone(), journal.clone());
        Self { plan, policy_handle, journal, hang_up, reported: RefCell::default() }
    }
}

impl PolicyReloader<'_> {
    /// Loads the policy whenever one of its files changes, and never returns.
    pub(super) async fn run(&self, watch: &mut FileWatch) {
        loop {
            let changed = tokio::select! {
                changed = watch.changed() => Some(changed),
                () = self.hang_up.notified() => None,
            };
            match self.config() {
                Some(path) => self.load(&path, watch, changed),
                None => {
                    let message = "there is still no tapegate.yaml: observing only";
                    self.journal.print_message(VerbosityLevel::Warn, message);
                }
            }
        }
    }

    /// Checks once more when the session is over, so that a change just before its end is logged
    /// too.
    pub(super) fn check_final_change(&self, watch: &mut FileWatch) {
        let changed = watch.take_changes();
        if let Some(path) = self.config().filter(|_| !changed.is_empty()) {
            self.load(&path, watch, Some(changed));
        }
    }

    /// Loads the policy because these files have changed, or on request if `changed` is `None`.
    fn load(&self, path: &Path, watch: &mut FileWatch, changed: Option<BTreeSet<PathBuf>>) {
        let plan = self.plan;
        let governing = plan.trust.load(path, plan.wanted, &plan.key, LoadTrigger::Reload);
        // The new text may name other Cedar files. Watch them even if it is rejected, so that a
        // correction there is noticed.
        watch.add_files(governing.policy_load.files.clone());
        // The accepted copies are watched too, but other processes write them.
        let is_written = |path: &PathBuf| governing.texts.contains_key(&*path.to_string_lossy());
        let is_same = governing.standing == TrustStatus::Accepted
            && changed.as_ref().is_some_and(|changed| changed.iter().any(is_written));
        let is_taken = self.apply_governing(path, governing, changed.is_none());
        if is_same && !is_taken {
            self.note_rewritten(path);
        }
    }

    /// Logs that the policy files were written but have the accepted content: they may have had
    /// other content in between, too briefly to be noticed.
    fn note_rewritten(&self, path: &Path) {
        let reason = format!("`{}` was written again, with the accepted content", path.display());
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: EventLevel::Info,
            kind: ActivityKind::Policy,
            policy_reason: Some(reason.into()),
            policy_version: self
                .policy_handle
                .get()
                .policy
                .map(|policy| policy.version.clone().into()),
            extra: "\"event\":\"rewritten\"".into(),
            ..ActivityEvent::default()
        });
    }

    /// The path of the policy file, which may have been created since the start.
    fn config(&self) -> Option<PathBuf> {
        let found = || {
            let search = SearchContext::current().ok()?;
            self.plan.trust.locate(&search, None).ok()?
        };
        self.plan.config.clone().or_else(found)
    }

    /// Puts a policy loaded from files in force unless it already is; returns whether it did.
    fn apply_governing(&self, path: &Path, governing: TrustedPolicy, requested: bool) -> bool {
        let notice = PolicyNotice::of(path, &governing);
        let in_force = self.policy_handle.get().policy.map(|policy| policy.version.clone());
        let found = governing.policy_load;
        let same =
            found.rule.as_ref().is_some_and(|rule| in_force.as_deref() == Some(rule.version()));
        // A policy that does not load goes through `apply` too, which reports it. So does a SIGHUP
        // without a change, since its sender looks for the line in the log.
        let is_taken = found.rule.is_none() || requested || !same;
        if is_taken {
            self.apply(found);
        }
        match notice {
            Some(notice) if self.reported.borrow().as_ref() != Some(&notice) => {
                self.note_acceptance(&notice);
            }
            Some(_) => {}
            // The file is as accepted again, so the same change is reported if it comes back.
            None => drop(self.reported.take()),
        }
        is_taken
    }

    /// Logs how the policy file relates to the policy in force.
    pub(super) fn note_acceptance(&self, notice: &PolicyNotice) {
        self.reported.replace(Some(notice.clone()));
        let version = self.policy_handle.get().policy.map(|policy| policy.version.clone());
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: if notice.is_warning() { EventLevel::Warn } else { EventLevel::Info },
            kind: ActivityKind::Policy,
            policy_reason: Some(notice.message().into()),
            policy_version: version.map(Into::into),
            extra: format!(
                "\"event\":{},\"policy_hash\":{}",
                quoted(notice.event()),
                quoted(&notice.hash)
            )
            .into(),
            ..ActivityEvent::default()
        });
    }

    /// Puts a policy in force, if it has loaded.
    pub(super) fn apply(&self, policy_load: ShimPolicyLoad) {
        policy_load
            .warnings
            .iter()
            .for_each(|message| self.journal.print_message(VerbosityLevel::Warn, message));
        let Some(rule) = policy_load.rule else {
            policy_load
                .faults
                .iter()
                .for_each(|message| self.journal.print_message(VerbosityLevel::Error, message));
            return self.note_refused(&policy_load.faults);
        };
        // Nothing awaits between these two lines: no call may be decided by one policy and masked
        // in the log by another.
        self.policy_handle.set(rule.active_policy.clone());
        self.journal.mask(rule.masking.clone(), rule.active_policy.profile);
        self.note_policy(&rule, "reloaded");
        // Cedar's parser and validator are megabytes of code that only loading needs.
        if rule.uses_cedar() {
            memory::release_code();
        }
    }

    /// Logs that a policy is in force.
    pub(super) fn note_policy(&self, rule: &ShimPolicy, word: &str) {
        let version = Some(rule.version().to_owned()).filter(|version| !version.is_empty());
        let (what, word) = match &version {
            Some(version) => (format!("policy {version} {word}"), word),
            None => (
                format!(
                    "no policy: observing only, calls are recorded and forwarded; `{}` writes a \
                     policy, --require-policy refuses to start without one",
                    program_name::command("init")
                ),
                NO_POLICY,
            ),
        };
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: if word == "loaded" { EventLevel::Info } else { EventLevel::Warn },
            kind: ActivityKind::Policy,
            policy_reason: Some(
                format!("{what}; profile {}", rule.active_policy.profile.as_str()).into(),
            ),
            policy_version: version.map(Into::into),
            extra: format!("\"event\":{}", quoted(word)).into(),
            ..ActivityEvent::default()
        });
        self.warn_of_unknown_source(rule);
    }

    /// Warns of a server that the policy does not name: everything it offers is hidden and refused,
    /// which looks like a server without tools.
    fn warn_of_unknown_source(&self, rule: &ShimPolicy) {
        let Some(policy) = &rule.active_policy.policy else { return };
        let id = &self.plan.server_id;
        if policy.source(id).is_some() {
            return;
        }
        let meant = nearest_name(id, policy.sources.iter().map(|source| source.id.as_str()));
        let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
        let message = format!(
            "server `{id}` is not in the `sources` of the policy, so all it offers is hidden and \
             refused{meant} (--server-id names the server; a source `*` stands for all others)"
        );
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: EventLevel::Warn,
            kind: ActivityKind::Policy,
            policy_reason: Some(message.into()),
            policy_version: Some(rule.version().to_owned().into()),
            extra: "\"event\":\"unknown_source\"".into(),
            ..ActivityEvent::default()
        });
    }

    /// Logs that a policy was rejected.
    fn note_refused(&self, faults: &[String]) {
        let held = self.policy_handle.get().policy.map(|policy| policy.version.clone());
        let message = match &held {
            Some(version) => format!("the new policy does not load; {version} stays in force"),
            None => "the new policy does not load; everything is still observed".to_owned(),
        };
        let faults: Vec<String> = faults.iter().take(20).map(|fault| quoted(fault)).collect();
        self.journal.log_event(ActivityEvent {
            wall_us: self.plan.clock.now().wall_us,
            level: EventLevel::Error,
            kind: ActivityKind::Policy,
            policy_reason: Some(message.into()),
            policy_version: held.map(Into::into),
            extra: format!("\"event\":\"refused\",\"faults\":[{}]", faults.join(",")).into(),
            ..ActivityEvent::default()
        });
    }
}
