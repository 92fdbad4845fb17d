//! Measures the cost of tracing: `cargo run --release --example trace_cost`.
//!
//! It prints the CPU time of this process for creates over TLS, without tracing and with every request traced
//! and exported to a collector in another process; and the time for the context of a request where nothing is
//! exported.

use std::{
    convert::Infallible,
    error::Error,
    fs,
    hint::black_box,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    time::SystemTime,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kubewake_apiserver::{
    auth::kubeconfig::ClientCredentials,
    client::{AddressConnector, DialAddress, HttpClient, TlsClientConfig},
    server::{ApiServer, Options},
    trace::{InstrumentationScope, SpanContext, SpanOrigin, SpanStart, TraceSpanKind, Tracer},
};
use tokio::net::TcpListener;

type Outcome<T> = Result<T, Box<dyn Error>>;

const CREATES: u32 = 20_000;
const CONTEXTS: u32 = 5_000_000;
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn main() -> Outcome<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if std::env::args().nth(1).as_deref() == Some("sink") {
        return runtime.block_on(sink());
    }
    println!("context, export off: {:.3} µs CPU", contexts()?);
    let folder = std::env::temp_dir().join(format!("trace-cost-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let (mut sink, address) = start_sink()?;
    // Twice, since the first round is a warm-up.
    for _ in 0..2 {
        let plain = runtime.block_on(creates(None))?;
        let traced = runtime.block_on(creates(Some((&folder, &address))))?;
        println!("create, off: {plain:.1} µs CPU; at 100 %: {traced:.1} µs; tracing: {:.1} µs", traced - plain);
    }
    sink.kill()?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// The cost of contexts in every request, in microseconds.
fn contexts() -> Outcome<f64> {
    let mut headers = HeaderMap::new();
    headers.insert("traceparent", HeaderValue::from_static(PARENT));
    headers.insert("tracestate", HeaderValue::from_static("vendor=value"));
    headers.insert("baggage", HeaderValue::from_static("key=value"));
    let tracer = Tracer::default();
    let before = cpu()?;
    for _ in 0..CONTEXTS {
        let context = SpanContext::extract(black_box(&headers));
        let origin = context.as_ref().map_or(SpanOrigin::Root, SpanOrigin::Parent);
        let start = SystemTime::now();
        let begin = SpanStart { scope: InstrumentationScope::Http, kind: TraceSpanKind::Server, name: &"POST", start };
        black_box(tracer.start(&origin, begin).with_baggage(&headers).component_child("Create"));
    }
    Ok((cpu()? - before) / f64::from(CONTEXTS) * 1e6)
}

/// The CPU time of one create, in microseconds, including the client's share.
async fn creates(traced: Option<(&Path, &str)>) -> Outcome<f64> {
    let mut options = Options::default();
    if let Some((folder, address)) = traced {
        let file = folder.join("tracing.yaml");
        let head =
            "apiVersion: apiserver.config.k8s.io/v1\nkind: TracingConfiguration\nsamplingRatePerMillion: 1000000\n";
        fs::write(&file, format!("{head}endpoint: {address}\n"))?;
        options.tracing_config_file = Some(file);
    }
    let server = ApiServer::start(options).await?;
    let client = client(&server)?;
    let before = cpu()?;
    for number in 0..CREATES {
        let body = format!(r#"{{"metadata":{{"name":"m{number}"}},"data":{{"k":"{}"}}}}"#, "x".repeat(256));
        let url = format!("{}/api/v1/namespaces/default/configmaps", server.url());
        let request = Request::post(url).header("content-type", "application/json").header("traceparent", PARENT);
        let answer = client.send(request.body(Full::new(Bytes::from(body)))?).await?;
        if answer.head.status != 201 {
            return Err(format!("{}: {:?}", answer.head.status, answer.body).into());
        }
    }
    server.stop().await;
    Ok((cpu()? - before) / f64::from(CREATES) * 1e6)
}

fn client(server: &ApiServer) -> Outcome<HttpClient> {
    let kubeconfig = server.kubeconfig();
    let ClientCredentials::Certificate(pair) = &kubeconfig.credentials else { return Err("no certificate".into()) };
    let ca = kubeconfig.certificate_authority.as_deref().map(str::as_bytes);
    let trust = TlsClientConfig::new(ca, "127.0.0.1", Some((pair.chain.as_bytes(), pair.key.as_bytes())), &[b"h2"])?;
    let address = DialAddress::Tcp("127.0.0.1".into(), server.address().port());
    Ok(HttpClient::new(AddressConnector::new(address, Some(trust)), true, 1 << 20))
}

/// The CPU time of this process in seconds, from the kernel's ticks of 10 ms.
fn cpu() -> Outcome<f64> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields = stat.rsplit_once(')').ok_or("no stat")?.1.split_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    Ok(ticks / 100.0)
}

fn start_sink() -> Outcome<(Child, String)> {
    let mut child = Command::new(std::env::current_exe()?).arg("sink").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    Ok((child, line.trim().to_owned()))
}

/// A collector that discards everything.
async fn sink() -> Outcome<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(async move {
            let service = service_fn(|request: Request<Incoming>| async {
                let _ = request.into_body().collect().await;
                let answer = Response::builder().header("content-type", "application/grpc").header("grpc-status", "0");
                Ok::<_, Infallible>(answer.body(Full::<Bytes>::default()).unwrap_or_default())
            });
            let _ = http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
