//! The service from outside, over real sockets and with the real client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod evaluation;
mod hub_identity;
mod openapi;
mod otlp;
mod shim_client;
mod slow_clients;
mod support;
mod tasks;
