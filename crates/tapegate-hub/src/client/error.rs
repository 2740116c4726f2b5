//! Errors between a shim and its hub.

use std::io;
use std::path::PathBuf;

/// Why a request to a hub failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The endpoint is not an `http://HOST:PORT` URL.
    #[error("`{0}` is not a valid hub address; expected http://HOST:PORT")]
    Endpoint(String),
    /// A name cannot be used in a path.
    #[error("`{0}` is not a valid name")]
    Name(String),
    /// The file with the token or the endpoint cannot be read.
    #[error("cannot read `{path}`: {source}")]
    File { path: PathBuf, source: io::Error },
    /// The connection was refused: no program listens there.
    #[error("no hub is listening at {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("the hub at {0} did not answer in time")]
    TimedOut(String),
    /// The connection broke.
    #[error("the connection to the hub broke: {0}")]
    Broken(String),
    /// A program listens there but cannot prove that it is the hub.
    #[error(
        "the service at http://{0} does not have this hub's token: another program uses the port, \
         the token file belongs to another hub, or the hub is an older version; restart the hub \
         and its shims"
    )]
    Unproven(String),
    /// The hub does not accept the token.
    #[error("the hub rejected the token")]
    Unauthorised,
    /// The hub refused the request and gave a reason.
    #[error("the hub refused the request ({status}): {message}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// The reason.
        message: String,
    },
    /// The answer cannot be understood.
    #[error("the hub's response is invalid: {0}")]
    Answer(String),
}

impl ClientError {
    /// Whether the hub is gone, as opposed to slow or refusing.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unproven(_))
    }
}
