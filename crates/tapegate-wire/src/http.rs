//! HTTP towards the client, the server, or both.
//!
//! Supports Streamable HTTP of every revision and the older HTTP+SSE transport. Between two HTTP
//! peers the proxy is transparent: it inspects traffic and changes only what belongs to the
//! connection. Between HTTP and pipes, a bridge takes the place of the missing HTTP peer.

/// Serves HTTP clients from MCP servers on pipes.
pub mod bridge_in;
/// Connects a client on pipes to a server over HTTP.
pub mod bridge_out;
/// Decides which requests may use a listener.
pub mod guard;
/// Accepts and serves client connections.
pub mod listen;
/// A transparent HTTP proxy.
pub mod proxy;
/// Decides whether a gated listener accepts an HTTP request, by its head and body alone.
pub mod request_check;
/// The state shared by all exchanges of one recording.
pub mod station;
/// The HTTP client for a server.
pub mod upstream;

pub(crate) mod body;
mod cord;
mod field;
mod headers;
mod intake;
mod outbound;
mod params;
mod redirect;
mod serve;
mod terms;
mod turn_away;

pub use body::{BrokenBody, Chunk, Collected, Pieces, ReplyBody};
pub use intake::{BodyBudget, IntakeError, RETRY_AFTER_S, UnreadBody, collect_request, linger};
pub use outbound::Outbound;
pub use serve::serve;
pub use station::{Station, Stopped};
