//! What a collector receives, read by a decoder that is independent of the encoder.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Condvar, Mutex};

use tapegate_hub::api::GovernanceDecision;
use tapegate_hub::hub_policy::HubPolicyLoad;

use crate::support::{GUARD, call, policy, raw, request, wait_until, with_hub};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The requests received: path, head and body.
type PostedRequests = Vec<(String, String, Vec<u8>)>;

/// A collector that answers everything with one status.
#[derive(Clone)]
struct Collector {
    port: u16,
    posted: Arc<(Mutex<PostedRequests>, Condvar)>,
}

impl Collector {
    fn start(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let collector = Self { port, posted: Arc::default() };
        let posted = Arc::clone(&collector.posted);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, posted) = (stream.unwrap(), Arc::clone(&posted));
                std::thread::spawn(move || {
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    while let Some(post) = read(&mut reader) {
                        posted.0.lock().unwrap().push(post);
                        posted.1.notify_all();
                        let reply = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
                        if stream.write_all(reply.as_bytes()).is_err() {
                            break;
                        }
                    }
                });
            }
        });
        collector
    }

    /// Waits for a post to `path` in which `wanted` finds something.
    async fn wait<T: Send + 'static>(
        &self,
        path: &'static str,
        wanted: impl Fn(&str, &[u8]) -> Option<T> + Send + 'static,
    ) -> T {
        let posted = Arc::clone(&self.posted);
        let found = tokio::task::spawn_blocking(move || {
            let (lock, more) = &*posted;
            let mut seen = 0;
            let mut posts = lock.lock().unwrap();
            loop {
                for (to, head, body) in &posts[seen..] {
                    if to == path
                        && let Some(found) = wanted(head, body)
                    {
                        return found;
                    }
                }
                seen = posts.len();
                let (next, late) = more.wait_timeout(posts, GUARD).unwrap();
                assert!(!late.timed_out(), "nothing was posted to {path}");
                posts = next;
            }
        });
        found.await.unwrap()
    }

    fn loading(&self, more: &str) -> HubPolicyLoad {
        let port = self.port;
        policy(&format!(
            r#"
schema: 1
governance:
  defaults: {{ action: forward }}
  rules: [{{ match: rm, action: deny }}]
telemetry:
  enabled: true
  otlp:
    endpoint: "http://127.0.0.1:{port}/base"
    headers: {{ x-tenant: blue }}
    {more}
  batch: {{ scheduled_delay_ms: 100, max_queue_size: 50, max_export_batch_size: 10 }}
  resource: {{ deployment.environment: test }}
"#
        ))
    }
}

fn read(reader: &mut impl BufRead) -> Option<(String, String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let lower = head.to_lowercase();
    let length = lower.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head.split(' ').nth(1)?.to_owned(), lower, body))
}

/// A field of a protobuf message.
#[derive(Debug, Clone)]
enum ProtobufField {
    Number(u64),
    Bytes(Vec<u8>),
}

impl ProtobufField {
    fn message(&self) -> BTreeMap<u64, Vec<ProtobufField>> {
        decode(self.bytes()).unwrap()
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Number(_) => panic!("a number where bytes should be"),
        }
    }

    fn text(&self) -> String {
        String::from_utf8(self.bytes().to_vec()).unwrap()
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Bytes(_) => panic!("bytes where a number should be"),
        }
    }
}

/// Every field of a message, by number.
fn decode(mut bytes: &[u8]) -> Option<BTreeMap<u64, Vec<ProtobufField>>> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let (first, rest) = bytes.split_first()?;
            *bytes = rest;
            number |= u64::from(first & 0x7f) << shift;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
    let mut fields = BTreeMap::<u64, Vec<ProtobufField>>::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => ProtobufField::Number(varint(&mut bytes)?),
            1 => {
                let (number, rest) = bytes.split_first_chunk::<8>()?;
                bytes = rest;
                ProtobufField::Number(u64::from_le_bytes(*number))
            }
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                ProtobufField::Bytes(value.to_vec())
            }
            _ => return None,
        };
        fields.entry(tag >> 3).or_default().push(value);
    }
    Some(fields)
}

/// The messages at the end of a path of field numbers.
fn along(body: &[u8], path: &[u64]) -> Vec<BTreeMap<u64, Vec<ProtobufField>>> {
    path.iter().fold(vec![decode(body).unwrap()], |messages, number| {
        let found = messages.iter().filter_map(|message| message.get(number)).flatten();
        found.map(ProtobufField::message).collect()
    })
}

fn attributes(of: &BTreeMap<u64, Vec<ProtobufField>>, number: u64) -> BTreeMap<String, String> {
    let pairs = of.get(&number).into_iter().flatten().map(ProtobufField::message);
    pairs
        .map(|pair| {
            let value = pair[&2][0].message();
            let text = match value.first_key_value().unwrap() {
                (1, text) => text[0].text(),
                (_, number) => number[0].number().to_string(),
            };
            (pair[&1][0].text(), text)
        })
        .collect()
}

