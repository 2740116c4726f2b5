//! The folder that requests and decisions lie in.
//!
//! A file appears whole or not at all, whenever its writer is killed: it is written under another
//! name and then linked to its own, which only works for the first who tries.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, OFlags, RenameFlags, linkat, renameat_with, unlinkat};
use rustix::io::Errno;

use super::error::ApprovalError;
use super::id::{is_id, new_id};
use super::{Decided, Request, Ruling, text};
use crate::private::Folder;
use crate::watch::Watcher;

const REQUEST: &str = ".request.json";
const DECISION: &str = ".decision.json";
const USED: &str = ".used";
const TEMPORARY: &str = ".tmp-";
/// What is larger was not written by us.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// What a writer that was killed has left is cleaned away after this long.
const TEMPORARY_SECS_MAX: i64 = 3600;

/// Requests for approval and their decisions.
#[derive(Debug)]
pub struct Approvals {
    folder: Folder,
}

/// A request, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What is asked.
    pub request: Request,
    /// What was decided, if anything was.
    pub decided: Option<Decided>,
    /// Whether the call has been let through because of it.
    pub used: bool,
}

/// Everything in the folder.
#[derive(Debug, Default)]
pub struct Listing {
    /// The requests, oldest first.
    pub entries: Vec<Entry>,
    /// Files that are none of ours or were spoiled.
    pub broken: Vec<PathBuf>,
}

impl Approvals {
    /// Opens the folder, which is made if it is not there.
    pub fn open(folder: &Path) -> Result<Self, ApprovalError> {
        let io = |source| ApprovalError::Io { path: folder.to_owned(), source };
        let folder = Folder::make(folder).map_err(io)?;
        folder.own().map_err(io)?;
        Ok(Self { folder })
    }

