//! The service from outside, over real sockets and with the real client.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod deciding;
mod joining;
mod openapi;
mod otlp;
mod proving;
mod slow;
mod support;
mod tasks;
