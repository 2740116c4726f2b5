//! Which request is meant by the beginning of its name.

use tapegate_store::approvals::Entry;

use crate::exit::{Exit, Failure};
use crate::state::now_us;
use crate::views::approvals::is_pending;
use crate::views::visible;

/// Less than this would soon be the name of another request.
const LETTERS_MIN: usize = 3;
/// What all names begin with.
const BEGINNING: &str = "ap_";

/// The one request that `word` names. Those that wait come first.
pub(super) fn one(entries: &[Entry], word: &str) -> Result<Entry, Failure> {
    if let Some(entry) = entries.iter().find(|entry| entry.request.id == word) {
        return Ok(entry.clone());
    }
    let shown = visible::inline(word, 80);
    let letters = word.strip_prefix(BEGINNING).unwrap_or(word);
    if letters.len() < LETTERS_MIN {
        let words = format!("`{shown}` is too short to tell which request is meant");
        return Err(Failure::new(Exit::Invalid, words).hint("`tapegate approvals` lists them"));
    }
    let is_meant = |entry: &&Entry| {
        let id = entry.request.id.as_str();
        id.strip_prefix(BEGINNING).unwrap_or(id).starts_with(letters)
    };
    let meant: Vec<&Entry> = entries.iter().filter(is_meant).collect();
    let now = now_us();
    let waiting: Vec<&Entry> =
        meant.iter().copied().filter(|entry| is_pending(entry, now)).collect();
    let meant = if waiting.is_empty() { meant } else { waiting };
    match &meant[..] {
        [] => {
            let failure = Failure::new(Exit::Invalid, format!("there is no request `{shown}`"));
            Err(failure.hint("`tapegate approvals --all` lists those there were"))
        }
        [entry] => Ok((*entry).clone()),
        several => {
            let ids: Vec<&str> = several.iter().map(|entry| entry.request.id.as_str()).collect();
            let words = format!("`{shown}` could be any of {}", ids.join(", "));
            Err(Failure::new(Exit::Invalid, words))
        }
    }
}
