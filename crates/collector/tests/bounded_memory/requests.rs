//! Requests that make receivers allocate most.

use std::io::Write;

use bytes::Bytes;
use http::{HeaderValue, Request, header::CONTENT_TYPE};
use http_body_util::Full;
use kubewake_config::model::CompressionType;
use kubewake_otlp::{Signal, json};

use super::bodies::{self, attribute, field, many, text};

/// The largest message that the receivers under test take, before and after it is decompressed.
pub const MAX_BYTES: usize = 2 << 20;

/// The approximate length of bodies over HTTP/2. An uncharged second copy of one exceeds the allowance of a
/// connection.
const BODY_BYTES: usize = 1536 << 10;

/// The same over HTTP/1.1, which has no window to send ahead. They are large enough for the heavy work threads.
const HTTP1_BODY_BYTES: usize = 384 << 10;

/// The metadata of a request, about as much as HTTP/2 servers take.
const METADATA_BYTES: usize = 12 << 10;

/// How often a small request is sent.
const MANY_TIMES: usize = 300;

/// A request, and how often it is sent.
pub struct Call {
    pub what: String,
    /// The address of the receiver.
    pub address: &'static str,
    pub is_http2: bool,
    pub times: usize,
    request: Request<Full<Bytes>>,
}

impl Call {
    pub fn request(&self) -> Request<Full<Bytes>> {
        self.request.clone()
    }

    fn new(what: String, address: &'static str, is_http2: bool, path: &str, content_type: &str, body: Vec<u8>) -> Self {
        let request = Request::post(format!("http://localhost{path}")).header(CONTENT_TYPE, content_type);
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        Self { what, address, is_http2, times: 1, request }
    }

    fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.request.headers_mut().insert(name, HeaderValue::from_str(value).unwrap());
        self
    }
}

/// All requests for the receiver of this name. One that is added to the table needs requests here.
pub fn to_receiver(name: &str, signal: Signal) -> Vec<Call> {
    match name {
        "otlp" => to_otlp(signal),
        "opencensus" if signal == Signal::Traces => to_opencensus(),
        "opencensus" => Vec::new(),
        // It takes no requests. Its buffers are for the receiver as a whole.
        "file_log" => Vec::new(),
        added => panic!("what are the worst requests to the receiver {added}? They are to be measured, too"),
    }
}

/// The names of an algorithm on HTTP and on gRPC. A new algorithm must be added here to compile.
fn encodings(compression: CompressionType) -> &'static [&'static str] {
    match compression {
        CompressionType::None => &[],
        CompressionType::Gzip => &["gzip"],
        CompressionType::Zstd => &["zstd"],
        CompressionType::Snappy => &["snappy"],
        CompressionType::Zlib => &["zlib", "deflate"],
        CompressionType::Lz4 => &["lz4"],
    }
}

const COMPRESSIONS: [CompressionType; 5] = [
    CompressionType::Gzip,
    CompressionType::Zstd,
    CompressionType::Snappy,
    CompressionType::Zlib,
    CompressionType::Lz4,
];

/// The body compressed in each form that the algorithm has.
fn compressed(compression: CompressionType, body: &[u8]) -> Vec<Vec<u8>> {
    match compression {
        CompressionType::None => vec![body.to_vec()],
        CompressionType::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(body).unwrap();
            let one = encoder.finish().unwrap();
            // A body that does not tell its decompressed size: the trailer is that of an empty member.
            let empty = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best()).finish().unwrap();
            let two = [&*one, &*empty].concat();
            vec![one, two]
        }
        CompressionType::Zstd => vec![zstd::stream::encode_all(body, 1).unwrap()],
        CompressionType::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
            encoder.write_all(body).unwrap();
            vec![encoder.finish().unwrap()]
        }
        CompressionType::Snappy => {
            let mut encoder = snap::write::FrameEncoder::new(Vec::new());
            encoder.write_all(body).unwrap();
            vec![encoder.into_inner().unwrap(), snap::raw::Encoder::new().compress_vec(body).unwrap()]
        }
        CompressionType::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(body).unwrap();
            vec![encoder.finish().unwrap()]
        }
    }
}

fn framed(is_compressed: bool, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[u8::from(is_compressed)], &length[..], message].concat()
}

/// Bodies that become large: valid requests, and requests that turn out to be invalid only at the end.
fn bombs(signal: Signal) -> Vec<(&'static str, Vec<u8>)> {
    let long = field(1, &field(2, &bodies::record(signal, &[attribute(b"key", &text(&vec![b'x'; BODY_BYTES]))])));
    vec![
        ("one record with a long text", long),
        ("as many zeroes as are allowed", vec![0; MAX_BYTES]),
        ("one zero more", vec![0; MAX_BYTES + 1]),
        ("many more zeroes", vec![0; 8 * MAX_BYTES]),
    ]
}

