//! Looks up and stores accepted policies.

use std::path::Path;

use tapegate_store::accepted_policies::{
    Acceptance, AcceptedPolicies, AcceptedPolicy, KnownPath, PolicyPaths,
};

use super::{
    LoadedTexts, PolicyTexts, PolicyTrust, TrustStatus, TrustedPolicy, not_stored_warning,
};
use crate::state_folder::now_us;

impl PolicyTrust {
    /// The accepted copy of the policy in this file, if there is one.
    pub(crate) fn accepted(&self, path: &Path) -> Result<Option<AcceptedPolicy>, String> {
        self.find_accepted(&paths(path), &self.known_paths())
    }

    /// The paths of all accepted policies.
    pub(super) fn known_paths(&self) -> Vec<KnownPath> {
        self.accepted.as_ref().map(AcceptedPolicies::known_paths).unwrap_or_default()
    }

    pub(super) fn find_accepted(
        &self,
        paths: &PolicyPaths,
        known: &[KnownPath],
    ) -> Result<Option<AcceptedPolicy>, String> {
        if let Some((of, unkept)) = self.unkept.borrow().as_ref()
            && of.overlap(paths)
        {
            return Ok(Some(unkept.clone()));
        }
        let Some(all) = &self.accepted else { return Ok(None) };
        all.get_known(paths, known).map_err(|error| error.to_string())
    }

    /// Accepted policies of other paths that now lead to this file through a link.
    pub(super) fn accepted_by_link(
        &self,
        paths: &PolicyPaths,
        known: &[KnownPath],
    ) -> Result<Vec<AcceptedPolicy>, String> {
        let Some(all) = &self.accepted else { return Ok(Vec::new()) };
        all.accepted_by_link(paths, known).map_err(|error| error.to_string())
    }

    /// Also stores the acceptance under the path as written. Without this, a link that is later
    /// pointed elsewhere would count as a first use.
    pub(super) fn note_path(&self, path: &Path, accepted: &AcceptedPolicy) -> Result<(), String> {
        let Some(all) = &self.accepted else { return Ok(()) };
        if self.unkept.borrow().is_some() {
            // The failure to store it has already been reported.
            return Ok(());
        }
        all.store_path(&paths(path), accepted).map_err(|error| error.to_string())
    }

    /// Every accepted policy.
    pub(crate) fn list(&self) -> Result<Vec<AcceptedPolicy>, String> {
        let Some(all) = &self.accepted else { return Ok(Vec::new()) };
        all.list().map_err(|error| error.to_string())
    }

    /// Forgets an accepted policy; returns whether there was one.
    pub(crate) fn forget(&self, path: &Path) -> Result<bool, String> {
        let Some(all) = &self.accepted else { return Ok(false) };
        all.forget(&paths(path)).map_err(|error| error.to_string())
    }

    /// Accepts the texts of a policy. If they cannot be stored, this process remembers them and a
    /// warning is added.
    pub(super) fn accept_texts(
        &self,
        path: &Path,
        mut file: LoadedTexts,
        standing: TrustStatus,
        old: Option<&AcceptedPolicy>,
    ) -> TrustedPolicy {
        let how = match &standing {
            TrustStatus::Adopted(how) => *how,
            _ => Acceptance::Tighter,
        };
        // A tighter text permits nothing that the person has not accepted.
        let by_person = old.is_some_and(|old| old.by_person);
        let kept = self.store_for(path, &file.by_name, (how, by_person), |other| {
            // A policy that was accepted separately behind a link keeps its own text.
            old.is_some_and(|old| old.texts == other.texts)
        });
        file.policy_load
            .warnings
            .extend(kept.as_ref().err().map(|reason| not_stored_warning(reason)));
        // A change that only tightens is proven again at the next start.
        let unkept = kept.err().filter(|_| how == Acceptance::FirstUse);
        TrustedPolicy { unkept, ..file.into_governing(standing) }
    }

    /// Stores the texts of a policy under every path that leads to it; `by_person` says whether a
    /// person has reviewed all of them.
    pub(crate) fn store(
        &self,
        path: &Path,
        texts: &PolicyTexts,
        how: Acceptance,
        by_person: bool,
    ) -> Result<(), String> {
        self.store_for(path, texts, (how, by_person), |_| true)
    }

    fn store_for(
        &self,
        path: &Path,
        texts: &PolicyTexts,
        (how, by_person): (Acceptance, bool),
        others: impl Fn(&AcceptedPolicy) -> bool,
    ) -> Result<(), String> {
        let (paths, texts) = (paths(path), texts.clone());
        let path = paths.real.clone();
        let accepted_us = now_us();
        let accepted = AcceptedPolicy { path, by_link: false, accepted_us, how, by_person, texts };
        let kept = match &self.accepted {
            Some(all) => all.store(&paths, &accepted, others).map_err(|error| error.to_string()),
            None => Err("there is no user state folder".to_owned()),
        };
        self.unkept.replace(kept.is_err().then_some((paths, accepted)));
        kept
    }
}

/// The paths by which a policy is known.
pub(super) fn paths(path: &Path) -> PolicyPaths {
    PolicyPaths::of(path, std::env::var_os("PWD").as_deref().map(Path::new))
}
