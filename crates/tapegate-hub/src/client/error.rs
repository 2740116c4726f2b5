//! What can go wrong between a shim and its hub.

use std::io;
use std::path::PathBuf;

/// Why a hub has not answered.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The endpoint makes no sense.
    #[error("`{0}` is no address of a hub; expected http://HOST:PORT")]
    Endpoint(String),
    /// A name cannot stand in a path.
    #[error("`{0}` is no name")]
    Name(String),
    /// The token, or where the hub is, cannot be read.
    #[error("cannot read `{path}`: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Nobody listens there.
    #[error("no hub listens at {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("the hub at {0} did not answer in time")]
    TimedOut(String),
    /// The connection broke.
    #[error("the connection to the hub broke: {0}")]
    Broken(String),
    /// Somebody listens there who cannot show that it is the hub.
    #[error(
        "what answers at http://{0} does not hold this hub's token: another program took its port, \
         the token file is another hub's, or the hub is of an older version; restart hub and shims"
    )]
    Unproven(String),
    /// The token is not the hub's.
    #[error("the hub does not know the token")]
    Unauthorised,
    /// It refused, and said why.
    #[error("the hub refused ({status}): {words}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Why.
        words: String,
    },
    /// What it said makes no sense.
    #[error("the hub's answer makes no sense: {0}")]
    Answer(String),
}

impl ClientError {
    /// Whether there is no hub any more, as opposed to one that is slow or objects.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Unproven(_))
    }
}
