//! Loads the lock file of a policy.

use tapegate_yaml::field::MapFields;
use tapegate_yaml::files::FileError;
use tapegate_yaml::node::{Node, Spot};

use super::PolicyLoader;
use crate::model::{OnDrift, PinSettings};
use crate::pins::PinLock;

impl PolicyLoader<'_> {
    /// Reads the lock file. A missing file is reported only if the policy has a section `pins`.
    pub(super) fn lock(&mut self, top: &Node, pins: &PinSettings) -> PinLock {
        // A command that is about to write the pins must also start with a damaged lock.
        if !self.pinned {
            return PinLock::default();
        }
        let section = MapFields::of(top).get("pins");
        let named = section.and_then(|node| MapFields::of(node).get("lock")).or(section);
        let spot = named.map_or(Spot::default(), |node| node.spot);
        let path = &pins.lock_file;
        match self.read_named_file(path) {
            Ok(Some((text, file))) => match PinLock::parse(&text) {
                Ok(lock) => return lock,
                Err(error) => {
                    let line = u32::try_from(error.line).unwrap_or_default();
                    self.findings.error(Spot { file, line, column: 1 }, error.what);
                }
            },
            Ok(None) => {}
            Err(FileError::Missing) if section.is_some() && pins.on_drift != OnDrift::Ignore => {
                let message = format!(
                    "there is no `{path}` yet, so nothing is pinned; `tapegate policy pin` writes it"
                );
                self.findings.warning(spot, message);
            }
            // A lock applies even to a policy that does not mention pins, so its absence is the
            // normal case.
            Err(FileError::Missing) => {}
            Err(error) => {
                self.findings.error(spot, format!("the file `{path}` cannot be read: {error}"));
            }
        }
        PinLock::default()
    }
}
