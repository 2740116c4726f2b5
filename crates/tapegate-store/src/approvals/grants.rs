//! Grants: approvals that let more than one call pass, until they expire or are revoked.
//!
//! A grant is a file of its own, with an authentication code like the requests. Its states are
//! [`GrantState`]; they only ever change from active to one of the others.

use std::io;
use std::time::Duration;

use rustix::fs::{OFlags, Timespec, Timestamps, futimens};
use tapegate_core::grant_pattern::GrantPattern;

use super::age::mtime_us;
use super::error::ApprovalError;
use super::folder::ApprovalStore;
use super::id::is_id;
use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, check, grant_text};
use crate::private_folder::FolderHandle;

/// Ends of the names of files. Requests have other ends, so that neither is read as the other.
const GRANT: &str = ".grant.json";
const REVOKED: &str = ".revoked";
/// Marks a grant whose end is in the log.
const EXPIRED: &str = ".expired";
/// The folder that lists the grants, so that a lookup does not list every request.
const INDEX: &str = "grants";
/// Separates grants from other files with a code.
const GRANT_KIND: &str = "grant";
/// The beginning of all ids.
const BEGINNING: &str = "gr_";

/// An approval for more than one call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalGrant {
    /// Its id: `gr_` and 16 characters.
    pub id: String,
    /// The request with which it was given.
    pub request_id: String,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// When it expires, in microseconds since 1970.
    pub expires_us: i64,
    /// Who gave it.
    pub by: String,
    pub server_id: String,
    pub method: String,
    /// The tool, prompt or URI.
    pub tool: String,
    pub workflow: String,
    /// The caller's working folder.
    pub folder: String,
    /// The file of the policy.
    pub policy: String,
    /// The connection of the session that it is limited to.
    pub session: Option<String>,
    /// Which calls it covers.
    pub coverage: GrantCoverage,
    /// Who revoked it, and when.
    pub revoked: Option<(String, i64)>,
}

/// Which calls a grant covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantCoverage {
    /// The same call as the approved one, by its hash.
    SameCall(String),
    /// Calls that differ from it in these arguments only.
    Patterns {
        /// The hash of the approved call without these arguments.
        hash: String,
        /// The arguments and the values they may have.
        patterns: Vec<GrantPattern>,
    },
}

/// Whether a grant lets calls pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantState {
    /// It does.
    Active,
    /// Its time is over.
    Expired,
    /// A person has revoked it.
    Revoked,
}

impl GrantState {
    /// The name in lists.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Revoked => "revoked",
        }
    }
}

impl ApprovalGrant {
    /// Its state at this time. A grant from the future does not count: the clock was set back.
    pub fn state(&self, now_us: i64) -> GrantState {
        match self.revoked {
            Some(_) => GrantState::Revoked,
            None if (self.created_us..self.expires_us).contains(&now_us) => GrantState::Active,
            None => GrantState::Expired,
        }
    }

    /// Whether it is for calls like this one, apart from the arguments.
    fn is_for(&self, call: &ApprovalRecord) -> bool {
        let own =
            [&self.server_id, &self.method, &self.tool, &self.workflow, &self.folder, &self.policy];
        let calls =
            [&call.server_id, &call.method, &call.tool, &call.workflow, &call.folder, &call.policy];
        own == calls && self.session.as_ref().is_none_or(|session| *session == call.connection_id)
    }
}

