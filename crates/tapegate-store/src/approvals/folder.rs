//! The folder of requests and decisions: asking, deciding and using up approvals.

mod files;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::OFlags;

use super::check::{self, DECISION_KIND, REQUEST_KIND};
use super::error::ApprovalError;
use super::id::{is_id, new_id};
use super::mac::Sealer;
use super::text::{self, DecisionFile};
use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord};
use crate::folder_watcher::FolderWatcher;
use crate::private_folder::FolderHandle;
use crate::user_state::{PrivateDir, ProjectKey};

pub(super) const REQUEST: &str = ".request.json";
pub(super) const DECISION: &str = ".decision.json";
pub(super) const USED: &str = ".used";
pub(super) const ESCALATED: &str = ".escalated";
pub(super) const UNLOGGED: &str = ".unlogged";
pub(super) const TEMPORARY: &str = ".tmp-";
/// Prefix of files that were set aside.
pub(super) const REFUSED: &str = "refused-";
/// The folder's name in the project's private folder.
const APPROVALS: &str = "approvals";

/// The approval requests of a project and their decisions.
#[derive(Debug)]
pub struct ApprovalStore {
    folder: FolderHandle,
    sealer: Sealer,
    refused: Mutex<Vec<RefusedFile>>,
}

/// A file that was forged, edited or copied, and was set aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedFile {
    /// The id of the request it claimed to be about.
    pub id: String,
    /// The name it had.
    pub name: String,
    /// Where it is now.
    pub kept: PathBuf,
    /// Why it was refused.
    pub reason: String,
}

/// A request and its decision.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ApprovalEntry {
    pub request: ApprovalRecord,
    /// The decision, if there is one.
    pub decided: Option<ApprovalDecision>,
    /// Whether the approved call has been sent.
    pub used: bool,
    /// The age by the clock of the file system, if the request is undecided.
    pub age_us: Option<i64>,
    /// Who has approved a request that needs several approvals, if it is undecided.
    pub votes: Vec<String>,
}

/// What changes with the files about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestStamp {
    inode: u64,
    /// When the file was last changed, which no process can set.
    changed: (i64, i64),
    is_decided: bool,
}

impl ApprovalStore {
    /// The approvals of the project with this state folder, created if there are none.
    pub fn open_project(user_state: &Path, state_folder: &Path) -> Result<Self, ApprovalError> {
        let private = PrivateDir::open(user_state, state_folder)?;
        Self::open(&private.path().join(APPROVALS), &private.key()?)
    }

