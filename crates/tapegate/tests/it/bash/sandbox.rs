//! What the kernel keeps commands from, where it can; and the refusal where it cannot.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use tempfile::TempDir;

use super::client::{BashClient, write_settings};
use crate::support::tapegate;

/// A server with these settings; `None` if this kernel cannot enforce them, which it must say.
fn sandboxed(settings: &str) -> Option<(TempDir, BashClient)> {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("sub")).unwrap();
    fs::write(folder.path().join("outside"), "kept").unwrap();
    write_settings(folder.path(), &format!("execution: {{sandbox: {settings}}}"));
    let mut probe = tapegate();
    probe.arg("bash").current_dir(folder.path()).env("HOME", folder.path()).stdin(Stdio::null());
    let done = probe.output().unwrap();
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains("the sandbox cannot be set up") && said.contains("needs"), "{said}");
        assert!(!is_possible(settings), "this kernel has what it needs, but: {said}");
        let _ = writeln!(std::io::stderr(), "only the refusal was tested: {said}");
        return None;
    }
    let client = BashClient::spawn(folder.path(), &[]);
    Some((folder, client))
}

/// Whether this kernel has what the settings need, found out in another way than the server's.
fn is_possible(settings: &str) -> bool {
    if settings.contains("write_roots") {
        // The version of Landlock; 3 is that of Linux 6.2.
        let script = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, 0, 1))";
        let done = Command::new("python3").args(["-c", script]).output().unwrap();
        let version = String::from_utf8_lossy(&done.stdout).trim().parse::<i32>();
        return version.is_ok_and(|version| version >= 3);
    }
    fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:")
}

#[test]
fn files_are_changed_only_below_the_named_folders() {
    let Some((folder, mut client)) = sandboxed("{write_roots: [sub]}") else { return };
    let allowed =
        client.execute("echo a > sub/a; mkdir sub/b; mv sub/a sub/b; cat outside sub/b/a");
    assert_eq!(
        (allowed["stdout"].as_str(), allowed["exit_code"].as_i64()),
        (Some("kepta\n"), Some(0))
    );
    for line in [
        "echo a > outside",
        "echo a >> outside",
        "truncate -s 0 outside",
        "rm outside",
        "mv outside sub/taken",
        "ln -s .. sub/up; echo a > sub/up/outside",
        "mkdir made",
        "touch made",
        "bash -c '(setsid sh -c \"echo a > outside\"); wait; false'",
        "cp /dev/null \"$HOME/.bashrc\"",
    ] {
        let denied = client.execute(line);
        assert_ne!(denied["exit_code"], 0, "{line}: {denied}");
    }
    assert_eq!(fs::read_to_string(folder.path().join("outside")).unwrap(), "kept");
    assert!(!folder.path().join("made").exists() && !folder.path().join(".bashrc").exists());
    let devices = client.execute("echo a > /dev/null && cat <<< text && (echo b >&2) 2> /dev/null");
    assert_eq!(devices["exit_code"], 0, "{devices}");
    let list = client.request("tools/list", &serde_json::json!({})).to_string();
    assert!(list.contains("Files can be changed only below "), "{list}");
}

#[test]
fn there_is_no_network_if_it_is_switched_off() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    let mut free = BashClient::start();
    assert_eq!(free.execute(&connect)["stdout"], "connected\n");
    let Some((_folder, mut client)) = sandboxed("{network: false}") else { return };
    let denied = client.execute(&connect);
    assert_ne!(denied["exit_code"], 0, "{denied}");
    assert!(denied["stderr"].as_str().unwrap().contains("Permission denied"), "{denied}");
    let udp = client.execute(&format!("echo a > /dev/udp/127.0.0.1/{port}"));
    assert_ne!(udp["exit_code"], 0, "{udp}");
    // Everything else goes on as before.
    assert_eq!(client.execute("echo a > sub/a; cat sub/a")["stdout"], "a\n");
}

#[test]
fn a_folder_that_is_not_there_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    write_settings(folder.path(), "execution: {sandbox: {write_roots: [missing]}}");
    let mut command = tapegate();
    command.arg("bash").current_dir(folder.path()).env("HOME", folder.path());
    let done = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(2), "{said}");
    assert!(said.contains("missing") && said.contains("cannot be used"), "{said}");
}
