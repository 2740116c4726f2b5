//! A connection to the D-Bus session bus of the user.
//!
//! It takes no locks and has no task of its own: messages are read while a reply is awaited, and by
//! [`SessionBus::next_signal`]. Both may be dropped at any time without losing a message.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tapegate_core::hex;
use tapegate_core::lenient::spelling::percent_decode;
use tokio::net::UnixStream;

use super::bus_message::{BusMessage, BusMessageKind, HEAD_BYTES, MethodArguments, MethodCall};

/// How long a reply may take. The bus may have to start the program that sends it.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longer lines are not part of the authentication.
const AUTH_LINE_BYTES_MAX: usize = 4096;
/// Signals that nobody has asked for are dropped beyond this.
const SIGNALS_MAX: usize = 1000;

const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// A connection to the bus.
pub(super) struct SessionBus {
    stream: UnixStream,
    /// Identifies this run of the bus.
    guid: String,
    serial: Cell<u32>,
    received: RefCell<Vec<u8>>,
    signals: RefCell<VecDeque<BusMessage>>,
}

impl SessionBus {
    /// Connects to the bus at an address as in `DBUS_SESSION_BUS_ADDRESS`.
    pub(super) async fn connect(address: &str) -> Result<Self, String> {
        let socket = socket_of(address)
            .ok_or("the address of the session bus is not one of a Unix socket")?;
        let connecting = async {
            let stream = connect(&socket).await?;
            check_owner(&stream)?;
            let guid = authenticate(&stream).await?;
            let (serial, received, signals) = Default::default();
            Ok::<_, io::Error>(Self { stream, guid, serial, received, signals })
        };
        let late = |_| io::Error::new(io::ErrorKind::TimedOut, "no answer within 10 s");
        let opened = tokio::time::timeout(PATIENCE, connecting).await.map_err(late).flatten();
        let bus = opened.map_err(|error| format!("cannot connect to the session bus: {error}"))?;
        bus.call(&bus_method("Hello"), &MethodArguments::default()).await?;
        Ok(bus)
    }

    /// Identifies this run of the bus.
    pub(super) fn guid(&self) -> &str {
        &self.guid
    }

    /// Has the bus send signals that match.
    pub(super) async fn subscribe(&self, rule: &str) -> Result<(), String> {
        let arguments = MethodArguments::default().string(rule);
        self.call(&bus_method("AddMatch"), &arguments).await.map(drop)
    }

    /// Calls a method and returns the reply. After an error, the connection must not be used again
    /// unless the error is that of the method.
    pub(super) async fn call(
        &self,
        method: &MethodCall<'_>,
        arguments: &MethodArguments,
    ) -> Result<BusMessage, String> {
        let serial = self.serial.get() + 1;
        self.serial.set(serial);
        let exchange = async {
            write_all(&self.stream, &method.encode(serial, arguments)).await?;
            loop {
                let message = self.next_message().await?;
                let is_reply =
                    matches!(message.kind, BusMessageKind::Return | BusMessageKind::Error);
                match message.kind {
                    _ if is_reply && message.reply_serial == Some(serial) => return Ok(message),
                    BusMessageKind::Signal => self.keep_signal(message),
                    _ => {}
                }
            }
        };
        let name = method.member;
        let reply: io::Result<BusMessage> = tokio::time::timeout(PATIENCE, exchange)
            .await
            .map_err(|_| format!("no reply to {name} within 10 s"))?;
        let reply = reply.map_err(|error| format!("the session bus is gone: {error}"))?;
        if reply.kind == BusMessageKind::Error {
            let text = reply.first_text().unwrap_or_default();
            let told = format!("{name} failed: {} {text}", reply.error_name);
            return Err(tapegate_core::visible_text::inline(told.trim(), 300));
        }
        Ok(reply)
    }

    pub(super) async fn next_signal(&self) -> io::Result<BusMessage> {
        loop {
            if let Some(signal) = self.signals.borrow_mut().pop_front() {
                return Ok(signal);
            }
            let message = self.next_message().await?;
            if message.kind == BusMessageKind::Signal {
                self.keep_signal(message);
            }
        }
    }

    fn keep_signal(&self, signal: BusMessage) {
        let mut signals = self.signals.borrow_mut();
        // Any program of the session can send us signals.
        if signals.len() < SIGNALS_MAX {
            signals.push_back(signal);
        }
    }

    async fn next_message(&self) -> io::Result<BusMessage> {
        loop {
            if let Some(message) = self.take_message()? {
                return Ok(message);
            }
            let mut part = [0; 4096];
            let count = read_some(&self.stream, &mut part).await?;
            self.received.borrow_mut().extend(&part[..count]);
        }
    }

