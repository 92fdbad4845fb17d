//! Fuzz targets of the collector: compressed bodies, processors, credentials, and its configuration document.

mod calls;
mod file_log;
mod logs;
mod redaction;
mod sampling;

use std::{
    collections::HashMap,
    io::Read as _,
    path::Path,
    sync::{LazyLock, Mutex},
};

use bytes::Bytes;
use flate2::read::{MultiGzDecoder, ZlibDecoder};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use kubewake_collector::fuzzing::{self, DecompressError, basic_login, decompress};
use kubewake_config::{
    FixedSources, KubeconfigContext, escape, load,
    model::{CompressionType, ProcessorConfig},
    parse_duration,
};
use kubewake_otlp::Signal;

use crate::{Target, choice, memory::bounded, two_texts};

pub const TARGETS: [Target; 16] = [
    Target { name: "decode", body: decode },
    Target { name: "grpc-message", body: calls::grpc_message },
    Target { name: "redaction", body: redaction::redaction },
    Target { name: "processors", body: processors },
    Target { name: "tail-sampling", body: sampling::whole_traces },
    Target { name: "config", body: config },
    Target { name: "config-literal", body: config_literal },
    Target { name: "duration", body: duration },
    Target { name: "basic-auth", body: basic_auth },
    Target { name: "oauth2-answer", body: calls::oauth2_answer },
    Target { name: "kube-watch", body: kube_watch },
    Target { name: "file-log-expression", body: file_log::expression },
    Target { name: "file-log-operators", body: file_log::operators },
    Target { name: "container-log", body: logs::container_log },
    Target { name: "plain-log", body: logs::plain_log },
    Target { name: "json-line", body: logs::json_line },
];

/// The output is at most `max` bytes, each was reserved before, and the output equals that of another decoder
/// of the format.
fn decode(data: &[u8]) {
    const ALGORITHMS: [CompressionType; 6] = [
        CompressionType::None,
        CompressionType::Gzip,
        CompressionType::Zlib,
        CompressionType::Zstd,
        CompressionType::Snappy,
        CompressionType::Lz4,
    ];
    let (choice, body) = choice(data);
    let algorithm = ALGORITHMS[choice % ALGORITHMS.len()];
    let max = [0, 1, 64, 4 << 10, 64 << 10, 1 << 20][choice / ALGORITHMS.len() % 6];
    let budget = [usize::MAX, 2 << 10][choice / 36 % 2];
    let mut reserved = 0;
    let mut reserve = |bytes: usize| {
        reserved += bytes;
        if reserved > budget { Err(kubewake_collector::core::Refusal::out_of_memory()) } else { Ok(()) }
    };
    // The decoders' own windows have a fixed size; that of Zstandard is the largest.
    let decoded = bounded("decompress", max, 3, 18 << 20, || decompress(algorithm, body, max, &mut reserve));
    match decoded {
        Ok(out) => {
            assert!(out.len() <= max && out.capacity() <= reserved.max(out.len()), "{reserved} {}", out.capacity());
            // A header of LZ4 announces blocks of up to 8 MiB, and the decoder has room for two and a window.
            let buffers = if algorithm == CompressionType::Lz4 { 17 << 20 } else { 0 };
            assert!(reserved <= budget && reserved <= max.max(body.len()) + 1 + buffers);
            if let Some(expected) = read_otherwise(algorithm, body, max) {
                assert_eq!(out, expected);
            }
        }
        Err(DecompressError::TooLarge(limit)) => {
            assert_eq!(limit, max);
            if let Some(expected) = read_otherwise(algorithm, body, max) {
                assert!(expected.len() > max, "{} bytes were refused as more than {max}", expected.len());
            }
        }
        Err(DecompressError::Refused(_)) => assert!(budget != usize::MAX),
        Err(DecompressError::Corrupt { .. }) => {}
    }
}

/// Decodes the body by another decoder of its format, one byte further than allowed. `None` where there is no
/// such decoder, or the body is invalid.
fn read_otherwise(algorithm: CompressionType, body: &[u8], max: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let limit = max as u64 + 1;
    match algorithm {
        CompressionType::None => out.extend_from_slice(body),
        CompressionType::Gzip => _ = MultiGzDecoder::new(body).take(limit).read_to_end(&mut out).ok()?,
        CompressionType::Zlib => _ = ZlibDecoder::new(body).take(limit).read_to_end(&mut out).ok()?,
        CompressionType::Lz4 => _ = lz4_flex::frame::FrameDecoder::new(body).take(limit).read_to_end(&mut out).ok()?,
        CompressionType::Snappy if body.starts_with(b"\xff\x06\x00\x00sNaPpY") => {
            snap::read::FrameDecoder::new(body).take(limit).read_to_end(&mut out).ok()?;
        }
        _ => return None,
    }
    Some(out)
}

