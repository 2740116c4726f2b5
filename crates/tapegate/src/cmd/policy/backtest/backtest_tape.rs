//! Finds tapes, and the servers and policies they belong to.

use std::fs;
use std::path::{Path, PathBuf};

use tapegate_core::json;
use tapegate_core::tape::{FormatVersion, TapeHeader, TapeLine};
use tapegate_policy::model::Policy;
use tapegate_store::tape_source::TapeSource;

use crate::exit::{Exit, Failure};
use crate::settings::server_id;
use crate::upstream::UpstreamTarget;
use tapegate_store::new_tape::{TAPE_FOLDER, TAPE_POLICY};

/// How deeply folders are searched.
const DEPTH_MAX: usize = 16;
/// The file name extensions of tapes.
const ENDINGS: [&str; 4] = [".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"];
/// The extension of the file beside a tape that belongs to it.
const BESIDE: &str = ".anomalies.jsonl";

#[derive(Debug)]
pub(crate) struct BacktestTape {
    pub(crate) path: PathBuf,
    /// Whether it was found in a folder, so that it may not be a tape at all.
    pub(crate) by_chance: bool,
    /// Candidates for the server's id, most reliable first.
    names: Vec<String>,
    /// How many of these are certain.
    sure: usize,
    /// How the server was started or reached.
    pub(crate) upstream: Option<UpstreamTarget>,
    /// Where the session was governed, if the tape says so.
    origin: Option<TapeOrigin>,
}

/// Where a session was governed.
#[derive(Debug)]
struct TapeOrigin {
    /// The folder that it worked in.
    folder: PathBuf,
    policy: Option<PathBuf>,
}

/// The tapes that were named, and those in named folders, sorted by name.
pub(crate) fn find(named: &[PathBuf]) -> Result<Vec<BacktestTape>, Failure> {
    let mut found = Vec::new();
    for path in named {
        if path.is_dir() {
            for path in tapes_in_folder(path)? {
                found.push(BacktestTape::open(path, true)?);
            }
        } else {
            found.push(BacktestTape::open(path.clone(), false)?);
        }
    }
    Ok(found)
}

/// The files in a folder and its subfolders that are named like tapes, sorted. It is an error if
/// there are none.
pub(crate) fn tapes_in_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    collect_tapes(folder, 0, &mut found)?;
    if found.is_empty() {
        let message = format!("there is no tape in `{}`", folder.display());
        return Err(Failure::new(Exit::Invalid, message).hint(ending_hint()));
    }
    Ok(found)
}

/// How tapes are named.
pub(crate) fn ending_hint() -> String {
    format!("the names of tapes end in {}", ENDINGS.join(", "))
}

/// The tapes among the other files of a folder, recognized by their headers.
pub(crate) fn tapes_among_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let named = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_tape(&name) && matches!(header(path), Ok(Some(_)))
    });
    named.collect()
}

fn collect_tapes(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let cannot = |error: std::io::Error| {
        Failure::new(Exit::Io, format!("cannot read `{}`: {error}", folder.display()))
    };
    let entries: Result<Vec<_>, _> = fs::read_dir(folder).map_err(cannot)?.collect();
    let mut paths: Vec<PathBuf> =
        entries.map_err(cannot)?.into_iter().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // A link may lead back up.
        let is_link = path.symlink_metadata().is_ok_and(|there| there.is_symlink());
        if path.is_dir() && !is_link && depth < DEPTH_MAX {
            collect_tapes(&path, depth + 1, found)?;
        } else if path.is_file() && is_tape(&name) {
            found.push(path);
        }
    }
    Ok(())
}

/// Whether a file has the name of a tape, whatever its content.
pub(crate) fn has_tape_name(path: &Path) -> bool {
    path.file_name().is_some_and(|name| is_tape(&name.to_string_lossy()))
}

fn is_tape(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.ends_with(BESIDE)
}

