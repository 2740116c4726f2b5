//! The way out to the client: whole lines, in the order they were recorded.
//!
//! Exchanges may be dropped at any moment, so none of them writes by itself: a line is handed
//! over as a whole, without waiting, by whoever has the turn. A turn is given only while little
//! is due, so a client that does not read stops the server from being read.

use std::cell::{Cell, RefCell};

use tapegate_core::relay::{LineBuffer, Permitted};
use tokio::sync::{Mutex, MutexGuard, Notify};

use crate::port::Port;

/// How much may be due before the next turn is given.
const DUE_BYTES_MAX: usize = 64 * 1024;

/// The client's reading end.
pub(super) struct Outlet {
    port: Port,
    due: RefCell<LineBuffer>,
    /// How many bytes have been taken out to be written and may come back.
    writing: Cell<usize>,
    turn: Mutex<()>,
    /// Something was written.
    wrote: Notify,
    /// Something is due that could not be written at once.
    work: Notify,
    broken: Cell<bool>,
}

/// The right to say one or more lines.
pub(super) struct Turn<'a> {
    outlet: &'a Outlet,
    _guard: MutexGuard<'a, ()>,
}

impl Outlet {
    pub(super) fn new(port: Port) -> Self {
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

    /// Waits until a line may be said.
    pub(super) async fn turn(&self) -> Turn<'_> {
        let guard = self.turn.lock().await;
        while self.due.borrow().left() + self.writing.get() > DUE_BYTES_MAX && !self.broken.get() {
            self.wrote.notified().await;
        }
        Turn { outlet: self, _guard: guard }
    }

    /// Makes a line due, whatever else is.
    pub(super) fn say(&self, message: Permitted<'_>) {
        if self.broken.get() {
            return;
        }
        let mut due = self.due.borrow_mut();
        let idle = due.left() + self.writing.get() == 0;
        due.push(message);
        // What can be written at once needs nobody to be woken.
        if idle {
            match self.port.write_now(due.cleared()) {
                Ok(count) => due.advance(count),
                Err(_) => self.broken.set(true),
            }
        }
        if due.left() > 0 {
            self.work.notify_one();
        }
    }

    /// Writes what is due, until nobody reads any more.
    pub(super) async fn run(&self) {
        loop {
            self.flush().await;
            if self.broken.get() {
                return;
            }
            self.work.notified().await;
        }
    }

    /// Writes everything that is due.
    pub(super) async fn flush(&self) {
        while !self.broken.get() {
            // The bytes are taken out while they are written, so that more can be said meanwhile.
            let piece = std::mem::take(&mut *self.due.borrow_mut());
            if piece.left() == 0 {
                return;
            }
            self.writing.set(piece.left());
            let mut unwritten = Unwritten { outlet: self, piece };
            match self.port.write(unwritten.piece.cleared()).await {
                Ok(count) => unwritten.piece.advance(count),
                Err(_) => self.broken.set(true),
            }
            drop(unwritten);
            self.wrote.notify_waiters();
        }
    }

    /// Whether nobody can read what is written any more.
    pub(super) fn has_hung_up(&self) -> bool {
        self.broken.get() || self.port.has_hung_up()
    }
}

impl Turn<'_> {
    /// Makes a line due.
    pub(super) fn say(&self, message: Permitted<'_>) {
        self.outlet.say(message);
    }
}

/// Bytes that are being written; what is left of them goes back in front of what is due, even if
/// the writing is given up.
struct Unwritten<'a> {
    outlet: &'a Outlet,
    piece: LineBuffer,
}

impl Drop for Unwritten<'_> {
    fn drop(&mut self) {
        self.outlet.writing.set(0);
        if self.piece.left() == 0 {
            return;
        }
        let mut due = self.outlet.due.borrow_mut();
        let since = std::mem::replace(&mut *due, std::mem::take(&mut self.piece));
        due.append(&since);
    }
}
