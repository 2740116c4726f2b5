//! The binary from outside: one module a command or a kind of fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod proxy;
mod record;
mod redact;
mod web;
