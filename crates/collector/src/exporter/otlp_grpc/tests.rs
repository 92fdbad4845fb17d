use std::{io::Read, time::Duration};

use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::StatusCode;
use kubewake_config::{
    SecretString,
    model::{BearerTokenAuth, ClientTls, CompressionType, ServerTls},
};
use kubewake_otlp::wire;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
};

use super::*;
use crate::{
    core::{BackendStatus, ConnectFault, RejectReason, RejectionCounts},
    extension::{AuthError, HeadersFuture},
    net::testing::{Authority as Ca, Backend, Reply, Seen, Speaks, batch},
};

fn settings(backend: &Backend) -> OtlpGrpcExporter {
    OtlpGrpcExporter {
        endpoint: backend.address.to_string().into(),
        tls: ClientTls { insecure: true, ..ClientTls::default() },
        compression: CompressionType::None,
        headers: Vec::new(),
        authority: None,
        auth: None,
        keepalive: None,
        timeout: Some(Duration::from_secs(5)),
        retry: None,
        queue: None,
    }
}

async fn backend(reply: Reply) -> Backend {
    Backend::start(Speaks::Http2, None, move |_, _| reply.clone()).await
}

async fn send(settings: &OtlpGrpcExporter, requests: &[&[u8]]) -> Result<SendSuccess, SendError> {
    let built = build(settings, Signal::Traces, None).unwrap();
    built.exporter.send(&batch(Signal::Traces, requests)).await
}

/// The result of a batch with this response of the destination.
async fn answer(reply: Reply) -> Result<SendSuccess, SendError> {
    send(&settings(&backend(reply).await), &[b"one"]).await
}

fn ok() -> Reply {
    Reply::grpc(&[], &[("grpc-status", "0")])
}

fn refusal(code: u8) -> Reply {
    Reply::grpc(&[], &[("grpc-status", &code.to_string()), ("grpc-message", "m")])
}

/// A `google.rpc.Status` with a `RetryInfo`.
fn status(code: u8, delay: Duration) -> Vec<u8> {
    let message = |write: &dyn Fn(&mut Vec<u8>)| {
        let mut out = Vec::new();
        write(&mut out);
        out
    };
    let duration = message(&|out| {
        wire::put_uint(out, 1, delay.as_secs());
        wire::put_uint(out, 2, u64::from(delay.subsec_nanos()));
    });
    let info = message(&|out| wire::put_bytes(out, 1, &duration));
    let any = message(&|out| {
        wire::put_bytes(out, 1, b"type.googleapis.com/google.rpc.RetryInfo");
        wire::put_bytes(out, 2, &info);
    });
    message(&|out| {
        wire::put_uint(out, 1, u64::from(code));
        wire::put_bytes(out, 3, &any);
    })
}

fn hinted(code: u8, delay: Duration, engine: &impl Engine) -> Reply {
    let details = engine.encode(status(code, delay));
    Reply::grpc(&[], &[("grpc-status", &code.to_string()), ("grpc-status-details-bin", &details)])
}

#[tokio::test]
async fn a_call_is_framed_as_grpc_says() {
    let backend = backend(ok()).await;
    let mut settings = settings(&backend);
    settings.headers = vec![
        ("X-Tenant".into(), SecretString::new("blue")),
        ("trace-bin".into(), SecretString::new("raw")),
        ("te".into(), SecretString::new("nonsense")),
    ];
    let built = build(&settings, Signal::Logs, None).unwrap();
    let delivered = built.exporter.send(&batch(Signal::Logs, &[b"first", b"", b"second"])).await.unwrap();

    assert_eq!(delivered, SendSuccess::default());
    let seen = backend.only();
    assert_eq!(seen.uri.path(), "/opentelemetry.proto.collector.logs.v1.LogsService/Export");
    assert_eq!(seen.uri.authority().unwrap().as_str(), backend.address.to_string());
    assert_eq!(&seen.body[..], b"\0\0\0\0\x0bfirstsecond");
    assert_eq!(seen.header("content-type"), "application/grpc");
    assert_eq!(seen.header("te"), "trailers");
    assert_eq!(seen.header("grpc-timeout"), "5000000u");
    assert_eq!(seen.header("grpc-accept-encoding"), "identity");
    assert_eq!(seen.header("grpc-encoding"), "");
    assert_eq!(seen.header("user-agent"), concat!("kubewake/", env!("CARGO_PKG_VERSION")));
    assert_eq!(seen.header("x-tenant"), "blue");
    assert_eq!(seen.header("trace-bin"), "cmF3");
    let port = backend.address.port().to_string();
    assert_eq!(built.destination, DestinationLabels { address: "127.0.0.1".into(), port, path: String::new() });
}

