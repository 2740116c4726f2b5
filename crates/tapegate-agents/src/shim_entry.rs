//! The words that start a server's shim, or the reason why its entry has to stay as it is.

use crate::discovery::ConfiguredServer;
use crate::entry::ServerTarget;
use crate::rewrite::ShimCommand;

/// The word after which the command line of the server follows.
const END_OF_FLAGS: &str = "--";
/// Names the URL of the server.
pub(crate) const URL_FLAG: &str = "--upstream-http";
/// Names a header and the variable with its value.
pub(crate) const HEADER_FLAG: &str = "--header-env";
/// Names the variable with a token.
pub(crate) const TOKEN_FLAG: &str = "--bearer-env";

/// Why an entry cannot be put behind a shim.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UngovernableEntry {
    /// The client does not start it.
    #[error("disabled")]
    Disabled,
    /// It starts a shim.
    #[error("governed already")]
    Governed,
    /// The shim speaks HTTP only.
    #[error("its URL is neither http nor https, and a shim connects to nothing else")]
    Scheme,
    /// The client does something for the connection that a shim does not.
    #[error("a shim has nothing that corresponds to its setting `{0}`")]
    UrlSetting(String),
    /// The variable of a header would have the name of another one.
    #[error("the names of its headers are too similar: `{0}`")]
    Header(String),
}

/// The command for the entry of a server, whose shim is started by these words and knows it by its
/// id.
pub fn shim_command(
    server: &ConfiguredServer,
    words: &[String],
) -> Result<ShimCommand, UngovernableEntry> {
    let entry = &server.entry;
    if entry.is_governed {
        return Err(UngovernableEntry::Governed);
    }
    if entry.is_disabled {
        return Err(UngovernableEntry::Disabled);
    }
    let mut words = words.to_vec();
    let mut push = |added: &[&str]| words.extend(added.iter().map(|word| (*word).to_owned()));
    push(&["--server-id", &server.id]);
    let ServerTarget::Url(url, headers) = &entry.target else {
        push(&[END_OF_FLAGS]);
        return Ok(ShimCommand::Before(words));
    };
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    // A URL that starts with a variable has its scheme in it.
    let is_variable = url.starts_with(['$', '{']);
    if !is_variable && !matches!(scheme.as_deref(), Some("http" | "https")) {
        return Err(UngovernableEntry::Scheme);
    }
    let is_lost = |name: &&String| {
        name.as_str() != "bearer_token_env_var" && !entry.switched_off.contains(name)
    };
    // Without this setting the server would refuse the shim, or accept it with other rights.
    if let Some(name) = entry.removed.iter().find(is_lost) {
        return Err(UngovernableEntry::UrlSetting(name.clone()));
    }
    push(&[URL_FLAG, url]);
    let mut variables: Vec<String> = Vec::new();
    for header in headers {
        let is_token = entry.bearer.is_some() && header.eq_ignore_ascii_case("Authorization");
        if let (Some(variable), true) = (&entry.bearer, is_token) {
            push(&[TOKEN_FLAG, variable]);
            continue;
        }
        let of_client = entry.header_variables.iter().find(|(name, _)| name == header);
        let variable = of_client.map(|(_, variable)| variable.clone());
        let variable = variable.unwrap_or_else(|| header_variable(&server.id, header));
        // `X-Key` and `X_Key` become the same variable, and one secret would be sent in place of
        // the other.
        if variables.contains(&variable) {
            return Err(UngovernableEntry::Header(header.clone()));
        }
        push(&[HEADER_FLAG, &format!("{header}={variable}")]);
        variables.push(variable);
    }
    Ok(ShimCommand::Instead(words))
}

/// The name of the variable for the value of a header of a server.
pub fn header_variable(server_id: &str, header: &str) -> String {
    let name = format!("{server_id}_{header}").to_ascii_uppercase();
    let mut name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // Shells cannot set such a variable.
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        name.insert(0, '_');
    }
    name
}

#[cfg(test)]
mod tests;
