//! Errands of an actor: other servers that are asked, programs that are run.
//!
//! Each is a task of its seat. Nothing of it outlives the seat, and a program leaves nothing of its
//! process group behind.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use tapegate_core::actor::{Errand, Helper};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::child::{Child, Pipes, Place};
use crate::http::Outbound;
use crate::http::body::{self, Collected};
use crate::http::upstream::Upstream;
use crate::port::{Originated, Port};

/// How many errands may be under way at a seat before its client is not heard.
pub(super) const ERRANDS_MAX: usize = 64;
/// How many servers are remembered, so that connections to them are used again.
const SERVERS_MAX: usize = 64;
/// How long a program that has exited may keep its output open through others.
const LINGER: Duration = Duration::from_millis(100);

/// What came of an errand, or why nothing did.
pub(super) type Outcome = Result<Vec<u8>, String>;

/// Servers that are asked, by their URL and headers.
pub(super) type Servers = RefCell<HashMap<(String, Vec<String>), Rc<Upstream>>>;

/// The errands of one seat.
#[derive(Default)]
pub(super) struct Errands {
    tasks: JoinSet<(u64, Outcome)>,
}

impl Errands {
    /// Sets out on an errand.
    pub(super) fn run(&mut self, servers: &Servers, ticket: u64, errand: Errand<'_>) {
        let (body, bytes_max) = (Bytes::copy_from_slice(errand.body), errand.bytes_max);
        let limit = Duration::from_nanos(errand.timeout_ns);
        match errand.by {
            Helper::Http { url, headers } => {
                let server = server(servers, url, headers);
                self.tasks.spawn_local(async move {
                    let asked = async { ask(&*server?, &body, bytes_max).await };
                    (ticket, within(limit, asked).await)
                });
            }
            Helper::Command { argv, env, folder } => {
                let (argv, env) = (argv.to_vec(), env.to_vec());
                let folder = folder.map(str::to_owned);
                self.tasks.spawn_local(async move {
                    let (env, folder) = (&env, folder.as_deref());
                    let place = Place { env, folder, ..Place::default() };
                    (ticket, within(limit, run(&argv, place, &body, bytes_max)).await)
                });
            }
        }
    }

    /// How many are under way, or done and not yet told.
    pub(super) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Waits for one that is done; for ever, if there is none.
    pub(super) async fn next(&mut self) -> (u64, Outcome) {
        loop {
            match self.tasks.join_next().await {
                Some(Ok(done)) => return done,
                // One that panicked has said so.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }
}

async fn within(limit: Duration, work: impl Future<Output = Outcome>) -> Outcome {
    let late = |_| Err(format!("no answer within {} ms", limit.as_millis()));
    timeout(limit, work).await.unwrap_or_else(late)
}

/// The server at `url`. Its connections are kept, as are its certificates.
fn server(
    servers: &Servers,
    url: &str,
    headers: &[(String, String)],
) -> Result<Rc<Upstream>, String> {
    let lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let key = (url.to_owned(), lines);
    let mut servers = servers.borrow_mut();
    if let Some(server) = servers.get(&key) {
        return Ok(Rc::clone(server));
    }
    let server = Rc::new(Upstream::new(url, &key.1).map_err(|error| error.to_string())?);
    if servers.len() >= SERVERS_MAX {
        servers.clear();
    }
    servers.insert(key, Rc::clone(&server));
    Ok(server)
}

/// Posts `body`, and returns the body of the reply. Redirects are not followed.
async fn ask(server: &Upstream, body: &[u8], bytes_max: usize) -> Outcome {
    let body = Outbound::originated(Originated::by_endpoint(body));
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
        Ok(Collected::Whole(bytes)) => Ok(bytes.to_vec()),
        Ok(Collected::TooLarge(_)) => Err(format!("it said more than {bytes_max} bytes")),
        Err(error) => Err(format!("its answer broke off: {error}")),
    }
}

/// Runs a program, tells it `body`, and returns what it says. Its standard error is ours.
async fn run(argv: &[String], place: Place<'_>, body: &[u8], bytes_max: usize) -> Outcome {
    let (mut child, pipes) = Child::spawn_in(argv, place).map_err(|error| error.to_string())?;
    let Pipes { input, output } = pipes;
    let mut said = Vec::new();
    let tell = async move {
        let mut rest = body;
        while !rest.is_empty() {
            match input.write(Originated::by_endpoint(rest)).await {
                Ok(count) => rest = &rest[count..],
                // A program need not hear everything.
                Err(_) => break,
            }
        }
        // The input is closed here.
    };
    let hear = async {
        tokio::select! {
            read = read_all(&output, &mut said, bytes_max) => read,
            () = over(&mut child) => Ok(()),
        }
    };
    talk(tell, hear).await?;
    child.exited().await.map_err(|error| error.to_string())?;
    // Whoever the program has left behind is ended with its group.
    let ended = child.end(Duration::ZERO, Duration::ZERO).await;
    let status = ended.map_err(|error| error.to_string())?;
    match status.success() {
        true => Ok(said),
        false => Err(format!("it ended with {status}")),
    }
}

/// Tells and hears at once. What does not read must not keep what has said everything.
async fn talk(
    tell: impl Future<Output = ()>,
    hear: impl Future<Output = Result<(), String>>,
) -> Result<(), String> {
    let mut hear = std::pin::pin!(hear);
    tokio::select! {
        heard = &mut hear => heard,
        () = tell => hear.await,
    }
}

/// Waits until a program has exited, and a while for what it has said last.
async fn over(child: &mut Child) {
    // Nothing more can be learnt about a process that cannot be waited for.
    child.exited().await.ok();
    tokio::time::sleep(LINGER).await;
}

/// Reads to the end.
async fn read_all(output: &Port, said: &mut Vec<u8>, bytes_max: usize) -> Result<(), String> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = output.read(&mut buffer).await.map_err(|error| error.to_string())?;
        if count == 0 {
            return Ok(());
        }
        if said.len() + count > bytes_max {
            return Err(format!("it said more than {bytes_max} bytes"));
        }
        said.extend_from_slice(&buffer[..count]);
    }
}
