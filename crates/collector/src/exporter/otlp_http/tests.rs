use std::{io::Read, time::Duration};

use http::Version;
use kubewake_config::{
    SecretString,
    model::{ClientTls, CompressionType, HttpExportConfig, ServerTls},
};

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::{
    core::{BackendStatus, DestinationLabels, RejectReason, RejectionCounts, TlsFault},
    net::{
        connect, request,
        testing::{Authority as Ca, Backend, Reply, Seen, Speaks, batch},
    },
};

/// A request of one span with the name `a`.
const SPAN: &[u8] = &[10, 7, 18, 5, 18, 3, 42, 1, b'a'];

fn settings(url: String) -> OtlpHttpExporter {
    OtlpHttpExporter {
        traces_url: Some(url.into()),
        metrics_url: None,
        logs_url: None,
        encoding: BodyEncoding::Proto,
        http: HttpExportConfig {
            compression: CompressionType::None,
            timeout: Some(Duration::from_secs(5)),
            retry: None,
            queue: None,
            ..HttpExportConfig::default()
        },
    }
}

fn url(backend: &Backend) -> String {
    format!("http://{}/v1/traces", backend.address)
}

async fn backend(reply: Reply) -> Backend {
    Backend::start(Speaks::Http1, None, move |_, _| reply.clone()).await
}

async fn send(settings: &OtlpHttpExporter, requests: &[&[u8]]) -> Result<SendSuccess, SendError> {
    let built = build(settings, Signal::Traces, None).unwrap();
    built.exporter.send(&batch(Signal::Traces, requests)).await
}

/// The result of a batch with this response of the destination.
async fn answer(reply: Reply) -> Result<SendSuccess, SendError> {
    send(&settings(url(&backend(reply).await)), &[b"one"]).await
}

fn ok() -> Reply {
    Reply::http(200, &[("content-type", PROTOBUF_CONTENT_TYPE)], "")
}

#[tokio::test]
async fn a_request_is_a_post_of_the_parts_as_they_are() {
    let backend = backend(ok()).await;
    let mut settings = settings(format!("http://user:p%40ss@{}/custom/traces?key=k", backend.address));
    settings.http.headers =
        vec![("X-Tenant".into(), SecretString::new("blue")), ("Host".into(), SecretString::new("elsewhere:80"))];
    let built = build(&settings, Signal::Traces, None).unwrap();
    built.exporter.send(&batch(Signal::Traces, &[b"first", b"", b"second"])).await.unwrap();

    let seen = backend.only();
    assert_eq!(seen.version, Version::HTTP_11);
    assert_eq!(seen.uri, "/custom/traces?key=k");
    assert_eq!(&seen.body[..], b"firstsecond");
    assert_eq!(seen.header("content-type"), "application/x-protobuf");
    assert_eq!(seen.header("content-length"), "11");
    assert_eq!(seen.header("content-encoding"), "");
    assert_eq!(seen.header("user-agent"), request::USER_AGENT);
    assert_eq!(seen.header("x-tenant"), "blue");
    assert_eq!(seen.header("host"), "elsewhere");
    assert_eq!(seen.header("authorization"), "Basic dXNlcjpwQHNz");
    let port = backend.address.port().to_string();
    assert_eq!(
        built.destination,
        DestinationLabels { address: "127.0.0.1".into(), port, path: "/custom/traces".into() }
    );
}

