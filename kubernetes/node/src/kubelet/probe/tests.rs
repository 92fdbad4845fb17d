//! Checks against real sockets and processes.

use std::{convert::Infallible, net::Ipv4Addr};

use ::http::{HeaderMap, HeaderValue, Request, Response};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use k8s_openapi::api::core::v1::{ExecAction, GRPCAction, HTTPGetAction, HTTPHeader, TCPSocketAction};
use rustls::pki_types::PrivateKeyDer;
use tokio::{
    io::AsyncReadExt,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::*;

type Body = BoxBody<Bytes, Infallible>;

fn text(text: &str) -> Body {
    Full::new(Bytes::copy_from_slice(text.as_bytes())).boxed()
}

fn target(port: u16) -> ProbeTarget {
    ProbeTarget {
        ip: Ipv4Addr::LOCALHOST.into(),
        ports: vec![("web".to_owned(), port)],
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned()), ("GREETING".to_owned(), "hello".to_owned())],
        dir: "/".into(),
        tag: crate::process_tags::ClusterTag::new().unwrap().new_container_tag(),
    }
}

async fn check(probe: Probe, port: u16) -> Result<(), String> {
    ProbeChecker::default().check(&probe, &target(port)).await.map_err(|fault| fault.to_string())
}

async fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

/// A port without a listener; it stays bound, so that no other process listens there.
async fn closed() -> (tokio::net::TcpSocket, u16) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    (socket, port)
}

/// A web server that responds with `respond` to each request.
async fn web(respond: fn(&Request<Incoming>) -> Response<Body>) -> u16 {
    let (listener, port) = listener().await;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, respond));
        }
    });
    port
}

async fn serve<S>(stream: S, respond: fn(&Request<Incoming>) -> Response<Body>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let service = service_fn(move |request| async move { Ok::<_, Infallible>(respond(&request)) });
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn http_get(path: &str) -> HTTPGetAction {
    HTTPGetAction {
        path: Some(path.to_owned()),
        port: IntOrString::String("web".to_owned()),
        scheme: Some("HTTP".to_owned()),
        ..HTTPGetAction::default()
    }
}

fn http(action: HTTPGetAction) -> Probe {
    Probe { http_get: Some(action), timeout_seconds: Some(30), ..Probe::default() }
}

fn status(code: u16) -> Response<Body> {
    Response::builder().status(code).body(text("words")).unwrap()
}

#[tokio::test]
async fn http_is_well_from_200_to_399() {
    let port = web(|request| status(request.uri().query().unwrap().parse().unwrap())).await;
    for (code, expected) in [
        (200, Ok(())),
        (204, Ok(())),
        (304, Ok(())),
        (399, Ok(())),
        (400, Err("HTTP probe failed with statuscode: 400".to_owned())),
        (503, Err("HTTP probe failed with statuscode: 503".to_owned())),
    ] {
        assert_eq!(check(http(http_get(&format!("/healthz?{code}"))), port).await, expected);
    }
}

#[tokio::test]
async fn http_says_who_asks_unless_told_otherwise() {
    let port = web(|request| {
        let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
        let usual = header("user-agent") == Some("kube-probe/1.35") && header("accept") == Some("*/*");
        let own =
            header("user-agent") == Some("me") && header("accept").is_none() && header("host") == Some("example.org");
        status(match request.uri().path() {
            "/usual" if usual && header("host").unwrap().starts_with("127.0.0.1:") => 200,
            "/own" if own && header("x-key") == Some("a b") => 200,
            _ => 500,
        })
    })
    .await;
    assert_eq!(check(http(http_get("/usual")), port).await, Ok(()));
    let headers = [("User-Agent", "me"), ("Accept", ""), ("Host", "example.org"), ("X-Key", "a b")];
    let headers = headers.map(|(name, value)| HTTPHeader { name: name.to_owned(), value: value.to_owned() });
    let own = HTTPGetAction { http_headers: Some(headers.to_vec()), ..http_get("own") };
    assert_eq!(check(http(own), port).await, Ok(()));
}

#[tokio::test]
async fn http_follows_redirects_on_the_same_host_only() {
    let port = web(|request| {
        let to = |location: &str| Response::builder().status(302).header("location", location).body(text("")).unwrap();
        match request.uri().path() {
            "/a/absolute" => to("/a/relative?x=1"),
            "/a/relative" => to("bad"),
            "/a/bad" => status(500),
            "/away" => to("http://192.0.2.1/nowhere"),
            "/round" => to("/round"),
            _ => Response::builder().status(302).body(text("")).unwrap(),
        }
    })
    .await;
    let failed = |words: &str| Err(words.to_owned());
    assert_eq!(check(http(http_get("/a/absolute")), port).await, failed("HTTP probe failed with statuscode: 500"));
    assert_eq!(check(http(http_get("/away")), port).await, Ok(()));
    let url = format!("Get \"http://127.0.0.1:{port}");
    assert_eq!(
        check(http(http_get("/round")), port).await,
        failed(&format!("{url}/round\": stopped after 10 redirects"))
    );
    let missing = failed(&format!("{url}/missing\": 302 response missing Location header"));
    assert_eq!(check(http(http_get("/missing")), port).await, missing);
}

#[tokio::test]
async fn http_reads_no_more_than_it_needs() {
    let port = web(|_| {
        let endless = stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b'x'; 4096]))));
        Response::new(BodyExt::boxed(StreamBody::new(endless)))
    })
    .await;
    assert_eq!(check(http(http_get("/")), port).await, Ok(()));
}

