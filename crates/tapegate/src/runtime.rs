//! The runtime that a session runs on, and what it cannot do without.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Failure};

/// How many descriptors a session needs besides those that are open already: pipes, tape, log, locks, watches.
const DESCRIPTORS_MIN: usize = 16;

/// A runtime on this thread. Too few descriptors are an error here, where it can be said what to do; further on a
/// library would panic for want of one.
pub(crate) fn start() -> anyhow::Result<Runtime> {
    if let Err(free) = free_descriptors() {
        let limit = getrlimit(Resource::Nofile)
            .current
            .map_or(String::new(), |limit| format!(": the limit is {limit}, and {free} are free"));
        let words = format!("too few file descriptors{limit}; a session needs {DESCRIPTORS_MIN}");
        return Err(Failure::new(Exit::Io, words)
            .hint("raise the limit, for example by `ulimit -n 256`, or in the client's settings")
            .into());
    }
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Looks whether there are descriptors enough, by opening them; how many there are if not.
fn free_descriptors() -> Result<(), usize> {
    let mut opened = Vec::with_capacity(DESCRIPTORS_MIN);
    let errors = rustix::stdio::stderr();
    while opened.len() < DESCRIPTORS_MIN {
        match rustix::io::fcntl_dupfd_cloexec(errors, 0) {
            Ok(descriptor) => opened.push(descriptor),
            Err(Errno::MFILE | Errno::NFILE) => return Err(opened.len()),
            // Standard error is closed; what else is wrong is found out by whoever needs it.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
