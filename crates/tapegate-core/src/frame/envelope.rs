//! The envelope of a message, read in one pass over its text.

use super::key_folding::lenient_key_match;
use crate::json::{Cursor, JsonFault, JsonKind, JsonStr};

/// The members of a message.
const MEMBERS: &[&str] = &["jsonrpc", "id", "method", "params", "result", "error"];
/// The members of a result that are inspected: input requests, tasks (which may hold input requests), and
/// lists of what the server offers.
const RESULTS: &[&str] =
    &["inputRequests", "task", "tasks", "tools", "resources", "resourceTemplates", "prompts"];

/// The kind of a message, by the members it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageKind {
    /// A method and an id: it expects an answer.
    Request,
    /// A method without an id.
    Notification,
    /// A result for an id.
    Response,
    /// An error, with or without an id.
    Error,
    /// An object that is not a JSON-RPC message.
    Other,
}

/// The members of a message that routing, pairing, recording and gates need, borrowed from its bytes. After
/// [`Frame::read_without_gate_details`](super::Frame::read_without_gate_details), `input_requests`, `tasks`, `twisted`, `plain` and `lists` are not
/// set.
#[derive(Debug, Clone, Default)]
pub struct Envelope<'a> {
    /// The id exactly as written: `1`, `1.0` and `"1"` are three ids.
    pub id: Option<&'a [u8]>,
    /// The method, if it is a string.
    pub method: Option<JsonStr<'a>>,
    /// The raw text of `params`.
    pub params: Option<&'a [u8]>,
    /// The raw text of `result`.
    pub result: Option<&'a [u8]>,
    /// The raw text of `error`.
    pub error: Option<&'a [u8]>,
    /// `params.name`, if it is a string: a tool or a prompt.
    pub name: Option<JsonStr<'a>>,
    /// `params.uri`, if it is a string: a resource.
    pub uri: Option<JsonStr<'a>>,
    /// The raw text of `params.arguments`.
    pub arguments: Option<&'a [u8]>,
    /// The progress token: in `params._meta` of a request, in `params` of a progress notification.
    pub progress_token: Option<&'a [u8]>,
    /// `params.requestId`: the request that a cancellation refers to.
    pub request_id: Option<&'a [u8]>,
    /// `io.modelcontextprotocol/subscriptionId` in `params._meta`: the request a notification belongs to.
    pub subscription_id: Option<&'a [u8]>,
    /// `io.modelcontextprotocol/protocolVersion` in `params._meta`: sent with sessionless requests.
    pub protocol_version: Option<&'a [u8]>,
    /// `io.modelcontextprotocol/clientInfo` in `params._meta`: sent with sessionless requests.
    pub client_info: Option<&'a [u8]>,
    /// `traceparent` in `params._meta`.
    pub traceparent: Option<&'a [u8]>,
    /// The raw text of `result.inputRequests`, or of a key that lenient readers take for it: what the server
    /// asks the client for before it can answer.
    pub input_requests: Option<&'a [u8]>,
    /// The raw text of `result.task` or `result.tasks`, or of a key that lenient readers take for one.
    pub tasks: Option<&'a [u8]>,
    /// Whether `jsonrpc` is present and equals `"2.0"`.
    pub version_ok: bool,
    /// Whether a member named above occurs twice, so that readers may disagree about its value.
    pub repeated: bool,
    /// Whether a member has a name that lenient readers take for one of the message's own members.
    pub twisted: bool,
    /// Whether `params` have the form of most calls, and no member in them or one level below can be taken
    /// for another. False means unknown.
    pub plain: bool,
    /// Whether `result` has a member that some reader takes for a list of tools, resources or prompts.
    pub lists: bool,
}

/// Observes the params of a message while they are scanned.
pub(crate) trait ScanObserver<'a> {
    /// Whether to compute what only a gate needs.
    const CLOSELY: bool = true;

    /// Params begin. If they began before, the earlier ones do not count.
    fn params_begin(&mut self) {}

    /// A member of params is a string: its key and value.
    fn string(&mut self, _: JsonStr<'a>, _: JsonStr<'a>) {}

    /// Moves over the value of a member of params and returns its text.
    fn member(&mut self, _: JsonStr<'a>, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        cursor.value()
    }

    /// Called with the cursor before a `_meta` that is an object.
    fn meta(&mut self, _: JsonStr<'a>, _: &Cursor<'a>) {}

    /// Moves over params that are not an object and returns their text.
    fn scan_non_object(&mut self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        cursor.value()
    }
}

/// Observes nothing.
impl ScanObserver<'_> for () {}

/// Observes nothing, and skips what only a gate needs.
pub(crate) struct NoObserver;

impl ScanObserver<'_> for NoObserver {
    const CLOSELY: bool = false;
}

