//! The binary from outside: one module a command or a kind of fault.

mod conformance;
mod peers;
mod record;
mod sdk;