    /// Opens the folder if it is there; nobody asks where it is not.
    pub fn existing(folder: &Path) -> Result<Option<Self>, ApprovalError> {
        match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            _ => Self::open(folder).map(Some),
        }
    }

    /// Where the folder lies.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Asks: the request can be seen by whoever decides.
    pub fn ask(&self, request: &Request) -> Result<(), ApprovalError> {
        let name = name(&request.id, REQUEST)?;
        match self.publish(&name, &text::request(request))? {
            true => Ok(()),
            false => Err(ApprovalError::Exists { id: request.id.clone() }),
        }
    }

    /// Decides, if nobody has before and `decided.by` may. The caller's own endings
    /// ([`Ruling::Cancelled`], [`Ruling::Expired`]) are never too late.
    pub fn decide(&self, id: &str, decided: &Decided) -> Result<(), ApprovalError> {
        let request = self.request(id)?;
        if let Some(before) = self.decision(id)? {
            return Err(ApprovalError::AlreadyDecided {
                id: id.to_owned(),
                decided: Box::new(before),
            });
        }
        may_decide(&request, decided)?;
        match self.publish(&name(id, DECISION)?, &text::decided(decided))? {
            true => Ok(()),
            false => Err(match self.decision(id)? {
                Some(before) => {
                    ApprovalError::AlreadyDecided { id: id.to_owned(), decided: Box::new(before) }
                }
                // It was cleaned away meanwhile.
                None => ApprovalError::Unknown { id: id.to_owned() },
            }),
        }
    }

    /// Takes a request back: nobody is to decide about it any more.
    pub fn withdraw(&self, id: &str, by: &str, at_us: i64) -> Result<(), ApprovalError> {
        let ruling = Ruling::Cancelled;
        self.decide(id, &Decided { ruling, by: by.to_owned(), at_us, reason: None })
    }

    /// The request of this name.
    pub fn request(&self, id: &str) -> Result<Request, ApprovalError> {
        let name = name(id, REQUEST)?;
        let Some(bytes) = self.read(&name)? else {
            return Err(ApprovalError::Unknown { id: id.to_owned() });
        };
        let request = text::read_request(&bytes).filter(|request| request.id == id);
        request.ok_or_else(|| ApprovalError::Broken { path: self.folder.at(&name) })
    }

    /// What was decided, if anything was.
    pub fn decision(&self, id: &str) -> Result<Option<Decided>, ApprovalError> {
        let name = name(id, DECISION)?;
        let Some(bytes) = self.read(&name)? else { return Ok(None) };
        let broken = || ApprovalError::Broken { path: self.folder.at(&name) };
        text::read_decided(&bytes).map(Some).ok_or_else(broken)
    }

    /// Uses up the approval of a call that is let through; false if it was used up before.
    pub fn consume(&self, id: &str) -> Result<bool, ApprovalError> {
        let name = name(id, USED)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        match self.folder.file(&name, flags) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err(source) => Err(ApprovalError::Io { path: self.folder.at(&name), source }),
        }
    }

    /// An approval that was given for the same call of the same caller to the same server, and that
    /// is used up by this: whoever asked has not waited for it, and asks again.
    pub fn approved_before(
        &self,
        call: &Request,
        now_us: i64,
    ) -> Result<Option<(String, Decided)>, ApprovalError> {
        for Entry { request, decided, used } in self.all()?.entries {
            let approved = decided.filter(|decided| decided.ruling == Ruling::Approved);
            let Some(decided) = approved.filter(|_| !used && now_us < request.expires_us) else {
                continue;
            };
            if is_same_call(&request, call) && self.consume(&request.id)? {
                return Ok(Some((request.id, decided)));
            }
        }
        Ok(None)
    }

    /// A request for the same call that nobody has decided about yet.
    pub fn pending_for(
        &self,
        call: &Request,
        now_us: i64,
    ) -> Result<Option<Request>, ApprovalError> {
        let pending = self.pending(now_us)?;
        Ok(pending.into_iter().find(|request| is_same_call(request, call)))
    }

    /// The requests that can still be decided about, oldest first.
    pub fn pending(&self, now_us: i64) -> Result<Vec<Request>, ApprovalError> {
        let entries = self.all()?.entries.into_iter();
        let open =
            entries.filter(|entry| entry.decided.is_none() && now_us < entry.request.expires_us);
        Ok(open.map(|entry| entry.request).collect())
    }

    /// All requests, oldest first.
    pub fn all(&self) -> Result<Listing, ApprovalError> {
        let mut names = self.folder.names().map_err(|source| self.cannot_list(source))?;
        names.sort_unstable();
        let mut listing = Listing::default();
        for id in names.iter().filter_map(|name| name.strip_suffix(REQUEST)) {
            match self.entry(id, &names) {
                Ok(entry) => listing.entries.push(entry),
                // It was cleaned away while we looked.
                Err(ApprovalError::Unknown { .. }) if is_id(id) => {}
                Err(_) => listing.broken.push(self.folder.at(&format!("{id}{REQUEST}"))),
            }
        }
        listing.entries.sort_by(|one, two| {
            let key = |entry: &Entry| (entry.request.created_us, entry.request.id.clone());
            key(one).cmp(&key(two))
        });
        Ok(listing)
    }

    /// Removes requests that expired more than `kept` ago, with their decisions.
    pub fn clean(&self, now_us: i64, kept: Duration) -> Result<usize, ApprovalError> {
        let kept_us = i64::try_from(kept.as_micros()).unwrap_or(i64::MAX);
        let names = self.folder.names().map_err(|source| self.cannot_list(source))?;
        let old = |request: &Request| request.expires_us.saturating_add(kept_us) < now_us;
        let mut removed = 0;
        for name in &names {
            let id = [REQUEST, DECISION, USED].iter().find_map(|end| name.strip_suffix(end));
            match id.filter(|id| is_id(id)).map(|id| self.request(id)) {
                Some(Ok(request)) if old(&request) => {
                    // Without its request the rest means nothing.
                    for end in [REQUEST, DECISION, USED] {
                        self.remove(&format!("{}{end}", request.id));
                    }
                    removed += 1;
                }
                Some(Err(ApprovalError::Unknown { .. })) => self.remove(name),
                None if name.starts_with(TEMPORARY) && self.is_left_behind(name, now_us) => {
                    self.remove(name);
                }
                _ => {}
            }
        }
        Ok(removed)
    }

    /// Watches for requests and decisions.
    pub fn watch(&self) -> Watcher {
        Watcher::of_names(self.folder.path())
    }

    /// A request and what became of it; `names` are those in the folder, sorted.
    fn entry(&self, id: &str, names: &[String]) -> Result<Entry, ApprovalError> {
        let request = self.request(id)?;
        let has = |end: &str| names.binary_search(&format!("{id}{end}")).is_ok();
        let decided = if has(DECISION) { self.decision(id)? } else { None };
        Ok(Entry { request, decided, used: has(USED) })
    }

    /// Makes a file with these contents; false if there is one of this name already.
    fn publish(&self, name: &str, contents: &[u8]) -> Result<bool, ApprovalError> {
        let io = |source| ApprovalError::Io { path: self.folder.at(name), source };
        let temporary = format!("{TEMPORARY}{}", new_id().map_err(io)?);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let written =
            self.folder.file(&temporary, flags).and_then(|mut file| file.write_all(contents));
        let published = written.and_then(|()| self.link(&temporary, name));
        self.remove(&temporary);
        published.map_err(io)
    }

    fn link(&self, from: &str, to: &str) -> io::Result<bool> {
        let folder = self.folder.handle();
        let done = match linkat(&folder, from, &folder, to, AtFlags::empty()) {
            // File systems without links are rare, and can mostly do this.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                renameat_with(&folder, from, &folder, to, RenameFlags::NOREPLACE)
            }
            done => done,
        };
        match done {
            Ok(()) => Ok(true),
            Err(Errno::EXIST) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, ApprovalError> {
        let mut bytes = Vec::new();
        let read = self.folder.file(name, OFlags::RDONLY);
        match read.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)) {
            Ok(_) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(ApprovalError::Io { path: self.folder.at(name), source }),
        }
    }

    fn remove(&self, name: &str) {
        // What cannot be removed stays, and is found again.
        unlinkat(self.folder.handle(), name, AtFlags::empty()).ok();
    }

    fn is_left_behind(&self, name: &str, now_us: i64) -> bool {
        let stat = self.folder.stat(name).ok().flatten();
        stat.is_some_and(|stat| stat.st_mtime + TEMPORARY_SECS_MAX < now_us / 1_000_000)
    }

    fn cannot_list(&self, source: io::Error) -> ApprovalError {
        ApprovalError::Io { path: self.folder.path().to_owned(), source }
    }
}

