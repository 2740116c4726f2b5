//! Files, pipes and devices as input.

use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use super::*;

fn fifo(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn devices_and_sockets_are_refused_with_a_reason() {
    for name in ["/dev/zero", "/dev/null", "/dev/urandom"] {
        let message = "it is a device, not a file or a pipe";
        assert_eq!(open(Path::new(name)).unwrap_err().to_string(), message);
        assert_eq!(read(Path::new(name), 10).unwrap_err().to_string(), message);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&path).unwrap();
    assert_eq!(open(&path).unwrap_err().to_string(), "it is a socket, not a file or a pipe");
}

#[test]
fn a_file_is_read_up_to_a_limit() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "0123456789").unwrap();
    assert_eq!(read(file.path(), 10).unwrap(), b"0123456789");
    assert_eq!(read(file.path(), 9).unwrap_err().to_string(), "it is larger than 9 bytes");
    assert_eq!(open(Path::new("no such file")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn a_pipe_is_waited_for_and_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = fifo(folder.path());
    let writer = path.clone();
    let writing = thread::spawn(move || {
        let mut pipe = OpenOptions::new().write(true).open(writer).unwrap();
        for _ in 0..3 {
            pipe.write_all(&[b'x'; 100_000]).unwrap();
        }
    });
    assert_eq!(read(&path, 1 << 20).unwrap().len(), 300_000);
    writing.join().unwrap();
}

#[test]
fn a_pipe_whose_writer_left_without_a_word_is_empty() {
    let (reading, writing) = rustix::pipe::pipe().unwrap();
    drop(writing);
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", reading.as_raw_fd());
    assert_eq!(read(Path::new(&path), 10).unwrap(), b"");
}
