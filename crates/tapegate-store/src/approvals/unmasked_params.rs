//! Keeps the unmasked params of a request for the approver, only while the request is pending.
//!
//! A request holds its `params` with secrets masked. While it is pending, the whole `params` are
//! kept in a file of their own. The request carries a keyed hash of them, so an approver is never
//! shown anything but what will be sent.

use std::io::{self, Read, Write};

use rustix::fs::{AtFlags, OFlags, unlinkat};

use super::ApprovalRecord;
use super::error::ApprovalError;
use super::folder::ApprovalStore;
use super::id::is_id;
use crate::private_folder::FolderHandle;

/// The folder's name in the approvals folder.
const UNMASKED: &str = "unmasked";
/// The kind that separates this hash from other authentication codes.
const PARAMS_KIND: &str = "params";
/// Larger than any valid file.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The whole `params` of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnmaskedParams {
    /// The params as they will be sent.
    Params(Vec<u8>),
    /// They were not kept, or are gone.
    NotKept,
    /// The file does not match the request. It has been removed.
    Altered,
}

impl ApprovalStore {
    /// The hash by which a request identifies its whole params.
    pub(super) fn params_hash(&self, id: &str, params: &[u8]) -> String {
        self.sealer().code(PARAMS_KIND, id, params).to_hex().to_string()
    }

    /// Stores the whole params of a request before it is published. The caller holds the lock.
    pub(super) fn store_unmasked(&self, id: &str, params: &[u8]) -> Result<(), ApprovalError> {
        let path = self.path().join(UNMASKED);
        let io = |source| ApprovalError::Io { path: path.join(id), source };
        let folder = FolderHandle::create(&path).map_err(io)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        folder.file(id, flags).and_then(|mut file| file.write_all(params)).map_err(|source| {
            // An incomplete file must not be shown to an approver.
            remove(&folder, id);
            io(source)
        })
    }

