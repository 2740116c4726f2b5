//! The runtime that a session runs on, and the resources it requires.

use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use tokio::runtime::{Builder, Runtime};

use crate::exit::{Exit, Failure};

/// How many descriptors a session needs besides the open ones: pipes, tape, log, locks, watches.
const DESCRIPTORS_MIN: usize = 16;

/// Starts a runtime on this thread. Too few descriptors are an error here, with a hint; later, a
/// library would panic for lack of one.
pub(crate) fn start() -> anyhow::Result<Runtime> {
    if let Err(free) = check_free_descriptors() {
        let limit = getrlimit(Resource::Nofile)
            .current
            .map_or(String::new(), |limit| format!(": the limit is {limit}, and {free} are free"));
        let message = format!("too few file descriptors{limit}; a session needs {DESCRIPTORS_MIN}");
        return Err(Failure::new(Exit::Io, message)
            .hint("raise the limit, for example with `ulimit -n 256`, or in the client's settings")
            .into());
    }
    Ok(Builder::new_current_thread().enable_all().build()?)
}

/// Checks that there are enough descriptors by opening them; the error is how many are free.
fn check_free_descriptors() -> Result<(), usize> {
    let mut opened = Vec::with_capacity(DESCRIPTORS_MIN);
    let errors = rustix::stdio::stderr();
    while opened.len() < DESCRIPTORS_MIN {
        match rustix::io::fcntl_dupfd_cloexec(errors, 0) {
            Ok(descriptor) => opened.push(descriptor),
            Err(Errno::MFILE | Errno::NFILE) => return Err(opened.len()),
            // Standard error is closed. Any other problem shows up where descriptors are used.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}
