//! Finds a request by a prefix of its id.

use std::path::Path;

use tapegate_store::approvals::ApprovalEntry;

use crate::exit::{Exit, Failure};
use crate::program_name;
use crate::state_folder::now_us;
use crate::views::approvals::is_pending;
use crate::views::visible_text;

/// A shorter prefix would soon match another request.
const LETTERS_MIN: usize = 3;
/// The hint for a request that may belong to another project.
pub(super) const ELSEWHERE: &str =
    "requests of another project are listed in its folder, or with --state DIR";
/// The prefix of all ids.
const BEGINNING: &str = "ap_";

/// The request that `word` names. Pending requests are preferred.
pub(super) fn find_request(
    entries: &[ApprovalEntry],
    word: &str,
    state: &Path,
) -> Result<ApprovalEntry, Failure> {
    if let Some(entry) = entries.iter().find(|entry| entry.request.id == word) {
        return Ok(entry.clone());
    }
    let display_text = visible_text::inline(word, 80);
    let letters = word.strip_prefix(BEGINNING).unwrap_or(word);
    if letters.len() < LETTERS_MIN {
        let message = format!(
            "`{display_text}` is too short to identify a request: give at least {LETTERS_MIN} letters \
             after `{BEGINNING}`"
        );
        return Err(Failure::new(Exit::Invalid, message)
            .hint(format!("`{}` lists them", program_name::command("approvals"))));
    }
    let is_meant = |entry: &&ApprovalEntry| {
        let id = entry.request.id.as_str();
        id.strip_prefix(BEGINNING).unwrap_or(id).starts_with(letters)
    };
    let meant: Vec<&ApprovalEntry> = entries.iter().filter(is_meant).collect();
    let now = now_us();
    let waiting: Vec<&ApprovalEntry> =
        meant.iter().copied().filter(|entry| is_pending(entry, now)).collect();
    // A short prefix usually means a call that waits, not one of last week.
    let meant = if waiting.is_empty() { meant } else { waiting };
    match &meant[..] {
        [] => {
            let message = format!("there is no request `{display_text}` in `{}`", state.display());
            let hint = format!(
                "`{}` lists all requests; {ELSEWHERE}",
                program_name::command("approvals --all")
            );
            Err(Failure::new(Exit::Invalid, message).hint(hint))
        }
        [entry] => Ok((*entry).clone()),
        several => {
            let ids: Vec<&str> = several.iter().map(|entry| entry.request.id.as_str()).collect();
            let message = format!("`{display_text}` could be any of {}", ids.join(", "));
            Err(Failure::new(Exit::Invalid, message))
        }
    }
}