/// The settings of a processor, parsed once for each text: parsing a document takes longer than processing most
/// inputs.
fn processor(settings: &str) -> ProcessorConfig {
    static KNOWN: LazyLock<Mutex<HashMap<String, ProcessorConfig>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().expect("no target panics while it reads settings");
    known.entry(settings.to_owned()).or_insert_with(|| read_processor(settings)).clone()
}

fn read_processor(settings: &str) -> ProcessorConfig {
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: }}}}}}\nprocessors: {{{settings}}}\nexporters: {{nop: }}\n\
         service: {{pipelines: {{traces: {{receivers: [otlp], exporters: [nop]}}}}}}"
    );
    let loaded = load(&text, &FixedSources::new()).unwrap_or_else(|errors| panic!("{errors}"));
    loaded.document.processors.into_values().next().expect("there is one processor")
}

/// Processors produce valid requests, within a multiple of the input in memory.
fn processors(data: &[u8]) {
    const SETTINGS: [&str; 4] = [
        "attributes: {actions: [{key: added, value: x, action: upsert}, {key: a, action: delete}, {key: h, action: hash}]}",
        "resource: {attributes: [{key: added, value: x, action: insert}, {key: b, from_attribute: a, action: upsert}]}",
        "filter: {spans: {exclude: {match_type: strict, span_names: [get]}}}",
        "attributes: {include: {match_type: regexp, attributes: [{key: a, value: '.*1'}]}, \
         actions: [{key: a, pattern: '^(?P<first>.).*', action: extract}, {key: n, action: convert, converted_type: int}]}",
    ];
    let (choice, request) = choice(data);
    let signal = Signal::ALL[choice % 3];
    let Ok(summary) = kubewake_otlp::scan(signal, request) else { return };
    let settings = processor(SETTINGS[choice / 3 % SETTINGS.len()]);
    let request = Bytes::copy_from_slice(request);
    // The general rule: a constant for each record and resource, and a multiple of the bytes.
    let counted = request.len() + 256 * (summary.records + summary.items + summary.resources + summary.scopes);
    let mapped = bounded("a processor", counted, 16, 1 << 20, || {
        fuzzing::process(settings, signal, request.clone(), summary.items)
    });
    if let Some(out) = mapped {
        let after = kubewake_otlp::scan(signal, &out).expect("what is handed on is a request");
        assert!(after.items <= summary.items);
    }
}

/// A document is loaded, or refused with all errors, within a multiple of its length, and no message contains
/// one of its secrets. What is written of it is the same document.
fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sources = FixedSources::new().with_env("TOKEN", "hunter-two").with_file("/etc/token", "hunter-three");
    let loaded = bounded("a document", text.len(), 2048, 4 << 20, || load(text, &sources));
    match loaded {
        Err(errors) => {
            let message = errors.to_string();
            assert!(!message.contains("hunter-"), "{message}");
        }
        // A document with a secret in it is not written.
        Ok(loaded) => {
            let Ok(written) = loaded.document.to_yaml() else { return };
            match load(&written, &FixedSources::new()) {
                Ok(again) => assert_eq!(again.document, loaded.document, "{written}"),
                Err(errors) => panic!("{errors}\n{written}"),
            }
        }
    }
}

/// Escaped text is the same after a document is loaded.
fn config_literal(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let sources = FixedSources::new().with_env("TOKEN", "hunter-two").with_file("/literal", escape(text));
    let document = "receivers: {otlp: {protocols: {grpc: }}}\nexporters: {otlp: {endpoint: 'a:1', headers: {h: '${file:/literal}'}}}\n\
                    service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}}";
    let Ok(loaded) = load(document, &sources) else { return };
    let kubewake_config::model::ExporterConfig::OtlpGrpc(exporter) =
        loaded.document.exporters.into_values().next().unwrap()
    else {
        return;
    };
    let header = exporter.headers.first().expect("there is a header").1.reveal().to_owned();
    assert_eq!(header.trim_end(), text.trim_end());
}

/// A duration is parsed within its range; a kubeconfig is parsed or refused.
fn duration(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = parse_duration(text);
    let _ = bounded("a kubeconfig", text.len(), 1024, 1 << 20, || KubeconfigContext::parse(text, Path::new("/"), None));
}

/// Only names with their passwords from the file are accepted.
fn basic_auth(data: &[u8]) {
    let Some((users, header)) = two_texts(data) else { return };
    let mut headers = HeaderMap::new();
    let Ok(value) = HeaderValue::from_str(header) else { return };
    headers.insert(AUTHORIZATION, value);
    if basic_login(users, &headers) == Some(true) {
        assert!(header.len() > 6 && header[..6].eq_ignore_ascii_case("basic "), "{header} is no login");
        assert!(users.contains(':'), "nobody is let in by a file of nobody");
    }
}

/// A line of a watch is parsed or refused, within a multiple of its length.
fn kube_watch(data: &[u8]) {
    bounded("an event", data.len(), 64, 64 << 10, || fuzzing::watch_line(data));
}