fn to_otlp(signal: Signal) -> Vec<Call> {
    let (service, path) = match signal {
        Signal::Traces => ("trace.v1.TraceService", "/v1/traces"),
        Signal::Metrics => ("metrics.v1.MetricsService", "/v1/metrics"),
        Signal::Logs => ("logs.v1.LogsService", "/v1/logs"),
    };
    let method = format!("/opentelemetry.proto.collector.{service}/Export");
    let grpc = |what: String, body: Vec<u8>| Call::new(what, "grpc", true, &method, "application/grpc", body);
    let http =
        |what: String, content_type: &str, body: Vec<u8>| Call::new(what, "http", false, path, content_type, body);
    let (protobuf, json_type) = ("application/x-protobuf", "application/json");
    let mut calls = Vec::new();
    for bodies::Load { name, requests } in bodies::worst(signal, BODY_BYTES) {
        let [body] = &*requests else { continue };
        calls.push(grpc(format!("gRPC, {name}"), framed(false, body)));
    }
    for bodies::Load { name, requests } in bodies::worst(signal, HTTP1_BODY_BYTES) {
        let [body] = &*requests else { continue };
        calls.push(http(format!("HTTP, {name}"), protobuf, body.clone()));
        let mut text = Vec::new();
        if json::encode(signal, body, &mut text).is_ok() {
            text.truncate(text.len().min(MAX_BYTES));
            calls.push(http(format!("JSON, {name}"), json_type, text));
        }
    }
    for (name, text) in json_bodies(signal) {
        calls.push(http(format!("JSON, {name}"), json_type, text));
    }
    // They are decompressed regardless of their signal.
    for (name, body) in bombs(Signal::Traces).into_iter().filter(|_| signal == Signal::Traces) {
        for compression in COMPRESSIONS {
            for packed in compressed(compression, &body) {
                for encoding in encodings(compression) {
                    let what = format!("{encoding}, {name}, {} bytes", packed.len());
                    let call = grpc(format!("gRPC, {what}"), framed(true, &packed));
                    calls.push(call.with_header("grpc-encoding", encoding));
                    let call = http(format!("HTTP, {what}"), protobuf, packed.clone());
                    calls.push(call.with_header("content-encoding", encoding));
                    let call = http(format!("JSON, {what}"), json_type, packed.clone());
                    calls.push(call.with_header("content-encoding", encoding));
                }
            }
        }
    }
    let tiny = field(1, &field(2, &bodies::record(signal, &[])));
    let metadata = "m".repeat(METADATA_BYTES);
    let small = [
        grpc("gRPC, tiny requests with long metadata".into(), framed(false, &tiny)),
        http("HTTP, tiny requests with long metadata".into(), protobuf, tiny),
    ];
    calls.extend(small.map(|call| Call { times: MANY_TIMES, ..call.with_header("x-metadata", &metadata) }));
    calls
}

/// `piece`, repeated between `begin` and `end` up to about the length of a body.
fn filled(begin: &str, piece: &str, end: &str) -> Vec<u8> {
    let pieces = piece.repeat((HTTP1_BODY_BYTES - begin.len() - end.len()) / piece.len());
    [begin, pieces.strip_suffix(',').unwrap_or(&pieces), end].concat().into_bytes()
}

/// JSON that an encoder would not write.
fn json_bodies(signal: Signal) -> Vec<(&'static str, Vec<u8>)> {
    let (entries, scopes, records) = match signal {
        Signal::Traces => ("resourceSpans", "scopeSpans", "spans"),
        Signal::Metrics => ("resourceMetrics", "scopeMetrics", "metrics"),
        Signal::Logs => ("resourceLogs", "scopeLogs", "logRecords"),
    };
    let open = format!("{{\"{entries}\":[{{\"{scopes}\":[{{\"{records}\":[");
    let mut bodies = vec![
        ("empty entries", filled(&format!("{{\"{entries}\":["), "{},", "]}")),
        ("empty records", filled(&open, "{},", "]}]}]}")),
        ("records that are null", filled(&open, "null,", "]}]}]}")),
        ("an unknown list", filled("{\"unknown\":[", "0,", "]}")),
        ("an unknown deep list", filled("{\"unknown\":", "[", "")),
        ("unknown fields", filled("{", "\"\":0,", "}")),
        ("a field again and again", filled("{", &format!("\"{entries}\":[],"), "}")),
        ("a text of escapes", filled("{\"\":\"", "\\u0001", "\"}")),
        ("a name of escapes", filled("{\"", "\\u0001", "\":0}")),
        ("spaces", filled("", " ", "{}")),
        ("empty attributes", {
            filled(&format!("{{\"{entries}\":[{{\"resource\":{{\"attributes\":["), "{},", "]}}]}")
        }),
        ("a value of empty values", {
            let begin = format!(
                "{{\"{entries}\":[{{\"resource\":{{\"attributes\":[{{\"value\":{{\"arrayValue\":{{\"values\":["
            );
            filled(&begin, "{},", "]}}}]}}]}")
        }),
    ];
    if signal == Signal::Metrics {
        let lists = [("histogram", "bucketCounts"), ("histogram", "explicitBounds"), ("summary", "quantileValues")];
        for (kind, list) in lists {
            let begin = format!("{open}{{\"{kind}\":{{\"dataPoints\":[{{\"{list}\":[");
            let piece = if kind == "summary" { "{}," } else { "0," };
            bodies.push(("a list of short items", filled(&begin, piece, "]}]}}]}]}]}")));
        }
    }
    bodies
}

