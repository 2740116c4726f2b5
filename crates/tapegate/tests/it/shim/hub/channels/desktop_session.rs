//! A desktop session without a screen: a D-Bus session bus, an X server and the notification daemon
//! dunst, all from Debian.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::support::{wait_for, wait_until};

/// A session; everything in it ends with this value.
pub(super) struct DesktopSession {
    folder: TempDir,
    screen: Child,
    display: String,
    bus: Option<Child>,
    daemon: Option<Child>,
}

impl DesktopSession {
    /// A session whose notification daemon runs.
    pub(super) fn start() -> Self {
        let mut session = Self::without_bus();
        session.start_bus();
        session.start_daemon();
        session
    }

    pub(super) fn without_bus() -> Self {
        let folder = tempfile::tempdir().unwrap();
        // Without services, so that nothing is started but by the test.
        let socket = folder.path().join("bus");
        let config = format!(
            "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
             <policy context=\"default\"><allow send_destination=\"*\"/><allow own=\"*\"/><allow eavesdrop=\"true\"/></policy></busconfig>",
            socket.display()
        );
        fs::write(folder.path().join("bus.conf"), config).unwrap();
        // The menu from which a person chooses a button: its label and the title are in a file.
        let choice = folder.path().join("choice");
        let menu = format!(
            "#!/bin/sh\ngrep -F -- \"#$(sed -n 1p {0}) (\" | grep -F -m1 -- \"$(sed -n 2p {0})\"\necho >> {1}\n",
            choice.display(),
            folder.path().join("menus").display()
        );
        let menu_path = folder.path().join("menu");
        fs::write(&menu_path, menu).unwrap();
        fs::set_permissions(&menu_path, fs::Permissions::from_mode(0o755)).unwrap();
        let config = format!(
            "[global]\n dmenu = {}\n width = 700\n height = 550\n notification_limit = 20\n",
            menu_path.display()
        );
        fs::write(folder.path().join("dunstrc"), config).unwrap();
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "800x600x8", "-nolisten", "tcp"]);
        let mut screen = started(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        let display = format!(":{}", first_line(&mut screen));
        Self { folder, screen, display, bus: None, daemon: None }
    }

    /// The address of the bus, whether it runs or not.
    pub(super) fn address(&self) -> String {
        format!("unix:path={}", self.folder.path().join("bus").display())
    }

    pub(super) fn start_bus(&mut self) {
        let config = format!("--config-file={}", self.folder.path().join("bus.conf").display());
        let mut command = Command::new("dbus-daemon");
        command.args([&config, "--nofork", "--print-address=1"]);
        let mut bus = started(command.stdout(Stdio::piped()).stderr(Stdio::null()));
        first_line(&mut bus);
        self.bus = Some(bus);
    }

    pub(super) fn stop_bus(&mut self) {
        end(self.bus.take());
    }

    /// Starts the notification daemon, which writes what it shows to a file.
    pub(super) fn start_daemon(&mut self) {
        let log = fs::File::options().create(true).append(true).open(self.log()).unwrap();
        let mut command = self.command("dunst");
        command.arg("-config").arg(self.folder.path().join("dunstrc")).arg("-print");
        self.daemon = Some(started(command.stdout(log).stderr(Stdio::null())));
        wait_until("the notification daemon", || self.dunstctl(&["count", "displayed"]).is_some());
    }

    pub(super) fn stop_daemon(&mut self) {
        end(self.daemon.take());
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("shown")
    }

    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("DISPLAY", &self.display).env("DBUS_SESSION_BUS_ADDRESS", self.address());
        command
    }

    fn dunstctl(&self, arguments: &[&str]) -> Option<String> {
        let done = self.command("dunstctl").args(arguments).output().expect("dunstctl runs");
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
    }

    /// Everything that was shown so far.
    pub(super) fn shown(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Waits until a notification with this title was shown so often.
    pub(super) fn shows(&self, title: &str, count: usize) {
        let line = format!("summary: '{title}'");
        wait_until(&format!("`{title}` {count} times"), || {
            self.shown().matches(&line).count() >= count
        });
    }

    /// Waits until so many notifications are on the screen.
    pub(super) fn displays(&self, count: usize) {
        let count = count.to_string();
        wait_for("notifications on the screen", || {
            (self.dunstctl(&["count", "displayed"])? == count).then_some(())
        });
    }

    /// A person chooses a button of the notification with this title.
    pub(super) fn press(&self, label: &str, title: &str) {
        fs::write(self.folder.path().join("choice"), format!("{label}\n{title}\n")).unwrap();
        let menus = || fs::read(self.folder.path().join("menus")).map_or(0, |all| all.len());
        let before = menus();
        // The daemon opens one menu at a time, and none where no notification has buttons.
        wait_until("the menu", || {
            self.dunstctl(&["context"]);
            menus() > before || self.dunstctl(&["count", "displayed"]).as_deref() == Some("0")
        });
    }

    /// A person closes all notifications.
    pub(super) fn close_all(&self) {
        self.dunstctl(&["close-all"]).expect("notifications are closed");
    }

    /// Another program of the session says that a button was pressed, to everyone on the bus.
    pub(super) fn forge_press(&self, key: &str) {
        for number in 1..=3 {
            for connection in 0..30 {
                let mut command = self.command("dbus-send");
                command.args(["--session", "--type=signal", &format!("--dest=:1.{connection}")]);
                command.args(["/org/freedesktop/Notifications"]);
                command.arg("org.freedesktop.Notifications.ActionInvoked");
                command.args([format!("uint32:{number}"), format!("string:{key}")]);
                assert!(command.status().expect("dbus-send runs").success());
            }
        }
    }
}

impl Drop for DesktopSession {
    fn drop(&mut self) {
        end(self.daemon.take());
        end(self.bus.take());
        kill_process(Pid::from_child(&self.screen), Signal::TERM).ok();
        self.screen.wait().ok();
    }
}

#[track_caller]
fn started(command: &mut Command) -> Child {
    command.stdin(Stdio::null());
    command.spawn().unwrap_or_else(|error| {
        let name = command.get_program().to_string_lossy().into_owned();
        panic!("`{name}` does not start ({error}); `scripts/peers` installs it")
    })
}

fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn end(child: Option<Child>) {
    if let Some(mut child) = child {
        kill_process(Pid::from_child(&child), Signal::TERM).ok();
        child.wait().ok();
    }
}
