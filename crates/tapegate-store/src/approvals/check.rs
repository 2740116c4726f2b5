//! Checks whether a request or a decision counts.

use super::error::ApprovalError;
use super::mac::Sealer;
use super::text::{self, DecisionFile};
use super::{ApprovalDecision, ApprovalOutcome, ApprovalRecord, Escalation};

pub(super) const REQUEST_KIND: &str = "request";
pub(super) const DECISION_KIND: &str = "decision";

/// Why a file does not count, as reported in the activity log.
pub(super) type RejectReason = &'static str;

/// Parses and checks the file of the request `id`.
pub(super) fn request(
    sealer: &Sealer,
    id: &str,
    file: &[u8],
) -> Result<ApprovalRecord, RejectReason> {
    let request = text::read_request(file).ok_or("it is not a request")?;
    if request.id != id {
        return Err("it belongs to another request");
    }
    match sealer.is_sealed(REQUEST_KIND, id, file) {
        true => Ok(request),
        false => Err("it is forged or was edited: its authentication code is wrong"),
    }
}

/// Parses and checks the file of the decision about `request`.
pub(super) fn decision(
    sealer: &Sealer,
    request: &ApprovalRecord,
    file: &[u8],
) -> Result<DecisionFile, RejectReason> {
    let file_of = text::read_decided(file).ok_or("it is not a decision")?;
    let DecisionFile { decided, request: digest, .. } = &file_of;
    // Before any member is believed. The kind and the id are part of the code, so a file that was
    // sealed for another purpose or request does not pass.
    if !sealer.is_sealed(DECISION_KIND, &request.id, file) {
        return Err("it is forged or was edited: its authentication code is wrong");
    }
    // A request file can be replaced under its id. A decision counts only for the call that its
    // approver has seen.
    if *digest != request.digest() {
        return Err("it was made for another call");
    }
    // The time of the decision is not checked: the approver's clock may be off, and a call that is
    // still held has not expired.
    check_approver(request, decided).map_err(|error| match error {
        ApprovalError::OwnRequest { .. } => "its approver is the caller",
        _ => "its approver is not on the list of the workflow",
    })?;
    Ok(file_of)
}

/// Checks that a decision was made before the request expired.
pub(super) fn check_in_time(
    request: &ApprovalRecord,
    decided: &ApprovalDecision,
) -> Result<(), ApprovalError> {
    let is_own_ending =
        matches!(decided.ruling, ApprovalOutcome::Cancelled | ApprovalOutcome::Expired);
    match is_own_ending || decided.at_us < request.expires_us {
        true => Ok(()),
        false => Err(ApprovalError::Expired { id: request.id.clone() }),
    }
}

/// Checks that `decided.by` may make this decision.
pub(super) fn check_approver(
    request: &ApprovalRecord,
    decided: &ApprovalDecision,
) -> Result<(), ApprovalError> {
    if matches!(decided.ruling, ApprovalOutcome::Cancelled | ApprovalOutcome::Expired) {
        return Ok(());
    }
    let (id, by) = (request.id.clone(), decided.by.clone());
    let is_own = decided.ruling == ApprovalOutcome::Approved && request.principal == decided.by;
    // Without a list, any user with the project's key may decide. That includes the caller, unless
    // the policy says who the caller is.
    if request.approvers.is_empty() {
        return match is_own && request.is_principal_named {
            true => Err(ApprovalError::OwnRequest {
                id,
                by,
                others: vec!["any other person".to_owned()],
            }),
            false => Ok(()),
        };
    }
    if !request.names_approver(decided) {
        let approvers = request.approvers.clone();
        return Err(ApprovalError::NotAnApprover { id, by, approvers });
    }
    if is_own {
        let others = request.approvers.iter().filter(|other| **other != by).cloned().collect();
        return Err(ApprovalError::OwnRequest { id, by, others });
    }
    Ok(())
}

impl ApprovalRecord {
    /// The hash of everything that an approver decides about. Excludes what changes while the
    /// request is pending: its expiry and its number of callers.
    pub(super) fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut part = |bytes: &[u8]| {
            // With its length, so that text cannot move from one field into the next.
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
        if self.quorum > 1 {
            part(&self.quorum.to_le_bytes());
        }
        if self.is_principal_named {
            part(b"named");
        }
        if let Some(Escalation { workflow, at_us, approvers }) = &self.escalation {
            part(workflow.as_bytes());
            part(&at_us.to_le_bytes());
            approvers.iter().for_each(|approver| part(approver.as_bytes()));
        }
        hasher.finalize().to_hex().to_string()
    }
}
