//! Removes expired requests and leftover files.

use std::time::Duration;

use rustix::fs::OFlags;

use super::ApprovalRecord;
use super::error::ApprovalError;
use super::folder::{ApprovalStore, DECISION, ESCALATED, REFUSED, REQUEST, UNLOGGED, USED};
use super::id::is_id;
use super::votes::VOTE;

/// Its modification time records when the folder was last cleaned.
const CLEANED: &str = ".cleaned";
/// The shortest interval between two cleanings.
const INTERVAL_SECS: i64 = 3600;

impl ApprovalStore {
    /// Removes requests that expired more than `kept` ago, unless that was done within the last
    /// hour: sessions start often, and checking every file takes a while.
    pub fn remove_expired_hourly(
        &self,
        now_us: i64,
        kept: Duration,
    ) -> Result<usize, ApprovalError> {
        if self.age_secs(CLEANED, now_us).is_some_and(|age| (0..INTERVAL_SECS).contains(&age)) {
            return Ok(0);
        }
        // An existing file would keep its time, since nothing is written to it.
        self.remove(CLEANED);
        let io = |source| ApprovalError::Io { path: self.folder().path_of(CLEANED), source };
        self.folder().file(CLEANED, OFlags::WRONLY | OFlags::CREATE).map_err(io)?;
        self.remove_expired(now_us, kept)
    }

    /// Removes requests that expired more than `kept` ago, with everything that belongs to them.
    pub fn remove_expired(&self, now_us: i64, kept: Duration) -> Result<usize, ApprovalError> {
        let kept_us = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
        let kept_secs = kept_us / 1_000_000;
        let is_over =
            |request: &ApprovalRecord| request.expires_us.saturating_add(kept_us) < now_us;
        let is_older =
            |name: &str, secs: i64| self.age_secs(name, now_us).is_some_and(|age| age > secs);
        let mut removed = 0;
        self.remove_left_over();
        self.remove_old_grants(now_us.saturating_sub(kept_us))?;
        for name in self.names()? {
            let id =
                [REQUEST, DECISION, USED, ESCALATED].iter().find_map(|end| name.strip_suffix(end));
            match id.filter(|id| is_id(id)) {
                // A file written within that time cannot have expired before it.
                Some(_) if !is_older(&name, kept_secs) => {}
                Some(id) => match self.request(id) {
                    Ok(request) if is_over(&request) => {
                        self.remove_request(&request);
                        removed += 1;
                    }
                    Err(ApprovalError::Unknown { .. }) => self.remove(&name),
                    _ => {}
                },
                None if (name.starts_with(REFUSED) || name.contains(VOTE))
                    && is_older(&name, kept_secs) =>
                {
                    self.remove(&name);
                }
                None => {}
            }
        }
        Ok(removed)
    }

    fn remove_request(&self, request: &ApprovalRecord) {
        self.unindex(request);
        // The other files are meaningless without the request, so it goes first.
        for end in [REQUEST, DECISION, USED, UNLOGGED, ESCALATED] {
            self.remove(&format!("{}{end}", request.id));
        }
        self.remove_unmasked(&request.id);
    }

    /// How long ago a file was written.
    fn age_secs(&self, name: &str, now_us: i64) -> Option<i64> {
        let stat = self.folder().stat(name).ok().flatten()?;
        Some((now_us / 1_000_000).saturating_sub(stat.st_mtime))
    }
}
