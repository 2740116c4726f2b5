//! Logs each decision exactly once, even if a process is killed in between.
//!
//! Before a decision is published, a mark records that it is about to be logged; the mark is
//! removed afterwards. This happens under a lock, which the kernel releases when its holder is
//! killed. A process that later finds a mark under the lock looks for the decision in the log, and
//! logs it if it is missing.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::error::ApprovalError;
use super::folder::{ApprovalStore, UNLOGGED};
use super::id::is_id;
use super::{ApprovalDecision, ApprovalRecord};
use crate::activity::{LoggedEvents, open_file, parts};

const LOCK: &str = "log.lock";
/// How long to wait for another process that decides. One that takes longer has been stopped.
const PATIENCE: Duration = Duration::from_secs(5);
const INTERVAL: Duration = Duration::from_millis(5);
/// Larger than any valid mark.
const MARK_BYTES_MAX: u64 = 4096;

impl ApprovalStore {
    /// Decides, and calls `log` to log it. If that fails, or this process is killed first, the next
    /// [`ApprovalStore::log_unlogged`] logs it. The inner result is that of `log`.
    pub fn decide_and_log<E>(
        &self,
        id: &str,
        decided: &ApprovalDecision,
        log: impl FnOnce() -> Result<(), E>,
    ) -> Result<Result<(), E>, ApprovalError> {
        let lock = self.lock_log(PATIENCE);
        // Without the lock or the mark, the decision still counts.
        let is_marked = lock.is_some() && is_id(id) && self.mark_unlogged(id, decided);
        let name = format!("{id}{UNLOGGED}");
        if let Err(error) = self.decide(id, decided) {
            if is_marked {
                self.remove(&name);
            }
            return Err(error);
        }
        let logged = log();
        // The mark stays if the log cannot be written, for the next process that tries.
        if is_marked && logged.is_ok() {
            self.remove(&name);
        }
        Ok(logged)
    }

    /// Calls `log` for each decision whose process was killed before logging it, unless the log in
    /// `state` already has it. A decision that cannot be logged now is found again later.
    pub fn log_unlogged(
        &self,
        state: &Path,
        mut log: impl FnMut(&ApprovalRecord, &ApprovalDecision) -> bool,
    ) {
        let Ok(names) = self.names() else { return };
        let mut ids = names.iter().filter_map(|name| name.strip_suffix(UNLOGGED)).peekable();
        // The usual case, which must not cost a lock.
        if ids.peek().is_none() {
            return;
        }
        // The holder is alive and logs its own decision.
        let Some(_lock) = self.lock_log(Duration::ZERO) else { return };
        for id in ids {
            let name = format!("{id}{UNLOGGED}");
            let Some(mark) = self.read_mark(&name) else { continue };
            let entry = match self.entry(id) {
                Ok(entry) => entry,
                Err(ApprovalError::Unknown { .. }) => {
                    self.remove(&name);
                    continue;
                }
                Err(_) => continue,
            };
            // A process killed before it had decided has nothing to log.
            let decided = entry.decided.filter(|decided| mark == mark_text(decided));
            let is_done = decided.is_none_or(|decided| {
                let known = is_logged(state, id, decided.ruling.as_str());
                known.is_ok_and(|known| known || log(&entry.request, &decided))
            });
            if is_done {
                self.remove(&name);
            }
        }
    }

    fn mark_unlogged(&self, id: &str, decided: &ApprovalDecision) -> bool {
        let name = format!("{id}{UNLOGGED}");
        // Removes a stale mark. If the request is decided, its mark is left for `log_unlogged`.
        if matches!(self.decision(id), Ok(None)) {
            self.remove(&name);
        }
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let Ok(mut file) = self.folder().file(&name, flags) else { return false };
        let is_written = file.write_all(&mark_text(decided)).is_ok();
        if !is_written {
            self.remove(&name);
        }
        is_written
    }

    fn read_mark(&self, name: &str) -> Option<Vec<u8>> {
        let mut mark = Vec::new();
        let file = self.folder().file(name, OFlags::RDONLY).ok()?;
        file.take(MARK_BYTES_MAX).read_to_end(&mut mark).ok()?;
        Some(mark)
    }

    fn lock_log(&self, patience: Duration) -> Option<std::fs::File> {
        let file = self.folder().file(LOCK, OFlags::RDWR | OFlags::CREATE).ok()?;
        let began = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Some(file),
                Err(Errno::WOULDBLOCK) if began.elapsed() < patience => {
                    std::thread::sleep(INTERVAL);
                }
                Err(_) => return None,
            }
        }
    }
}

