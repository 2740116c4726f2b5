//! A terminal without a screen.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};

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
    // Otherwise Ctrl-C would discard output that was not read yet.
    modes.local_modes.insert(rustix::termios::LocalModes::NOFLSH);
    modes.output_modes.remove(rustix::termios::OutputModes::OPOST);
    rustix::termios::tcsetattr(&theirs, rustix::termios::OptionalActions::Now, &modes).unwrap();
    (ours.into(), theirs.into())
}

/// The end of a question.
const QUESTION: &[u8] = b" [y/N] ";

/// Runs a command at its own terminal, outside our process tree, and types `typed` once it asks a
/// question. Returns its exit code and the text on the terminal.
pub(crate) fn at_terminal(command: &Command, typed: &str) -> (i32, String) {
    at_terminal_typing_ahead(command, "", typed)
}

/// The same, with something typed before the question.
pub(crate) fn at_terminal_typing_ahead(
    command: &Command,
    ahead: &str,
    typed: &str,
) -> (i32, String) {
    at_terminal_answering(command, ahead, &[typed])
}

/// The same, with an answer to each question.
pub(crate) fn at_terminal_answering(
    command: &Command,
    ahead: &str,
    answers: &[&str],
) -> (i32, String) {
    let mut ours = start_at_terminal(command, ahead);
    let mut asked = 0;
    let mut output = Vec::new();
    let mut piece = [0; 4096];
    // A terminal whose other end is closed returns an error, not end of file.
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
        let questions = output.windows(QUESTION.len()).filter(|window| *window == QUESTION).count();
        while let Some(answer) = answers.get(asked).filter(|_| asked < questions) {
            asked += 1;
            ours.write_all(answer.as_bytes()).unwrap();
        }
    }
    let output = String::from_utf8(output).unwrap();
    let (output, code) = output.rsplit_once("exit=").expect("it ends");
    (code.trim().parse().unwrap(), output.to_owned())
}

/// Something that must appear on the terminal, and what is done then.
pub(crate) struct TerminalStep<'a> {
    text: &'a str,
    times: usize,
    keys: &'a str,
    act: Option<Box<dyn Fn() + 'a>>,
}

impl<'a> TerminalStep<'a> {
    /// Types `keys` once `text` has appeared `times` times since the step before.
    pub(crate) fn typed(text: &'a str, times: usize, keys: &'a str) -> Self {
        Self { text, times, keys, act: None }
    }

    /// Calls `act` once `text` has appeared.
    pub(crate) fn done(text: &'a str, act: impl Fn() + 'a) -> Self {
        Self { text, times: 1, keys: "", act: Some(Box::new(act)) }
    }
}

/// Runs a command at its own terminal of this size, through these steps. Returns its exit code and
/// everything that was on the terminal.
pub(crate) fn at_terminal_in_steps(
    command: &Command,
    (columns, rows): (u16, u16),
    steps: &[TerminalStep<'_>],
) -> (i32, String) {
    let mut sized = Command::new("sh");
    let size = format!("stty cols {columns} rows {rows} && exec \"$@\"");
    sized.args(["-c", &size, "sh"]).arg(command.get_program()).args(command.get_args());
    let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    sized.envs(set);
    command.get_current_dir().into_iter().for_each(|folder| _ = sized.current_dir(folder));
    let mut ours = start_at_terminal(&sized, "");
    let (mut output, mut from) = (Vec::new(), 0);
    let mut steps = steps.iter().peekable();
    let mut piece = [0; 4096];
    while let Ok(count @ 1..) = ours.read(&mut piece) {
        output.extend_from_slice(&piece[..count]);
        while let Some(step) = steps.next_if(|step| {
            let text = String::from_utf8_lossy(&output[from..]);
            text.matches(step.text).count() >= step.times
        }) {
            from = output.len();
            step.act.iter().for_each(|act| act());
            ours.write_all(step.keys.as_bytes()).unwrap();
        }
    }
    let output = String::from_utf8(output).unwrap();
    let left = steps.next().map(|step| step.text);
    assert_eq!(left, None, "it ended before this appeared: {output}");
    let (output, code) = output.rsplit_once("exit=").expect("it ends");
    (code.trim().parse().unwrap(), output.to_owned())
}

/// Starts a command at its own terminal, outside our process tree, and returns our end. The exit
/// code is printed as `exit=`.
fn start_at_terminal(command: &Command, ahead: &str) -> File {
    let (mut ours, theirs) = terminal();
    ours.write_all(ahead.as_bytes()).unwrap();
    let end = || Stdio::from(theirs.try_clone().unwrap());
    let mut session = Command::new("setsid");
    // The shell outlives `setsid`, so that no agent is among its parents, wherever the tests run.
    // It goes on after Ctrl-C, which the command gets too.
    let script = "trap : INT QUIT; \"$@\"; echo \"exit=$?\"";
    // The test runner may ignore Ctrl-C, which is inherited.
    session.args(["--ctty", "--fork", "env", "--default-signal=INT", "sh", "-c", script, "sh"]);
    session.arg(command.get_program()).args(command.get_args()).env_clear();
    for name in ["PATH", "HOME", "LLVM_PROFILE_FILE"] {
        std::env::var_os(name).into_iter().for_each(|value| _ = session.env(name, value));
    }
    for (name, value) in command.get_envs() {
        value.into_iter().for_each(|value| _ = session.env(name, value));
    }
    command.get_current_dir().into_iter().for_each(|folder| _ = session.current_dir(folder));
    session.stdin(end()).stdout(end()).stderr(end());
    assert!(session.status().unwrap().success());
    drop((session, theirs));
    ours
}
