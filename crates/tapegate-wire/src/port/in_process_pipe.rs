//! A stream within the process: without descriptors or system calls, bounded like a pipe.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, Read};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// How much it holds before its writer waits.
const ROOM_BYTES: usize = 64 * 1024;
/// The capacity an empty one keeps: there may be many, and most are idle.
const KEPT_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
struct InProcessPipe {
    bytes: VecDeque<u8>,
    reader: PipeHalf,
    writer: PipeHalf,
}

#[derive(Debug, Default)]
struct PipeHalf {
    gone: bool,
    waker: Option<Waker>,
}

/// The reading end.
#[derive(Debug)]
pub(super) struct InProcessReader(Rc<RefCell<InProcessPipe>>);

/// The writing end.
#[derive(Debug)]
pub(super) struct InProcessWriter(Rc<RefCell<InProcessPipe>>);

/// Creates a stream.
pub(super) fn pipe() -> (InProcessReader, InProcessWriter) {
    let pipe: Rc<RefCell<InProcessPipe>> = Rc::default();
    (InProcessReader(Rc::clone(&pipe)), InProcessWriter(pipe))
}

impl PipeHalf {
    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

impl InProcessReader {
    pub(super) async fn read(&self, buffer: &mut [u8]) -> usize {
        poll_fn(|context| {
            let pipe = &mut *self.0.borrow_mut();
            // Reading from memory cannot fail; a wrapped buffer needs a second read.
            let mut count = pipe.bytes.read(buffer).unwrap_or(0);
            count += pipe.bytes.read(&mut buffer[count..]).unwrap_or(0);
            if count == 0 && !pipe.writer.gone {
                return pipe.reader.wait(context);
            }
            // Empty pipes give memory back, because most sessions are idle.
            if pipe.bytes.is_empty() {
                pipe.bytes.shrink_to(KEPT_BYTES_MAX);
            }
            pipe.writer.wake();
            Poll::Ready(count)
        })
        .await
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.borrow().writer.gone
    }

    pub(super) fn is_readable(&self) -> bool {
        let pipe = self.0.borrow();
        pipe.writer.gone || !pipe.bytes.is_empty()
    }
}

impl InProcessWriter {
    pub(super) fn write_now(&self, bytes: &[u8]) -> io::Result<usize> {
        let pipe = &mut *self.0.borrow_mut();
        if pipe.reader.gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        // Bounded like a pipe of the kernel, so that a side that does not read is not read from
        // (invariant 6).
        let count = bytes.len().min(ROOM_BYTES - pipe.bytes.len());
        pipe.bytes.extend(&bytes[..count]);
        pipe.reader.wake();
        Ok(count)
    }

    pub(super) async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        poll_fn(|context| match self.write_now(bytes) {
            Ok(0) if !bytes.is_empty() => self.0.borrow_mut().writer.wait(context),
            done => Poll::Ready(done),
        })
        .await
    }

    pub(super) fn has_hung_up(&self) -> bool {
        self.0.borrow().reader.gone
    }
}

impl Drop for InProcessReader {
    fn drop(&mut self) {
        let pipe = &mut *self.0.borrow_mut();
        pipe.reader.gone = true;
        // The bytes cannot be read any longer, but the writer may live on for a long time.
        pipe.bytes = VecDeque::new();
        // A waiting writer must learn that it cannot continue.
        pipe.writer.wake();
    }
}

impl Drop for InProcessWriter {
    fn drop(&mut self) {
        let pipe = &mut *self.0.borrow_mut();
        pipe.writer.gone = true;
        pipe.reader.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::super::{OriginatedBytes, StreamPort};
    use super::*;

    fn said(bytes: &[u8]) -> OriginatedBytes<'_> {
        OriginatedBytes::from_endpoint(bytes)
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn everything_comes_out_as_it_went_in() {
        let (reader, writer) = StreamPort::pair();
        let sent: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
        let write = async {
            let mut rest = &sent[..];
            for size in (1..100_000).step_by(997).cycle() {
                let count = writer.write(said(&rest[..size.min(rest.len())])).await.unwrap();
                rest = &rest[count..];
                if rest.is_empty() {
                    break;
                }
            }
            drop(writer);
        };
        let read = async {
            let mut got = Vec::new();
            let mut buffer = vec![0; 1000];
            loop {
                match reader.read(&mut buffer).await.unwrap() {
                    0 => return got,
                    count => got.extend_from_slice(&buffer[..count]),
                }
            }
        };
        let ((), got) = runtime().block_on(async { tokio::join!(write, read) });
        assert!(got == sent);
    }

    #[test]
    fn it_takes_so_much_and_no_more_until_it_is_read() {
        let (reader, writer) = StreamPort::pair();
        assert_eq!(writer.write_now(said(&[1; 2 * ROOM_BYTES])).unwrap(), ROOM_BYTES);
        assert_eq!(writer.write_now(said(&[1])).unwrap(), 0);
        let mut buffer = [0; 10];
        assert_eq!(runtime().block_on(reader.read(&mut buffer)).unwrap(), 10);
        assert_eq!(writer.write_now(said(&[1; 20])).unwrap(), 10);
        assert!(reader.is_readable() && !writer.has_hung_up());
        drop(reader);
        assert!(writer.has_hung_up() && writer.write_now(said(&[1])).is_err());
    }

    #[test]
    fn whoever_waits_learns_that_the_other_end_is_gone() {
        let (reader, writer) = StreamPort::pair();
        let mut buffer = [0; 10];
        let (count, ()) = runtime()
            .block_on(async { tokio::join!(reader.read(&mut buffer), async { drop(writer) }) });
        assert_eq!(count.unwrap(), 0);
        let (reader, writer) = StreamPort::pair();
        writer.write_now(said(&[1; ROOM_BYTES])).unwrap();
        let (done, ()) = runtime()
            .block_on(async { tokio::join!(writer.write(said(&[1])), async { drop(reader) }) });
        assert!(done.is_err());
    }
}
