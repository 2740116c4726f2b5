//! The activity log as the hub writes it, with the secrets that the policy knows masked.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

use tapegate_core::activity::{ActivityEvent, ActivityKind, EventComponent, EventLevel};
use tapegate_core::json::JsonObject;
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::redact::{RedactionKey, Redactor};
use tapegate_store::activity::{ActivityError, ActivityLog, ActivityLogOptions, EXTRA_BYTES_MAX};

/// The activity log.
pub(super) struct HubJournal {
    state: PathBuf,
    log: RefCell<ActivityLog>,
    /// Its rotation and retention.
    options: Cell<ActivityLogOptions>,
    masking: RefCell<Option<Redactor>>,
    /// Why the last write failed, if it did.
    trouble: RefCell<Option<String>>,
}

impl HubJournal {
    /// Opens the log in a state folder, with the rotation and retention of the policy.
    pub(super) fn open(state: &Path, policy: Option<&Policy>) -> Result<Self, ActivityError> {
        let options = options(policy);
        Ok(Self {
            state: state.to_owned(),
            log: RefCell::new(ActivityLog::open(state, options)?),
            options: Cell::new(options),
            masking: RefCell::default(),
            trouble: RefCell::default(),
        })
    }

    /// Applies the redaction, rotation and retention of a new policy.
    pub(super) fn apply_policy(&self, policy: Option<&Policy>, key: &RedactionKey) {
        let options = options(policy);
        // If it cannot be reopened, the old one stays in use and its writes report the error.
        if self.options.replace(options) != options
            && let Ok(log) = ActivityLog::open(&self.state, options)
        {
            self.log.replace(log);
        }
        let rules = policy.and_then(|policy| policy.redaction.rules.clone());
        self.masking.replace(rules.map(|rules| Redactor::new(rules, key.clone())));
    }

    /// The text with secrets masked.
    pub(super) fn masked(&self, text: &str) -> String {
        match &*self.masking.borrow() {
            Some(masking) => masking.text(text).into_owned(),
            None => text.to_owned(),
        }
    }

    fn masked_event<'a>(&self, event: &'a ActivityEvent<'_>) -> ActivityEvent<'a> {
        let text = |text: &str| Cow::Owned(self.masked(text));
        let mask = |masked: &Option<Cow<'_, str>>| masked.as_deref().map(text);
        ActivityEvent {
            method: mask(&event.method),
            tool: mask(&event.tool),
            message_id: mask(&event.message_id),
            policy_reason: mask(&event.policy_reason),
            principal: mask(&event.principal),
            extra: text(&event.extra),
            ..event.clone()
        }
    }

    /// Logs events, all or none.
    pub(super) fn write(&self, events: &[ActivityEvent<'_>]) -> Result<(), String> {
        let mut log = self.log.borrow_mut();
        events.iter().for_each(|event| log.append(&self.masked_event(event)));
        let written = log.commit().map_err(|error| error.to_string());
        self.trouble.replace(written.clone().err());
        written
    }

    /// Logs events of another log, all or none, each with members that are not masked. Returns the
    /// number of the last line.
    pub(super) fn import_events(
        &self,
        events: &[(ActivityEvent<'_>, String)],
    ) -> Result<u64, String> {
        let mut log = self.log.borrow_mut();
        for (event, members) in events {
            let masked = self.masked_event(event);
            let extra = match masked.extra.trim() {
                "" => members.clone(),
                extra if extra.len() + members.len() < EXTRA_BYTES_MAX => {
                    format!("{extra},{members}")
                }
                // The members are required, so the rest is left out.
                extra => {
                    let length = JsonObject::new().number("extra_bytes", extra.len() as u64);
                    format!("{},{members}", length.into_bare_members())
                }
            };
            log.append(&ActivityEvent { extra: extra.into(), ..masked });
        }
        // One commit for all: an upload is acknowledged as a whole or sent again as a whole.
        let written = log.commit().map_err(|error| error.to_string());
        self.trouble.replace(written.clone().err());
        written.map(|()| log.head().seq)
    }

    /// Why the last write failed, if it did.
    pub(super) fn failure(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }
}

/// The rotation and retention that a policy asks for.
fn options(policy: Option<&Policy>) -> ActivityLogOptions {
    policy.map_or_else(ActivityLogOptions::default, |policy| ActivityLogOptions {
        rotate_bytes: policy.activity.rotate_bytes,
        retention: policy.activity.retention,
    })
}

/// A new event of the hub itself.
pub(super) fn event(
    wall_us: i64,
    level: EventLevel,
    kind: ActivityKind,
    profile: Profile,
) -> ActivityEvent<'static> {
    ActivityEvent {
        wall_us,
        level,
        kind,
        component: Some(EventComponent::Hub),
        profile: Some(profile),
        ..ActivityEvent::default()
    }
}