fn to_opencensus() -> Vec<Call> {
    let service = "/opencensus.proto.agent.trace.v1.TraceService";
    let grpc = |what: String, method: &str, body: Vec<u8>| {
        Call::new(what, "grpc", true, &format!("{service}/{method}"), "application/grpc", body)
    };
    let http = |what: String, body: Vec<u8>| Call::new(what, "grpc", false, "/v1/trace", "application/json", body);
    let mut calls = Vec::new();
    for (name, body) in opencensus_bodies() {
        for method in ["ExportOne", "Export"] {
            calls.push(grpc(format!("{method}, {name}"), method, framed(false, &body)));
        }
    }
    for (name, body) in bombs(Signal::Traces) {
        // The other algorithms behave as on `otlp`.
        for compression in [CompressionType::Gzip] {
            for packed in compressed(compression, &body) {
                for encoding in encodings(compression) {
                    let what = format!("ExportOne, {encoding}, {name}, {} bytes", packed.len());
                    let call = grpc(what, "ExportOne", framed(true, &packed));
                    calls.push(call.with_header("grpc-encoding", encoding));
                }
            }
        }
    }
    let labels = format!("{{\"attributes\":{{\"key\":\"{}\"}}}}", "x".repeat(8 << 10));
    let event = "{\"messageEvent\":{}},";
    for (name, body) in [
        ("empty spans", filled("{\"node\":{},\"spans\":[", "{},", "]}")),
        ("empty documents", filled("{\"node\":{}}", "{}", "")),
        ("documents with a span each", filled("{\"node\":{}}", "{\"spans\":[{}]}", "")),
        ("resources of their own", filled("{\"node\":{},\"spans\":[", "{\"resource\":{}},", "]}")),
        ("a long node and resources of their own", {
            filled(&format!("{{\"node\":{labels},\"spans\":["), "{\"resource\":{}},", "]}")
        }),
        ("documents after a long node", filled(&format!("{{\"node\":{labels}}}"), "{\"spans\":[{}]}", "")),
        ("message events", filled("{\"node\":{},\"spans\":[{\"timeEvents\":{\"timeEvent\":[", event, "]}}]}")),
        ("unknown fields", filled("{\"node\":{},", "\"\":0,", "}")),
        ("a text of escapes", filled("{\"node\":{},\"spans\":[{\"name\":{\"value\":\"", "\\u0001", "\"}}]}")),
    ] {
        calls.push(http(format!("JSON, {name}"), body));
    }
    let tiny = framed(false, &[field(1, &[]), field(2, &[])].concat());
    let metadata = "m".repeat(METADATA_BYTES);
    // A stream would wait for memory for its next message.
    let call = grpc("ExportOne, tiny requests with long metadata".into(), "ExportOne", tiny);
    calls.push(Call { times: MANY_TIMES, ..call.with_header("x-metadata", &metadata) });
    let call = http("JSON, tiny requests with long metadata".into(), b"{\"node\":{},\"spans\":[{}]}".to_vec());
    calls.push(Call { times: MANY_TIMES, ..call.with_header("x-metadata", &metadata) });
    calls
}

/// Requests of OpenCensus: fields 1, 2 and 3 are the node, a span, and the resource.
fn opencensus_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let node = field(1, &[]);
    let long_node = field(1, &field(4, &attribute(b"key", &vec![b'x'; 8 << 10])));
    let keys: Vec<u8> = (0..200_u32).flat_map(|key| field(4, &field(1, &key.to_be_bytes()))).collect();
    let with = |node: &[u8], rest: Vec<u8>| [node, &rest].concat();
    let span = |content: Vec<u8>| field(2, &content);
    let map = |entry: Vec<u8>| span(field(7, &many(&field(1, &entry), BODY_BYTES)));
    vec![
        ("empty spans", with(&node, many(&field(2, &[]), BODY_BYTES))),
        ("empty nodes", many(&node, BODY_BYTES)),
        ("resources of their own", with(&node, many(&span(field(16, &[])), BODY_BYTES))),
        ("a long node and resources of their own", with(&long_node, many(&span(field(16, &[])), BODY_BYTES))),
        ("a node of many keys and resources of their own", {
            with(&field(1, &keys), many(&span(field(16, &[])), BODY_BYTES / 4))
        }),
        ("empty attributes", with(&node, map(Vec::new()))),
        ("message events", with(&node, span(field(9, &many(&field(1, &field(3, &[])), BODY_BYTES))))),
        ("annotations", with(&node, span(field(9, &many(&field(1, &field(2, &[])), BODY_BYTES))))),
        ("links", with(&node, span(field(10, &many(&field(1, &[]), BODY_BYTES))))),
        ("an empty trace state", with(&node, span(field(15, &many(&field(1, &[]), BODY_BYTES))))),
        ("a long name", with(&node, span(field(4, &field(1, &vec![1; BODY_BYTES]))))),
    ]
}