#[tokio::test]
async fn each_signal_has_its_service() {
    let backend = backend(ok()).await;
    for signal in Signal::ALL {
        let built = build(&settings(&backend), signal, None).unwrap();
        built.exporter.send(&batch(signal, &[b"x"])).await.unwrap();
    }
    let services: Vec<_> = backend.seen().iter().map(|seen| seen.uri.path().to_owned()).collect();
    assert_eq!(
        services,
        [
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
            "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        ]
    );
}

#[tokio::test]
async fn calls_share_a_connection_and_large_batches_pass() {
    let backend = backend(ok()).await;
    let built = build(&settings(&backend), Signal::Traces, None).unwrap();
    let large = vec![7u8; 3 << 20];
    for _ in 0..3 {
        built.exporter.send(&batch(Signal::Traces, &[&large, b"end"])).await.unwrap();
    }
    for seen in backend.seen() {
        assert_eq!(seen.body.len(), PREFIX_BYTES + large.len() + 3);
    }
    assert_eq!(backend.connections(), 1);
}

#[tokio::test]
async fn an_attempt_that_is_given_up_leaves_the_connection_usable() {
    let script = |_: &Seen, before: usize| if before == 0 { ok().after(Duration::from_secs(60)) } else { ok() };
    let backend = Backend::start(Speaks::Http2, None, script).await;
    let built = build(&settings(&backend), Signal::Traces, None).unwrap();
    let one = batch(Signal::Traces, &[b"x"]);
    tokio::time::timeout(Duration::from_millis(200), built.exporter.send(&one)).await.unwrap_err();
    built.exporter.send(&one).await.unwrap();
    assert_eq!(backend.connections(), 1);
}

#[tokio::test]
async fn a_connection_that_went_away_is_made_anew() {
    let backend = backend(ok()).await;
    let built = build(&settings(&backend), Signal::Traces, None).unwrap();
    let one = batch(Signal::Traces, &[b"x"]);
    built.exporter.send(&one).await.unwrap();
    backend.hang_up();
    // At most the attempt on the closed connection fails, and it may be retried.
    if let Err(error) = built.exporter.send(&one).await {
        assert!(error.retryable, "{error}");
        built.exporter.send(&one).await.unwrap();
    }
    assert_eq!(backend.connections(), 2);
}

#[tokio::test]
async fn compressed_messages_unpack_to_the_requests_in_order() {
    let requests: [&[u8]; 3] = [b"first ", b"second ", &[b'x'; 200_000]];
    let whole = requests.concat();
    for (compression, name) in
        [(CompressionType::Gzip, "gzip"), (CompressionType::Zstd, "zstd"), (CompressionType::Snappy, "snappy")]
    {
        let backend = backend(ok()).await;
        send(&OtlpGrpcExporter { compression, ..settings(&backend) }, &requests).await.unwrap();

        let seen = backend.only();
        assert_eq!(seen.header("grpc-encoding"), name);
        let (prefix, message) = seen.body.split_at(PREFIX_BYTES);
        assert_eq!(prefix[0], 1);
        assert_eq!(prefix[1..], (message.len() as u32).to_be_bytes());
        let mut unpacked = Vec::new();
        match compression {
            CompressionType::Gzip => flate2::read::GzDecoder::new(message).read_to_end(&mut unpacked).unwrap(),
            CompressionType::Zstd => zstd::Decoder::new(message).unwrap().read_to_end(&mut unpacked).unwrap(),
            _ => snap::read::FrameDecoder::new(message).read_to_end(&mut unpacked).unwrap(),
        };
        assert!(unpacked == whole, "{name}");
    }
}

#[tokio::test]
async fn what_grpc_cannot_compress_with_is_refused_when_built() {
    let settings = OtlpGrpcExporter { compression: CompressionType::Lz4, ..settings(&backend(ok()).await) };
    assert!(build(&settings, Signal::Traces, None).err().unwrap().0.contains("gzip, zstd or snappy"));
}

#[tokio::test]
async fn partial_success_is_success_with_a_count() {
    // partial_success { rejected: 2, message: "two are bad" }
    let mut partial = vec![8, 2, 18, 11];
    partial.extend_from_slice(b"two are bad");
    let mut message = vec![10, partial.len() as u8];
    message.extend(partial);
    let delivered = answer(Reply::grpc(&message, &[("grpc-status", "0")])).await.unwrap();
    assert_eq!(
        delivered,
        SendSuccess {
            rejected: RejectionCounts::from_reason(RejectReason::Other, 2),
            message: "two are bad".into(),
            truncated: 0
        }
    );
}

#[tokio::test]
async fn an_ok_with_a_garbled_message_is_still_an_ok() {
    let delivered = answer(Reply::grpc(b"hello", &[("grpc-status", "0")])).await.unwrap();
    assert_eq!(delivered, SendSuccess::default());
}

#[tokio::test]
async fn only_the_codes_of_the_specification_are_retryable() {
    for number in 1..=17 {
        let error = answer(refusal(number)).await.unwrap_err();
        assert_eq!(error.code, Code::from_number(u32::from(number)));
        assert_eq!(error.retryable, [1, 4, 10, 11, 14, 15].contains(&number), "{number}");
        assert_eq!(error.retry_after, None);
    }
}

#[tokio::test]
async fn retry_info_is_a_hint_with_or_without_padding() {
    let delay = Duration::from_millis(1500);
    for reply in [hinted(14, delay, &STANDARD), hinted(14, delay, &STANDARD_NO_PAD)] {
        let error = answer(reply).await.unwrap_err();
        assert_eq!((error.retryable, error.retry_after), (true, Some(delay)));
    }
}

#[tokio::test]
async fn exhaustion_is_retryable_only_with_a_hint_even_of_zero() {
    for delay in [Duration::from_secs(1), Duration::ZERO] {
        let error = answer(hinted(8, delay, &STANDARD)).await.unwrap_err();
        assert_eq!((error.retryable, error.retry_after), (true, Some(delay)));
    }
    assert!(!answer(refusal(8)).await.unwrap_err().retryable);
    assert!(!answer(hinted(3, Duration::from_secs(1), &STANDARD)).await.unwrap_err().retryable);
}

#[tokio::test]
async fn a_status_may_stand_in_the_headers() {
    let headers = [("content-type", "application/grpc"), ("grpc-status", "3"), ("grpc-message", "caf%C3%A9 100%")];
    let error = answer(Reply::http(200, &headers, "")).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (Code::InvalidArgument, false));
    assert!(error.message.ends_with(": InvalidArgument café 100%"), "{}", error.message);
}

