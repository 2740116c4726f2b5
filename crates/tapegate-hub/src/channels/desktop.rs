//! Notifications on the desktop of the hub's user, through the D-Bus session bus.
//!
//! The notification daemon tells us by signals that a button was pressed. Only signals of the
//! daemon that shows the notification count; the bus vouches for who has sent them. A notification
//! belongs to a connection, so after a restart of hub, bus or daemon it is shown again.
//!
//! <https://specifications.freedesktop.org/notification-spec/latest/>

mod bus_message;
mod notification;
mod session_bus;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tapegate_policy::model::ChannelSettings;

use super::{
    ChannelAnswer, ChannelError, ChannelFuture, ChannelNews, ChannelOutcome, ChannelRequest,
    DecisionChannel, OpenMessage, RetryAdvice,
};
use bus_message::{BusMessage, MethodArguments, MethodCall};
use notification::{APPROVE, DENY, DaemonFeatures, Notification};
use session_bus::SessionBus;

/// How often to see whether all notifications are shown. Signals come without that.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The number by which a notification replaces no other.
const NEW: u32 = 0;

const DAEMON: &str = "org.freedesktop.Notifications";
const DAEMON_PATH: &str = "/org/freedesktop/Notifications";
const DAEMON_SIGNALS: &str = "type='signal',sender='org.freedesktop.Notifications',interface='org.freedesktop.Notifications'";
const DAEMON_CHANGES: &str = "type='signal',sender='org.freedesktop.DBus',\
     member='NameOwnerChanged',arg0='org.freedesktop.Notifications'";

/// The desktop of a user.
pub(super) struct DesktopChannel {
    /// In whose name the buttons decide.
    approver: String,
    /// Whether there is a button that approves.
    may_approve: bool,
    daemon: RefCell<Option<Rc<NotificationDaemon>>>,
    /// What the daemon shows, by the id of the request.
    shown: RefCell<BTreeMap<String, ShownNotification>>,
    answers: RefCell<Vec<ChannelAnswer>>,
}

/// A notification daemon that we are connected to.
struct NotificationDaemon {
    bus: SessionBus,
    /// Its unique name on the bus.
    owner: String,
    features: DaemonFeatures,
}

/// A notification that was shown.
struct ShownNotification {
    number: u32,
    /// Whether it had a button that approves.
    has_approve: bool,
    is_closed: bool,
}

impl DesktopChannel {
    pub(super) fn new(settings: &ChannelSettings) -> Self {
        Self {
            approver: settings.approver.clone(),
            may_approve: settings.approve_button,
            daemon: RefCell::default(),
            shown: RefCell::default(),
            answers: RefCell::default(),
        }
    }

    /// The daemon, after connecting to it if needed.
    async fn daemon(&self) -> Result<Rc<NotificationDaemon>, ChannelError> {
        let connected = self.daemon.borrow().clone();
        if let Some(daemon) = connected {
            return Ok(daemon);
        }
        let daemon = NotificationDaemon::connect().await.map_err(later)?;
        let daemon = Rc::new(daemon);
        *self.daemon.borrow_mut() = Some(Rc::clone(&daemon));
        Ok(daemon)
    }

    /// Forgets a connection that has ended. Open notifications are shown again by the next poll.
    fn disconnect(&self) {
        self.daemon.borrow_mut().take();
        self.shown.borrow_mut().clear();
    }

    async fn notify(
        &self,
        daemon: &NotificationDaemon,
        notification: &Notification,
        replaces: u32,
    ) -> Result<u32, ChannelError> {
        let sent = daemon.call("Notify", &notification.arguments(replaces)).await;
        let number = sent.and_then(|reply| {
            let number = reply.body("u").and_then(|mut body| body.number());
            number.ok_or_else(|| "the notification daemon returns no id".to_owned())
        });
        // The connection may be broken in the middle of a message.
        number.inspect_err(|_| self.disconnect()).map_err(later)
    }

    /// Shows a request, in place of what an earlier hub has shown. Returns the receipt.
    async fn show(
        &self,
        daemon: &NotificationDaemon,
        request: &ChannelRequest,
        earlier: &str,
    ) -> Result<String, ChannelError> {
        let notification = notification::request(request, daemon.features, self.may_approve);
        // The buttons of a notification that an earlier hub has shown no longer work.
        let replaces = daemon.number_in(earlier).unwrap_or(NEW);
        let number = self.notify(daemon, &notification, replaces).await?;
        let has_approve = notification.buttons.iter().any(|(key, _)| *key == APPROVE);
        let shown = ShownNotification { number, has_approve, is_closed: false };
        self.shown.borrow_mut().insert(request.id.clone(), shown);
        Ok(daemon.receipt(number))
    }

    /// Takes what the daemon tells. Returns whether a poll is worthwhile.
    fn take_signal(&self, daemon: &NotificationDaemon, signal: &BusMessage) -> bool {
        if signal.interface == "org.freedesktop.DBus" && signal.member == "NameOwnerChanged" {
            let mut names = signal.body("sss");
            let name = names.as_mut().and_then(|names| names.string());
            // Only the bus itself can tell this.
            if signal.sender == "org.freedesktop.DBus" && name.as_deref() == Some(DAEMON) {
                self.disconnect();
                return true;
            }
            return false;
        }
        // Other programs of the session can send us the same signals, but not as the daemon.
        let is_daemon = signal.sender == daemon.owner && signal.path == DAEMON_PATH;
        if !is_daemon || signal.interface != DAEMON {
            return false;
        }
        match signal.member.as_str() {
            "ActionInvoked" => {
                let Some(mut body) = signal.body("us") else { return false };
                let (Some(number), Some(key)) = (body.number(), body.string()) else {
                    return false;
                };
                self.take_action(number, &key)
            }
            "NotificationClosed" => {
                let number = signal.body("uu").and_then(|mut body| body.number());
                let mut shown = self.shown.borrow_mut();
                let closed = shown.values_mut().find(|shown| Some(shown.number) == number);
                closed.into_iter().for_each(|shown| shown.is_closed = true);
                false
            }
            _ => false,
        }
    }

