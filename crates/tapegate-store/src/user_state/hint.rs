//! Records in a project which user state folder its shims and hubs use.
//!
//! A user's terminal and the client that starts a shim may differ in `HOME`, `XDG_STATE_HOME` or
//! `TAPEGATE_HOME`. A decision made in the terminal then never reaches the shim. So each shim notes
//! its folder in the project's state folder, and commands compare it with theirs.
//!
//! An agent can write the note. It is used for warnings only; nothing is read or written at the
//! paths it names.
//!
//! ```text
//! <state folder>/user-state     a line for each process: its id, a blank, the folder
//! ```

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::canonical_path;
use crate::private_folder::FolderHandle;
use crate::temporary_file::TemporaryFile;

/// The name of the note.
const NOTE: &str = "user-state";
/// How much of a note is read, and how many processes it lists.
const BYTES_MAX: u64 = 64 * 1024;
const LINES_MAX: usize = 64;

/// A line of the note.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NotedProcess {
    pid: i32,
    user_state: String,
}

/// Records that this process uses `user_state`, and drops processes that have ended.
pub fn record_user_state(state_folder: &Path, user_state: &Path) -> io::Result<()> {
    let folder = FolderHandle::open(state_folder)?;
    let path = canonical_path(user_state);
    let Some(path) = path.to_str().filter(|path| !path.contains('\n')) else { return Ok(()) };
    let own = std::process::id() as i32;
    let mut lines = read(&folder)?;
    lines.retain(|line| line.pid != own && is_alive(line.pid));
    lines.push(NotedProcess { pid: own, user_state: path.to_owned() });
    let start = lines.len().saturating_sub(LINES_MAX);
    let text: String =
        lines[start..].iter().map(|line| format!("{} {}\n", line.pid, line.user_state)).collect();
    let mut temporary = TemporaryFile::in_folder(&folder, NOTE)?;
    temporary.write(text.as_bytes())?;
    temporary.replace(NOTE)
}

/// The user state folders other than `user_state` that processes of the project use: those of
/// running processes and of the one started last.
pub fn other_user_states(state_folder: &Path, user_state: &Path) -> Vec<PathBuf> {
    let own = canonical_path(user_state);
    recorded_user_states(state_folder).into_iter().filter(|path| *path != own).collect()
}

fn recorded_user_states(state_folder: &Path) -> Vec<PathBuf> {
    let Ok(folder) = FolderHandle::open(state_folder) else { return Vec::new() };
    let lines = read(&folder).unwrap_or_default();
    let last = lines.len().saturating_sub(1);
    let mut folders = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let path = PathBuf::from(&line.user_state);
        if (at == last || is_alive(line.pid)) && !folders.contains(&path) {
            folders.push(path);
        }
    }
    folders
}

fn read(folder: &FolderHandle) -> io::Result<Vec<NotedProcess>> {
    let file = match folder.file(NOTE, OFlags::RDONLY) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    // Malformed lines were not written by Tapegate.
    let line = |line: &str| {
        let (pid, user_state) = line.split_once(' ')?;
        let pid = pid.parse::<i32>().ok().filter(|pid| *pid > 0)?;
        user_state.starts_with('/').then(|| NotedProcess { pid, user_state: user_state.to_owned() })
    };
    Ok(String::from_utf8_lossy(&bytes).lines().filter_map(line).take(LINES_MAX).collect())
}

fn is_alive(pid: i32) -> bool {
    let Some(pid) = Pid::from_raw(pid) else { return false };
    !matches!(test_kill_process(pid), Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A process that has ended.
    fn ended() -> i32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id() as i32
    }

    #[test]
    fn a_note_names_the_folder_of_each_process_once() {
        let state = tempfile::tempdir().unwrap();
        assert!(recorded_user_states(state.path()).is_empty());
        let (one, two) = (Path::new("/u/one"), Path::new("/u/two"));
        record_user_state(state.path(), one).unwrap();
        record_user_state(state.path(), one).unwrap();
        assert_eq!(recorded_user_states(state.path()), [one]);
        record_user_state(state.path(), two).unwrap();
        assert_eq!(recorded_user_states(state.path()), [two], "a process uses one folder");
        assert_eq!(
            (other_user_states(state.path(), one), other_user_states(state.path(), two)),
            (vec![two.into()], vec![])
        );
        assert_eq!(fs::read_dir(state.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn of_processes_that_have_ended_only_the_last_one_counts() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join(NOTE);
        let (gone, own) = (ended(), std::process::id());
        fs::write(&file, format!("{gone} /u/a\n{own} /u/b\n{gone} /u/c\n")).unwrap();
        assert_eq!(recorded_user_states(state.path()), [Path::new("/u/b"), Path::new("/u/c")]);
        record_user_state(state.path(), Path::new("/u/d")).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("{own} /u/d\n"));
    }

    #[test]
    fn a_note_that_somebody_else_wrote_does_no_harm() {
        let state = tempfile::tempdir().unwrap();
        let file = state.path().join(NOTE);
        fs::write(&file, b"\xff\n-1 /u\n0 /u\n1\n1 relative\nx /u\n99999999999 /u\n").unwrap();
        assert!(recorded_user_states(state.path()).is_empty());
        fs::write(&file, format!("1 /{}\n", "x".repeat(1 << 20))).unwrap();
        assert!(recorded_user_states(state.path())[0].as_os_str().len() <= BYTES_MAX as usize);
        fs::remove_file(&file).unwrap();
        let victim = state.path().join("victim");
        fs::write(&victim, "1 /u\n").unwrap();
        symlink(&victim, &file).unwrap();
        assert!(recorded_user_states(state.path()).is_empty(), "links are not followed");
        assert!(record_user_state(state.path(), Path::new("/u")).is_err());
        assert_eq!(fs::read_to_string(&victim).unwrap(), "1 /u\n");
    }
}