/// The contents of a mark: the exact decision, to distinguish it from one by another process.
fn mark_text(decided: &ApprovalDecision) -> Vec<u8> {
    let ApprovalDecision { ruling, by, at_us, .. } = decided;
    let mut mark = format!("{} {at_us} {by}", ruling.as_str()).into_bytes();
    mark.truncate(MARK_BYTES_MAX as usize);
    mark
}

/// Whether the log contains a decision.
fn is_logged(state: &Path, id: &str, word: &str) -> io::Result<bool> {
    let mut parts = match parts(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        parts => parts?,
    };
    // The line is most likely in the newest file.
    parts.reverse();
    for part in parts {
        for line in LoggedEvents::new(open_file(&part.path)?).flatten() {
            let is = |key, text: &str| line.str(key).is_some_and(|value| value == text);
            if is("approval_id", id) && is("kind", "approval") && is("governance_decision", word) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::activity::{ActivityLog, ActivityLogOptions, settled_event};
    use crate::approvals::{ApprovalOutcome, new_id};
    use crate::user_state::ProjectKey;

    const NOW: i64 = 1_774_016_531_804_012;

    struct UnloggedFixture {
        top: tempfile::TempDir,
        approvals: ApprovalStore,
        request: ApprovalRecord,
        decided: ApprovalDecision,
    }

    fn scene() -> UnloggedFixture {
        let top = tempfile::tempdir().unwrap();
        let key = ProjectKey::new([7; 32]);
        let approvals = ApprovalStore::open(&top.path().join("approvals"), &key).unwrap();
        let expires_us = NOW + 60_000_000;
        let id = new_id().unwrap();
        let request =
            ApprovalRecord { id, created_us: NOW, expires_us, ..ApprovalRecord::default() };
        approvals.publish_request(&request).unwrap();
        let ruling = ApprovalOutcome::Approved;
        let decided =
            ApprovalDecision { ruling, by: "alice".to_owned(), at_us: NOW + 1, reason: None };
        UnloggedFixture { top, approvals, request, decided }
    }

    impl UnloggedFixture {
        fn write(&self, request: &ApprovalRecord, decided: &ApprovalDecision) -> bool {
            let mut log =
                ActivityLog::open(self.top.path(), ActivityLogOptions::default()).unwrap();
            log.append(&settled_event(request, decided));
            log.commit().is_ok()
        }

        fn recover(&self) {
            let log =
                |request: &ApprovalRecord, decided: &ApprovalDecision| self.write(request, decided);
            self.approvals.log_unlogged(self.top.path(), log);
        }

        fn lines(&self) -> usize {
            let text = fs::read_to_string(self.top.path().join("activity.jsonl"));
            text.unwrap_or_default().lines().count()
        }

        fn marks(&self) -> usize {
            let names = self.approvals.names().unwrap();
            names.iter().filter(|name| name.ends_with(UNLOGGED)).count()
        }
    }

    #[test]
    fn a_decision_is_logged_once_wherever_its_decider_was_killed() {
        // Killed before deciding, before logging, and before removing the mark.
        for (steps, expected) in [(0, 0), (1, 1), (2, 1)] {
            let scene = scene();
            assert!(scene.approvals.mark_unlogged(&scene.request.id, &scene.decided));
            if steps > 0 {
                scene.approvals.decide(&scene.request.id, &scene.decided).unwrap();
            }
            if steps > 1 {
                scene.write(&scene.request, &scene.decided);
            }
            std::thread::scope(|scope| {
                (0..4).for_each(|_| drop(scope.spawn(|| scene.recover())));
            });
            scene.recover();
            assert_eq!((scene.lines(), scene.marks()), (expected, 0), "{steps}");
        }
    }

    #[test]
    fn who_lives_logs_its_own_decision_and_what_cannot_be_logged_is_logged_later() {
        let scene = scene();
        let UnloggedFixture { approvals, request, decided, .. } = &scene;
        let logged = approvals.decide_and_log(&request.id, decided, || {
            scene.recover();
            assert_eq!(scene.lines(), 0, "its decider is alive");
            Err("the disk is full")
        });
        assert_eq!((logged.unwrap(), scene.marks()), (Err("the disk is full"), 1));
        scene.recover();
        assert_eq!((scene.lines(), scene.marks()), (1, 0));
        let again = approvals.decide_and_log(&request.id, decided, || Ok::<_, ()>(()));
        assert!(matches!(again, Err(ApprovalError::AlreadyDecided { .. })));
        assert_eq!((scene.lines(), scene.marks()), (1, 0));
    }
}
