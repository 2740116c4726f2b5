//! A descriptor that never blocks us, and whose flags are never changed.
//!
//! Standard input and output are shared with the process that started us: making them non-blocking
//! would affect the shell or the agent too, and persist after a kill -9. Instead, sockets are used
//! with per-call non-blocking flags, and pipes and terminals are reopened to get our own file
//! description. Where that is not permitted, calls are made only after `poll` reports that they
//! cannot block.

mod line_reader;
mod read_status;
mod writable;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::net::{RecvFlags, SendFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::raw;
pub(crate) use line_reader::{LineReader, ReceivedLine};
pub use writable::{OriginatedBytes, WritableBytes};

/// How much a blocking pipe certainly accepts after `poll` reported it writable.
const SURE_BYTES: usize = 4096;

/// Reports that the peer of a socket has stopped writing, where the system supports it.
#[cfg(target_os = "linux")]
const PEER_SHUT: PollFlags = PollFlags::RDHUP;
#[cfg(not(target_os = "linux"))]
const PEER_SHUT: PollFlags = PollFlags::empty();

/// One direction of a stream.
#[derive(Debug)]
pub struct StreamPort {
    how: AccessMode,
    /// Whether a short read means that it is empty. A terminal returns one line at a time.
    gives_all: bool,
    is_pipe: bool,
    fd: PortDescriptor,
}

#[derive(Debug)]
enum PortDescriptor {
    /// The runtime reports when it is ready.
    Watched(AsyncFd<OwnedFd>),
    /// A regular file or the like, which is always ready.
    Ready(OwnedFd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AccessMode {
    /// Our own non-blocking file description, or a file.
    Own,
    /// A socket, used with per-call non-blocking flags.
    Socket,
    /// A blocking file description shared with other processes.
    Shared,
}

impl StreamPort {
    /// A port for reading from a descriptor that may be shared.
    pub fn reader(fd: OwnedFd) -> io::Result<Self> {
        Self::from_shared(fd, Interest::READABLE, OpenOptions::new().read(true))
    }

    /// A port for writing to a descriptor that may be shared.
    pub fn writer(fd: OwnedFd) -> io::Result<Self> {
        Self::from_shared(fd, Interest::WRITABLE, OpenOptions::new().write(true))
    }

    /// A port for a non-blocking descriptor that is ours alone.
    pub fn from_own_descriptor(fd: OwnedFd, interest: Interest) -> io::Result<Self> {
        let ready = raw::watch(fd, interest).map_err(|(_, error)| error)?;
        let (how, fd) = (AccessMode::Own, PortDescriptor::Watched(ready));
        Ok(Self { how, gives_all: true, is_pipe: false, fd })
    }

    /// A pipe within the process: bytes written to the second port are read from the first.
    pub fn pair() -> io::Result<(Self, Self)> {
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let reader = Self::from_own_descriptor(reader, Interest::READABLE)?;
        Ok((reader, Self::from_own_descriptor(writer, Interest::WRITABLE)?))
    }

    fn from_shared(fd: OwnedFd, interest: Interest, options: &OpenOptions) -> io::Result<Self> {
        let sort = FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode);
        let (how, fd) = match sort {
            FileType::Socket => (AccessMode::Socket, fd),
            // A reopened description is ours alone, so its flags can be set
            // (docs/decisions/flags-are-never-touched.md).
            FileType::Fifo | FileType::CharacterDevice => match reopen(&fd, options.clone()) {
                Ok(own) => (AccessMode::Own, own),
                Err(_) => (AccessMode::Shared, fd),
            },
            _ => return Ok(Self::file(fd)),
        };
        // Some devices, such as /dev/null, cannot be polled and never block.
        match raw::watch(fd, interest) {
            Ok(ready) => {
                let gives_all = sort != FileType::CharacterDevice;
                let is_pipe = sort == FileType::Fifo;
                Ok(Self { how, gives_all, is_pipe, fd: PortDescriptor::Watched(ready) })
            }
            Err((fd, error)) if error.kind() == io::ErrorKind::PermissionDenied => {
                Ok(Self::file(fd))
            }
            Err((_, error)) => Err(error),
        }
    }

    fn file(fd: OwnedFd) -> Self {
        Self {
            how: AccessMode::Own,
            gives_all: true,
            is_pipe: false,
            fd: PortDescriptor::Ready(fd),
        }
    }

    /// Reads once there is something to read. 0 means the end.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let PortDescriptor::Watched(ready) = &self.fd else { return self.try_read(buffer) };
        loop {
            let mut guard = ready.readable().await?;
            match guard.try_io(|_| self.try_read(buffer)) {
                Ok(Ok(count)) => {
                    // A short read has emptied the pipe: the next wait needs no failing call first.
                    // A full buffer may mean that more is there. A count of 0 is the end, which
                    // must stay readable.
                    if count < buffer.len() && count > 0 && self.gives_all {
                        guard.clear_ready();
                    }
                    return Ok(count);
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Err(error),
                Err(_) => {}
            }
        }
    }

    /// Writes some of `bytes` without waiting; 0 means that there is no room.
    pub fn write_now<'a>(&self, bytes: impl Into<WritableBytes<'a>>) -> io::Result<usize> {
        let bytes = bytes.into().bytes();
        loop {
            match self.try_write(bytes) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Unlike `write`, this must not wait: the caller has other work, and `step` writes
                // the rest.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                Err(error) => return Err(error),
            }
        }
    }

