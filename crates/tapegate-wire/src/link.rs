//! A connection to a live server from within the process.
//!
//! Every server appears as a server on pipes: a process has them already, and a bridge that acts as
//! the HTTP client provides them for a server over HTTP. Ending a link leaves nothing behind.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::child::{ServerPipes, ServerProcess, SpawnError};
use crate::clock::Clock;
use crate::http::upstream::{self, UpstreamError};
use crate::http::{SharedSession, bridge_out};
use crate::port::{LineReader, OriginatedBytes, StreamPort};
use crate::recorded_session::RecordedSession;
use crate::server_end::{BridgeTask, ServerEnd, ServerOutcome};
use crate::signals::Signals;
use crate::stdio::{ClientPorts, EXIT_STATUS_WAIT, LINGER, ShutdownTimeouts};

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum LinkTarget {
    /// A program and its arguments.
    Command(Vec<String>),
    /// A server reached over HTTP.
    Http {
        url: String,
        /// Headers of all requests, each as `Name: value`.
        headers: Vec<String>,
    },
}

#[derive(Clone)]
pub struct LinkOptions {
    /// The largest message that passes over HTTP; on pipes, the reader enforces the limit.
    pub message_bytes_max: usize,
    /// How long a server may take to exit.
    pub patience: ShutdownTimeouts,
    /// Receives messages for the user.
    pub notice: Rc<dyn Fn(&str)>,
}

/// A live server. Dropping it ends the server at once.
pub(crate) struct ServerLink {
    server: ServerEnd,
    patience: ShutdownTimeouts,
    /// How long an exit status is waited for after the output has ended.
    news_until: Option<Instant>,
}

/// Why a link could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The program could not be started.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// The URL or a header is not valid.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The pipes to the bridge could not be created.
    #[error("cannot create a pipe: {0}")]
    Pipe(#[from] io::Error),
}

impl LinkTarget {
    /// Checks that a link could be opened, so that a misspelt command or URL is reported early.
    pub fn check_reachable(&self) -> Result<(), LinkError> {
        match self {
            Self::Command(argv) => Ok(ServerProcess::check_executable(argv)?),
            Self::Http { url, headers } => Ok(upstream::HttpUpstream::new(url, headers).map(drop)?),
        }
    }
}

impl ServerLink {
    /// Starts a server, or a bridge to one, which needs a `LocalSet`. A server over HTTP is
    /// contacted with the first message; if it is unreachable, the bridge answers with errors.
    fn open(
        upstream: &LinkTarget,
        options: &LinkOptions,
    ) -> Result<(Self, ServerPipes), LinkError> {
        let (mut server, pipes) = match upstream {
            LinkTarget::Command(argv) => {
                let (child, pipes) = ServerProcess::spawn(argv)?;
                (ServerEnd::Process(Box::new(child)), pipes)
            }
            LinkTarget::Http { url, headers } => {
                bridge(upstream::HttpUpstream::new(url, headers)?, options)?
            }
        };
        // The server must not outlive us, however early we are killed.
        server.wait_for_reaper();
        Ok((Self { server, patience: options.patience, news_until: None }, pipes))
    }

    /// Why the output of the server has ended.
    pub(crate) async fn end_reason(&mut self) -> String {
        if let ServerEnd::Http(_) = self.server {
            return "the connection to the MCP server has ended".to_owned();
        }
        // Set once: a caller that asks again must not wait again.
        let until = *self.news_until.get_or_insert_with(|| Instant::now() + EXIT_STATUS_WAIT);
        match self.server.exit_status(until).await {
            Some(status) => format!("the MCP server ended ({status})"),
            None => "the MCP server closed its output".to_owned(),
        }
    }

    /// Ends the server, which has `grace` to exit by itself. Its pipes must be closed.
    pub(crate) async fn shutdown(mut self, grace: Duration) -> ServerOutcome {
        self.server.shutdown(grace, self.patience.after_term).await
    }
}

/// A link, and what is sent and received over it.
pub(crate) struct LinkStream {
    pub(crate) link: ServerLink,
    /// The server's input, until it stops reading.
    pub(crate) input: Option<StreamPort>,
    pub(crate) output: LineReader,
    /// When to stop reading the output even if it is open: the server has exited or stopped
    /// reading.
    deadline: Option<Instant>,
}

/// What happened on a link.
pub(crate) enum LinkEvent {
    /// There is more output, or it has ended (false).
    Read(bool),
    /// The server has read this many bytes.
    Wrote(usize),
    /// The server has stopped reading.
    Deaf,
}

impl LinkStream {
    /// Opens a link.
    pub(crate) fn open(upstream: &LinkTarget, options: &LinkOptions) -> Result<Self, LinkError> {
        let (link, ServerPipes { input, output }) = ServerLink::open(upstream, options)?;
        let output = LineReader::new(output, options.message_bytes_max);
        Ok(Self { link, input: Some(input), output, deadline: None })
    }

    /// Waits until there is output, if it `reads`, or the server has read some of `unwritten`.
    pub(crate) async fn next_event(
        &mut self,
        unwritten: OriginatedBytes<'_>,
        reads: bool,
    ) -> LinkEvent {
        loop {
            let Self { link, input, output, deadline } = self;
            let write = async {
                match input {
                    Some(input) => input.write(unwritten).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                // Received data is handled before deadlines.
                biased;
                is_more = output.read(), if reads => return LinkEvent::Read(is_more),
                written = write, if !unwritten.is_empty() => {
                    let Ok(count) = written else {
                        self.stop_writing();
                        return LinkEvent::Deaf;
                    };
                    return LinkEvent::Wrote(count);
                }
                () = link.server.exited(), if deadline.is_none() => self.wait_for_exit(),
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() && reads => {
                    return LinkEvent::Read(false);
                }
            }
        }
    }

    /// Closes the input of a server that does not read it.
    pub(crate) fn stop_writing(&mut self) {
        self.input = None;
        self.wait_for_exit();
    }

    /// Ends the server, which has `grace` to exit by itself. Until then, its output is read and
    /// discarded: a server that writes to a closed pipe would die, and complain to the user.
    pub(crate) async fn drain_and_shutdown(mut self, grace: Duration) -> ServerOutcome {
        self.stop_writing();
        let Self { link, mut output, .. } = self;
        let mut shutdown = std::pin::pin!(link.shutdown(grace));
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                ended = &mut shutdown => return ended,
                is_more = output.read(), if is_open => is_open = is_more,
            }
            while output.next_line(false).is_some() {}
        }
    }

    /// Closes the pipes.
    pub(crate) fn close(self) -> ServerLink {
        self.link
    }

    fn wait_for_exit(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + LINGER);
    }
}

/// A bridge to a server over HTTP that records nothing.
fn bridge(
    server: upstream::HttpUpstream,
    options: &LinkOptions,
) -> io::Result<(ServerEnd, ServerPipes)> {
    let (from_us, input) = StreamPort::pair()?;
    let (output, to_us) = StreamPort::pair()?;
    // What passes here is recorded by the caller, if at all.
    let shared_session = SharedSession::new(
        RecordedSession::without_recording(Clock::start()),
        options.message_bytes_max,
    );
    let client = ClientPorts { input: from_us, output: to_us };
    let notice = Rc::clone(&options.notice);
    let session = bridge_out::run(
        shared_session,
        client,
        server,
        Signals::never(),
        options.patience,
        Box::new(move |message| notice(message)),
    );
    let task = tokio::task::spawn_local(session);
    Ok((ServerEnd::Http(BridgeTask(task)), ServerPipes { input, output }))
}
