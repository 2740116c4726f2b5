//! Entries whose command line the client would not pass on as it is written.
//!
//! Some clients join the words of an entry and split them again at blanks. The shim of such an entry
//! has one plain word, which names the command line in our state folder.

use crate::discovery::ConfiguredServer;
use crate::rewrite::ShimCommand;

/// Names the stored command line.
pub const ENTRY_FLAG: &str = "--entry";
/// Ends the id of an entry that stays for good.
const KEPT: &str = "kept";

/// The id under which the command line of a server is stored. It tells which server it is of, and
/// which hub its shim joins.
pub fn entry_id(server: &ConfiguredServer, endpoint: Option<&str>) -> String {
    let place = format!("{} {:?}", server.config.display(), server.place);
    let hub = endpoint.map_or_else(|| KEPT.to_owned(), hub_mark);
    format!("{}.{}.{hub}", server.id, short_hash(&place))
}

/// The mark of a hub, which is in the ids of its entries.
pub(crate) fn hub_mark(endpoint: &str) -> String {
    short_hash(endpoint)
}

/// Whether a stored entry stays for good, by its id.
pub fn is_kept(id: &str) -> bool {
    id.rsplit('.').next() == Some(KEPT)
}

/// What names the stored command line of a shim that is started by these words, if it has one.
pub fn entry_reference(words: &[String]) -> Option<&str> {
    flag_value(words, ENTRY_FLAG)
}

/// Whether the shim that is started by these words joins the hub at this endpoint.
pub fn joins_hub(words: &[String], endpoint: &str) -> bool {
    // What follows belongs to the server, which may be a shim of another hub.
    let end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    hub_of(&words[..end]) == Some(hub_mark(endpoint))
}

/// The mark of the hub that a shim joins; `None` if it stays for good.
pub(crate) fn hub_of(words: &[String]) -> Option<String> {
    let endpoint = || flag_value(words, "--governance-endpoint").map(hub_mark);
    let stored = || server_and_hub(entry_reference(words)?).map(|(_, hub)| hub.to_owned());
    endpoint().or_else(stored)
}

/// The word after a flag.
pub(crate) fn flag_value<'w>(words: &'w [String], flag: &str) -> Option<&'w str> {
    let at = words.iter().position(|word| word == flag)?;
    words.get(at + 1).map(String::as_str)
}

/// The server and the hub of a stored entry, from what names it; `None` if it stays for good.
pub(crate) fn server_and_hub(reference: &str) -> Option<(&str, &str)> {
    let id = reference.rsplit('/').next()?;
    let (rest, hub) = id.rsplit_once('.')?;
    let (server, _) = rest.rsplit_once('.')?;
    (hub != KEPT).then_some((server, hub))
}

/// The command line to store, without the program; `None` if the client passes it on as it is
/// written, or replaces variables in it.
pub fn words_to_store(shim: &ShimCommand, argv: &[String]) -> Option<Vec<String>> {
    // The headers of a server with a URL are in its entry, beside words about them.
    let ShimCommand::Before(words) = shim else { return None };
    let arguments = words.get(1..)?.iter().chain(argv);
    let is_needed = arguments.clone().any(|word| needs_quotes(word));
    // We do not know all that the client replaces, such as the folder of the workspace.
    let is_possible = !arguments.clone().any(|word| has_reference(word));
    // The first word is the command, `shim`.
    (is_needed && is_possible).then(|| arguments.skip(1).cloned().collect())
}

/// Whether a word must be quoted for a client that joins the words of a command line.
pub fn needs_quotes(word: &str) -> bool {
    word.is_empty() || word.contains(|c: char| c.is_whitespace() || "\"'\\`".contains(c))
}

/// Whether a word may have a variable in it that the client replaces.
fn has_reference(word: &str) -> bool {
    let is_bare = word
        .split('$')
        .skip(1)
        .any(|rest| rest.starts_with(|c: char| c == '{' || c == '_' || c.is_ascii_alphabetic()));
    is_bare || ["{env:", "{file:"].iter().any(|start| word.contains(start))
}

fn short_hash(text: &str) -> String {
    let sum = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{:08x}", sum >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(argv: &[&str]) -> Option<Vec<String>> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let shim = ShimCommand::Before(owned(&["/opt/tapegate", "shim", "--server-id", "s", "--"]));
        words_to_store(&shim, &owned(argv))
    }

    #[test]
    fn only_words_that_a_client_may_split_are_stored() {
        for argv in [&["npx", "my files"][..], &["npx", ""], &["x", "a\"b"], &["x", "it's", "\\d"]]
        {
            let stored = stored(argv).unwrap();
            assert_eq!(stored[..3], ["--server-id", "s", "--"]);
            assert_eq!(stored[3..], *argv);
        }
        for argv in [
            &["npx", "-y", "x"][..],
            &["x", "${workspaceFolder}", "a b"],
            &["x", "$HOME/a b"],
            &["x", "{env:A} b"],
        ] {
            assert_eq!(stored(argv), None, "{argv:?}");
        }
        assert!(stored(&["x", "costs 5$ or $5"]).is_some());
    }

    #[test]
    fn an_id_names_its_server_and_its_hub() {
        let hub = hub_mark("http://127.0.0.1:1");
        let id = format!("my.server.00c0ffee.{hub}");
        assert_eq!(server_and_hub(&id), Some(("my.server", hub.as_str())));
        assert_eq!(server_and_hub(&format!("/s/entries/{id}")), Some(("my.server", &*hub)));
        assert_eq!(server_and_hub("s.00c0ffee.kept"), None);
        assert_eq!(server_and_hub("s"), None);
        assert!(is_kept("s.00c0ffee.kept") && !is_kept(&id) && !is_kept("kept.1.2"));
    }

    #[test]
    fn the_hub_that_a_shim_joins_is_in_its_own_words() {
        let (own, other) = ("http://127.0.0.1:1", "http://127.0.0.1:2");
        let joins = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            joins_hub(&words, own)
        };
        assert!(joins(&format!("tapegate shim --governance-endpoint {own} -- x")));
        assert!(joins(&format!("tapegate shim --entry s.00c0ffee.{}", hub_mark(own))));
        assert!(!joins(&format!("tapegate shim --governance-endpoint {other} -- x")));
        assert!(!joins(&format!("tapegate shim -- x --governance-endpoint {own}")));
        assert!(!joins("tapegate shim --entry s.00c0ffee.kept"));
    }
}
