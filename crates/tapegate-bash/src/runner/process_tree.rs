//! All descendants of this process, and signals to them.
//!
//! The groups are signalled as groups, because the kernel does that in one step: a process that
//! forks meanwhile cannot escape it. Single processes are found in `/proc`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use rustix::process::{Pid, Signal, getpid, kill_process, kill_process_group};

/// How often a session is searched for processes that were started meanwhile.
const SEARCHES_MAX: usize = 200;
const SEARCH_INTERVAL: Duration = Duration::from_millis(1);

/// A process, as `/proc` shows it.
struct SystemProcess {
    parent: i32,
    group: i32,
    session: i32,
    /// Whether it has ended, and only its parent has not noticed yet.
    is_zombie: bool,
}

/// Sends a signal to every descendant once.
pub(super) fn signal_all(shell: Pid, signal: Signal) {
    let found = descendants();
    let shell_group = shell.as_raw_pid();
    // A group without members has ended, and its number may belong to other processes.
    if found.values().any(|entry| entry.group == shell_group) {
        kill_process_group(shell, signal).ok();
    }
    for (pid, entry) in found {
        // The shell's group has its signal already; a second SIGINT would look like a second Ctrl-C.
        if entry.group != shell_group {
            Pid::from_raw(pid).iter().for_each(|pid| _ = kill_process(*pid, signal));
        }
    }
}

/// Kills every descendant, and every group that one of them is in.
pub(super) fn kill_all() {
    let found = descendants();
    let own_group = rustix::process::getpgrp().as_raw_pid();
    let groups: BTreeSet<i32> = found.values().map(|entry| entry.group).collect();
    for group in groups {
        // Our own group holds us, and a number below two means something else to the kernel.
        let group = Some(group).filter(|group| *group > 1 && *group != own_group);
        let group = group.and_then(Pid::from_raw);
        group.iter().for_each(|group| _ = kill_process_group(*group, Signal::KILL));
    }
    for pid in found.into_keys().filter_map(Pid::from_raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}

/// Kills every process in the session of a runner that was killed. The runner must not have been
/// waited for, so that its id cannot belong to another process.
pub(crate) fn kill_session(runner: Pid) {
    let leader = runner.as_raw_pid();
    for _ in 0..SEARCHES_MAX {
        let mut members = processes();
        members.retain(|pid, entry| entry.session == leader && *pid != leader && !entry.is_zombie);
        if members.is_empty() {
            return;
        }
        for pid in members.into_keys().filter_map(Pid::from_raw) {
            kill_process(pid, Signal::KILL).ok();
        }
        // They may have started others before they were killed.
        std::thread::sleep(SEARCH_INTERVAL);
    }
}

/// Every process whose chain of parents leads to us.
fn descendants() -> BTreeMap<i32, SystemProcess> {
    let mut all = processes();
    let mut ours = BTreeSet::from([getpid().as_raw_pid()]);
    // A child may have a smaller number than its parent, so this repeats until nothing is added.
    loop {
        let count = ours.len();
        let children = all.iter().filter(|(_, entry)| ours.contains(&entry.parent));
        let children: Vec<i32> = children.map(|(pid, _)| *pid).collect();
        ours.extend(children);
        if ours.len() == count {
            break;
        }
    }
    ours.remove(&getpid().as_raw_pid());
    all.retain(|pid, _| ours.contains(pid));
    all
}

fn processes() -> BTreeMap<i32, SystemProcess> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(pid) = pid else { continue };
        // A process that ended meanwhile has no file any more, and needs no signal.
        let stat = fs::read_to_string(entry.path().join("stat"));
        all.extend(stat.ok().and_then(|stat| read_stat(&stat)).map(|entry| (pid, entry)));
    }
    all
}

/// Reads a line of `/proc/PID/stat`. The program's name comes before them, may contain anything, and ends at
/// the last parenthesis.
fn read_stat(stat: &str) -> Option<SystemProcess> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?;
    let mut number = || words.next()?.parse().ok();
    Some(SystemProcess {
        parent: number()?,
        group: number()?,
        session: number()?,
        is_zombie: matches!(state, "Z" | "X"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_may_contain_anything() {
        let entry = read_stat("12 (a) S (b) c) S 7 9 9 0 -1 0").unwrap();
        assert_eq!((entry.parent, entry.group, entry.session), (7, 9, 9));
        assert!(read_stat("12 (a").is_none());
    }

    #[test]
    fn children_are_found_and_other_processes_are_not() {
        let mut child =
            std::process::Command::new("tail").args(["-f", "/dev/null"]).spawn().unwrap();
        let found = descendants();
        assert!(found.contains_key(&(child.id() as i32)));
        assert!(!found.contains_key(&1) && !found.contains_key(&getpid().as_raw_pid()));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
