//! Looks up and stores accepted policies.

use std::path::Path;

use tapegate_store::accepted::{
    Acceptance, AcceptedPolicies, AcceptedPolicy, KnownPath, PolicyPaths,
};

use super::{Governing, LoadedTexts, Standing, Texts, Trust, not_kept};
use crate::state::now_us;

impl Trust {
    /// The accepted copy of the policy in this file, if there is one.
    pub(crate) fn accepted(&self, path: &Path) -> Result<Option<AcceptedPolicy>, String> {
        self.accepted_among(&paths(path), &self.known())
    }

    /// The paths of all accepted policies.
    pub(super) fn known(&self) -> Vec<KnownPath> {
        self.accepted.as_ref().map(AcceptedPolicies::known).unwrap_or_default()
    }

    pub(super) fn accepted_among(
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
        all.get_among(paths, known).map_err(|error| error.to_string())
    }

    /// Accepted policies of other paths that now lead to this file through a link.
    pub(super) fn leading_here(
        &self,
        paths: &PolicyPaths,
        known: &[KnownPath],
    ) -> Result<Vec<AcceptedPolicy>, String> {
        let Some(all) = &self.accepted else { return Ok(Vec::new()) };
        all.leading_here(paths, known).map_err(|error| error.to_string())
    }

    /// Also stores the acceptance under the path as written. Without this, a link that is later
    /// pointed elsewhere would count as a first use.
    pub(super) fn note_path(&self, path: &Path, accepted: &AcceptedPolicy) -> Result<(), String> {
        let Some(all) = &self.accepted else { return Ok(()) };
        if self.unkept.borrow().is_some() {
            // The failure to store it has already been reported.
            return Ok(());
        }
        all.note_path(&paths(path), accepted).map_err(|error| error.to_string())
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
    pub(super) fn adopt(
        &self,
        path: &Path,
        mut file: LoadedTexts,
        standing: Standing,
        old: Option<&AcceptedPolicy>,
    ) -> Governing {
        let how = match &standing {
            Standing::Adopted(how) => *how,
            _ => Acceptance::Tighter,
        };
        let by_person = old.is_some_and(|old| old.by_person);
        let kept = self.keep_for(path, &file.by_name, (how, by_person), |other| {
            old.is_some_and(|old| old.texts == other.texts)
        });
        file.found.warnings.extend(kept.as_ref().err().map(|why| not_kept(why)));
        // A change that only tightens is proven again at the next start.
        let unkept = kept.err().filter(|_| how == Acceptance::FirstUse);
        Governing { unkept, ..file.governing(standing) }
    }

    /// Stores the texts of a policy under every path that leads to it; `by_person` says whether a
    /// person has reviewed all of them.
    pub(crate) fn keep(
        &self,
        path: &Path,
        texts: &Texts,
        how: Acceptance,
        by_person: bool,
    ) -> Result<(), String> {
        self.keep_for(path, texts, (how, by_person), |_| true)
    }

    fn keep_for(
        &self,
        path: &Path,
        texts: &Texts,
        (how, by_person): (Acceptance, bool),
        others: impl Fn(&AcceptedPolicy) -> bool,
    ) -> Result<(), String> {
        let (paths, texts) = (paths(path), texts.clone());
        let path = paths.real.clone();
        let accepted_us = now_us();
        let accepted = AcceptedPolicy { path, by_link: false, accepted_us, how, by_person, texts };
        let kept = match &self.accepted {
            Some(all) => all.put(&paths, &accepted, others).map_err(|error| error.to_string()),
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
