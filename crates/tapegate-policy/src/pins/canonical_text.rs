//! Canonical JSON on several lines, so that two versions can be compared line by line.

/// Appends a JSON text without white space, one member or element per line. All lines but the first
/// are indented by at least `depth` levels.
pub(super) fn write_lines(out: &mut Vec<u8>, json: &[u8], mut depth: usize) {
    let (mut string, mut escape) = (false, false);
    let mut bytes = json.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if string {
            out.push(byte);
            string = escape || byte != b'"';
            escape = !escape && byte == b'\\';
            continue;
        }
        match byte {
            b'"' => {
                string = true;
                out.push(byte);
            }
            b'{' | b'[' => {
                out.push(byte);
                // In ASCII, each closing bracket is two after its opening one.
                match bytes.next_if(|next| *next == byte + 2) {
                    Some(end) => out.push(end),
                    None => {
                        depth += 1;
                        line(out, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            _ => out.push(byte),
        }
    }
}

fn line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.extend(std::iter::repeat_n(b' ', 2 * depth));
}
