//! OTLP messages in both of their encodings: protobuf, and OTLP's JSON mapping.
//!
//! A message is a list of fields, each with a number, a name and a value, so both encodings are
//! written from the same data.

use std::rc::Rc;

use tapegate_core::hex;
use tapegate_core::json::write_str;

pub(super) type OtlpMessage = Vec<OtlpField>;

/// A field of a message.
pub(super) struct OtlpField {
    number: u32,
    name: &'static str,
    value: OtlpValue,
}

/// The value of a field.
pub(super) enum OtlpValue {
    Text(String),
    /// An id: bytes, written as hexadecimal digits in JSON.
    Id(Vec<u8>),
    Fixed64(u64),
    Int64(i64),
    Enum(u32),
    Double(f64),
    Bool(bool),
    Message(OtlpMessage),
    /// Several messages.
    Messages(Vec<OtlpMessage>),
    /// Shared messages: the exporter keeps a batch until it has been sent.
    Shared(Vec<Rc<OtlpMessage>>),
    /// Several integers, packed.
    Counts(Vec<u64>),
    /// Several floating-point numbers, packed.
    Doubles(Vec<f64>),
}

pub(super) fn field(number: u32, name: &'static str, value: OtlpValue) -> OtlpField {
    OtlpField { number, name, value }
}

/// Attributes, encoded as key-value pairs.
pub(super) fn attributes(pairs: Vec<(&str, OtlpValue)>) -> OtlpValue {
    let pair = |(key, value): (&str, OtlpValue)| {
        let (number, name) = match &value {
            OtlpValue::Bool(_) => (2, "boolValue"),
            OtlpValue::Int64(_) => (3, "intValue"),
            OtlpValue::Double(_) => (4, "doubleValue"),
            _ => (1, "stringValue"),
        };
        let any = vec![field(number, name, value)];
        let key = field(1, "key", OtlpValue::Text(key.to_owned()));
        vec![key, field(2, "value", OtlpValue::Message(any))]
    };
    OtlpValue::Messages(pairs.into_iter().map(pair).collect())
}

/// Encodes a message as protobuf.
pub(super) fn protobuf(message: &OtlpMessage) -> Vec<u8> {
    let mut out = Vec::new();
    for OtlpField { number, value, .. } in message {
        match value {
            OtlpValue::Text(text) => write_chunk(&mut out, *number, text.as_bytes()),
            OtlpValue::Id(bytes) => write_chunk(&mut out, *number, bytes),
            OtlpValue::Fixed64(bits) => fixed(&mut out, *number, *bits),
            OtlpValue::Double(double) => fixed(&mut out, *number, double.to_bits()),
            OtlpValue::Int64(int) => write_tagged(&mut out, *number, *int as u64),
            OtlpValue::Enum(word) => write_tagged(&mut out, *number, u64::from(*word)),
            OtlpValue::Bool(bool) => write_tagged(&mut out, *number, u64::from(*bool)),
            OtlpValue::Message(inner) => write_chunk(&mut out, *number, &protobuf(inner)),
            OtlpValue::Messages(all) => {
                all.iter().for_each(|inner| write_chunk(&mut out, *number, &protobuf(inner)));
            }
            OtlpValue::Shared(all) => {
                all.iter().for_each(|inner| write_chunk(&mut out, *number, &protobuf(inner)));
            }
            OtlpValue::Counts(all) => {
                let packed: Vec<u8> = all.iter().flat_map(|count| count.to_le_bytes()).collect();
                write_chunk(&mut out, *number, &packed);
            }
            OtlpValue::Doubles(all) => {
                let packed: Vec<u8> = all.iter().flat_map(|double| double.to_le_bytes()).collect();
                write_chunk(&mut out, *number, &packed);
            }
        }
    }
    out
}

/// Encodes a message as JSON.
pub(super) fn json(message: &OtlpMessage) -> Vec<u8> {
    let mut out = Vec::new();
    object(&mut out, message);
    out
}

fn varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn write_tagged(out: &mut Vec<u8>, number: u32, value: u64) {
    varint(out, u64::from(number) << 3);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, number: u32, bits: u64) {
    varint(out, u64::from(number) << 3 | 1);
    out.extend_from_slice(&bits.to_le_bytes());
}

fn write_chunk(out: &mut Vec<u8>, number: u32, bytes: &[u8]) {
    varint(out, u64::from(number) << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn object(out: &mut Vec<u8>, message: &OtlpMessage) {
    out.push(b'{');
    for (index, OtlpField { name, value, .. }) in message.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write_str(out, name);
        out.push(b':');
        match value {
            OtlpValue::Text(text) => write_str(out, text),
            OtlpValue::Id(bytes) => write_str(out, &hex::encode(bytes)),
            // 64-bit integers are strings, because many JSON parsers cannot represent them.
            OtlpValue::Fixed64(bits) => write_str(out, &bits.to_string()),
            OtlpValue::Int64(int) => write_str(out, &int.to_string()),
            OtlpValue::Enum(word) => out.extend_from_slice(word.to_string().as_bytes()),
            OtlpValue::Double(double) => out.extend_from_slice(double.to_string().as_bytes()),
            OtlpValue::Bool(bool) => out.extend_from_slice(bool.to_string().as_bytes()),
            OtlpValue::Message(inner) => object(out, inner),
            OtlpValue::Messages(all) => array(out, all, object),
            OtlpValue::Shared(all) => array(out, all, |out, inner| object(out, inner)),
            OtlpValue::Counts(all) => {
                array(out, all, |out, count| write_str(out, &count.to_string()))
            }
            OtlpValue::Doubles(all) => {
                array(out, all, |out, double| out.extend_from_slice(double.to_string().as_bytes()));
            }
        }
    }
    out.push(b'}');
}

fn array<T>(out: &mut Vec<u8>, all: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    out.push(b'[');
    for (index, one) in all.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(out, one);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_protobuf_has_it() {
        let yes = || vec![field(1, "f", OtlpValue::Bool(true))];
        let message = vec![
            field(1, "a", OtlpValue::Text("hi".to_owned())),
            field(2, "b", OtlpValue::Int64(-1)),
            field(16, "c", OtlpValue::Enum(300)),
            field(3, "d", OtlpValue::Fixed64(1)),
            field(4, "e", OtlpValue::Messages(vec![yes(), yes()])),
        ];
        let mut expected = vec![0x0a, 2, b'h', b'i', 0x10];
        expected.extend([0xff; 9]);
        expected.extend([1, 0x80, 1, 0xac, 2, 0x19, 1, 0, 0, 0, 0, 0, 0, 0]);
        expected.extend([0x22, 2, 8, 1, 0x22, 2, 8, 1]);
        assert_eq!(protobuf(&message), expected);
    }

    #[test]
    fn a_message_is_written_as_json_has_it() {
        let message = vec![
            field(1, "traceId", OtlpValue::Id(vec![0, 0xab])),
            field(2, "n", OtlpValue::Fixed64(u64::MAX)),
            field(3, "bounds", OtlpValue::Doubles(vec![0.01, 5.0])),
            field(4, "attributes", attributes(vec![("k\"", OtlpValue::Int64(7))])),
        ];
        let text = String::from_utf8(json(&message)).unwrap();
        assert_eq!(
            text,
            r#"{"traceId":"00ab","n":"18446744073709551615","bounds":[0.01,5],"attributes":[{"key":"k\"","value":{"intValue":"7"}}]}"#
        );
    }
}