#[tokio::test]
async fn compressed_bodies_unpack_to_the_requests_in_order() {
    let requests: [&[u8]; 3] = [b"first ", b"second ", &[b'x'; 200_000]];
    let whole = requests.concat();
    let cases = [
        (CompressionType::Gzip, "gzip"),
        (CompressionType::Zstd, "zstd"),
        (CompressionType::Snappy, "snappy"),
        (CompressionType::Zlib, "deflate"),
        (CompressionType::Lz4, "lz4"),
    ];
    for (compression, name) in cases {
        let backend = backend(ok()).await;
        let mut settings = settings(url(&backend));
        settings.http.compression = compression;
        send(&settings, &requests).await.unwrap();

        let seen = backend.only();
        assert_eq!(seen.header("content-encoding"), name);
        let mut plain = Vec::new();
        match compression {
            CompressionType::Gzip => flate2::read::GzDecoder::new(&seen.body[..]).read_to_end(&mut plain).unwrap(),
            CompressionType::Zstd => zstd::Decoder::new(&seen.body[..]).unwrap().read_to_end(&mut plain).unwrap(),
            CompressionType::Zlib => flate2::read::ZlibDecoder::new(&seen.body[..]).read_to_end(&mut plain).unwrap(),
            CompressionType::Lz4 => lz4_flex::frame::FrameDecoder::new(&seen.body[..]).read_to_end(&mut plain).unwrap(),
            _ => {
                plain = snap::raw::Decoder::new().decompress_vec(&seen.body).unwrap();
                plain.len()
            }
        };
        assert!(plain == whole, "{name}");
    }
}

#[tokio::test]
async fn json_is_one_document_for_the_whole_batch() {
    let backend = backend(Reply::http(200, &[("content-type", JSON_CONTENT_TYPE)], "{}")).await;
    let settings = OtlpHttpExporter { encoding: BodyEncoding::Json, ..settings(url(&backend)) };
    send(&settings, &[SPAN, SPAN]).await.unwrap();

    let seen = backend.only();
    assert_eq!(seen.header("content-type"), "application/json");
    let body: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
    assert_eq!(body["resourceSpans"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_has_no_json_form_is_refused_for_good() {
    let settings = OtlpHttpExporter { encoding: BodyEncoding::Json, ..settings(url(&backend(ok()).await)) };
    let error = send(&settings, &[b"\xff"]).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::InvalidArgument, false));
}

#[tokio::test]
async fn any_2xx_is_success_whatever_its_body_is_about() {
    for reply in [
        ok(),
        Reply::http(204, &[("content-type", "text/plain")], ""),
        Reply::http(202, &[], "taken"),
        Reply::http(200, &[("content-type", "text/html")], "<html>"),
        // Longer than any sensible response: the batch was accepted all the same.
        Reply::http(200, &[("content-type", PROTOBUF_CONTENT_TYPE)], vec![b'x'; 100_000]),
    ] {
        assert_eq!(answer(reply).await.unwrap(), SendSuccess::default());
    }
}

#[tokio::test]
async fn partial_success_is_read_from_protobuf_and_json() {
    let expected = SendSuccess {
        rejected: RejectionCounts::from_reason(RejectReason::Other, 2),
        message: "bad".into(),
        truncated: 0,
    };
    let proto = Reply::http(200, &[("content-type", PROTOBUF_CONTENT_TYPE)], [10, 7, 8, 2, 18, 3, b'b', b'a', b'd']);
    assert_eq!(answer(proto).await.unwrap(), expected);

    let json = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"bad"}}"#;
    let json = Reply::http(200, &[("content-type", "application/json; charset=utf-8")], json);
    assert_eq!(answer(json).await.unwrap(), expected);
}

#[tokio::test]
async fn a_200_with_a_garbled_export_response_is_tried_again() {
    for content_type in [PROTOBUF_CONTENT_TYPE, JSON_CONTENT_TYPE] {
        let error = answer(Reply::http(200, &[("content-type", content_type)], "hello")).await.unwrap_err();
        assert_eq!((error.class, error.retryable), (ErrorClass::Protocol, true));
    }
}

#[tokio::test]
async fn only_four_statuses_are_retryable() {
    let cases = [
        (301, Code::Unimplemented),
        (400, Code::InvalidArgument),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (408, Code::InvalidArgument),
        (413, Code::InvalidArgument),
        (429, Code::ResourceExhausted),
        (500, Code::Internal),
        (501, Code::Unimplemented),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
    ];
    for (status, code) in cases {
        let error = answer(Reply::http(status, &[("location", "/elsewhere")], "no")).await.unwrap_err();
        assert_eq!(error.code, code, "{status}");
        assert_eq!(error.retryable, [429, 502, 503, 504].contains(&status), "{status}");
    }
}