    /// The approvals of the project with this state folder, if it has any.
    pub fn open_existing_project(
        user_state: &Path,
        state_folder: &Path,
    ) -> Result<Option<Self>, ApprovalError> {
        let path = PrivateDir::path_of(user_state, state_folder).join(APPROVALS);
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::open_project(user_state, state_folder).map(Some),
        }
    }

    /// Opens a folder of approvals, creating it if needed.
    pub fn open(folder: &Path, key: &ProjectKey) -> Result<Self, ApprovalError> {
        let io = |source| ApprovalError::Io { path: folder.to_owned(), source };
        let folder = FolderHandle::create(folder).map_err(io)?;
        folder.check_ownership().map_err(io)?;
        Ok(Self { folder, sealer: Sealer::new(key), refused: Mutex::default() })
    }

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(super) fn folder(&self) -> &FolderHandle {
        &self.folder
    }

    pub(super) fn sealer(&self) -> &Sealer {
        &self.sealer
    }

    /// A key for what clients carry between a question and its answer, the same in every process.
    pub fn request_state_key(&self) -> [u8; 32] {
        *self.sealer.code("request state key", "", b"").as_bytes()
    }

    /// Publishes a request, so that approvers can see it.
    pub fn publish_request(&self, request: &ApprovalRecord) -> Result<(), ApprovalError> {
        let name = name(&request.id, REQUEST)?;
        // Index first: an entry without a request is harmless; a request without an entry is never
        // found.
        self.index(request)?;
        match self.publish(&name, &self.request_file(request))? {
            true => Ok(()),
            false => Err(ApprovalError::Exists { id: request.id.clone() }),
        }
    }

    /// Replaces a pending request with a changed one. The caller holds the lock.
    pub(super) fn replace(&self, request: &ApprovalRecord) -> Result<(), ApprovalError> {
        self.replace_file(&name(&request.id, REQUEST)?, &self.request_file(request))
    }

    pub(super) fn replace_file(&self, name: &str, contents: &[u8]) -> Result<(), ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.folder.path_of(name), source };
        let temporary = self.write_temporary(contents).map_err(io)?;
        temporary.replace(name).map_err(io)
    }

    fn request_file(&self, request: &ApprovalRecord) -> Vec<u8> {
        self.sealer.seal(REQUEST_KIND, &request.id, text::request(request))
    }

    /// Decides, unless the request was decided before or `decided.by` may not decide. The caller's
    /// own endings ([`ApprovalOutcome::Cancelled`], [`ApprovalOutcome::Expired`]) are never too late.
    pub fn decide(&self, id: &str, decided: &ApprovalDecision) -> Result<(), ApprovalError> {
        let request = self.request(id)?;
        let already =
            |before| ApprovalError::AlreadyDecided { id: id.to_owned(), decided: Box::new(before) };
        // Looked up first, because a forged decision is set aside here and must not block a real
        // one.
        if let Some(before) = self.decision_for(&request)? {
            return Err(already(before));
        }
        self.check_decision(&request, decided)?;
        self.collect_vote(&request, decided)?;
        let file =
            DecisionFile { decided: decided.clone(), request: request.digest(), used: false };
        // Of two approvers at once, one link(2) fails; that one learns of the other's decision.
        match self.publish(&name(id, DECISION)?, &self.decision_text(id, file)?)? {
            true => {
                self.remove_unmasked(id);
                Ok(())
            }
            false => Err(match self.decision_for(&request)? {
                Some(before) => already(before),
                // It was removed meanwhile.
                None => ApprovalError::Unknown { id: id.to_owned() },
            }),
        }
    }

    /// Checks that `decided.by` may make this decision, and in time: `decided.at_us` is by the
    /// clock of the process that asked ([`ApprovalStore::asker_now_us`]).
    pub fn check_decision(
        &self,
        request: &ApprovalRecord,
        decided: &ApprovalDecision,
    ) -> Result<(), ApprovalError> {
        check::check_in_time(request, decided)?;
        check::check_approver(request, decided)
    }

    /// Withdraws a request: no decision is needed any more.
    pub fn withdraw(&self, id: &str, by: &str, at_us: i64) -> Result<(), ApprovalError> {
        let ruling = ApprovalOutcome::Cancelled;
        self.decide(id, &ApprovalDecision { ruling, by: by.to_owned(), at_us, reason: None })
    }

    /// The request with this id. One that is not authentic is set aside and counts as unknown.
    pub fn request(&self, id: &str) -> Result<ApprovalRecord, ApprovalError> {
        let name = name(id, REQUEST)?;
        let unknown = || ApprovalError::Unknown { id: id.to_owned() };
        let Some(file) = self.read(&name)? else { return Err(unknown()) };
        match file.and_then(|file| check::request(&self.sealer, id, &file)) {
            Ok(request) => Ok(request),
            Err(reason) => {
                self.set_aside(id, &name, reason)?;
                Err(unknown())
            }
        }
    }

    /// The decision about the request with this id, if there is one.
    pub fn decision(&self, id: &str) -> Result<Option<ApprovalDecision>, ApprovalError> {
        self.decision_for(&self.request(id)?)
    }

    /// The decision about a request, if there is one. A decision that is not authentic, was made
    /// for another request or by a person who may not decide is set aside and does not count.
    pub fn decision_for(
        &self,
        request: &ApprovalRecord,
    ) -> Result<Option<ApprovalDecision>, ApprovalError> {
        Ok(self.decision_file(request)?.map(|file| file.decided))
    }

    fn decision_file(
        &self,
        request: &ApprovalRecord,
    ) -> Result<Option<DecisionFile>, ApprovalError> {
        let name = name(&request.id, DECISION)?;
        let Some(file) = self.read(&name)? else { return Ok(None) };
        match file.and_then(|file| check::decision(&self.sealer, request, &file)) {
            Ok(file) => Ok(Some(file)),
            Err(reason) => {
                self.set_aside(&request.id, &name, reason)?;
                Ok(None)
            }
        }
    }

    /// Uses up the approval of a call that is about to be sent; false if it was used before. This
    /// is on disk before the call is sent, so the call is not sent twice after a crash.
    ///
    /// Only the first process can create the mark. The decision file then records the use too,
    /// under its authentication code, so removing the mark does not restore the approval.
    pub fn use_approval(&self, id: &str) -> Result<bool, ApprovalError> {
        let name = name(id, USED)?;
        let io = |source| ApprovalError::Io { path: self.folder.path_of(&name), source };
        match self.folder.file(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
            Ok(file) => {
                // On disk before the call is sent: after a power failure the approval must not be
                // valid again.
                file.sync_all().map_err(io)?;
                let first = self.mark_used(id)?;
                rustix::fs::fsync(self.folder.handle()).map_err(|errno| io(errno.into()))?;
                Ok(first)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // If anything else has this name, the approval cannot be used.
            Err(source) => Err(io(source)),
        }
    }

    /// Records in a decision that its call is sent; false if it was recorded before.
    fn mark_used(&self, id: &str) -> Result<bool, ApprovalError> {
        let request = self.request(id)?;
        // Callers have read an authentic decision before; the mark alone counts if it is gone now.
        let Some(file) = self.decision_file(&request)? else { return Ok(true) };
        if file.used {
            return Ok(false);
        }
        self.replace_file(
            &name(id, DECISION)?,
            &self.decision_text(id, DecisionFile { used: true, ..file })?,
        )?;
        Ok(true)
    }

    fn decision_text(&self, id: &str, file: DecisionFile) -> Result<Vec<u8>, ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.folder.path().to_owned(), source };
        let nonce = new_id().map_err(io)?;
        Ok(self.sealer.seal(DECISION_KIND, id, text::decision_text(id, &nonce, &file)))
    }

    pub(super) fn is_used(&self, request: &ApprovalRecord) -> Result<bool, ApprovalError> {
        let name = name(&request.id, USED)?;
        let io = |source| ApprovalError::Io { path: self.folder.path_of(&name), source };
        // Either record is enough: a process may be killed between the two.
        let is_marked = self.folder.stat(&name).map_err(io)?.is_some();
        Ok(is_marked || self.decision_file(request)?.is_some_and(|file| file.used))
    }

    /// The requests that can still be decided, oldest first.
    pub fn pending(&self, now_us: i64) -> Result<Vec<ApprovalRecord>, ApprovalError> {
        let open = self.entries()?.into_iter().filter(|entry| entry.is_pending(now_us));
        Ok(open.map(|entry| entry.request).collect())
    }

    /// All requests, oldest first.
    pub fn entries(&self) -> Result<Vec<ApprovalEntry>, ApprovalError> {
        let mut entries = Vec::new();
        let folder_now_us = self.folder_now_us();
        let names = self.names()?;
        for id in self.ids_among(&names) {
            match self.entry_at(&id, folder_now_us, &names) {
                Ok(entry) => entries.push(entry),
                // It was removed or set aside.
                Err(ApprovalError::Unknown { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        entries.sort_by(|one, two| {
            let key = |entry: &ApprovalEntry| (entry.request.created_us, entry.request.id.clone());
            key(one).cmp(&key(two))
        });
        Ok(entries)
    }

    /// The ids of all requests, without reading them.
    pub fn ids(&self) -> Result<Vec<String>, ApprovalError> {
        Ok(self.ids_among(&self.names()?))
    }

    fn ids_among(&self, names: &[String]) -> Vec<String> {
        let ids = names.iter().filter_map(|name| name.strip_suffix(REQUEST));
        let mut ids: Vec<String> = ids.map(str::to_owned).collect();
        ids.retain(|id| {
            // Set aside files whose names look like a request but are not valid.
            let plausible = is_id(id);
            if !plausible {
                let name = format!("{id}{REQUEST}");
                self.set_aside("", &name, "its name is not that of a request").ok();
            }
            plausible
        });
        ids
    }

    /// What changes with the files about a request. While it stays the same, a request that was
    /// undecided still is, so that thousands of them need not be read at each change.
    pub fn stamp(&self, id: &str) -> Option<RequestStamp> {
        let stat = |end: &str| self.folder.stat(&name(id, end).ok()?).ok().flatten();
        let request = stat(REQUEST)?;
        Some(RequestStamp {
            inode: request.st_ino,
            changed: (request.st_ctime, request.st_ctime_nsec as i64),
            is_decided: stat(DECISION).is_some(),
        })
    }

    /// A request and its decision.
    pub fn entry(&self, id: &str) -> Result<ApprovalEntry, ApprovalError> {
        // Only a request that needs several approvals has votes to look for.
        let needs_names = self.request(id)?.needed_approvals() > 1;
        let names = if needs_names { self.names()? } else { Vec::new() };
        self.entry_at(id, self.folder_now_us(), &names)
    }

    fn entry_at(
        &self,
        id: &str,
        folder_now_us: Option<i64>,
        names: &[String],
    ) -> Result<ApprovalEntry, ApprovalError> {
        let request = self.request(id)?;
        let decided = self.decision_for(&request)?;
        let used = decided.is_some() && self.is_used(&request)?;
        // The age of a decided request is not needed, and costs a lookup.
        let now = folder_now_us.filter(|_| decided.is_none());
        let age_us = now.and_then(|now| self.age_us(&request, now));
        let votes = if decided.is_none() { self.votes_among(&request, names)? } else { Vec::new() };
        Ok(ApprovalEntry { request, decided, used, age_us, votes })
    }

    /// Returns the files that this process has set aside since the last call.
    pub fn take_refused(&self) -> Vec<RefusedFile> {
        std::mem::take(&mut self.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Watches for requests and decisions.
    pub fn watch(&self) -> FolderWatcher {
        FolderWatcher::for_names(self.folder.path())
    }
}

/// The name of a file that belongs to the request `id`.
fn name(id: &str, end: &str) -> Result<String, ApprovalError> {
    match is_id(id) {
        true => Ok(format!("{id}{end}")),
        false => Err(ApprovalError::Unknown { id: id.to_owned() }),
    }
}

#[cfg(test)]
pub(super) mod tests;
