//! The age of a request, independent of the clocks of the processes that ask and decide.
//!
//! The approver's clock may be an hour off. So the age of a request is measured by the file system
//! alone: from the modification time of its entry in the call index until now, both by the clock
//! that timestamps files. Whether a request has expired is decided by the process that holds the
//! call.

use rustix::fs::{OFlags, Stat, Timespec, Timestamps, futimens};

use super::ApprovalRecord;
use super::folder::{ApprovalEntry, ApprovalStore};

/// Its modification time shows the clock of the file system.
const CLOCK: &str = "clock";

impl ApprovalStore {
    /// The current time by the asking process's clock; `now_us` if that cannot be determined.
    pub fn asker_now_us(&self, request: &ApprovalRecord, now_us: i64) -> i64 {
        let age_us = self.folder_now_us().and_then(|now| self.age_us(request, now));
        shift_clock(request, age_us, now_us)
    }

    /// The age of a request at this time of the file system.
    pub(super) fn age_us(&self, request: &ApprovalRecord, folder_now_us: i64) -> Option<i64> {
        let folder = self.existing_call(request).ok().flatten()?;
        let request_stat = folder.stat(&request.id).ok().flatten()?;
        Some(folder_now_us.saturating_sub(mtime_us(&request_stat)).max(0))
    }

    /// The current time by the clock of the file system.
    pub(super) fn folder_now_us(&self) -> Option<i64> {
        let file = self.folder().file(CLOCK, OFlags::WRONLY | OFlags::CREATE).ok()?;
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        futimens(&file, &Timestamps { last_access: now, last_modification: now }).ok()?;
        Some(mtime_us(&rustix::fs::fstat(&file).ok()?))
    }
}

impl ApprovalEntry {
    /// The time by the asking process's clock when the entry was read; `now_us` if unknown.
    pub fn asker_now_us(&self, now_us: i64) -> i64 {
        shift_clock(&self.request, self.age_us, now_us)
    }

    /// Whether it can still be decided.
    pub fn is_pending(&self, now_us: i64) -> bool {
        self.decided.is_none() && self.asker_now_us(now_us) < self.request.expires_us
    }
}

fn shift_clock(request: &ApprovalRecord, age_us: Option<i64>, now_us: i64) -> i64 {
    age_us.map_or(now_us, |age_us| request.created_us.saturating_add(age_us))
}

pub(super) fn mtime_us(stat: &Stat) -> i64 {
    stat.st_mtime.saturating_mul(1_000_000).saturating_add(stat.st_mtime_nsec as i64 / 1000)
}

#[cfg(test)]
mod tests {
    use crate::approvals::folder::tests::{NOW, asked, desk, set_age};

    #[test]
    fn how_long_ago_something_was_asked_is_told_by_no_clock_of_a_process() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals);
        for shift_us in [-3_600_000_000, 0, 3_600_000_000] {
            let now_us = approvals.asker_now_us(&request, NOW + shift_us);
            assert!((NOW..NOW + 30_000_000).contains(&now_us), "{shift_us}: {now_us}");
            let entry = approvals.entry(&request.id).unwrap();
            assert!(entry.is_pending(NOW + shift_us), "{shift_us}");
        }
        set_age(&approvals, &request, 61);
        for shift_us in [-3_600_000_000, 0, 3_600_000_000] {
            assert!(
                !approvals.entry(&request.id).unwrap().is_pending(NOW + shift_us),
                "{shift_us}"
            );
        }
    }
}
