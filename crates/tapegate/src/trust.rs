//! Decides which policy text is in force: trusted on first use, then by content.
//!
//! The policy file is in the project, where the governed agent can usually write. The accepted text
//! is therefore kept as a copy in the user's state folder and stays in force. A changed file takes
//! effect only after `tapegate policy accept` by a person, or if it provably permits nothing more.

mod acceptance;
mod acceptance_notice;
mod first_use;
mod loaded_policy;
mod policy_files;
mod policy_lookup;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapegate_policy::load::load_marked;
use tapegate_policy::model::Profile;
use tapegate_policy::redact::RedactionKey;
use tapegate_policy::tighten::{LooseningError, tightens};
use tapegate_shim::shim_policy::ShimPolicyLoad;
use tapegate_store::accepted_policies::{
    Acceptance, AcceptedPolicies, AcceptedPolicy, PolicyPaths,
};

use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::settings::user_state::user_state_dir;
use acceptance::paths;
pub(crate) use first_use::{PendingFile, pending_file, warn_if_not_in_force};
use loaded_policy::{Audience, LoadedTexts, TrustLoader};
pub(crate) use policy_files::PolicyFiles;

/// The texts that make up a policy, by name.
type PolicyTexts = BTreeMap<String, String>;

/// Stores accepted policies and compares files with them.
pub(crate) struct PolicyTrust {
    accepted: Option<AcceptedPolicies>,
    /// An accepted policy that could not be stored, so that at least this process remembers it.
    unkept: RefCell<Option<(PolicyPaths, AcceptedPolicy)>>,
    /// Files of ours that calls must not name, besides those that every policy covers.
    own_files: Vec<PathBuf>,
    /// The folder in which the server runs a command line that names none, if that is certain.
    command_folder: Option<String>,
    is_hub: bool,
}

/// When a policy is loaded. At the start there is no policy in force to fall back on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoadTrigger {
    Start,
    Reload,
}

/// How the policy file relates to the policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TrustStatus {
    /// The file has the accepted content.
    Accepted,
    /// The file has just been accepted, for this reason.
    Adopted(Acceptance),
    /// The file has just been accepted in place of this other policy, because it permits nothing
    /// more.
    AdoptedInsteadOf(PathBuf),
    /// The file was never accepted and may permit more than the policy it would replace, so no
    /// policy is in force.
    NeverAccepted,
    /// The file is not accepted and the accepted copy is in force. Holds the reason, and the hash
    /// of the file's texts.
    Differs { reason: String, hash: String },
    /// The file does not load. At the start no policy is in force; later the current one stays.
    Unloadable,
}

/// A loaded policy, and how the file relates to it.
pub(crate) struct TrustedPolicy {
    /// The policy in force; with the file's faults if the file does not load.
    pub(crate) policy_load: ShimPolicyLoad,
    pub(crate) standing: TrustStatus,
    /// The hash of the texts in force.
    pub(crate) hash: String,
    /// The texts in force by path, as the loader requested them.
    pub(crate) texts: BTreeMap<String, String>,
    /// The variables used by the policy.
    pub(crate) variables: BTreeMap<String, String>,
    /// Why its acceptance could not be stored; the next start would be the first use again.
    pub(crate) unkept: Option<String>,
}

impl PolicyTrust {
    /// Uses the accepted policies in the user's state folder.
    pub(crate) fn new() -> Self {
        let accepted = user_state_dir().ok().map(|folder| AcceptedPolicies::new(&folder));
        Self {
            accepted,
            unkept: RefCell::default(),
            own_files: Vec::new(),
            command_folder: None,
            is_hub: false,
        }
    }

    /// The same for a session with a server of our own.
    pub(crate) fn of_session(own_files: Vec<PathBuf>, command_folder: Option<String>) -> Self {
        Self { own_files, command_folder, ..Self::new() }
    }

    /// The same for a hub, which sends telemetry and has more files that calls must not name.
    pub(crate) fn of_hub(own_files: Vec<PathBuf>) -> Self {
        Self { own_files, is_hub: true, ..Self::new() }
    }

    /// Loads the policy in force for the policy file `path`.
    pub(crate) fn load(
        &self,
        path: &Path,
        wanted: Option<Profile>,
        key: &RedactionKey,
        moment: LoadTrigger,
    ) -> TrustedPolicy {
        let loader = TrustLoader {
            path,
            wanted,
            key,
            own_files: &self.own_files,
            command_folder: self.command_folder.as_deref(),
            is_hub: self.is_hub,
        };
        let accepted = self.accepted(path);
        let audience = Audience::Session(accepted.as_ref().ok().and_then(Option::as_ref));
        let mut file = loader.load(PolicyFiles::from_disk(path), audience);
        // `policy accept` in another process changes the copy, not the file.
        let copies = self.accepted.iter().flat_map(|all| all.copy_paths(&paths(path)));
        file.policy_load.files.extend(copies);
        let accepted = match accepted {
            Ok(accepted) => accepted,
            // An acceptance that cannot be read is not a missing one. Otherwise damaging the copy
            // would make this a first use, and bring in whatever the file says.
            Err(reason) => return file.into_refused(reason),
        };
        let Some(accepted) = accepted else { return self.load_first_use(path, file) };
        let unkept = self.note_path(path, &accepted).err();
        let mut governing = self.load_by_content(&loader, accepted, file, moment);
        governing
            .policy_load
            .warnings
            .extend(unkept.iter().map(|reason| not_stored_warning(reason)));
        TrustedPolicy { unkept, ..governing }
    }

