//! The binary from outside: one module a command or a kind of fault.

mod proxy;
mod record;
mod redact;
mod web;
