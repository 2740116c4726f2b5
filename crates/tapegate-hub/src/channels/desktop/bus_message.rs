//! Messages of D-Bus as bytes: what is needed to call methods and to read replies and signals.
//!
//! <https://dbus.freedesktop.org/doc/dbus-specification.html#message-protocol>

/// Longer messages are refused; the ones that are meant for us are much shorter.
const MESSAGE_BYTES_MAX: usize = 1 << 20;
/// The part of a header that tells how long the message is.
pub(super) const HEAD_BYTES: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BusMessageKind {
    Return,
    Error,
    Signal,
    /// A method call, or a kind of later versions.
    Other,
}

/// A message that was received.
#[derive(Debug, Clone)]
pub(super) struct BusMessage {
    pub(super) kind: BusMessageKind,
    pub(super) reply_serial: Option<u32>,
    pub(super) path: String,
    pub(super) interface: String,
    pub(super) member: String,
    pub(super) error_name: String,
    /// The unique name of the sender, which only the bus can write.
    pub(super) sender: String,
    signature: String,
    body: Vec<u8>,
    is_big_endian: bool,
}

/// A method that is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct MethodCall<'a> {
    pub(super) destination: &'a str,
    pub(super) path: &'a str,
    pub(super) interface: &'a str,
    pub(super) member: &'a str,
}

/// The arguments of a call.
#[derive(Debug, Default)]
pub(super) struct MethodArguments {
    signature: String,
    bytes: Vec<u8>,
}

impl MethodCall<'_> {
    /// The bytes of the call.
    pub(super) fn encode(&self, serial: u32, arguments: &MethodArguments) -> Vec<u8> {
        let mut fields = ByteWriter::default();
        for (code, kind, text) in [
            (1, "o", self.path),
            (2, "s", self.interface),
            (3, "s", self.member),
            (6, "s", self.destination),
        ] {
            fields.field(code, kind);
            fields.string(text);
        }
        if !arguments.signature.is_empty() {
            fields.field(8, "g");
            fields.signature(&arguments.signature);
        }
        // Little-endian, a method call, no flags, version 1.
        let mut message = ByteWriter(vec![b'l', 1, 0, 1]);
        message.number(length_of(&arguments.bytes));
        message.number(serial);
        message.number(length_of(&fields.0));
        // The fields begin at a multiple of eight, so their own alignment stays right.
        message.0.extend(fields.0);
        message.align(8);
        message.0.extend(&arguments.bytes);
        message.0
    }
}

impl MethodArguments {
    pub(super) fn string(mut self, text: &str) -> Self {
        self.write("s", |bytes| bytes.string(text));
        self
    }

    pub(super) fn number(mut self, number: u32) -> Self {
        self.write("u", |bytes| bytes.number(number));
        self
    }

    pub(super) fn signed(mut self, number: i32) -> Self {
        self.write("i", |bytes| bytes.number(number.cast_unsigned()));
        self
    }

    pub(super) fn strings(mut self, texts: &[&str]) -> Self {
        self.write("as", |bytes| {
            bytes.array(4, |bytes| texts.iter().for_each(|text| bytes.string(text)));
        });
        self
    }

    /// A map of names to bytes and switches, as hints of notifications are.
    pub(super) fn hints(mut self, hints: &[(&str, NotificationHint)]) -> Self {
        self.write("a{sv}", |bytes| {
            bytes.array(8, |bytes| {
                for (name, value) in hints {
                    bytes.align(8);
                    bytes.string(name);
                    match value {
                        NotificationHint::Byte(byte) => {
                            bytes.signature("y");
                            bytes.0.push(*byte);
                        }
                        NotificationHint::Switch(is_on) => {
                            bytes.signature("b");
                            bytes.number(u32::from(*is_on));
                        }
                    }
                }
            });
        });
        self
    }

    fn write(&mut self, signature: &str, write: impl FnOnce(&mut ByteWriter)) {
        self.signature.push_str(signature);
        let mut bytes = ByteWriter(std::mem::take(&mut self.bytes));
        write(&mut bytes);
        self.bytes = bytes.0;
    }
}

/// The value of a hint.
#[derive(Debug, Clone, Copy)]
pub(super) enum NotificationHint {
    Byte(u8),
    Switch(bool),
}

impl BusMessage {
    /// How many bytes a message has that begins like this; `None` if it is not valid or too long.
    pub(super) fn length(head: &[u8; HEAD_BYTES]) -> Option<usize> {
        let mut reader = ByteReader::of(head)?;
        reader.at = 4;
        let (body, _, fields) = (reader.number()?, reader.number()?, reader.number()?);
        let (body, fields) = (usize::try_from(body).ok()?, usize::try_from(fields).ok()?);
        let is_right = head[3] == 1 && body <= MESSAGE_BYTES_MAX && fields <= MESSAGE_BYTES_MAX;
        let length = (HEAD_BYTES + fields).next_multiple_of(8) + body;
        (is_right && length <= MESSAGE_BYTES_MAX).then_some(length)
    }

