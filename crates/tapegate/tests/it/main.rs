//! The binary from outside: one module a command or a kind of fault.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client_faults;
mod record;
mod server_faults;
mod support;
