//! Which policy text is in force: trusted on first use, then by content.
//!
//! A policy lies in the project, where the governed agent can usually write. What was accepted is
//! therefore kept as a copy in the user's state folder and stays in force. A changed file counts
//! only once a person has run `tapegate policy accept`, or if it provably permits nothing more.

mod accepting;
mod files;
mod find;
mod first_use;
mod loaded;
mod notice;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tapegate_policy::load::load_marked;
use tapegate_policy::model::Profile;
use tapegate_policy::redact::Key;
use tapegate_policy::tighten::{MayLoosen, tightens};
use tapegate_store::accepted::{Acceptance, AcceptedPolicies, AcceptedPolicy, PolicyPaths};

use crate::called;
use crate::cmd::shim::rulebook::Found;
use crate::exit::{Exit, Failure};
use crate::settings::user_state::user_state_dir;
use accepting::paths;
pub(crate) use files::PolicyFiles;
pub(crate) use first_use::warn_if_not_in_force;
use loaded::{Audience, LoadedTexts, Loader};
pub(crate) use notice::PolicyNotice;

/// The texts that a policy is made of, by name.
type Texts = BTreeMap<String, String>;

/// What keeps and compares accepted policies.
pub(crate) struct Trust {
    accepted: Option<AcceptedPolicies>,
    /// What was accepted and could not be kept, so that this process at least remembers it.
    unkept: RefCell<Option<(PolicyPaths, AcceptedPolicy)>>,
    /// Files of ours that calls may not name, beside those that every policy knows.
    own_files: Vec<PathBuf>,
    is_hub: bool,
}

/// When a policy is loaded. At the start there is nothing to fall back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    Start,
    Reload,
}

/// How the file stands to the policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The file is what was accepted.
    Accepted,
    /// The file has just been accepted, for this reason.
    Adopted(Acceptance),
    /// The file has just been accepted in the place of this other policy, as it permits nothing
    /// more.
    AdoptedInsteadOf(PathBuf),
    /// The file was never accepted, and may permit more than the policy that it would replace. So
    /// nothing governs.
    NeverAccepted,
    /// The file is not accepted; the accepted copy governs. Why it was not taken, and the hash of
    /// the file's texts.
    Differs { why: String, hash: String },
    /// The file does not load. At the start nothing governs; later the policy in force stays.
    Unloadable,
}

/// A policy that was loaded, and how its file stands to it.
pub(crate) struct Governing {
    /// The policy in force; its faults are those of the file if that does not load.
    pub(crate) found: Found,
    pub(crate) standing: Standing,
    /// The hash of the texts in force.
    pub(crate) hash: String,
    /// The texts in force by path, as the loader asked for them.
    pub(crate) texts: BTreeMap<String, String>,
    /// The variables that the policy uses.
    pub(crate) variables: BTreeMap<String, String>,
    /// Why its first use could not be kept, so that the next start would be the first use again.
    pub(crate) unkept: Option<String>,
}

impl Trust {
    /// Accepted policies are kept in the user's state folder.
    pub(crate) fn new() -> Self {
        let accepted = user_state_dir().ok().map(|folder| AcceptedPolicies::new(&folder));
        Self { accepted, unkept: RefCell::default(), own_files: Vec::new(), is_hub: false }
    }

    /// The same for a hub, which sends telemetry, with more files of ours that calls may not name.
    pub(crate) fn of_hub(own_files: Vec<PathBuf>) -> Self {
        Self { own_files, is_hub: true, ..Self::new() }
    }

    /// Loads the policy that governs where `path` is the policy's file.
    pub(crate) fn load(
        &self,
        path: &Path,
        wanted: Option<Profile>,
        key: &Key,
        moment: Moment,
    ) -> Governing {
        let loader = Loader { path, wanted, key, own_files: &self.own_files, is_hub: self.is_hub };
        let accepted = self.accepted(path);
        let audience = Audience::Session(accepted.as_ref().ok().and_then(Option::as_ref));
        let mut file = loader.load(PolicyFiles::on_disk(path), audience);
        let copies = self.accepted.iter().flat_map(|all| all.copy_paths(&paths(path)));
        file.found.files.extend(copies);
        let accepted = match accepted {
            Ok(accepted) => accepted,
            Err(why) => return file.refused(why),
        };
        let Some(accepted) = accepted else { return self.first_use(path, file) };
        let unkept = self.note_path(path, &accepted).err();
        let mut governing = self.by_content(&loader, accepted, file, moment);
        governing.found.warnings.extend(unkept.iter().map(|why| not_kept(why)));
        Governing { unkept, ..governing }
    }

