//! Processes as the kernel lists them, also those that have ended and that no process has waited for.
//!
//! The environment of a process that has ended is gone, so a mark in it finds only the living ones.
//! Here processes are found by their parents: a test that [`adopt_orphans`] is the parent of each
//! whose own parent has ended.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// One process.
#[derive(Debug, Clone)]
pub(crate) struct ListedProcess {
    pub(crate) pid: Pid,
    /// The name of its program, at most 15 bytes of it.
    pub(crate) name: String,
    /// Whether it has ended, and its parent has not waited for it.
    pub(crate) is_zombie: bool,
    pub(crate) parent: Option<Pid>,
    pub(crate) session: Option<Pid>,
}

/// The processes that the test has started itself, and waits for.
static OWN: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

/// Makes this process the parent of every process below it whose parent ends.
pub(crate) fn adopt_orphans() {
    set_child_subreaper(Some(getpid())).unwrap();
}

/// Notes that the test waits for this process itself.
pub(crate) fn note_own_child(id: u32) {
    OWN.lock().unwrap().insert(id.cast_signed());
}

/// Every process.
pub(crate) fn list() -> Vec<ListedProcess> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    // One that ends meanwhile is left out.
    pids.filter_map(|pid| read(Pid::from_raw(pid)?)).collect()
}

fn read(pid: Pid) -> Option<ListedProcess> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid())).ok()?;
    // The name is in parentheses, and may contain some.
    let (head, rest) = text.rsplit_once(") ")?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = rest.split(' ');
    let is_zombie = fields.next()? == "Z";
    let mut number = || fields.next()?.parse().ok();
    let (parent, _group, session): (i32, i32, i32) = (number()?, number()?, number()?);
    // A process that is just being removed has no session, which the kernel writes as -1.
    let (parent, session) = (Pid::from_raw(parent.max(0)), Pid::from_raw(session.max(0)));
    Some(ListedProcess { pid, name, is_zombie, parent, session })
}

/// The orphans that this process has adopted, alive or not.
pub(crate) fn orphans() -> Vec<ListedProcess> {
    let own = OWN.lock().unwrap().clone();
    let is_adopted =
        |one: &ListedProcess| one.parent == Some(getpid()) && !own.contains(&one.pid.as_raw_pid());
    list().into_iter().filter(is_adopted).collect()
}

/// Waits for the adopted processes that have ended, and returns them.
pub(crate) fn bury_orphans() -> Vec<ListedProcess> {
    let ended: Vec<ListedProcess> = orphans().into_iter().filter(|one| one.is_zombie).collect();
    for one in &ended {
        waitpid(Some(one.pid), WaitOptions::NOHANG).ok();
    }
    ended
}

/// The processes that have ended and that one of these parents has not waited for.
pub(crate) fn zombies_of(parents: &[Pid]) -> Vec<ListedProcess> {
    let is_left = |one: &ListedProcess| {
        one.is_zombie && one.parent.is_some_and(|parent| parents.contains(&parent))
    };
    list().into_iter().filter(is_left).collect()
}