#[tokio::test]
async fn an_answer_that_is_no_grpc_is_mapped() {
    let expected = [
        (StatusCode::UNAUTHORIZED, Code::Unauthenticated, false),
        (StatusCode::FORBIDDEN, Code::PermissionDenied, false),
        (StatusCode::NOT_FOUND, Code::Unimplemented, false),
        (StatusCode::TOO_MANY_REQUESTS, Code::Unavailable, true),
        (StatusCode::BAD_GATEWAY, Code::Unavailable, true),
        (StatusCode::SERVICE_UNAVAILABLE, Code::Unavailable, true),
        (StatusCode::GATEWAY_TIMEOUT, Code::Unavailable, true),
        (StatusCode::INTERNAL_SERVER_ERROR, Code::Unknown, false),
        (StatusCode::OK, Code::Unknown, false),
    ];
    for (status, code, retryable) in expected {
        let error = answer(Reply::http(status.as_u16(), &[("content-type", "text/html")], "<p>")).await.unwrap_err();
        assert_eq!((error.code, error.retryable), (code, retryable), "{status}");
    }
}

#[tokio::test]
async fn an_endless_message_is_cut_off() {
    let error = answer(Reply::http(200, &[], vec![b'x'; 6 << 20])).await.unwrap_err();
    assert_eq!((error.code, error.class), (Code::Unknown, ErrorClass::Protocol));
}

#[tokio::test]
async fn nobody_there_is_a_connection_error_that_names_the_endpoint() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut settings = settings(&backend(ok()).await);
    settings.endpoint = address.to_string().into();
    settings.headers = vec![("authorization".into(), SecretString::new("hunter2"))];
    let error = send(&settings, &[b"x"]).await.unwrap_err();
    assert_eq!((error.class, error.retryable), (ErrorClass::Connection, true));
    assert_eq!(error.backend_status, Some(BackendStatus::Connect(ConnectFault::Refused)));
    assert!(error.message.starts_with(&address.to_string()), "{}", error.message);
    assert!(error.message.contains("refused"), "{}", error.message);
    assert!(!error.message.contains("hunter2"));
}

