//! Requests of a client, and answers of the scripted server.

/// A request line.
pub(crate) fn request<Id: std::fmt::Display>(id: Id) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"m\"}}\n")
}

/// The scripted server's reply to it.
pub(crate) fn reply(id: impl std::fmt::Display) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"for\":{id}}}}}\n")
}
