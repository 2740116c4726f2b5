//! How to reach an MCP server, from the command line.

use tapegate_policy::inspect::TransportKind;
use tapegate_shim::plan::ServerDescription;
use tapegate_wire::http::upstream;
use tapegate_wire::link;

use crate::argument_values::non_empty;
use crate::exit::{Exit, Failure};

/// The ways to name a server.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct UpstreamArgs {
    /// The server to start, as one command line; it is split into words without a shell
    #[arg(long, value_name = "CMD", conflicts_with_all = ["upstream_http", "command"])]
    pub(crate) upstream: Option<String>,
    /// The server to connect to, over Streamable HTTP or HTTP+SSE
    #[arg(long, value_name = "URL", conflicts_with = "command", value_parser = non_empty)]
    pub(crate) upstream_http: Option<String>,
    /// The server to start, word by word
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
    /// A header to send with each request to --upstream-http; repeatable
    #[arg(long, value_name = "NAME: VALUE", requires = "upstream_http")]
    pub(crate) header: Vec<String>,
    /// A header whose value is taken from an environment variable, which other users cannot see;
    /// repeatable
    #[arg(long, value_name = "NAME=VARIABLE", requires = "upstream_http", value_parser = header_of_variable)]
    header_env: Vec<String>,
    /// The environment variable with a token to send as `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "VARIABLE", requires = "upstream_http", value_parser = header_of_token)]
    bearer_env: Option<String>,
}

/// The header for the token in a variable. Errors never show the value.
fn header_of_token(variable: &str) -> Result<String, String> {
    let token = value_of(variable)?;
    Ok(format!("Authorization: Bearer {token}"))
}

fn value_of(variable: &str) -> Result<String, String> {
    let value = std::env::var(variable).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| format!("the variable `{variable}` is not set"))
}

/// The header for `NAME=VARIABLE`. Errors never show the value.
fn header_of_variable(text: &str) -> Result<String, String> {
    let (name, variable) = text
        .split_once('=')
        .filter(|(name, variable)| !name.is_empty() && !variable.is_empty())
        .ok_or("write NAME=VARIABLE")?;
    Ok(format!("{name}: {}", value_of(variable)?))
}

/// How the server is reached.
#[derive(Debug, Clone)]
pub(crate) enum UpstreamTarget {
    Command(Vec<String>),
    Http(String),
}

impl UpstreamArgs {
    /// A server to start.
    pub(crate) fn started_by(command: Vec<String>) -> Self {
        Self { command, ..Self::default() }
    }

    /// The server that was named, or an error.
    pub(crate) fn required(&self, purpose: &str) -> Result<UpstreamTarget, Failure> {
        self.optional()?.ok_or_else(|| {
            Failure::new(Exit::Usage, format!("no MCP server {purpose}"))
                .hint("name one: `-- CMD ARGS`, `--upstream CMD` or `--upstream-http URL`")
        })
    }

    /// The headers of all requests, with the values of variables filled in.
    pub(crate) fn headers(&self) -> Vec<String> {
        [&self.header[..], &self.header_env[..], self.bearer_env.as_slice()].concat()
    }

    /// The server that was named, if any.
    pub(crate) fn optional(&self) -> Result<Option<UpstreamTarget>, Failure> {
        if !self.headers().is_empty() && self.upstream_http.is_none() {
            return Err(Failure::new(Exit::Usage, "--header needs a server reached by HTTP")
                .hint("name the server with --upstream-http URL"));
        }
        if let Some(url) = &self.upstream_http {
            return Ok(Some(UpstreamTarget::Http(url.clone())));
        }
        if !self.command.is_empty() {
            return Ok(Some(UpstreamTarget::Command(self.command.clone())));
        }
        let Some(line) = &self.upstream else { return Ok(None) };
        // Without a shell: the text comes from a config, and `$(…)` in it must not run.
        match shlex::split(line) {
            Some(words) if !words.is_empty() => Ok(Some(UpstreamTarget::Command(words))),
            _ => {
                Err(Failure::new(Exit::Usage, format!("`--upstream {line}` is not a command line"))
                    .hint("check its quotes, or give the words after `--`"))
            }
        }
    }
}

impl UpstreamTarget {
    /// A client for the server at `url`.
    pub(crate) fn connect(
        url: &str,
        headers: &[String],
    ) -> Result<upstream::HttpUpstream, Failure> {
        upstream::HttpUpstream::new(url, headers).map_err(|error| Failure::new(Exit::Usage, error))
    }

    /// The server in the form that the wire takes.
    pub(crate) fn link(self, headers: Vec<String>) -> link::LinkTarget {
        match self {
            Self::Command(argv) => link::LinkTarget::Command(argv),
            Self::Http(url) => link::LinkTarget::Http { url, headers },
        }
    }

    /// The server, as a governed session names it.
    pub(crate) fn description(&self) -> ServerDescription {
        let transport = match self {
            Self::Command(_) => TransportKind::Lines,
            Self::Http(_) => TransportKind::Http,
        };
        ServerDescription { text: self.header_text(), transport }
    }

    /// The server as it is named in a tape's header.
    pub(crate) fn header_text(&self) -> String {
        match self {
            Self::Command(argv) => {
                let words = argv.iter().map(String::as_str);
                shlex::try_join(words).unwrap_or_else(|_| argv.join(" "))
            }
            Self::Http(url) => url.clone(),
        }
    }
}