    /// Loads a policy of which something was accepted.
    fn by_content(
        &self,
        loader: &Loader<'_>,
        accepted: AcceptedPolicy,
        mut file: LoadedTexts,
        moment: Moment,
    ) -> Governing {
        let path = loader.path;
        if accepted.texts == file.by_name {
            let standing = match file.found.rule.is_some() {
                true => Standing::Accepted,
                false => Standing::Unloadable,
            };
            return file.governing(standing);
        }
        let vanished = file.main_missing && moment == Moment::Start;
        if file.found.rule.is_none() && !vanished {
            return file.governing(Standing::Unloadable);
        }
        let cut = cut_short(&accepted.texts, &file.by_name);
        let copy = PolicyFiles::accepted(path, accepted.texts.clone());
        let mut copy = loader.load(copy, Audience::Session(Some(&accepted)));
        copy.found.files = std::mem::take(&mut file.found.files);
        let why = match (&copy.found.rule, &file.found.rule) {
            (None, _) => {
                return copy.refused(format!(
                    "the accepted copy of the policy no longer loads; `{}` accepts the file instead",
                    called::command("policy accept")
                ));
            }
            (Some(_), None) => "the file is gone".to_owned(),
            (Some(_), Some(_)) => {
                let compared = || compare((path, &accepted.texts), (path, &file.by_name));
                match cut.map_or_else(compared, Err) {
                    Ok(()) => {
                        let standing = Standing::Adopted(Acceptance::Tighter);
                        return self.adopt(path, file, standing, Some(&accepted));
                    }
                    Err(MayLoosen(why)) => why,
                }
            }
        };
        let hash = hash_of(path, &file.by_name);
        copy.governing(Standing::Differs { why, hash })
    }
}

/// Whether a change is taken without a person: it provably permits nothing more, and is whole.
pub(crate) fn is_taken_unasked(path: &Path, old: &Texts, new: &Texts) -> bool {
    cut_short(old, new).is_none() && compare((path, old), (path, new)).is_ok()
}

/// The policy in a file as it is on disk, with the texts that it is made of.
pub(crate) fn read_file(path: &Path, wanted: Option<Profile>) -> (Found, BTreeMap<String, String>) {
    let key = Key::on_tape([0; 32]);
    let loader = Loader { path, wanted, key: &key, own_files: &[], is_hub: false };
    let loaded = loader.load(PolicyFiles::on_disk(path), Audience::Person);
    (loaded.found, loaded.by_name)
}

/// The policy that accepted texts make.
pub(crate) fn read_accepted(accepted: &AcceptedPolicy, wanted: Option<Profile>) -> Found {
    let key = Key::on_tape([0; 32]);
    let files = PolicyFiles::accepted(&accepted.path, accepted.texts.clone());
    let loader = Loader { path: &accepted.path, wanted, key: &key, own_files: &[], is_hub: false };
    loader.load(files, Audience::Person).found
}

impl Governing {
    /// Makes sure that what was accepted is known at the next start, where a policy is required.
    pub(crate) fn require_kept(&self) -> Result<(), Failure> {
        let Some(why) = &self.unkept else { return Ok(()) };
        let words = format!(
            "a policy is required, but what is accepted cannot be kept ({why}): the next start \
             would trust whatever the file says then"
        );
        let hint = "point TAPEGATE_HOME to a folder that can be written";
        Err(Failure::new(Exit::Invalid, words).hint(hint))
    }
}

/// A file that is gone, empty or cut short is more likely half written than meant, even if it would
/// permit less. What it becomes next would then need to be accepted.
fn cut_short(old: &BTreeMap<String, String>, new: &BTreeMap<String, String>) -> Option<MayLoosen> {
    old.iter().find_map(|(name, old)| match new.get(name) {
        None => Some(MayLoosen(format!("`{name}` is gone"))),
        Some(new) if new == old => None,
        Some(new) if new.trim().is_empty() => Some(MayLoosen(format!("`{name}` is empty"))),
        Some(new) if old.starts_with(new.trim_end()) => {
            Some(MayLoosen(format!("`{name}` is cut short")))
        }
        Some(_) => None,
    })
}

/// Whether the policy of some texts permits nothing that another did not, whatever the environment
/// and the profile of the next start.
fn compare(old: (&Path, &Texts), new: (&Path, &Texts)) -> Result<(), MayLoosen> {
    let load = |(path, texts): (&Path, &Texts)| {
        load_marked(&path.to_string_lossy(), &PolicyFiles::accepted(path, texts.clone()))
    };
    tightens(&load(old), &load(new))
}

/// The warning that what is accepted is not known at the next start.
fn not_kept(why: &str) -> String {
    format!(
        "the accepted policy cannot be kept ({why}), so the next start trusts whatever the file says \
         then; point TAPEGATE_HOME to a folder that can be written"
    )
}

/// The hash that texts go by, in the few digits that people compare.
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
