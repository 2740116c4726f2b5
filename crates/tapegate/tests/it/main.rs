//! The binary from outside: one module a command or a kind of fault.

mod conformance;
mod peers;
mod proxy;
mod record;
mod redact;
mod sdk;
mod web;