#[tokio::test]
async fn http_says_why_there_is_no_answer() {
    let (_socket, port) = closed().await;
    let refused = format!("Get \"http://127.0.0.1:{port}/x\": dial tcp 127.0.0.1:{port}: connect: connection refused");
    assert_eq!(check(http(http_get("/x")), port).await, Err(refused));

    let (silent, port) = listener().await;
    let late = Probe { timeout_seconds: Some(1), ..http(http_get("/x")) };
    let words = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
    assert_eq!(check(late, port).await, Err(format!("Get \"http://127.0.0.1:{port}/x\": {words}")));

    let hang_up = tokio::spawn(async move {
        // The first request is the abandoned one.
        for _ in 0..2 {
            let (mut stream, _) = silent.accept().await.unwrap();
            let _ = stream.read(&mut [0; 1024]).await;
        }
    });
    assert_eq!(check(http(http_get("/x")), port).await, Err(format!("Get \"http://127.0.0.1:{port}/x\": EOF")));
    hang_up.await.unwrap();
}

#[tokio::test]
async fn https_takes_any_certificate() {
    let certified = rcgen::generate_simple_self_signed(["somebody.example".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let config = rustls::ServerConfig::builder_with_provider(rustls::crypto::aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let (listener, port) = listener().await;
    tokio::spawn(async move {
        let acceptor = TlsAcceptor::from(Arc::new(config));
        while let Ok((stream, _)) = listener.accept().await {
            serve(acceptor.accept(stream).await.unwrap(), |_| status(200)).await;
        }
    });
    let secure = HTTPGetAction { scheme: Some("HTTPS".to_owned()), ..http_get("/") };
    assert_eq!(check(http(secure), port).await, Ok(()));
}

#[tokio::test]
async fn tcp_is_well_when_it_connects() {
    let (_listener, port) = listener().await;
    let tcp = |port| Probe {
        tcp_socket: Some(TCPSocketAction { host: None, port }),
        timeout_seconds: Some(30),
        ..Probe::default()
    };
    assert_eq!(check(tcp(IntOrString::String("web".to_owned())), port).await, Ok(()));
    assert_eq!(check(tcp(IntOrString::Int(port.into())), 1).await, Ok(()));
    let unknown = check(tcp(IntOrString::String("mail".to_owned())), port).await;
    assert_eq!(unknown, Err("couldn't find port \"mail\" in the container".to_owned()));
    let (_socket, port) = closed().await;
    let refused = Err(format!("dial tcp 127.0.0.1:{port}: connect: connection refused"));
    assert_eq!(check(tcp(IntOrString::Int(port.into())), 1).await, refused);
}

/// The response of a health service for each service.
fn health(service: &[u8]) -> Response<Body> {
    let answer = |message: &[u8], code: &'static str, words: &'static str| {
        let mut framed = vec![0, 0, 0, 0, u8::try_from(message.len()).unwrap()];
        framed.extend(message);
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(code));
        trailers.insert("grpc-message", HeaderValue::from_static(words));
        let frames = [Frame::data(Bytes::from(framed)), Frame::trailers(trailers)];
        Response::new(BodyExt::boxed(StreamBody::new(stream::iter(frames.map(Ok)))))
    };
    let in_head = |code: &str, words: &str| {
        Response::builder().header("grpc-status", code).header("grpc-message", words).body(text("")).unwrap()
    };
    match service {
        b"" => answer(&[0x08, 1], "0", ""),
        b"down" => answer(&[0x08, 2], "0", ""),
        b"strange" => answer(&[], "0", ""),
        b"old" => in_head("12", "unknown service grpc.health.v1.Health"),
        _ => in_head("5", "unknown service"),
    }
}

async fn health_service() -> u16 {
    let (listener, port) = listener().await;
    let service = service_fn(|request: Request<Incoming>| async {
        assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        Ok::<_, Infallible>(health(body.get(7..).unwrap_or_default()))
    });
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service));
        }
    });
    port
}