impl ApprovalStore {
    /// Creates a grant for calls like an approved one. The ids are set here.
    pub fn create_grant(&self, grant: ApprovalGrant) -> Result<ApprovalGrant, ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.path().to_owned(), source };
        let id = super::new_id().map_err(io)?;
        let id = format!("{BEGINNING}{}", id.rsplit('_').next().unwrap_or_default());
        let grant = ApprovalGrant { id, revoked: None, ..grant };
        let name = format!("{}{GRANT}", grant.id);
        // Index first: an entry without a grant is harmless; a grant without an entry is never found.
        let index = FolderHandle::create(&self.path().join(INDEX)).map_err(io)?;
        index.file(&grant.id, OFlags::WRONLY | OFlags::CREATE).map_err(io)?;
        match self.publish(&name, &self.grant_file(&grant))? {
            true => Ok(grant),
            false => Err(ApprovalError::Exists { id: grant.id }),
        }
    }

    /// All grants that were not removed, oldest first. Files that are not authentic are set aside.
    pub fn grants(&self) -> Result<Vec<ApprovalGrant>, ApprovalError> {
        let mut grants = Vec::new();
        for name in self.names()? {
            let Some(id) = name.strip_suffix(GRANT).filter(|id| is_id(id)) else { continue };
            grants.extend(self.grant(id)?);
        }
        grants.sort_by(|one, two| (one.created_us, &one.id).cmp(&(two.created_us, &two.id)));
        Ok(grants)
    }

    /// Notes the time at which a grant lets a call pass, for people at a terminal.
    fn note_use(&self, grant: &ApprovalGrant) {
        let Ok(index) = FolderHandle::open(&self.path().join(INDEX)) else { return };
        let Ok(file) = index.file(&grant.id, OFlags::WRONLY) else { return };
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        futimens(&file, &Timestamps { last_access: now, last_modification: now }).ok();
    }

    /// All grants with the time of their last use, or of their creation, by the clock of the file
    /// system.
    pub fn indexed_grants(&self) -> Result<Vec<(ApprovalGrant, i64)>, ApprovalError> {
        let io = |source| self.grant_error(INDEX, source);
        let index = match FolderHandle::open(&self.path().join(INDEX)) {
            Ok(index) => index,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(io(source)),
        };
        let mut grants = Vec::new();
        // The index is not authenticated; only the sealed grant says what it permits.
        for id in index.names().map_err(io)?.iter().filter(|id| is_id(id)) {
            let time = index.stat(id).ok().flatten().map_or(0, |stat| mtime_us(&stat));
            grants.extend(self.grant(id)?.map(|grant| (grant, time)));
        }
        grants.sort_by(|(one, _), (two, _)| {
            (one.created_us, &one.id).cmp(&(two.created_us, &two.id))
        });
        Ok(grants)
    }

    /// The grant with this id.
    fn grant(&self, id: &str) -> Result<Option<ApprovalGrant>, ApprovalError> {
        let name = format!("{id}{GRANT}");
        let Some(file) = self.read(&name)? else { return Ok(None) };
        let checked = file.and_then(|file| match grant_text::read(&file) {
            Some(grant) if grant.id == id && self.sealer().is_sealed(GRANT_KIND, id, &file) => {
                Ok(grant)
            }
            _ => Err("it is forged or was edited: its authentication code is wrong"),
        });
        match checked {
            // Either record is enough: a process may be killed between the two.
            Ok(grant) if grant.revoked.is_none() && self.is_marked_revoked(id)? => {
                Ok(Some(ApprovalGrant { revoked: Some((String::new(), 0)), ..grant }))
            }
            Ok(grant) => Ok(Some(grant)),
            Err(reason) => {
                self.set_aside(id, &name, reason)?;
                Ok(None)
            }
        }
    }

    /// Revokes a grant; false if it was revoked or had expired before. Of two processes, one
    /// succeeds.
    pub fn revoke_grant(&self, id: &str, by: &str, now_us: i64) -> Result<bool, ApprovalError> {
        let unknown = || ApprovalError::Unknown { id: id.to_owned() };
        let grant = if is_id(id) { self.grant(id)? } else { None }.ok_or_else(unknown)?;
        if grant.state(now_us) != GrantState::Active {
            return Ok(false);
        }
        let mark = format!("{id}{REVOKED}");
        match self.folder().file(&mark, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => file.sync_all().map_err(|source| self.grant_error(&mark, source))?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            Err(source) => return Err(self.grant_error(&mark, source)),
        }
        // The code covers this too, so removing the mark does not restore the grant.
        let revoked = ApprovalGrant { revoked: Some((by.to_owned(), now_us)), ..grant };
        self.replace_file(&format!("{id}{GRANT}"), &self.grant_file(&revoked))?;
        Ok(true)
    }

    /// The oldest active grant that covers a call. `covers` decides about grants with patterns. Its
    /// giver must still be permitted to approve the call.
    pub fn find_grant(
        &self,
        call: &ApprovalRecord,
        now_us: i64,
        covers: impl Fn(&[GrantPattern], &str) -> bool,
    ) -> Result<Option<ApprovalGrant>, ApprovalError> {
        // A grant is given by one person.
        if call.needed_approvals() > 1 {
            return Ok(None);
        }
        let is_covered = |grant: &ApprovalGrant| match &grant.coverage {
            GrantCoverage::SameCall(hash) => !hash.is_empty() && *hash == call.call_hash,
            GrantCoverage::Patterns { hash, patterns } => {
                !patterns.is_empty() && covers(patterns, hash)
            }
        };
        let is_permitted = |grant: &ApprovalGrant| {
            let (ruling, by) = (ApprovalOutcome::Approved, grant.by.clone());
            // Those of a second workflow have given it once the first request had gone to them.
            let decided = ApprovalDecision { ruling, by, at_us: i64::MAX, reason: None };
            check::check_approver(call, &decided).is_ok()
        };
        let found = self.indexed_grants()?.into_iter().map(|(grant, _)| grant).find(|grant| {
            grant.state(now_us) == GrantState::Active
                && grant.is_for(call)
                && is_covered(grant)
                && is_permitted(grant)
        });
        found.iter().for_each(|grant| self.note_use(grant));
        Ok(found)
    }

    /// The grants whose time is over, each once for all processes, and how long it takes until the
    /// next one is.
    pub fn take_expired_grants(
        &self,
        now_us: i64,
    ) -> Result<(Vec<ApprovalGrant>, Duration), ApprovalError> {
        let (mut expired, mut next_us) = (Vec::new(), i64::MAX);
        for (grant, _) in self.indexed_grants()? {
            if grant.revoked.is_some() {
                continue;
            }
            if now_us < grant.expires_us {
                next_us = next_us.min(grant.expires_us - now_us);
                continue;
            }
            let mark = format!("{}{EXPIRED}", grant.id);
            match self.folder().file(&mark, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                Ok(_) => expired.push(grant),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(self.grant_error(&mark, source)),
            }
        }
        Ok((expired, Duration::from_micros(next_us as u64)))
    }

    /// Removes grants that ended before this time.
    pub(super) fn remove_old_grants(&self, before_us: i64) -> Result<(), ApprovalError> {
        for grant in self.grants()?.iter().filter(|grant| grant.expires_us < before_us) {
            // The mark last: a grant without it would be active again.
            self.remove(&format!("{}{GRANT}", grant.id));
            self.remove(&format!("{INDEX}/{}", grant.id));
            self.remove(&format!("{}{REVOKED}", grant.id));
            self.remove(&format!("{}{EXPIRED}", grant.id));
        }
        Ok(())
    }

    fn is_marked_revoked(&self, id: &str) -> Result<bool, ApprovalError> {
        let mark = format!("{id}{REVOKED}");
        let found = self.folder().stat(&mark).map_err(|source| self.grant_error(&mark, source))?;
        Ok(found.is_some())
    }

    fn grant_file(&self, grant: &ApprovalGrant) -> Vec<u8> {
        self.sealer().seal(GRANT_KIND, &grant.id, grant_text::write(grant))
    }

    fn grant_error(&self, name: &str, source: io::Error) -> ApprovalError {
        ApprovalError::Io { path: self.folder().path_of(name), source }
    }
}

#[cfg(test)]
mod tests;