#[tokio::test]
async fn a_server_that_repeats_our_secret_does_not_get_it_into_the_message() {
    let echo = |seen: &Seen, _| {
        let said = format!("bad token {}", seen.header("authorization"));
        Reply::grpc(&[], &[("grpc-status", "16"), ("grpc-message", &said)])
    };
    let backend = Backend::start(Speaks::Http2, None, echo).await;
    let token = BearerTokenAuth {
        header: "Authorization".into(),
        scheme: "Bearer".into(),
        tokens: vec![SecretString::new("hunter2")],
        file: None,
    };
    let auth = crate::extension::bearer::build(&token).unwrap().client;
    let built = build(&settings(&backend), Signal::Traces, auth).unwrap();
    let error = built.exporter.send(&batch(Signal::Traces, &[b"x"])).await.unwrap_err();
    assert!(error.message.contains("bad token ***") && !error.message.contains("hunter2"), "{}", error.message);
    // A token that does not change is not tried twice.
    assert_eq!(backend.only().header("authorization"), "Bearer hunter2");
}

/// Credentials that are renewed when they are rejected.
#[derive(Default)]
struct Rolling(std::sync::atomic::AtomicU8);

impl ClientAuth for Rolling {
    fn headers(&self) -> HeadersFuture<'_> {
        let version = self.0.load(std::sync::atomic::Ordering::SeqCst);
        let value = HeaderValue::try_from(format!("v{version}")).unwrap();
        Box::pin(async move { Ok(vec![(http::header::AUTHORIZATION, value)]) })
    }

    fn invalidate(&self) {
        self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    }
}

#[tokio::test]
async fn renewed_credentials_are_tried_at_once_and_only_once() {
    let script = |seen: &Seen, _| match seen.header("authorization") {
        "v1" => ok(),
        _ => refusal(16),
    };
    let backend = Backend::start(Speaks::Http2, None, script).await;
    let built = build(&settings(&backend), Signal::Traces, Some(Arc::new(Rolling::default()))).unwrap();
    let one = batch(Signal::Traces, &[b"x"]);
    built.exporter.send(&one).await.unwrap();
    assert_eq!(backend.seen().len(), 2);

    let never = Backend::start(Speaks::Http2, None, |_, _| refusal(16)).await;
    let built = build(&settings(&never), Signal::Traces, Some(Arc::new(Rolling::default()))).unwrap();
    assert_eq!(built.exporter.send(&one).await.unwrap_err().code, Code::Unauthenticated);
    assert_eq!(never.seen().len(), 2);
}

struct Broken;

impl ClientAuth for Broken {
    fn headers(&self) -> HeadersFuture<'_> {
        Box::pin(async { Err(AuthError("the token endpoint is down".into())) })
    }
}

#[tokio::test]
async fn without_credentials_nothing_is_sent_and_it_may_be_tried_again() {
    let backend = backend(ok()).await;
    let built = build(&settings(&backend), Signal::Traces, Some(Arc::new(Broken))).unwrap();
    let error = built.exporter.send(&batch(Signal::Traces, &[b"x"])).await.unwrap_err();
    assert_eq!((error.class, error.retryable), (ErrorClass::Authentication, true));
    assert!(backend.seen().is_empty());
}

#[tokio::test]
async fn tls_and_another_authority() {
    let ca = Ca::new();
    let server = tls::server_config(&ca.server("backend.test"), &[connect::ALPN_H2]).unwrap();
    let backend = Backend::start(Speaks::Http2, Some(server), |_, _| ok()).await;
    let by_authority = OtlpGrpcExporter {
        tls: ClientTls { ca: Some(ca.root()), ..ClientTls::default() },
        authority: Some("backend.test:443".into()),
        ..settings(&backend)
    };
    send(&by_authority, &[b"x"]).await.unwrap();
    let by_override = OtlpGrpcExporter {
        tls: ClientTls { server_name_override: Some("backend.test".into()), ..by_authority.tls.clone() },
        authority: None,
        ..by_authority.clone()
    };
    send(&by_override, &[b"x"]).await.unwrap();
    let named: Vec<_> = backend.seen().iter().map(|seen| seen.uri.authority().unwrap().to_string()).collect();
    assert_eq!(named, ["backend.test:443", "backend.test"]);

    let neither = OtlpGrpcExporter { authority: None, ..by_authority };
    let error = send(&neither, &[b"x"]).await.unwrap_err();
    assert!(error.message.contains("certificate"), "{}", error.message);
}

