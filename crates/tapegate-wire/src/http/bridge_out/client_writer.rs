//! Writes to the client: whole lines, in the order they were recorded.
//!
//! Tasks may be dropped at any await, so none of them writes by itself: the task that holds the
//! turn queues a whole line without waiting. A turn is granted only while the queue is short, so a
//! client that does not read stops us from reading the server.

use std::cell::{Cell, RefCell};

use tapegate_core::relay::{LineBuffer, PermittedMessage};
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::port::StreamPort;

/// How many bytes may be queued before the next turn is granted.
const DUE_BYTES_MAX: usize = 64 * 1024;

/// The queue of lines for the client.
pub(super) struct ClientWriter {
    port: StreamPort,
    due: RefCell<LineBuffer>,
    /// How many bytes have been taken out for writing and may be put back.
    writing: Cell<usize>,
    turn: Mutex<()>,
    /// Notified when bytes were written.
    wrote: Notify,
    /// Notified when queued bytes could not be written at once.
    work: Notify,
    broken: Cell<bool>,
}

/// The right to queue one or more lines.
pub(super) struct WriteTurn<'a> {
    client_writer: &'a ClientWriter,
    _guard: MutexGuard<'a, ()>,
}

impl ClientWriter {
    pub(super) fn new(port: StreamPort) -> Self {
        Self {
            port,
            due: RefCell::default(),
            writing: Cell::new(0),
            turn: Mutex::new(()),
            wrote: Notify::new(),
            work: Notify::new(),
            broken: Cell::new(false),
        }
    }

    /// Waits until a line may be queued.
    pub(super) async fn acquire(&self) -> WriteTurn<'_> {
        let guard = self.turn.lock().await;
        while self.due.borrow().unwritten_bytes() + self.writing.get() > DUE_BYTES_MAX
            && !self.broken.get()
        {
            self.wrote.notified().await;
        }
        WriteTurn { client_writer: self, _guard: guard }
    }

    /// Queues a line regardless of the queue's length.
    pub(super) fn enqueue(&self, message: PermittedMessage<'_>) {
        if self.broken.get() {
            return;
        }
        let mut due = self.due.borrow_mut();
        // Only if nothing is ahead of it: lines keep their order.
        let idle = due.unwritten_bytes() + self.writing.get() == 0;
        due.push(message);
        // Try to write at once; that saves waking the writer.
        if idle {
            match self.port.write_now(due.writable()) {
                Ok(count) => due.advance(count),
                Err(_) => self.broken.set(true),
            }
        }
        if due.unwritten_bytes() > 0 {
            self.work.notify_one();
        }
    }

    /// Writes queued lines until the client stops reading.
    pub(super) async fn run(&self) {
        loop {
            self.flush().await;
            if self.broken.get() {
                return;
            }
            self.work.notified().await;
        }
    }

    /// Writes everything that is queued.
    pub(super) async fn flush(&self) {
        while !self.broken.get() {
            // The bytes are taken out while they are written, so that more can be queued meanwhile.
            let piece = std::mem::take(&mut *self.due.borrow_mut());
            if piece.unwritten_bytes() == 0 {
                return;
            }
            self.writing.set(piece.unwritten_bytes());
            let mut unwritten = UnwrittenLines { client_writer: self, piece };
            match self.port.write(unwritten.piece.writable()).await {
                Ok(count) => unwritten.piece.advance(count),
                Err(_) => self.broken.set(true),
            }
            drop(unwritten);
            self.wrote.notify_waiters();
        }
    }

    /// Whether the client has stopped reading.
    pub(super) fn has_hung_up(&self) -> bool {
        self.broken.get() || self.port.has_hung_up()
    }
}

impl WriteTurn<'_> {
    /// Queues a line.
    pub(super) fn enqueue(&self, message: PermittedMessage<'_>) {
        self.client_writer.enqueue(message);
    }
}

/// Bytes being written. On drop, even when the write is cancelled, the rest goes back to the front
/// of the queue.
struct UnwrittenLines<'a> {
    client_writer: &'a ClientWriter,
    piece: LineBuffer,
}

impl Drop for UnwrittenLines<'_> {
    fn drop(&mut self) {
        self.client_writer.writing.set(0);
        if self.piece.unwritten_bytes() == 0 {
            return;
        }
        let mut due = self.client_writer.due.borrow_mut();
        let since = std::mem::replace(&mut *due, std::mem::take(&mut self.piece));
        due.append(&since);
    }
}
