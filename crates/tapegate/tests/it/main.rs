//! The binary from outside: one module a command or a kind of fault.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod approvals;
mod attacks;
mod bridge_in;
mod bridge_out;
mod check;
mod client_faults;
mod completions;
mod conformance;
mod convert;
mod demo;
mod examples;
mod generate;
mod governed;
mod help;
mod hub;
mod init;
mod kills;
mod limits;
mod lockstep;
mod log;
mod man;
mod pairs;
mod peers;
mod policy;
mod proxy;
mod proxy_limits;
mod recipes;
mod record;
mod redact;
mod replay;
mod reports;
mod scenario_faults;
mod schema;
mod sdk;
mod sdk_replay;
mod serve;
mod server_faults;
mod shim;
mod support;
mod tape;
mod tape_faults;
mod tidy;
mod verify;
mod web;
