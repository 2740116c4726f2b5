//! Random numbers from the system.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};
use tapegate_core::hex;

/// Random bytes.
pub fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// A random id of 16 hexadecimal digits.
pub fn id() -> io::Result<String> {
    bytes::<8>().map(|bytes| hex::encode(&bytes))
}
