//! The binary from outside: one module a command or a kind of fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod client_faults;
mod conformance;
mod peers;
mod proxy;
mod record;
mod redact;
mod sdk;
mod server_faults;
mod support;
mod web;
