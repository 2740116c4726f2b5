//! Tests for routing by id and for renaming.

use tapegate_core::frame::Frame;
use tapegate_core::gate::PermitAllGate;
use tapegate_core::relay::{Relay, RelayAction, RelayEvent};
use tapegate_core::side::Side;
use tapegate_core::time::Timestamp;

use super::*;
use crate::http::request_headers::RequestHeaders;

/// A message permitted by a relay without a gate.
fn permitted(text: &[u8]) -> PermittedMessage<'static> {
    let (lane, from, frame, terminated) = (Lane::ONLY, Side::Client, &Frame::read(text), true);
    let event = RelayEvent::Received { lane, from, frame, terminated };
    let mut message = None;
    Relay::default().handle(Timestamp::default(), event, &mut PermitAllGate, &mut |action| {
        if let RelayAction::Forward { message: forwarded, .. } = action {
            message = Some(forwarded.into_owned());
        }
    });
    message.expect("it is forwarded")
}

fn exchange(number: u64) -> Rc<PostExchange> {
    let lane = Lane { session: 1, exchange: number };
    Rc::new(PostExchange::new(
        number,
        lane,
        &RequestHeaders::read(&http::HeaderMap::new()),
        None,
        1,
    ))
}

fn placed(id_map: &mut IdMap, text: &str) -> (Option<u64>, String) {
    let frame = Frame::read(text.as_bytes());
    let mut edits = JsonEdits::new(text.as_bytes());
    let envelope = frame.envelope().expect("a message");
    let place = id_map.route(envelope, None, &mut edits);
    let number = place.lane().map(|lane| lane.exchange);
    (number, String::from_utf8_lossy(&edits.finish()).into_owned())
}

const LISTEN: &str =
    r#"{"id": 1, "method":"subscriptions/listen","params":{"_meta":{"progressToken": 1 }}}"#;

#[test]
fn only_names_in_use_change_and_every_one_changes_back() {
    let (mut id_map, one, two) = (IdMap::default(), exchange(1), exchange(2));
    assert_eq!(id_map.add_requests(&one, permitted(LISTEN.as_bytes())).bytes(), LISTEN.as_bytes());
    let renamed =
        String::from_utf8_lossy(id_map.add_requests(&two, permitted(LISTEN.as_bytes())).bytes())
            .into_owned();
    let expected = r#"{"id": "tapegate-1", "method":"subscriptions/listen","params":{"_meta":{"progressToken": "tapegate-2" }}}"#;
    assert_eq!(renamed, expected);

    let progress = |token: &str| {
        format!(r#"{{"method":"notifications/progress","params":{{"progressToken": {token}}}}}"#)
    };
    assert_eq!(placed(&mut id_map, &progress("1")), (Some(1), progress("1")));
    assert_eq!(placed(&mut id_map, &progress("\"tapegate-2\"")), (Some(2), progress("1")));
    let tagged = |id: &str| {
        let meta = format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}"#);
        (
            format!(r#"{{"method":"x","params":{meta}}}"#),
            format!(r#"{{"result":{meta},"id":{id}}}"#),
        )
    };
    let ((theirs, their_end), (ours, our_end)) = (tagged("1"), tagged("\"tapegate-1\""));
    assert_eq!(placed(&mut id_map, &ours), (Some(2), theirs));
    assert_eq!(placed(&mut id_map, &our_end), (Some(2), their_end.clone()));
    assert_eq!(placed(&mut id_map, &their_end), (Some(1), their_end.clone()));
    assert!(matches!(
        id_map.route(
            Frame::read(their_end.as_bytes()).envelope().expect("a message"),
            None,
            &mut JsonEdits::new(b"")
        ),
        MessageRoute::Unasked
    ));
    assert!(id_map.exchanges().is_empty() && id_map.tokens.is_empty());
}

#[test]
fn a_cancellation_names_the_request_as_the_server_knows_it() {
    let (mut id_map, one, two) = (IdMap::default(), exchange(1), exchange(2));
    id_map.add_requests(&one, permitted(LISTEN.as_bytes()));
    id_map.add_requests(&two, permitted(LISTEN.as_bytes()));
    let cancel = br#"{"method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(id_map.cancel(one.lane, permitted(cancel)).bytes(), cancel);
    let renamed = br#"{"method":"notifications/cancelled","params":{"requestId":"tapegate-1"}}"#;
    assert_eq!(id_map.cancel(two.lane, permitted(cancel)).bytes(), renamed);
    assert!(one.cancelled.get() && two.cancelled.get());
}

#[test]
fn a_log_message_goes_to_the_only_one_who_can_be_meant() {
    let (mut id_map, one, two) = (IdMap::default(), exchange(1), exchange(2));
    let log = r#"{"method":"notifications/message","params":{}}"#;
    let call = br#"{"id":1,"method":"tools/call","params":{}}"#;
    id_map.add_requests(&one, permitted(LISTEN.as_bytes()));
    assert_eq!(placed(&mut id_map, log).0, None);
    id_map.add_requests(&two, permitted(call));
    assert_eq!(placed(&mut id_map, log).0, Some(2));
    let three = exchange(3);
    id_map.add_requests(&three, permitted(call));
    assert_eq!(placed(&mut id_map, log).0, None);
    three.gone.set(true);
    assert_eq!(placed(&mut id_map, log).0, Some(2));
}

#[test]
fn what_is_about_a_request_goes_to_who_has_made_it_as_long_as_it_waits() {
    let (mut id_map, one, two) = (IdMap::default(), exchange(1), exchange(2));
    let call = br#"{"id":1,"method":"tools/call","params":{}}"#;
    id_map.add_requests(&one, permitted(call));
    id_map.add_requests(&two, permitted(call));
    let log = Frame::read(br#"{"method":"notifications/message","params":{}}"#);
    let envelope = log.envelope().expect("a message");
    let place = |id_map: &mut IdMap, about: &[u8]| {
        id_map
            .route(envelope, Some(about), &mut JsonEdits::new(b""))
            .lane()
            .map(|lane| lane.exchange)
    };
    assert_eq!(place(&mut id_map, b"1"), Some(1));
    assert_eq!(place(&mut id_map, b"\"tapegate-1\""), Some(2));
    assert_eq!(place(&mut id_map, b"7"), None);
}

#[test]
fn an_id_that_servers_may_read_as_another_gets_a_name_of_its_own() {
    for id in ["1.0", "1e0", "-0", "10E-1", "9007199254740993", r#""\u0031""#] {
        let (mut id_map, one) = (IdMap::new(true), exchange(1));
        let text = format!(r#"{{"id":{id},"method":"tools/call"}}"#);
        let sent = id_map.add_requests(&one, permitted(text.as_bytes())).bytes().to_vec();
        assert_eq!(sent, br#"{"id":"tapegate-1","method":"tools/call"}"#, "{id}");
        let answered = placed(&mut id_map, r#"{"id":"tapegate-1","result":{}}"#);
        assert_eq!(answered, (Some(1), format!(r#"{{"id":{id},"result":{{}}}}"#)));
    }
    for id in ["1", "-1", "0", "999999999999999", r#""1""#, r#""é""#] {
        let (mut id_map, one) = (IdMap::default(), exchange(1));
        let text = format!(r#"{{"id":{id},"method":"tools/call"}}"#);
        assert_eq!(
            id_map.add_requests(&one, permitted(text.as_bytes())).bytes(),
            text.as_bytes(),
            "{id}"
        );
    }
}