#[tokio::test]
async fn retry_after_is_a_hint_and_nonsense_is_none() {
    let hint = async |value: &str| answer(Reply::http(503, &[("retry-after", value)], "")).await.unwrap_err();
    assert_eq!(hint("2").await.retry_after, Some(Duration::from_secs(2)));
    for nothing in ["soon", "-1", "0", "Wed, 21 Oct 2015 07:28:00 GMT"] {
        let error = hint(nothing).await;
        assert_eq!((error.retry_after, error.retryable), (None, true), "{nothing}");
    }
}

#[tokio::test]
async fn the_body_explains_the_refusal() {
    let proto = Reply::http(400, &[("content-type", PROTOBUF_CONTENT_TYPE)], [8, 3, 18, 3, b'b', b'a', b'd']);
    let json = Reply::http(400, &[("content-type", JSON_CONTENT_TYPE)], r#"{"code":3,"message":"bad"}"#);
    let text = Reply::http(400, &[("content-type", "text/plain")], "bad\n");
    for reply in [proto, json, text] {
        let error = answer(reply).await.unwrap_err();
        assert!(error.message.ends_with("/v1/traces: HTTP 400 bad"), "{}", error.message);
    }
}

#[tokio::test]
async fn messages_hold_no_password_no_query_and_no_header() {
    let echo = |seen: &Seen, _: usize| {
        Reply::http(403, &[("content-type", "text/plain")], format!("no entry for {}", seen.header("api-key")))
    };
    let backend = Backend::start(Speaks::Http1, None, echo).await;
    let mut settings = settings(format!("http://user:hunter2@{}/v1/traces?key=hunter2", backend.address));
    settings.http.headers = vec![("api-key".into(), SecretString::new("hunter2"))];
    let error = send(&settings, &[b"x"]).await.unwrap_err();
    assert_eq!(error.message, format!("http://{}/v1/traces: HTTP 403 no entry for ***", backend.address));
}

#[tokio::test]
async fn a_connection_that_breaks_may_be_tried_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            drop(listener.accept().await);
        }
    });
    let error = send(&settings(format!("http://{address}/v1/traces")), &[b"x"]).await.unwrap_err();
    assert_eq!((error.class, error.retryable), (ErrorClass::Connection, true));
    assert!(error.message.starts_with(&format!("http://{address}/v1/traces: ")), "{}", error.message);
    assert_eq!(error.backend_status, Some(BackendStatus::Tls(TlsFault::PerhapsWanted)));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_not_for_want_of_tls_whatever_another_connection_did() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let built = build(&settings(format!("http://{address}/v1/traces")), Signal::Traces, None).unwrap();
    let batch = batch(Signal::Traces, &[b"x"]);
    let answers = async {
        let (mut answering, _) = listener.accept().await.unwrap();
        assert_ne!(answering.read(&mut [0; 4096]).await.unwrap(), 0);
        answering.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n").await.unwrap();
        let closed = async { drop(listener.accept().await.unwrap()) };
        let (error, ()) = tokio::join!(built.exporter.send(&batch), closed);
        error.unwrap_err();
    };
    let (error, ()) = tokio::join!(built.exporter.send(&batch), answers);
    assert_eq!(error.unwrap_err().backend_status, None);
}

#[tokio::test]
async fn a_port_that_says_that_it_expects_tls_is_heard() {
    for words in [
        "Client sent an HTTP request to an HTTPS server.\n",
        "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
    ] {
        let error = answer(Reply::http(400, &[], words)).await.unwrap_err();
        assert_eq!(
            (error.class, error.backend_status),
            (ErrorClass::Refused, Some(BackendStatus::Tls(TlsFault::Wanted))),
            "{words}"
        );
    }
    let error = answer(Reply::http(400, &[], "no HTTPS here")).await.unwrap_err();
    assert_eq!(error.backend_status, Some(BackendStatus::Http(http::StatusCode::BAD_REQUEST)));
}

