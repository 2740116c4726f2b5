//! What was accepted, and accepting.

use std::path::Path;

use tapegate_store::accepted::{Acceptance, AcceptedPolicies, AcceptedPolicy, PolicyPaths};

use super::{Governing, LoadedTexts, Standing, Texts, Trust};
use crate::state::now_us;

impl Trust {
    /// What was accepted of the policy in this file, if anything was.
    pub(crate) fn accepted(&self, path: &Path) -> Result<Option<AcceptedPolicy>, String> {
        self.accepted_among(path, &self.readable())
    }

    /// Every accepted policy that can be read.
    pub(super) fn readable(&self) -> Vec<AcceptedPolicy> {
        self.accepted.as_ref().map(AcceptedPolicies::readable).unwrap_or_default()
    }

    pub(super) fn accepted_among(
        &self,
        path: &Path,
        known: &[AcceptedPolicy],
    ) -> Result<Option<AcceptedPolicy>, String> {
        let paths = paths(path);
        if let Some((of, unkept)) = self.unkept.borrow().as_ref()
            && of.overlap(&paths)
        {
            return Ok(Some(unkept.clone()));
        }
        let Some(all) = &self.accepted else { return Ok(None) };
        all.get_among(&paths, known).map_err(|error| error.to_string())
    }

    /// Every accepted policy.
    pub(crate) fn list(&self) -> Result<Vec<AcceptedPolicy>, String> {
        let Some(all) = &self.accepted else { return Ok(Vec::new()) };
        all.list().map_err(|error| error.to_string())
    }

    /// Forgets what was accepted; whether there was anything.
    pub(crate) fn forget(&self, path: &Path) -> Result<bool, String> {
        let Some(all) = &self.accepted else { return Ok(false) };
        all.forget(&paths(path)).map_err(|error| error.to_string())
    }

    /// Accepts the texts of a policy. If they cannot be kept, this process remembers them, and a
    /// warning says so.
    pub(super) fn adopt(
        &self,
        path: &Path,
        mut file: LoadedTexts,
        how: Acceptance,
        old: Option<&Texts>,
    ) -> Governing {
        let kept = self.keep_for(path, &file.by_name, how, |other| old == Some(&other.texts));
        if let Err(why) = &kept {
            file.found.warnings.push(format!(
                "the accepted policy cannot be kept ({why}), so the next start trusts whatever the \
                 file says then; point TAPEGATE_HOME to a folder that can be written"
            ));
        }
        let unkept = kept.err().filter(|_| how == Acceptance::FirstUse);
        Governing { unkept, ..file.governing(Standing::Adopted(how)) }
    }

    /// Keeps the texts of a policy as accepted by a person, under every path that leads to it.
    pub(crate) fn keep(&self, path: &Path, texts: &Texts, how: Acceptance) -> Result<(), String> {
        self.keep_for(path, texts, how, |_| true)
    }

    fn keep_for(
        &self,
        path: &Path,
        texts: &Texts,
        how: Acceptance,
        others: impl Fn(&AcceptedPolicy) -> bool,
    ) -> Result<(), String> {
        let (paths, texts) = (paths(path), texts.clone());
        let path = paths.real.clone();
        let accepted = AcceptedPolicy { path, accepted_us: now_us(), how, texts };
        let kept = match &self.accepted {
            Some(all) => all.put(&paths, &accepted, others).map_err(|error| error.to_string()),
            None => Err("there is no user state folder".to_owned()),
        };
        self.unkept.replace(kept.is_err().then_some((paths, accepted)));
        kept
    }
}

/// The paths that a policy is known by.
pub(super) fn paths(path: &Path) -> PolicyPaths {
    PolicyPaths::of(path, std::env::var_os("PWD").as_deref().map(Path::new))
}