impl BacktestTape {
    fn open(path: PathBuf, by_chance: bool) -> Result<Self, Failure> {
        let header = header(&path).map_err(|error| {
            Failure::new(Exit::Io, format!("cannot read `{}`: {error}", path.display()))
        })?;
        if let Some(FormatVersion::Other(message)) = header.as_ref().map(TapeHeader::format_version)
        {
            let message = format!("cannot read `{}`: {message}", path.display());
            return Err(Failure::new(Exit::Invalid, message));
        }
        let extra = header.as_ref().and_then(|header| header.extra.strip_prefix(b","));
        let extra = [b"{", extra.unwrap_or_default(), b"}"].concat();
        let text_member = |key| json::member(&extra, key).and_then(json::string).map(String::from);
        let mut names: Vec<String> = text_member("server_id").into_iter().collect();
        let origin = text_member(TAPE_FOLDER).map(|folder| TapeOrigin {
            folder: folder.into(),
            policy: text_member(TAPE_POLICY).map(PathBuf::from),
        });
        // A shim keeps the tapes of a server in a folder named after it.
        let folder = path.parent().filter(|folder| {
            folder.parent().and_then(Path::file_name).is_some_and(|above| above == "tapes")
        });
        let folder = folder.and_then(Path::file_name).map(|name| name.to_string_lossy());
        names.extend(folder.map(String::from));
        // Names from here on are guesses: a recording may have been named by hand.
        let sure = names.len();
        let upstream = header.as_ref().and_then(|header| upstream(&header.upstream));
        names.extend(header.and_then(|header| header.name).map(String::from));
        names.extend(upstream.as_ref().map(server_id));
        Ok(Self { path, by_chance, names, sure, upstream, origin })
    }

    /// Whether this policy covers the session on the tape: it was in force there, or the session
    /// worked below its folder and no nearer policy was in force. `None` if the tape does not say.
    pub(crate) fn is_governed_by(&self, policy: &Path) -> Option<bool> {
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let policy = resolved(policy);
        let TapeOrigin { folder, policy: governing } = self.origin.as_ref()?;
        let governing = governing.as_deref().map(resolved);
        if governing.as_ref() == Some(&policy) {
            return Some(true);
        }
        let project = policy.parent()?;
        let is_nearer = governing.is_some_and(|path| {
            path.parent().is_some_and(|nearer| nearer != project && nearer.starts_with(project))
        });
        Some(!is_nearer && resolved(folder).starts_with(project))
    }

    /// Whether the server of the tape may have this id.
    pub(crate) fn may_be_server(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// The id of the tape's server, if it can be determined.
    pub(crate) fn server_name(&self, policy: Option<&Policy>) -> Option<String> {
        let only = policy.map(|policy| policy.sources.as_slice());
        let known = |name: &&String| policy.is_some_and(|policy| is_known(policy, name));
        match (self.names.iter().find(known).or(self.names.first()), only) {
            (Some(name), _) => Some(name.clone()),
            (None, Some([only])) if only.id != "*" => Some(only.id.clone()),
            (None, _) => None,
        }
    }

    /// The id of the tape's server in a policy: a candidate that the policy names, a certain one,
    /// or that of the policy's only server.
    pub(crate) fn server(&self, policy: &Policy) -> String {
        let known = |name: &&String| is_known(policy, name);
        let sure = || self.names[..self.sure].first();
        match (self.names.iter().find(known).or_else(sure), policy.sources.as_slice()) {
            (Some(name), _) => name.clone(),
            (None, [only]) => only.id.clone(),
            (None, _) => "*".to_owned(),
        }
    }
}

fn is_known(policy: &Policy, name: &str) -> bool {
    policy.sources.iter().any(|source| source.id == name)
}

fn upstream(message: &str) -> Option<UpstreamTarget> {
    if message.starts_with("http://") || message.starts_with("https://") {
        return Some(UpstreamTarget::Http(message.to_owned()));
    }
    shlex::split(message).filter(|argv| !argv.is_empty()).map(UpstreamTarget::Command)
}

/// The header at the start of a tape, if there is one. A pipe is skipped: it can be read only once.
fn header(path: &Path) -> std::io::Result<Option<TapeHeader<'static>>> {
    if fs::metadata(path)?.is_file() {
        let mut source = TapeSource::open(path, Box::new(|_, _| ()))?;
        if let Some(Ok(first)) = source.reader.next()
            && let TapeLine::Header(header) = &first.entry
        {
            return Ok(Some(header.to_static()));
        }
    }
    Ok(None)
}
