//! What a passthrough server writes as it ends.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tapegate_core::actor::{Actor, ActorAction, ActorSessionId};
use tapegate_core::tape::Provenance;
use tokio::task::LocalSet;

use super::super::ActorHostOptions;
use super::super::client_end::OUT_BYTES_MAX;
use super::*;
use crate::clock::Clock;
use crate::link::LinkTarget;
use crate::stdio::ShutdownTimeouts;

/// Notes what it is told about the passthrough server.
#[derive(Default)]
struct ListeningActor(Vec<String>);

impl Actor for ListeningActor {
    fn handle(
        &mut self,
        _: Timestamp,
        _: ActorSessionId,
        actor_event: ActorEvent<'_>,
        _: &mut dyn FnMut(ActorAction<'_>),
    ) {
        match actor_event {
            ActorEvent::Behind(line) => self.0.push(String::from_utf8_lossy(line).into_owned()),
            ActorEvent::BehindGone { .. } => self.0.push("gone".to_owned()),
            _ => {}
        }
    }

    fn next_wakeup(&self, _: ActorSessionId) -> Option<u64> {
        None
    }

    fn is_busy(&self, _: ActorSessionId) -> bool {
        false
    }
}

/// A client whose unread output is set by the test.
struct SlowClient(Rc<Cell<usize>>);

impl ClientEnd for SlowClient {
    fn add_message(&mut self, _: Timestamp, _: Option<&[u8]>, _: &[&[u8]], _: Option<Provenance>) {}

    fn add_piece(&mut self, _: Timestamp, _: Option<&[u8]>, _: &[u8], _: bool) {}

    fn disconnect(&mut self, _: Option<&[u8]>, _: bool) -> bool {
        true
    }

    fn unread_bytes(&self) -> usize {
        self.0.get()
    }

    fn can_progress(&self) -> bool {
        false
    }

    async fn progress(&mut self) {}

    fn close(&mut self) {}
}

#[test]
fn a_last_line_without_its_ending_waits_for_room() {
    let argv = ["sh", "-c", "printf rest"].map(str::to_owned).to_vec();
    let options = ActorHostOptions {
        message_bytes_max: 1000,
        passthrough: Some(LinkTarget::Command(argv)),
        patience: ShutdownTimeouts::default(),
        notice: Rc::new(|_| ()),
        farewell: String::new(),
    };
    let actor = Rc::new(RefCell::new(ListeningActor::default()));
    let host =
        ActorHost::new(Rc::<RefCell<ListeningActor>>::clone(&actor), Clock::start(), options);
    let unread = Rc::new(Cell::new(0));
    let mut client_io = ClientIo::new(&host, SlowClient(Rc::clone(&unread)));
    let mut servers = PassthroughServers::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let session = async {
        client_io.ask.add(&[b"go"]);
        servers.process_ready(client_io.now(), &mut client_io);
        loop {
            let event = servers.next_event(&client_io.ask, true).await;
            servers.handle_event(event, &mut client_io.ask);
            if servers.server.as_ref().is_some_and(|server| server.ended) {
                break;
            }
            servers.process_ready(client_io.now(), &mut client_io);
        }
        // Before the end is looked at, the client falls behind.
        unread.set(OUT_BYTES_MAX);
        servers.process_ready(client_io.now(), &mut client_io);
        let event = servers.next_event(&client_io.ask, true).await;
        servers.handle_event(event, &mut client_io.ask);
        servers.process_ready(client_io.now(), &mut client_io);
        assert!(actor.borrow().0.is_empty());
        unread.set(0);
        assert!(servers.is_due(&client_io));
        servers.process_ready(client_io.now(), &mut client_io);
        servers.close(Duration::ZERO).await;
    };
    runtime.block_on(LocalSet::new().run_until(session));
    assert_eq!(actor.borrow().0, ["rest", "gone"]);
}
