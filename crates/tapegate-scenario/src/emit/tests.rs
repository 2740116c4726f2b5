//! What is written is what was meant.
