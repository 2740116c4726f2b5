//! Bytes after a good line of the overwatch dialect.
#![no_main]

#[path = "../tape_round_trip.rs"]
mod tape_round_trip;

use libfuzzer_sys::fuzz_target;

const FIRST: &[u8] =
    b"{\"ts\":\"2026-01-01T00:00:00Z\",\"direction\":\"client_to_server\",\"parsed\":{}}\n";

fuzz_target!(|bytes: &[u8]| tape_round_trip::check(FIRST, bytes));
