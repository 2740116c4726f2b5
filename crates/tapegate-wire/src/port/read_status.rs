//! Whether the other end has read what was written.

use super::{AccessMode, StreamPort};
use crate::raw;

impl StreamPort {
    /// Whether the other end has read everything written here. True where that cannot be
    /// determined.
    pub fn is_read(&self) -> bool {
        self.unread_bytes().is_none_or(|count| count == 0)
    }

    /// How much is written but not read. Only zero is meaningful: a socket counts the memory used,
    /// not bytes.
    fn unread_bytes(&self) -> Option<u64> {
        match self.how {
            AccessMode::Socket => raw::unread_on_socket(self.fd()).ok(),
            // FIONREAD on the write end of a pipe counts the bytes that the reader has not taken.
            AccessMode::Own | AccessMode::Shared if self.is_pipe => {
                rustix::io::ioctl_fionread(self.fd()).ok()
            }
            AccessMode::Own | AccessMode::Shared => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use super::super::{OriginatedBytes, StreamPort};

    fn is_read_once_it_was(writer: OwnedFd, mut reader: impl Read) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _inside = runtime.enter();
        let port = StreamPort::writer(writer).unwrap();
        assert!(port.is_read());
        for text in [&b"one"[..], b"two and more"] {
            assert_eq!(port.write_now(OriginatedBytes::from_endpoint(text)).unwrap(), text.len());
            assert!(!port.is_read());
            let mut buffer = vec![0; text.len()];
            reader.read_exact(&mut buffer[1..]).unwrap();
            assert!(!port.is_read(), "one byte is left");
            reader.read_exact(&mut buffer[..1]).unwrap();
            assert!(port.is_read());
        }
    }

    #[test]
    fn a_pipe_and_a_socket_tell_whether_they_were_read() {
        let (reader, writer) = std::io::pipe().unwrap();
        is_read_once_it_was(writer.into(), reader);
        let (reader, writer) = UnixStream::pair().unwrap();
        is_read_once_it_was(writer.into(), reader);
    }

    #[test]
    fn a_file_counts_as_read() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let _inside = runtime.enter();
        let port = StreamPort::writer(std::fs::File::create("/dev/null").unwrap().into()).unwrap();
        port.write_now(OriginatedBytes::from_endpoint(b"text")).unwrap();
        assert!(port.is_read());
    }
}
