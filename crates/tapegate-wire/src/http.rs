//! HTTP towards the client, the server, or both.
//!
//! Streamable HTTP of every revision and the older HTTP+SSE transport. Between two HTTP peers the
//! proxy is transparent: it reads along and changes nothing but what belongs to the connection.
//! Between HTTP and pipes it is a bridge, and plays the missing peer's part.

/// From HTTP clients to a server on pipes.
pub mod bridge_in;
/// From pipes to HTTP.
pub mod bridge_out;
/// Who may talk to a listener.
pub mod guard;
/// Waiting for clients.
pub mod listen;
/// From HTTP to HTTP, unchanged.
pub mod proxy;
/// Whether a governed listener takes an HTTP request, by its head and body alone.
pub mod request_check;
/// What all exchanges of one recording share.
pub mod station;
/// Talking to a server.
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
