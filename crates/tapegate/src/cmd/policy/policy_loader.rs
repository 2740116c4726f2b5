//! Finds and loads the policy of a command.

use std::io;
use std::path::{Path, PathBuf};

use tapegate_policy::load::{self, PolicyLoadResult};
use tapegate_policy::model::{Policy, Profile};
use tapegate_policy::pins::PinLock;
use tapegate_policy::redact::{RedactionKey, Redactor};
use tapegate_shim::shim_policy::own_sources;
use tapegate_store::input;
use tapegate_yaml::finding::{Finding, Severity};

use crate::exit::{Exit, Failure};
use crate::local_files::LocalFiles;
use crate::program_name;
use crate::settings::{ProfileArg, SearchContext, own_places};
use crate::terminal_output;
use crate::trust::{self, PendingFile, PolicyTrust};
use crate::views::plural;

/// A policy and its file.
pub(super) struct LoadedPolicy {
    /// The file, as shown to the user.
    pub(super) path: PathBuf,
    pub(super) policy: Policy,
}

/// The named policy, or else the nearest one.
pub(super) fn nearest(named: Option<&Path>) -> anyhow::Result<LoadedPolicy> {
    Ok(nearest_or_pending(named)?.0)
}

/// The same, and whether the file is not in force.
pub(super) fn nearest_or_pending(
    named: Option<&Path>,
) -> anyhow::Result<(LoadedPolicy, Option<PendingFile>)> {
    let found = read(nearest_path(named, BY_CONFIG)?)?;
    // Commands use the file, sessions the accepted copy; a difference would mislead the user.
    let pending = trust::pending_file(&found.path);
    pending.iter().for_each(PendingFile::warn);
    if let Some(gone) = governing_without_file(named)? {
        terminal_output::warn(&format!(
            "sessions here use the accepted version of `{}`, whose file is gone, and not `{}`",
            gone.display(),
            found.path.display()
        ));
    }
    Ok((found, pending))
}

/// How most commands name a policy.
pub(super) const BY_CONFIG: &str = "--config FILE";

/// A nearer policy whose file is gone but whose accepted copy is still in force.
fn governing_without_file(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let search = SearchContext::current()?;
    let governing = PolicyTrust::new().locate(&search, named)?;
    Ok(governing.filter(|path| !path.exists()))
}

/// The path of the named policy, or else the nearest one; an error if there is none. `way` is how
/// the command names one.
pub(super) fn nearest_path(named: Option<&Path>, way: &str) -> anyhow::Result<PathBuf> {
    let gone = |path: PathBuf| {
        let message = format!("`{}` is gone; its accepted version is in force", path.display());
        Failure::new(Exit::Invalid, message).hint("restore the file from version control")
    };
    let none = || {
        Failure::new(
            Exit::Invalid,
            "there is no tapegate.yaml here, in a folder above or in the user's config folder",
        )
        .hint(format!("name one with {way}, or write one with `{}`", program_name::command("init")))
    };
    match path(named)? {
        Some(path) => Ok(path),
        None => Err(governing_without_file(named)?.map_or_else(none, gone).into()),
    }
}

/// The path of the named policy, or else the nearest one.
pub(super) fn path(named: Option<&Path>) -> anyhow::Result<Option<PathBuf>> {
    let search = SearchContext::current()?;
    let path = search.config(named)?;
    // A path relative to the current folder is easier to read.
    Ok(path.map(|path| path.strip_prefix(&search.folder).map(Path::to_owned).unwrap_or(path)))
}

/// Loads the policy in a file and reports all its faults.
pub(super) fn read(path: PathBuf) -> Result<LoadedPolicy, Failure> {
    let loaded = load::load(&path.to_string_lossy(), &LocalFiles::regular_only());
    check_loaded(path, loaded)
}

/// The same without its lock file.
pub(super) fn read_unpinned(path: PathBuf) -> Result<LoadedPolicy, Failure> {
    let loaded = load::load_unpinned(&path.to_string_lossy(), &LocalFiles::regular_only());
    check_loaded(path, loaded)
}

fn check_loaded(path: PathBuf, loaded: PolicyLoadResult) -> Result<LoadedPolicy, Failure> {
    let main = path.to_string_lossy();
    terminal_output::report_findings(&loaded.findings, &loaded.sources, &main);
    match loaded.policy {
        Some(mut policy) => {
            let own = own_places(&path).into_iter().chain(own_sources(&loaded.sources));
            own.for_each(|path| policy.own_files.add(&path.to_string_lossy()));
            Ok(LoadedPolicy { policy, path: path.clone() })
        }
        None => {
            let is_error = |finding: &&Finding| finding.severity == Severity::Error;
            let message = plural(loaded.findings.iter().filter(is_error).count(), "error");
            Err(Failure::new(Exit::Invalid, format!("`{main}` cannot be used: {message}")))
        }
    }
}

/// The profile in force: the named one, that of the environment, or the policy's own.
pub(super) fn profile(named: Option<ProfileArg>, policy: &Policy) -> anyhow::Result<Profile> {
    let named = SearchContext::current()?.profile(named)?;
    Ok(named.or(policy.profile).unwrap_or_default())
}

/// The named server, the policy's only one, or any.
pub(super) fn server<'s>(named: Option<&'s str>, policy: &'s Policy) -> &'s str {
    named.unwrap_or_else(|| match policy.sources.as_slice() {
        [only] => &only.id,
        _ => "*",
    })
}

/// The largest lock file that is read.
pub(crate) const LOCK_BYTES_MAX: u64 = 256 << 20;

/// The definitions in a lock file, if it exists.
pub(super) fn read_lock(path: &Path) -> Result<Option<PinLock>, Failure> {
    let text = match input::read_to_string(path, LOCK_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            let message = format!("cannot read `{}`: {error}", path.display());
            return Err(Failure::new(Exit::Io, message));
        }
    };
    let lock = PinLock::parse(&text).map_err(|error| {
        Failure::new(Exit::Invalid, format!("`{}` cannot be used: {error}", path.display()))
            .hint("restore it from version control, or write a new one with --replace and --all")
    })?;
    Ok(Some(lock))
}

/// The path of the policy's lock file.
pub(super) fn lock_path(loaded_policy: &LoadedPolicy) -> PathBuf {
    let folder = loaded_policy.path.parent().unwrap_or(Path::new(""));
    folder.join(&loaded_policy.policy.pins.lock_file)
}

/// The redactor for results on the wire, if the policy has one.
pub(super) fn redactor(policy: &Policy) -> Option<Redactor> {
    let rules = policy.redaction.rules.clone().filter(|_| policy.redaction.on_wire);
    // Placeholders are not shown, so any key will do.
    rules.map(|rules| Redactor::new(rules, RedactionKey::for_tape([0; 32])))
}
