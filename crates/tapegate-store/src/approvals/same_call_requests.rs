//! Finds requests about the same call.
//!
//! They are found through a folder named after the call rather than by reading every request: a
//! project may have tens of thousands. The folders are only an index. Each request found is checked
//! like any other, so a forged entry finds nothing.

use std::io;
use std::path::PathBuf;

use rustix::fs::{AtFlags, FlockOperation, OFlags, flock, unlinkat};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::error::ApprovalError;
use super::folder::ApprovalStore;
use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, Escalation, check};
use crate::private_folder::FolderHandle;

const CALLS: &str = "calls";
const LOCK: &str = "lock";
/// How long an approval is reserved for the caller that waits for it.
const PRECEDENCE_US: i64 = 10_000_000;
/// How many hexadecimal digits name a call.
const DIGITS: usize = 32;

/// The result of asking.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskOutcome {
    /// A new request was created.
    New(ApprovalRecord),
    /// An identical call is waiting or was given up; this call joined its request.
    Joined(ApprovalRecord),
}

impl AskOutcome {
    pub fn into_request(self) -> ApprovalRecord {
        let (Self::New(request) | Self::Joined(request)) = self;
        request
    }
}

impl ApprovalRecord {
    /// Whether a call waits for a decision. A call whose process is gone does not.
    fn has_caller(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        let is_gone = |pid| test_kill_process(pid) == Err(Errno::SRCH);
        self.waiting > 0 && !pid.is_some_and(is_gone)
    }
}

impl ApprovalStore {
    /// Publishes `request`, unless the same call is already pending for the same connection, or for
    /// one that has given up. Then this call joins that request, extends its expiry and adds one to
    /// its callers. Identical calls of two connections that both wait are two requests.
    ///
    /// `unmasked` are the whole params, if the request masks some of them. They are kept while the
    /// request is pending.
    pub fn publish_request_once(
        &self,
        request: &ApprovalRecord,
        unmasked: Option<&[u8]>,
    ) -> Result<AskOutcome, ApprovalError> {
        // Two shims that make the same call at once must not each create a request.
        let _lock = self.lock()?;
        let may_join = |open: &ApprovalRecord| {
            open.connection_id == request.connection_id || !open.has_caller()
        };
        let Some(open) = self.find_open(request, request.created_us, may_join)? else {
            let id = request.id.as_str();
            let hash = unmasked.map(|params| self.params_hash(id, params));
            let params_hash = hash.unwrap_or_default();
            let request =
                ApprovalRecord { call_count: 1, waiting: 1, params_hash, ..request.clone() };
            // Before the request is visible, so that an approver never finds a request without
            // them.
            if let Some(params) = unmasked {
                self.store_unmasked(id, params)?;
            }
            self.publish_request(&request).inspect_err(|_| self.remove_unmasked(id))?;
            return Ok(AskOutcome::New(request));
        };
        // A killed process could not sign off its callers.
        let waiting = if open.has_caller() { open.waiting } else { 0 };
        let joined = ApprovalRecord {
            connection_id: request.connection_id.clone(),
            request_id: request.request_id.clone(),
            pid: request.pid,
            expires_us: open.expires_us.max(request.expires_us),
            call_count: open.call_count.saturating_add(1),
            waiting: waiting.saturating_add(1),
            ..open
        };
        self.replace(&joined)?;
        Ok(AskOutcome::Joined(joined))
    }

    /// Records that a caller has stopped waiting; returns how many others still wait.
    pub fn remove_waiter(&self, id: &str, now_us: i64) -> Result<u32, ApprovalError> {
        let _lock = self.lock()?;
        let request = self.request(id)?;
        let waiting = request.waiting.saturating_sub(1);
        self.replace(&ApprovalRecord { waiting, left_us: Some(now_us), ..request })?;
        Ok(waiting)
    }

    /// Records that none of the callers of this connection waits any more, because it was lost;
    /// false if none did.
    pub fn remove_waiters_of(
        &self,
        id: &str,
        connection_id: &str,
        now_us: i64,
    ) -> Result<bool, ApprovalError> {
        let _lock = self.lock()?;
        let request = self.request(id)?;
        // Another connection may have joined, and its callers are the ones that count.
        if request.connection_id != connection_id || request.waiting == 0 {
            return Ok(false);
        }
        self.replace(&ApprovalRecord { waiting: 0, left_us: Some(now_us), ..request })?;
        Ok(true)
    }

    /// Finds and uses up an approval given earlier for the same call by the same caller, from the
    /// same folder, under the same policy and to the same server, whose caller did not wait for it.
    /// Its approver must also be allowed by `call`, since the list of approvers may have changed.
    pub fn find_earlier_approval(
        &self,
        call: &ApprovalRecord,
        now_us: i64,
    ) -> Result<Option<(String, ApprovalDecision)>, ApprovalError> {
        for request in self.same_calls(call)? {
            // The workflow may need more approvals now than when this one was given.
            let is_weaker = request.needed_approvals() < call.needed_approvals();
            if is_weaker || now_us >= request.expires_us || self.is_used(&request)? {
                continue;
            }
            let decided = self.decision_for(&request)?;
            let Some(decided) = decided.filter(|one| one.ruling == ApprovalOutcome::Approved)
            else {
                continue;
            };
            // Another connection that waits for this approval is about to use it.
            // A caller that hangs must not keep the approval from others, so its precedence ends.
            let others = request.connection_id != call.connection_id && request.has_caller();
            if others && now_us < decided.at_us.saturating_add(PRECEDENCE_US) {
                continue;
            }
            // The request keeps its escalation time; the call says who may decide.
            let escalation = request.escalation.as_ref().zip(call.escalation.as_ref());
            let escalation =
                escalation.map(|(then, now)| Escalation { at_us: then.at_us, ..now.clone() });
            let approvers = call.approvers.clone();
            let current = ApprovalRecord { approvers, escalation, ..request };
            // Expiry was checked above, by the clock of this caller.
            if check::check_approver(&current, &decided).is_ok()
                && self.use_approval(&current.id)?
            {
                return Ok(Some((current.id, decided)));
            }
        }
        Ok(None)
    }