    /// Loads a policy that has an accepted copy.
    fn load_by_content(
        &self,
        loader: &TrustLoader<'_>,
        accepted: AcceptedPolicy,
        mut file: LoadedTexts,
        moment: LoadTrigger,
    ) -> TrustedPolicy {
        let path = loader.path;
        if accepted.texts == file.by_name {
            let standing = match file.policy_load.active_policy.is_some() {
                true => TrustStatus::Accepted,
                false => TrustStatus::Unloadable,
            };
            return file.into_governing(standing);
        }
        // At the start, the copy replaces a deleted file. Later, the policy in force just stays.
        let vanished = file.main_missing && moment == LoadTrigger::Start;
        // A file that does not load stops the start, or leaves the policy in force (invariant 12).
        if file.policy_load.active_policy.is_none() && !vanished {
            return file.into_governing(TrustStatus::Unloadable);
        }
        let cut = find_truncated(&accepted.texts, &file.by_name);
        let copy = PolicyFiles::from_accepted(path, accepted.texts.clone());
        let mut copy = loader.load(copy, Audience::Session(Some(&accepted)));
        // The copy reads no files, but changes of the real ones must be noticed.
        copy.policy_load.files = std::mem::take(&mut file.policy_load.files);
        let reason = match (&copy.policy_load.active_policy, &file.policy_load.active_policy) {
            (None, _) => {
                return copy.into_refused(format!(
                    "the accepted copy of the policy no longer loads; `{}` accepts the file",
                    program_name::command("policy accept")
                ));
            }
            (Some(_), None) => "the file is gone".to_owned(),
            (Some(_), Some(_)) => {
                let compared = || compare((path, &accepted.texts), (path, &file.by_name));
                match cut.map_or_else(compared, Err) {
                    Ok(()) => {
                        let standing = TrustStatus::Adopted(Acceptance::Tighter);
                        return self.accept_texts(path, file, standing, Some(&accepted));
                    }
                    Err(LooseningError(reason)) => reason,
                }
            }
        };
        let hash = hash_of(path, &file.by_name);
        copy.into_governing(TrustStatus::Differs { reason, hash })
    }
}

/// Whether a change is accepted without a person: it is complete and provably permits nothing more.
pub(crate) fn is_accepted_automatically(path: &Path, old: &PolicyTexts, new: &PolicyTexts) -> bool {
    find_truncated(old, new).is_none() && compare((path, old), (path, new)).is_ok()
}

/// The policy in a file as it is on disk, with the texts that it consists of.
pub(crate) fn read_file(
    path: &Path,
    wanted: Option<Profile>,
) -> (ShimPolicyLoad, BTreeMap<String, String>) {
    // Nothing is masked with this key: the policy is only shown or compared.
    let key = RedactionKey::for_tape([0; 32]);
    let loader = TrustLoader {
        path,
        wanted,
        key: &key,
        own_files: &[],
        command_folder: None,
        is_hub: false,
    };
    let loaded = loader.load(PolicyFiles::from_disk(path), Audience::Person);
    (loaded.policy_load, loaded.by_name)
}

/// The policy that accepted texts make up.
pub(crate) fn read_accepted(accepted: &AcceptedPolicy, wanted: Option<Profile>) -> ShimPolicyLoad {
    let key = RedactionKey::for_tape([0; 32]);
    let files = PolicyFiles::from_accepted(&accepted.path, accepted.texts.clone());
    let loader = TrustLoader {
        path: &accepted.path,
        wanted,
        key: &key,
        own_files: &[],
        command_folder: None,
        is_hub: false,
    };
    loader.load(files, Audience::Person).policy_load
}

impl TrustedPolicy {
    /// Fails if the acceptance could not be stored, for use where a policy is required.
    pub(crate) fn require_stored(&self) -> Result<(), Failure> {
        let Some(reason) = &self.unkept else { return Ok(()) };
        let message = format!(
            "a policy is required, but what is accepted cannot be kept ({reason}): the next start \
             would trust the file as it is then"
        );
        let hint = "point TAPEGATE_HOME to a folder that can be written";
        Err(Failure::new(Exit::Invalid, message).hint(hint))
    }
}

/// A file that is missing, empty or truncated is probably half written, even if it would permit
/// less. If it were accepted, its final content would need acceptance by a person.
fn find_truncated(
    old: &BTreeMap<String, String>,
    new: &BTreeMap<String, String>,
) -> Option<LooseningError> {
    old.iter().find_map(|(name, old)| match new.get(name) {
        None => Some(LooseningError(format!("`{name}` is gone"))),
        Some(new) if new == old => None,
        Some(new) if new.trim().is_empty() => Some(LooseningError(format!("`{name}` is empty"))),
        Some(new) if old.starts_with(new.trim_end()) => {
            Some(LooseningError(format!("`{name}` is cut short")))
        }
        Some(_) => None,
    })
}

/// Checks that a policy permits nothing that another did not, whatever the environment and the
/// profile of the next start.
fn compare(old: (&Path, &PolicyTexts), new: (&Path, &PolicyTexts)) -> Result<(), LooseningError> {
    let load = |(path, texts): (&Path, &PolicyTexts)| {
        load_marked(&path.to_string_lossy(), &PolicyFiles::from_accepted(path, texts.clone()))
    };
    tightens(&load(old), &load(new))
}

/// The warning that an acceptance could not be stored.
fn not_stored_warning(reason: &str) -> String {
    format!(
        "the accepted policy cannot be kept ({reason}), so the next start trusts the file as it \
         is then; point TAPEGATE_HOME to a folder that can be written"
    )
}

/// A short hash of texts, for people to compare.
fn hash_of(path: &Path, texts: &BTreeMap<String, String>) -> String {
    let accepted = AcceptedPolicy {
        path: PathBuf::from(path),
        by_link: false,
        accepted_us: 0,
        how: Acceptance::FirstUse,
        by_person: false,
        texts: texts.clone(),
    };
    accepted.hash()[..16].to_owned()
}
