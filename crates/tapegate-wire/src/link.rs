//! A connection to a live server from within the process.
//!
//! Every server appears as a server on pipes: a process has them already, and a bridge that acts as
//! the HTTP client provides them for a server over HTTP. Ending a link leaves nothing behind.

use std::process::ExitStatus;
use std::rc::Rc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::child::{Child, Pipes, SpawnError};
use crate::clock::Clock;
use crate::deck::Deck;
use crate::http::upstream::{self, UpstreamError};
use crate::http::{Station, bridge_out};
use crate::port::Port;
use crate::signals::Signals;
use crate::stdio::{Cause, ClientPorts, EXIT_NEWS, Outcome, Patience};

/// How to reach a server.
#[derive(Debug, Clone)]
pub enum Upstream {
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
    pub patience: Patience,
    /// Receives messages for the user.
    pub notice: Rc<dyn Fn(&str)>,
}

/// A live server. Dropping it ends the server at once.
pub struct Link {
    life: Life,
    patience: Patience,
    /// How long an exit status is waited for after the output has ended.
    news_until: Option<Instant>,
}

enum Life {
    Process(Box<Child>),
    /// The bridge to a server over HTTP.
    Bridge(JoinHandle<Outcome>),
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
}

impl Upstream {
    /// Checks that a link could be opened, so that a misspelt command or URL is reported early.
    pub fn look_for(&self) -> Result<(), LinkError> {
        match self {
            Self::Command(argv) => Ok(Child::look_for(argv)?),
            Self::Http { url, headers } => Ok(upstream::Upstream::new(url, headers).map(drop)?),
        }
    }
}

impl Link {
    /// Starts a server, or a bridge to one, which needs a `LocalSet`. A server over HTTP is
    /// contacted with the first message; if it is unreachable, the bridge answers with errors.
    pub fn open(upstream: &Upstream, options: &LinkOptions) -> Result<(Self, Pipes), LinkError> {
        let (life, pipes) = match upstream {
            Upstream::Command(argv) => {
                let (mut child, pipes) = Child::spawn(argv)?;
                child.guarded();
                (Life::Process(Box::new(child)), pipes)
            }
            Upstream::Http { url, headers } => {
                bridge(upstream::Upstream::new(url, headers)?, options)
            }
        };
        Ok((Self { life, patience: options.patience, news_until: None }, pipes))
    }

    /// Waits until the server has exited by itself. A server over HTTP never does.
    pub async fn exited(&mut self) {
        match &mut self.life {
            // An error means that the process cannot be waited for, and no more can be learned.
            Life::Process(child) => drop(child.exited().await),
            Life::Bridge(_) => std::future::pending().await,
        }
    }

    /// Why the output of the server has ended.
    pub async fn farewell(&mut self) -> String {
        let until = *self.news_until.get_or_insert_with(|| Instant::now() + EXIT_NEWS);
        match &mut self.life {
            Life::Process(child) => {
                // If the server exits right after closing its output, its status tells more.
                match tokio::time::timeout_at(until, child.exited()).await {
                    Ok(Ok(status)) => format!("the MCP server ended ({status})"),
                    _ => "the MCP server closed its output".to_owned(),
                }
            }
            Life::Bridge(_) => "the connection to the MCP server has ended".to_owned(),
        }
    }

    /// Ends the server, which has `grace` to exit by itself. Its pipes must be closed. Returns how
    /// its process has ended, or why it was never reached.
    pub async fn end(mut self, grace: Duration) -> Ended {
        let after_term = self.patience.after_term;
        match &mut self.life {
            Life::Process(child) => {
                Ended { status: child.end(grace, after_term).await.ok(), unreachable: None }
            }
            Life::Bridge(task) => {
                let ended = tokio::time::timeout(grace + after_term, task).await;
                let unreachable = match ended {
                    Ok(Ok(Outcome { cause: Cause::Unreachable(why), .. })) => Some(why),
                    _ => None,
                };
                Ended { status: None, unreachable }
            }
        }
    }
}

/// How a link has ended.
#[derive(Debug)]
pub struct Ended {
    /// How the server's process has ended.
    pub status: Option<ExitStatus>,
    /// Why a server over HTTP was never reached, if that was attempted.
    pub unreachable: Option<String>,
}

impl Drop for Link {
    fn drop(&mut self) {
        // A process kills its group when it is dropped.
        if let Life::Bridge(task) = &self.life {
            task.abort();
        }
    }
}

/// A bridge to a server over HTTP that records nothing.
fn bridge(server: upstream::Upstream, options: &LinkOptions) -> (Life, Pipes) {
    let (from_us, input) = Port::pair();
    let (output, to_us) = Port::pair();
    let station = Station::new(Deck::silent(Clock::start()), options.message_bytes_max);
    let client = ClientPorts { input: from_us, output: to_us };
    let notice = Rc::clone(&options.notice);
    let session = bridge_out::run(
        station,
        client,
        server,
        Signals::never(),
        options.patience,
        Box::new(move |words| notice(words)),
    );
    (Life::Bridge(tokio::task::spawn_local(session)), Pipes { input, output })
}
