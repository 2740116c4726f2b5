//! Finds the policy in force, so that deleting its file does not replace it.

use std::path::{Path, PathBuf};

use super::PolicyTrust;
use super::acceptance::paths;
use crate::exit::{Exit, Failure};
use crate::settings::SearchContext;

impl PolicyTrust {
    /// Finds the policy: the named one; else the first place on the way up, or in the user's config
    /// folder, that has a policy file or an accepted copy.
    ///
    /// Whether a file that was never accepted may take effect is decided when it is loaded.
    pub(crate) fn locate(
        &self,
        search: &SearchContext<'_>,
        named: Option<&Path>,
    ) -> Result<Option<PathBuf>, Failure> {
        if let Some(path) = search.named_config(named) {
            return Ok(Some(path));
        }
        let known = self.known_paths();
        let invalid = |reason: String| Failure::new(Exit::Invalid, reason);
        for path in search.config_places() {
            let paths = paths(&path);
            // A place whose file was deleted still counts if a policy was accepted there. Otherwise
            // deleting it would bring in the next policy on the way up, or none.
            if SearchContext::is_config(&path)?
                || self.find_accepted(&paths, &known).map_err(invalid)?.is_some()
                || !self.accepted_by_link(&paths, &known).map_err(invalid)?.is_empty()
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}
