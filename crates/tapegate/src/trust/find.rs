//! Finds the policy in force, so that deleting its file does not replace it.

use std::path::{Path, PathBuf};

use super::Trust;
use super::accepting::paths;
use crate::exit::{Exit, Failure};
use crate::settings::Surroundings;

impl Trust {
    /// Finds the policy: the named one; else the first place on the way up, or in the user's config
    /// folder, that has a policy file or an accepted copy.
    ///
    /// Whether a file that was never accepted may take effect is decided when it is loaded.
    pub(crate) fn locate(
        &self,
        around: &Surroundings<'_>,
        named: Option<&Path>,
    ) -> Result<Option<PathBuf>, Failure> {
        if let Some(path) = around.named_config(named) {
            return Ok(Some(path));
        }
        let known = self.known();
        let invalid = |why: String| Failure::new(Exit::Invalid, why);
        for path in around.config_places() {
            let paths = paths(&path);
            if Surroundings::is_config(&path)?
                || self.accepted_among(&paths, &known).map_err(invalid)?.is_some()
                || !self.leading_here(&paths, &known).map_err(invalid)?.is_empty()
            {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }
}