#[tokio::test]
async fn connections_are_kept_and_made_anew_when_they_went_away() {
    let backend = backend(ok()).await;
    let built = build(&settings(url(&backend)), Signal::Traces, None).unwrap();
    let one = batch(Signal::Traces, &[b"x"]);
    for _ in 0..3 {
        built.exporter.send(&one).await.unwrap();
    }
    assert_eq!(backend.connections(), 1);
    backend.hang_up();
    if let Err(error) = built.exporter.send(&one).await {
        assert!(error.retryable, "{error}");
        built.exporter.send(&one).await.unwrap();
    }
    assert_eq!(backend.connections(), 2);
}

#[tokio::test]
async fn tls_agrees_on_http2_where_the_server_has_it() {
    let ca = Ca::new();
    for (alpn, version) in [(connect::ALPN_H2, Version::HTTP_2), (b"http/1.1", Version::HTTP_11)] {
        let server = crate::net::tls::server_config(&ca.server("127.0.0.1"), &[alpn]).unwrap();
        let backend = Backend::start(Speaks::Http1, Some(server), |_, _| ok()).await;
        let mut settings = settings(format!("https://{}/v1/traces", backend.address));
        // `insecure` cannot switch off the TLS that the URL asks for.
        settings.http.tls = ClientTls { ca: Some(ca.root()), insecure: true, ..ClientTls::default() };
        send(&settings, &[b"x"]).await.unwrap();
        assert_eq!(backend.only().version, version);
    }
}

#[tokio::test]
async fn a_backend_that_wants_a_certificate_is_recognised() {
    let ca = Ca::new();
    let wanted = Some(BackendStatus::Tls(TlsFault::CertificateWanted));
    for alpn in [connect::ALPN_H2, b"http/1.1"] {
        let server = ServerTls { client_ca: Some(ca.root()), ..ca.server("127.0.0.1") };
        let server = crate::net::tls::server_config(&server, &[alpn]).unwrap();
        let backend = Backend::start(Speaks::Http1, Some(server), |_, _| ok()).await;
        let mut settings = settings(format!("https://{}/v1/traces", backend.address));
        settings.http.tls = ClientTls { ca: Some(ca.root()), ..ClientTls::default() };
        let error = send(&settings, &[b"x"]).await.unwrap_err();
        assert_eq!((error.backend_status, error.class), (wanted, ErrorClass::Connection), "{error:?}");
        settings.http.tls.identity = Some(ca.issue("client.test"));
        send(&settings, &[b"x"]).await.unwrap();
    }
    let server = crate::net::tls::server_config(&ca.server("127.0.0.1"), &[b"http/1.1"]).unwrap();
    let page = "<html><head><title>400 No required SSL certificate was sent</title></head></html>";
    let backend = Backend::start(Speaks::Http1, Some(server), move |_, _| Reply::http(400, &[], page)).await;
    let mut settings = settings(format!("https://{}/v1/traces", backend.address));
    settings.http.tls = ClientTls { ca: Some(ca.root()), ..ClientTls::default() };
    assert_eq!(send(&settings, &[b"x"]).await.unwrap_err().backend_status, wanted, "as nginx says it");
}

#[test]
fn a_signal_without_a_url_and_a_bad_url_cannot_be_built() {
    let problem = |url: &str, signal| build(&settings(url.into()), signal, None).err().unwrap().0;
    assert!(problem("http://localhost", Signal::Logs).contains("logs_endpoint"));
    for bad in ["ftp://hunter2@host", "no url", "hunter2.test/path", "http://"] {
        let problem = problem(bad, Signal::Traces);
        assert!(problem.contains("URL") && !problem.contains("hunter2"), "{problem}");
    }
}