    /// Reads a whole message.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = ByteReader::of(bytes)?;
        reader.at = HEAD_BYTES - 4;
        let fields_end = HEAD_BYTES + usize::try_from(reader.number()?).ok()?;
        let mut message = Self {
            kind: match bytes[1] {
                2 => BusMessageKind::Return,
                3 => BusMessageKind::Error,
                4 => BusMessageKind::Signal,
                _ => BusMessageKind::Other,
            },
            reply_serial: None,
            path: String::new(),
            interface: String::new(),
            member: String::new(),
            error_name: String::new(),
            sender: String::new(),
            signature: String::new(),
            body: bytes.get(fields_end.next_multiple_of(8)..)?.to_vec(),
            is_big_endian: reader.is_big_endian,
        };
        while reader.at < fields_end {
            reader.align(8)?;
            let code = reader.byte()?;
            match (code, reader.signature()?) {
                (1, "o") => message.path = reader.string()?,
                (2, "s") => message.interface = reader.string()?,
                (3, "s") => message.member = reader.string()?,
                (4, "s") => message.error_name = reader.string()?,
                (5, "u") => message.reply_serial = Some(reader.number()?),
                (7, "s") => message.sender = reader.string()?,
                (8, "g") => message.signature = reader.signature()?.to_owned(),
                (_, kind) => reader.skip(kind)?,
            }
        }
        Some(message)
    }

    /// The body, if it is of these types.
    pub(super) fn body(&self, signature: &str) -> Option<ByteReader<'_>> {
        let is_big_endian = self.is_big_endian;
        (self.signature == signature).then_some(ByteReader {
            bytes: &self.body,
            at: 0,
            is_big_endian,
        })
    }

    /// The text that errors begin with.
    pub(super) fn first_text(&self) -> Option<String> {
        let is_big_endian = self.is_big_endian;
        let mut body = ByteReader { bytes: &self.body, at: 0, is_big_endian };
        self.signature.starts_with('s').then(|| body.string()).flatten()
    }
}

