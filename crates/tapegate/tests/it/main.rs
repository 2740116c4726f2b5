//! The binary from outside: one module a command or a kind of fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bridge_in;
mod proxy;
mod record;
mod redact;
mod web;