    /// A request for the same call that is not decided yet.
    pub fn find_pending(
        &self,
        call: &ApprovalRecord,
        now_us: i64,
    ) -> Result<Option<ApprovalRecord>, ApprovalError> {
        self.find_open(call, now_us, |_| true)
    }

    fn find_open(
        &self,
        call: &ApprovalRecord,
        now_us: i64,
        is_wanted: impl Fn(&ApprovalRecord) -> bool,
    ) -> Result<Option<ApprovalRecord>, ApprovalError> {
        for request in self.same_calls(call)? {
            // Another workflow or list of approvers makes it a different request.
            let terms = |one: &ApprovalRecord| {
                let second = one.escalation.clone().map(|it| (it.workflow, it.approvers));
                (one.workflow.clone(), one.approvers.clone(), one.needed_approvals(), second)
            };
            let same_terms = terms(&request) == terms(call);
            let is_open = same_terms && now_us < request.expires_us && is_wanted(&request);
            if is_open && self.decision_for(&request)?.is_none() {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// The requests about the same call, oldest first.
    fn same_calls(&self, call: &ApprovalRecord) -> Result<Vec<ApprovalRecord>, ApprovalError> {
        let Some(folder) = self.existing_call(call)? else { return Ok(Vec::new()) };
        let names = folder.names().map_err(|source| io_error(folder.path().into(), source))?;
        let mut found = Vec::new();
        for id in names {
            match self.request(&id) {
                // The index is not authenticated; only the sealed request says which call it is
                // about.
                Ok(request) if is_same_call(&request, call) => found.push(request),
                // Its request was removed, or never existed.
                Err(ApprovalError::Unknown { .. }) => unlink(&folder, &id),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
        found.sort_by(|one, two| (one.created_us, &one.id).cmp(&(two.created_us, &two.id)));
        Ok(found)
    }

    /// Adds a request to the index of its call.
    pub(super) fn index(&self, request: &ApprovalRecord) -> Result<(), ApprovalError> {
        let path = self.call_path(request);
        let io = |source| io_error(path.join(&request.id), source);
        let folder = FolderHandle::create(&path).map_err(io)?;
        folder.file(&request.id, OFlags::WRONLY | OFlags::CREATE).map_err(io)?;
        Ok(())
    }

    /// Removes a request from the index, and the folder with its last entry.
    pub(super) fn unindex(&self, request: &ApprovalRecord) {
        if let Ok(Some(folder)) = self.existing_call(request) {
            unlink(&folder, &request.id);
            // Fails if other requests are about the same call; then the folder stays.
            std::fs::remove_dir(folder.path()).ok();
        }
    }

    pub(super) fn existing_call(
        &self,
        call: &ApprovalRecord,
    ) -> Result<Option<FolderHandle>, ApprovalError> {
        let path = self.call_path(call);
        match FolderHandle::open(&path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error(path, source)),
        }
    }

    fn call_path(&self, call: &ApprovalRecord) -> PathBuf {
        let mut hasher = blake3::Hasher::new();
        for text in call_key(call) {
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        }
        self.path().join(CALLS).join(&hasher.finalize().to_hex().as_str()[..DIGITS])
    }

    /// Prevents other processes from changing pending requests until the lock is dropped.
    pub(super) fn lock(&self) -> Result<std::fs::File, ApprovalError> {
        let io = |source| io_error(self.folder().path_of(LOCK), source);
        let file = self.folder().file(LOCK, OFlags::RDWR | OFlags::CREATE).map_err(io)?;
        flock(&file, FlockOperation::LockExclusive).map_err(|errno| io(errno.into()))?;
        Ok(file)
    }
}

fn unlink(folder: &FolderHandle, name: &str) {
    // A leftover entry is removed by a later lookup.
    unlinkat(folder.handle(), name, AtFlags::empty()).ok();
}

fn io_error(path: PathBuf, source: io::Error) -> ApprovalError {
    ApprovalError::Io { path, source }
}

fn is_same_call(one: &ApprovalRecord, two: &ApprovalRecord) -> bool {
    // Requests without a hash would all be the same call.
    !one.call_hash.is_empty() && call_key(one) == call_key(two)
}

/// What identifies a call. Projects may share a state folder, and the same call means something
/// else in another project.
fn call_key(request: &ApprovalRecord) -> [&str; 5] {
    let ApprovalRecord { call_hash, server_id, principal, folder, policy, .. } = request;
    [call_hash, server_id, principal, folder, policy]
}
