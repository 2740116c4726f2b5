//! The gate as its users see it: policies as text, messages as bytes, verdicts.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bypasses;
mod lists;
mod matrix;
mod pins;
mod properties;
mod readers;
mod relayed;
mod rig;
mod sessions;
