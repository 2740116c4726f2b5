//! Asks the person in front of the demo about the call that the gate holds.

use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use super::interruption::Interruption;
use crate::state_folder::now_us;

/// How often to look for a signal while the person thinks.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The byte of Ctrl-D, with which people end programs.
const END_OF_INPUT: u8 = 4;

/// What became of the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// There is no terminal, or no answer came in time.
    Nobody,
}

/// Where to ask a person: nowhere without a terminal, or if `is_silent`.
pub(super) fn terminal(is_silent: bool) -> Option<File> {
    let both = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    File::open("/dev/tty").ok().filter(|_| both && !is_silent)
}

/// Asks for a single key, until the call expires or a signal comes.
pub(super) fn ask(
    terminal: File,
    expires_us: i64,
    interruption: &Interruption,
    out: &mut dyn Write,
) -> anyhow::Result<Answer> {
    let secs = (expires_us - now_us()).max(0) / 1_000_000;
    // Before the question: a key that answers it must be read at once.
    let keys = KeyReader::enter(terminal);
    write!(out, "\nLet it through? y or n (n by itself in {secs} s) ")?;
    out.flush()?;
    let answer = keys?.answer(expires_us, interruption);
    let word = match answer {
        Answer::Yes => "y",
        Answer::No => "n",
        Answer::Nobody => "",
    };
    writeln!(out, "{word}")?;
    Ok(answer)
}

/// A terminal that delivers each key at once, without echo, until this is dropped. Signals stay on:
/// on Ctrl-C, the demo ends as usual and drops it.
struct KeyReader {
    terminal: File,
    before: Termios,
}

impl KeyReader {
    fn enter(terminal: File) -> std::io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut keys = before.clone();
        keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        keys.special_codes[SpecialCodeIndex::VMIN] = 1;
        keys.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Now, &keys)?;
        Ok(Self { terminal, before })
    }

    fn answer(mut self, expires_us: i64, interruption: &Interruption) -> Answer {
        while now_us() < expires_us && interruption.signal(Duration::ZERO).is_none() {
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_EVERY.subsec_nanos().into() };
            let ready = poll(&mut [PollFd::new(&self.terminal, PollFlags::IN)], Some(&wait));
            let mut keys = [0; 64];
            let read = match ready {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => self.terminal.read(&mut keys),
                Err(_) => return Answer::Nobody,
            };
            // The terminal is gone.
            let Ok(count @ 1..) = read else { return Answer::Nobody };
            for key in &keys[..count] {
                match key {
                    b'y' | b'Y' => return Answer::Yes,
                    b'n' | b'N' | &END_OF_INPUT => return Answer::No,
                    // Enter too: many press it to see more.
                    _ => {}
                }
            }
        }
        Answer::Nobody
    }
}

impl Drop for KeyReader {
    fn drop(&mut self) {
        // If the terminal is gone, so is its mode.
        tcsetattr(&self.terminal, OptionalActions::Now, &self.before).ok();
    }
}
