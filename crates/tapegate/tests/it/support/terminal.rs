//! A terminal without a screen.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A pseudo terminal: our end, and the end a shell would hand on.
pub(crate) fn terminal() -> (File, OwnedFd) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let options = File::options().read(true).write(true).clone();
    let theirs = options.open(name.to_str().unwrap()).unwrap();
    let mut modes = rustix::termios::tcgetattr(&theirs).unwrap();
    modes.local_modes.remove(rustix::termios::LocalModes::ECHO);
    modes.output_modes.remove(rustix::termios::OutputModes::OPOST);
    rustix::termios::tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &modes).unwrap();
    (ours.into(), theirs.into())
}