    fn take_action(&self, number: u32, key: &str) -> bool {
        let shown = self.shown.borrow();
        let Some((id, shown)) = shown.iter().find(|(_, shown)| shown.number == number) else {
            return false;
        };
        let approve = match key {
            APPROVE if shown.has_approve => true,
            DENY => false,
            _ => return false,
        };
        let answer = ChannelAnswer { id: id.clone(), approve, by: self.approver.clone() };
        self.answers.borrow_mut().push(answer);
        true
    }
}

impl NotificationDaemon {
    async fn connect() -> Result<Self, String> {
        let bus = SessionBus::connect(&session_bus::address_of_user()?).await?;
        bus.subscribe(DAEMON_SIGNALS).await?;
        bus.subscribe(DAEMON_CHANGES).await?;
        // The first call starts the daemon where the desktop starts it on demand.
        let method = daemon_method("GetCapabilities");
        let reply = bus.call(&method, &MethodArguments::default()).await;
        let reply = reply.map_err(|error| format!("no notification daemon: {error}"))?;
        let names = reply.body("as").and_then(|mut body| body.strings());
        let names = names.ok_or("the notification daemon does not tell what it can show")?;
        let features = DaemonFeatures::read(&names);
        Ok(Self { bus, owner: reply.sender, features })
    }

    async fn call(&self, method: &str, arguments: &MethodArguments) -> Result<BusMessage, String> {
        let reply = self.bus.call(&daemon_method(method), arguments).await?;
        // Its features are not known, and the numbers of its notifications are its own.
        let is_same = reply.sender == self.owner;
        is_same
            .then_some(reply)
            .ok_or_else(|| "there is another notification daemon now".to_owned())
    }

    /// Identifies a notification, also for a later hub.
    fn receipt(&self, number: u32) -> String {
        format!("{} {} {number}", self.bus.guid(), self.owner)
    }

    /// The number in a receipt, if it is of this daemon.
    fn number_in(&self, receipt: &str) -> Option<u32> {
        let rest = receipt.strip_prefix(self.bus.guid())?.strip_prefix(' ')?;
        rest.strip_prefix(self.owner.as_str())?.strip_prefix(' ')?.parse().ok()
    }
}

fn daemon_method(member: &str) -> MethodCall<'_> {
    MethodCall { destination: DAEMON, path: DAEMON_PATH, interface: DAEMON, member }
}

fn later(message: String) -> ChannelError {
    ChannelError { message, retry: RetryAdvice::Later }
}

impl DecisionChannel for DesktopChannel {
    fn announce<'a>(&'a self, request: &'a ChannelRequest) -> ChannelFuture<'a, String> {
        Box::pin(async {
            let daemon = self.daemon().await?;
            self.show(&daemon, request, "").await
        })
    }

    fn conclude<'a>(
        &'a self,
        request: &'a ChannelRequest,
        receipt: &'a str,
        outcome: &'a ChannelOutcome,
    ) -> ChannelFuture<'a, ()> {
        Box::pin(async move {
            let daemon = self.daemon().await?;
            let is_closed =
                self.shown.borrow().get(&request.id).is_some_and(|shown| shown.is_closed);
            // A daemon that has ended has taken its notifications along.
            if let Some(number) = daemon.number_in(receipt).filter(|_| !is_closed) {
                let notification = notification::ended(request, outcome);
                self.notify(&daemon, &notification, number).await?;
            }
            self.shown.borrow_mut().remove(&request.id);
            Ok(())
        })
    }

    fn poll<'a>(&'a self, open: &'a [OpenMessage]) -> ChannelFuture<'a, ChannelNews> {
        Box::pin(async move {
            let mut news = ChannelNews::default();
            let daemon = self.daemon().await?;
            for message in open {
                if !self.shown.borrow().contains_key(message.id()) {
                    let receipt = self.show(&daemon, &message.request, &message.receipt).await?;
                    news.receipts.push((message.id().to_owned(), receipt));
                }
            }
            news.answers = self.answers.take();
            Ok(news)
        })
    }

    fn news<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + 'a>> {
        Box::pin(async {
            let connected = self.daemon.borrow().clone();
            let Some(daemon) = connected else { return std::future::pending().await };
            loop {
                match daemon.bus.next_signal().await {
                    Ok(signal) if self.take_signal(&daemon, &signal) => return,
                    Ok(_) => {}
                    Err(_) => return self.disconnect(),
                }
            }
        })
    }

    fn is_disconnected(&self) -> bool {
        self.daemon.borrow().is_none()
    }

    fn shows_all(&self, request: &ChannelRequest) -> bool {
        notification::is_whole(request)
    }

    fn poll_interval(&self) -> Option<Duration> {
        Some(POLL_INTERVAL)
    }
}

#[cfg(test)]
mod tests;
