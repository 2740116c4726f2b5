//! What each channel has told people of, and the codes of one-time links.
//!
//! A receipt is one file for each open message, so that a new hub neither asks people twice nor
//! forgets to update a message that an earlier hub has sent.

use std::io::{self, Read, Write};
use std::path::PathBuf;

use rustix::fs::{AtFlags, OFlags, unlinkat};

use super::ApprovalRecord;
use super::error::ApprovalError;
use super::folder::ApprovalStore;
use super::id::is_id;
use crate::private_folder::FolderHandle;

/// The folder's name beside the approvals.
const CHANNELS: &str = "channels";
/// Precedes the name of a channel in the name of a note that it does not work.
const FAULT: &str = "fault-of.";
/// The kind that separates the codes of links from other authentication codes.
const LINK_KIND: &str = "link";
/// Larger than any valid receipt.
const RECEIPT_BYTES_MAX: u64 = 4096;

/// The receipts of one channel.
#[derive(Debug)]
pub struct ChannelReceipts {
    folder: FolderHandle,
}

impl ApprovalStore {
    /// The receipts of a channel, whose name may be part of a path.
    pub fn channel_receipts(&self, channel: &str) -> Result<ChannelReceipts, ApprovalError> {
        let beside = self.path().parent().unwrap_or(self.path());
        let path: PathBuf = beside.join(CHANNELS).join(channel);
        let io = |source| ApprovalError::Io { path: path.clone(), source };
        if !is_id(channel) {
            return Err(io(io::Error::other("the name of the channel is not valid")));
        }
        let folder = FolderHandle::create(&path).map_err(io)?;
        folder.check_ownership().map_err(io)?;
        Ok(ChannelReceipts { folder })
    }

    /// Notes for people at a terminal why a channel does not work, or that it does.
    pub fn note_channel_fault(&self, channel: &str, fault: Option<&str>) {
        let path = self.path().parent().unwrap_or(self.path()).join(CHANNELS);
        let name = format!("{FAULT}{channel}");
        // A note that cannot be written is missing; the log and the hub's standard error have it.
        let Ok(folder) = FolderHandle::create(&path) else { return };
        unlinkat(folder.handle(), name.as_str(), AtFlags::empty()).ok();
        if let Some(fault) = fault.filter(|_| is_id(channel)) {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let file = folder.file(&name, flags);
            file.and_then(|mut file| file.write_all(fault.as_bytes())).ok();
        }
    }

    /// The channels that do not work, by name, and why.
    pub fn channel_faults(&self) -> Vec<(String, String)> {
        let path = self.path().parent().unwrap_or(self.path()).join(CHANNELS);
        let Ok(folder) = FolderHandle::open(&path) else { return Vec::new() };
        let mut faults: Vec<(String, String)> = folder
            .names()
            .unwrap_or_default()
            .iter()
            .filter_map(|name| {
                let channel = name.strip_prefix(FAULT).filter(|channel| is_id(channel))?;
                let mut fault = String::new();
                let file = folder.file(name, OFlags::RDONLY).ok()?;
                file.take(RECEIPT_BYTES_MAX).read_to_string(&mut fault).ok()?;
                Some((channel.to_owned(), fault))
            })
            .collect();
        faults.sort();
        faults
    }

    /// The code that makes a link decide about this request in this way, and no other. It is the
    /// same after a restart, and useless once the request is decided.
    pub fn link_code(
        &self,
        request: &ApprovalRecord,
        approve: bool,
        channel: &str,
    ) -> blake3::Hash {
        let what = format!("{} {channel} {}", if approve { 'a' } else { 'd' }, request.digest());
        self.sealer().code(LINK_KIND, &request.id, what.as_bytes())
    }
}

impl ChannelReceipts {
    /// Records that people were told of a request.
    pub fn write(&self, id: &str, receipt: &str) -> io::Result<()> {
        self.remove(id);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        self.folder.file(id, flags)?.write_all(receipt.as_bytes())
    }

    /// The receipt for a request.
    pub fn read(&self, id: &str) -> Option<String> {
        let mut receipt = String::new();
        let file = self.folder.file(id, OFlags::RDONLY).ok()?;
        file.take(RECEIPT_BYTES_MAX).read_to_string(&mut receipt).ok()?;
        // A hub that was killed while it wrote has left an empty file.
        Some(receipt).filter(|receipt| !receipt.is_empty())
    }

    /// Removes the receipt for a request.
    pub fn remove(&self, id: &str) {
        // A file that cannot be removed is found again at the next start.
        unlinkat(self.folder.handle(), id, AtFlags::empty()).ok();
    }

    /// The ids of all requests with a receipt.
    pub fn ids(&self) -> Vec<String> {
        let names = self.folder.names().unwrap_or_default();
        names.into_iter().filter(|name| is_id(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::approvals::folder::tests::{asked, desk};

    #[test]
    fn a_receipt_is_kept_until_it_is_removed() {
        let (_folder, approvals) = desk();
        let receipts = approvals.channel_receipts("ops").unwrap();
        receipts.write("ap_x", "C1 1.2").unwrap();
        receipts.write("ap_x", "C1 1.3").unwrap();
        let again = approvals.channel_receipts("ops").unwrap();
        assert_eq!(
            (again.read("ap_x").as_deref(), again.ids()),
            (Some("C1 1.3"), vec!["ap_x".to_owned()])
        );
        assert_eq!(approvals.channel_receipts("other").unwrap().read("ap_x"), None);
        receipts.remove("ap_x");
        assert!(again.ids().is_empty());
        for name in ["", "..", "../x", "a/b"] {
            assert!(approvals.channel_receipts(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_link_is_for_one_request_one_ruling_and_one_channel() {
        let (_folder, approvals) = desk();
        let request = asked(&approvals);
        let code = approvals.link_code(&request, true, "ops");
        assert_eq!(code, approvals.link_code(&request, true, "ops"));
        assert_ne!(code, approvals.link_code(&request, false, "ops"));
        assert_ne!(code, approvals.link_code(&request, true, "ops2"));
        let mut other = request;
        other.tool.push('x');
        assert_ne!(code, approvals.link_code(&other, true, "ops"));
    }
}
