//! The ids of servers in policies.

/// Turns a word into an id for a policy; `None` if nothing is left of it.
pub fn id_from(word: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    // A fixed alphabet, because ids are part of file names, globs and metrics.
    let id: String = word.chars().map(|c| if fits(c) { c } else { '-' }).take(64).collect();
    let id = id.trim_matches(['.', '_', '-']);
    (!id.is_empty()).then(|| id.to_owned())
}

/// The id of a server in a policy: what remains of its name, or a number made of it.
pub fn server_id(name: &str) -> String {
    // A server must not escape the gate because of the letters of its name.
    id_from(name).unwrap_or_else(|| {
        let sum = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
        });
        format!("server-{:08x}", sum >> 32)
    })
}