#[tokio::test]
async fn grpc_asks_the_health_service() {
    let port = health_service().await;
    let failed = |words: &str| Err(words.to_owned());
    for (service, expected) in [
        (None, Ok(())),
        (Some("down"), failed("service unhealthy (responded with \"NOT_SERVING\")")),
        (Some("strange"), failed("service unhealthy (responded with \"UNKNOWN\")")),
        (Some("other"), failed("error: health rpc probe failed: rpc error: code = NotFound desc = unknown service")),
        (
            Some("old"),
            failed(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): \
                 unknown service grpc.health.v1.Health",
            ),
        ),
    ] {
        assert_eq!(check(grpc(port, service), port).await, expected);
    }
}

fn grpc(port: u16, service: Option<&str>) -> Probe {
    let action = GRPCAction { port: port.into(), service: service.map(str::to_owned) };
    Probe { grpc: Some(action), timeout_seconds: Some(30), ..Probe::default() }
}

#[tokio::test]
async fn grpc_says_why_there_is_no_answer() {
    let (_socket, port) = closed().await;
    let refused = check(grpc(port, None), port).await.unwrap_err();
    let address = format!("127.0.0.1:{port}");
    let words =
        format!("error: failed to connect service at \"{address}\": dial tcp {address}: connect: connection refused");
    assert_eq!(refused, words);
    let (_silent, port) = listener().await;
    let late = Probe { timeout_seconds: Some(1), ..grpc(port, None) };
    assert_eq!(check(late, port).await, Err("timeout: health rpc did not complete within 1s".to_owned()));
    let port = web(|_| status(200)).await;
    let not_http2 = check(grpc(port, None), port).await.unwrap_err();
    assert!(not_http2.starts_with("error: health rpc probe failed: rpc error: code = Unavailable"), "{not_http2}");
}

fn exec(script: &str, timeout: i32) -> Probe {
    let command = ["sh", "-c", script].map(str::to_owned).to_vec();
    let action = ExecAction { command: Some(command) };
    Probe { exec: Some(action), timeout_seconds: Some(timeout), ..Probe::default() }
}

#[tokio::test]
async fn exec_runs_in_the_environment_of_the_container() {
    assert_eq!(check(exec("test $GREETING = hello && test $PWD = / && test -z \"$HOME\"", 30), 1).await, Ok(()));
    let failed = check(exec("echo out; echo err >&2; exit 3", 30), 1).await;
    assert_eq!(failed, Err("out\nerr".to_owned()));
    let silent = check(exec("exit 3", 30), 1).await;
    assert_eq!(silent, Err("command \"sh -c exit 3\" exited with code 3 and no output".to_owned()));
    let mut probe = exec("", 30);
    probe.exec = Some(ExecAction { command: Some(vec!["no-such-program".to_owned()]) });
    let missing = check(probe, 1).await;
    assert_eq!(missing, Err("exec: \"no-such-program\": executable file not found in $PATH".to_owned()));
}

#[tokio::test]
async fn exec_keeps_the_beginning_of_the_output() {
    let failed = check(exec("head -c 1000000 /dev/zero | tr '\\0' x; exit 1", 30), 1).await;
    assert_eq!(failed.unwrap_err().len(), MAX_RESPONSE_BYTES);
}

#[tokio::test]
async fn exec_does_not_wait_for_what_runs_in_the_background() {
    // The process ends when the pipe is closed, which is after the check.
    let (reader, writer) = std::io::pipe().unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
    let script = format!("cat /proc/{}/fd/{fd} & exit 0", std::process::id());
    assert_eq!(check(exec(&script, 30), 1).await, Ok(()));
    drop(writer);
}

#[tokio::test]
async fn exec_kills_all_processes_when_the_time_is_up() {
    // The pipe is closed when the last process that holds it has ended.
    let (reader, writer) = std::io::pipe().unwrap();
    let mut reader = tokio::net::unix::pipe::Receiver::from_owned_fd(reader.into()).unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
    let script = format!("exec 9>/proc/{}/fd/{fd}; sleep 1000 & sleep 1000", std::process::id());
    let late = check(exec(&script, 1), 1).await.unwrap_err();
    assert!(late.starts_with("command timed out: \"sh -c exec 9>/proc/"), "{late}");
    assert!(late.ends_with("\" timed out after 1s"), "{late}");
    drop(writer);
    assert_eq!(reader.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_prober_tells_what_it_found_and_stops_when_it_is_dropped() {
    let (listener, port) = listener().await;
    let tcp = TCPSocketAction { host: None, port: IntOrString::Int(port.into()) };
    let probe = Probe { tcp_socket: Some(tcp), ..Probe::default() };
    let prober = Prober::start(ProbeKind::Readiness, probe, target(port), ProbeChecker::default(), |_| {});
    let mut outcome = prober.outcome();
    outcome.wait_for(|outcome| *outcome == ProbeOutcome::Success).await.unwrap();
    assert!(TcpStream::connect(listener.local_addr().unwrap()).await.is_ok());
    drop(prober);
    assert!(outcome.changed().await.is_err());
}

#[test]
fn secrets_of_the_environment_are_not_shown() {
    assert!(!format!("{:?}", target(1)).contains("hello"));
}
