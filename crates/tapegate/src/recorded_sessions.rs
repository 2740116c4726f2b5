//! The recorded sessions of a project, and the words by which commands take their tapes.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use tapegate_store::recorded_sessions::{self, SessionRecording};

use crate::cmd::policy::backtest::backtest_tape;
use crate::exit::{Exit, Failure};
use crate::file_type;
use crate::program_name;
use crate::settings::SearchContext;
use crate::state_folder::StateArgs;
use crate::terminal_output;
use crate::views::recorded_sessions as view;

/// The word for the newest session.
const LAST: &str = "last";
/// The length of an id.
const ID_CHARS: usize = 16;

/// The sessions in the state folder of a project.
pub(crate) struct ProjectSessions {
    /// Those of the project, newest first.
    pub(crate) own: Vec<SessionRecording>,
    /// Those of other projects that use the same folder.
    pub(crate) others: Vec<SessionRecording>,
}

impl ProjectSessions {
    /// Finds the sessions.
    pub(crate) fn find(args: &StateArgs) -> anyhow::Result<Self> {
        let choice = args.choice()?;
        let sessions = recorded_sessions::find(&choice.folder)
            .with_context(|| format!("cannot read `{}`", choice.folder.display()))?;
        let search = SearchContext::current().context("cannot find the current folder")?;
        // The user's own folder has the sessions of every project without a folder of its own.
        let is_shared = search.user_state_dir().is_ok_and(|own| own == choice.folder);
        if args.is_named() || !is_shared {
            return Ok(Self { own: sessions, others: Vec::new() });
        }
        let resolved = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let project = resolved(choice.project().unwrap_or(&search.folder));
        let is_own = |session: &SessionRecording| {
            session.tapes.iter().any(|tape| resolved(&tape.folder).starts_with(&project))
        };
        let (own, others) = sessions.into_iter().partition(is_own);
        Ok(Self { own, others })
    }
}

/// The tapes that are meant: files, those in folders, `last`, or the starts of session ids. A file
/// goes before a session of the same name.
pub(crate) fn tapes(named: &[PathBuf], state: &StateArgs) -> anyhow::Result<Vec<PathBuf>> {
    let mut tapes = Vec::new();
    let mut sessions = None;
    for path in named {
        if path.is_dir() {
            tapes.extend(tapes_in(path)?);
            continue;
        }
        let Some(word) = session_word(path) else {
            tapes.push(path.clone());
            continue;
        };
        let sessions = match &mut sessions {
            Some(sessions) => sessions,
            none => none.insert(ProjectSessions::find(state)?),
        };
        let session = by_word(sessions, word)?;
        tapes.extend(session.tapes.iter().map(|tape| tape.path.clone()));
    }
    Ok(tapes)
}

/// The tapes in a folder. Other files of such names, as the activity log is, are left out.
fn tapes_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let named = backtest_tape::tapes_in_folder(folder)?;
    let (tapes, others): (Vec<_>, Vec<_>) =
        named.into_iter().partition(|path| file_type::seems_a_tape(path));
    // Opening a pipe would wait for its other end.
    let others = others.iter().filter(|path| path.is_file());
    let unreadable = others.filter_map(|path| Some((path, File::open(path).err()?)));
    let unreadable =
        unreadable.map(|(path, error)| format!("cannot read `{}`: {error}", path.display()));
    let unreadable: Vec<String> = unreadable.collect();
    match (tapes.is_empty(), unreadable.first()) {
        (false, _) => {
            unreadable.iter().for_each(|message| terminal_output::warn(message));
            Ok(tapes)
        }
        (true, Some(message)) => Err(Failure::new(Exit::Io, message)),
        (true, None) => {
            let message = format!("there is no tape in `{}`", folder.display());
            Err(Failure::new(Exit::Invalid, message).hint(backtest_tape::ending_hint()))
        }
    }
}

/// The word for a session, if this is one and no file.
fn session_word(path: &Path) -> Option<&str> {
    let word = path.to_str().filter(|_| path.symlink_metadata().is_err())?;
    let is_id = !word.is_empty()
        && word.len() <= ID_CHARS
        && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_id || word == LAST).then_some(word)
}

fn by_word<'s>(sessions: &'s ProjectSessions, word: &str) -> Result<&'s SessionRecording, Failure> {
    let show = program_name::command("show");
    if word == LAST {
        let failure = || {
            Failure::new(Exit::Io, "no session is recorded in this project")
                .hint(format!("`{}` records one", program_name::command("wrap")))
        };
        return sessions.own.first().ok_or_else(failure);
    }
    let start = word.to_ascii_lowercase();
    let all = sessions.own.iter().chain(&sessions.others);
    let found: Vec<&SessionRecording> = all.filter(|one| one.id.starts_with(&start)).collect();
    let exact = found.iter().find(|one| one.id == start);
    match (exact, &found[..]) {
        (Some(session), _) | (None, [session]) => Ok(session),
        (None, []) => {
            let message = format!("there is no file and no recorded session `{word}`");
            Err(Failure::new(Exit::Io, message).hint(format!("`{show}` lists the sessions")))
        }
        (None, many) => {
            let lines = many.iter().map(|session| format!("  {}", view::line(session)));
            let lines = lines.collect::<Vec<_>>().join("\n");
            let message = format!("`{word}` is the start of {} sessions:\n{lines}", many.len());
            Err(Failure::new(Exit::Usage, message).hint("write more of the id"))
        }
    }
}
