//! The lock file that a policy names: what was accepted of servers.

use tapegate_yaml::field::Fields;
use tapegate_yaml::files::FileError;
use tapegate_yaml::node::{Node, Spot};

use super::Loader;
use crate::pins::Lock;

impl Loader<'_> {
    /// Reads what was accepted. That there is no such file means that nothing was.
    pub(super) fn lock(&mut self, top: &Node, path: &str) -> Lock {
        let pins = Fields::of(top).get("pins");
        let named = pins.and_then(|pins| Fields::of(pins).get("lock"));
        let spot = named.map_or(top.spot, |node| node.spot);
        match self.named(path) {
            Ok(Some((text, file))) => match Lock::parse(&text) {
                Ok(lock) => return lock,
                Err(error) => {
                    let line = u32::try_from(error.line).unwrap_or(u32::MAX);
                    self.findings.error(Spot { file, line, column: 1 }, error.what);
                }
            },
            Ok(None) | Err(FileError::Missing) => {}
            Err(error) => {
                self.findings.error(spot, format!("the file `{path}` cannot be read: {error}"));
            }
        }
        Lock::default()
    }
}
