//! The binary from outside: one module a command or a kind of fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bridge_in;
mod bridge_out;
mod client_faults;
mod conformance;
mod kills;
mod limits;
mod pairs;
mod help;
mod lockstep;
mod peers;
mod proxy;
mod recipes;
mod record;
mod redact;
mod schema;
mod sdk;
mod server_faults;
mod support;
mod web;
