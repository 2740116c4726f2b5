//! Landlock and seccomp.

use std::collections::BTreeMap;
use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use super::Sandbox;

/// The first version that controls `truncate` and moves between folders.
const FILES: ABI = ABI::V3;
/// Devices that keep nothing, and that programs expect to be able to write to.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx"];
/// `EACCES`, which programs report as "Permission denied".
const DENIED: u32 = 13;
/// `AF_UNIX`.
const UNIX_SOCKETS: u64 = 1;

#[cfg(target_arch = "x86_64")]
mod calls {
    pub(super) const SOCKET: [i64; 4] = [41, 53, 41 | X32, 53 | X32];
    pub(super) const IO_URING_SETUP: [i64; 2] = [425, 425 | X32];
    /// The same calls with 32-bit pointers, where the kernel has them.
    const X32: i64 = 0x4000_0000;
}
#[cfg(not(target_arch = "x86_64"))]
mod calls {
    pub(super) const SOCKET: [i64; 2] = [198, 199];
    pub(super) const IO_URING_SETUP: [i64; 1] = [425];
}

pub(super) fn check(sandbox: &Sandbox) -> Result<(), String> {
    if sandbox.write_roots.is_some() {
        file_rules().and_then(|rules| rules.create().map_err(|error| error.to_string())).map_err(
            |error| {
                format!(
                    "`write_roots` needs Landlock as in Linux 6.2 or later, switched on: {error}"
                )
            },
        )?;
    }
    if !sandbox.network {
        filter()?;
        if !Path::new("/proc/sys/kernel/seccomp/actions_avail").exists() {
            return Err("`network: false` needs a kernel with seccomp filters".to_owned());
        }
    }
    Ok(())
}

pub(super) fn apply(sandbox: &Sandbox) -> Result<(), String> {
    if let Some(roots) = &sandbox.write_roots {
        protect_files(roots).map_err(|error| format!("files cannot be protected: {error}"))?;
    }
    if !sandbox.network {
        let filter = filter()?;
        keep_from_others()
            .and_then(|()| seccompiler::apply_filter(&filter).map_err(|error| error.to_string()))
            .map_err(|error| format!("the network cannot be cut off: {error}"))?;
    }
    Ok(())
}

/// A rule set that controls every change of files, or an error if the kernel cannot enforce it.
fn file_rules() -> Result<Ruleset, String> {
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_write(FILES))
        .map_err(|error| error.to_string())
}

fn protect_files(roots: &[std::path::PathBuf]) -> Result<(), String> {
    let text = |error: landlock::RulesetError| error.to_string();
    let mut rules = file_rules()?.create().map_err(text)?;
    let devices = DEVICES.iter().map(Path::new).filter(|device| device.exists());
    for path in roots.iter().map(|root| root.as_path()).chain(devices) {
        let mut access: BitFlags<AccessFs> = AccessFs::from_write(FILES);
        if !path.is_dir() {
            access &= AccessFs::from_file(FILES);
        }
        let opened = PathFd::new(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        rules = rules.add_rule(PathBeneath::new(opened, access)).map_err(text)?;
    }
    rules.restrict_self().map_err(text)?;
    Ok(())
}

/// Keeps a command from processes outside that still have the network, as far as the kernel can.
fn keep_from_others() -> Result<(), String> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessNet::from_all(ABI::V4))
        .and_then(|rules| rules.scope(Scope::AbstractUnixSocket))
        .and_then(Ruleset::create)
        .and_then(|rules| rules.restrict_self());
    rules.map(|_| ()).map_err(|error| error.to_string())
}

/// Refuses sockets of all families but one. Calls of another architecture end the process.
fn filter() -> Result<BpfProgram, String> {
    let text = |error: seccompiler::BackendError| format!("no filter can be built: {error}");
    let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, UNIX_SOCKETS);
    let other = SeccompRule::new(vec![other.map_err(text)?]).map_err(text)?;
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        calls::SOCKET.iter().map(|call| (*call, vec![other.clone()])).collect();
    // It creates sockets too.
    rules.extend(calls::IO_URING_SETUP.map(|call| (call, Vec::new())));
    let arch = std::env::consts::ARCH.try_into().map_err(text)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(DENIED), arch)
        .and_then(BpfProgram::try_from)
        .map_err(text)
}
