//! A connection to a live server from within the process.
//!
//! Every server appears as a server on pipes: a process has them already, and a bridge that acts as
//! the HTTP client provides them for a server over HTTP. Ending a link leaves nothing behind.

use std::io;
use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use crate::child::{ServerPipes, ServerProcess, SpawnError};
use crate::clock::Clock;
use crate::http::upstream::{self, UpstreamError};
use crate::http::{SharedSession, bridge_out};
use crate::port::{LineReader, OriginatedBytes, StreamPort};
use crate::recorded_session::RecordedSession;
use crate::signals::Signals;
use crate::stdio::{
    ClientPorts, EXIT_STATUS_WAIT, EndCause, LINGER, SessionOutcome, ShutdownTimeouts,
};

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum LinkTarget {
    /// A program and its arguments.
    Command(Vec<String>),
    /// A server reached over HTTP.
    Http {
        /// Its URL.
        url: String,
        /// Headers for every request, each as `Name: value`.
        headers: Vec<String>,
    },
}

/// The options of a link.
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
pub struct ServerLink {
    life: LinkKind,
    patience: ShutdownTimeouts,
    /// How long an exit status is waited for after the output has ended.
    news_until: Option<Instant>,
}

enum LinkKind {
    Process(Box<ServerProcess>),
    /// The bridge to a server over HTTP.
    Bridge(JoinHandle<SessionOutcome>),
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
    pub fn open(
        upstream: &LinkTarget,
        options: &LinkOptions,
    ) -> Result<(Self, ServerPipes), LinkError> {
        let (life, pipes) = match upstream {
            LinkTarget::Command(argv) => {
                let (mut child, pipes) = ServerProcess::spawn(argv)?;
                // The server must not outlive us, however early we are killed (invariant 8).
                child.wait_for_reaper();
                (LinkKind::Process(Box::new(child)), pipes)
            }
            LinkTarget::Http { url, headers } => {
                bridge(upstream::HttpUpstream::new(url, headers)?, options)?
            }
        };
        Ok((Self { life, patience: options.patience, news_until: None }, pipes))
    }

    /// Waits until the server has exited by itself. A server over HTTP never does.
    pub async fn exited(&mut self) {
        match &mut self.life {
            // An error means that the process cannot be waited for, and no more can be learned.
            LinkKind::Process(child) => drop(child.exited().await),
            // It has no process; a lost connection is answered by errors of the bridge.
            LinkKind::Bridge(_) => std::future::pending().await,
        }
    }

    /// Why the output of the server has ended.
    pub async fn end_reason(&mut self) -> String {
        // Set once: a caller that asks again must not wait again.
        let until = *self.news_until.get_or_insert_with(|| Instant::now() + EXIT_STATUS_WAIT);
        match &mut self.life {
            LinkKind::Process(child) => {
                // If the server exits right after closing its output, its status tells more.
                match tokio::time::timeout_at(until, child.exited()).await {
                    Ok(Ok(status)) => format!("the MCP server ended ({status})"),
                    _ => "the MCP server closed its output".to_owned(),
                }
            }
            LinkKind::Bridge(_) => "the connection to the MCP server has ended".to_owned(),
        }
    }

    /// Ends the server, which has `grace` to exit by itself. Its pipes must be closed. Returns how
    /// its process has ended, or why it was never reached.
    pub async fn shutdown(mut self, grace: Duration) -> LinkEnd {
        let after_term = self.patience.after_term;
        match &mut self.life {
            LinkKind::Process(child) => {
                LinkEnd { status: child.shutdown(grace, after_term).await.ok(), unreachable: None }
            }
            LinkKind::Bridge(task) => {
                // The bridge ends by itself within these times. If it does not, dropping the link
                // aborts it.
                let ended = tokio::time::timeout(grace + after_term, task).await;
                let unreachable = match ended {
                    Ok(Ok(SessionOutcome { cause: EndCause::Unreachable(reason), .. })) => {
                        Some(reason)
                    }
                    _ => None,
                };
                LinkEnd { status: None, unreachable }
            }
        }
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
                () = link.exited(), if deadline.is_none() => self.wait_for_exit(),
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

    /// Closes the pipes.
    pub(crate) fn close(self) -> ServerLink {
        self.link
    }

    fn wait_for_exit(&mut self) {
        self.deadline.get_or_insert_with(|| Instant::now() + LINGER);
    }
}

/// How a link has ended.
#[derive(Debug)]
pub struct LinkEnd {
    /// How the server's process has ended.
    pub status: Option<ExitStatus>,
    /// Why a server over HTTP was never reached, if that was attempted.
    pub unreachable: Option<String>,
}

impl Drop for ServerLink {
    fn drop(&mut self) {
        // A process kills its group when it is dropped.
        if let LinkKind::Bridge(task) = &self.life {
            task.abort();
        }
    }
}

/// A bridge to a server over HTTP that records nothing.
fn bridge(
    server: upstream::HttpUpstream,
    options: &LinkOptions,
) -> io::Result<(LinkKind, ServerPipes)> {
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
    Ok((LinkKind::Bridge(task), ServerPipes { input, output }))
}