/// Lengths are of texts that we have cut, so they fit.
fn length_of(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Writes values at their alignment, little-endian.
#[derive(Debug, Default)]
struct ByteWriter(Vec<u8>);

impl ByteWriter {
    fn align(&mut self, to: usize) {
        self.0.resize(self.0.len().next_multiple_of(to), 0);
    }

    fn number(&mut self, number: u32) {
        self.align(4);
        self.0.extend(number.to_le_bytes());
    }

    fn string(&mut self, text: &str) {
        // A text with a NUL would end the connection.
        let text = text.replace('\0', "");
        self.number(length_of(text.as_bytes()));
        self.0.extend(text.as_bytes());
        self.0.push(0);
    }

    fn signature(&mut self, signature: &str) {
        self.0.push(u8::try_from(signature.len()).unwrap_or(u8::MAX));
        self.0.extend(signature.as_bytes());
        self.0.push(0);
    }

    /// Begins a field of a header.
    fn field(&mut self, code: u8, kind: &str) {
        self.align(8);
        self.0.push(code);
        self.signature(kind);
    }

    /// An array, whose length does not include the space before its first element.
    fn array(&mut self, element_alignment: usize, write: impl FnOnce(&mut Self)) {
        self.number(0);
        let length_at = self.0.len() - 4;
        self.align(element_alignment);
        let start = self.0.len();
        write(self);
        let length = length_of(&self.0[start..]);
        self.0[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
    }
}

/// Reads values at their alignment.
#[derive(Debug)]
pub(super) struct ByteReader<'a> {
    bytes: &'a [u8],
    at: usize,
    is_big_endian: bool,
}

impl<'a> ByteReader<'a> {
    /// A reader of a message, which begins with its byte order.
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let is_big_endian = match bytes.first()? {
            b'l' => false,
            b'B' => true,
            _ => return None,
        };
        Some(Self { bytes, at: 0, is_big_endian })
    }

    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(count)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn align(&mut self, to: usize) -> Option<()> {
        self.take(self.at.next_multiple_of(to) - self.at).map(drop)
    }

    fn byte(&mut self) -> Option<u8> {
        Some(self.take(1)?[0])
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.align(4)?;
        let bytes: [u8; 4] = self.take(4)?.try_into().ok()?;
        Some(if self.is_big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    pub(super) fn string(&mut self) -> Option<String> {
        let length = usize::try_from(self.number()?).ok()?;
        let text = std::str::from_utf8(self.take(length)?).ok()?.to_owned();
        (self.byte()? == 0).then_some(text)
    }

    pub(super) fn strings(&mut self) -> Option<Vec<String>> {
        let length = usize::try_from(self.number()?).ok()?;
        let end = self.at.checked_add(length)?;
        let mut texts = Vec::new();
        while self.at < end {
            texts.push(self.string()?);
        }
        Some(texts)
    }

    fn signature(&mut self) -> Option<&'a str> {
        let length = usize::from(self.byte()?);
        let text = std::str::from_utf8(self.take(length)?).ok()?;
        (self.byte()? == 0).then_some(text)
    }

    /// Skips a value of a header field that we do not use. Those have simple types.
    fn skip(&mut self, kind: &str) -> Option<()> {
        match kind {
            "s" | "o" => self.string().map(drop),
            "g" => self.signature().map(drop),
            "y" => self.byte().map(drop),
            "u" | "i" | "b" | "h" => self.number().map(drop),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> MethodCall<'static> {
        let (destination, path) = ("org.freedesktop.DBus", "/org/freedesktop/DBus");
        MethodCall { destination, path, interface: "org.freedesktop.DBus", member: "Hello" }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let arguments = MethodArguments::default()
            .string("a")
            .number(7)
            .strings(&["one", "", "ä"])
            .hints(&[
                ("urgency", NotificationHint::Byte(2)),
                ("resident", NotificationHint::Switch(true)),
            ])
            .signed(-1);
        let bytes = call().encode(3, &arguments);
        let head: [u8; HEAD_BYTES] = bytes[..HEAD_BYTES].try_into().unwrap();
        assert_eq!(BusMessage::length(&head), Some(bytes.len()));
        let message = BusMessage::decode(&bytes).unwrap();
        assert_eq!((message.member.as_str(), message.kind), ("Hello", BusMessageKind::Other));
        let mut body = message.body("suasa{sv}i").unwrap();
        assert_eq!((body.string(), body.number()), (Some("a".to_owned()), Some(7)));
        assert_eq!(body.strings().unwrap(), ["one", "", "ä"]);
        assert!(message.body("su").is_none());
        // No prefix of it is taken for a message, and nothing panics.
        for end in HEAD_BYTES..bytes.len() - arguments.bytes.len() {
            assert!(BusMessage::decode(&bytes[..end]).is_none(), "{end}");
        }
    }

    #[test]
    fn both_byte_orders_are_read() {
        // A signal with the body `(us)`, as a big-endian program would send it.
        let mut bytes = vec![b'B', 4, 0, 1, 0, 0, 0, 14, 0, 0, 0, 1, 0, 0, 0, 24];
        bytes.extend([3, 1, b's', 0, 0, 0, 0, 1, b'M', 0]);
        // The next field begins at a multiple of eight.
        bytes.resize(32, 0);
        bytes.extend([8, 1, b'g', 0, 2, b'u', b's', 0]);
        bytes.extend([0, 0, 0, 9, 0, 0, 0, 5, b'h', b'e', b'l', b'l', b'o', 0]);
        let message = BusMessage::decode(&bytes).unwrap();
        assert_eq!((message.kind, message.member.as_str()), (BusMessageKind::Signal, "M"));
        let mut body = message.body("us").unwrap();
        assert_eq!((body.number(), body.string()), (Some(9), Some("hello".to_owned())));
    }

    #[test]
    fn lengths_that_cannot_be_are_refused() {
        let head = |body: u32, fields: u32| {
            let mut head = [0; HEAD_BYTES];
            head[..4].copy_from_slice(&[b'l', 4, 0, 1]);
            head[4..8].copy_from_slice(&body.to_le_bytes());
            head[12..].copy_from_slice(&fields.to_le_bytes());
            BusMessage::length(&head)
        };
        assert_eq!((head(3, 9), head(0, 0)), (Some(16 + 16 + 3), Some(16)));
        assert_eq!((head(u32::MAX, 0), head(0, u32::MAX), head(1 << 20, 1)), (None, None, None));
        assert_eq!(BusMessage::length(&[0; HEAD_BYTES]), None);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(0u8.., 0..200), big: bool) {
            if let Some(first) = bytes.first_mut() {
                *first = if big { b'B' } else { b'l' };
            }
            if bytes.len() >= HEAD_BYTES && let Some(message) = BusMessage::decode(&bytes) {
                message.first_text();
                message.body(&message.signature).and_then(|mut body| body.strings());
            }
        }
    }
}
