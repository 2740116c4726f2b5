//! Requests for approval: files in the state folder that whoever waits and whoever decides share.
//!
//! A request is one file and its decision another, made in one step by the first who decides, so
//! that there is never more than one decision. Both survive whoever wrote them.

/// Something that a person must decide.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Its name: `ap_` and 16 letters.
    pub id: String,
    /// Microseconds since 1970.
    pub created_us: i64,
    /// When it is too late.
    pub expires_us: i64,
    /// The server.
    pub server_id: String,
    /// The method.
    pub method: String,
    /// The tool, prompt or URI.
    pub tool: String,
    /// The arguments as JSON, with secrets masked.
    pub arguments: Option<String>,
    /// Blake3 of method, name and canonical arguments, before masking.
    pub call_hash: String,
    /// Who calls.
    pub principal: String,
    /// The workflow.
    pub workflow: String,
    /// Why a person is asked.
    pub reason: String,
    /// Who may decide; nobody named means anybody.
    pub approvers: Vec<String>,
    /// The shim's connection.
    pub connection_id: String,
    /// What the caller is told as `correlation_id`.
    pub request_id: String,
    /// The process that waits, so that what nobody waits for can be told apart.
    pub pid: u32,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ruling {
    /// A person said yes.
    Approved,
    /// A person said no.
    Denied,
    /// The caller took it back.
    Cancelled,
    /// Nobody decided in time.
    Expired,
}

/// A decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// What was decided.
    pub ruling: Ruling,
    /// By whom.
    pub by: String,
    /// Microseconds since 1970.
    pub at_us: i64,
    /// Why, if they said.
    pub reason: Option<String>,
}