#[test]
fn a_decision_becomes_a_span_in_the_trace_of_its_caller() {
    let collector = Collector::start("200 OK");
    let held = collector.clone();
    with_hub(
        move || held.loading(""),
        |running| async move {
            let mut asked = call("rm");
            let params = format!(r#"{{"name":"rm","_meta":{{"traceparent":"{TRACE}"}}}}"#);
            asked.params = serde_json::from_str(&params).unwrap();
            let answer = running.client.evaluate(&asked).await.unwrap();
            assert_eq!(answer.decision, GovernanceDecision::Deny);
            let (head, span, resource) = collector
                .wait("/base/v1/traces", |head, body| {
                    let span = along(body, &[1, 2, 2]).into_iter().next()?;
                    Some((head.to_owned(), span, along(body, &[1, 1]).pop()?))
                })
                .await;
            assert!(head.contains("content-type: application/x-protobuf"), "{head}");
            assert!(head.contains("x-tenant: blue"), "{head}");
            let hex =
                |field: &ProtobufField| field.bytes().iter().map(|b| format!("{b:02x}")).collect();
            let trace: String = hex(&span[&1][0]);
            let parent: String = hex(&span[&4][0]);
            assert!(TRACE.contains(&trace) && TRACE.contains(&parent));
            assert_eq!(span[&2][0].bytes().len(), 8);
            assert_eq!(
                (span[&5][0].text().as_str(), span[&6][0].number()),
                ("thoughtgate.decision", 1)
            );
            assert!(span[&7][0].number() <= span[&8][0].number());
            assert_eq!(span[&15][0].message()[&3][0].number(), 2);
            let said = attributes(&span, 9);
            assert_eq!(said["gen_ai.tool.name"], "rm");
            assert_eq!(said["thoughtgate.gate"], "governance");
            assert_eq!(said["thoughtgate.request_id"], answer.request_id.unwrap());
            let resource = attributes(&resource, 1);
            assert_eq!(resource["service.name"], "tapegate-hub");
            assert_eq!(resource["deployment.environment"], "test");
            let counted = collector
                .wait("/base/v1/metrics", |_, body| {
                    let metrics = along(body, &[1, 2, 2]);
                    let named = |name: &str| {
                        metrics.iter().find(|metric| metric[&1][0].text() == name).cloned()
                    };
                    let histogram = named("thoughtgate_request_duration_ms")?;
                    Some((named("thoughtgate_decisions_total")?, histogram))
                })
                .await;
            let sum = counted.0[&7][0].message();
            assert_eq!((sum[&2][0].number(), sum[&3][0].number()), (2, 1));
            let point = sum[&1][0].message();
            assert_eq!(f64::from_bits(point[&4][0].number()), 1.0);
            assert_eq!(attributes(&point, 7)["outcome"], "deny");
            let histogram = counted.1[&9][0].message();
            let point = histogram[&1][0].message();
            assert_eq!(point[&4][0].number(), 1);
            assert_eq!(point[&6][0].bytes().len(), point[&7][0].bytes().len() + 8);
        },
    );
}

#[test]
fn json_is_spoken_to_who_wants_it() {
    let collector = Collector::start("200 OK");
    let held = collector.clone();
    with_hub(
        move || held.loading("protocol: http/json"),
        |running| async move {
            running.client.evaluate(&call("rm")).await.unwrap();
            let span = collector
                .wait("/base/v1/traces", |head, body| {
                    assert!(head.contains("content-type: application/json"), "{head}");
                    let value: serde_json::Value = serde_json::from_slice(body).unwrap();
                    let span = &value["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
                    span.is_object().then(|| span.clone())
                })
                .await;
            assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
            assert_eq!(span["kind"], 1);
            assert!(span["startTimeUnixNano"].is_string() && span["parentSpanId"].is_null());
        },
    );
}

#[test]
fn a_collector_that_refuses_or_is_not_there_holds_nobody_up() {
    let gone = Collector { port: 1, posted: Arc::default() };
    for collector in [Collector::start("503 Service Unavailable"), gone] {
        let held = collector.clone();
        with_hub(
            move || held.loading(""),
            |running| async move {
                for _ in 0..100 {
                    running.client.evaluate(&call("rm")).await.unwrap();
                }
                let scrape = || raw(&running.address, request(&running, "GET", "/metrics", ""));
                let dropped = r#"thoughtgate_telemetry_dropped_total{signal="traces"}"#;
                let is_noticed = || {
                    let told = running.told.borrow();
                    told.iter().any(|(_, message)| message.contains("cannot be exported"))
                };
                // The queue overflows, so some spans are dropped and counted. That may happen before
                // the first export has failed.
                wait_until(async || {
                    let text = scrape().await;
                    assert!(text.contains(r#"outcome="deny"} 100"#), "{text}");
                    text.contains(dropped) && is_noticed()
                })
                .await;
            },
        );
    }
}