#[tokio::test]
async fn a_port_that_expects_tls_is_recognised() {
    let ca = Ca::new();
    let server = tls::server_config(&ca.server("backend.test"), &[connect::ALPN_H2]).unwrap();
    let backend = Backend::start(Speaks::Http2, Some(server), |_, _| ok()).await;
    let error = send(&settings(&backend), &[b"x"]).await.unwrap_err();
    let suspected = [TlsFault::Wanted, TlsFault::PerhapsWanted].map(|fault| Some(BackendStatus::Tls(fault)));
    assert!(suspected.contains(&error.backend_status), "{error:?}");
    assert_eq!((error.class, error.retryable), (ErrorClass::Connection, true));
}

#[tokio::test]
async fn a_port_that_does_not_speak_tls_is_told_from_one_that_refuses_it() {
    for (word, expected) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], TlsFault::NoTls),
        // SETTINGS of HTTP/2
        (b"\0\0\0\x04\0\0\0\0\0", TlsFault::NoTls),
        // handshake_failure
        (b"\x15\x03\x03\0\x02\x02\x28", TlsFault::Refused),
        (b"", TlsFault::PerhapsNoTls),
    ] {
        let address = somebody(word).await;
        let tls = ClientTls { insecure_skip_verify: true, ..ClientTls::default() };
        let settings = OtlpGrpcExporter { endpoint: address.to_string().into(), tls, ..settings(&backend(ok()).await) };
        let error = send(&settings, &[b"x"]).await.unwrap_err();
        assert_eq!(error.backend_status, Some(BackendStatus::Tls(expected)), "{error:?}");
        assert_eq!((error.class, error.retryable), (ErrorClass::Connection, true));
    }
}

#[tokio::test]
async fn a_backend_that_wants_a_certificate_is_recognised() {
    let ours = Ca::new();
    let theirs = Ca::new();
    let server = ServerTls { client_ca: Some(ours.root()), ..ours.server("127.0.0.1") };
    let server = tls::server_config(&server, &[connect::ALPN_H2]).unwrap();
    let backend = Backend::start(Speaks::Http2, Some(server), |_, _| ok()).await;
    let with = |identity| OtlpGrpcExporter {
        tls: ClientTls { ca: Some(ours.root()), identity, ..ClientTls::default() },
        ..settings(&backend)
    };
    let wanted = Some(BackendStatus::Tls(TlsFault::CertificateWanted));
    let error = send(&with(None), &[b"x"]).await.unwrap_err();
    assert_eq!(
        (error.backend_status, error.class, error.retryable),
        (wanted, ErrorClass::Connection, true),
        "{error:?}"
    );
    let error = send(&with(Some(theirs.issue("client.test"))), &[b"x"]).await.unwrap_err();
    assert_ne!(error.backend_status, wanted, "it has one: {error:?}");
    send(&with(Some(ours.issue("client.test"))), &[b"x"]).await.unwrap();
}

#[tokio::test]
async fn a_proxy_that_wants_a_certificate_may_say_so_in_http() {
    let page = "<html><head><title>400 No required SSL certificate was sent</title></head></html>";
    let error = answer(Reply::http(400, &[("content-type", "text/html")], page)).await.unwrap_err();
    assert_eq!(error.backend_status, Some(BackendStatus::Tls(TlsFault::CertificateWanted)));
}

/// A server that answers the first bytes with `word`, and keeps the connection open unless `word` is empty.
async fn somebody(word: &'static [u8]) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        stream.write_all(word).await.unwrap();
        if !word.is_empty() {
            let _ = stream.read_to_end(&mut Vec::new()).await;
        }
    });
    address
}

#[tokio::test]
async fn an_alert_of_tls_is_told_from_a_connection_that_is_closed() {
    for (word, expected) in [(&b"\x15\x03\x03\0\x02\x02F"[..], TlsFault::Wanted), (b"", TlsFault::PerhapsWanted)] {
        let address = somebody(word).await;
        let backend = backend(ok()).await;
        let settings = OtlpGrpcExporter { endpoint: address.to_string().into(), ..settings(&backend) };
        let error = send(&settings, &[b"x"]).await.unwrap_err();
        assert_eq!(error.backend_status, Some(BackendStatus::Tls(expected)), "{error:?}");
    }
}

#[test]
fn a_timeout_has_at_most_eight_digits() {
    let text = |timeout| grpc_timeout(timeout).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(text(Duration::from_millis(500)).as_deref(), Some("500000u"));
    assert_eq!(text(Duration::from_secs(100)).as_deref(), Some("100000m"));
    assert_eq!(text(Duration::from_secs(1_000_000)).as_deref(), Some("1000000S"));
    assert_eq!(text(Duration::MAX), None);
}