    /// Writes some of `bytes` once there is room.
    pub async fn write<'a>(&self, bytes: impl Into<WritableBytes<'a>>) -> io::Result<usize> {
        let bytes = bytes.into().bytes();
        let PortDescriptor::Watched(ready) = &self.fd else { return self.try_write(bytes) };
        loop {
            let mut guard = ready.writable().await?;
            match guard.try_io(|_| self.try_write(bytes)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return done,
                Err(_) => {}
            }
        }
    }

    fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.how {
            AccessMode::Socket => Ok(rustix::net::recv(self.fd(), buffer, RecvFlags::DONTWAIT)?.0),
            // The description may block, and a blocked read would stop both directions. `poll` says
            // it cannot.
            AccessMode::Shared if self.poll(PollFlags::IN)?.is_empty() => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            AccessMode::Own | AccessMode::Shared => Ok(rustix::io::read(self.fd(), buffer)?),
        }
    }

    fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self.how {
            AccessMode::Socket => {
                let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
                Ok(rustix::net::send(self.fd(), bytes, flags)?)
            }
            AccessMode::Shared if self.poll(PollFlags::OUT)?.is_empty() => {
                Err(io::ErrorKind::WouldBlock.into())
            }
            AccessMode::Shared => {
                // A longer write could block after the pipe has taken its first part.
                Ok(rustix::io::write(self.fd(), &bytes[..bytes.len().min(SURE_BYTES)])?)
            }
            AccessMode::Own => Ok(rustix::io::write(self.fd(), bytes)?),
        }
    }

    /// Whether a read would return at once.
    pub fn is_readable(&self) -> bool {
        self.poll(PollFlags::IN).is_ok_and(|flags| flags.contains(PollFlags::IN))
    }

    /// Whether the reader of this port is gone.
    pub fn has_hung_up(&self) -> bool {
        let gone = PollFlags::ERR | PollFlags::HUP;
        self.poll(PollFlags::empty()).is_ok_and(|flags| flags.intersects(gone))
    }

    /// Whether nothing more will be written to this stream: its writer is gone, or it is a file.
    /// Unread bytes may remain.
    pub fn has_ended(&self) -> bool {
        if let PortDescriptor::Ready(_) = self.fd {
            return true;
        }
        let ended = PollFlags::HUP | PollFlags::ERR | PEER_SHUT;
        // HUP and ERR are reported without being asked for.
        self.poll(PEER_SHUT).is_ok_and(|flags| flags.intersects(ended))
    }

    fn poll(&self, flags: PollFlags) -> io::Result<PollFlags> {
        let fd = self.fd();
        let mut fds = [PollFd::new(&fd, flags)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(fds[0].revents())
    }

    fn fd(&self) -> impl AsFd {
        match &self.fd {
            PortDescriptor::Watched(ready) => ready.get_ref().as_fd(),
            PortDescriptor::Ready(fd) => fd.as_fd(),
        }
    }
}

/// Reopens a pipe or terminal to get our own file description.
fn reopen(fd: &OwnedFd, mut options: OpenOptions) -> io::Result<OwnedFd> {
    // Opening a terminal must not make it our controlling terminal.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    options.custom_flags(flags).open(path).map(File::into)
}
