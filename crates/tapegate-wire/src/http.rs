//! HTTP towards the client, the server, or both.
//!
//! Supports Streamable HTTP of every revision and the older HTTP+SSE transport. Between two HTTP
//! peers the proxy is transparent: it inspects traffic and changes only what belongs to the
//! connection. Between HTTP and pipes, a bridge takes the place of the missing HTTP peer.

/// Serves HTTP clients from MCP servers on pipes.
pub mod bridge_in;
/// Connects a client on pipes to a server over HTTP.
pub mod bridge_out;
/// Accepts and serves client connections.
pub mod listener;
/// Decides which requests may use a listener.
pub mod origin_check;
/// A transparent HTTP proxy.
pub mod proxy;
/// Decides whether a gated listener accepts an HTTP request, by its head and body alone.
pub mod request_check;
/// The state shared by all exchanges of one recording.
pub mod shared_session;
/// The HTTP client for a server.
pub mod upstream;

pub(crate) mod body;
mod connection_handle;
mod connection_rejection;
mod exchange_trace;
mod header_value;
mod headers;
mod mirrored_params;
mod outbound;
mod pending_message;
mod redirect;
mod request_body;
mod request_headers;
mod server;

pub use body::{BrokenBody, Chunk, CollectedBody, PieceStream, ReplyBody};
pub use outbound::OutboundBytes;
pub use request_body::{
    BodyBudget, IntakeError, RETRY_AFTER_S, UnreadBody, collect_request, drain_in_background,
};
pub use server::serve;
pub use shared_session::{SessionStoppedError, SharedSession};
