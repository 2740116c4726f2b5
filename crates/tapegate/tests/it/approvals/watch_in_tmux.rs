//! `approvals watch` where people really run it: in tmux, and in tmux through ssh.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tapegate_store::approvals::{ApprovalDecision, ApprovalOutcome};
use tempfile::TempDir;

use super::{ID, RequestFolder, now_us};
use crate::support::{TmuxServer, script_of, wait_until};

const OTHER: &str = "ap_bbbbbbbbbbbbbbbb";

/// A script that runs `approvals watch` of this folder.
fn watch_script(state: &RequestFolder) -> String {
    script_of(&state.command(&["watch"]), state.path())
}

/// A call that was approved before, and one that differs from it.
fn with_two_calls() -> RequestFolder {
    let state = RequestFolder::new();
    state.ask(ID, |request| request.params = params("one\\ntwo"));
    let by = "ann".to_owned();
    let at_us = now_us();
    let decided = ApprovalDecision { ruling: ApprovalOutcome::Approved, by, at_us, reason: None };
    state.approvals().decide(ID, &decided).unwrap();
    state.ask(OTHER, |request| {
        request.created_us += 1_000_000;
        request.params = params("one\\nthree");
    });
    state
}

fn params(content: &str) -> Option<String> {
    Some(format!("{{\"name\":\"delete_file\",\"arguments\":{{\"content\":\"{content}\"}}}}"))
}

/// The call is shown with its difference and a bell, and a key decides.
fn decides_by_key(state: &RequestFolder, tmux: &TmuxServer) {
    tmux.shows("y approve");
    let screen = tmux.screen();
    assert!(screen.contains("-   │ two") && screen.contains("+   │ three"), "{screen}");
    wait_until("the bell", || tmux.has_bell());
    tmux.types("a");
    tmux.shows("approved files delete_file");
    let decided = state.approvals().decision(OTHER).unwrap().unwrap();
    assert_eq!((decided.ruling, decided.by.as_str()), (ApprovalOutcome::Approved, "alice"));
    tmux.shows("granted gr_");
    tmux.types("q");
    tmux.shows("ended 0");
}

#[test]
fn calls_are_decided_in_tmux() {
    let state = with_two_calls();
    let tmux = TmuxServer::start(&watch_script(&state), 100, 40);
    decides_by_key(&state, &tmux);
}

/// An ssh server for this user on a port of its own.
struct SshServer {
    folder: TempDir,
    process: Child,
    port: u16,
}

impl SshServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["host", "user"] {
            let mut command = Command::new("ssh-keygen");
            command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path.join(name));
            assert!(command.status().expect("ssh-keygen runs").success());
        }
        fs::copy(path.join("user.pub"), path.join("authorized")).unwrap();
        // Required by Debian's sshd if it runs as root.
        fs::create_dir_all("/run/sshd").ok();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {0}/host\nAuthorizedKeysFile {0}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin yes\nPidFile none\n",
            path.display()
        );
        fs::write(path.join("config"), config).unwrap();
        let mut command = Command::new("/usr/sbin/sshd");
        command.arg("-D").arg("-f").arg(path.join("config")).stderr(Stdio::null());
        let process = command.spawn().expect("sshd runs; `scripts/peers` installs it");
        Self { folder, process, port }
    }

    /// A script that runs another one through ssh, at a terminal.
    fn script(&self, inner: &Path) -> String {
        let key = self.folder.path().join("user").display().to_string();
        format!(
            "until ssh -tt -q -p {} -i {key} -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
             127.0.0.1 sh {}; do test $? = 255 || break; done\n",
            self.port,
            inner.display()
        )
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn calls_are_decided_in_tmux_through_ssh() {
    let state = with_two_calls();
    let ssh = SshServer::start();
    let inner = ssh.folder.path().join("watch");
    fs::write(&inner, watch_script(&state)).unwrap();
    let tmux = TmuxServer::start(&ssh.script(&inner), 100, 40);
    decides_by_key(&state, &tmux);
}
