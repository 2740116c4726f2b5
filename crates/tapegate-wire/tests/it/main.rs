//! The wire, tested with real pipes and, almost everywhere, real time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bridge_gate;
mod endpoint;
mod handler_calls;
mod http_actor_host;
mod http_actor_sessions;
mod http_peers;
mod http_raw_output;
mod json_rpc_actor;
mod legacy_clients;
mod many_clients;
mod passthrough;
mod proxy_gate;
#[cfg(debug_assertions)]
mod scan_counts;
mod scripted_actor;
mod session_time;
mod stdio_actor_host;
mod stdio_actor_sessions;
mod stdio_gate;
mod stdio_raw_output;
mod stream_resumption;
mod waiting;
mod word_gate;
