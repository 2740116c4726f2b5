//! How what is said at one seat travels: at once, late, in pieces, or with more than was asked for.
//!
//! On a pipe, what has begun is finished before anything else is sent; with streams, each answer
//! goes its own way.