    /// The whole params of a pending request.
    pub fn unmasked(&self, request: &ApprovalRecord) -> Result<UnmaskedParams, ApprovalError> {
        let Some(folder) = self.unmasked_folder()? else { return Ok(UnmaskedParams::NotKept) };
        let id = request.id.as_str();
        if request.params_hash.is_empty() || !is_id(id) {
            return Ok(UnmaskedParams::NotKept);
        }
        let mut params = Vec::new();
        let read = folder.file(id, OFlags::RDONLY);
        match read.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut params)) {
            // The hash is in the sealed request, so a swapped file cannot show an approver other
            // params than those that will be sent.
            Ok(_) if self.params_hash(id, &params) == request.params_hash => {
                Ok(UnmaskedParams::Params(params))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(UnmaskedParams::NotKept),
            Err(source) if source.kind() != io::ErrorKind::Other => {
                Err(ApprovalError::Io { path: folder.path_of(id), source })
            }
            // Different contents, or not a regular file.
            Ok(_) | Err(_) => {
                remove(&folder, id);
                Ok(UnmaskedParams::Altered)
            }
        }
    }

    /// Removes the whole params of a decided request.
    pub(super) fn remove_unmasked(&self, id: &str) {
        // A file that cannot be removed is found again at the next start.
        if let Ok(Some(folder)) = self.unmasked_folder() {
            remove(&folder, id);
        }
    }

    /// Removes the whole params of every request that is no longer pending, for example because it
    /// expired while no process was running. Returns how many there were.
    pub fn remove_stale_unmasked(&self, now_us: i64) -> Result<usize, ApprovalError> {
        let Some(folder) = self.unmasked_folder()? else { return Ok(0) };
        // The params are written before the request, under the same lock.
        let _lock = self.lock()?;
        let io = |source| ApprovalError::Io { path: folder.path().to_owned(), source };
        let mut removed = 0;
        for name in folder.names().map_err(io)?.iter().filter(|name| is_id(name)) {
            let is_pending = match self.entry(name) {
                Ok(entry) => entry.is_pending(now_us),
                Err(ApprovalError::Unknown { .. }) => false,
                Err(error) => return Err(error),
            };
            if !is_pending {
                remove(&folder, name);
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn unmasked_folder(&self) -> Result<Option<FolderHandle>, ApprovalError> {
        let path = self.path().join(UNMASKED);
        match FolderHandle::open(&path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ApprovalError::Io { path, source }),
        }
    }
}

fn remove(folder: &FolderHandle, name: &str) {
    unlinkat(folder.handle(), name, AtFlags::empty()).ok();
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use tempfile::TempDir;

    use super::*;
    use crate::approvals::{ApprovalDecision, ApprovalOutcome, new_id};
    use crate::user_state::ProjectKey;

    const NOW: i64 = 1_774_016_531_804_012;
    const WHOLE: &[u8] = br#"{"arguments":{"x":"secret"}}"#;

    fn asked() -> (TempDir, ApprovalStore, ApprovalRecord) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals");
        let approvals = ApprovalStore::open(&path, &ProjectKey::new([7; 32])).unwrap();
        let request = ApprovalRecord {
            id: new_id().unwrap(),
            created_us: NOW,
            expires_us: NOW + 60_000_000,
            call_hash: "abc".to_owned(),
            params: Some(r#"{"arguments":{"x":"[REDACTED]"}}"#.to_owned()),
            ..ApprovalRecord::default()
        };
        let asked = approvals.publish_request_once(&request, Some(WHOLE)).unwrap().into_request();
        (folder, approvals, asked)
    }

    fn file(approvals: &ApprovalStore, request: &ApprovalRecord) -> std::path::PathBuf {
        approvals.path().join(UNMASKED).join(&request.id)
    }

    #[test]
    fn the_whole_params_are_kept_privately_while_a_request_is_pending() {
        let (_folder, approvals, request) = asked();
        let path = file(&approvals, &request);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let read = approvals.request(&request.id).unwrap();
        assert_eq!(approvals.unmasked(&read).unwrap(), UnmaskedParams::Params(WHOLE.to_vec()));
        assert_eq!(approvals.remove_stale_unmasked(NOW).unwrap(), 0);
        for ruling in [
            ApprovalOutcome::Approved,
            ApprovalOutcome::Denied,
            ApprovalOutcome::Cancelled,
            ApprovalOutcome::Expired,
        ] {
            let (_folder, approvals, request) = asked();
            let decided =
                ApprovalDecision { ruling, by: "a".to_owned(), at_us: NOW + 1, reason: None };
            approvals.decide(&request.id, &decided).unwrap();
            assert!(!file(&approvals, &request).exists(), "{ruling:?}");
            assert_eq!(approvals.unmasked(&request).unwrap(), UnmaskedParams::NotKept);
        }
    }

    #[test]
    fn a_repeat_of_the_call_has_the_params_of_the_first() {
        let (_folder, approvals, request) = asked();
        let again =
            ApprovalRecord { id: new_id().unwrap(), params_hash: String::new(), ..request.clone() };
        let joined = approvals.publish_request_once(&again, Some(b"other")).unwrap().into_request();
        assert_eq!(joined.id, request.id);
        assert_eq!(approvals.unmasked(&joined).unwrap(), UnmaskedParams::Params(WHOLE.to_vec()));
    }

    #[test]
    fn what_is_not_the_params_of_the_request_is_not_shown() {
        let (_folder, approvals, request) = asked();
        fs::write(file(&approvals, &request), br#"{"arguments":{"x":"harmless"}}"#).unwrap();
        assert_eq!(approvals.unmasked(&request).unwrap(), UnmaskedParams::Altered);
        assert!(!file(&approvals, &request).exists());
        let (_folder, approvals, request) = asked();
        fs::remove_file(file(&approvals, &request)).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", file(&approvals, &request)).unwrap();
        assert_eq!(approvals.unmasked(&request).unwrap(), UnmaskedParams::Altered);
    }

    #[test]
    fn stale_params_are_found() {
        let (_folder, approvals, request) = asked();
        assert_eq!(approvals.remove_stale_unmasked(request.expires_us).unwrap(), 0);
        crate::approvals::folder::tests::set_age(&approvals, &request, 61);
        assert_eq!(approvals.remove_stale_unmasked(NOW).unwrap(), 1);
        assert!(!file(&approvals, &request).exists());
        let (_folder, approvals, request) = asked();
        // Its writer was killed before it had asked.
        fs::remove_file(approvals.path().join(format!("{}.request.json", request.id))).unwrap();
        assert_eq!(approvals.remove_stale_unmasked(NOW).unwrap(), 1);
        assert!(!file(&approvals, &request).exists());
    }
}
