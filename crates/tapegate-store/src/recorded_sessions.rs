//! The sessions whose tapes are in a state folder.
//!
//! Nothing is kept for them: which tapes there are follows from the folder and the activity log,
//! which session a tape belongs to from its header, and what became of its calls from the log. So a
//! session is found however it has ended.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::hash::RandomState;
use std::io;
use std::path::{Path, PathBuf};

use tapegate_core::json;
use tapegate_core::tape::{TapeHeader, TapeLine};
use tapegate_core::time::read_rfc3339;

use crate::activity::{CallTally, LogFollower};
use crate::anomaly_file::anomaly_path;
use crate::new_tape::{TAPE_AGENT, TAPE_AGENT_SESSION, TAPE_FOLDER};
use crate::tape_source::TapeSource;

/// The folder of the tapes in a state folder.
const TAPES: &str = "tapes";
/// How the names of tapes end.
const ENDINGS: [&str; 2] = [".jsonl", ".jsonl.gz"];

/// A session of an agent with all its servers, or of a single shim.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionRecording {
    /// Its id: that of the agent's session, or of the connection of the shim.
    pub id: String,
    /// The kind of agent, if it was started by `wrap`.
    pub agent: Option<String>,
    /// When its first tape was started, in microseconds since 1970.
    pub started_us: i64,
    /// Its tapes, oldest first.
    pub tapes: Vec<SessionTape>,
    /// Its calls and denials, if the log has any line of its connections.
    pub counts: Option<CallCounts>,
}

/// What became of the calls of a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// How many calls were made.
    pub calls: u64,
    /// How many of them were denied.
    pub denials: u64,
}

/// One tape of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTape {
    pub path: PathBuf,
    /// The id of the server.
    pub server: String,
    /// The folder that the session worked in.
    pub folder: PathBuf,
    /// When it was started, in microseconds since 1970.
    pub started_us: i64,
}

/// A tape, and what it belongs to.
struct DescribedTape {
    session: String,
    agent: Option<String>,
    connection: String,
    tape: SessionTape,
}

/// What the log says.
#[derive(Debug, Default)]
struct LoggedSessions {
    /// The tapes of sessions; some are outside of the state folder.
    tapes: BTreeSet<PathBuf>,
    /// The calls by connection.
    connections: HashMap<String, CallTally>,
}

/// The recorded sessions, newest first. Files that are not tapes of shims are left out.
pub fn find(state: &Path) -> io::Result<Vec<SessionRecording>> {
    let logged = LoggedSessions::read(state)?;
    let mut paths = tapes_in(&state.join(TAPES))?;
    paths.extend(logged.tapes.iter().filter(|path| path.is_file()).cloned());
    let mut sessions: BTreeMap<String, SessionRecording> = BTreeMap::new();
    for path in paths {
        // A tape may be removed at any time, because it is too old.
        let Some(header) = read_header(&path) else { continue };
        let Some(described) = describe(&header, path) else { continue };
        let session = sessions.entry(described.session.clone()).or_default();
        (session.id, session.agent) = (described.session, described.agent);
        session.tapes.push(described.tape);
        if let Some(tally) = logged.connections.get(&described.connection) {
            let counts = session.counts.get_or_insert_default();
            counts.calls += tally.calls;
            counts.denials += tally.denials;
        }
    }
    let mut sessions: Vec<SessionRecording> = sessions.into_values().collect();
    for session in &mut sessions {
        session
            .tapes
            .sort_by(|one, two| (one.started_us, &one.path).cmp(&(two.started_us, &two.path)));
        session.started_us = session.tapes.first().map_or(0, |tape| tape.started_us);
    }
    sessions.sort_by(|one, two| (two.started_us, &two.id).cmp(&(one.started_us, &one.id)));
    Ok(sessions)
}

impl LoggedSessions {
    fn read(state: &Path) -> io::Result<Self> {
        let mut logged = Self::default();
        let mut follower = LogFollower::new(state);
        if !follower.has_files() {
            return Ok(logged);
        }
        let hasher = RandomState::new();
        while let Some(next) = follower.next_line()? {
            // Damage is reported by `tapegate check`.
            let Ok(line) = next else { continue };
            let Some(connection) = line.str("connection_id") else { continue };
            // Sessions of one shim have numbers after its id.
            let shim = connection.split('.').next().unwrap_or_default();
            let is_session = line.str("kind").is_some_and(|kind| kind == "session");
            if let Some(tape) = line.str("tape").filter(|_| is_session) {
                logged.tapes.insert(PathBuf::from(tape.into_owned()));
            }
            if shim.is_empty() {
                continue;
            }
            let tally = logged.connections.entry(shim.to_owned()).or_default();
            match is_session && line.str("event").is_some_and(|event| event == "ended") {
                // A long log has many requests, and those of ended connections do not come again.
                true => tally.forget_requests(),
                false => tally.note_line(&line, &hasher),
            }
        }
        Ok(logged)
    }
}

/// The tapes in the folders of the servers.
fn tapes_in(folder: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let servers = match fs::read_dir(folder) {
        Ok(servers) => servers,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    let beside = anomaly_path(Path::new("")).to_string_lossy().into_owned();
    for server in servers.flatten() {
        for file in fs::read_dir(server.path()).into_iter().flatten().flatten() {
            let name = file.file_name().to_string_lossy().into_owned();
            let is_tape = ENDINGS.iter().any(|ending| name.ends_with(ending));
            let is_file = file.file_type().is_ok_and(|kind| kind.is_file());
            if is_tape && is_file && !name.ends_with(&beside) {
                found.insert(file.path());
            }
        }
    }
    Ok(found)
}

/// The header of a tape; `None` if the file does not start with one.
fn read_header(path: &Path) -> Option<TapeHeader<'static>> {
    let mut tape = TapeSource::open(path, Box::new(|_, _| ())).ok()?;
    match &tape.reader.next()?.ok()?.entry {
        TapeLine::Header(header) => Some(header.to_static()),
        _ => None,
    }
}

/// What the header of a tape says; `None` if no shim has written it.
fn describe(header: &TapeHeader<'_>, path: PathBuf) -> Option<DescribedTape> {
    let extra = header.extra.strip_prefix(b",").unwrap_or_default();
    let extra = [b"{", extra, b"}"].concat();
    let member = |key| json::member(&extra, key).and_then(json::string).map(String::from);
    // `2026-11-18T21-52-18-969Z-6f012eb03c6c76c9.jsonl`, possibly with a number at the end.
    let stem = path.file_name()?.to_str()?.split('.').next()?;
    let connection = stem.split('Z').next_back()?.split('-').nth(1)?.to_owned();
    Some(DescribedTape {
        session: member(TAPE_AGENT_SESSION).unwrap_or_else(|| connection.clone()),
        agent: member(TAPE_AGENT),
        connection,
        tape: SessionTape {
            server: header.name.as_deref().unwrap_or_default().to_owned(),
            folder: member(TAPE_FOLDER)?.into(),
            started_us: read_rfc3339(&header.recorded_at)?,
            path,
        },
    })
}

#[cfg(test)]
mod tests;