    /// Takes a message from what was received, if it is complete.
    fn take_message(&self) -> io::Result<Option<BusMessage>> {
        let mut received = self.received.borrow_mut();
        let invalid = || io::Error::new(io::ErrorKind::InvalidData, "a message is not valid");
        let Some(head) = received.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = BusMessage::length(head).ok_or_else(invalid)?;
        if received.len() < length {
            return Ok(None);
        }
        let bytes: Vec<u8> = received.drain(..length).collect();
        BusMessage::decode(&bytes).map(Some).ok_or_else(invalid)
    }
}

fn bus_method(member: &str) -> MethodCall<'_> {
    MethodCall { destination: BUS, path: BUS_PATH, interface: BUS, member }
}

/// Where the bus of this process's user is.
pub(super) fn address_of_user() -> Result<String, String> {
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    set("DBUS_SESSION_BUS_ADDRESS")
        .or_else(|| Some(format!("unix:path={}/bus", set("XDG_RUNTIME_DIR")?)))
        .ok_or_else(|| {
            "there is no session bus: DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR are not set in \
             the hub's environment"
                .to_owned()
        })
}

/// The socket of the first address in a list that has one.
fn socket_of(addresses: &str) -> Option<SocketAddr> {
    addresses.split(';').find_map(|address| {
        let parameters = address.strip_prefix("unix:")?;
        parameters.split(',').find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let value = percent_decode(value).unwrap_or_else(|| value.to_owned());
            match name {
                "path" => SocketAddr::from_pathname(Path::new(&value)).ok(),
                "abstract" => SocketAddr::from_abstract_name(value).ok(),
                _ => None,
            }
        })
    })
}

/// Connecting to a Unix socket does not wait unless its backlog is full.
async fn connect(socket: &SocketAddr) -> io::Result<UnixStream> {
    let socket = socket.clone();
    let connecting = move || std::os::unix::net::UnixStream::connect_addr(&socket);
    let stream = tokio::task::spawn_blocking(connecting).await.map_err(io::Error::other)??;
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// A socket of another user, such as an abstract one after the bus has ended, is not our bus.
fn check_owner(stream: &UnixStream) -> io::Result<()> {
    let owner = stream.peer_cred()?.uid();
    if owner != rustix::process::geteuid().as_raw() && owner != 0 {
        return Err(io::Error::other(format!("it belongs to the user {owner}")));
    }
    Ok(())
}

/// Authenticates by the credentials of the socket. Returns the id of the bus.
async fn authenticate(stream: &UnixStream) -> io::Result<String> {
    let user = rustix::process::geteuid().as_raw().to_string();
    let hello = format!("\0AUTH EXTERNAL {}\r\n", hex::encode(user.as_bytes()));
    write_all(stream, hello.as_bytes()).await?;
    let mut line = Vec::new();
    // The bus sends nothing more before `BEGIN`.
    while !line.ends_with(b"\r\n") && line.len() < AUTH_LINE_BYTES_MAX {
        let mut part = [0; 256];
        let count = read_some(stream, &mut part).await?;
        line.extend(&part[..count]);
    }
    let line = String::from_utf8_lossy(&line).into_owned();
    let guid = line.trim_end().strip_prefix("OK ");
    let guid = guid.filter(|guid| guid.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let guid = guid.ok_or_else(|| io::Error::other("the bus does not accept this user"))?;
    write_all(stream, b"BEGIN\r\n").await?;
    Ok(guid.to_owned())
}

async fn write_all(stream: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads at least one byte.
async fn read_some(stream: &UnixStream, into: &mut [u8]) -> io::Result<usize> {
    loop {
        stream.readable().await?;
        match stream.try_read(into) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unix_socket_of_an_address_is_used() {
        let path = |text: &str| {
            let socket = socket_of(text)?;
            socket.as_pathname().map(|path| path.to_string_lossy().into_owned())
        };
        let found = |path: &str| Some(path.to_owned());
        assert_eq!(path("unix:path=/run/user/1000/bus"), found("/run/user/1000/bus"));
        assert_eq!(path("tcp:host=h,port=1;unix:guid=0a,path=/a%20b"), found("/a b"));
        let named = socket_of("unix:abstract=/tmp/dbus-x,guid=0a").unwrap();
        assert_eq!(named.as_abstract_name(), Some(&b"/tmp/dbus-x"[..]));
        for text in ["", "unix:", "unix:dir=/tmp", "tcp:host=h", "autolaunch:"] {
            assert!(socket_of(text).is_none(), "{text}");
        }
    }
}
