//! Bytes behind a good line of the thoughtjack dialect.
#![no_main]

#[path = "../rewrite.rs"]
mod rewrite;

use libfuzzer_sys::fuzz_target;

const FIRST: &[u8] = b"{\"type\":\"message\",\"seq\":1,\"ts\":\"2026-01-01T00:00:00Z\",\"dir\":\"c2s\",\"msg\":{}}\n";

fuzz_target!(|bytes: &[u8]| rewrite::check(FIRST, bytes));
