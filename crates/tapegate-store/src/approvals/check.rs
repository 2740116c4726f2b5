//! Whether a request or a decision counts.

use super::error::ApprovalError;
use super::seal::Sealer;
use super::text::{self, DecisionFile};
use super::{Decided, Request, Ruling};

pub(super) const REQUEST_KIND: &str = "request";
pub(super) const DECISION_KIND: &str = "decision";

/// Why a file does not count, in the words of the activity log.
pub(super) type Reason = &'static str;

/// Reads the file of the request `id`.
pub(super) fn request(sealer: &Sealer, id: &str, file: &[u8]) -> Result<Request, Reason> {
    let request = text::read_request(file).ok_or("it is not a request")?;
    if request.id != id {
        return Err("it belongs to another request");
    }
    match sealer.is_sealed(REQUEST_KIND, id, file) {
        true => Ok(request),
        false => Err("it is forged or was edited: its authentication code is wrong"),
    }
}

/// Reads the file of the decision about `request`, and checks that it may count for it.
pub(super) fn decision(
    sealer: &Sealer,
    request: &Request,
    file: &[u8],
) -> Result<DecisionFile, Reason> {
    let file_of = text::read_decided(file).ok_or("it is not a decision")?;
    let DecisionFile { decided, request: digest, .. } = &file_of;
    if !sealer.is_sealed(DECISION_KIND, &request.id, file) {
        return Err("it is forged or was edited: its authentication code is wrong");
    }
    if *digest != request.digest() {
        return Err("it was made for another call");
    }
    // When it was made is not looked at: the clock of whoever decided may be off, and a call that is
    // still held has not expired.
    may_decide(request, decided).map_err(|error| match error {
        ApprovalError::OwnRequest { .. } => "its approver is the caller",
        _ => "its approver is not on the list of the workflow",
    })?;
    Ok(file_of)
}

/// Whether something was decided before the request had expired.
pub(super) fn is_in_time(request: &Request, decided: &Decided) -> Result<(), ApprovalError> {
    let is_own_ending = matches!(decided.ruling, Ruling::Cancelled | Ruling::Expired);
    match is_own_ending || decided.at_us < request.expires_us {
        true => Ok(()),
        false => Err(ApprovalError::Expired { id: request.id.clone() }),
    }
}

/// Whether `decided.by` may decide so.
pub(super) fn may_decide(request: &Request, decided: &Decided) -> Result<(), ApprovalError> {
    if matches!(decided.ruling, Ruling::Cancelled | Ruling::Expired) {
        return Ok(());
    }
    let (id, by) = (request.id.clone(), decided.by.clone());
    // Without a list every person with the project's key may decide, the caller's own user included.
    if request.approvers.is_empty() {
        return Ok(());
    }
    if !request.approvers.contains(&decided.by) {
        let approvers = request.approvers.clone();
        return Err(ApprovalError::NotAnApprover { id, by, approvers });
    }
    if decided.ruling == Ruling::Approved && request.principal == decided.by {
        let others = request.approvers.iter().filter(|other| **other != by).cloned().collect();
        return Err(ApprovalError::OwnRequest { id, by, others });
    }
    Ok(())
}

impl Request {
    /// The hash of everything that a person decides about. Left out is what changes while the
    /// request is open: how long it lasts, and how many callers wait.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(&self.created_us.to_le_bytes());
        for text in [
            &self.id,
            &self.server_id,
            &self.method,
            &self.tool,
            &self.call_hash,
            &self.principal,
            &self.folder,
            &self.policy,
            &self.workflow,
            &self.reason,
        ] {
            part(text.as_bytes());
        }
        part(self.params.as_deref().unwrap_or_default().as_bytes());
        self.approvers.iter().for_each(|approver| part(approver.as_bytes()));
        hasher.finalize().to_hex().to_string()
    }
}