impl<'a> Envelope<'a> {
    /// Scans the object at the cursor and moves over it.
    pub(crate) fn scan<A: ScanObserver<'a>>(
        &mut self,
        cursor: &mut Cursor<'a>,
        along: &mut A,
    ) -> Result<(), JsonFault> {
        let (mut jsonrpc, mut method) = (None, false);
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            let slot = match &*key.bytes() {
                b"method" => {
                    // Counted even if it is not a string: readers differ in which one they use.
                    self.repeated |= std::mem::replace(&mut method, true);
                    match cursor.kind()? {
                        JsonKind::String => self.method = Some(cursor.string()?),
                        _ => drop(cursor.value()?),
                    }
                    continue;
                }
                b"params" => {
                    let params = self.scan_params(cursor, along)?;
                    // The last one counts, as in most JSON parsers, and `repeated` says that it is
                    // not certain.
                    self.repeated |= self.params.replace(params).is_some();
                    continue;
                }
                b"result" if A::CLOSELY => {
                    let result = self.scan_result(cursor)?;
                    self.repeated |= self.result.replace(result).is_some();
                    continue;
                }
                b"result" => &mut self.result,
                b"id" => &mut self.id,
                b"error" => &mut self.error,
                b"jsonrpc" => &mut jsonrpc,
                _ => {
                    // Without a gate no message is refused, so lookalikes need not be found.
                    self.twisted |= A::CLOSELY && lenient_key_match(key, MEMBERS).is_some();
                    cursor.value()?;
                    continue;
                }
            };
            self.repeated |= slot.replace(cursor.value()?).is_some();
        }
        self.version_ok = jsonrpc.is_some_and(|text| text == b"\"2.0\"");
        Ok(())
    }

    fn scan_params(
        &mut self,
        cursor: &mut Cursor<'a>,
        along: &mut impl ScanObserver<'a>,
    ) -> Result<&'a [u8], JsonFault> {
        along.params_begin();
        if cursor.kind()? != JsonKind::Object {
            return along.scan_non_object(cursor);
        }
        let start = cursor.position();
        cursor.open()?;
        let (mut name, mut uri) = (false, false);
        while let Some(key) = cursor.next_key()? {
            match &*key.bytes() {
                b"name" => {
                    self.repeated |= std::mem::replace(&mut name, true);
                    // A name that is not a string does not hide one that is; `repeated` is set
                    // either way.
                    self.name = scan_string(key, cursor, along)?.or(self.name);
                }
                b"uri" => {
                    self.repeated |= std::mem::replace(&mut uri, true);
                    self.uri = scan_string(key, cursor, along)?.or(self.uri);
                }
                b"arguments" => {
                    let arguments = along.member(key, cursor)?;
                    self.repeated |= self.arguments.replace(arguments).is_some();
                }
                // `_meta` of another type has nothing to find and is an ordinary member.
                b"_meta" if cursor.kind()? == JsonKind::Object => {
                    along.meta(key, cursor);
                    self.scan_meta(cursor)?;
                }
                b"progressToken" => self.progress_token = Some(along.member(key, cursor)?),
                b"requestId" => {
                    let id = along.member(key, cursor)?;
                    self.repeated |= self.request_id.replace(id).is_some();
                }
                _ => drop(along.member(key, cursor)?),
            }
        }
        Ok(cursor.slice(start, cursor.position()))
    }

    fn scan_result(&mut self, cursor: &mut Cursor<'a>) -> Result<&'a [u8], JsonFault> {
        if cursor.kind()? != JsonKind::Object {
            return cursor.value();
        }
        let start = cursor.position();
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            let value = cursor.value()?;
            match lenient_key_match(key, RESULTS) {
                Some(0) => self.repeated |= self.input_requests.replace(value).is_some(),
                Some(1 | 2) => self.repeated |= self.tasks.replace(value).is_some(),
                list => self.lists |= list.is_some(),
            }
        }
        Ok(cursor.slice(start, cursor.position()))
    }

    fn scan_meta(&mut self, cursor: &mut Cursor<'a>) -> Result<(), JsonFault> {
        cursor.open()?;
        while let Some(key) = cursor.next_key()? {
            let value = Some(cursor.value()?);
            match &*key.bytes() {
                b"progressToken" => self.progress_token = value,
                b"io.modelcontextprotocol/subscriptionId" => self.subscription_id = value,
                b"io.modelcontextprotocol/protocolVersion" => self.protocol_version = value,
                b"io.modelcontextprotocol/clientInfo" => self.client_info = value,
                b"traceparent" => self.traceparent = value,
                _ => {}
            }
        }
        Ok(())
    }

    /// The kind of the message.
    pub fn kind(&self) -> MessageKind {
        match (self.method, self.id) {
            (Some(_), Some(_)) => MessageKind::Request,
            (Some(_), None) => MessageKind::Notification,
            // Before `id` is required: an error about an unreadable message may have none.
            (None, _) if self.error.is_some() => MessageKind::Error,
            (None, Some(_)) if self.result.is_some() => MessageKind::Response,
            _ => MessageKind::Other,
        }
    }

    /// Whether the method is `name`, however it is escaped.
    pub fn is_method(&self, name: &str) -> bool {
        self.method.is_some_and(|method| method.is(name))
    }
}

