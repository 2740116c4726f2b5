//! Finding the policy that governs, so that a file that appears or vanishes does not replace it.

use std::path::{Path, PathBuf};

use super::Trust;
use crate::exit::{Exit, Failure};
use crate::settings::Surroundings;

/// The policy that governs, and the nearer file that does not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Located {
    /// The policy's file, which may be gone if it was accepted before.
    pub(crate) path: Option<PathBuf>,
    /// A file that would be looked at first, but was never accepted while another one was.
    pub(crate) passed_over: Option<PathBuf>,
}

impl Trust {
    /// Finds the policy: the one that was named; else the first accepted one on the way up and in
    /// the user's config folder, whether or not its file still exists; else the first file.
    ///
    /// So an agent replaces no policy by putting another one nearer or by deleting it.
    pub(crate) fn locate(
        &self,
        around: &Surroundings<'_>,
        named: Option<&Path>,
    ) -> Result<Located, Failure> {
        if let Some(path) = around.named_config(named) {
            return Ok(Located { path: Some(path), passed_over: None });
        }
        let (known, mut unaccepted) = (self.readable(), None);
        for path in around.config_places() {
            // Beyond the first file only what was accepted counts.
            let exists = unaccepted.is_none() && Surroundings::is_config(&path)?;
            let accepted = self
                .accepted_among(&path, &known)
                .map_err(|why| Failure::new(Exit::Invalid, why))?;
            if accepted.is_some() {
                return Ok(Located { path: Some(path), passed_over: unaccepted });
            }
            if exists {
                unaccepted = Some(path);
            }
        }
        Ok(Located { path: unaccepted, passed_over: None })
    }
}
