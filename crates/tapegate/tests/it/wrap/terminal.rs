//! An agent at a terminal, under a shell with job control: as if `wrap` were not there.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::termios::{Winsize, tcsetwinsize};

use crate::support::{process_table, terminal, wait_for_exit, wait_until};
use crate::wrap_machine::WrapMachine;

/// An interactive shell at a terminal of its own.
struct ShellSession {
    keyboard: File,
    text: Arc<Mutex<String>>,
    shell: Child,
}

impl ShellSession {
    fn start(machine: &WrapMachine) -> Self {
        let (keyboard, theirs) = terminal();
        let end = || Stdio::from(theirs.try_clone().unwrap());
        let plain = machine.command(&[]);
        let mut command = Command::new("setsid");
        command.args(["--ctty", "--wait", "env", "--default-signal=INT,QUIT,TSTP,TTIN,TTOU"]);
        command.args(["bash", "--norc", "--noprofile", "--noediting", "-i"]);
        command.current_dir(machine.project("")).stdin(end()).stdout(end()).stderr(end());
        plain.get_envs().for_each(|(name, value)| match value {
            Some(value) => drop(command.env(name, value)),
            None => drop(command.env_remove(name)),
        });
        command.env("PS1", "").env("TERM", "dumb");
        let shell = command.spawn().unwrap();
        process_table::note_own_child(shell.id());
        drop((command, theirs));
        let text = Arc::new(Mutex::new(String::new()));
        let (mut screen, shared) = (keyboard.try_clone().unwrap(), Arc::clone(&text));
        thread::spawn(move || {
            let mut piece = [0; 4096];
            // A terminal whose other end is closed returns an error, not end of file.
            while let Ok(count @ 1..) = screen.read(&mut piece) {
                shared.lock().unwrap().push_str(&String::from_utf8_lossy(&piece[..count]));
            }
        });
        Self { keyboard, text, shell }
    }

    fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    #[track_caller]
    fn shows(&self, text: &str) {
        wait_until(&format!("{text} on the terminal"), || self.text().contains(text));
    }

    /// Types the command line of a session.
    fn wraps(&mut self, machine: &WrapMachine, steps: &[&str]) {
        let wrap = machine.wrap(&[], steps);
        let words = std::iter::once(wrap.get_program()).chain(wrap.get_args());
        let words: Vec<String> =
            words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
        self.types(&format!("{}; echo code=$?\n", words.join(" ")));
    }
}

impl Drop for ShellSession {
    fn drop(&mut self) {
        self.shell.kill().ok();
        self.shell.wait().ok();
    }
}

#[test]
fn ctrl_c_reaches_the_agent_once_and_the_agent_decides() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut shell = ShellSession::start(&machine);
    shell.wraps(&machine, &["report=SIGINT", "say=ready", "line", "say=bye"]);
    shell.shows("ready");
    shell.types("\x03");
    shell.shows("got SIGINT");
    shell.types("go\n");
    shell.shows("read go");
    shell.shows("code=0");
    assert_eq!(shell.text().matches("got SIGINT").count(), 1, "{}", shell.text());
    assert_eq!(machine.files(), before);
    // One that does not handle it ends, and the configs are restored.
    shell.wraps(&machine, &["say=second", "linger"]);
    shell.shows("second");
    shell.types("\x03");
    shell.shows("code=130");
    assert_eq!(machine.files(), before);
    machine.ends_every_session();
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_gives_it_back() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let mut shell = ShellSession::start(&machine);
    let steps = ["start=~/.claude.json#mcpServers", "say=ready", "line", "call", "line", "close"];
    shell.wraps(&machine, &steps);
    shell.shows("ready");
    shell.types("\x1a");
    shell.shows("Stopped");
    shell.types("echo in the $((40+2)) shell\n");
    shell.shows("in the 42 shell");
    // The hub runs on: it would lose its shims otherwise.
    let [hub] = machine.processes_of("hub")[..] else { panic!("one hub") };
    let status = std::fs::read_to_string(format!("/proc/{}/status", hub.as_raw_pid())).unwrap();
    assert!(status.contains("State:\tS"), "{status}");
    shell.types("fg; echo back=$?\n");
    shell.types("one\n");
    shell.shows("read one");
    shell.shows("s {");
    shell.types("two\n");
    shell.shows("back=0");
    assert_eq!(machine.files(), before);
}

#[test]
fn an_agent_that_stops_itself_gives_the_terminal_to_the_shell() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut shell = ShellSession::start(&machine);
    // As agents do that read the keyboard themselves.
    shell.wraps(&machine, &["raise=SIGSTOP", "say=again", "exit=5"]);
    shell.shows("Stopped");
    shell.types("fg; echo back=$?\n");
    shell.shows("again");
    shell.shows("back=5");
}

#[test]
fn a_change_of_the_window_s_size_reaches_the_agent() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let mut shell = ShellSession::start(&machine);
    let size =
        |columns, rows| Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&shell.keyboard, size(91, 33)).unwrap();
    shell.wraps(&machine, &["size", "report=SIGWINCH", "say=ready", "line", "size"]);
    shell.shows("91x33");
    shell.shows("ready");
    tcsetwinsize(&shell.keyboard, size(77, 22)).unwrap();
    shell.shows("got SIGWINCH");
    shell.types("go\n");
    shell.shows("77x22");
    shell.shows("code=0");
}

#[test]
fn an_agent_whose_terminal_is_closed_gets_sighup() {
    let machine = WrapMachine::new();
    machine.claude(&["s"]);
    let before = machine.files();
    let (mut screen, theirs) = terminal();
    let end = || Stdio::from(theirs.try_clone().unwrap());
    // As a terminal program starts it: without a shell that would pass the signal on.
    let wrap =
        machine.wrap(&[], &["start=~/.claude.json#mcpServers", "call", "say=ready", "linger"]);
    let mut command = Command::new("setsid");
    command.args(["--ctty", "env", "--default-signal=HUP"]).arg(wrap.get_program());
    command.args(wrap.get_args()).current_dir(machine.project(""));
    wrap.get_envs().for_each(|(name, value)| match value {
        Some(value) => drop(command.env(name, value)),
        None => drop(command.env_remove(name)),
    });
    let mut session = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop((command, theirs));
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains("ready") {
        let count = screen.read(&mut piece).unwrap();
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    drop(screen);
    // Not 137, which would be that of an agent that was killed because it did not end.
    assert_eq!(wait_for_exit("wrap", &mut session).code(), Some(129));
    assert_eq!(machine.files(), before);
    machine.leaves_no_process();
}