/// Moves over a member of params and returns it if it is a string.
fn scan_string<'a>(
    key: JsonStr<'a>,
    cursor: &mut Cursor<'a>,
    along: &mut impl ScanObserver<'a>,
) -> Result<Option<JsonStr<'a>>, JsonFault> {
    if cursor.kind()? != JsonKind::String {
        along.member(key, cursor)?;
        return Ok(None);
    }
    let value = cursor.string()?;
    along.string(key, value);
    Ok(Some(value))
}

#[cfg(test)]
mod tests {
    use super::super::Frame;
    use super::*;

    fn envelope(text: &str) -> Envelope<'_> {
        Frame::read(text.as_bytes()).envelope().unwrap().clone()
    }

    #[test]
    fn a_call_shows_its_id_method_name_and_token() {
        let call = envelope(
            r#"{"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"x","arguments":{"name":"y"}},"jsonrpc":"2.0","id":"a"}"#,
        );
        assert_eq!(call.kind(), MessageKind::Request);
        assert_eq!(call.id, Some(&b"\"a\""[..]));
        assert!(call.is_method("tools/call") && call.name.unwrap().is("x"));
        assert_eq!(call.progress_token, Some(&b"7"[..]));
        assert!(call.version_ok && !call.repeated);
        assert!(call.params.unwrap().ends_with(b"}}"));
    }

    #[test]
    fn escaped_keys_are_seen() {
        let call =
            envelope(r#"{"\u006dethod":"tools\/call","i\u0064":1,"params":{"n\u0061me":"x"}}"#);
        assert!(call.is_method("tools/call") && call.name.unwrap().is("x"));
        assert_eq!(call.kind(), MessageKind::Request);
    }

    #[test]
    fn repeated_members_are_noticed_and_the_last_one_counts() {
        for text in [
            r#"{"id":1,"method":"a","method":"b"}"#,
            r#"{"id":1,"method":"b","id":1}"#,
            r#"{"id":1,"method":"b","params":{"name":"x","name":"y"}}"#,
            r#"{"id":1,"method":"b","params":{},"params":{}}"#,
            r#"{"id":1,"method":"b","params":{"uri":"x","\u0075ri":"y"}}"#,
            r#"{"id":1,"method":"b","method":null}"#,
            r#"{"id":1,"method":7,"method":"b"}"#,
            r#"{"id":1,"method":"b","params":{"name":"x","name":["y"]}}"#,
        ] {
            let seen = envelope(text);
            assert!(seen.repeated && seen.is_method("b"), "{text}");
        }
    }

    #[test]
    fn members_that_are_ours_to_a_careless_reader_are_noticed() {
        for text in [
            r#"{"id":1,"method":"a","METHOD":"b"}"#,
            r#"{"ID":1}"#,
            r#"{"id":1,"param\u017f":{}}"#,
            r#"{"id":1,"Re_sult":{}}"#,
        ] {
            assert!(envelope(text).twisted, "{text}");
        }
        let call = envelope(r#"{"id":1,"method":"a","params":{"Name":1},"x-trace":{"Method":1}}"#);
        assert!(!call.twisted && !call.repeated);
    }

    #[test]
    fn a_result_shows_whether_it_lists_anything_or_asks_for_more() {
        let lists = |result: &str| envelope(&format!(r#"{{"id":1,"result":{result}}}"#)).lists;
        for result in [
            r#"{"tools":[]}"#,
            r#"{"nextCursor":"x","resourceTemplates":[]}"#,
            r#"{"TOOLS":[]}"#,
            r#"{"\u0070rompts":[]}"#,
        ] {
            assert!(lists(result), "{result}");
        }
        assert!(!lists(r#"{"content":[{"tools":[]}]}"#) && !lists(r#"["tools"]"#));
        let asks = r#"{"id":1,"result":{"resultType":"input_required","inputRequests":{"a":{}}}}"#;
        assert_eq!(envelope(asks).input_requests, Some(&br#"{"a":{}}"#[..]));
        let task = r#"{"id":1,"result":{"Task":{"a":{}}}}"#;
        assert_eq!(envelope(task).tasks, Some(&br#"{"a":{}}"#[..]));
    }

    #[test]
    fn kinds_follow_the_members() {
        assert_eq!(envelope(r#"{"method":"x"}"#).kind(), MessageKind::Notification);
        assert_eq!(envelope(r#"{"method":"x","id":null}"#).kind(), MessageKind::Request);
        assert_eq!(envelope(r#"{"id":1,"result":null}"#).kind(), MessageKind::Response);
        assert_eq!(envelope(r#"{"id":null,"error":{}}"#).kind(), MessageKind::Error);
        assert_eq!(envelope(r#"{"id":1}"#).kind(), MessageKind::Other);
        assert_eq!(envelope(r#"{"method":3,"id":1}"#).kind(), MessageKind::Other);
        assert_eq!(envelope("{}").kind(), MessageKind::Other);
    }
}
