//! Compares what servers offer with the definitions a person has accepted.
//!
//! A lock holds the definition of every tool, prompt, resource and template of a server at the time
//! it was pinned. A definition that differs later has drifted: a description that was harmless when
//! it was reviewed may now contain instructions. A server that was never pinned is not checked.

mod definition;
mod drift;
mod hints;
mod lock;
mod shadow;
mod survey;
mod text;

pub use drift::{Drifted, Reader, Watch};
pub(crate) use drift::{NOT_COMPARED, refusal_words, told};
pub use hints::{Hint, HintTest, HintValue, Hints};
pub use lock::{Lock, LockError, Pin, Server};
pub use shadow::{Shadow, shadows};
pub use survey::{Difference, Survey};
