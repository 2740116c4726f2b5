//! The binary from outside: one module a command or a kind of fault.

mod lockstep;
mod proxy;
mod recipes;
mod record;
mod redact;
mod schema;
mod web;
