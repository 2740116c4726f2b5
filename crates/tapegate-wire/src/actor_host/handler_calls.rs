//! Handler calls of an actor: HTTP requests to other servers, and programs to run.
//!
//! Each is a task of its session. It does not outlive the session, and a program leaves nothing of
//! its process group behind.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use tapegate_core::actor::{HandlerCall, HandlerTarget};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::child::{ProcessContext, ServerPipes, ServerProcess};
use crate::http::OutboundBytes;
use crate::http::body::{self, CollectedBody};
use crate::http::upstream::HttpUpstream;
use crate::port::{OriginatedBytes, StreamPort};

/// How many handler calls may run in a session before its client is not read from.
pub(super) const ERRANDS_MAX: usize = 64;
/// How many servers are remembered, so that their connections are reused.
const SERVERS_MAX: usize = 64;
/// How long a program that has exited may keep its output open through other processes.
const LINGER: Duration = Duration::from_millis(100);

/// The output of a handler call, or why it failed.
pub(super) type HandlerOutcome = Result<Vec<u8>, String>;

/// The servers called, by URL and headers.
pub(super) type HandlerServers = RefCell<HashMap<(String, Vec<String>), Rc<HttpUpstream>>>;

/// The handler calls of one session.
#[derive(Default)]
pub(super) struct HandlerCalls {
    tasks: JoinSet<(u64, HandlerOutcome)>,
}

impl HandlerCalls {
    /// Starts a handler call.
    pub(super) fn run(
        &mut self,
        servers: &HandlerServers,
        call_id: u64,
        handler_call: HandlerCall<'_>,
    ) {
        // Copied, because the task outlives the actor's buffers.
        let (body, bytes_max) = (Bytes::copy_from_slice(handler_call.body), handler_call.bytes_max);
        let limit = Duration::from_nanos(handler_call.timeout_ns);
        match handler_call.by {
            HandlerTarget::Http { url, headers } => {
                let server = server(servers, url, headers);
                self.tasks.spawn_local(async move {
                    let request = async { post_request(&*server?, &body, bytes_max).await };
                    (call_id, with_time_limit(limit, request).await)
                });
            }
            HandlerTarget::Command { argv, env, folder } => {
                let (argv, env) = (argv.to_vec(), env.to_vec());
                let folder = folder.map(str::to_owned);
                self.tasks.spawn_local(async move {
                    let (env, folder) = (&env, folder.as_deref());
                    let context = ProcessContext { env, folder, ..ProcessContext::default() };
                    (call_id, with_time_limit(limit, run(&argv, context, &body, bytes_max)).await)
                });
            }
        }
    }

    /// How many are running, or finished and not yet reported.
    pub(super) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for the next one to finish; never returns if there is none.
    pub(super) async fn next(&mut self) -> (u64, HandlerOutcome) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(done)) => return done,
                // A panicked task has reported itself.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

async fn with_time_limit(
    limit: Duration,
    work: impl Future<Output = HandlerOutcome>,
) -> HandlerOutcome {
    let late = |_| Err(format!("no answer within {} ms", limit.as_millis()));
    timeout(limit, work).await.unwrap_or_else(late)
}

/// The server at `url`. Its connections and certificates are kept.
fn server(
    servers: &HandlerServers,
    url: &str,
    headers: &[(String, String)],
) -> Result<Rc<HttpUpstream>, String> {
    let lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let key = (url.to_owned(), lines);
    let mut servers = servers.borrow_mut();
    if let Some(server) = servers.get(&key) {
        return Ok(Rc::clone(server));
    }
    let server = Rc::new(HttpUpstream::new(url, &key.1).map_err(|error| error.to_string())?);
    if servers.len() >= SERVERS_MAX {
        servers.clear();
    }
    servers.insert(key, Rc::clone(&server));
    Ok(server)
}

/// Posts `body`, and returns the body of the reply. Redirects are not followed.
async fn post_request(server: &HttpUpstream, body: &[u8], bytes_max: usize) -> HandlerOutcome {
    let body = OutboundBytes::originated(OriginatedBytes::from_endpoint(body));
    let json = HeaderValue::from_static("application/json");
    let headers = HeaderMap::from_iter([(CONTENT_TYPE, json.clone()), (ACCEPT, json)]);
    let path = server.path().clone();
    let sent = server.send(Method::POST, path, headers, body).await;
    let reply = sent.map_err(|error| error.to_string())?;
    let status = reply.status();
    if !status.is_success() {
        return Err(format!("it answered with status {}", status.as_u16()));
    }
    match body::collect(&mut reply.into_body(), bytes_max).await {
        Ok(CollectedBody::Whole(bytes)) => Ok(bytes.to_vec()),
        Ok(CollectedBody::TooLarge(_)) => {
            Err(format!("its output is larger than {bytes_max} bytes"))
        }
        Err(error) => Err(format!("its answer ended early: {error}")),
    }
}

/// Runs a program with `body` as its input, and returns its output. It inherits our standard error.
async fn run(
    argv: &[String],
    context: ProcessContext<'_>,
    body: &[u8],
    bytes_max: usize,
) -> HandlerOutcome {
    let (mut child, pipes) =
        ServerProcess::spawn_in(argv, context).map_err(|error| error.to_string())?;
    let ServerPipes { input, output } = pipes;
    let mut collected = Vec::new();
    let tell = async move {
        let mut rest = body;
        while !rest.is_empty() {
            match input.write(OriginatedBytes::from_endpoint(rest)).await {
                Ok(count) => rest = &rest[count..],
                // A program need not read all of its input.
                Err(_) => break,
            }
        }
        // The input is closed here.
    };
    let hear = async {
        // A program may leave a child that keeps its output open.
        tokio::select! {
            read = read_all(&output, &mut collected, bytes_max) => read,
            () = wait_for_exit(&mut child) => Ok(()),
        }
    };
    exchange_io(tell, hear).await?;
    child.exited().await.map_err(|error| error.to_string())?;
    // Processes that the program left behind are killed with its group.
    // Even after success: a program may have started others.
    let ended = child.shutdown(Duration::ZERO, Duration::ZERO).await;
    let status = ended.map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(collected),
        false => Err(format!("it ended with {status}")),
    }
}

/// Writes and reads concurrently. A program that has written everything need not read its input.
async fn exchange_io(
    tell: impl Future<Output = ()>,
    hear: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    let mut hear = std::pin::pin!(hear);
    // Both at once, or a program that fills its output before it reads would block us.
    tokio::select! {
        heard = &mut hear => heard,
        () = tell => hear.await,
    }
}

/// Waits until a program has exited, and a little longer for its last output.
async fn wait_for_exit(child: &mut ServerProcess) {
    // An error means that the process cannot be waited for; there is no more to learn about it.
    child.exited().await.ok();
    tokio::time::sleep(LINGER).await;
}

/// Reads to the end.
async fn read_all(
    output: &StreamPort,
    collected: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), String> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = output.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(());
        }
        if collected.len() + count > bytes_max {
            return Err(format!("its output is larger than {bytes_max} bytes"));
        }
        collected.extend_from_slice(&buffer[..count]);
    }
}