/// The name of a file of the request `id`.
fn name(id: &str, end: &str) -> Result<String, ApprovalError> {
    match is_id(id) {
        true => Ok(format!("{id}{end}")),
        false => Err(ApprovalError::Unknown { id: id.to_owned() }),
    }
}

fn may_decide(request: &Request, decided: &Decided) -> Result<(), ApprovalError> {
    if matches!(decided.ruling, Ruling::Cancelled | Ruling::Expired) {
        return Ok(());
    }
    let (id, by) = (request.id.clone(), decided.by.clone());
    if decided.at_us >= request.expires_us {
        return Err(ApprovalError::Expired { id });
    }
    // Where nobody is named, whoever can write the folder decides, and that may well be the caller.
    if request.approvers.is_empty() {
        return Ok(());
    }
    if !request.approvers.contains(&decided.by) {
        let approvers = request.approvers.clone();
        return Err(ApprovalError::NotAnApprover { id, by, approvers });
    }
    if decided.ruling == Ruling::Approved && request.principal == decided.by {
        return Err(ApprovalError::OwnRequest { id, by });
    }
    Ok(())
}

fn is_same_call(one: &Request, two: &Request) -> bool {
    let key = |request: &Request| {
        (request.call_hash.clone(), request.server_id.clone(), request.principal.clone())
    };
    !one.call_hash.is_empty() && key(one) == key(two)
}

#[cfg(test)]
mod tests;
