//! Compares what servers offer with the definitions a person has accepted.
//!
//! A lock holds the definition of every tool, prompt, resource and template of a server at the time
//! it was pinned. A definition that differs later has drifted: a description that was harmless when
//! it was reviewed may now contain instructions. A server that was never pinned is not checked.

mod canonical_text;
mod definition;
mod drift;
mod lock;
mod shadow;
mod survey;
mod tool_hints;

pub use drift::{DefinitionWatch, DriftedItem, ListReader};
pub(crate) use drift::{NOT_COMPARED, drift_message, refusal_message};
pub use lock::{LockError, Pin, PinLock, PinnedServer};
pub use shadow::{ShadowedTools, find_shadows};
pub use survey::{PinDifference, ServerSurvey};
pub use tool_hints::{Hint, HintTest, HintValue, Hints};
