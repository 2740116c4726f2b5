//! The description of a command, as it is sent to its runner.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::process::{Resource, Rlimit, setrlimit};

use super::Sandbox;

/// A command, and the conditions under which it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerJob {
    pub shell: PathBuf,
    /// The command line that the shell gets.
    pub command: OsString,
    /// The working directory.
    pub folder: PathBuf,
    /// The whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Limits of the kernel.
    pub limits: ResourceLimits,
    /// What it may not do.
    pub sandbox: Sandbox,
}

/// Limits that the kernel enforces for each process of a command; `None` leaves a limit as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResourceLimits {
    /// How many processes the user may have. The kernel does not apply it to root.
    pub processes: Option<u64>,
    /// How much address space a process may have, in bytes.
    pub memory_bytes: Option<u64>,
    /// How much processor time a process may use, in seconds.
    pub cpu_seconds: Option<u64>,
    /// How large a file it writes may become, in bytes.
    pub file_bytes: Option<u64>,
    /// How many files it may have open.
    pub open_files: Option<u64>,
}

impl ResourceLimits {
    fn values(&self) -> [(Resource, Option<u64>); 5] {
        [
            (Resource::Nproc, self.processes),
            (Resource::As, self.memory_bytes),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Fsize, self.file_bytes),
            (Resource::Nofile, self.open_files),
        ]
    }

    /// Limits this process, and so what it starts.
    pub(super) fn apply(&self) {
        for (resource, limit) in self.values() {
            let Some(limit) = limit else { continue };
            // A limit above the current one cannot be set, and the current one is stricter.
            let hard = rustix::process::getrlimit(resource).maximum;
            let limit = Some(hard.map_or(limit, |hard| hard.min(limit)));
            setrlimit(resource, Rlimit { current: limit, maximum: limit }).ok();
        }
    }
}

impl RunnerJob {
    /// The bytes for the runner, with their length in front.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut body = Vec::new();
        for field in [self.shell.as_os_str(), &self.command, self.folder.as_os_str()] {
            put(&mut body, field.as_bytes());
        }
        for (_, limit) in self.limits.values() {
            // Empty means no limit, so that all fields have the same form.
            put(&mut body, limit.map(|it| it.to_string()).unwrap_or_default().as_bytes());
        }
        let roots = self.sandbox.write_roots.as_ref();
        let count = roots.map(|roots| roots.len().to_string()).unwrap_or_default();
        put(&mut body, if self.sandbox.network { b"" } else { b"0" });
        put(&mut body, count.as_bytes());
        roots.into_iter().flatten().for_each(|root| put(&mut body, root.as_os_str().as_bytes()));
        for (name, value) in &self.env {
            put(&mut body, name.as_bytes());
            put(&mut body, value.as_bytes());
        }
        [&(body.len() as u32).to_le_bytes()[..], &body].concat()
    }

    /// Reads what [`RunnerJob::to_bytes`] wrote, without the length.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let (shell, command, folder) = (take(&mut rest)?, take(&mut rest)?, take(&mut rest)?);
        let mut number = || {
            let digits = take(&mut rest)?;
            let digits = std::str::from_utf8(digits.as_bytes()).ok()?;
            if digits.is_empty() { Some(None) } else { digits.parse().ok().map(Some) }
        };
        let limits = ResourceLimits {
            processes: number()?,
            memory_bytes: number()?,
            cpu_seconds: number()?,
            file_bytes: number()?,
            open_files: number()?,
        };
        let network = number()?.is_none();
        let write_roots = match number()? {
            Some(count) => {
                Some((0..count).map(|_| Some(take(&mut rest)?.into())).collect::<Option<_>>()?)
            }
            None => None,
        };
        let mut env = Vec::new();
        while let Some(name) = take(&mut rest) {
            env.push((name, take(&mut rest)?));
        }
        let (shell, folder) = (shell.into(), folder.into());
        Some(Self {
            shell,
            command,
            folder,
            env,
            limits,
            sandbox: Sandbox { write_roots, network },
        })
    }
}

fn put(body: &mut Vec<u8>, field: &[u8]) {
    body.extend_from_slice(&(field.len() as u32).to_le_bytes());
    body.extend_from_slice(field);
}

fn take(rest: &mut &[u8]) -> Option<OsString> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    // Checked, since a truncated job must not start half a command.
    let (field, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    *rest = after;
    Some(OsString::from_vec(field.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_arrives_as_it_was_sent() {
        let limits =
            ResourceLimits { processes: Some(7), cpu_seconds: Some(0), ..Default::default() };
        let odd = OsString::from_vec(vec![0xff, b'=', b'\n']);
        let job = RunnerJob {
            shell: "/bin/sh".into(),
            command: "echo \u{1f600}\nexit".into(),
            folder: "/tmp".into(),
            env: vec![("A".into(), odd), ("B".into(), OsString::new())],
            limits,
            sandbox: Sandbox { write_roots: Some(vec!["/w".into()]), network: false },
        };
        let bytes = job.to_bytes();
        assert_eq!(RunnerJob::read(&bytes[4..]), Some(job));
        assert_eq!(RunnerJob::read(&bytes[4..12]), None);
    }
}
