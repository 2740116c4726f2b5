//! Which servers of a client a session can put behind a shim, and which it must leave alone.
//!
//! Decides from the entries alone: a server that cannot be governed is named with the reason, never
//! skipped in silence.

use std::path::Path;

use crate::client_table::{EntryStyle, McpClient};
use crate::discovery::{ConfigScope, ConfiguredServer, ServerScan};
use crate::shim_entry::{UngovernableEntry, shim_command};

/// What becomes of a server in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerTreatment {
    /// It is put behind a shim.
    Governed,
    /// It is left alone, for this reason.
    Ungoverned(UngovernedReason),
}

/// Why a server is left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UngovernedReason {
    /// The client does not start it.
    Disabled,
    /// Its config applies to every user of the machine.
    MachineWide,
    /// The client signs in to it, or connects in another way of its own.
    Connection,
    /// The variables for its headers would have the same name.
    Header,
    /// It is reached in a way that a shim cannot use.
    Transport,
}

impl UngovernedReason {
    /// The reason, for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disabled => "disabled",
            Self::MachineWide => "its config applies to every user of this machine",
            Self::Connection => "the client signs in to it or connects in its own way",
            Self::Header => "the names of its headers are too similar",
            Self::Transport => "a shim cannot connect to it",
        }
    }

    /// Whether its calls pass ungoverned: the client starts or connects to it.
    pub fn is_bypass(self) -> bool {
        self != Self::Disabled
    }
}

/// What becomes of a server in a session.
pub fn treatment(server: &ConfiguredServer) -> ServerTreatment {
    let reason = if server.entry.is_disabled {
        UngovernedReason::Disabled
    // Other users would find their servers behind a shim of this session.
    } else if server.scope == ConfigScope::Machine {
        UngovernedReason::MachineWide
    } else {
        // A server that starts a shim already is refused before.
        match shim_command(server, &[]) {
            Ok(_) | Err(UngovernableEntry::Governed) => return ServerTreatment::Governed,
            Err(UngovernableEntry::Disabled) => UngovernedReason::Disabled,
            Err(UngovernableEntry::Scheme) => UngovernedReason::Transport,
            Err(UngovernableEntry::UrlSetting(_)) => UngovernedReason::Connection,
            Err(UngovernableEntry::Header(_)) => UngovernedReason::Header,
        }
    };
    ServerTreatment::Ungoverned(reason)
}

/// How an entry is written: as its client does it, or for a client that is not known, by its type.
pub fn style(server: &ConfiguredServer) -> EntryStyle {
    match server.client.id {
        // The entry itself is the only example of how its client writes entries.
        "custom" => match server.entry.kind.as_deref() {
            Some("remote" | "local") => EntryStyle::OpencodeJson,
            Some(_) => EntryStyle::TypedJson,
            None => EntryStyle::Json,
        },
        _ => server.client.style,
    }
}

/// The configs with at least one server that is put behind a shim, in order and each once.
pub fn configs_to_rewrite(scan: &ServerScan) -> Vec<&Path> {
    let mut configs: Vec<&Path> = Vec::new();
    for server in &scan.servers {
        let is_new = !configs.contains(&server.config.as_path());
        if is_new && treatment(server) == ServerTreatment::Governed {
            configs.push(&server.config);
        }
    }
    configs
}

/// The ids of the clients, for messages.
pub fn client_ids(clients: &[McpClient]) -> String {
    let ids: Vec<&str> = clients.iter().map(|client| client.id).collect();
    ids.join(", ")
}
