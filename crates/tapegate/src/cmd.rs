//! The commands, one file each: its arguments, and what it does with them.

pub(crate) mod agents;
pub(crate) mod approvals;
pub(crate) mod bash;
pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod hub;
pub(crate) mod init;
pub(crate) mod log;
pub(crate) mod man;
pub(crate) mod policy;
pub(crate) mod record;
pub(crate) mod redact;
pub(crate) mod replay;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod shim;
pub(crate) mod show;
pub(crate) mod stats;
pub(crate) mod unwrap;
pub(crate) mod verify;
pub(crate) mod wrap;
