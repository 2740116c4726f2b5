//! An actor host on its own thread, with a client on pipes.

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write, pipe};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;
use std::time::Duration;

use tapegate_wire::actor_host::{ActorHost, ActorHostOptions, run_stdio};
use tapegate_wire::clock::Clock;
use tapegate_wire::link::LinkTarget;
use tapegate_wire::port::StreamPort;
use tapegate_wire::recorded_session::RecordedSession;
use tapegate_wire::signals::Signals;
use tapegate_wire::stdio::{ClientPorts, ShutdownTimeouts};

use crate::scripted_actor::{ActorLog, ScriptedActor};
use crate::waiting::ThreadStatus;

/// The largest message of these tests.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The options of the hosts in these tests.
pub(crate) fn options(behind: Option<LinkTarget>) -> ActorHostOptions {
    ActorHostOptions {
        message_bytes_max: MESSAGE_BYTES_MAX,
        passthrough: behind,
        patience: ShutdownTimeouts {
            grace: Duration::from_millis(1500),
            ..ShutdownTimeouts::default()
        },
        notice: Rc::new(|_| ()),
        farewell: "the play is over".to_owned(),
    }
}

/// A client on pipes, and the actor it talks to.
pub(crate) struct StdioActorHost {
    pub(crate) input: Option<PipeWriter>,
    pub(crate) output: Option<BufReader<PipeReader>>,
    pub(crate) log: ActorLog,
    /// How many client lines the actor has received.
    pub(crate) heard: Arc<AtomicUsize>,
    /// The thread that runs it.
    pub(crate) host: ThreadStatus,
    thread: Option<JoinHandle<String>>,
}

impl StdioActorHost {
    /// Opens without a passthrough server or a recording.
    pub(crate) fn open() -> Self {
        Self::open_with(None, |_| None)
    }

    /// Opens with a passthrough server.
    pub(crate) fn open_before(behind: LinkTarget) -> Self {
        Self::open_with(Some(behind), |_| None)
    }

    /// Opens with a recording.
    pub(crate) fn open_recorded(
        deck: impl FnOnce(Clock) -> RecordedSession + Send + 'static,
    ) -> Self {
        Self::open_with(None, |clock| Some(deck(clock)))
    }

    fn open_with(
        behind: Option<LinkTarget>,
        deck: impl FnOnce(Clock) -> Option<RecordedSession> + Send + 'static,
    ) -> Self {
        let (theirs_in, input) = pipe().unwrap();
        let (output, theirs_out) = pipe().unwrap();
        let log = ActorLog::default();
        let heard = Arc::<AtomicUsize>::default();
        let (theirs, count) = (log.clone(), Arc::clone(&heard));
        let (sender, host) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            sender.send(ThreadStatus::own()).unwrap();
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let clock = Clock::start();
            let mut deck = deck(clock);
            let play = async {
                let client = ClientPorts {
                    input: StreamPort::reader(theirs_in.into()).unwrap(),
                    output: StreamPort::writer(theirs_out.into()).unwrap(),
                };
                let actor = ScriptedActor::new(&theirs, &count);
                let stage = ActorHost::new(actor, clock, options(behind));
                run_stdio(&stage, client, deck.as_mut(), Signals::listen().unwrap()).await
            };
            format!("{:?}", runtime.block_on(play))
        });
        Self {
            input: Some(input),
            output: Some(BufReader::new(output)),
            log,
            heard,
            host: host.recv().unwrap(),
            thread: Some(thread),
        }
    }

    /// Writes to the actor.
    pub(crate) fn say(&mut self, text: &str) {
        self.input.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// The next line; empty at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Waits for the end, and returns its cause and the actor's log.
    pub(crate) fn end(mut self) -> (String, Vec<String>) {
        let cause = self.thread.take().unwrap().join().unwrap();
        let told = self.log.lock().unwrap().clone();
        (cause, told)
    }
}

impl Drop for StdioActorHost {
    fn drop(&mut self) {
        (self.input, self.output) = (None, None);
        // A failed test has reported its own error.
        self.thread.take().map(JoinHandle::join);
    }
}
