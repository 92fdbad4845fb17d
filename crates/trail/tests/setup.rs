//! The effects of environment variables, in processes of their own: this program starts itself again and
//! receives its exports.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

use std::{
    convert::Infallible,
    process::{Command, Output},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use opentelemetry::trace::{TraceContextExt as _, Tracer as _};
use tokio::net::TcpListener;

/// Set in the process that exports.
const ROLE: &str = "TRAIL_TEST_EXPORTS";
/// The value of [`ROLE`] with which the process ends by dropping its guard.
const DROPS: &str = "drops";

/// Exports one span, in the process that exports.
#[test]
fn exports() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let (telemetry, trail) = kubewake_trail::setup("set-up-here").unwrap();
    let inherited = kubewake_trail::operand::inherited_context();
    let parent = opentelemetry::Context::new();
    let parent = inherited.map_or(parent.clone(), |context| parent.with_remote_span_context(context));
    let work = parent.with_span(trail.tracer().start_with_context("work", &parent));
    work.span().end();
    drop(work);
    println!("on: {}", telemetry.is_enabled());
    let start = Instant::now();
    if std::env::var(ROLE).is_ok_and(|role| role == DROPS) {
        drop(telemetry);
    } else {
        telemetry.shutdown();
    }
    println!("flushed after {} ms", start.elapsed().as_millis());
}

fn export(variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["exports", "--exact", "--nocapture"]).env(ROLE, "1");
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("OTEL_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied()).output().unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The path, content type and body of every request.
type Received = Arc<Mutex<Vec<(String, Option<String>, Bytes)>>>;

async fn receiver() -> (String, Received) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let received = Received::default();
    let into = Arc::clone(&received);
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let into = Arc::clone(&into);
            let answer = service_fn(move |request: Request<Incoming>| {
                let into = Arc::clone(&into);
                async move {
                    let (parts, body) = request.into_parts();
                    let header = |name| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
                    let body = body.collect().await.unwrap().to_bytes();
                    into.lock().unwrap().push((parts.uri.path().to_owned(), header("x-key"), body));
                    Ok::<_, Infallible>(Response::new(Full::new(Bytes::new())))
                }
            });
            tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), answer));
        }
    });
    (address, received)
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_go_where_the_environment_says_with_who_sent_them() {
    let (address, received) = receiver().await;
    let output = tokio::task::spawn_blocking(move || {
        export(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &address),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=value"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=tests"),
            ("POD_NAME", "pod-1"),
            ("TRACEPARENT", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
        ])
    })
    .await
    .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(printed(&output).contains("on: true"));
    let received = received.lock().unwrap();
    let (path, key, body) = received.first().expect("a request");
    assert_eq!((received.len(), path.as_str(), key.as_deref()), (1, "/v1/traces", Some("value")));
    for text in ["set-up-here", "deployment.environment.name", "k8s.pod.name", "pod-1", "work"] {
        assert!(holds(body, text.as_bytes()), "{text}");
    }
    // The trace context that the process inherited.
    assert!(holds(body, &0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736_u128.to_be_bytes()), "the trace");
    assert!(holds(body, &0x00f0_67aa_0ba9_02b7_u64.to_be_bytes()), "the parent");
}

fn holds(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_only_drops_it_has_exported_everything() {
    let (address, received) = receiver().await;
    let variables = [("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"), (ROLE, DROPS)];
    let end = move || export(&[("OTEL_EXPORTER_OTLP_ENDPOINT", &*address), variables[0], variables[1]]);
    let output = tokio::task::spawn_blocking(end).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let received = received.lock().unwrap();
    assert!(received.len() == 1 && holds(&received[0].2, b"work"));
}

#[test]
fn without_an_endpoint_nothing_happens() {
    let output = export(&[]);
    assert!(output.status.success() && printed(&output).contains("on: false"));
}

#[test]
fn a_backend_that_is_down_delays_the_end_by_a_bounded_time() {
    for protocol in ["grpc", "http/protobuf"] {
        let output =
            export(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"), ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = printed(&output);
        let after = text.split_once("flushed after ").unwrap().1.split_once(" ms").unwrap().0;
        let bound = kubewake_trail::setup::FLUSH_TIMEOUT + Duration::from_secs(30);
        assert!(Duration::from_millis(after.parse().unwrap()) < bound, "{protocol}: {after} ms");
    }
}

#[test]
fn what_nobody_understands_is_said() {
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1");
    let output = export(&[endpoint, ("OTEL_TRACES_SAMPLER", "sometimes")]);
    assert!(!output.status.success());
    let said = |output: &Output| format!("{}{}", printed(output), String::from_utf8_lossy(&output.stderr));
    assert!(said(&output).contains("OTEL_TRACES_SAMPLER is \"sometimes\"; use always_on"), "{}", said(&output));
    // A `main` that returns the error prints its `Debug`.
    let output = export(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "127.0.0.1:4317")]);
    assert!(said(&output).contains("has no scheme: write http://127.0.0.1:4317"), "{}", said(&output));
}
