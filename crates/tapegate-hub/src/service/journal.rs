//! The activity log, as the hub writes it. Secrets that the policy knows are masked.

use std::cell::RefCell;
use std::path::Path;

use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::redact::{Key, Redactor};
use tapegate_store::activity::{ActivityError, ActivityLog, Event, Options};

/// The activity log.
pub(super) struct Journal {
    log: RefCell<ActivityLog>,
    masking: RefCell<Option<Redactor>>,
    /// Why it could not be written the last time, if it could not.
    trouble: RefCell<Option<String>>,
}

impl Journal {
    /// Opens the log in a state folder, to be kept as the policy says.
    pub(super) fn open(state: &Path, policy: Option<&Policy>) -> Result<Self, ActivityError> {
        let options = policy.map_or_else(Options::default, |policy| Options {
            rotate_bytes: policy.activity.rotate_bytes,
            retention: policy.activity.retention,
        });
        let log = RefCell::new(ActivityLog::open(state, options)?);
        Ok(Self { log, masking: RefCell::default(), trouble: RefCell::default() })
    }

    /// From now on what the policy redacts is masked.
    pub(super) fn mask(&self, policy: Option<&Policy>, key: &Key) {
        let rules = policy.and_then(|policy| policy.redaction.rules.clone());
        self.masking.replace(rules.map(|rules| Redactor::new(rules, key.clone())));
    }

    /// A text with the secrets masked.
    pub(super) fn masked(&self, text: &str) -> String {
        match &*self.masking.borrow() {
            Some(masking) => masking.text(text).into_owned(),
            None => text.to_owned(),
        }
    }

    fn masked_event(&self, event: &Event) -> Event {
        let mask = |text: &Option<String>| text.as_deref().map(|text| self.masked(text));
        Event {
            method: mask(&event.method),
            tool: mask(&event.tool),
            message_id: mask(&event.message_id),
            policy_reason: mask(&event.policy_reason),
            principal: mask(&event.principal),
            extra: self.masked(&event.extra),
            ..event.clone()
        }
    }

    /// Writes events down, all of them or none.
    pub(super) fn write(&self, events: &[Event]) -> Result<(), String> {
        let mut log = self.log.borrow_mut();
        events.iter().for_each(|event| log.append(&self.masked_event(event)));
        let written = log.commit().map_err(|error| error.to_string());
        self.trouble.replace(written.clone().err());
        written
    }

    /// Why it cannot be written, if it cannot.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.borrow().clone()
    }
}

/// Something that the hub itself has done or seen.
pub(super) fn event(
    wall_us: i64,
    level: &'static str,
    kind: &'static str,
    profile: Profile,
) -> Event {
    Event { wall_us, level, kind, component: "hub", profile: profile.name(), ..Event::default() }
}
