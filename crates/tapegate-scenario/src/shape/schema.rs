//! The tables as JSON Schema, for editors and other programs.
