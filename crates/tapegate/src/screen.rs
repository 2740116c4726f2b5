//! How text is printed for people: its width, its colours, and the pager.

use std::io::{self, IsTerminal, Write};
use std::process::{Child, Command, Stdio};

use crate::terminal_output;
use crate::views::palette::Palette;

/// Narrower terminals are treated as this wide.
const COLUMNS_MIN: usize = 40;

/// How text is shown.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ScreenArgs {
    /// When to use colours
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN")]
    color: ColorArg,
    /// Do not use a pager; by default, output to a terminal goes through $PAGER or `less -FRX`
    #[arg(long)]
    no_pager: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum ColorArg {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    Always,
    Never,
}

impl ScreenArgs {
    /// Whether output is in colour.
    pub(crate) fn palette(&self) -> Palette {
        match self.color {
            ColorArg::Auto => terminal_output::palette_of_output(),
            ColorArg::Always => Palette::Colour,
            ColorArg::Never => Palette::Plain,
        }
    }

    /// The same without a pager.
    pub(crate) fn without_pager(mut self) -> Self {
        self.no_pager = true;
        self
    }

    /// Where to print: through a pager if standard output is a terminal.
    pub(crate) fn pager<'o>(&self, out: &'o mut dyn Write) -> Pager<'o> {
        let paged = !self.no_pager && io::stdout().is_terminal();
        let child = paged.then(start).flatten();
        Pager { child, out }
    }
}

/// The width of the output: `COLUMNS`, or that of the terminal. A pipe has no limit.
pub(crate) fn columns() -> Option<usize> {
    let named = std::env::var("COLUMNS").ok().and_then(|text| text.trim().parse().ok());
    let terminal = || {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
        Some(usize::from(size.ws_col)).filter(|columns| *columns > 0)
    };
    let columns = named.filter(|columns| *columns > 0).or_else(terminal);
    columns.map(|columns| columns.max(COLUMNS_MIN))
}

/// A pager, or the output it would print to.
pub(crate) struct Pager<'o> {
    child: Option<Child>,
    out: &'o mut dyn Write,
}

/// Starts the user's pager.
fn start() -> Option<Child> {
    let wanted = std::env::var("PAGER").ok();
    let command = match wanted.as_deref().map(str::trim) {
        None => "less -FRX",
        Some("" | "cat") => return None,
        Some(command) => command,
    };
    if !is_installed(command) {
        if wanted.is_some() {
            terminal_output::warn(&format!("cannot start `{command}`, which PAGER names"));
        }
        return None;
    }
    let mut shell = Command::new("sh");
    let child = shell.args(["-c", command]).stdin(Stdio::piped()).spawn().ok()?;
    // Ctrl-C is for the pager: if we exited, it would share the terminal with the shell.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok();
    if let Some(runtime) = &runtime {
        let _inside = runtime.enter();
        tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt()).ok();
    }
    Some(child)
}

/// Whether the shell finds the program of a command. It would start without it, and the output
/// would be lost. A command that is more than words is left to the shell.
fn is_installed(command: &str) -> bool {
    let program = command.split_whitespace().find(|word| !word.contains('='));
    let Some(program) =
        program.filter(|word| !word.contains(['"', '\'', '$', '`', '(', '{', '\\']))
    else {
        return true;
    };
    let mut shell = Command::new("sh");
    shell.args(["-c", "command -v \"$1\"", "sh", program]);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

impl Write for Pager<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(input) => input.write(bytes),
            None => self.out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.child.as_mut().and_then(|child| child.stdin.as_mut()) {
            Some(input) => input.flush(),
            None => self.out.flush(),
        }
    }
}

impl Drop for Pager<'_> {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.stdin.take());
            // The shell's prompt must not appear while the pager still shows the output.
            child.wait().ok();
        }
    }
}
