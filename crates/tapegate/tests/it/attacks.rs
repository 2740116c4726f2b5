//! Attacks on the gate, one test a class, against real servers that keep what they did.
//!
//! Each test asserts that the denied tool did not run and that the refusal is in the activity log.

mod conversions;
mod http_bytes;
mod http_heads;
mod http_replies;
mod victim;
