//! Bytes behind a good line of the overwatch dialect.
#![no_main]

#[path = "../rewrite.rs"]
mod rewrite;

use libfuzzer_sys::fuzz_target;

const FIRST: &[u8] = b"{\"ts\":\"2026-01-01T00:00:00Z\",\"direction\":\"client_to_server\",\"parsed\":{}}\n";

fuzz_target!(|bytes: &[u8]| rewrite::check(FIRST, bytes));
