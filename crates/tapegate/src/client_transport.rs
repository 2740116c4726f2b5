//! The client's end of the wire, for all commands that serve clients.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use tapegate_wire::http::listener::{AllowedNames, HttpListener, ListenError};
use tapegate_wire::port::StreamPort;
use tapegate_wire::stdio::ClientPorts;

use crate::exit::{Exit, Failure};
use crate::terminal_output;

/// Who may use a listener besides clients that name this machine.
#[derive(Debug, clap::Args)]
pub(crate) struct ListenArgs {
    /// With --http, also accept clients that address this host as NAME, such as a service in a
    /// container; repeatable
    #[arg(long, value_name = "NAME", requires = "http", value_parser = host)]
    allow_host: Vec<String>,
    /// With --http, also accept web pages of this origin, such as `https://app.example.com`;
    /// repeatable
    #[arg(long, value_name = "ORIGIN", requires = "http", value_parser = origin)]
    allow_origin: Vec<String>,
}

impl ListenArgs {
    /// Whether clients that name something else than this machine are accepted.
    pub(crate) fn names_others(&self) -> bool {
        !self.allow_host.is_empty() || !self.allow_origin.is_empty()
    }

    pub(crate) fn allowed(&self) -> AllowedNames {
        AllowedNames { hosts: self.allow_host.clone(), origins: self.allow_origin.clone() }
    }
}

fn host(text: &str) -> Result<String, String> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._:[]".contains(letter);
    let host = text.trim_start_matches('[').trim_end_matches(']');
    let is_address = host.parse::<std::net::IpAddr>().is_ok();
    match !host.is_empty() && host.chars().all(fits) && (is_address || !host.contains(':')) {
        true => Ok(host.to_owned()),
        false => Err("expected a host name without a port, such as `tapes`".to_owned()),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let authority = text.split_once("://").map(|(_, authority)| authority);
    match authority.is_some_and(|it| !it.is_empty() && !it.contains(['/', '?', '#', '@', '*'])) {
        true => Ok(text.to_owned()),
        false => Err("expected an origin, such as `https://app.example.com`".to_owned()),
    }
}

/// Binds a listener for HTTP clients.
pub(crate) async fn listen(address: &str) -> Result<HttpListener, Failure> {
    HttpListener::bind(address).await.map_err(|error| match &error {
        ListenError::Address(_) => Failure::new(Exit::Usage, error),
        ListenError::Bind { .. } => Failure::new(Exit::Transport, error),
    })
}

/// The ports of a client on standard input and output.
pub(crate) fn client_ports() -> std::io::Result<ClientPorts> {
    let input = rustix::stdio::stdin().as_fd().try_clone_to_owned()?;
    let output = rustix::stdio::stdout().as_fd().try_clone_to_owned()?;
    Ok(ClientPorts { input: StreamPort::reader(input)?, output: StreamPort::writer(output)? })
}

/// Releases standard output, so that the client sees its end as soon as its port is closed, not
/// only when the process ends.
pub(crate) fn release_stdout() -> std::io::Result<()> {
    let nowhere = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stdout(nowhere)?)
}

/// Tells a person who started this by hand that it waits for a client.
pub(crate) fn print_waiting_notice(quiet: bool) {
    if !quiet && std::io::stdin().is_terminal() {
        terminal_output::info("waiting for an MCP client on standard input; Ctrl-D ends");
        terminal_output::suggest(
            "clients start this from their config, or connect to --http :8080",
        );
    }
}

/// Prints the URL that clients connect to.
pub(crate) fn print_address(listener: &HttpListener, quiet: bool) -> std::io::Result<()> {
    let address = listener.address()?;
    if !quiet {
        terminal_output::info(&format!("listening on http://{address}/mcp"));
    }
    Ok(())
}
