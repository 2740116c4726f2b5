//! The mode of a terminal in which each key is read at once, without being echoed.
//!
//! The former mode comes back when the [`KeyMode`] is dropped, so also after a panic. Signals are
//! left on: Ctrl-C and Ctrl-Z reach the session as signals, which restores the mode by itself.

use std::fs::File;
use std::io;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

/// A terminal whose keys are read one by one.
pub(super) struct KeyMode {
    terminal: File,
    before: Termios,
}

impl KeyMode {
    /// Switches the terminal to reading keys.
    pub(super) fn enter(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mode = Self { terminal, before };
        mode.resume()?;
        Ok(mode)
    }

    /// Reads keys again, after [`KeyMode::suspend`].
    pub(super) fn resume(&self) -> io::Result<()> {
        let mut keys = self.before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        Ok(tcsetattr(&self.terminal, OptionalActions::Drain, &keys)?)
    }

    /// Restores the former mode.
    pub(super) fn suspend(&self) {
        // If the terminal is gone, so is its mode.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }

    /// Discards keys that were typed but not read.
    pub(super) fn discard_typed(&self) {
        tcflush(&self.terminal, QueueSelector::IFlush).ok();
    }

    /// The size of the terminal in columns and rows, where it is known.
    pub(super) fn size(&self) -> Option<(usize, usize)> {
        let size = rustix::termios::tcgetwinsize(&self.terminal).ok()?;
        (size.ws_col > 0 && size.ws_row > 0)
            .then(|| (usize::from(size.ws_col), usize::from(size.ws_row)))
    }

    /// Whether the terminal has hung up.
    pub(super) fn is_gone(&self) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: i64::from(Duration::ZERO.subsec_nanos()) };
        let mut polled = [PollFd::new(&self.terminal, PollFlags::empty())];
        poll(&mut polled, Some(&now)).is_ok() && polled[0].revents().contains(PollFlags::HUP)
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        self.suspend();
    }
}
