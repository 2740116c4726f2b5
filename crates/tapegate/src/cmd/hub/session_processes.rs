//! The shims of a session as processes, so that none outlives it.
//!
//! A shim tells its hub when it ends. One that is stopped by a signal tells nothing, and one whose
//! server does not end has left its hub before it is gone. So at the end of a session, the shims
//! that still run are looked for among all processes: by our program, and by the hub that their
//! command lines name. A process is signalled by a descriptor, because its id may be given to
//! another one meanwhile.

mod own_process;

use std::time::Duration;

use rustix::process::Signal;
use tapegate_hub::lifecycle;
use tapegate_hub::service::Hub;
use tokio::time::Instant;

use own_process::{OwnProcess, are_visible, reapers_of, shims_of};

/// How long the servers of killed shims have: two seconds by their reapers, and some slack.
const SERVERS_PATIENCE: Duration = Duration::from_secs(3);
/// How often to check whether known processes have ended.
const LOOK: Duration = Duration::from_millis(2);
/// How often to look for processes.
const SEARCH: Duration = Duration::from_millis(100);

/// Waits at the end of a session until its shims are gone, and kills those that take too long. The
/// hub must serve meanwhile: what a shim does last may need it.
pub(super) async fn drain(hub: &Hub, endpoint: &str) {
    let deadline = Instant::now() + lifecycle::SHIMS_PATIENCE;
    tokio::select! {
        () = lifecycle::wait_for_shims(hub) => {}
        // One that was killed does not tell that it has ended.
        () = without_processes(endpoint) => return,
    }
    let told = hub.active_processes();
    // If there are any, their time is over.
    let until = if told.is_empty() { deadline } else { Instant::now() };
    end_shims(endpoint, &told, tokio::time::sleep_until(until)).await;
}

async fn without_processes(endpoint: &str) {
    loop {
        // In most sessions, the shims say that they have ended before this is over.
        tokio::time::sleep(SEARCH).await;
        if are_visible() && shims_of(endpoint, &[]).is_empty() {
            return;
        }
    }
}

/// Waits until the shims of a hub have ended, and kills those that have not when `patience` ends.
/// `told` are the processes that the shims have named.
pub(crate) async fn end_shims(endpoint: &str, told: &[u32], patience: impl Future<Output = ()>) {
    let shims = shims_of(endpoint, told);
    tokio::select! {
        () = ended(&shims) => return,
        () = patience => {}
    }
    let mut reapers = Vec::new();
    for shim in &shims {
        let own = reapers_of(shim);
        // A reaper that is stopped would leave the server.
        own.iter().for_each(|reaper| reaper.signal(Signal::CONT));
        reapers.extend(own);
        shim.signal(Signal::KILL);
    }
    tokio::time::timeout(SERVERS_PATIENCE, async {
        ended(&shims).await;
        ended(&reapers).await;
    })
    .await
    .ok();
}

async fn ended(processes: &[OwnProcess]) {
    while !processes.iter().all(OwnProcess::has_ended) {
        tokio::time::sleep(LOOK).await;
    }
}
